import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Supplier;
import org.apache.kafka.common.metadata.MetadataJsonConverters;
import org.apache.kafka.common.metadata.MetadataRecordType;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.Records;
import org.apache.kafka.common.record.internal.UnalignedRecords;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.image.loader.LoaderManifest;
import org.apache.kafka.image.loader.LogDeltaManifest;
import org.apache.kafka.image.loader.MetadataLoader;
import org.apache.kafka.image.loader.metrics.MetadataLoaderMetrics;
import org.apache.kafka.image.publisher.MetadataPublisher;
import org.apache.kafka.image.publisher.SnapshotGenerator;
import org.apache.kafka.image.writer.ImageWriterOptions;
import org.apache.kafka.image.writer.RecordListWriter;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.queue.EventQueue;
import org.apache.kafka.raft.LeaderAndEpoch;
import org.apache.kafka.raft.internals.RecordsBatchReader;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.server.common.OffsetAndEpoch;
import org.apache.kafka.server.fault.FaultHandler;
import org.apache.kafka.snapshot.RawSnapshotReader;
import org.apache.kafka.snapshot.RecordsSnapshotReader;
import org.apache.kafka.snapshot.SnapshotReader;
import org.apache.kafka.snapshot.Snapshots;

/**
 * What Kafka's own MetadataLoader and SnapshotGenerator do in a story: a story a line on stdin, all
 * that was told, in order, a line on stdout.
 *
 * A story has "steps", and "generator" {"maxBytes", "maxIntervalMs"} for the SnapshotGenerator. A
 * step has "do" and: commit "data" (batches as they are in a log, base64); snapshot "data",
 * "offset", "epoch"; leader "id", "epoch"; install "names"; remove "name"; fails "name", "in"
 * (update, controller, close or nothing); high; tick "ms", of a clock that stands still otherwise;
 * emitter "how" (ready, held, fails); disable "reason"; shutdown, of the generator; close, of
 * the loader; together "steps", which are all in the queue before the first is handled. Any step
 * may have "high", the high watermark from there on, or null while it is unknown.
 *
 * Publishers are made when they are first named; behind a "#" may be what tells two of one name
 * apart. After each step everything is handled. At the end the loader is closed.
 *
 * What is told is {"to", "update", ...}, {"to", "leader"}, {"to", "closed"}, {"fault"}, {"refused"},
 * {"emit"} with the snapshot's name, and after every step {"after", ...} with the metrics.
 */
