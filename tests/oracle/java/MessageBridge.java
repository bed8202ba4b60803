import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/**
 * Encodes and decodes Kafka's generated messages by name: a JSON request a line on stdin, a JSON
 * answer a line on stdout. Ops: encode, decode (bare message bytes), encodeRecord, decodeRecord
 * (metadata records in the framing of the log), versions, apis.
 */
public class MessageBridge {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final HexFormat HEX = HexFormat.of();
    private static final String[] PACKAGES = {
        "org.apache.kafka.common.message.",
        "org.apache.kafka.common.metadata.",
        "org.apache.kafka.coordinator.group.generated.",
        "org.apache.kafka.coordinator.transaction.generated.",
        "org.apache.kafka.coordinator.share.generated.",
        "org.apache.kafka.raft.generated.",
        "org.apache.kafka.server.log.remote.metadata.storage.generated.",
    };
    private static final Map<String, Class<?>> CLASSES = new HashMap<>();

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            ObjectNode answer = JSON.createObjectNode();
            try {
                answer(JSON.readTree(line), answer);
            } catch (InvocationTargetException e) {
                answer.removeAll().put("error", String.valueOf(e.getCause()));
            } catch (Throwable e) {
                answer.removeAll().put("error", String.valueOf(e));
            }
            System.out.println(JSON.writeValueAsString(answer));
            System.out.flush();
        }
    }

    private static void answer(JsonNode ask, ObjectNode out) throws Exception {
        String op = ask.get("op").asText();
        String name = ask.path("name").asText();
        short version = (short) ask.path("version").asInt();
        switch (op) {
            case "encode": {
                Message message = fromJson(name, version, ask.get("json"));
                ObjectSerializationCache cache = new ObjectSerializationCache();
                ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, version));
                message.write(new ByteBufferAccessor(buffer), cache, version);
                out.put("hex", HEX.formatHex(buffer.array()));
                break;
            }
            case "decode": {
                Message message = (Message) find(name).getConstructor().newInstance();
                ByteBuffer buffer = ByteBuffer.wrap(HEX.parseHex(ask.get("hex").asText()));
                message.read(new ByteBufferAccessor(buffer), version);
                out.set("json", toJson(message, version));
                out.put("remaining", buffer.remaining());
                break;
            }
            case "encodeRecord": {
                Message message = fromJson(name, version, ask.get("json"));
                ApiMessageAndVersion record =
                    new ApiMessageAndVersion((org.apache.kafka.common.protocol.ApiMessage) message, version);
                ObjectSerializationCache cache = new ObjectSerializationCache();
                ByteBuffer buffer = ByteBuffer.allocate(MetadataRecordSerde.INSTANCE.recordSize(record, cache));
                MetadataRecordSerde.INSTANCE.write(record, cache, new ByteBufferAccessor(buffer));
                out.put("hex", HEX.formatHex(buffer.array()));
                break;
            }
            case "decodeRecord": {
                ByteBuffer buffer = ByteBuffer.wrap(HEX.parseHex(ask.get("hex").asText()));
                ApiMessageAndVersion record =
                    MetadataRecordSerde.INSTANCE.read(new ByteBufferAccessor(buffer), buffer.remaining());
                out.put("name", record.message().getClass().getSimpleName());
                out.put("version", record.version());
                out.set("json", toJson(record.message(), record.version()));
                break;
            }
            case "versions": {
                Message message = (Message) find(name).getConstructor().newInstance();
                out.put("lowest", message.lowestSupportedVersion());
                out.put("highest", message.highestSupportedVersion());
                break;
            }
            case "apis":
                for (ApiMessageType api : ApiMessageType.values()) {
                    ObjectNode each = out.withObject("/" + api.name);
                    each.put("apiKey", api.apiKey());
                    each.put("lowest", api.lowestSupportedVersion());
                    each.put("highest", api.highestSupportedVersion(true));
                    each.put("deprecatedLowest", api.lowestDeprecatedVersion());
                    ObjectNode headers = each.putObject("headers");
                    for (short v = api.lowestSupportedVersion(); v <= api.highestSupportedVersion(true); v++)
                        headers.putArray("" + v).add(api.requestHeaderVersion(v)).add(api.responseHeaderVersion(v));
                }
                break;
            default:
                throw new IllegalArgumentException("unknown op " + op);
        }
    }

    /** "PartitionRecord" or "MetadataRequest"; API messages are classes with "Data" at the end. */
    private static Class<?> find(String name) throws ClassNotFoundException {
        Class<?> known = CLASSES.get(name);
        if (known != null) return known;
        for (String suffix : new String[] {"", "Data"}) {
            for (String prefix : PACKAGES) {
                try {
                    Class<?> found = Class.forName(prefix + name + suffix);
                    if (Message.class.isAssignableFrom(found)) {
                        CLASSES.put(name, found);
                        return found;
                    }
                } catch (ClassNotFoundException e) {
                    // Not in this package.
                }
            }
        }
        throw new ClassNotFoundException(name);
    }

    private static Class<?> converter(Class<?> message) throws ClassNotFoundException {
        return Class.forName(message.getName() + "JsonConverter");
    }

    private static Message fromJson(String name, short version, JsonNode json) throws Exception {
        Method read = converter(find(name)).getMethod("read", JsonNode.class, short.class);
        return (Message) read.invoke(null, json, version);
    }

    private static JsonNode toJson(Message message, short version) throws Exception {
        Class<?> type = message.getClass();
        return (JsonNode) converter(type).getMethod("write", type, short.class).invoke(null, message, version);
    }
}
