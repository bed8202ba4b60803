import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Base64;
import java.util.HexFormat;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.*;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.utils.ByteBufferOutputStream;

/**
 * Writes record batches with Kafka's own builder and reads batches with Kafka's own classes: a JSON
 * request a line on stdin, a JSON answer a line on stdout. Ops: write, empty, read.
 */
public class BatchWriter {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final HexFormat HEX = HexFormat.of();

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            ObjectNode answer = JSON.createObjectNode();
            try {
                JsonNode ask = JSON.readTree(line);
                switch (ask.get("op").asText()) {
                    case "write": answer.put("hex", write(ask)); break;
                    case "empty": answer.put("hex", empty(ask)); break;
                    case "read": read(ask, answer); break;
                    default: throw new IllegalArgumentException("unknown op " + ask.get("op"));
                }
            } catch (Throwable e) {
                answer.removeAll().put("error", String.valueOf(e));
            }
            System.out.println(JSON.writeValueAsString(answer));
            System.out.flush();
        }
    }

    private static String write(JsonNode ask) {
        long deleteHorizon = ask.hasNonNull("deleteHorizonMs")
            ? ask.get("deleteHorizonMs").asLong() : RecordBatch.NO_TIMESTAMP;
        ByteBufferOutputStream out = new ByteBufferOutputStream(1 << 20);
        MemoryRecordsBuilder builder = new MemoryRecordsBuilder(out, (byte) ask.get("magic").asInt(),
            Compression.of(CompressionType.forName(ask.get("codec").asText())).build(),
            timestampType(ask),
            ask.get("baseOffset").asLong(), ask.path("logAppendTime").asLong(RecordBatch.NO_TIMESTAMP),
            ask.path("producerId").asLong(-1), (short) ask.path("producerEpoch").asInt(-1),
            ask.path("baseSequence").asInt(-1), ask.path("isTransactional").asBoolean(),
            ask.path("isControl").asBoolean(), ask.path("partitionLeaderEpoch").asInt(-1), 1 << 20, deleteHorizon);
        for (JsonNode record : ask.get("records")) {
            long offset = record.get("offset").asLong();
            long timestamp = record.get("timestamp").asLong();
            byte[] key = bytes(record.get("key"));
            byte[] value = bytes(record.get("value"));
            if (ask.path("isControl").asBoolean()) {
                builder.appendControlRecordWithOffset(offset, new SimpleRecord(timestamp, key, value));
                continue;
            }
            JsonNode given = record.path("headers");
            Header[] headers = new Header[given.size()];
            for (int i = 0; i < headers.length; i++)
                headers[i] = new RecordHeader(given.get(i).get(0).asText(), bytes(given.get(i).get(1)));
            builder.appendWithOffset(offset, timestamp, key, value, headers);
        }
        // What the cleaner does when the last records of a batch went away.
        if (ask.hasNonNull("lastOffset")) builder.overrideLastOffset(ask.get("lastOffset").asLong());
        return hex(builder.build().buffer());
    }

    /** A batch whose records the cleaner removed and whose header it kept. */
    private static String empty(JsonNode ask) {
        ByteBuffer buffer = ByteBuffer.allocate(DefaultRecordBatch.RECORD_BATCH_OVERHEAD);
        DefaultRecordBatch.writeEmptyHeader(buffer, (byte) 2, ask.path("producerId").asLong(-1),
            (short) ask.path("producerEpoch").asInt(-1), ask.path("baseSequence").asInt(-1),
            ask.get("baseOffset").asLong(), ask.get("lastOffset").asLong(),
            ask.path("partitionLeaderEpoch").asInt(-1), timestampType(ask), ask.get("maxTimestamp").asLong(),
            ask.path("isTransactional").asBoolean(), ask.path("isControl").asBoolean());
        buffer.flip();
        return hex(buffer);
    }

    private static void read(JsonNode ask, ObjectNode answer) {
        MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(HEX.parseHex(ask.get("hex").asText())));
        ArrayNode lines = answer.putArray("records");
        int used = 0;
        for (MutableRecordBatch batch : records.batches()) {
            used += batch.sizeInBytes();
            batch.ensureValid();
            for (Record record : batch) {
                ObjectNode line = lines.addObject();
                line.put("baseOffset", batch.baseOffset());
                line.put("lastOffset", batch.lastOffset());
                line.put("magic", batch.magic());
                line.put("codec", batch.compressionType().name);
                line.put("timestampType", batch.timestampType().name);
                line.put("maxTimestamp", batch.maxTimestamp());
                line.put("partitionLeaderEpoch", batch.partitionLeaderEpoch());
                line.put("producerId", batch.producerId());
                line.put("producerEpoch", batch.producerEpoch());
                line.put("baseSequence", batch.baseSequence());
                line.put("isTransactional", batch.isTransactional());
                line.put("isControl", batch.isControlBatch());
                line.put("offset", record.offset());
                line.put("timestamp", record.timestamp());
                line.put("key", base64(record.key()));
                line.put("value", base64(record.value()));
                ArrayNode headers = line.putArray("headers");
                for (Header header : record.headers())
                    headers.addArray().add(header.key()).add(
                        header.value() == null ? null : Base64.getEncoder().encodeToString(header.value()));
            }
        }
        answer.put("remaining", records.sizeInBytes() - used);
    }

    private static TimestampType timestampType(JsonNode ask) {
        return TimestampType.forName(ask.path("timestampType").asText("CreateTime"));
    }

    private static byte[] bytes(JsonNode node) {
        return node == null || node.isNull() ? null : Base64.getDecoder().decode(node.asText());
    }

    private static String base64(ByteBuffer buffer) {
        if (buffer == null) return null;
        byte[] copy = new byte[buffer.remaining()];
        buffer.duplicate().get(copy);
        return Base64.getEncoder().encodeToString(copy);
    }

    private static String hex(ByteBuffer buffer) {
        return HEX.formatHex(Arrays.copyOfRange(buffer.array(), buffer.arrayOffset() + buffer.position(),
            buffer.arrayOffset() + buffer.limit()));
    }
}
