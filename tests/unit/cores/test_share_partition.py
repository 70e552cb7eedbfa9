"""A share partition at its leader."""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from headrace.cores.share_partition import ShareLimits, SharePartition
from headrace.cores.share_partition_acknowledgements import ACCEPT, GAP, REJECT, RELEASE, RENEW, Acknowledgement
from headrace.cores.share_partition_runs import RUNS_MAX
from headrace.cores.share_partition_take import Acquired
from headrace.cores.share_state_batches import combine
from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.share_state_records import StateBatch

LIMITS = ShareLimits(locks_max=100, deliveries_max=9, lock_duration_ms=1000)
TEN = [(0, 9)]


def opened(limits=LIMITS, *, start=0, batches=()):
    """A share partition that begins at `start`."""
    return SharePartition(start, batches, lambda: limits)


def take(partition, member="a", fetched=TEN, *, records=100, size=100, strict=False, now_ms=0):
    """Acquire from batches as the log has them, from where the partition wants to read."""
    return partition.acquire(
        member,
        [extent for extent in fetched if extent[1] >= partition.fetch_offset],
        fetch_offset=partition.fetch_offset,
        records_max=records,
        batch_size=size,
        strict=strict,
        now_ms=now_ms,
    )


def say(partition, kind, first, last, member="a", *, now_ms=0):
    """Acknowledge and write it down at once."""
    write = partition.acknowledge(member, [Acknowledgement(first, last, (kind,))], now_ms)
    if write is not None:
        partition.written(write.number)
    return write


def test_records_go_to_one_member_at_a_time():
    """Does a second member get nothing of what the first one has?"""
    partition = opened()

    assert take(partition, "a") == [Acquired(0, 9, 1)]
    assert take(partition, "b") == []


def test_accepted_records_are_done():
    """Does the start move past accepted records, also if they come out of order?"""
    partition = opened()
    take(partition)

    say(partition, ACCEPT, 5, 9)
    assert (partition.start_offset, partition.delivery_complete_count) == (0, 5)
    say(partition, ACCEPT, 0, 4)

    assert (partition.start_offset, partition.next_offset, partition.delivery_complete_count) == (10, 10, 0)
    assert take(partition) == []


def test_released_records_come_again():
    """Are released records handed out again, with a higher count, and given up after the last delivery?"""
    partition = opened(ShareLimits(locks_max=100, deliveries_max=2, lock_duration_ms=1000))
    counts = []
    for _ in range(2):
        counts += [one.delivery_count for one in take(partition)]
        say(partition, RELEASE, 0, 9)

    assert counts == [1, 2]
    assert (partition.start_offset, take(partition)) == (10, [])


def test_what_comes_back_often_is_handed_out_carefully():
    """Do records that came back come in smaller portions, and for the last time each alone, to find the bad one?"""
    partition = opened(ShareLimits(locks_max=100, deliveries_max=5, lock_duration_ms=1000))
    for _ in range(3):
        assert [one[:2] for one in take(partition, fetched=[(0, 7)])] == [(0, 7)]
        say(partition, RELEASE, 0, 7)

    halves = [take(partition, fetched=[(0, 11)])[0] for _ in range(4)]
    assert halves == [Acquired(0, 3, 4), Acquired(4, 5, 4), Acquired(6, 6, 4), Acquired(7, 7, 4)]
    for one in halves:
        say(partition, RELEASE, one.first_offset, one.last_offset)
    assert [take(partition, fetched=[(0, 11)]) for _ in range(9)] == [
        *([Acquired(offset, offset, 5)] for offset in range(8)),
        [Acquired(8, 11, 1)],
    ]


@pytest.mark.parametrize("kind", [REJECT, GAP])
def test_rejected_records_do_not_come_again(kind):
    """Are rejected records and gaps done for good at once?"""
    partition = opened()
    take(partition)

    write = say(partition, kind, 0, 3)

    assert write.batches == (StateBatch(first_offset=0, last_offset=3, delivery_state=4, delivery_count=1),)
    assert partition.start_offset == 4


