import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Latency at a fixed rate: {@code BOOTSTRAP TOPIC RATE WARMUP_SECONDS SECONDS SIZE} sends records at even distances,
 * round robin over all partitions, and reads them back by assignment. Two lines come out, {@code ack} (send to
 * acknowledgement, acks=all) and {@code end} (send to the poll that returned the record), each with the 50th, 99th and
 * 99.9th percentile in milliseconds. Both count from the moment a record was due, so that a stall is
 * charged to every record it delays.
 */
public final class PacedLatency {
    private static final Duration POLL = Duration.ofMillis(100);
    private static final long SILENCE_NS = 30_000_000_000L;

    private final int skipped;
    private final long[] acknowledged;
    private final long[] received;
    private final AtomicReference<Exception> failure = new AtomicReference<>();

    private PacedLatency(int skipped, int total) {
        this.skipped = skipped;
        this.acknowledged = new long[total];
        this.received = new long[total];
    }

    public static void main(String[] arguments) throws Exception {
        int rate = Integer.parseInt(arguments[2]);
        int skipped = rate * Integer.parseInt(arguments[3]);
        int total = skipped + rate * Integer.parseInt(arguments[4]);
        int size = Integer.parseInt(arguments[5]);
        PacedLatency latency = new PacedLatency(skipped, total);
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(arguments[0]);
                KafkaProducer<byte[], byte[]> producer = producer(arguments[0])) {
            int partitions = AssignedFetch.assignAll(consumer, arguments[1]).size();
            consumer.seekToEnd(consumer.assignment());
            consumer.assignment().forEach(consumer::position);
            producer.partitionsFor(arguments[1]);
            Thread sender = new Thread(() -> latency.send(producer, arguments[1], partitions, rate, size), "sender");
            sender.start();
            latency.receive(consumer);
            sender.join();
            producer.flush();
        }
        latency.print();
    }

    private static KafkaConsumer<byte[], byte[]> consumer(String bootstrap) {
        return new KafkaConsumer<>(
                Map.of("bootstrap.servers", bootstrap, "enable.auto.commit", "false"),
                new ByteArrayDeserializer(),
                new ByteArrayDeserializer());
    }

    private static KafkaProducer<byte[], byte[]> producer(String bootstrap) {
        return new KafkaProducer<>(
                Map.of("bootstrap.servers", bootstrap, "acks", "all", "linger.ms", "0"),
                new ByteArraySerializer(),
                new ByteArraySerializer());
    }

    private void send(KafkaProducer<byte[], byte[]> producer, String topic, int partitions, int rate, int size) {
        long period = 1_000_000_000L / rate;
        long begin = System.nanoTime() + period;
        for (int i = 0; i < received.length; i++) {
            long due = begin + i * period;
            for (long ahead = due - System.nanoTime(); ahead > 0; ahead = due - System.nanoTime()) {
                LockSupport.parkNanos(ahead);
            }
            byte[] value = ByteBuffer.allocate(size).putLong(due).putInt(i).array();
            int index = i;
            producer.send(new ProducerRecord<>(topic, i % partitions, null, value), (metadata, error) -> {
                acknowledged[index] = System.nanoTime() - due;
                if (error != null) {
                    failure.compareAndSet(null, error);
                }
            });
        }
    }

    private void receive(KafkaConsumer<byte[], byte[]> consumer) throws Exception {
        int count = 0;
        long last = System.nanoTime();
        while (count < received.length) {
            ConsumerRecords<byte[], byte[]> records = consumer.poll(POLL);
            long now = System.nanoTime();
            for (ConsumerRecord<byte[], byte[]> record : records) {
                ByteBuffer value = ByteBuffer.wrap(record.value());
                long due = value.getLong();
                received[value.getInt()] = now - due;
                last = now;
                count++;
            }
            if (failure.get() != null) {
                throw failure.get();
            }
            if (now - last > SILENCE_NS) {
                throw new IllegalStateException("only " + count + " of " + received.length + " records came");
            }
        }
    }

    private void print() {
        print("ack", acknowledged);
        print("end", received);
    }

    private void print(String name, long[] all) {
        long[] sorted = Arrays.copyOfRange(all, skipped, all.length);
        Arrays.sort(sorted);
        System.out.printf(
                "%s %.3f %.3f %.3f%n",
                name, at(sorted, 0.5), at(sorted, 0.99), at(sorted, 0.999));
    }

    private static double at(long[] sorted, double quantile) {
        int index = (int) Math.ceil(quantile * sorted.length) - 1;
        return sorted[Math.max(index, 0)] / 1e6;
    }
}
