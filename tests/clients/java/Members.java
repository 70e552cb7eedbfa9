import com.fasterxml.jackson.databind.ObjectMapper;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * Group members that live from command to command, each polling on a thread of its own.
 *
 * <p>{@code start NAME BOOTSTRAP TOPICS [setting=value]...} where TOPICS are names with commas between them,
 * {@code re2:PATTERN} (evaluated by the broker) or {@code regex:PATTERN} (by the client); {@code state} shows all of
 * them; {@code records NAME} what one has received; {@code ask NAME VERB [ARGUMENT]...} does something on its thread;
 * {@code close NAME} ends it, {@code close NAME remain} without leaving the group. Everything is printed as JSON.
 */
public final class Members {
    private static final Duration POLL = Duration.ofMillis(20);
    private static final long LIMIT_S = 60;
    private static final Map<String, Member> LIVE = new ConcurrentHashMap<>();
    private static final Map<String, ConsumerGroupMetadata> METADATA = new ConcurrentHashMap<>();
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        Object answer =
                switch (arguments[0]) {
                    case "start" -> start(arguments);
                    case "state" -> state();
                    case "records" -> List.copyOf(LIVE.get(arguments[1]).records);
                    case "ask" -> LIVE.get(arguments[1])
                            .ask(arguments[2], Arrays.asList(arguments).subList(3, arguments.length));
                    case "close" -> LIVE.remove(arguments[1])
                            .close(arguments.length > 2 && arguments[2].equals("remain"));
                    default -> throw new IllegalArgumentException(arguments[0]);
                };
        System.out.println(JSON.writeValueAsString(answer));
    }

    /** What a transactional producer needs to know of a member to commit offsets for it, also after its end. */
    static ConsumerGroupMetadata metadata(String name) {
        return METADATA.get(name);
    }

    private static Object start(String[] arguments) {
        Map<String, Object> settings = new HashMap<>(Map.of("bootstrap.servers", arguments[2]));
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        for (String argument : Arrays.asList(arguments).subList(4, arguments.length)) {
            String[] pair = argument.split("=", 2);
            settings.put(pair[0], pair[1]);
        }
        LIVE.put(arguments[1], new Member(arguments[1], settings, arguments[3]));
        return "started";
    }

    private static Object state() {
        Map<String, Object> all = new TreeMap<>();
        LIVE.forEach((name, member) -> all.put(name, member.state()));
        return all;
    }

    /** One consumer and the thread that polls it. */
    private static final class Member implements ConsumerRebalanceListener {
        private final List<List<Object>> records = java.util.Collections.synchronizedList(new ArrayList<>());
        private final List<String> events = java.util.Collections.synchronizedList(new ArrayList<>());
        private final BlockingQueue<Runnable> tasks = new LinkedBlockingQueue<>();
        private final String name;
        private final KafkaConsumer<String, String> consumer;
        private final Thread thread = new Thread(this::live);
        private volatile List<String> assigned = List.of();
        private volatile String error;
        private volatile CloseOptions ending;

        Member(String name, Map<String, Object> settings, String topics) {
            this.name = name;
            consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
            if (topics.startsWith("re2:")) {
                consumer.subscribe(new SubscriptionPattern(topics.substring(4)), this);
            } else if (topics.startsWith("regex:")) {
                consumer.subscribe(Pattern.compile(topics.substring(6)), this);
            } else {
                consumer.subscribe(List.of(topics.split(",")), this);
            }
            thread.setDaemon(true);
            thread.start();
        }

        private void live() {
            try {
                while (ending == null) {
                    for (ConsumerRecord<String, String> record : consumer.poll(POLL)) {
                        records.add(List.of(record.topic(), record.partition(), record.offset(), record.value()));
                    }
                    assigned = named(consumer.assignment());
                    METADATA.put(name, consumer.groupMetadata());
                    for (Runnable task = tasks.poll(); task != null; task = tasks.poll()) {
                        task.run();
                    }
                }
            } catch (RuntimeException e) {
                error = e.getClass().getSimpleName();
            } finally {
                consumer.close(ending == null ? CloseOptions.timeout(Duration.ofSeconds(5)) : ending);
            }
        }

        Map<String, Object> state() {
            Map<String, Object> shown = new LinkedHashMap<>();
            shown.put("assigned", assigned);
            shown.put("records", records.size());
            shown.put("events", List.copyOf(events));
            ConsumerGroupMetadata metadata = METADATA.get(name);
            shown.put("generation", metadata == null ? -1 : metadata.generationId());
            shown.put("member_id", metadata == null ? "" : metadata.memberId());
            shown.put("error", error);
            return shown;
        }

        <T> T on(Function<KafkaConsumer<String, String>, T> work) throws Exception {
            CompletableFuture<T> done = new CompletableFuture<>();
            tasks.add(() -> {
                try {
                    done.complete(work.apply(consumer));
                } catch (RuntimeException e) {
                    done.completeExceptionally(e);
                }
            });
            return done.get(LIMIT_S, TimeUnit.SECONDS);
        }

        Object ask(String verb, List<String> arguments) throws Exception {
            try {
                return on(consumer -> answer(verb, arguments));
            } catch (java.util.concurrent.ExecutionException e) {
                return "error " + e.getCause().getClass().getSimpleName();
            }
        }

        private Object answer(String verb, List<String> arguments) {
            switch (verb) {
                case "commit" -> {
                    if (arguments.isEmpty()) {
                        consumer.commitSync();
                    } else {
                        consumer.commitSync(offsets(arguments));
                    }
                    return "ok";
                }
                case "committed" -> {
                    Map<String, Object> found = new TreeMap<>();
                    consumer.committed(new java.util.HashSet<>(partitions(arguments)))
                            .forEach((partition, offset) -> found.put(partition.toString(), offset == null ? null
                                    : List.of(offset.offset(), offset.metadata())));
                    return found;
                }
                case "seek" -> {
                    offsets(arguments).forEach((partition, offset) -> consumer.seek(partition, offset.offset()));
                    return "ok";
                }
                case "pause" -> {
                    consumer.pause(partitions(arguments));
                    return "ok";
                }
                case "resume" -> {
                    consumer.resume(partitions(arguments));
                    return "ok";
                }
                case "rebalance" -> {
                    consumer.enforceRebalance();
                    return "ok";
                }
                case "unsubscribe" -> {
                    consumer.unsubscribe();
                    return "ok";
                }
                default -> throw new IllegalArgumentException(verb);
            }
        }

        Object close(boolean remain) throws InterruptedException {
            CloseOptions options = CloseOptions.timeout(Duration.ofSeconds(20));
            ending = remain
                    ? options.withGroupMembershipOperation(CloseOptions.GroupMembershipOperation.REMAIN_IN_GROUP)
                    : options;
            long begin = System.nanoTime();
            thread.join(LIMIT_S * 1000);
            return Map.of("closed", !thread.isAlive(), "ms", (System.nanoTime() - begin) / 1_000_000);
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            events.add("assigned " + String.join(" ", named(partitions)));
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            events.add("revoked " + String.join(" ", named(partitions)));
        }

        @Override
        public void onPartitionsLost(Collection<TopicPartition> partitions) {
            events.add("lost " + String.join(" ", named(partitions)));
        }
    }

    private static List<String> named(Collection<TopicPartition> partitions) {
        return partitions.stream().map(TopicPartition::toString).sorted().toList();
    }

    private static List<TopicPartition> partitions(List<String> words) {
        return words.stream().map(Members::partition).toList();
    }

    /** {@code topic-partition}, as Kafka prints it. */
    static TopicPartition partition(String word) {
        int dash = word.lastIndexOf('-');
        return new TopicPartition(word.substring(0, dash), Integer.parseInt(word.substring(dash + 1)));
    }

    /** {@code topic-partition@offset}, or {@code topic-partition@offset@metadata}. */
    static Map<TopicPartition, OffsetAndMetadata> offsets(List<String> words) {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        for (String word : words) {
            String[] parts = word.split("@", 3);
            String metadata = parts.length > 2 ? parts[2] : "";
            offsets.put(partition(parts[0]), new OffsetAndMetadata(Long.parseLong(parts[1]), metadata));
        }
        return offsets;
    }
}