def test_one_kind_for_each_offset():
    """Can one acknowledgement say different things of its offsets?"""
    partition = opened()
    take(partition)

    write = partition.acknowledge("a", [Acknowledgement(0, 4, (ACCEPT, ACCEPT, RELEASE, REJECT, GAP))], 0)
    partition.written(write.number)

    assert [(one.first_offset, one.last_offset, one.delivery_state) for one in write.batches] == [
        (0, 1, 2),
        (2, 2, 0),
        (3, 3, 4),
        (4, 4, 4),
    ]
    assert take(partition, "b") == [Acquired(2, 2, 2)]


def test_lock_runs_out():
    """Do records that were held for too long come back, and those that were renewed stay?"""
    partition = opened()
    take(partition)
    assert say(partition, RENEW, 5, 9, now_ms=600) is None
    assert partition.expire(999) is None

    write = partition.expire(partition.next_deadline_ms)

    assert (write.number, [(one.first_offset, one.last_offset) for one in write.batches]) == (None, [(0, 4)])
    assert partition.next_deadline_ms == 1600
    assert take(partition, "b") == [Acquired(0, 4, 2)]


def test_renewal_can_be_forbidden():
    """Is a renewal refused where the group does not allow it?"""
    partition = opened(ShareLimits(locks_max=100, deliveries_max=9, lock_duration_ms=1000, is_renewing_allowed=False))
    take(partition)

    with pytest.raises(KafkaError) as caught:
        say(partition, RENEW, 0, 9)
    assert caught.value.code == ErrorCode.INVALID_RECORD_STATE


@pytest.mark.parametrize(
    ("member", "acknowledgements", "code"),
    [
        ("b", [Acknowledgement(0, 4, (ACCEPT,))], ErrorCode.INVALID_RECORD_STATE),
        ("a", [Acknowledgement(5, 10, (ACCEPT,))], ErrorCode.INVALID_REQUEST),
        ("a", [Acknowledgement(20, 20, (ACCEPT,))], ErrorCode.INVALID_REQUEST),
        ("a", [Acknowledgement(4, 3, (ACCEPT,))], ErrorCode.INVALID_REQUEST),
        ("a", [Acknowledgement(-5, -1, (ACCEPT,))], ErrorCode.INVALID_REQUEST),
        ("a", [Acknowledgement(0, 4, (ACCEPT,)), Acknowledgement(4, 5, (ACCEPT,))], ErrorCode.INVALID_REQUEST),
        ("a", [Acknowledgement(0, 4, ())], ErrorCode.INVALID_REQUEST),
        ("a", [Acknowledgement(0, 4, (ACCEPT, ACCEPT))], ErrorCode.INVALID_REQUEST),
        ("a", [Acknowledgement(0, 4, (5,))], ErrorCode.INVALID_REQUEST),
        ("a", [Acknowledgement(0, 4, (-1,))], ErrorCode.INVALID_REQUEST),
        ("a", [Acknowledgement(0, 4, (ACCEPT,)), Acknowledgement(5, 10, (ACCEPT,))], ErrorCode.INVALID_REQUEST),
    ],
)
def test_senseless_acknowledgement_changes_nothing(member, acknowledgements, code):
    """Is an acknowledgement that cannot be refused as a whole?"""
    partition = opened()
    take(partition)

    with pytest.raises(KafkaError) as caught:
        partition.acknowledge(member, acknowledgements, 0)

    assert caught.value.code == code
    assert partition.held_by("a") == [(0, 9)]


