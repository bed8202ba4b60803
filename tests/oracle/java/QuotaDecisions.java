import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.util.Optional;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.network.Session;
import org.apache.kafka.server.config.ClientQuotaManagerConfig;
import org.apache.kafka.server.quota.ClientQuotaEntity;
import org.apache.kafka.server.quota.ClientQuotaManager;
import org.apache.kafka.server.quota.QuotaType;

/**
 * What Kafka's quota manager says: "new" begins afresh, "quota" sets or removes one, "record" counts
 * at a time that is given, and answers for how long the client has to be silent.
 */
public class QuotaDecisions {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static ClientQuotaManager manager;

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
        switch (ask.get("op").asText()) {
            case "new":
                if (manager != null) manager.shutdown();
                manager = new ClientQuotaManager(
                    new ClientQuotaManagerConfig(ask.get("windows").asInt(), ask.get("seconds").asInt()),
                    new Metrics(), QuotaType.PRODUCE, Time.SYSTEM, "");
                break;
            case "quota":
                manager.updateQuota(
                    entity(ask, "user", ClientQuotaManager.DEFAULT_USER_ENTITY),
                    entity(ask, "client", ClientQuotaManager.DEFAULT_USER_CLIENT_ID),
                    ask.get("limit").isNull() ? Optional.empty()
                        : Optional.of(new Quota(ask.get("limit").asDouble(), true)));
                break;
            case "record":
                Session session = new Session(
                    new KafkaPrincipal("User", ask.get("user").asText()), InetAddress.getLoopbackAddress());
                String client = ask.get("client").asText();
                answer.put("silent", manager.maybeRecordAndGetThrottleTimeMs(
                    session, client, ask.get("value").asDouble(), ask.get("now").asLong()));
                answer.put("most", manager.maxValueInQuotaWindow(session, client));
                break;
            default:
                throw new IllegalArgumentException(ask.toString());
        }
    }

    /** Missing: not of such; null: the default. */
    private static Optional<ClientQuotaEntity.ConfigEntity> entity(
            JsonNode ask, String name, ClientQuotaEntity.ConfigEntity byDefault) {
        if (!ask.has(name)) return Optional.empty();
        if (ask.get(name).isNull()) return Optional.of(byDefault);
        String text = ask.get(name).asText();
        return Optional.of(name.equals("user")
            ? new ClientQuotaManager.UserEntity(text) : new ClientQuotaManager.ClientIdEntity(text));
    }
}
