import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Prints every record that a consumer is shown, from the beginning to the end (the last stable
 * offset, for read_committed), one JSON object a line.
 * Arguments: bootstrap servers, isolation level, topics.
 */
public class Consumed {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", args[0]);
        settings.put("isolation.level", args[1]);
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        try (KafkaConsumer<byte[], byte[]> consumer =
                new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            List<TopicPartition> partitions = new ArrayList<>();
            for (int i = 2; i < args.length; i++) {
                for (PartitionInfo info : consumer.partitionsFor(args[i])) {
                    partitions.add(new TopicPartition(info.topic(), info.partition()));
                }
            }
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
            while (partitions.stream().anyMatch(each -> consumer.position(each) < ends.get(each))) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(500))) {
                    System.out.println(JSON.writeValueAsString(describe(record)));
                }
            }
        }
    }

    private static ObjectNode describe(ConsumerRecord<byte[], byte[]> record) {
        ObjectNode node = JSON.createObjectNode();
        node.put("topic", record.topic());
        node.put("partition", record.partition());
        node.put("offset", record.offset());
        node.put("timestamp", record.timestamp());
        node.put("timestampType", record.timestampType().toString());
        node.put("leaderEpoch", record.leaderEpoch().orElse(-1));
        node.put("key", base64(record.key()));
        node.put("value", base64(record.value()));
        ArrayNode headers = node.putArray("headers");
        for (Header header : record.headers()) {
            headers.addArray().add(header.key()).add(base64(header.value()));
        }
        return node;
    }

    private static String base64(byte[] bytes) {
        return bytes == null ? null : Base64.getEncoder().encodeToString(bytes);
    }
}