def test_records_can_be_spoken_of_one_by_one_up_to_a_limit():
    """May each of many records get another answer, while one request or many cannot cut a partition to shreds?"""
    partition = opened()
    take(partition, fetched=[(0, 3 * RUNS_MAX - 1)])
    too_many = (ACCEPT, RELEASE) * RUNS_MAX

    with pytest.raises(KafkaError, match="Too many acknowledgements"):
        partition.acknowledge("a", [Acknowledgement(0, 2 * RUNS_MAX - 1, too_many)], 0)
    with pytest.raises(KafkaError, match="Too many acknowledgements"):
        partition.acknowledge("a", [Acknowledgement(at, at, (kind,)) for at, kind in enumerate(too_many)], 0)
    with pytest.raises(KafkaError, match="Too many different things") as caught:
        partition.acknowledge("a", [Acknowledgement(1, RUNS_MAX, too_many[:RUNS_MAX])], 0)
    assert caught.value.code == ErrorCode.INVALID_REQUEST
    assert partition.held_by("a") == [(0, 3 * RUNS_MAX - 1)]

    partition.acknowledge("a", [Acknowledgement(0, RUNS_MAX - 2, too_many[: RUNS_MAX - 1])], 0)
    with pytest.raises(KafkaError, match="Too many different things"):
        partition.acknowledge("a", [Acknowledgement(RUNS_MAX, RUNS_MAX + 8, too_many[:9])], 0)

    assert partition.held_by("a")[-1] == (RUNS_MAX - 1, 3 * RUNS_MAX - 1)


def test_full_partition_can_be_emptied():
    """Does a partition that is cut into all the runs it may be let members finish what they have?"""
    known = [
        StateBatch(first_offset=at, last_offset=at, delivery_state=0, delivery_count=1 + at % 2)
        for at in range(RUNS_MAX)
    ]
    partition = opened(batches=known)
    take(partition, fetched=[(0, RUNS_MAX - 1)], records=RUNS_MAX)
    assert len(partition.held_by("a")) == RUNS_MAX

    say(partition, ACCEPT, 1, 1)
    whole = [Acknowledgement(at, at, (ACCEPT,)) for at in range(2, RUNS_MAX)]
    partition.written(partition.acknowledge("a", whole, 0).number)
    say(partition, ACCEPT, 0, 0)

    assert partition.start_offset == RUNS_MAX


def test_acknowledging_twice_is_refused():
    """Is a record that is already spoken for refused, while the write is under way and after it?"""
    partition = opened()
    take(partition)
    write = partition.acknowledge("a", [Acknowledgement(3, 3, (ACCEPT,))], 0)

    for _ in range(2):
        with pytest.raises(KafkaError) as caught:
            say(partition, RELEASE, 3, 3)
        assert caught.value.code == ErrorCode.INVALID_RECORD_STATE
        partition.written(write.number)


def test_acknowledging_what_lies_before_the_start_is_fine():
    """Is an acknowledgement of records that the log has dropped passed over?"""
    partition = opened()
    take(partition)
    partition.move_start(6)

    assert say(partition, ACCEPT, 0, 5) is None
    write = say(partition, ACCEPT, 4, 7)

    assert [(one.first_offset, one.last_offset) for one in write.batches] == [(6, 7)]
    assert partition.start_offset == 8


def test_failed_write_undoes_the_decision():
    """Do records stay with their holder if what it said could not be written down?"""
    partition = opened()
    take(partition)
    write = partition.acknowledge("a", [Acknowledgement(0, 9, (RELEASE,))], 0)
    assert take(partition, "b") == []

    partition.write_failed(write.number)

    assert partition.held_by("a") == [(0, 9)]
    assert partition.expire(1000) is not None


def test_member_that_goes_gives_back_what_it_has():
    """Do the records of a member that left go to others, and only those?"""
    partition = opened()
    take(partition, "a", [(0, 4), (5, 9)], records=5)
    take(partition, "b", [(0, 4), (5, 9)])

    partition.written(partition.release("a").number)

    assert partition.release("a") is None
    assert take(partition, "c") == [Acquired(0, 4, 2)]


@pytest.mark.parametrize(("strict", "expected"), [(True, Acquired(0, 2, 1)), (False, Acquired(0, 4, 1))])
def test_batches_are_kept_whole_unless_asked(strict, expected):
    """Is the number of records met to the record where asked, and else to the batch?"""
    assert take(opened(), fetched=[(0, 4), (5, 9)], records=3, strict=strict) == [expected]