public class LoaderStories {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final LogContext CONTEXT = new LogContext();
    private static final int MAX_BATCH = 8 * 1024 * 1024;

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            ObjectNode answer = JSON.createObjectNode();
            try {
                answer.set("told", new LoaderStories(JSON.readTree(line)).run());
            } catch (Throwable e) {
                answer.put("error", String.valueOf(e));
            }
            System.out.println(JSON.writeValueAsString(answer));
            System.out.flush();
        }
    }

    private final JsonNode story;
    private final ArrayNode told = JSON.createArrayNode();
    /** What the generator's thread told in this step: it comes last, as that thread takes its time. */
    private final List<ObjectNode> aside = new ArrayList<>();
    private final Map<String, Recorder> recorders = new HashMap<>();
    private final List<CompletableFuture<Void>> asked = new ArrayList<>();
    private final List<Integer> sizes = new ArrayList<>();
    private final List<FileRecords> files = new ArrayList<>();
    private final StillTime time = new StillTime();
    private final AtomicReference<String> disabled = new AtomicReference<>();
    private volatile OptionalLong highWatermark = OptionalLong.empty();
    private volatile String emitter = "ready";
    private volatile CountDownLatch held = new CountDownLatch(0);
    private volatile boolean emitting = false;
    private boolean closing = false;
    private final MetadataLoaderMetrics metrics = new MetadataLoaderMetrics(
        Optional.empty(), ns -> { }, sizes::add, new AtomicReference<>(MetadataProvenance.EMPTY));
    private final MetadataLoader loader;
    private final SnapshotGenerator generator;

    private LoaderStories(JsonNode story) {
        this.story = story;
        loader = new MetadataLoader.Builder().setTime(time).setMetrics(metrics)
            .setFaultHandler(faults(this::tell)).setHighWaterMarkAccessor(() -> highWatermark).build();
        JsonNode limits = story.path("generator");
        generator = new SnapshotGenerator.Builder(this::emit).setTime(time).setDisabledReason(disabled)
            .setFaultHandler(faults(this::tellAside))
            .setMaxBytesSinceLastSnapshot(limits.path("maxBytes").asLong(Long.MAX_VALUE))
            .setMaxTimeSinceLastSnapshotNs(TimeUnit.MILLISECONDS.toNanos(limits.path("maxIntervalMs").asLong()))
            .build();
    }

    private ArrayNode run() throws Exception {
        int count = 0;
        for (JsonNode step : story.get("steps")) {
            take(step);
            settle();
            after(count++);
        }
        held.countDown();
        settle();
        loader.close();
        generator.close();
        for (FileRecords each : files) each.closeHandlers();
        return told;
    }

    private void take(JsonNode step) throws Exception {
        String name = step.path("name").asText();
        if (step.has("high")) {
            JsonNode high = step.get("high");
            highWatermark = high.isNull() ? OptionalLong.empty() : OptionalLong.of(high.asLong());
        }
        switch (step.get("do").asText()) {
            case "commit":
                loader.handleCommit(RecordsBatchReader.of(0, records(step), MetadataRecordSerde.INSTANCE,
                    BufferSupplier.NO_CACHING, MAX_BATCH, reader -> { }, true, CONTEXT));
                break;
            case "snapshot":
                loadSnapshot(new OffsetAndEpoch(step.get("offset").asLong(), step.get("epoch").asInt()), records(step));
                break;
            case "leader":
                OptionalInt id = step.hasNonNull("id") ? OptionalInt.of(step.get("id").asInt()) : OptionalInt.empty();
                loader.handleLeaderChange(new LeaderAndEpoch(id, step.get("epoch").asInt()));
                break;
            case "install":
                List<MetadataPublisher> publishers = new ArrayList<>();
                for (JsonNode each : step.get("names")) publishers.add(publisher(each.asText()));
                asked.add(loader.installPublishers(publishers));
                break;
            case "remove":
                asked.add(loader.removeAndClosePublisher(publisher(name)));
                break;
            case "fails":
                publisher(name);
                recorders.get(name).failing = step.path("in").asText();
                break;
            case "high":
                break;
            case "tick":
                time.now.addAndGet(TimeUnit.MILLISECONDS.toNanos(step.get("ms").asLong()));
                break;
            case "emitter":
                emitter = step.get("how").asText();
                held.countDown();
                if (emitter.equals("held")) held = new CountDownLatch(1);
                break;
            case "disable":
                disabled.compareAndSet(null, step.get("reason").asText());
                break;
            case "shutdown":
                generator.beginShutdown();
                break;
            case "close":
                closing = true;
                loader.beginShutdown();
                break;
            case "together":
                CountDownLatch all = new CountDownLatch(1);
                queue(loader).append(all::await);
                for (JsonNode each : step.get("steps")) take(each);
                all.countDown();
                break;
            default:
                throw new IllegalArgumentException("no such step: " + step);
        }
    }

    /** What a step brings, in a file as on a real node. */
    private FileRecords records(JsonNode step) throws IOException {
        Path path = Files.createTempFile("story", null);
        Files.write(path, Base64.getDecoder().decode(step.get("data").asText()));
        FileRecords records = FileRecords.open(path.toFile(), false);
        Files.delete(path);
        files.add(records);
        return records;
    }

    /** As KafkaRaftClient hands on a snapshot. */
    private void loadSnapshot(OffsetAndEpoch id, FileRecords records) {
        RawSnapshotReader raw = new RawSnapshotReader() {
            public OffsetAndEpoch snapshotId() { return id; }
            public long sizeInBytes() { return records.sizeInBytes(); }
            public UnalignedRecords slice(long position, int size) { throw new UnsupportedOperationException(); }
            public Records records() { return records; }
        };
        SnapshotReader<ApiMessageAndVersion> reader = RecordsSnapshotReader.of(
            raw, MetadataRecordSerde.INSTANCE, BufferSupplier.NO_CACHING, MAX_BATCH, true, CONTEXT);
        if (id.equals(Snapshots.BOOTSTRAP_SNAPSHOT_ID)) {
            loader.handleLoadBootstrap(reader);
        } else {
            loader.handleLoadSnapshot(reader);
        }
    }

    private MetadataPublisher publisher(String key) {
        if (key.equals(generator.name())) return generator;
        return recorders.computeIfAbsent(key, Recorder::new);
    }

    /** Wait until nothing is left to do, on either thread. */
    private void settle() throws Exception {
        // Twice: an initialization that the first finds to be due.
        for (int i = 0; i < 2 && !closing; i++) barrier(queue(loader));
        if (closing) loader.close();
        for (CompletableFuture<Void> each : asked) {
            try {
                each.get(10, TimeUnit.SECONDS);
            } catch (ExecutionException e) {
                Throwable cause = e;
                while (cause.getCause() != null) cause = cause.getCause();
                tell(JSON.createObjectNode().put("refused", cause.getMessage()));
            }
        }
        asked.clear();
        if (emitter.equals("held")) {
            // A barrier would be in the way of the next.
            while (!queue(generator).isEmpty() && !emitting) Thread.onSpinWait();
        } else {
            barrier(queue(generator));
            // The barrier itself counts until its thread is back.
            while (!queue(generator).isEmpty()) Thread.onSpinWait();
        }
        synchronized (aside) {
            aside.forEach(this::tell);
            aside.clear();
        }
    }

    private static void barrier(EventQueue queue) throws Exception {
        CompletableFuture<Void> future = new CompletableFuture<>();
        queue.append(new EventQueue.Event() {
            @Override
            public void run() {
                future.complete(null);
            }

            @Override
            public void handleException(Throwable e) {
                future.complete(null); // it is closed
            }
        });
        future.get(10, TimeUnit.SECONDS);
    }

    private static EventQueue queue(Object owner) throws Exception {
        return (EventQueue) field(owner, "eventQueue");
    }

    private static Object field(Object owner, String name) throws Exception {
        Field field = owner.getClass().getDeclaredField(name);
        field.setAccessible(true);
        return field.get(owner);
    }

    private void after(int step) throws Exception {
        ObjectNode node = JSON.createObjectNode().put("after", step);
        node.put("applied", loader.lastAppliedOffset());
        node.put("snapshots", metrics.handleLoadSnapshotCount());
        node.put("version", metrics.currentMetadataVersion().featureLevel());
        node.put("controller", metrics.currentControllerId());
        node.putPOJO("levels", new TreeMap<>((Map<?, ?>) field(metrics, "finalizedFeatureLevels")));
        node.put("batches", sizes.size()).put("records", sizes.stream().mapToInt(size -> size).sum());
        tell(node);
    }

    private void emit(MetadataImage image) {
        tellAside(JSON.createObjectNode().put("emit", image.provenance().snapshotName()));
        emitting = true;
        try {
            held.await();
        } catch (InterruptedException e) {
            throw new RuntimeException(e);
        } finally {
            emitting = false;
        }
        if (emitter.equals("fails")) throw new RuntimeException("no space left");
    }

    private FaultHandler faults(java.util.function.Consumer<ObjectNode> teller) {
        return (message, cause) -> {
            teller.accept(JSON.createObjectNode().put("fault", message));
            return new RuntimeException(message, cause);
        };
    }

    private void tell(ObjectNode node) {
        synchronized (told) {
            told.add(node);
        }
    }

    private void tellAside(ObjectNode node) {
        synchronized (aside) {
            aside.add(node);
        }
    }

    private class Recorder implements MetadataPublisher {
        private final String key;
        private volatile String failing = "";

        Recorder(String key) {
            this.key = key;
        }

        @Override
        public String name() {
            return key.split("#")[0];
        }

        @Override
        public void onMetadataUpdate(MetadataDelta delta, MetadataImage image, LoaderManifest manifest) {
            ObjectNode node = JSON.createObjectNode().put("to", key).put("update", manifest.type().name());
            node.set("provenance", provenance(manifest.provenance()));
            node.set("ends", provenance(image.provenance()));
            node.put("begins", delta.image().offset());
            if (manifest instanceof LogDeltaManifest log) {
                node.put("batches", log.numBatches()).put("bytes", log.numBytes());
                node.set("leader", leader(log.leaderAndEpoch()));
            }
            node.set("parts", parts(delta));
            node.set("image", records(image));
            tell(node);
            failIf("update");
        }

        @Override
        public void onControllerChange(LeaderAndEpoch newLeader) {
            ObjectNode node = JSON.createObjectNode().put("to", key);
            node.set("leader", leader(newLeader));
            tell(node);
            failIf("controller");
        }

        @Override
        public void close() {
            tell(JSON.createObjectNode().put("to", key).put("closed", true));
            failIf("close");
        }

        private void failIf(String where) {
            if (failing.equals(where)) throw new RuntimeException("no room");
        }
    }

    private static ArrayNode provenance(MetadataProvenance it) {
        return JSON.createArrayNode().add(it.lastContainedOffset()).add(it.lastContainedEpoch())
            .add(it.lastContainedLogTimeMs()).add(it.isOffsetBatchAligned());
    }

    private static ArrayNode leader(LeaderAndEpoch it) {
        Integer id = it.leaderId().isPresent() ? it.leaderId().getAsInt() : null;
        return JSON.createArrayNode().add(id).add(it.epoch());
    }

    private static ArrayNode parts(MetadataDelta delta) {
        Map<String, Supplier<Object>> all = new TreeMap<>(Map.of(
            "features", delta::featuresDelta, "cluster", delta::clusterDelta, "topics", delta::topicsDelta,
            "configs", delta::configsDelta, "client_quotas", delta::clientQuotasDelta,
            "producer_ids", delta::producerIdsDelta, "acls", delta::aclsDelta, "scram", delta::scramDelta,
            "delegation_tokens", delta::delegationTokenDelta));
        ArrayNode found = JSON.createArrayNode();
        all.forEach((name, part) -> {
            if (part.get() != null) found.add(name);
        });
        return found;
    }

    private static ArrayNode records(MetadataImage image) {
        MetadataVersion version = image.features().metadataVersion().orElse(MetadataVersion.IBP_4_3_IV0);
        RecordListWriter writer = new RecordListWriter();
        image.write(writer, new ImageWriterOptions.Builder(version)
            .setEligibleLeaderReplicasEnabled(image.features().isElrEnabled()).setLossHandler(loss -> { }).build());
        ArrayNode array = JSON.createArrayNode();
        for (ApiMessageAndVersion record : writer.records()) {
            ObjectNode node = array.addObject();
            node.put("type", MetadataRecordType.fromId(record.message().apiKey()).name());
            node.put("version", record.version());
            node.set("data", MetadataJsonConverters.writeJson(record.message(), record.version()));
        }
        return array;
    }

    /** A clock that moves when it is told to, and by a nanosecond whenever it is read. */
    private static class StillTime implements Time {
        final AtomicLong now = new AtomicLong(1_000_000_000);

        @Override
        public long milliseconds() {
            return now.get() / 1_000_000;
        }

        @Override
        public long nanoseconds() {
            return now.incrementAndGet();
        }

        @Override
        public void sleep(long ms) {
            throw new UnsupportedOperationException();
        }

        @Override
        public void waitObject(Object on, Supplier<Boolean> condition, long deadlineMs) {
            throw new UnsupportedOperationException();
        }
    }
}
