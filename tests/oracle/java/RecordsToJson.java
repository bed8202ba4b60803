import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedOutputStream;
import java.io.File;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import org.apache.kafka.common.errors.CorruptRecordException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.record.internal.FileLogInputStream.FileChannelRecordBatch;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.utils.Utils;

/**
 * Prints every record of a segment or snapshot as Kafka's own FileRecords reads it, one JSON
 * object a line; a batch without records is one object without record fields, and so is one whose
 * checksum is wrong.
 * Arguments come in pairs: input file, output file.
 */
public class RecordsToJson {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < args.length; i += 2) {
            try (PrintStream out = new PrintStream(
                    new BufferedOutputStream(new java.io.FileOutputStream(args[i + 1])), false, StandardCharsets.UTF_8)) {
                print(new File(args[i]), out);
            }
        }
    }

    private static void print(File file, PrintStream out) throws Exception {
        try (FileRecords records = FileRecords.open(file, false)) {
            java.util.Iterator<FileChannelRecordBatch> batches = records.batches().iterator();
            while (more(batches, out)) {
                FileChannelRecordBatch batch = batches.next();
                boolean any = false;
                boolean old = batch.magic() < 2;
                if (batch.isValid()) {
                    for (Record record : batch) {
                        any = true;
                        ObjectNode line = describe(batch);
                        line.put("offset", record.offset());
                        line.put("timestamp", record.timestamp());
                        line.put("sequence", old ? -1 : record.sequence());
                        line.put("key", base64(record.key()));
                        line.put("value", base64(record.value()));
                        ArrayNode headers = line.putArray("headers");
                        for (Header header : record.headers()) {
                            headers.addArray().add(header.key()).add(
                                header.value() == null ? null : Base64.getEncoder().encodeToString(header.value()));
                        }
                        out.println(JSON.writeValueAsString(line));
                    }
                }
                if (!any) out.println(JSON.writeValueAsString(describe(batch)));
            }
        }
    }

    /** Where Kafka refuses to go on (a preallocated tail, a torn batch), its words are the last line. */
    private static boolean more(java.util.Iterator<FileChannelRecordBatch> batches, PrintStream out) throws Exception {
        try {
            return batches.hasNext();
        } catch (CorruptRecordException e) {
            String words = e.getMessage().replaceAll(" in file .*", "");
            out.println(JSON.writeValueAsString(JSON.createObjectNode().put("stopped", words)));
            return false;
        }
    }

    private static ObjectNode describe(FileChannelRecordBatch batch) {
        ObjectNode node = JSON.createObjectNode();
        boolean old = batch.magic() < 2;
        node.put("baseOffset", batch.baseOffset());
        node.put("lastOffset", batch.lastOffset());
        node.put("position", batch.position());
        node.put("sizeInBytes", batch.sizeInBytes());
        node.put("magic", batch.magic());
        node.put("isValid", batch.isValid());
        node.put("codec", batch.compressionType().name);
        node.put("timestampType", batch.timestampType().name);
        node.put("maxTimestamp", batch.maxTimestamp());
        node.put("partitionLeaderEpoch", batch.partitionLeaderEpoch());
        node.put("producerId", batch.producerId());
        node.put("producerEpoch", batch.producerEpoch());
        node.put("baseSequence", batch.baseSequence());
        node.put("lastSequence", batch.lastSequence());
        node.put("isTransactional", batch.isTransactional());
        node.put("isControl", batch.isControlBatch());
        if (!old) node.put("crc", batch.checksum());
        if (!old) node.put("count", batch.countOrNull());
        if (!old && batch.deleteHorizonMs().isPresent()) node.put("deleteHorizonMs", batch.deleteHorizonMs().getAsLong());
        else node.putNull("deleteHorizonMs");
        return node;
    }

    private static String base64(java.nio.ByteBuffer buffer) {
        return buffer == null ? null : Base64.getEncoder().encodeToString(Utils.toNullableArray(buffer.duplicate()));
    }
}
