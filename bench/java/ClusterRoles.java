import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.errors.TopicExistsException;

/** Who is what in a cluster, for programs that end one of its nodes; nodes are given as {@code id=pid,id=pid}. */
final class ClusterRoles {
    static final long WAIT_MS = 60_000;
    private static final long PAUSE_MS = 20;

    private ClusterRoles() {}

    static Admin admin(String bootstrap) {
        return Admin.create(Map.of("bootstrap.servers", bootstrap));
    }

    static Map<Integer, ProcessHandle> processes(String nodes) {
        Map<Integer, ProcessHandle> found = new HashMap<>();
        for (String node : nodes.split(",")) {
            String[] pair = node.split("=");
            found.put(Integer.parseInt(pair[0]), ProcessHandle.of(Long.parseLong(pair[1])).orElseThrow());
        }
        return found;
    }

    /** Waits until all replicas are in sync and each partition is led by the replica it was meant for. */
    static List<TopicPartitionInfo> settle(Admin admin, String topic) throws Exception {
        long deadline = System.currentTimeMillis() + WAIT_MS;
        while (true) {
            List<TopicPartitionInfo> partitions = partitions(admin, topic);
            if (partitions.stream().allMatch(one -> one.isr().size() == one.replicas().size())) {
                if (partitions.stream().allMatch(one -> leads(one, one.replicas().get(0).id()))) {
                    return partitions;
                }
                elect(admin, topic, partitions);
            }
            if (System.currentTimeMillis() > deadline) {
                throw new IllegalStateException("not all replicas are in sync: " + partitions);
            }
            Thread.sleep(PAUSE_MS);
        }
    }

    static List<TopicPartitionInfo> partitions(Admin admin, String topic) throws Exception {
        return admin.describeTopics(List.of(topic)).allTopicNames().get(WAIT_MS, TimeUnit.MILLISECONDS).get(topic)
                .partitions();
    }

    static boolean leads(TopicPartitionInfo partition, int node) {
        return partition.leader() != null && partition.leader().id() == node;
    }

    static int controller(Admin admin) throws Exception {
        return admin.describeMetadataQuorum().quorumInfo().get(WAIT_MS, TimeUnit.MILLISECONDS).leaderId();
    }

    /** Creates a topic of as many replicas as the cluster has by default, and tries again as long as that fails. */
    static void create(Admin admin, String topic) throws Exception {
        NewTopic wanted = new NewTopic(topic, Optional.of(1), Optional.empty());
        long deadline = System.currentTimeMillis() + WAIT_MS;
        while (true) {
            try {
                admin.createTopics(List.of(wanted)).all().get(WAIT_MS, TimeUnit.MILLISECONDS);
                return;
            } catch (ExecutionException failure) {
                if (failure.getCause() instanceof TopicExistsException) {
                    return; // the answer to the try before was lost
                }
                if (!(failure.getCause() instanceof ApiException) || System.currentTimeMillis() > deadline) {
                    throw failure;
                }
            } catch (TimeoutException failure) {
                throw new IllegalStateException("no topic could be created", failure);
            }
            Thread.sleep(PAUSE_MS);
        }
    }

    private static void elect(Admin admin, String topic, List<TopicPartitionInfo> partitions) throws Exception {
        List<TopicPartition> misled = new ArrayList<>();
        for (TopicPartitionInfo one : partitions) {
            if (!leads(one, one.replicas().get(0).id())) {
                misled.add(new TopicPartition(topic, one.partition()));
            }
        }
        admin.electLeaders(ElectionType.PREFERRED, new HashSet<>(misled)).partitions()
                .get(WAIT_MS, TimeUnit.MILLISECONDS);
    }
}
