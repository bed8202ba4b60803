import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import kafka.tools.StorageTool;

/**
 * Kafka's storage tool many times in one JVM: a JSON request with `args` a line on stdin, an answer
 * a line on stdout with the exit code and what it printed, or the `refused` exception and its class.
 */
public class StorageFormat {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] ignored) throws Exception {
        PrintStream answers = System.out;
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            ObjectNode answer = JSON.createObjectNode();
            ByteArrayOutputStream printed = new ByteArrayOutputStream();
            // The argument parser prints its complaints and its help itself.
            PrintStream out = new PrintStream(printed, true, StandardCharsets.UTF_8);
            System.setErr(out);
            System.setOut(out);
            try {
                List<String> args = new ArrayList<>();
                for (JsonNode arg : JSON.readTree(line).get("args")) args.add(arg.asText());
                answer.put("code", StorageTool.execute(args.toArray(new String[0]), out));
            } catch (Throwable e) {
                answer.put("code", 1);
                answer.put("refused", String.valueOf(e.getMessage()));
                answer.put("kind", e.getClass().getSimpleName());
            }
            answer.put("printed", printed.toString(StandardCharsets.UTF_8));
            answers.println(JSON.writeValueAsString(answer));
            answers.flush();
        }
    }
}
