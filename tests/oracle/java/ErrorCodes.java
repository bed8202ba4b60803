import java.util.LinkedHashMap;
import java.util.Map;

import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.protocol.Errors;

/** Prints the error codes of the protocol as JSON: name to code, and whether clients try again. */
public class ErrorCodes {
    public static void main(String[] args) throws Exception {
        Map<String, Object[]> codes = new LinkedHashMap<>();
        for (Errors error : Errors.values()) {
            codes.put(error.name(), new Object[] {
                error.code(), error.exception() instanceof RetriableException});
        }
        System.out.println(new ObjectMapper().writeValueAsString(codes));
    }
}
