import com.fasterxml.jackson.databind.ObjectMapper;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * {@code BOOTSTRAP START END TOPIC [setting=value]...} reads every partition of a topic, by assignment, from START
 * ({@code beginning}, {@code offset:N} or {@code timestamp:T}) to END ({@code end}: where it ends at this moment, or how
 * many records to wait for), and prints each record as one line of JSON. A position beyond the end is kept until the broker says what it thinks of it.
 */
public final class Read {
    private static final Duration POLL = Duration.ofMillis(100);
    private static final long LIMIT_NS = 60_000_000_000L;

    public static void main(String[] arguments) throws Exception {
        Map<String, Object> settings =
                new HashMap<>(Map.of("bootstrap.servers", arguments[0], "enable.auto.commit", "false"));
        settings.put("auto.offset.reset", "none");
        for (String argument : Arrays.asList(arguments).subList(4, arguments.length)) {
            String[] pair = argument.split("=", 2);
            settings.put(pair[0], pair[1]);
        }
        try (KafkaConsumer<byte[], byte[]> consumer =
                new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            List<TopicPartition> partitions = new ArrayList<>();
            consumer.partitionsFor(arguments[3])
                    .forEach(info -> partitions.add(new TopicPartition(info.topic(), info.partition())));
            consumer.assign(partitions);
            seek(consumer, partitions, arguments[1]);
            long wanted = arguments[2].equals("end") ? -1 : Long.parseLong(arguments[2]);
            print(consumer, partitions, wanted);
        }
    }

    private static void seek(KafkaConsumer<byte[], byte[]> consumer, List<TopicPartition> partitions, String start) {
        long number = start.contains(":") ? Long.parseLong(start.substring(start.indexOf(':') + 1)) : 0;
        if (start.startsWith("offset:")) {
            partitions.forEach(partition -> consumer.seek(partition, number));
        } else if (start.startsWith("timestamp:")) {
            Map<TopicPartition, Long> times = new HashMap<>();
            partitions.forEach(partition -> times.put(partition, number));
            Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
            Map<TopicPartition, OffsetAndTimestamp> found = consumer.offsetsForTimes(times);
            for (TopicPartition partition : partitions) {
                OffsetAndTimestamp first = found.get(partition);
                consumer.seek(partition, first == null ? ends.get(partition) : first.offset());
            }
        } else {
            consumer.seekToBeginning(partitions);
        }
    }

    private static void print(KafkaConsumer<byte[], byte[]> consumer, List<TopicPartition> partitions, long wanted)
            throws Exception {
        Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
        Map<TopicPartition, Long> starts = new HashMap<>();
        partitions.forEach(partition -> starts.put(partition, consumer.position(partition)));
        ObjectMapper json = new ObjectMapper();
        long deadline = System.nanoTime() + LIMIT_NS;
        long count = 0;
        while (wanted < 0 ? !isAt(consumer, starts, ends) : count < wanted) {
            if (System.nanoTime() > deadline) {
                throw new IllegalStateException("the end was not reached in time");
            }
            for (ConsumerRecord<byte[], byte[]> record : consumer.poll(POLL)) {
                System.out.println(json.writeValueAsString(canonical(record)));
                count++;
            }
        }
    }

    /** What readers of committed records call the end moves on while they read: they may find themselves behind it. */
    private static boolean isAt(
            KafkaConsumer<byte[], byte[]> consumer, Map<TopicPartition, Long> starts, Map<TopicPartition, Long> ends) {
        return ends.entrySet().stream().allMatch(end -> {
            long position = consumer.position(end.getKey());
            return position == end.getValue() || position > end.getValue() && position > starts.get(end.getKey());
        });
    }

    private static Map<String, Object> canonical(ConsumerRecord<byte[], byte[]> record) {
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("partition", record.partition());
        line.put("offset", record.offset());
        line.put("timestamp", record.timestamp());
        line.put("timestamp_type", record.timestampType().toString());
        line.put("key", hex(record.key()));
        line.put("value", hex(record.value()));
        List<List<String>> headers = new ArrayList<>();
        for (Header header : record.headers()) {
            headers.add(Arrays.asList(header.key(), hex(header.value())));
        }
        line.put("headers", headers);
        return line;
    }

    private static String hex(byte[] bytes) {
        return bytes == null ? null : HexFormat.of().formatHex(bytes);
    }
}
