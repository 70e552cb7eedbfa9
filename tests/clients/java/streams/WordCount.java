import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Produced;

/**
 * Word counting instances that live from command to command: {@code start NAME BOOTSTRAP APPLICATION IN OUT DIRECTORY
 * [setting=value]...}, {@code state NAME} and {@code close NAME}. Every word of IN becomes a record in OUT: the word, and
 * how often it has been seen.
 */
public final class WordCount {
    private static final Map<String, KafkaStreams> LIVE = new ConcurrentHashMap<>();

    public static void main(String[] arguments) {
        switch (arguments[0]) {
            case "start" -> start(arguments);
            case "state" -> System.out.println(LIVE.get(arguments[1]).state());
            default -> System.out.println(LIVE.remove(arguments[1]).close(Duration.ofSeconds(30)));
        }
    }

    private static void start(String[] arguments) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[2]);
        settings.put("application.id", arguments[3]);
        settings.put("state.dir", arguments[6]);
        settings.put("processing.guarantee", "exactly_once_v2");
        settings.put("replication.factor", "1");
        settings.put("statestore.cache.max.bytes", "0"); // every count is written, not only the last before a commit
        settings.put("default.key.serde", Serdes.StringSerde.class.getName());
        settings.put("default.value.serde", Serdes.StringSerde.class.getName());
        for (String argument : Arrays.asList(arguments).subList(7, arguments.length)) {
            String[] pair = argument.split("=", 2);
            settings.put(pair[0], pair[1]);
        }
        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream(arguments[4])
                .flatMapValues(line -> List.of(line.split(" ")))
                .groupBy((key, word) -> word)
                .count()
                .toStream()
                .mapValues(count -> Long.toString(count))
                .to(arguments[5], Produced.with(Serdes.String(), Serdes.String()));
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        LIVE.put(arguments[1], streams);
        streams.start();
    }
}
