import java.time.Duration;
import java.util.List;
import java.util.Properties;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * How fast a consumer reads a topic, with the settings of kafka-consumer-perf-test but without a
 * group: prints bytes of keys and values, and nanoseconds.
 * Arguments: bootstrap servers, topic, records.
 */
public class ConsumeAssigned {
    public static void main(String[] args) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", args[0]);
        settings.put("receive.buffer.bytes", "2097152");
        settings.put("max.partition.fetch.bytes", "1048576");
        settings.put("check.crcs", "false");
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        long wanted = Long.parseLong(args[2]);
        try (KafkaConsumer<byte[], byte[]> consumer =
                new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            List<TopicPartition> partitions = consumer.partitionsFor(args[1]).stream()
                .map(info -> new TopicPartition(info.topic(), info.partition()))
                .collect(Collectors.toList());
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            long start = System.nanoTime();
            long records = 0;
            long bytes = 0;
            while (records < wanted) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(100))) {
                    records++;
                    bytes += record.value().length + (record.key() == null ? 0 : record.key().length);
                }
            }
            System.out.println(bytes + " " + (System.nanoTime() - start));
        }
    }
}
