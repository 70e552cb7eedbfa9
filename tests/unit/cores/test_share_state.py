"""The share coordinator's core."""

from uuid import UUID

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from headrace.cores.metadata import Metadata
from headrace.cores.share_state import Initialize, ShareStates, Write, coordinator_key
from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.metadata_records import PartitionRecord, RemoveTopicRecord, TopicRecord
from headrace.model.share_state_records import ShareSnapshotKey, ShareUpdateKey, StateBatch

TOPIC = UUID(int=7)
ORDERS = ("group", TOPIC, 0)
ACCEPTED = StateBatch(first_offset=0, last_offset=4, delivery_state=2, delivery_count=1)


def metadata(partitions=2):
    """A cluster with one topic."""
    state = Metadata()
    state.replay(TopicRecord(name="orders", topic_id=TOPIC))
    for index in range(partitions):
        state.replay(
            PartitionRecord(partition_id=index, topic_id=TOPIC, replicas=(1,), isr=(1,), leader=1, leader_epoch=0)
        )
    return state


def opened(updates=2, known=None):
    """A coordinator that snapshots after so many updates."""
    return ShareStates(known or metadata(), lambda: updates)


def begin(core, partition=ORDERS, *, state_epoch=1, start=-1):
    """Give a share partition a state."""
    return core.initialize(Initialize(partition=partition, state_epoch=state_epoch, start_offset=start), "t", 5)


def write(core, *batches, partition=ORDERS, state_epoch=1, leader_epoch=0, start=0, complete=0):
    """Write as the share partition's leader would."""
    command = Write(
        partition=partition,
        state_epoch=state_epoch,
        leader_epoch=leader_epoch,
        start_offset=start,
        delivery_complete_count=complete,
        batches=batches,
    )
    return core.write(command, "t", 9)


def answer(outcome):
    """The one reply of a step."""
    ((token, reply),) = outcome.replies
    assert token == "t"
    return reply


def test_key_is_kafkas():
    """Does a share partition find its coordinator by the name that Kafka uses?"""
    assert coordinator_key(("g", UUID(int=0), 3)) == "g:AAAAAAAAAAAAAAAAAAAAAA:3"


def test_what_is_written_is_read():
    """Does a leader that takes over read what was written?"""
    core = opened()
    assert answer(begin(core)) is None
    write(core, ACCEPTED, complete=5)

    state = answer(core.read(ORDERS, 0, "t", 9))

    assert (state.start_offset, state.state_epoch, state.batches) == (0, 1, (ACCEPTED,))
    assert answer(core.read_summary(ORDERS, "t")).delivery_complete_count == 5


def test_snapshot_after_enough_updates():
    """Is every third write a snapshot if two updates may follow one?"""
    core = opened(updates=2)
    begin(core)

    kinds = [type(write(core, ACCEPTED).records[0][0]) for _ in range(6)]

    assert kinds == [ShareUpdateKey, ShareUpdateKey, ShareSnapshotKey] * 2
    assert core.states[ORDERS].snapshot_epoch == 2


def test_new_leader_shuts_the_old_one_out():
    """Is a write of the leader before refused once a new one has read, also after the log was read again?"""
    core = opened()
    begin(core)
    records = [*begin(core).records, *core.read(ORDERS, 3, "t", 9).records]
    again = opened()
    for key, value in records:
        again.replay(key, value)

    for state in (core, again):
        for refused in (lambda s=state: write(s, leader_epoch=2), lambda s=state: s.read(ORDERS, 2, "t", 9)):
            with pytest.raises(KafkaError) as caught:
                refused()
            assert caught.value.code == ErrorCode.FENCED_LEADER_EPOCH


def test_state_set_anew_shuts_out_who_knows_the_old_one():
    """Is a write under an older state epoch refused, and setting the state to an older one too?"""
    core = opened()
    begin(core, state_epoch=1)
    begin(core, state_epoch=4, start=3)

    for refused in (lambda: write(core, state_epoch=1), lambda: begin(core, state_epoch=3)):
        with pytest.raises(KafkaError) as caught:
            refused()
        assert caught.value.code == ErrorCode.FENCED_STATE_EPOCH
    assert core.states[ORDERS].start_offset == 3


