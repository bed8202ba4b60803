package org.apache.kafka.storage.internals.log;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.utils.Throttler;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * Kafka's own cleaner on directories of partitions. "clean" cleans one at a time that is given, in
 * Kafka's package to reach what its cleaner threads call; "choose" says which of several it would
 * clean first, and what of it; "open" only opens one, after a clean stop or any other, and closes it.
 */
public class LogCleaning {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            ObjectNode answer = JSON.createObjectNode();
            try {
                decide(JSON.readTree(line), answer);
            } catch (Throwable e) {
                answer.removeAll().put("error", String.valueOf(e));
            }
            System.out.println(JSON.writeValueAsString(answer));
            System.out.flush();
        }
        System.exit(0);
    }

    private static void decide(JsonNode ask, ObjectNode answer) throws Exception {
        long now = ask.get("now").asLong();
        Time clock = (Time) Proxy.newProxyInstance(
            Time.class.getClassLoader(), new Class<?>[] {Time.class},
            (proxy, method, given) -> switch (method.getName()) {
                case "milliseconds" -> now;
                case "nanoseconds" -> System.nanoTime();
                case "hiResClockMs" -> System.nanoTime() / 1_000_000;
                default -> null;
            });
        KafkaScheduler scheduler = new KafkaScheduler(1);
        scheduler.startup();
        List<UnifiedLog> logs = new ArrayList<>();
        try {
            for (JsonNode each : ask.get("logs")) {
                logs.add(open(each, clock, scheduler));
            }
            switch (ask.get("op").asText()) {
                case "clean" -> clean(ask, logs.get(0), clock, now, answer);
                case "choose" -> choose(logs, clock, answer);
                case "open" -> answer.put("end", logs.get(0).logEndOffset());
                default -> throw new IllegalArgumentException(ask.toString());
            }
        } finally {
            for (UnifiedLog log : logs) log.close();
            scheduler.shutdown();
        }
    }

    private static UnifiedLog open(JsonNode ask, Time clock, KafkaScheduler scheduler) throws Exception {
        Properties config = new Properties();
        for (Map.Entry<String, JsonNode> each : ask.get("config").properties()) {
            config.put(each.getKey(), each.getValue().asText());
        }
        UnifiedLog log = UnifiedLog.create(
            new File(ask.get("directory").asText()), new LogConfig(config), 0L,
            ask.path("recoveryPoint").asLong(Long.MAX_VALUE), scheduler,
            new BrokerTopicStats(), clock, 900_000,
            new ProducerStateManagerConfig(86_400_000, false), 600_000, new LogDirFailureChannel(1),
            ask.path("isClean").asBoolean(true), Optional.empty());
        log.updateHighWatermark(log.logEndOffset());
        return log;
    }

    private static void clean(JsonNode ask, UnifiedLog log, Time clock, long now, ObjectNode answer)
            throws Exception {
        Cleaner cleaner = new Cleaner(
            0, new SkimpyOffsetMap(ask.get("memory").asInt()), ask.path("buffer").asInt(262144), 1048588, 0.9,
            new Throttler(Double.MAX_VALUE, 300, "x", "bytes", clock), clock, partition -> { });
        Optional<Long> checkpoint = ask.get("checkpoint").isNull()
            ? Optional.empty() : Optional.of(ask.get("checkpoint").asLong());
        LogCleanerManager.OffsetsToClean offsets =
            LogCleanerManager.cleanableOffsets(log, checkpoint, now);
        LogToClean dirty = new LogToClean(
            log, offsets.firstDirtyOffset(), offsets.firstUncleanableDirtyOffset(), false);
        long began = System.nanoTime();
        Map.Entry<Long, CleanerStats> cleaned = cleaner.doClean(dirty, now);
        answer.put("seconds", (System.nanoTime() - began) / 1e9);
        tell(dirty, answer);
        answer.put("cleanedTo", cleaned.getKey());
        answer.put("bytesRead", cleaned.getValue().bytesRead());
        answer.put("bytesWritten", cleaned.getValue().bytesWritten());
        answer.put("recordsRead", cleaned.getValue().messagesRead());
        answer.put("recordsWritten", cleaned.getValue().messagesWritten());
        answer.put("invalid", cleaned.getValue().invalidMessagesRead());
    }

    private static void choose(List<UnifiedLog> logs, Time clock, ObjectNode answer) throws Exception {
        ConcurrentMap<TopicPartition, UnifiedLog> all = new ConcurrentHashMap<>();
        for (UnifiedLog log : logs) all.put(log.topicPartition(), log);
        LogCleanerManager manager = new LogCleanerManager(
            List.of(logs.get(0).parentDirFile()), all, new LogDirFailureChannel(1));
        PreCleanStats statistics = new PreCleanStats();
        Optional<LogToClean> found = manager.grabFilthiestCompactedLog(clock, statistics);
        answer.put("delay", statistics.maxCompactionDelayMs());
        if (found.isPresent()) {
            answer.put("partition", found.get().topicPartition().toString());
            tell(found.get(), answer);
        }
        manager.removeMetrics();
    }

    private static void tell(LogToClean dirty, ObjectNode answer) {
        answer.put("firstDirty", dirty.firstDirtyOffset());
        answer.put("end", dirty.firstUncleanableOffset());
        answer.put("cleanBytes", dirty.cleanBytes());
        answer.put("dirtyBytes", dirty.cleanableBytes());
    }
}