def test_portions_follow_the_batches():
    """Is the member told in portions of the size it asked for, cut where batches end?"""
    fetched = [(0, 2), (3, 4), (5, 9), (10, 11)]

    assert take(opened(), fetched=fetched, size=4) == [Acquired(0, 4, 1), Acquired(5, 9, 1), Acquired(10, 11, 1)]


def test_locks_are_limited():
    """Is nothing new handed out while too much is under way, but what came back is?"""
    partition = opened(ShareLimits(locks_max=5, deliveries_max=3, lock_duration_ms=1000))
    fetched = [(0, 4), (5, 9)]
    take(partition, fetched=fetched)
    assert not partition.can_acquire
    assert take(partition, fetched=fetched) == []

    say(partition, RELEASE, 2, 3)

    assert partition.can_acquire
    assert take(partition, "b", fetched) == [Acquired(2, 3, 2)]
    say(partition, ACCEPT, 0, 1)
    assert take(partition, "b", fetched) == [Acquired(5, 9, 1)]


def test_records_that_vanished_from_the_log_are_passed_over():
    """Are records that compaction took away not waited for, at the start of what was read and behind the end?"""
    partition = opened()
    take(partition)
    say(partition, RELEASE, 0, 9)

    assert take(partition, fetched=[(4, 6)]) == [Acquired(4, 6, 2)]
    assert partition.start_offset == 4
    assert take(partition, fetched=[(12, 14)]) == [Acquired(12, 14, 1)]
    say(partition, ACCEPT, 4, 6)
    assert partition.start_offset == 12


def test_aborted_records_are_archived():
    """Are records that must not be seen done for good, once acquired?"""
    partition = opened()
    take(partition)

    partition.discard("a", 0, 3)

    assert (partition.start_offset, partition.held_by("a")) == (4, [(4, 9)])


def test_gaps_between_written_batches_are_free():
    """Does a new leader hand out what was out with somebody when the old one went?"""
    batches = [
        StateBatch(first_offset=3, last_offset=4, delivery_state=2, delivery_count=1),
        StateBatch(first_offset=5, last_offset=6, delivery_state=0, delivery_count=2),
    ]
    partition = opened(start=1, batches=batches)

    assert (partition.start_offset, partition.next_offset, partition.fetch_offset) == (1, 7, 1)
    assert take(partition) == [Acquired(1, 2, 1), Acquired(5, 6, 3), Acquired(7, 9, 1)]


def test_lower_limit_gives_up_what_was_delivered_more_often():
    """Is a record that was delivered more often than a lowered limit allows not delivered again?"""
    partition = opened(batches=[StateBatch(first_offset=0, last_offset=4, delivery_state=0, delivery_count=9)])

    assert take(partition) == [Acquired(5, 9, 1)]
    assert partition.start_offset == 5


MEMBERS = st.sampled_from("abc")


