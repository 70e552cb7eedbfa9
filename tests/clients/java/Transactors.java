import java.time.Duration;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Transactional producers that live from command to command.
 *
 * <p>{@code open NAME BOOTSTRAP TRANSACTIONAL_ID [setting=value]...}; then {@code do NAME STEP [ARGUMENT]...} with the
 * steps init, begin, {@code send TOPIC-PARTITION VALUE...}, {@code offsets GROUP TOPIC-PARTITION@OFFSET...} (where
 * {@code member:NAME} in place of the group takes a live member's own word), commit, abort and close. Prints ok, the
 * offset a send got, or {@code error} and the name of the exception.
 */
public final class Transactors {
    private static final long LIMIT_S = 60;
    private static final Map<String, KafkaProducer<String, String>> LIVE = new ConcurrentHashMap<>();

    public static void main(String[] arguments) throws Exception {
        if (arguments[0].equals("open")) {
            open(arguments);
            System.out.println("ok");
            return;
        }
        List<String> rest = Arrays.asList(arguments).subList(3, arguments.length);
        try {
            System.out.println(step(arguments[1], LIVE.get(arguments[1]), arguments[2], rest));
        } catch (ExecutionException e) {
            System.out.println("error " + e.getCause().getClass().getSimpleName());
        } catch (KafkaException e) {
            Throwable error = e; // some errors come in wrappings that say nothing
            while (error.getClass() == KafkaException.class && error.getCause() != null) {
                error = error.getCause();
            }
            String words = error.getClass() == KafkaException.class ? ": " + error.getMessage() : "";
            System.out.println("error " + error.getClass().getSimpleName() + words);
        }
    }

    private static void open(String[] arguments) {
        Map<String, Object> settings = new HashMap<>(Map.of("bootstrap.servers", arguments[2]));
        settings.put("transactional.id", arguments[3]);
        settings.put("linger.ms", "0");
        for (String argument : Arrays.asList(arguments).subList(4, arguments.length)) {
            String[] pair = argument.split("=", 2);
            settings.put(pair[0], pair[1]);
        }
        LIVE.put(arguments[1], new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer()));
    }

    @SuppressWarnings("removal") // a group of which nothing but the name is known is said in this way only
    private static String step(String name, KafkaProducer<String, String> producer, String verb, List<String> rest)
            throws Exception {
        switch (verb) {
            case "init" -> producer.initTransactions();
            case "begin" -> producer.beginTransaction();
            case "commit" -> producer.commitTransaction();
            case "abort" -> producer.abortTransaction();
            case "send" -> {
                return send(producer, rest);
            }
            case "offsets" -> {
                String whose = rest.get(0);
                ConsumerGroupMetadata group = whose.startsWith("member:")
                        ? Members.metadata(whose.substring(7))
                        : new ConsumerGroupMetadata(whose);
                producer.sendOffsetsToTransaction(Members.offsets(rest.subList(1, rest.size())), group);
            }
            case "close" -> {
                LIVE.remove(name);
                producer.close(Duration.ofSeconds(10));
            }
            default -> throw new IllegalArgumentException(verb);
        }
        return "ok";
    }

    private static String send(KafkaProducer<String, String> producer, List<String> rest) throws Exception {
        var partition = Members.partition(rest.get(0));
        long last = -1;
        for (String value : rest.subList(1, rest.size())) {
            var record = new ProducerRecord<String, String>(partition.topic(), partition.partition(), null, value);
            last = producer.send(record).get(LIMIT_S, TimeUnit.SECONDS).offset();
        }
        return Long.toString(last);
    }
}
