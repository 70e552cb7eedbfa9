import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;

/**
 * How fast one consumer commits: {@code BOOTSTRAP TOPIC GROUP WAY COMMITS} commits the offsets of all partitions that
 * many times and prints commits and seconds. WAY {@code sync} waits for each; {@code async} sends a burst of commits,
 * then polls until all are answered. The consumer is assigned, so that no rebalance falls into the measurement.
 */
public final class OffsetCommits {
    private static final int BURST = 100;
    private static final long PATIENCE_NS = 60_000_000_000L;

    private final KafkaConsumer<byte[], byte[]> consumer;
    private final List<TopicPartition> partitions;
    private long committed;

    private OffsetCommits(KafkaConsumer<byte[], byte[]> consumer, List<TopicPartition> partitions) {
        this.consumer = consumer;
        this.partitions = partitions;
    }

    public static void main(String[] arguments) {
        int commits = Integer.parseInt(arguments[4]);
        Map<String, Object> settings =
                Map.of("group.id", arguments[2], "enable.auto.commit", "false", "auto.offset.reset", "earliest");
        try (KafkaConsumer<byte[], byte[]> consumer = GroupClients.consumer(arguments[0], settings)) {
            List<TopicPartition> partitions = new ArrayList<>(AssignedFetch.assignAll(consumer, arguments[1]));
            OffsetCommits work = new OffsetCommits(consumer, partitions);
            work.sync(10);
            long begin = System.nanoTime();
            if (arguments[3].equals("sync")) {
                work.sync(commits);
            } else {
                work.async(commits);
            }
            System.out.printf("%d %.6f%n", commits, (System.nanoTime() - begin) / 1e9);
        }
    }

    private void sync(int commits) {
        for (int i = 0; i < commits; i++) {
            consumer.commitSync(next());
        }
    }

    private void async(int commits) {
        AtomicLong answered = new AtomicLong();
        AtomicReference<Exception> failure = new AtomicReference<>();
        for (int sent = 0; sent < commits; ) {
            int burst = Math.min(BURST, commits - sent);
            for (int i = 0; i < burst; i++) {
                consumer.commitAsync(next(), (offsets, error) -> {
                    answered.incrementAndGet();
                    if (error != null) {
                        failure.compareAndSet(null, error);
                    }
                });
            }
            sent += burst;
            long end = System.nanoTime() + PATIENCE_NS;
            while (answered.get() < sent) {
                consumer.poll(java.time.Duration.ZERO);
                if (failure.get() != null || System.nanoTime() > end) {
                    throw new IllegalStateException("a commit failed or was not answered", failure.get());
                }
            }
        }
    }

    private Map<TopicPartition, OffsetAndMetadata> next() {
        committed++;
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        for (TopicPartition partition : partitions) {
            offsets.put(partition, new OffsetAndMetadata(committed));
        }
        return offsets;
    }
}
