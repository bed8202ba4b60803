import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import javax.security.auth.login.AppConfigurationEntry;
import javax.security.auth.login.Configuration;

/** What Kafka reads from the text of a JAAS configuration: its entries, or what is wrong. */
public class JaasEntries {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        Constructor<?> parser = Class.forName("org.apache.kafka.common.security.JaasConfig")
            .getDeclaredConstructor(String.class, String.class);
        parser.setAccessible(true);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            ObjectNode answer = JSON.createObjectNode();
            try {
                String text = JSON.readTree(line).get("text").asText();
                Configuration read = (Configuration) parser.newInstance("x", text);
                ArrayNode entries = answer.putArray("entries");
                for (AppConfigurationEntry each : read.getAppConfigurationEntry("x")) {
                    ObjectNode entry = entries.addObject();
                    entry.put("module", each.getLoginModuleName());
                    ObjectNode options = entry.putObject("options");
                    each.getOptions().forEach((key, value) -> options.put(key, (String) value));
                }
            } catch (InvocationTargetException e) {
                answer.removeAll().put("error", e.getCause().getMessage());
            }
            System.out.println(JSON.writeValueAsString(answer));
            System.out.flush();
        }
    }
}
