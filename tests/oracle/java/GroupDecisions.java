import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.coordinator.common.runtime.KRaftCoordinatorMetadataImage;
import org.apache.kafka.coordinator.group.Utils;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.metadata.MetadataRecordSerde;
import com.google.re2j.Pattern;
import com.google.re2j.PatternSyntaxException;

/**
 * What Kafka's group coordinator computes: "assign" is an assignor's answer, "hash" that of topics,
 * alone and together, in the image that metadata records make, "match" the texts that a regular
 * expression matches, or what is wrong with it.
 */
public class GroupDecisions {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            ObjectNode answer = JSON.createObjectNode();
            try {
                decide(JSON.readTree(line), answer);
            } catch (Throwable e) {
                answer.removeAll().put("error", String.valueOf(e));
            }
            System.out.println(JSON.writeValueAsString(answer));
            System.out.flush();
        }
        System.exit(0);
    }

    private static void decide(JsonNode ask, ObjectNode answer) throws Exception {
        switch (ask.get("op").asText()) {
            case "assign":
                assign(ask, answer);
                break;
            case "hash":
                hash(ask, answer);
                break;
            case "match":
                match(ask, answer);
                break;
            default:
                throw new IllegalArgumentException(ask.get("op").asText());
        }
    }

    private static void assign(JsonNode ask, ObjectNode answer) {
        Map<Uuid, Integer> counts = new HashMap<>();
        ask.get("topics").fields().forEachRemaining(
            each -> counts.put(Uuid.fromString(each.getKey()), each.getValue().asInt()));
        Map<String, MemberSubscriptionAndAssignmentImpl> members = new HashMap<>();
        Map<Uuid, Map<Integer, String>> taken = new HashMap<>();
        for (JsonNode member : ask.get("members")) {
            Set<Uuid> topics = new HashSet<>();
            member.get("topics").forEach(each -> topics.add(Uuid.fromString(each.asText())));
            Map<Uuid, Set<Integer>> assigned = new HashMap<>();
            member.get("assigned").fields().forEachRemaining(each -> {
                List<Integer> partitions = new ArrayList<>();
                Uuid topic = Uuid.fromString(each.getKey());
                each.getValue().forEach(partition -> {
                    partitions.add(partition.asInt());
                    taken.computeIfAbsent(topic, t -> new HashMap<>())
                        .put(partition.asInt(), member.get("id").asText());
                });
                assigned.put(topic, new HashSet<>(partitions));
            });
            members.put(member.get("id").asText(), new MemberSubscriptionAndAssignmentImpl(
                Optional.empty(),
                member.get("instance").isNull() ? Optional.empty()
                    : Optional.of(member.get("instance").asText()),
                topics,
                new Assignment(assigned)));
        }
        ConsumerGroupPartitionAssignor assignor = ask.get("assignor").asText().equals("range")
            ? new RangeAssignor() : new UniformAssignor();
        SubscribedTopicDescriber describer = new SubscribedTopicDescriber() {
            @Override
            public int numPartitions(Uuid topicId) {
                return counts.getOrDefault(topicId, -1);
            }

            @Override
            public Set<String> racksForPartition(Uuid topicId, int partition) {
                return Set.of();
            }
        };
        SubscriptionType type = ask.get("even").asBoolean()
            ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS;
        Map<String, MemberAssignment> found =
            assignor.assign(new GroupSpecImpl(members, type, taken), describer).members();
        ObjectNode told = answer.putObject("members");
        found.forEach((member, assignment) -> {
            ObjectNode topics = told.putObject(member);
            assignment.partitions().forEach((topic, partitions) -> {
                ArrayNode all = topics.putArray(topic.toString());
                new TreeSet<>(partitions).forEach(all::add);
            });
        });
    }

    private static void hash(JsonNode ask, ObjectNode answer) throws Exception {
        MetadataDelta delta = new MetadataDelta.Builder().setImage(MetadataImage.EMPTY).build();
        for (JsonNode hex : ask.get("records")) {
            byte[] data = HexFormat.of().parseHex(hex.asText());
            delta.replay(new MetadataRecordSerde().read(
                new ByteBufferAccessor(java.nio.ByteBuffer.wrap(data)), data.length).message());
        }
        MetadataImage image = delta.apply(new MetadataProvenance(1, 1, 1, true));
        KRaftCoordinatorMetadataImage told = new KRaftCoordinatorMetadataImage(image);
        Map<String, Long> hashes = new HashMap<>();
        ObjectNode topics = answer.putObject("topics");
        for (JsonNode topic : ask.get("topics")) {
            long found = Utils.computeTopicHash(topic.asText(), told);
            hashes.put(topic.asText(), found);
            topics.put(topic.asText(), found);
        }
        answer.put("group", Utils.computeGroupHash(hashes));
    }

    private static void match(JsonNode ask, ObjectNode answer) {
        try {
            Pattern pattern = Pattern.compile(ask.get("regex").asText());
            ArrayNode matched = answer.putArray("matched");
            ask.get("texts").forEach(text -> {
                if (pattern.matcher(text.asText()).matches()) matched.add(text.asText());
            });
        } catch (PatternSyntaxException e) {
            answer.put("invalid", e.getDescription());
        }
    }
}
