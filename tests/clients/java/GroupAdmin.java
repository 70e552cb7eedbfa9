import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.AbortTransactionSpec;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.GroupListing;
import org.apache.kafka.clients.admin.ListGroupsOptions;
import org.apache.kafka.clients.admin.ListTransactionsOptions;
import org.apache.kafka.clients.admin.MemberDescription;
import org.apache.kafka.clients.admin.MemberToRemove;
import org.apache.kafka.clients.admin.ProducerState;
import org.apache.kafka.clients.admin.RemoveMembersFromConsumerGroupOptions;
import org.apache.kafka.clients.admin.TransactionDescription;
import org.apache.kafka.common.GroupState;
import org.apache.kafka.common.GroupType;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;

/**
 * {@code BOOTSTRAP QUESTION [ARGUMENT]...} asks the Java admin client about groups and transactions and prints the
 * answer as JSON; an error is {@code error} and the name of the exception.
 */
public final class GroupAdmin {
    private interface Question {
        Object ask(Admin admin, List<String> arguments) throws Exception;
    }

    private static final Map<String, Admin> ADMINS = new ConcurrentHashMap<>();
    private static final Map<String, Question> QUESTIONS = new HashMap<>();

    static {
        QUESTIONS.put("list", GroupAdmin::list);
        QUESTIONS.put("describe-consumer", GroupAdmin::describeConsumer);
        QUESTIONS.put("describe-classic", GroupAdmin::describeClassic);
        QUESTIONS.put("describe-share", GroupAdmin::describeShare);
        QUESTIONS.put("delete", (admin, names) -> done(admin.deleteConsumerGroups(names).all()));
        QUESTIONS.put("delete-share", (admin, names) -> done(admin.deleteShareGroups(names).all()));
        QUESTIONS.put("offsets", GroupAdmin::offsets);
        QUESTIONS.put("share-offsets", GroupAdmin::shareOffsets);
        QUESTIONS.put("alter-offsets", (admin, words) ->
                done(admin.alterConsumerGroupOffsets(words.get(0), Members.offsets(rest(words))).all()));
        QUESTIONS.put("alter-share-offsets", (admin, words) -> done(admin.alterShareGroupOffsets(words.get(0),
                Members.offsets(rest(words)).entrySet().stream()
                        .collect(Collectors.toMap(Map.Entry::getKey, entry -> entry.getValue().offset()))).all()));
        QUESTIONS.put("delete-offsets", (admin, words) ->
                done(admin.deleteConsumerGroupOffsets(words.get(0), partitions(rest(words))).all()));
        QUESTIONS.put("remove-members", GroupAdmin::removeMembers);
        QUESTIONS.put("transactions", GroupAdmin::transactions);
        QUESTIONS.put("describe-transaction", GroupAdmin::describeTransaction);
        QUESTIONS.put("producers", GroupAdmin::producers);
        QUESTIONS.put("fence", (admin, ids) -> done(admin.fenceProducers(ids).all()));
        QUESTIONS.put("terminate", (admin, ids) -> done(admin.forceTerminateTransaction(ids.get(0)).result()));
        QUESTIONS.put("abort", (admin, words) -> done(admin.abortTransaction(new AbortTransactionSpec(
                Members.partition(words.get(0)), Long.parseLong(words.get(1)), Short.parseShort(words.get(2)),
                Integer.parseInt(words.get(3)))).all()));
    }

    public static void main(String[] arguments) throws Exception {
        Admin admin = ADMINS.computeIfAbsent(arguments[0], where -> Admin.create(Map.of("bootstrap.servers", where)));
        Object answer;
        try {
            answer = QUESTIONS.get(arguments[1]).ask(admin, Arrays.asList(arguments).subList(2, arguments.length));
        } catch (ExecutionException e) {
            answer = "error " + e.getCause().getClass().getSimpleName();
        }
        System.out.println(new ObjectMapper().writeValueAsString(answer));
    }

    private static Object done(KafkaFuture<?> future) throws Exception {
        future.get();
        return "ok";
    }

    private static List<String> rest(List<String> words) {
        return words.subList(1, words.size());
    }

    private static Set<TopicPartition> partitions(List<String> words) {
        return words.stream().map(Members::partition).collect(Collectors.toSet());
    }

    /** Every group, or with {@code state:S}, {@code type:T} and {@code protocol:P} those that fit. */
    private static Object list(Admin admin, List<String> filters) throws Exception {
        ListGroupsOptions options = new ListGroupsOptions();
        for (String filter : filters) {
            String wanted = filter.substring(filter.indexOf(':') + 1);
            switch (filter.substring(0, filter.indexOf(':'))) {
                case "state" -> options.inGroupStates(Set.of(GroupState.parse(wanted)));
                case "type" -> options.withTypes(Set.of(GroupType.parse(wanted)));
                default -> options.withProtocolTypes(Set.of(wanted));
            }
        }
        Map<String, Object> found = new TreeMap<>();
        for (GroupListing group : admin.listGroups(options).all().get()) {
            found.put(group.groupId(), List.of(group.type().map(Object::toString).orElse("?"), group.protocol(),
                    group.groupState().map(Object::toString).orElse("?")));
        }
        return found;
    }

