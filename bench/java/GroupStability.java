import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;

/**
 * How soon a group is stable after one more member joins: {@code BOOTSTRAP TOPIC GROUP PROTOCOL MEMBERS TIMES} keeps
 * MEMBERS - 1 members polling, lets another one join and leave, TIMES times, and prints the milliseconds from the
 * newcomer's subscription until every partition is owned by exactly one member and all MEMBERS own their share.
 */
public final class GroupStability {
    private static final long PATIENCE_NS = 60_000_000_000L;

    private final String bootstrap;
    private final String topic;
    private final Map<String, Object> settings = new HashMap<>();
    private final Map<Integer, Set<TopicPartition>> owned = new ConcurrentHashMap<>();
    private final List<Member> members = new ArrayList<>();

    private GroupStability(String bootstrap, String topic, String group, String protocol) {
        this.bootstrap = bootstrap;
        this.topic = topic;
        settings.put("group.id", group);
        settings.put("group.protocol", protocol);
        settings.put("enable.auto.commit", "false");
        settings.put("auto.offset.reset", "latest");
        if (protocol.equals("classic")) { // the other protocol is told by the broker how often
            settings.put("heartbeat.interval.ms", "100");
        }
    }

    public static void main(String[] arguments) throws Exception {
        int wanted = Integer.parseInt(arguments[4]);
        int times = Integer.parseInt(arguments[5]);
        GroupStability group = new GroupStability(arguments[0], arguments[1], arguments[2], arguments[3]);
        try {
            for (int i = 0; i < wanted - 1; i++) {
                group.join();
            }
            int partitions = group.partitions();
            group.awaitStable(wanted - 1, partitions);
            double[] took = new double[times];
            for (int i = 0; i < times; i++) {
                long begin = System.nanoTime();
                Member newcomer = group.join();
                group.awaitStable(wanted, partitions);
                took[i] = (System.nanoTime() - begin) / 1e6;
                newcomer.leave();
                group.awaitStable(wanted - 1, partitions);
            }
            Arrays.sort(took);
            System.out.printf("%.3f %.3f %.3f%n", took[times / 2], took[0], took[times - 1]);
        } finally {
            for (Member member : List.copyOf(group.members)) {
                member.leave();
            }
        }
    }

    private Member join() {
        Member member = new Member(members.isEmpty() ? 0 : members.get(members.size() - 1).number + 1);
        members.add(member);
        member.start();
        return member;
    }

    private int partitions() {
        try (KafkaConsumer<byte[], byte[]> consumer = GroupClients.consumer(bootstrap, Map.of())) {
            return consumer.partitionsFor(topic).size();
        }
    }

    /** Until every one of so many members owns something and every partition has one owner. */
    private void awaitStable(int wanted, int partitions) throws InterruptedException {
        long end = System.nanoTime() + PATIENCE_NS;
        while (true) {
            int count = 0;
            boolean all = owned.size() == wanted;
            for (Set<TopicPartition> part : owned.values()) {
                count += part.size();
                all &= !part.isEmpty();
            }
            if (all && count == partitions) {
                return;
            }
            for (Member member : members) {
                if (member.failure != null) {
                    throw new IllegalStateException(member.failure);
                }
            }
            if (System.nanoTime() > end) {
                throw new IllegalStateException("the group did not get stable: " + owned);
            }
            Thread.sleep(0, 200_000);
        }
    }

    private final class Member extends Thread {
        private final int number;
        private final KafkaConsumer<byte[], byte[]> consumer;
        private volatile boolean leaving;
        private volatile RuntimeException failure;

        Member(int number) {
            super("member-" + number);
            this.number = number;
            Map<String, Object> mine = new HashMap<>(settings);
            mine.put("client.id", "member-" + number);
            this.consumer = GroupClients.consumer(bootstrap, mine);
        }

        @Override
        public void run() {
            try (consumer) {
                consumer.subscribe(List.of(topic), new Ownership());
                while (!leaving) {
                    consumer.poll(Duration.ofMillis(20));
                }
            } catch (RuntimeException e) {
                failure = e;
            } finally {
                owned.remove(number);
            }
        }

        void leave() throws InterruptedException {
            leaving = true;
            join(30_000);
            members.remove(this);
        }

        private final class Ownership implements ConsumerRebalanceListener {
            @Override
            public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
                owned.computeIfAbsent(number, key -> ConcurrentHashMap.newKeySet()).addAll(partitions);
            }

            @Override
            public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
                owned.computeIfAbsent(number, key -> ConcurrentHashMap.newKeySet()).removeAll(partitions);
            }
        }
    }
}