@pytest.mark.parametrize(
    ("step", "code"),
    [
        (write, ErrorCode.INVALID_REQUEST),
        (lambda core: core.read(ORDERS, 0, "t", 9), ErrorCode.INVALID_REQUEST),
        (lambda core: begin(core, ("g", TOPIC, -1)), ErrorCode.INVALID_REQUEST),
        (lambda core: begin(core, start=-2), ErrorCode.INVALID_REQUEST),
        (lambda core: begin(core, ("g", TOPIC, 2)), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (lambda core: begin(core, ("g", UUID(int=8), 0)), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (lambda core: core.delete(("g", UUID(int=8), 0), "t"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (lambda core: core.read_summary(("g", UUID(int=8), 0), "t"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_what_is_not_there_is_refused(step, code):
    """Is a share partition without a state, or of no topic, answered with its error?"""
    core = opened()

    with pytest.raises(KafkaError) as caught:
        step(core)

    assert (caught.value.code, core.states) == (code, {})


@pytest.mark.parametrize(
    "fields",
    [
        {"batch": StateBatch(first_offset=4, last_offset=3)},
        {"batch": StateBatch(first_offset=-1, last_offset=3)},
        {"batch": StateBatch(first_offset=0, last_offset=2**63 - 1)},
        {"batch": StateBatch(delivery_state=3)},
        {"batch": StateBatch(delivery_count=-1)},
        {"start": -2},
    ],
)
def test_what_makes_no_sense_is_refused(fields):
    """Is a write that no leader would send refused, so that nobody has to read it?"""
    core = opened()
    begin(core)
    before = core.hard_state()

    with pytest.raises(KafkaError) as caught:
        write(core, fields.get("batch", ACCEPTED), start=fields.get("start", 0))

    assert (caught.value.code, core.hard_state()) == (ErrorCode.INVALID_REQUEST, before)


def test_deleted_state_is_gone():
    """Is nothing left of a deleted share partition, and deleting twice fine?"""
    core = opened()
    begin(core)

    assert core.delete(ORDERS, "t").records == [(ShareSnapshotKey(group_id="group", topic_id=TOPIC, partition=0), None)]
    assert core.delete(ORDERS, "t").records == []
    assert answer(core.read_summary(ORDERS, "t")) is None


def test_snapshots_stand_for_all_before_them():
    """Can the log begin at the snapshots, with the share partitions of deleted topics forgotten?"""
    known = metadata()
    core = opened(updates=500, known=known)
    begin(core)
    write(core, ACCEPTED)
    outcome = core.snapshot(list(core.states), "t", 11)
    again = opened(updates=500)
    for key, value in outcome.records:
        again.replay(key, value)

    assert again.hard_state() == core.hard_state()
    known.replay(RemoveTopicRecord(topic_id=TOPIC))
    core.snapshot(list(core.states), "t", 12)
    assert core.states == {}


class Coordination(RuleBasedStateMachine):
    """Whatever is asked of the core, replaying its records gives the same state."""

    @initialize(updates=st.integers(0, 3))
    def open(self, updates):
        self.core = opened(updates)
        self.log = []
        self.updates = updates

    def run_step(self, step):
        """Take a step; its records go to the log, its refusal changes nothing."""
        before = self.core.hard_state()
        try:
            outcome = step()
        except KafkaError:
            assert self.core.hard_state() == before
        else:
            assert len(outcome.replies) == 1
            self.log += outcome.records

    @rule(index=st.integers(-1, 2), state_epoch=st.integers(-1, 3), start=st.integers(-1, 5))
    def begin(self, index, state_epoch, start):
        self.run_step(lambda: begin(self.core, ("g", TOPIC, index), state_epoch=state_epoch, start=start))

    @rule(
        index=st.integers(0, 1),
        first=st.integers(0, 8),
        more=st.integers(-1, 3),
        start=st.integers(-1, 6),
        state=st.sampled_from([0, 2, 4]),
        state_epoch=st.integers(-1, 4),
        leader_epoch=st.integers(-1, 3),
    )
    def write(self, index, first, more, start, state, state_epoch, leader_epoch):
        batch = StateBatch(first_offset=first, last_offset=first + more, delivery_state=state, delivery_count=1)
        self.run_step(
            lambda: write(
                self.core,
                batch,
                partition=("g", TOPIC, index),
                state_epoch=state_epoch,
                leader_epoch=leader_epoch,
                start=start,
            )
        )

    @rule(index=st.integers(0, 1), leader_epoch=st.integers(-1, 3))
    def read(self, index, leader_epoch):
        self.run_step(lambda: self.core.read(("g", TOPIC, index), leader_epoch, "t", 9))

    @rule(index=st.integers(0, 1))
    def delete(self, index):
        self.run_step(lambda: self.core.delete(("g", TOPIC, index), "t"))

    @rule()
    def snapshot(self):
        self.run_step(lambda: self.core.snapshot(list(self.core.states), "t", 3))

    @invariant()
    def replayed_is_lived(self):
        again = opened(self.updates)
        for key, value in self.log:
            again.replay(key, value)
        assert again.hard_state() == self.core.hard_state()


TestCoordination = Coordination.TestCase
