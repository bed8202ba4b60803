import java.io.File;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.MetadataRecordType;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/**
 * How long Kafka's own classes take to make an image of a metadata file, and to change it.
 * Arguments: file, how many records go into one publication (0: all), whether changes are timed.
 * Prints `ready` when the image is made, and one line of JSON.
 */
public class ImageTimes {
    private static final MetadataProvenance HERE = new MetadataProvenance(1, 1, 1, true);

    public static void main(String[] args) throws Exception {
        int together = Integer.parseInt(args[1]);
        long start = System.nanoTime();
        MetadataImage image = MetadataImage.EMPTY;
        MetadataDelta delta = new MetadataDelta.Builder().setImage(image).build();
        long rows = 0;
        long refused = 0;
        try (FileRecords records = FileRecords.open(new File(args[0]), false)) {
            for (RecordBatch batch : records.batches()) {
                batch.ensureValid();
                if (batch.isControlBatch()) continue;
                for (Record record : batch) {
                    rows++;
                    ApiMessageAndVersion message =
                        MetadataRecordSerde.INSTANCE.read(new ByteBufferAccessor(record.value()), record.valueSize());
                    MetadataRecordType type = MetadataRecordType.fromId(message.message().apiKey());
                    if (type == MetadataRecordType.BEGIN_TRANSACTION_RECORD || type == MetadataRecordType.END_TRANSACTION_RECORD) continue;
                    try {
                        delta.replay(message.message());
                    } catch (RuntimeException e) {
                        refused++;
                    }
                }
                if (together > 0 && rows % together < batch.countOrNull()) {
                    image = delta.apply(HERE);
                    delta = new MetadataDelta.Builder().setImage(image).build();
                }
            }
        }
        image = delta.apply(HERE);
        double seconds = (System.nanoTime() - start) / 1e9;
        System.out.println("ready");
        System.out.flush();
        String changes = Boolean.parseBoolean(args[2]) ? changes(image) : "";
        delta = null;
        System.gc();
        long heap = Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory();
        System.out.printf("{\"seconds\": %f, \"rows\": %d, \"refused\": %d, \"resident\": %d%s, \"topics\": %d}%n",
            seconds, rows, refused, heap, changes, image.topics().topicsById().size());
    }

    private static String changes(MetadataImage image) {
        Random random = new Random(1);
        List<Uuid> ids = new ArrayList<>(image.topics().topicsById().keySet());
        double any = one(image, ids, random);
        double few = one(image, ids.subList(0, Math.min(100, ids.size())), random);
        List<PartitionChangeRecord> moves = new ArrayList<>();
        for (int i = 0; i < 30000; i++) moves.add(move(image, ids, random));
        double[] many = new double[5];
        for (int i = 0; i < many.length; i++) {
            long start = System.nanoTime();
            MetadataDelta delta = new MetadataDelta.Builder().setImage(image).build();
            for (PartitionChangeRecord move : moves) delta.replay(move);
            delta.apply(HERE);
            many[i] = (System.nanoTime() - start) / 1e6;
        }
        double first = many[0];
        Arrays.sort(many);
        return String.format(", \"one_us\": %f, \"again_us\": %f, \"moves_ms\": %f, \"first_moves_ms\": %f",
            any, few, many[0], first);
    }

    /** One change at a time in some of the topics: the median of the best round, in microseconds. */
    private static double one(MetadataImage image, List<Uuid> ids, Random random) {
        double[] one = new double[1000];
        double best = Double.MAX_VALUE;
        MetadataImage now = image;
        for (int round = 0; round < 40; round++) {
            List<PartitionChangeRecord> moves = new ArrayList<>();
            for (int i = 0; i < one.length; i++) moves.add(move(image, ids, random));
            for (int i = 0; i < one.length; i++) {
                long start = System.nanoTime();
                MetadataDelta delta = new MetadataDelta.Builder().setImage(now).build();
                delta.replay(moves.get(i));
                now = delta.apply(HERE);
                one[i] = (System.nanoTime() - start) / 1e3;
            }
            Arrays.sort(one);
            best = Math.min(best, one[one.length / 2]);
        }
        return best;
    }

    private static PartitionChangeRecord move(MetadataImage image, List<Uuid> ids, Random random) {
        Uuid topic = ids.get(random.nextInt(ids.size()));
        int partitions = image.topics().getTopic(topic).partitions().size();
        return new PartitionChangeRecord().setTopicId(topic)
            .setPartitionId(random.nextInt(partitions)).setLeader(7).setIsr(List.of(7, 8));
    }
}
