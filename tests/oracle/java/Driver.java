import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.regex.Pattern;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.TopicPartitionReplica;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.quota.*;
import org.apache.kafka.common.resource.*;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.token.delegation.DelegationToken;
import org.apache.kafka.common.serialization.*;

/** A client that does what each line of stdin says: one JSON request, one JSON answer. */
public class Driver {
    private static final ObjectMapper JSON = new ObjectMapper();
    private final Properties common = new Properties();
    private final Admin admin;
    private final Map<String, KafkaProducer<byte[], byte[]>> producers = new HashMap<>();
    private final Map<String, KafkaConsumer<byte[], byte[]>> consumers = new HashMap<>();
    private final Map<String, KafkaShareConsumer<byte[], byte[]>> shareConsumers = new HashMap<>();

    Driver(String[] settings) {
        for (String setting : settings) {
            int cut = setting.indexOf('=');
            common.put(setting.substring(0, cut), setting.substring(cut + 1));
        }
        admin = Admin.create(common);
    }

    public static void main(String[] args) throws Exception {
        Driver driver = new Driver(args);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            ObjectNode answer = JSON.createObjectNode();
            try {
                driver.answer(JSON.readTree(line), answer);
            } catch (ExecutionException e) {
                answer.put("error", String.valueOf(e.getCause()));
            } catch (Throwable e) {
                answer.put("error", String.valueOf(e));
            }
            System.out.println(JSON.writeValueAsString(answer));
            System.out.flush();
        }
        // Members that never leave their group are wanted in some fixtures, so nothing is closed.
        System.exit(0);
    }

    private void answer(JsonNode ask, ObjectNode out) throws Exception {
        switch (ask.get("op").asText()) {
            case "createTopic": createTopic(ask, out); break;
            case "deleteTopic": admin.deleteTopics(List.of(text(ask, "name"))).all().get(); break;
            case "createPartitions":
                admin.createPartitions(Map.of(text(ask, "name"),
                    NewPartitions.increaseTo(ask.get("count").asInt()))).all().get();
                break;
            case "config": config(ask); break;
            case "reassign": reassign(ask); break;
            case "elect":
                admin.electLeaders(ask.path("unclean").asBoolean() ? ElectionType.UNCLEAN : ElectionType.PREFERRED,
                    Set.of(partition(ask))).all().get();
                break;
            case "describe": describe(ask, out); break;
            case "quota": quota(ask); break;
            case "scram": scram(ask); break;
            case "acl": acl(ask); break;
            case "createToken": createToken(ask, out); break;
            case "renewToken":
                admin.renewDelegationToken(hmac(ask)).expiryTimestamp().get();
                break;
            case "expireToken":
                admin.expireDelegationToken(hmac(ask),
                    new ExpireDelegationTokenOptions().expiryTimePeriodMs(-1)).expiryTimestamp().get();
                break;
            case "feature":
                admin.updateFeatures(Map.of(text(ask, "name"), new FeatureUpdate((short) ask.get("level").asInt(),
                    FeatureUpdate.UpgradeType.valueOf(ask.path("type").asText("UPGRADE")))),
                    new UpdateFeaturesOptions()).all().get();
                break;
            case "unregister": admin.unregisterBroker(ask.get("id").asInt()).all().get(); break;
            case "addVoter":
                admin.addRaftVoter(ask.get("id").asInt(), Uuid.fromString(text(ask, "directory")),
                    Set.of(new RaftVoterEndpoint(text(ask, "listener"), text(ask, "host"), ask.get("port").asInt())))
                    .all().get();
                break;
            case "removeVoter":
                admin.removeRaftVoter(ask.get("id").asInt(), Uuid.fromString(text(ask, "directory"))).all().get();
                break;
            case "deleteRecords":
                admin.deleteRecords(Map.of(partition(ask),
                    RecordsToDelete.beforeOffset(ask.get("before").asLong()))).all().get();
                break;
            case "moveDirectory":
                admin.alterReplicaLogDirs(Map.of(new TopicPartitionReplica(text(ask, "topic"),
                    ask.get("partition").asInt(), ask.get("broker").asInt()), text(ask, "directory"))).all().get();
                break;
            case "alterOffset":
                admin.alterConsumerGroupOffsets(text(ask, "group"), Map.of(partition(ask),
                    new OffsetAndMetadata(ask.get("offset").asLong(), Optional.empty(),
                        ask.path("metadata").asText("")))).all().get();
                break;
            case "deleteOffset":
                admin.deleteConsumerGroupOffsets(text(ask, "group"), Set.of(partition(ask))).all().get();
                break;
            case "deleteGroup": admin.deleteConsumerGroups(List.of(text(ask, "group"))).all().get(); break;
            case "deleteShareGroup": admin.deleteShareGroups(List.of(text(ask, "group"))).all().get(); break;
            case "produce": produce(ask, out); break;
            case "begin": producer(ask).beginTransaction(); break;
            case "commit": producer(ask).commitTransaction(); break;
            case "abort": producer(ask).abortTransaction(); break;
            case "offsetsToTransaction":
                producer(ask).sendOffsetsToTransaction(Map.of(partition(ask),
                    new OffsetAndMetadata(ask.get("offset").asLong())),
                    new ConsumerGroupMetadata(text(ask, "group")));
                break;
            case "closeProducer": producers.remove(text(ask, "producer")).close(); break;
            case "fenceProducers": admin.fenceProducers(List.of(text(ask, "id"))).all().get(); break;
            case "consume": consume(ask, out); break;
            case "closeConsumer": consumers.remove(text(ask, "consumer")).close(); break;
            case "shareConsume": shareConsume(ask, out); break;
            case "closeShareConsumer": shareConsumers.remove(text(ask, "consumer")).close(); break;
            default: throw new IllegalArgumentException("unknown op " + ask.get("op"));
        }
    }

    private static String text(JsonNode node, String name) {
        JsonNode value = node.get(name);
        return value == null || value.isNull() ? null : value.asText();
    }

    private static TopicPartition partition(JsonNode ask) {
        return new TopicPartition(text(ask, "topic"), ask.path("partition").asInt(0));
    }

    private static byte[] hmac(JsonNode ask) {
        return java.util.Base64.getDecoder().decode(text(ask, "hmac"));
    }

    private static Map<String, String> strings(JsonNode node) {
        Map<String, String> out = new HashMap<>();
        if (node != null) node.fields().forEachRemaining(e -> out.put(e.getKey(), e.getValue().asText()));
        return out;
    }

    private static List<Integer> ints(JsonNode node) {
        List<Integer> out = new ArrayList<>();
        node.forEach(each -> out.add(each.asInt()));
        return out;
    }

    private void createTopic(JsonNode ask, ObjectNode out) throws Exception {
        NewTopic topic;
        if (ask.has("assignments")) {
            Map<Integer, List<Integer>> assignments = new HashMap<>();
            int partition = 0;
            for (JsonNode replicas : ask.get("assignments")) assignments.put(partition++, ints(replicas));
            topic = new NewTopic(text(ask, "name"), assignments);
        } else {
            topic = new NewTopic(text(ask, "name"), ask.path("partitions").asInt(1),
                (short) ask.path("replication").asInt(1));
        }
        CreateTopicsResult result = admin.createTopics(List.of(topic.configs(strings(ask.get("configs")))));
        result.all().get();
        out.put("topicId", result.topicId(text(ask, "name")).get().toString());
    }

    private void config(JsonNode ask) throws Exception {
        ConfigResource resource = new ConfigResource(
            ConfigResource.Type.valueOf(text(ask, "type").toUpperCase()), text(ask, "name"));
        Collection<AlterConfigOp> ops = new ArrayList<>();
        strings(ask.get("set")).forEach((name, value) ->
            ops.add(new AlterConfigOp(new ConfigEntry(name, value), AlterConfigOp.OpType.SET)));
        ask.path("delete").forEach(name ->
            ops.add(new AlterConfigOp(new ConfigEntry(name.asText(), null), AlterConfigOp.OpType.DELETE)));
        admin.incrementalAlterConfigs(Map.of(resource, ops)).all().get();
    }

    private void reassign(JsonNode ask) throws Exception {
        Optional<NewPartitionReassignment> target = ask.hasNonNull("replicas")
            ? Optional.of(new NewPartitionReassignment(ints(ask.get("replicas")))) : Optional.empty();
        admin.alterPartitionReassignments(Map.of(partition(ask), target)).all().get();
    }

    private void describe(JsonNode ask, ObjectNode out) throws Exception {
        TopicDescription topic = admin.describeTopics(List.of(text(ask, "name"))).allTopicNames().get()
            .get(text(ask, "name"));
        out.put("topicId", topic.topicId().toString());
        ArrayNode partitions = out.putArray("partitions");
        for (TopicPartitionInfo info : topic.partitions()) {
            ObjectNode each = partitions.addObject();
            each.put("leader", info.leader() == null ? -1 : info.leader().id());
            info.replicas().forEach(node -> each.withArray("/replicas").add(node.id()));
            each.putArray("isr");
            info.isr().forEach(node -> each.withArray("/isr").add(node.id()));
        }
    }

    private void quota(JsonNode ask) throws Exception {
        Map<String, String> entity = new HashMap<>();
        ask.get("entity").fields().forEachRemaining(e ->
            entity.put(e.getKey(), e.getValue().isNull() ? null : e.getValue().asText()));
        List<ClientQuotaAlteration.Op> ops = new ArrayList<>();
        ask.get("set").fields().forEachRemaining(e -> ops.add(new ClientQuotaAlteration.Op(e.getKey(),
            e.getValue().isNull() ? null : e.getValue().asDouble())));
        admin.alterClientQuotas(List.of(new ClientQuotaAlteration(new ClientQuotaEntity(entity), ops))).all().get();
    }

    private void scram(JsonNode ask) throws Exception {
        ScramMechanism mechanism = ScramMechanism.fromMechanismName(text(ask, "mechanism"));
        UserScramCredentialAlteration change = ask.has("password")
            ? new UserScramCredentialUpsertion(text(ask, "user"),
                new ScramCredentialInfo(mechanism, ask.path("iterations").asInt(4096)), text(ask, "password"))
            : new UserScramCredentialDeletion(text(ask, "user"), mechanism);
        admin.alterUserScramCredentials(List.of(change)).all().get();
    }

    private void acl(JsonNode ask) throws Exception {
        AclBinding binding = new AclBinding(
            new ResourcePattern(ResourceType.fromString(text(ask, "resource")), text(ask, "name"),
                PatternType.fromString(ask.path("pattern").asText("LITERAL"))),
            new AccessControlEntry(text(ask, "principal"), ask.path("host").asText("*"),
                AclOperation.fromString(text(ask, "operation")),
                AclPermissionType.fromString(ask.path("permission").asText("ALLOW"))));
        if (ask.path("delete").asBoolean()) admin.deleteAcls(List.of(binding.toFilter())).all().get();
        else admin.createAcls(List.of(binding)).all().get();
    }

    private void createToken(JsonNode ask, ObjectNode out) throws Exception {
        List<KafkaPrincipal> renewers = new ArrayList<>();
        ask.path("renewers").forEach(name -> renewers.add(new KafkaPrincipal("User", name.asText())));
        DelegationToken token = admin.createDelegationToken(
            new CreateDelegationTokenOptions().renewers(renewers)).delegationToken().get();
        out.put("tokenId", token.tokenInfo().tokenId());
        out.put("hmac", token.hmacAsBase64String());
    }

    private KafkaProducer<byte[], byte[]> producer(JsonNode ask) {
        return producers.computeIfAbsent(text(ask, "producer"), name -> {
            Properties settings = new Properties();
            settings.putAll(common);
            settings.putAll(strings(ask.get("settings")));
            KafkaProducer<byte[], byte[]> made =
                new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
            if (settings.containsKey("transactional.id")) made.initTransactions();
            return made;
        });
    }

    /** Each record is sent on its own and flushed, or all together ("together": one batch if it fits). */
    private void produce(JsonNode ask, ObjectNode out) throws Exception {
        KafkaProducer<byte[], byte[]> producer = producer(ask);
        List<java.util.concurrent.Future<org.apache.kafka.clients.producer.RecordMetadata>> sent = new ArrayList<>();
        for (JsonNode record : ask.get("records")) {
            ProducerRecord<byte[], byte[]> each = new ProducerRecord<>(text(ask, "topic"),
                ask.path("partition").asInt(0), record.has("ts") ? record.get("ts").asLong() : null,
                bytes(record.get("k")), bytes(record.get("v")));
            for (JsonNode header : record.path("h")) each.headers().add(header.get(0).asText(), bytes(header.get(1)));
            sent.add(producer.send(each));
            if (!ask.path("together").asBoolean()) producer.flush();
        }
        producer.flush();
        ArrayNode offsets = out.putArray("offsets");
        for (var each : sent) offsets.add(each.get().offset());
    }

    private static byte[] bytes(JsonNode node) {
        return node == null || node.isNull() ? null : node.asText().getBytes(StandardCharsets.UTF_8);
    }

    private void consume(JsonNode ask, ObjectNode out) {
        KafkaConsumer<byte[], byte[]> consumer = consumers.computeIfAbsent(text(ask, "consumer"), name -> {
            Properties settings = new Properties();
            settings.putAll(common);
            settings.put("auto.offset.reset", "earliest");
            settings.put("enable.auto.commit", "false");
            settings.putAll(strings(ask.get("settings")));
            KafkaConsumer<byte[], byte[]> made =
                new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
            if (ask.has("re2j")) made.subscribe(new SubscriptionPattern(text(ask, "re2j")));
            else if (ask.has("regex")) made.subscribe(Pattern.compile(text(ask, "regex")));
            else {
                List<String> topics = new ArrayList<>();
                ask.get("topics").forEach(topic -> topics.add(topic.asText()));
                made.subscribe(topics);
            }
            return made;
        });
        long deadline = System.currentTimeMillis() + ask.path("timeout").asLong(8000);
        int seen = 0;
        while (seen < ask.path("max").asInt(1) && System.currentTimeMillis() < deadline) {
            seen += consumer.poll(Duration.ofMillis(200)).count();
        }
        if (ask.path("commit").asBoolean()) consumer.commitSync();
        out.put("seen", seen);
    }

    /** Acknowledges the records of each poll in turn with the types of "acks". */
    private void shareConsume(JsonNode ask, ObjectNode out) {
        KafkaShareConsumer<byte[], byte[]> consumer = shareConsumers.computeIfAbsent(text(ask, "consumer"), name -> {
            Properties settings = new Properties();
            settings.putAll(common);
            settings.put("share.acknowledgement.mode", "explicit");
            settings.putAll(strings(ask.get("settings")));
            KafkaShareConsumer<byte[], byte[]> made =
                new KafkaShareConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
            List<String> topics = new ArrayList<>();
            ask.get("topics").forEach(topic -> topics.add(topic.asText()));
            made.subscribe(topics);
            return made;
        });
        List<AcknowledgeType> acks = new ArrayList<>();
        ask.path("acks").forEach(each -> acks.add(AcknowledgeType.valueOf(each.asText())));
        long deadline = System.currentTimeMillis() + ask.path("timeout").asLong(8000);
        int seen = 0;
        while (seen < ask.path("max").asInt(1) && System.currentTimeMillis() < deadline) {
            for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(300))) {
                AcknowledgeType type = acks.isEmpty() ? AcknowledgeType.ACCEPT : acks.get(seen % acks.size());
                consumer.acknowledge(record, type);
                seen++;
            }
            consumer.commitSync();
        }
        out.put("seen", seen);
    }
}
