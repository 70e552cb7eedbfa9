import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * What a producer sees of the end of a partition's leader: {@code BOOTSTRAP TOPIC NODES kill|stop} waits until TOPIC is
 * whole, sends a record every two milliseconds to a partition whose leader is not the active controller, and ends that
 * leader. Two numbers come out: the node, and the milliseconds of the stall. If it was killed, these are from the
 * signal to the first acknowledgement of a record sent afterwards; if it was asked to stop, the longest that any record
 * of the next seconds waited for its acknowledgement.
 */
public final class LeaderLoss {
    private static final long PERIOD_NS = 2_000_000;
    private static final long STEADY_NS = 300_000_000;
    private static final long STOPPING_NS = 3_000_000_000L;
    private static final long PATIENCE_NS = 60_000_000_000L;
    private static final int SIZE = 100;

    private final AtomicLong firstAck = new AtomicLong(Long.MAX_VALUE);
    private final AtomicLong longest = new AtomicLong();
    private final AtomicLong acknowledged = new AtomicLong();
    private final AtomicReference<Exception> failure = new AtomicReference<>();
    private volatile long ended = Long.MAX_VALUE;

    private LeaderLoss() {}

    public static void main(String[] arguments) throws Exception {
        boolean kills = arguments[3].equals("kill");
        Map<Integer, ProcessHandle> processes = ClusterRoles.processes(arguments[2]);
        LeaderLoss loss = new LeaderLoss();
        try (Admin admin = ClusterRoles.admin(arguments[0]);
                KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(
                        Map.of("bootstrap.servers", arguments[0], "acks", "all", "linger.ms", "0"),
                        new ByteArraySerializer(),
                        new ByteArraySerializer())) {
            TopicPartitionInfo chosen = chosen(admin, arguments[1]);
            int node = chosen.leader().id();
            loss.send(producer, arguments[1], chosen.partition(), () -> loss.isSteady());
            loss.ended = System.nanoTime();
            if (kills) {
                processes.get(node).destroyForcibly();
                loss.send(producer, arguments[1], chosen.partition(), () -> loss.firstAck.get() < Long.MAX_VALUE);
            } else {
                processes.get(node).destroy();
                loss.send(producer, arguments[1], chosen.partition(),
                        () -> System.nanoTime() - loss.ended > STOPPING_NS);
            }
            producer.flush();
            loss.check();
            if (ClusterRoles.leads(ClusterRoles.partitions(admin, arguments[1]).get(chosen.partition()), node)) {
                throw new IllegalStateException("node " + node + " leads on");
            }
            long stall = kills ? loss.firstAck.get() - loss.ended : loss.longest.get();
            System.out.printf("%d %.3f%n", node, stall / 1e6);
        }
    }

    private static TopicPartitionInfo chosen(Admin admin, String topic) throws Exception {
        int controller = ClusterRoles.controller(admin);
        return ClusterRoles.settle(admin, topic).stream()
                .filter(one -> !ClusterRoles.leads(one, controller))
                .findFirst()
                .orElseThrow();
    }

    private boolean isSteady() {
        return acknowledged.get() * PERIOD_NS > STEADY_NS;
    }

    private void send(
            KafkaProducer<byte[], byte[]> producer, String topic, int partition, java.util.function.BooleanSupplier done)
            throws Exception {
        long begin = System.nanoTime();
        while (!done.getAsBoolean()) {
            long sent = System.nanoTime();
            producer.send(new ProducerRecord<>(topic, partition, null, new byte[SIZE]), (metadata, error) -> {
                if (error != null) {
                    failure.compareAndSet(null, error);
                } else {
                    take(sent, System.nanoTime());
                }
            });
            check();
            if (sent - begin > PATIENCE_NS) {
                throw new IllegalStateException("nothing was acknowledged");
            }
            LockSupport.parkNanos(PERIOD_NS);
        }
    }

    private void take(long sent, long now) {
        acknowledged.incrementAndGet();
        if (sent >= ended) {
            firstAck.accumulateAndGet(now, Math::min);
        }
        if (now >= ended) {
            longest.accumulateAndGet(now - sent, Math::max);
        }
    }

    private void check() throws Exception {
        if (failure.get() != null) {
            throw failure.get();
        }
    }
}
