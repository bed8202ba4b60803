import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.coordinator.group.GroupConfig;
import org.apache.kafka.server.config.AbstractKafkaConfig;
import org.apache.kafka.server.config.ConfigSynonym;
import org.apache.kafka.server.config.DynamicBrokerConfig;
import org.apache.kafka.server.config.ServerTopicConfigSynonyms;
import org.apache.kafka.server.metrics.ClientMetricsConfigs;
import org.apache.kafka.storage.internals.log.LogConfig;

/** Prints Kafka's own definitions of configs as JSON: broker, topic, group, client metrics.
 *
 * With arguments (kind, then key and value in turn) prints what Kafka makes of each value instead. */
public class ConfigTable {
    private static final Map<String, ConfigDef> DEFINITIONS = Map.of(
            "broker", AbstractKafkaConfig.CONFIG_DEF,
            "topic", LogConfig.configDefCopy(),
            "group", GroupConfig.CONFIG_DEF,
            "client-metrics", ClientMetricsConfigs.configDef());

    public static void main(String[] args) throws Exception {
        if (args.length > 0) {
            judge(DEFINITIONS.get(args[0]), args);
            return;
        }
        Map<String, Object> all = new LinkedHashMap<>();
        Map<String, Object> broker = keys(AbstractKafkaConfig.CONFIG_DEF);
        Map<String, String> modes = DynamicBrokerConfig.dynamicConfigUpdateModes();
        for (String name : broker.keySet()) {
            if (modes.containsKey(name)) {
                entry(broker, name).put("update", modes.get(name));
            }
        }
        all.put("broker", broker);
        Map<String, Object> topic = keys(LogConfig.configDefCopy());
        for (Map.Entry<String, List<ConfigSynonym>> each :
                ServerTopicConfigSynonyms.ALL_TOPIC_CONFIG_SYNONYMS.entrySet()) {
            if (!topic.containsKey(each.getKey())) {
                continue;
            }
            Map<String, Object> synonyms = new LinkedHashMap<>();
            for (ConfigSynonym synonym : each.getValue()) {
                // What the conversion multiplies by: hours and minutes become milliseconds.
                synonyms.put(synonym.name(), factor(synonym));
            }
            entry(topic, each.getKey()).put("synonyms", synonyms);
        }
        all.put("topic", topic);
        Map<String, Object> group = keys(GroupConfig.CONFIG_DEF);
        GroupConfig.ALL_GROUP_CONFIG_SYNONYMS.forEach((name, synonym) -> {
            if (synonym.isPresent() && group.containsKey(name)) {
                entry(group, name).put("synonyms", Map.of(synonym.get(), 1));
            }
        });
        all.put("group", group);
        all.put("client-metrics", keys(ClientMetricsConfigs.configDef()));
        System.out.println(new ObjectMapper().writeValueAsString(all));
    }

    private static void judge(ConfigDef definition, String[] args) throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        for (int i = 1; i < args.length; i += 2) {
            ConfigDef.ConfigKey key = definition.configKeys().get(args[i]);
            Map<String, Object> said = new LinkedHashMap<>();
            try {
                Object value = ConfigDef.parseType(args[i], args[i + 1], key.type);
                if (key.validator != null) {
                    key.validator.ensureValid(args[i], value);
                }
                said.put("value", value instanceof Number || value instanceof Boolean
                        || value instanceof List ? value : String.valueOf(value));
            } catch (ConfigException refused) {
                said.put("refused", refused.getMessage());
            }
            System.out.println(mapper.writeValueAsString(said));
        }
    }

    private static long factor(ConfigSynonym synonym) {
        try {
            return Long.parseLong(synonym.converter().apply("1"));
        } catch (NumberFormatException notANumber) {
            return 1;
        }
    }

    private static boolean flag(ConfigDef.Validator validator, String name) {
        try {
            java.lang.reflect.Field field = validator.getClass().getDeclaredField(name);
            field.setAccessible(true);
            return field.getBoolean(validator);
        } catch (ReflectiveOperationException gone) {
            throw new IllegalStateException(gone);
        }
    }

    @SuppressWarnings("unchecked")
    private static Map<String, Object> entry(Map<String, Object> keys, String name) {
        return (Map<String, Object>) keys.get(name);
    }

    private static Map<String, Object> keys(ConfigDef definition) {
        Map<String, Object> found = new TreeMap<>();
        Set<String> names = definition.names();
        for (String name : names) {
            ConfigDef.ConfigKey key = definition.configKeys().get(name);
            Map<String, Object> fields = new LinkedHashMap<>();
            fields.put("type", key.type.name());
            fields.put("required", key.defaultValue == ConfigDef.NO_DEFAULT_VALUE);
            fields.put("default", key.hasDefault()
                    ? ConfigDef.convertToString(key.defaultValue, key.type) : null);
            fields.put("valid", key.validator == null ? null : key.validator.toString());
            if (key.validator instanceof ConfigDef.ValidList) {
                fields.put("set", flag(key.validator, "isEmptyAllowed") ? "may be empty" : "");
            }
            fields.put("importance", key.importance.name());
            fields.put("internal", key.internalConfig);
            found.put(name, fields);
        }
        return found;
    }
}
