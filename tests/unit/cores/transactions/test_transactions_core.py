"""Any order of what producers, partitions, time and failovers do to one shard of the coordinator."""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from headrace.cores.transactions import expiry
from headrace.cores.transactions.ending import NeedsProducerId
from headrace.cores.transactions.limits import TransactionLimits, limits_from
from headrace.cores.transactions.refusals import wrong_state
from headrace.cores.transactions.state import BY_TITLE, COMMITS, PREPARED, PREVIOUS, TransactionState
from headrace.cores.transactions.transaction import Transaction, from_record, to_record
from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.transaction_records import TransactionLogKey

NAMES = st.sampled_from(["t", "u"])
PARTITIONS = st.frozensets(st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 2)), min_size=1, max_size=3)


class AnyOrder(RuleBasedStateMachine):
    """Producers remember every identity they were ever given and use any of them at any time."""

    make = None

    def __init__(self):
        super().__init__()
        self.coordinator = type(self).make(transaction_version=2, id_expiration_ms=5000)
        self.given = {"t": [(5, 0)], "u": [(5, 0)]}

    def tried(self, ask, *arguments, **more):
        """The reply, or None if refused; a refusal must have changed nothing but for an aborted rival."""
        before = self.coordinator.core.hard_state()
        try:
            reply = ask(*arguments, **more)
        except KafkaError as error:
            if error.code != ErrorCode.CONCURRENT_TRANSACTIONS:
                assert self.coordinator.core.hard_state() == before
            return None
        return reply

    def identity(self, data, name):
        """Some identity the transactional id has or had."""
        return data.draw(st.sampled_from(self.given[name][-4:]))

    @rule(name=NAMES, data=st.data(), knows=st.booleans())
    def init(self, name, data, knows):
        """A producer comes up, or back."""
        expected = self.identity(data, name) if knows else None
        reply = self.tried(self.coordinator.init, name, expected=expected, timeout_ms=500)
        if reply is not None:
            self.given[name].append(reply)

    @rule(name=NAMES, data=st.data(), partitions=PARTITIONS, version=st.sampled_from([0, 2]))
    def add(self, name, data, partitions, version):
        """A producer writes."""
        self.tried(self.coordinator.add, self.identity(data, name), *partitions, name=name, version=version)

    @rule(name=NAMES, data=st.data(), commit=st.booleans(), version=st.sampled_from([0, 2]))
    def end(self, name, data, commit, version):
        """A producer ends its transaction, or thinks so."""
        identity = self.identity(data, name)
        before = self.coordinator.core.transactions.get(name)
        reply = self.tried(self.coordinator.end, identity, commit=commit, name=name, version=version)
        if reply is None:
            return
        self.given[name].append(reply)
        after = self.coordinator.core.transactions[name]
        # What is answered as done is what has been decided.
        assert (after.state in COMMITS) == commit
        if before.state is TransactionState.ONGOING:
            assert before.identity == identity

    @rule()
    def write_markers(self):
        """All markers that were asked for are written."""
        self.coordinator.write_markers()

    @rule(ms=st.sampled_from([1, 100, 3000]), timer=st.sampled_from([expiry.ABORT, expiry.REMOVE]))
    def time_passes(self, ms, timer):
        """A timer runs out, in time or not."""
        self.coordinator.now_ms += ms
        self.coordinator.take(self.coordinator.core.on_timer((timer,), self.coordinator.now_ms))
        asked = {effect for effect in self.coordinator.effects if isinstance(effect, NeedsProducerId)}
        self.coordinator.effects = [effect for effect in self.coordinator.effects if effect not in asked]
        for effect in asked:
            self.coordinator.abort_late(effect)

    @rule(name=NAMES)
    def use_up_epochs(self, name):
        """A producer gets to its last epochs."""
        known = self.coordinator.core.transactions.get(name)
        if known is None or known.state is not TransactionState.EMPTY or known.producer_epoch > 3:
            return
        self.given[name].append(self.coordinator.at_epoch(32764, name=name))

    @precondition(lambda self: self.coordinator.log)
    @rule()
    def fail_over(self):
        """Another coordinator takes over, with nothing but the log."""
        self.coordinator.fail_over()

    @invariant()
    def decided_means_markers(self):
        """Is every decided transaction one whose markers have been asked for?"""
        asked = {effect.transactional_id for effect in self.coordinator.effects if hasattr(effect, "partitions")}
        prepared = {name for name, each in self.coordinator.core.transactions.items() if each.state in PREPARED}
        assert asked >= prepared

    @invariant()
    def epochs_never_go_back(self):
        """Does the log never give an identity that is older than one before it, nor two ends to one transaction?"""
        last, fates = {}, {}
        for key, value in self.coordinator.log:
            if value is None:
                continue
            name = key.transactional_id
            current = (value.producer_id, value.producer_epoch)
            assert current >= last.get(name, current)
            last[name] = current
            state = TransactionState(value.transaction_status)
            if state in PREPARED:
                assert fates.get(name) is None, "decided twice"
                fates[name] = state in COMMITS
            elif state in (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT):
                assert fates.pop(name) == (state in COMMITS)


