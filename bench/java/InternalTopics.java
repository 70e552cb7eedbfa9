import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Makes the broker create the topics of its coordinators and sets how they flush: {@code BOOTSTRAP [key=value]...}.
 */
public final class InternalTopics {
    private static final List<String> NAMES = List.of("__consumer_offsets", "__transaction_state");
    private static final long WAIT_MS = 60_000;

    public static void main(String[] arguments) throws Exception {
        makeThem(arguments[0]);
        Collection<AlterConfigOp> changes = new ArrayList<>();
        for (int i = 1; i < arguments.length; i++) {
            String[] pair = arguments[i].split("=", 2);
            changes.add(new AlterConfigOp(new ConfigEntry(pair[0], pair[1]), AlterConfigOp.OpType.SET));
        }
        Map<ConfigResource, Collection<AlterConfigOp>> all = new HashMap<>();
        for (String name : NAMES) {
            all.put(new ConfigResource(ConfigResource.Type.TOPIC, name), changes);
        }
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", arguments[0]))) {
            admin.incrementalAlterConfigs(all).all().get(WAIT_MS, TimeUnit.MILLISECONDS);
        }
    }

    private static void makeThem(String bootstrap) {
        try (KafkaConsumer<byte[], byte[]> consumer =
                GroupClients.consumer(bootstrap, Map.of("group.id", "internal-topics"))) {
            consumer.committed(Set.of(new TopicPartition("__consumer_offsets", 0)));
        }
        Map<String, Object> settings = Map.of("bootstrap.servers", bootstrap, "transactional.id", "internal-topics");
        try (KafkaProducer<byte[], byte[]> producer =
                new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            producer.initTransactions();
        }
    }
}
