import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.common.metadata.PartitionChangeRecordJsonConverter;
import org.apache.kafka.controller.PartitionChangeBuilder;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.MetadataVersion;

/**
 * What the controller makes of a partition whose replicas change: a JSON request a line on stdin, a
 * JSON answer a line on stdout, with "version" and "record", or nothing where nothing changes.
 */
public class PartitionChanges {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            ObjectNode answer = JSON.createObjectNode();
            try {
                build(JSON.readTree(line)).ifPresent(found -> {
                    answer.put("version", found.version());
                    answer.set("record", PartitionChangeRecordJsonConverter.write(
                        (PartitionChangeRecord) found.message(), found.version()));
                });
            } catch (Throwable e) {
                answer.removeAll().put("error", String.valueOf(e));
            }
            System.out.println(JSON.writeValueAsString(answer));
            System.out.flush();
        }
    }

    private static Optional<ApiMessageAndVersion> build(JsonNode ask) {
        int[] replicas = ints(ask.get("replicas"));
        Uuid[] directories = new Uuid[replicas.length];
        for (int i = 0; i < replicas.length; i++) directories[i] = directory(replicas[i]);
        PartitionRegistration partition = new PartitionRegistration.Builder()
            .setReplicas(replicas)
            .setDirectories(directories)
            .setIsr(ints(ask.get("isr")))
            .setRemovingReplicas(ints(ask.get("removing")))
            .setAddingReplicas(ints(ask.get("adding")))
            .setElr(ints(ask.get("elr")))
            .setLastKnownElr(ints(ask.get("lastKnownElr")))
            .setLeader(ask.get("leader").asInt())
            .setLeaderRecoveryState(LeaderRecoveryState.of((byte) ask.get("recovery").asInt()))
            .setLeaderEpoch(3)
            .setPartitionEpoch(4)
            .build();
        List<Integer> fit = list(ask.get("mayLead"));
        PartitionChangeBuilder builder = new PartitionChangeBuilder(
            partition, new Uuid(0, 500), 7, fit::contains,
            MetadataVersion.fromFeatureLevel((short) ask.get("level").asInt()),
            ask.get("minIsr").asInt(), ask.get("hasElr").asBoolean());
        builder.setElection(PartitionChangeBuilder.Election.valueOf(ask.get("election").asText()));
        builder.setTargetIsr(list(ask.get("targetIsr")));
        if (ask.get("lostData").size() > 0) builder.setUncleanShutdownReplicas(list(ask.get("lostData")));
        builder.setDefaultDirProvider(PartitionChanges::directory);
        return builder.build();
    }

    private static Uuid directory(int broker) {
        return new Uuid(0, 1000 + broker);
    }

    private static int[] ints(JsonNode numbers) {
        return list(numbers).stream().mapToInt(Integer::intValue).toArray();
    }

    private static List<Integer> list(JsonNode numbers) {
        List<Integer> found = new ArrayList<>();
        numbers.forEach(each -> found.add(each.asInt()));
        return found;
    }
}