def test_any_order(make_coordinator):
    """Do state and log agree, epochs only grow, and transactions end once, whatever happens in whatever order?"""
    from hypothesis.stateful import run_state_machine_as_test

    AnyOrder.make = make_coordinator
    run_state_machine_as_test(AnyOrder)


def test_records_keep_everything():
    """Is a transactional id the same after going through its record?"""
    transaction = Transaction(
        transactional_id="t",
        producer_id=1,
        producer_epoch=2,
        state=TransactionState.PREPARE_COMMIT,
        timeout_ms=3,
        updated_ms=5,
        started_ms=4,
        partitions=frozenset({("b", 1), ("a", 2), ("a", 0)}),
        previous_producer_id=6,
        next_producer_id=7,
        version=2,
    )
    key, value = to_record(transaction)

    assert from_record(key, value) == transaction
    assert [(each.topic, each.partition_ids) for each in value.transaction_partitions] == [("a", (0, 2)), ("b", (1,))]


def test_forgetting_what_is_not_known(coordinator):
    """Does a record that forgets an id do so, and do no harm when the id is not known, as after compaction?"""
    coordinator.init()
    for name in ("t", "nobody"):
        coordinator.core.replay(TransactionLogKey(transactional_id=name), None)

    assert coordinator.core.hard_state() == {}


def test_states_have_kafkas_names():
    """Do tools see the names that they know?"""
    assert TransactionState.PREPARE_EPOCH_FENCE.title == "PrepareEpochFence"
    assert BY_TITLE["CompleteAbort"] is TransactionState.COMPLETE_ABORT
    assert "Ongoing" in wrong_state("t", TransactionState.ONGOING, commit=True).message


def test_unwritten_states_are_never_entered(coordinator):
    """Does the coordinator refuse to enter a state that does not follow from the one before?"""
    from headrace.cores.outcome import Outcome

    coordinator.init()
    known = coordinator.core.transactions["t"]
    assert set(PREVIOUS) == set(TransactionState) - {TransactionState.DEAD, TransactionState.PREPARE_EPOCH_FENCE}
    with pytest.raises(AssertionError):
        coordinator.core.emit(Outcome(), known.moved(TransactionState.COMPLETE_COMMIT))


def test_limits_are_read_from_the_settings():
    """Do the settings' names lead to the limits, and is a cluster without the feature at version 0?"""
    settings = {
        "transaction.max.timeout.ms": 1,
        "transactional.id.expiration.ms": 2,
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": 3,
        "transaction.remove.expired.transaction.cleanup.interval.ms": 4,
    }
    expected = TransactionLimits(
        timeout_ms_max=1, id_expiration_ms=2, abort_interval_ms=3, removal_interval_ms=4, transaction_version=0
    )

    assert limits_from(settings, {}) == expected
    assert limits_from(settings, {"transaction.version": 2}).transaction_version == 2
