import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;

/**
 * Creates or deletes a topic and waits until that is seen: {@code BOOTSTRAP create NAME PARTITIONS [key=value]...} or
 * {@code BOOTSTRAP delete NAME}. It has as many replicas as the brokers' settings say. Unlike Kafka's own tool this
 * passes on topic settings that Kafka does not know.
 */
public final class Topics {
    private static final long WAIT_MS = 60_000;

    public static void main(String[] arguments) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", arguments[0]))) {
            if (arguments[1].equals("create")) {
                create(admin, arguments);
            } else {
                admin.deleteTopics(List.of(arguments[2])).all().get(WAIT_MS, TimeUnit.MILLISECONDS);
            }
        }
    }

    private static void create(Admin admin, String[] arguments) throws Exception {
        Map<String, String> settings = new HashMap<>();
        for (int i = 4; i < arguments.length; i++) {
            String[] pair = arguments[i].split("=", 2);
            settings.put(pair[0], pair[1]);
        }
        int partitions = Integer.parseInt(arguments[3]);
        NewTopic topic = new NewTopic(arguments[2], Optional.of(partitions), Optional.empty()).configs(settings);
        admin.createTopics(List.of(topic)).all().get(WAIT_MS, TimeUnit.MILLISECONDS);
        long deadline = System.currentTimeMillis() + WAIT_MS;
        while (ledPartitions(admin, arguments[2]) < partitions) {
            if (System.currentTimeMillis() > deadline) {
                throw new IllegalStateException("not all partitions of " + arguments[2] + " have a leader");
            }
            Thread.sleep(20);
        }
        // Kafka's metadata names a leader a moment before that leader serves, and a producer with several batches
        // under way that hits this moment never recovers. Offsets are answered only by a leader that serves.
        Map<TopicPartition, OffsetSpec> latest = new HashMap<>();
        for (int partition = 0; partition < partitions; partition++) {
            latest.put(new TopicPartition(arguments[2], partition), OffsetSpec.latest());
        }
        admin.listOffsets(latest).all().get(WAIT_MS, TimeUnit.MILLISECONDS);
    }

    private static int ledPartitions(Admin admin, String name) throws Exception {
        int led = 0;
        try {
            for (TopicPartitionInfo partition : admin.describeTopics(List.of(name)).topicNameValues().get(name)
                    .get(WAIT_MS, TimeUnit.MILLISECONDS).partitions()) {
                led += partition.leader() == null || partition.leader().isEmpty() ? 0 : 1;
            }
        } catch (java.util.concurrent.ExecutionException e) {
            if (!(e.getCause() instanceof UnknownTopicOrPartitionException)) {
                throw e;
            }
        }
        return led;
    }
}
