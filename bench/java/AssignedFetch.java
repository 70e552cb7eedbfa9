import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * What Kafka's ConsumerPerformance measures, without a consumer group: {@code BOOTSTRAP TOPIC RECORDS PASSES} reads
 * that many records from the beginning, PASSES times, and prints records, bytes and seconds over all passes.
 */
public final class AssignedFetch {
    private static final Duration POLL = Duration.ofMillis(100);
    private static final long SILENCE_NS = 30_000_000_000L;

    private long records;
    private long bytes;

    public static void main(String[] arguments) {
        long wanted = Long.parseLong(arguments[2]);
        int passes = Integer.parseInt(arguments[3]);
        AssignedFetch fetch = new AssignedFetch();
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(arguments[0])) {
            List<TopicPartition> partitions = assignAll(consumer, arguments[1]);
            long begin = System.nanoTime();
            for (int pass = 1; pass <= passes; pass++) {
                consumer.seekToBeginning(partitions);
                fetch.readUntil(consumer, wanted * pass);
            }
            double seconds = (System.nanoTime() - begin) / 1e9;
            System.out.printf("%d %d %.6f%n", fetch.records, fetch.bytes, seconds);
        }
    }

    /** The settings of ConsumerPerformance: its fetch size and receive buffer, and no checksum check. */
    static KafkaConsumer<byte[], byte[]> consumer(String bootstrap) {
        return new KafkaConsumer<>(
                Map.of(
                        "bootstrap.servers", bootstrap,
                        "enable.auto.commit", "false",
                        "auto.offset.reset", "earliest",
                        "receive.buffer.bytes", "2097152",
                        "max.partition.fetch.bytes", "1048576",
                        "check.crcs", "false"),
                new ByteArrayDeserializer(),
                new ByteArrayDeserializer());
    }

    static List<TopicPartition> assignAll(KafkaConsumer<byte[], byte[]> consumer, String topic) {
        List<TopicPartition> partitions = consumer.partitionsFor(topic).stream()
                .map(info -> new TopicPartition(info.topic(), info.partition()))
                .collect(Collectors.toList());
        consumer.assign(partitions);
        return partitions;
    }

    void readUntil(KafkaConsumer<byte[], byte[]> consumer, long total) {
        long last = System.nanoTime();
        while (records < total) {
            for (ConsumerRecord<byte[], byte[]> record : consumer.poll(POLL)) {
                records++;
                bytes += (record.key() == null ? 0 : record.key().length) + record.value().length;
                last = 0;
            }
            if (last == 0) {
                last = System.nanoTime();
            } else if (System.nanoTime() - last > SILENCE_NS) {
                throw new IllegalStateException("only " + records + " of " + total + " records came");
            }
        }
    }

    long records() {
        return records;
    }

    long bytes() {
        return bytes;
    }
}
