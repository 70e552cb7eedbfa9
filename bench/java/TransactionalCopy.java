import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Consume, transform, produce, exactly once: {@code BOOTSTRAP FROM TO GROUP RECORDS PER_TRANSACTION} copies that many
 * records in transactions of so many, the inputs' offsets with them, and prints records, transactions and seconds from
 * the first record to the last commit.
 */
public final class TransactionalCopy {
    private static final Duration POLL = Duration.ofMillis(100);
    private static final long SILENCE_NS = 30_000_000_000L;

    public static void main(String[] arguments) {
        String bootstrap = arguments[0];
        long wanted = Long.parseLong(arguments[4]);
        int size = Integer.parseInt(arguments[5]);
        Map<String, Object> reading = Map.of(
                "group.id", arguments[3],
                "isolation.level", "read_committed",
                "enable.auto.commit", "false",
                "auto.offset.reset", "earliest",
                "max.poll.records", Integer.toString(size));
        Map<String, Object> writing = Map.of(
                "bootstrap.servers", bootstrap, "transactional.id", "copy-" + arguments[3], "acks", "all");
        try (KafkaConsumer<byte[], byte[]> consumer = GroupClients.consumer(bootstrap, reading);
                KafkaProducer<byte[], byte[]> producer =
                        new KafkaProducer<>(writing, new ByteArraySerializer(), new ByteArraySerializer())) {
            producer.initTransactions();
            consumer.subscribe(List.of(arguments[1]));
            copy(consumer, producer, arguments[2], wanted, size);
        }
    }

    private static void copy(
            KafkaConsumer<byte[], byte[]> consumer,
            KafkaProducer<byte[], byte[]> producer,
            String to,
            long wanted,
            int size) {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        long begin = 0;
        long last = System.nanoTime();
        long copied = 0;
        long open = 0;
        int transactions = 0;
        while (copied < wanted) {
            for (ConsumerRecord<byte[], byte[]> record : consumer.poll(POLL)) {
                last = System.nanoTime();
                begin = begin == 0 ? last : begin;
                if (open == 0) {
                    producer.beginTransaction();
                }
                producer.send(new ProducerRecord<>(to, record.partition(), record.key(), record.value()));
                offsets.put(
                        new TopicPartition(record.topic(), record.partition()),
                        new OffsetAndMetadata(record.offset() + 1));
                open++;
                if (open == size || copied + open == wanted) {
                    producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
                    producer.commitTransaction();
                    offsets.clear();
                    copied += open;
                    open = 0;
                    transactions++;
                }
            }
            if (System.nanoTime() - last > SILENCE_NS) {
                throw new IllegalStateException("only " + copied + " of " + wanted + " records were copied");
            }
        }
        System.out.printf("%d %d %.6f%n", copied, transactions, (System.nanoTime() - begin) / 1e9);
    }
}
