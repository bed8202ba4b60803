import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AccessControlEntryFilter;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.internals.PluginMetricsImpl;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourcePatternFilter;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.utils.SecurityUtils;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;

/**
 * What Kafka's authorizer decides: a line has the ACLs and what is asked, the answer a truth for
 * each question, and for each filter the ids of what it matches.
 */
public class AclDecisions {
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
    }

    private static void decide(JsonNode ask, ObjectNode answer) throws Exception {
        StandardAuthorizer authorizer = new StandardAuthorizer();
        Map<String, Object> config = new HashMap<>();
        config.put("node.id", "1");
        config.put("super.users", ask.get("superUsers").asText());
        config.put("allow.everyone.if.no.acl.found", ask.get("everyone").asText());
        authorizer.configure(config);
        authorizer.withPluginMetrics(new PluginMetricsImpl(new Metrics(), Map.of()));
        Map<Uuid, StandardAcl> acls = new HashMap<>();
        Map<AclBinding, Integer> numbers = new HashMap<>();
        for (JsonNode each : ask.get("acls")) {
            StandardAcl acl = new StandardAcl(
                ResourceType.fromCode((byte) each.get(0).asInt()),
                each.get(1).asText(),
                PatternType.fromCode((byte) each.get(2).asInt()),
                each.get(3).asText(),
                each.get(4).asText(),
                AclOperation.fromCode((byte) each.get(5).asInt()),
                AclPermissionType.fromCode((byte) each.get(6).asInt()));
            numbers.putIfAbsent(acl.toBinding(), acls.size());
            acls.put(new Uuid(1, acls.size()), acl);
        }
        authorizer.loadSnapshot(acls);
        authorizer.completeInitialLoad();
        ArrayNode decided = answer.putArray("decided");
        for (JsonNode each : ask.get("asks")) {
            Context context = new Context(each.get(0).asText(), each.get(1).asText());
            AclOperation operation = AclOperation.fromCode((byte) each.get(2).asInt());
            ResourceType type = ResourceType.fromCode((byte) each.get(3).asInt());
            AuthorizationResult result;
            if (each.get(4).isNull()) {
                result = authorizer.authorizeByResourceType(context, operation, type);
            } else {
                ResourcePattern resource =
                    new ResourcePattern(type, each.get(4).asText(), PatternType.LITERAL);
                result = authorizer.authorize(
                    context, List.of(new Action(operation, resource, 1, false, false))).get(0);
            }
            decided.add(result == AuthorizationResult.ALLOWED);
        }
        ArrayNode found = answer.putArray("found");
        for (JsonNode each : ask.get("filters")) {
            AclBindingFilter filter = new AclBindingFilter(
                new ResourcePatternFilter(
                    ResourceType.fromCode((byte) each.get(0).asInt()),
                    each.get(1).isNull() ? null : each.get(1).asText(),
                    PatternType.fromCode((byte) each.get(2).asInt())),
                new AccessControlEntryFilter(
                    each.get(3).isNull() ? null : each.get(3).asText(),
                    each.get(4).isNull() ? null : each.get(4).asText(),
                    AclOperation.fromCode((byte) each.get(5).asInt()),
                    AclPermissionType.fromCode((byte) each.get(6).asInt())));
            TreeSet<Integer> matched = new TreeSet<>();
            authorizer.acls(filter).forEach(binding -> matched.add(numbers.get(binding)));
            ArrayNode list = found.addArray();
            matched.forEach(list::add);
        }
    }

    private record Context(String who, String host) implements AuthorizableRequestContext {
        @Override
        public KafkaPrincipal principal() {
            return SecurityUtils.parseKafkaPrincipal(who);
        }

        @Override
        public InetAddress clientAddress() {
            try {
                return InetAddress.getByName(host);
            } catch (Exception e) {
                throw new RuntimeException(e);
            }
        }

        @Override
        public String listenerName() {
            return "PLAINTEXT";
        }

        @Override
        public SecurityProtocol securityProtocol() {
            return SecurityProtocol.PLAINTEXT;
        }

        @Override
        public int requestType() {
            return 0;
        }

        @Override
        public int requestVersion() {
            return 0;
        }

        @Override
        public String clientId() {
            return "client";
        }

        @Override
        public int correlationId() {
            return 0;
        }
    }
}
