import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * How fast a producer commits transactions: prints nanoseconds, without those of a fifth more that
 * come first. Arguments: bootstrap servers, topic, transactional id, transactions, records in each,
 * bytes of a record.
 */
public class TransactionalProduce {
    public static void main(String[] args) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", args[0]);
        settings.put("transactional.id", args[2]);
        int transactions = Integer.parseInt(args[3]);
        int records = Integer.parseInt(args[4]);
        byte[] value = new byte[Integer.parseInt(args[5])];
        try (KafkaProducer<byte[], byte[]> producer =
                new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            producer.initTransactions();
            run(producer, args[1], transactions / 5 + 1, records, value);
            long start = System.nanoTime();
            run(producer, args[1], transactions, records, value);
            System.out.println(System.nanoTime() - start);
        }
    }

    private static void run(KafkaProducer<byte[], byte[]> producer, String topic, int transactions,
            int records, byte[] value) {
        for (int turn = 0; turn < transactions; turn++) {
            producer.beginTransaction();
            for (int number = 0; number < records; number++)
                producer.send(new ProducerRecord<>(topic, null, value));
            producer.commitTransaction();
        }
    }
}
