import java.util.Arrays;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.tools.ProducerPerformance;

/**
 * A reader that follows a writer: {@code BOOTSTRAP TOPIC RECORDS ARGUMENTS...} reads RECORDS records of an empty topic
 * while Kafka's ProducerPerformance, given the remaining arguments, writes them; prints records, bytes and seconds
 * from the first send to the last record read.
 */
public final class TailFetch {
    public static void main(String[] arguments) throws Exception {
        long wanted = Long.parseLong(arguments[2]);
        String[] producing = Arrays.copyOfRange(arguments, 3, arguments.length);
        AssignedFetch fetch = new AssignedFetch();
        try (KafkaConsumer<byte[], byte[]> consumer = AssignedFetch.consumer(arguments[0])) {
            AssignedFetch.assignAll(consumer, arguments[1]).forEach(consumer::position);
            long begin = System.nanoTime();
            CompletableFuture<Void> writer = CompletableFuture.runAsync(() -> produce(producing));
            fetch.readUntil(consumer, wanted);
            double seconds = (System.nanoTime() - begin) / 1e9;
            writer.get(60, TimeUnit.SECONDS);
            System.out.printf("%d %d %.6f%n", fetch.records(), fetch.bytes(), seconds);
        }
    }

    private static void produce(String[] arguments) {
        try {
            ProducerPerformance.main(arguments);
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }
}