    private static Object describeConsumer(Admin admin, List<String> names) throws Exception {
        var group = admin.describeConsumerGroups(names).all().get().get(names.get(0));
        Map<String, Object> shown = new LinkedHashMap<>();
        shown.put("type", group.type().toString());
        shown.put("state", group.groupState().toString());
        shown.put("assignor", group.partitionAssignor());
        shown.put("simple", group.isSimpleConsumerGroup());
        shown.put("coordinator", group.coordinator().id());
        shown.put("epoch", group.groupEpoch().orElse(null));
        shown.put("target_epoch", group.targetAssignmentEpoch().orElse(null));
        shown.put("members", group.members().stream().map(GroupAdmin::member).toList());
        return shown;
    }

    private static Object describeClassic(Admin admin, List<String> names) throws Exception {
        var group = admin.describeClassicGroups(names).all().get().get(names.get(0));
        Map<String, Object> shown = new LinkedHashMap<>();
        shown.put("state", group.state().toString());
        shown.put("protocol", group.protocol());
        shown.put("protocol_data", group.protocolData());
        shown.put("simple", group.isSimpleConsumerGroup());
        shown.put("members", group.members().stream().map(GroupAdmin::member).toList());
        return shown;
    }

    private static Object describeShare(Admin admin, List<String> names) throws Exception {
        var group = admin.describeShareGroups(names).all().get().get(names.get(0));
        Map<String, Object> shown = new LinkedHashMap<>();
        shown.put("state", group.groupState().toString());
        shown.put("members", group.members().stream().map(member -> Map.of("client_id", member.clientId(),
                "assignment", sorted(member.assignment().topicPartitions()))).toList());
        return shown;
    }

    private static Map<String, Object> member(MemberDescription member) {
        Map<String, Object> shown = new LinkedHashMap<>();
        shown.put("id", member.consumerId());
        shown.put("instance", member.groupInstanceId().orElse(null));
        shown.put("client_id", member.clientId());
        shown.put("host", member.host());
        shown.put("assignment", sorted(member.assignment().topicPartitions()));
        shown.put("target", member.targetAssignment().map(target -> sorted(target.topicPartitions())).orElse(null));
        shown.put("epoch", member.memberEpoch().orElse(null));
        shown.put("upgraded", member.upgraded().orElse(null));
        return shown;
    }

    private static List<String> sorted(Set<TopicPartition> partitions) {
        return partitions.stream().map(TopicPartition::toString).sorted().toList();
    }

    private static Object offsets(Admin admin, List<String> names) throws Exception {
        Map<String, Object> found = new TreeMap<>();
        admin.listConsumerGroupOffsets(names.get(0)).partitionsToOffsetAndMetadata().get()
                .forEach((partition, offset) -> found.put(partition.toString(),
                        offset == null ? null : List.of(offset.offset(), offset.metadata())));
        return found;
    }

    private static Object shareOffsets(Admin admin, List<String> names) throws Exception {
        Map<String, Object> found = new TreeMap<>();
        var spec = new org.apache.kafka.clients.admin.ListShareGroupOffsetsSpec();
        admin.listShareGroupOffsets(Map.of(names.get(0), spec)).partitionsToOffsetInfo(names.get(0)).get()
                .forEach((partition, info) -> found.put(partition.toString(), info == null ? null : info.startOffset()));
        return found;
    }

    /** The static members named by their instance ids, or all members of the group. */
    private static Object removeMembers(Admin admin, List<String> words) throws Exception {
        var members = rest(words).stream().map(MemberToRemove::new).collect(Collectors.toSet());
        var options = members.isEmpty()
                ? new RemoveMembersFromConsumerGroupOptions()
                : new RemoveMembersFromConsumerGroupOptions(members);
        return done(admin.removeMembersFromConsumerGroup(words.get(0), options).all());
    }

    private static Object transactions(Admin admin, List<String> pattern) throws Exception {
        ListTransactionsOptions options = new ListTransactionsOptions();
        if (!pattern.isEmpty()) {
            options.filterOnTransactionalIdPattern(pattern.get(0));
        }
        Map<String, Object> found = new TreeMap<>();
        admin.listTransactions(options).all().get()
                .forEach(listed -> found.put(listed.transactionalId(), listed.state().toString()));
        return found;
    }

    private static Object describeTransaction(Admin admin, List<String> ids) throws Exception {
        TransactionDescription found = admin.describeTransactions(ids).all().get().get(ids.get(0));
        Map<String, Object> shown = new LinkedHashMap<>();
        shown.put("coordinator", found.coordinatorId());
        shown.put("state", found.state().toString());
        shown.put("producer_id", found.producerId());
        shown.put("producer_epoch", found.producerEpoch());
        shown.put("timeout_ms", found.transactionTimeoutMs());
        shown.put("started", found.transactionStartTimeMs().isPresent());
        shown.put("partitions", sorted(found.topicPartitions()));
        return shown;
    }

    private static Object producers(Admin admin, List<String> words) throws Exception {
        var partition = Members.partition(words.get(0));
        List<Map<String, Object>> shown = new java.util.ArrayList<>();
        for (ProducerState state :
                admin.describeProducers(List.of(partition)).partitionResult(partition).get().activeProducers()) {
            Map<String, Object> one = new LinkedHashMap<>();
            one.put("producer_id", state.producerId());
            one.put("producer_epoch", state.producerEpoch());
            one.put("coordinator_epoch", state.coordinatorEpoch().orElse(-1));
            one.put("start", state.currentTransactionStartOffset().isPresent()
                    ? Optional.of(state.currentTransactionStartOffset().getAsLong()).get() : null);
            shown.add(one);
        }
        return shown;
    }
}
