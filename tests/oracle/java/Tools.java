import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs Kafka's command line tools one after another in this process, which is much quicker than a
 * process for each: a JSON request a line on stdin with `class` and `args`, a JSON answer a line on
 * stdout with what the tool said (`out`, `err`) and its exit code (`code`).
 */
public class Tools {
    private static final ObjectMapper JSON = new ObjectMapper();

    private static final ByteArrayOutputStream OUT = new ByteArrayOutputStream();
    private static final ByteArrayOutputStream ERR = new ByteArrayOutputStream();
    /** Once a tool has ended: what it goes on to do, as it does not know, is not looked at. */
    private static ObjectNode said;

    public static void main(String[] args) throws Exception {
        PrintStream answers = System.out;
        // One stream for all tools: some keep what System.out was when they were loaded.
        System.setOut(new PrintStream(OUT, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(ERR, true, StandardCharsets.UTF_8));
        Exit.setExitProcedure((code, message) -> {
            end(code);
            throw new IllegalStateException("ended");
        });
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            OUT.reset();
            ERR.reset();
            said = null;
            end(call(JSON.readTree(line)));
            answers.println(JSON.writeValueAsString(said));
            answers.flush();
        }
    }

    private static void end(int code) {
        if (said == null) {
            said = JSON.createObjectNode().put("code", code)
                .put("out", OUT.toString(StandardCharsets.UTF_8))
                .put("err", ERR.toString(StandardCharsets.UTF_8));
        }
    }

    private static int call(JsonNode ask) {
        String[] args = new String[ask.get("args").size()];
        for (int i = 0; i < args.length; i++) {
            args[i] = ask.get("args").get(i).asText();
        }
        try {
            Class.forName(ask.get("class").asText()).getMethod("main", String[].class).invoke(null, (Object) args);
            return 0;
        } catch (InvocationTargetException e) {
            e.getCause().printStackTrace();
            return 1;
        } catch (ReflectiveOperationException e) {
            throw new IllegalArgumentException(e);
        }
    }
}
