import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import kafka.network.Processor$;
import kafka.network.RequestChannel;
import kafka.server.KafkaApis;
import kafka.server.KafkaConfig;
import kafka.server.QuotaFactory;
import org.apache.kafka.common.memory.MemoryPool;
import org.apache.kafka.common.message.ApiMessageType.ListenerType;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.network.ClientInformation;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.network.Send;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.metadata.KRaftMetadataCache;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.network.metrics.RequestChannelMetrics;
import org.apache.kafka.server.ApiVersionManager;
import org.apache.kafka.server.BrokerFeatures;
import org.apache.kafka.server.DefaultApiVersionManager;
import org.apache.kafka.server.common.KRaftVersion;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;
import scala.Function1;
import scala.Option;
import scala.runtime.BoxedUnit;

/**
 * What Kafka's own request handler answers from a metadata image, and nothing else of a broker
 * behind it: no partitions, no controller. A JSON request a line on stdin, an answer a line on
 * stdout.
 *
 * "image": records in hexadecimal, replayed from nothing. "ask": a frame without its length
 * ("hex") that came through "listener"; the answer is {"hex"} without its length, {"closed": why}
 * or {"silent": true}. Arguments of the program are properties of the broker.
 */
public class BrokerAnswers {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final HexFormat HEX = HexFormat.of();
    private static final MetadataRecordSerde SERDE = MetadataRecordSerde.INSTANCE;

    private final KRaftMetadataCache cache = new KRaftMetadataCache(1, () -> KRaftVersion.KRAFT_VERSION_1);
    private final RequestChannelMetrics channelMetrics = new RequestChannelMetrics(ListenerType.BROKER);
    private final ApiVersionManager versions = new DefaultApiVersionManager(ListenerType.BROKER,
        Optional::empty, BrokerFeatures.createDefault(false), cache, false, Optional.empty());
    private final KafkaApis apis;
    private final ObjectNode[] answering = new ObjectNode[1];

    public static void main(String[] args) throws Exception {
        BrokerAnswers program = new BrokerAnswers(args);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            ObjectNode answer = JSON.createObjectNode();
            try {
                program.answer(JSON.readTree(line), answer);
            } catch (Throwable e) {
                answer.removeAll().put("error", String.valueOf(e));
            }
            System.out.println(JSON.writeValueAsString(answer));
            System.out.flush();
        }
        System.exit(0);
    }

    private BrokerAnswers(String[] args) {
        Properties properties = new Properties();
        properties.put("process.roles", "broker");
        properties.put("node.id", "1");
        properties.put("listeners", "PLAINTEXT://127.0.0.1:9092");
        properties.put("controller.listener.names", "CONTROLLER");
        properties.put("controller.quorum.voters", "9@127.0.0.1:9093");
        properties.put("auto.create.topics.enable", "false");
        for (String each : args) properties.put(each.split("=", 2)[0], each.split("=", 2)[1]);
        KafkaConfig config = new KafkaConfig(properties);
        Metrics metrics = new Metrics();
        RequestChannel channel = new RequestChannel(10, Time.SYSTEM, channelMetrics) {
            @Override
            public void sendResponse(Request request, AbstractResponse response,
                    Option<Function1<Send, BoxedUnit>> onComplete) {
                ByteBuffer bytes = request.context().buildResponseEnvelopePayload(response);
                answering[0].put("hex", HEX.formatHex(bytes.array(), bytes.position(), bytes.limit()));
            }

            @Override
            public void closeConnection(Request request, Map<Errors, Integer> errors) {
                answering[0].put("closed", String.valueOf(errors));
            }

            @Override
            public void sendNoOpResponse(Request request) {
                answering[0].put("silent", true);
            }
        };
        apis = new KafkaApis(channel, null, null, null, null, null, null, 1, config, cache, cache, metrics,
            Option.empty(), QuotaFactory.instantiate(config, metrics, Time.SYSTEM, "", ""), null, null,
            new BrokerTopicStats(), "answering", Time.SYSTEM, null, versions, null, null);
    }

    private void answer(JsonNode job, ObjectNode out) throws Exception {
        if (job.get("op").asText().equals("image")) {
            MetadataDelta delta = new MetadataDelta.Builder().setImage(MetadataImage.EMPTY).build();
            long offset = -1;
            for (JsonNode each : job.get("records")) {
                byte[] record = HEX.parseHex(each.asText());
                delta.replay(SERDE.read(new ByteBufferAccessor(ByteBuffer.wrap(record)), record.length).message());
                offset++;
            }
            cache.setImage(delta.apply(new MetadataProvenance(offset, 1, 1000, true)));
            return;
        }
        answering[0] = out;
        ByteBuffer frame = ByteBuffer.wrap(HEX.parseHex(job.get("hex").asText()));
        RequestChannel.Request request;
        try {
            RequestHeader header = Processor$.MODULE$.parseRequestHeader(versions, frame);
            RequestContext context = new RequestContext(header, "here", InetAddress.getLoopbackAddress(),
                Optional.of(1), KafkaPrincipal.ANONYMOUS, new ListenerName(job.get("listener").asText()),
                SecurityProtocol.PLAINTEXT, ClientInformation.EMPTY, false, Optional.empty());
            request = new RequestChannel.Request(1, context, 0, MemoryPool.NONE, frame, channelMetrics, Option.empty());
        } catch (Exception e) {
            out.put("closed", String.valueOf(e.getCause() == null ? e : e.getCause()));
            return;
        }
        try {
            apis.handle(request, RequestLocal.noCaching());
        } catch (NullPointerException e) {
            // After the answer it looks after partitions, of which there are none.
            if (out.isEmpty()) throw e;
        }
    }
}
