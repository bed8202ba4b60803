import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.File;
import java.io.InputStreamReader;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.CorruptRecordException;
import org.apache.kafka.common.metadata.MetadataJsonConverters;
import org.apache.kafka.common.metadata.MetadataRecordType;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.record.internal.FileLogInputStream.FileChannelRecordBatch;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.image.LocalReplicaChanges;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.image.writer.ImageWriterOptions;
import org.apache.kafka.image.writer.RecordListWriter;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.MetadataVersion;

/**
 * The images that Kafka's own MetadataDelta and MetadataImage make of metadata logs. A job a line
 * on stdin, an answer a line on stdout, and JSON lines in the job's "out" file.
 *
 * A job has "snapshot" (a file to start from) and "logs" (files), or "batches" (lists of records
 * as {"type", "version", "data"}). There is one publication per batch; records in a transaction
 * are published at its end, and dropped when it is aborted, as the active controller does.
 *
 * With "each", every batch gives a line {"offset", "epoch", "time", "faults", "local", "image"}:
 * the image as snapshot records in its own metadata.version (30 while it has none), and for each
 * of "brokers" the local changes. Otherwise only the last does. Then, for each of "levels", a
 * line {"level", "elr", "lost", "image"} or {"level", "elr", "error"}.
 */
public class ImageJson {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final MetadataRecordSerde SERDE = MetadataRecordSerde.INSTANCE;

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            ObjectNode answer = JSON.createObjectNode();
            JsonNode job = JSON.readTree(line);
            try (BufferedWriter out = Files.newBufferedWriter(Path.of(job.get("out").asText()))) {
                new ImageJson(job, out).run();
                answer.put("done", true);
            } catch (Throwable e) {
                answer.put("error", String.valueOf(e));
            }
            System.out.println(JSON.writeValueAsString(answer));
            System.out.flush();
        }
    }

    private final JsonNode job;
    private final Writer out;
    private final boolean each;
    private MetadataImage image = MetadataImage.EMPTY;
    private MetadataDelta delta = new MetadataDelta.Builder().build();
    /** The deltas published since the last line. */
    private final List<MetadataDelta> published = new ArrayList<>();
    private boolean inTransaction = false;
    private long offset = -1;
    private int epoch = -1;
    private long time = -1;
    private ArrayNode faults = JSON.createArrayNode();

    private ImageJson(JsonNode job, Writer out) {
        this.job = job;
        this.out = out;
        this.each = job.path("each").asBoolean();
    }

    private void run() throws Exception {
        long from = 0;
        if (job.hasNonNull("snapshot")) from = loadSnapshot(new File(job.get("snapshot").asText()));
        for (JsonNode log : job.path("logs")) loadLog(new File(log.asText()), from);
        for (JsonNode batch : job.path("batches")) {
            time = 1000 + offset + 1;
            epoch = 1;
            for (JsonNode record : batch) {
                offset++;
                replay(fromJson(record));
            }
            boundary();
        }
        if (!each) line();
        for (JsonNode level : job.path("levels")) {
            for (boolean elr : new boolean[] {false, true}) writeFor((short) level.asInt(), elr);
        }
    }

    private long loadSnapshot(File file) throws Exception {
        String[] name = file.getName().split("[-.]");
        offset = Long.parseLong(name[0]) - 1;
        epoch = Integer.parseInt(name[1]);
        try (FileRecords records = FileRecords.open(file, false)) {
            for (FileChannelRecordBatch batch : records.batches()) {
                if (batch.isControlBatch()) continue;
                time = batch.maxTimestamp();
                for (Record record : batch) replay(decode(record));
            }
        }
        delta.finishSnapshot();
        publish();
        boundary();
        return offset + 1;
    }

    private void loadLog(File file, long from) throws Exception {
        try (FileRecords records = FileRecords.open(file, false)) {
            java.util.Iterator<FileChannelRecordBatch> batches = records.batches().iterator();
            while (true) {
                try {
                    if (!batches.hasNext()) return;
                } catch (CorruptRecordException e) {
                    return; // a preallocated tail
                }
                FileChannelRecordBatch batch = batches.next();
                if (batch.baseOffset() < from) continue;
                epoch = batch.partitionLeaderEpoch();
                time = batch.maxTimestamp();
                if (!batch.isControlBatch()) {
                    for (Record record : batch) {
                        offset = record.offset();
                        replay(decode(record));
                    }
                }
                offset = batch.lastOffset();
                boundary();
            }
        }
    }

    private static ApiMessageAndVersion decode(Record record) {
        return SERDE.read(new ByteBufferAccessor(record.value()), record.valueSize());
    }

    private static ApiMessageAndVersion fromJson(JsonNode node) {
        short key = MetadataRecordType.valueOf(node.get("type").asText()).id();
        short version = (short) node.get("version").asInt();
        return new ApiMessageAndVersion(MetadataJsonConverters.readJson(node.get("data"), key, version), version);
    }

    private void replay(ApiMessageAndVersion record) {
        try {
            switch (MetadataRecordType.fromId(record.message().apiKey())) {
                case BEGIN_TRANSACTION_RECORD:
                    if (inTransaction) throw new RuntimeException("Encountered BeginTransactionRecord while already in a transaction");
                    publish();
                    inTransaction = true;
                    break;
                case END_TRANSACTION_RECORD:
                    if (!inTransaction) throw new RuntimeException("Encountered EndTransactionRecord without having seen a BeginTransactionRecord");
                    inTransaction = false;
                    break;
                case ABORT_TRANSACTION_RECORD:
                    if (!inTransaction) throw new RuntimeException("Encountered AbortTransactionRecord without having seen a BeginTransactionRecord");
                    inTransaction = false;
                    reset();
                    break;
                default:
                    delta.replay(record.message());
            }
        } catch (RuntimeException e) {
            faults.addObject().put("offset", offset).put("error", String.valueOf(e));
        }
    }

    private void reset() {
        delta = new MetadataDelta.Builder().setImage(image).build();
    }

    private void publish() {
        try {
            image = delta.apply(new MetadataProvenance(offset, epoch, time, true));
            published.add(delta);
        } catch (RuntimeException e) {
            faults.addObject().put("offset", offset).put("apply", String.valueOf(e));
        }
        reset();
    }

    private void boundary() throws Exception {
        if (!inTransaction) publish();
        if (each) line();
    }

    private void line() throws Exception {
        ObjectNode node = JSON.createObjectNode();
        node.put("offset", offset).put("epoch", epoch).put("time", time);
        node.set("faults", faults);
        faults = JSON.createArrayNode();
        ObjectNode local = node.putObject("local");
        // Only when one delta leads from the line before to this one.
        if (published.size() == 1 && published.get(0).topicsDelta() != null) {
            for (JsonNode broker : job.path("brokers")) {
                local.set(broker.asText(), local(published.get(0).topicsDelta().localChanges(broker.asInt())));
            }
        }
        published.clear();
        MetadataVersion version = image.features().metadataVersion().orElse(MetadataVersion.IBP_4_3_IV0);
        ImageWriterOptions options = new ImageWriterOptions.Builder(version)
            .setEligibleLeaderReplicasEnabled(image.features().isElrEnabled()).setLossHandler(loss -> { }).build();
        node.set("image", records(options));
        print(node);
    }

    private void writeFor(short level, boolean elr) throws Exception {
        ObjectNode node = JSON.createObjectNode().put("level", level).put("elr", elr);
        ArrayNode lost = node.putArray("lost");
        ImageWriterOptions options = new ImageWriterOptions.Builder(MetadataVersion.fromFeatureLevel(level))
            .setEligibleLeaderReplicasEnabled(elr).setLossHandler(loss -> lost.add(loss.getMessage())).build();
        try {
            node.set("image", records(options));
        } catch (RuntimeException e) {
            node.put("error", String.valueOf(e));
        }
        print(node);
    }

    private ArrayNode records(ImageWriterOptions options) {
        RecordListWriter writer = new RecordListWriter();
        image.write(writer, options);
        ArrayNode array = JSON.createArrayNode();
        for (ApiMessageAndVersion record : writer.records()) {
            ObjectNode node = array.addObject();
            node.put("type", MetadataRecordType.fromId(record.message().apiKey()).name());
            node.put("version", record.version());
            node.set("data", MetadataJsonConverters.writeJson(record.message(), record.version()));
        }
        return array;
    }

    private static ObjectNode local(LocalReplicaChanges changes) {
        ObjectNode node = JSON.createObjectNode();
        ArrayNode deletes = node.putArray("deletes");
        for (TopicPartition each : changes.deletes()) deletes.add(each.toString());
        infos(node.putObject("electedLeaders"), changes.electedLeaders());
        infos(node.putObject("leaders"), changes.leaders());
        infos(node.putObject("followers"), changes.followers());
        ObjectNode ids = node.putObject("topicIds");
        for (Map.Entry<String, Uuid> each : changes.topicIds().entrySet()) ids.put(each.getKey(), each.getValue().toString());
        ObjectNode directories = node.putObject("directoryIds");
        for (Map.Entry<TopicIdPartition, Uuid> each : changes.directoryIds().entrySet()) {
            directories.put(each.getKey().topicPartition().toString(), each.getValue().toString());
        }
        return node;
    }

    private static void infos(ObjectNode node, Map<TopicPartition, LocalReplicaChanges.PartitionInfo> infos) {
        infos.forEach((where, info) -> node.putObject(where.toString())
            .put("topicId", info.topicId().toString())
            .put("leaderEpoch", info.partition().leaderEpoch)
            .put("partitionEpoch", info.partition().partitionEpoch));
    }

    private void print(ObjectNode node) throws Exception {
        out.write(JSON.writeValueAsString(node));
        out.write('\n');
    }
}
