import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Properties;
import kafka.server.KafkaConfig;
import org.apache.kafka.common.Endpoint;
import scala.jdk.javaapi.CollectionConverters;

/**
 * What a real broker makes of its properties: a JSON object of them a line on stdin; on stdout its
 * listeners and directories, or why it would not start.
 */
public class NodeConfig {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            ObjectNode answer = JSON.createObjectNode();
            try {
                answer(JSON.readTree(line), answer);
            } catch (Throwable e) {
                answer.removeAll().put("error", e.getMessage());
            }
            System.out.println(JSON.writeValueAsString(answer));
            System.out.flush();
        }
    }

    private static void answer(JsonNode ask, ObjectNode out) {
        Properties properties = new Properties();
        ask.fields().forEachRemaining(each -> properties.put(each.getKey(), each.getValue().asText()));
        KafkaConfig config = KafkaConfig.fromProps(properties);
        out.put("nodeId", config.nodeId());
        out.put("interBroker", config.interBrokerListenerName().value());
        out.put("metadataLogDir", config.metadataLogDir());
        ArrayNode directories = out.putArray("logDirs");
        ((List<String>) config.logDirs()).forEach(directories::add);
        put(out.putArray("listeners"), config.dataPlaneListeners());
        put(out.putArray("controllers"), config.controllerListeners());
        put(out.putArray("advertised"), config.effectiveAdvertisedBrokerListeners());
        put(out.putArray("advertisedControllers"), config.effectiveAdvertisedControllerListeners());
    }

    private static void put(ArrayNode out, scala.collection.Seq<Endpoint> endpoints) {
        for (Endpoint each : CollectionConverters.asJava(endpoints)) {
            String host = each.host() == null ? "" : each.host();
            out.add(each.listener() + " " + host + " " + each.port() + " " + each.securityProtocol());
        }
    }
}