class Deliveries(RuleBasedStateMachine):
    """A share partition against a dictionary with one entry for each record."""

    def __init__(self):
        super().__init__()
        self.partition = opened(ShareLimits(locks_max=15, deliveries_max=3, lock_duration_ms=10))
        self.log = []
        self.now_ms = 0
        self.holder = {}
        self.deliveries = {}
        self.done = set()
        self.writes = []
        self.written = ()

    def persist(self, write):
        """What the state topic would know."""
        self.written = combine(self.written, write.batches, write.start_offset)

    @rule(count=st.integers(1, 5))
    def produce(self, count):
        first = self.log[-1][1] + 1 if self.log else 0
        self.log.append((first, first + count - 1))

    @precondition(lambda self: self.log)
    @rule(member=MEMBERS, records=st.integers(1, 8), strict=st.booleans())
    def acquire(self, member, records, strict):
        for one in take(self.partition, member, self.log, records=records, size=3, strict=strict, now_ms=self.now_ms):
            for offset in range(one.first_offset, one.last_offset + 1):
                assert offset not in self.holder
                assert offset not in self.done
                self.deliveries[offset] = self.deliveries.get(offset, 0) + 1
                assert one.delivery_count == self.deliveries[offset] <= 3
                self.holder[offset] = (member, self.now_ms + 10)

    @precondition(lambda self: self.holder)
    @rule(data=st.data(), kind=st.sampled_from([ACCEPT, RELEASE, REJECT, RENEW]), works=st.booleans())
    def acknowledge(self, data, kind, works):
        first = data.draw(st.sampled_from(sorted(self.holder)))
        member, _ = self.holder[first]
        last = first
        while data.draw(st.booleans()) and self.holder.get(last + 1, (None,))[0] == member:
            last += 1
        write = self.partition.acknowledge(member, [Acknowledgement(first, last, (kind,))], self.now_ms)
        for offset in range(first, last + 1):
            if kind == RENEW:
                self.holder[offset] = (member, self.now_ms + 10)
            elif works:
                del self.holder[offset]
                if kind != RELEASE or self.deliveries[offset] == 3:
                    self.done.add(offset)
        if kind == RENEW:
            assert write is None
        elif works:
            self.persist(write)
            self.partition.written(write.number)
        else:
            self.partition.write_failed(write.number)

    @rule(member=MEMBERS)
    def leave(self, member):
        write = self.partition.release(member)
        mine = [offset for offset, (holder, _) in self.holder.items() if holder == member]
        assert (write is not None) == bool(mine)
        if write is not None:
            self.persist(write)
            self.partition.written(write.number)
        self.take_back(mine)

    def take_back(self, offsets):
        """They are free again, or were out for the last time."""
        for offset in offsets:
            del self.holder[offset]
            if self.deliveries[offset] == 3:
                self.done.add(offset)

    @rule(passed_ms=st.integers(1, 12))
    def wait(self, passed_ms):
        self.now_ms += passed_ms
        late = [offset for offset, (_, deadline_ms) in self.holder.items() if deadline_ms <= self.now_ms]
        write = self.partition.expire(self.now_ms)
        assert (write is not None) == bool(late)
        if write is not None:
            self.persist(write)
        self.take_back(late)

    @precondition(lambda self: self.log)
    @rule(data=st.data())
    def lose_the_beginning(self, data):
        start = data.draw(st.integers(0, self.log[-1][1] + 1))
        self.partition.move_start(start)
        for offset in range(start):
            self.holder.pop(offset, None)
            self.done.add(offset)

    @rule()
    def fail_over(self):
        """A new leader that knows what was written knows which records are done."""
        from_topic = opened(
            ShareLimits(locks_max=15, deliveries_max=3, lock_duration_ms=10),
            start=self.partition.start_offset,
            batches=self.written,
        )
        known = {
            offset: (one.delivery_state, one.delivery_count)
            for one in from_topic.state_batches()
            for offset in range(one.first_offset, one.last_offset + 1)
        }
        for offset in range(self.partition.start_offset, self.partition.next_offset):
            was_done = offset in self.done
            if offset in known:
                assert (known[offset][0] in {2, 4}) == was_done
            else:
                assert not was_done or offset < from_topic.start_offset

    @invariant()
    def agrees(self):
        """The partition knows of every record what the dictionary knows."""
        held = {
            offset: member
            for member in "abc"
            for first, last in self.partition.held_by(member)
            for offset in range(first, last + 1)
        }
        assert held == {offset: member for offset, (member, _) in self.holder.items()}
        assert all(offset in self.done for offset in range(self.partition.start_offset))
        behind = [offset for offset in self.done if self.partition.start_offset <= offset < self.partition.next_offset]
        assert self.partition.delivery_complete_count == len(behind)
        assert self.partition.start_offset not in self.done or self.partition.start_offset >= self.partition.next_offset
        deadlines = [deadline_ms for _, deadline_ms in self.holder.values()]
        assert self.partition.next_deadline_ms == min(deadlines, default=None)


TestDeliveries = Deliveries.TestCase
