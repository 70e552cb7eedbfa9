import com.fasterxml.jackson.databind.ObjectMapper;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * Share consumers that live from command to command.
 *
 * <p>{@code start NAME BOOTSTRAP GROUP TOPIC [setting=value]...}; {@code poll NAME LIMIT_MS} polls until records have
 * come or the time is over and prints {@code [partition, offset, value, delivery count]} for each;
 * {@code acknowledge NAME KIND} gives ACCEPT, RELEASE or REJECT to all records of the last poll and commits, and prints
 * the errors; {@code close NAME}.
 */
public final class ShareMembers {
    private static final Duration POLL = Duration.ofMillis(50);
    private static final Map<String, KafkaShareConsumer<String, String>> LIVE = new ConcurrentHashMap<>();
    private static final Map<String, List<ConsumerRecord<String, String>>> TAKEN = new ConcurrentHashMap<>();

    public static void main(String[] arguments) throws Exception {
        Object answer =
                switch (arguments[0]) {
                    case "start" -> start(arguments);
                    case "poll" -> poll(arguments[1], Long.parseLong(arguments[2]));
                    case "acknowledge" -> acknowledge(arguments[1], AcknowledgeType.valueOf(arguments[2]));
                    default -> close(arguments[1]);
                };
        System.out.println(new ObjectMapper().writeValueAsString(answer));
    }

    private static Object start(String[] arguments) {
        Map<String, Object> settings = new HashMap<>(Map.of("bootstrap.servers", arguments[2]));
        settings.put("group.id", arguments[3]);
        for (String argument : Arrays.asList(arguments).subList(5, arguments.length)) {
            String[] pair = argument.split("=", 2);
            settings.put(pair[0], pair[1]);
        }
        var consumer = new KafkaShareConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
        consumer.subscribe(List.of(arguments[4]));
        LIVE.put(arguments[1], consumer);
        return "started";
    }

    private static Object poll(String name, long limitMs) {
        List<List<Object>> shown = new ArrayList<>();
        List<ConsumerRecord<String, String>> taken = new ArrayList<>();
        TAKEN.put(name, taken);
        long deadline = System.nanoTime() + limitMs * 1_000_000;
        do {
            for (ConsumerRecord<String, String> record : LIVE.get(name).poll(POLL)) {
                taken.add(record);
                shown.add(List.of(record.partition(), record.offset(), record.value(),
                        record.deliveryCount().orElse((short) 0)));
            }
        } while (taken.isEmpty() && System.nanoTime() < deadline);
        return shown;
    }

    private static Object acknowledge(String name, AcknowledgeType kind) {
        KafkaShareConsumer<String, String> consumer = LIVE.get(name);
        TAKEN.get(name).forEach(record -> consumer.acknowledge(record, kind));
        List<String> errors = new ArrayList<>();
        for (Map.Entry<TopicIdPartition, Optional<KafkaException>> result : consumer.commitSync().entrySet()) {
            result.getValue().ifPresent(error -> errors.add(error.getClass().getSimpleName()));
        }
        return errors;
    }

    private static Object close(String name) {
        LIVE.remove(name).close();
        return "closed";
    }
}
