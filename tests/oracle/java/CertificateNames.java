import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import org.apache.kafka.common.security.ssl.SslPrincipalMapper;

/** Who Kafka takes the owner of a certificate for, by its rules of mapping. */
public class CertificateNames {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            ObjectNode answer = JSON.createObjectNode();
            try {
                JsonNode ask = JSON.readTree(line);
                X509Certificate found = (X509Certificate) CertificateFactory.getInstance("X.509")
                    .generateCertificate(new ByteArrayInputStream(
                        ask.get("pem").asText().getBytes(StandardCharsets.UTF_8)));
                answer.put("name", SslPrincipalMapper.fromRules(ask.get("rules").asText())
                    .getName(found.getSubjectX500Principal().getName()));
            } catch (Exception e) {
                answer.removeAll().put("error", String.valueOf(e.getMessage()));
            }
            System.out.println(JSON.writeValueAsString(answer));
            System.out.flush();
        }
    }
}
