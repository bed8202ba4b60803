import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.Arrays;
import java.util.Comparator;
import java.util.TreeMap;
import org.apache.kafka.server.common.Feature;
import org.apache.kafka.server.common.FeatureVersion;
import org.apache.kafka.server.common.KRaftVersion;
import org.apache.kafka.server.common.MetadataVersion;

/**
 * Prints what Kafka's enums say of metadata versions and features, as one JSON object. What a
 * version gates is found by reflection: every public method without arguments that gives a boolean
 * or a short, asked of every version; null where it throws.
 */
public class FeatureTable {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        ObjectNode out = JSON.createObjectNode();
        out.put("minimum", MetadataVersion.MINIMUM_VERSION.featureLevel());
        out.put("latestProduction", MetadataVersion.latestProduction().featureLevel());
        for (MetadataVersion version : MetadataVersion.VERSIONS) {
            ObjectNode row = out.withArray("versions").addObject();
            row.put("level", version.featureLevel());
            row.put("name", version.version());
            row.put("release", version.shortVersion());
            gates(version, MetadataVersion.class, row.putObject("gates"));
            ObjectNode defaults = row.putObject("defaults");
            for (Feature feature : Feature.PRODUCTION_FEATURES)
                defaults.put(feature.featureName(), feature.defaultLevel(version));
        }
        for (Feature feature : Feature.PRODUCTION_FEATURES) {
            ObjectNode row = out.withArray("features").addObject();
            row.put("name", feature.featureName());
            row.put("latestProduction", feature.latestProduction());
            for (FeatureVersion version : feature.featureVersions()) {
                ObjectNode level = row.withArray("levels").addObject();
                level.put("level", version.featureLevel());
                level.put("bootstrap", version.bootstrapMetadataVersion().featureLevel());
                ObjectNode needs = level.putObject("needs");
                new TreeMap<>(version.dependencies()).forEach(needs::put);
            }
        }
        for (KRaftVersion version : KRaftVersion.values()) {
            ObjectNode row = out.withArray("kraftVersions").addObject();
            row.put("level", version.featureLevel());
            gates(version, KRaftVersion.class, row.putObject("gates"));
        }
        System.out.println(JSON.writeValueAsString(out));
    }

    private static void gates(Object version, Class<?> type, ObjectNode out) throws Exception {
        Method[] methods = type.getDeclaredMethods();
        Arrays.sort(methods, Comparator.comparing(Method::getName));
        for (Method method : methods) {
            int modifiers = method.getModifiers();
            if (!Modifier.isPublic(modifiers) || Modifier.isStatic(modifiers) || method.isSynthetic()
                    || method.getParameterCount() > 0 || method.getName().equals("featureLevel"))
                continue;
            try {
                if (method.getReturnType() == boolean.class)
                    out.put(method.getName(), (boolean) method.invoke(version));
                else if (method.getReturnType() == short.class)
                    out.put(method.getName(), (short) method.invoke(version));
            } catch (InvocationTargetException e) {
                out.putNull(method.getName());
            }
        }
    }
}
