import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.CreateTopicsOptions;
import org.apache.kafka.clients.admin.CreateTopicsResult;
import org.apache.kafka.clients.admin.NewTopic;

/**
 * {@code BOOTSTRAP NAME PARTITIONS REPLICATION [setting=value]...} asks whether a topic could be created (validate
 * only) and prints its partitions, replication factor and own settings, or {@code error} and the name of the exception.
 * PARTITIONS and REPLICATION of -1 mean the broker's default.
 */
public final class ProposeTopic {
    public static void main(String[] arguments) throws Exception {
        Map<String, String> settings = new HashMap<>();
        for (int i = 4; i < arguments.length; i++) {
            String[] pair = arguments[i].split("=", 2);
            settings.put(pair[0], pair[1]);
        }
        NewTopic topic = new NewTopic(arguments[1], number(arguments[2]), number(arguments[3]).map(Integer::shortValue))
                .configs(settings);
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", arguments[0]))) {
            CreateTopicsResult result =
                    admin.createTopics(List.of(topic), new CreateTopicsOptions().validateOnly(true));
            result.all().get(60, TimeUnit.SECONDS);
            String shape = result.numPartitions(topic.name()).get() + " " + result.replicationFactor(topic.name()).get();
            System.out.println(shape + " " + own(result.config(topic.name()).get()));
        } catch (ExecutionException e) {
            System.out.println("error " + e.getCause().getClass().getSimpleName());
        }
    }

    private static Optional<Integer> number(String text) {
        return text.equals("-1") ? Optional.empty() : Optional.of(Integer.valueOf(text));
    }

    private static Map<String, String> own(Config config) {
        Map<String, String> entries = new TreeMap<>();
        for (ConfigEntry entry : config.entries()) {
            if (entry.source() == ConfigEntry.ConfigSource.DYNAMIC_TOPIC_CONFIG) {
                entries.put(entry.name(), entry.value());
            }
        }
        return entries;
    }
}
