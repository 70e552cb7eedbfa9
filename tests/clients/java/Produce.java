import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * {@code BOOTSTRAP FILE [setting=value]...} sends the records of FILE, one JSON object per line, and prints for each,
 * in order, {@code topic partition offset} or {@code error} and the name of the exception.
 */
public final class Produce {
    public static void main(String[] arguments) throws Exception {
        Map<String, Object> settings = new HashMap<>(Map.of("bootstrap.servers", arguments[0]));
        for (int i = 2; i < arguments.length; i++) {
            String[] pair = arguments[i].split("=", 2);
            settings.put(pair[0], pair[1]);
        }
        ObjectMapper json = new ObjectMapper();
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        try (KafkaProducer<byte[], byte[]> producer =
                new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            for (String line : Files.readAllLines(Path.of(arguments[1]))) {
                sent.add(producer.send(record(json.readTree(line))));
            }
        }
        for (Future<RecordMetadata> future : sent) {
            try {
                RecordMetadata metadata = future.get(60, TimeUnit.SECONDS);
                System.out.println(metadata.topic() + " " + metadata.partition() + " " + metadata.offset());
            } catch (ExecutionException e) {
                System.out.println("error " + e.getCause().getClass().getSimpleName());
            }
        }
    }

    private static ProducerRecord<byte[], byte[]> record(JsonNode node) {
        ProducerRecord<byte[], byte[]> record = new ProducerRecord<>(
                node.get("topic").asText(),
                node.get("partition").asInt(),
                node.get("timestamp").isNull() ? null : node.get("timestamp").asLong(),
                bytes(node.get("key")),
                bytes(node.get("value")));
        for (JsonNode header : node.get("headers")) {
            record.headers().add(header.get(0).asText(), bytes(header.get(1)));
        }
        return record;
    }

    private static byte[] bytes(JsonNode node) {
        return node.isNull() ? null : HexFormat.of().parseHex(node.asText());
    }
}
