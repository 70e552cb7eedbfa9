"""Transactions on one log, against a model: what is stable, what was aborted, and what a read_committed reader sees.

The reader here does what clients do: of each fetch it takes the list of aborted transactions, and passes over a
producer's batches from the first offset of one to the abort marker.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.cores.producers import ProducerStates
from headrace.model.log_config import LogConfig
from headrace.records.batch import read_header, split_batches
from headrace.records.build import NewRecord, build_batch
from headrace.records.control import AbortedTransaction, EndTransactionMarker, build_end_marker, read_end_marker
from headrace.records.walk import walk
from headrace.storage.cleaner import Cleaner
from headrace.storage.log import Log
from headrace.storage.memory_files import MemoryFiles

DIRECTORY = "/data"
PATH = f"{DIRECTORY}/bank-0"
DAY = 86_400_000
NOW = 1_700_000_000_000
CONFIG = LogConfig(segment_bytes=450, index_interval_bytes=100, retention_ms=-1)
COMPACTED = replace(CONFIG, cleanup_compact=True, cleanup_delete=False, delete_retention_ms=DAY)
PRODUCERS = 3

Written = dict[int, tuple[bytes, bytes]]


@dataclass
class Transaction:
    """What the model knows of one transaction."""

    producer_id: int
    first_offset: int
    records: Written = field(default_factory=dict)
    last_offset: int = -1
    committed: bool = False


class Model:
    """Every transaction and every plain record; only the rules, no cleverness."""

    def __init__(self) -> None:
        self.transactions: list[Transaction] = []
        self.plain: Written = {}

    def open(self, producer_id: int) -> Transaction | None:
        """The producer's open transaction."""
        found = [t for t in self.transactions if t.producer_id == producer_id and t.last_offset < 0]
        return found[0] if found else None

    def forget_from(self, offset: int) -> None:
        """The log was cut there."""
        self.plain = {key: value for key, value in self.plain.items() if key < offset}
        self.transactions = [t for t in self.transactions if t.first_offset < offset]
        for transaction in self.transactions:
            transaction.records = {key: value for key, value in transaction.records.items() if key < offset}
            if transaction.last_offset >= offset:
                transaction.last_offset = -1

    def last_stable_offset(self, high_watermark: int) -> int:
        """Below every transaction that is open, or whose end is not safe."""
        unstable = [t.first_offset for t in self.transactions if t.last_offset < 0 or t.last_offset >= high_watermark]
        return min([high_watermark, *unstable])

    def aborted(self, start: int, end: int) -> set[tuple[int, int]]:
        """Producer and first offset of those aborted that touch a range."""
        return {
            (t.producer_id, t.first_offset)
            for t in self.transactions
            if t.last_offset >= start and not t.committed and t.first_offset < end
        }

    def committed(self, end: int) -> Written:
        """What a read_committed reader is to see."""
        seen = dict(self.plain)
        for transaction in self.transactions:
            if transaction.committed and transaction.last_offset >= 0:
                seen |= transaction.records
        return {offset: seen[offset] for offset in sorted(seen) if offset < end}


class Bank:
    """A log with its producers as a leader uses them, its disk, and the model beside it."""

    def __init__(self, config: LogConfig = CONFIG) -> None:
        self.files = MemoryFiles()
        self.files.mkdir(DIRECTORY)
        self.files.fsync_dir("/")
        self.config = config
        self.model = Model()
        self.count = 0
        self.bounds = [0]
        self.chance = Random(1)
        self.now_ms = NOW
        self.open(clean=False)

    def open(self, *, clean: bool, recovery_point: int = 0) -> None:
        """Start on what the disk has."""
        self.producers = ProducerStates()
        self.log = Log.open(
            self.files,
            PATH,
            config=self.config,
            now_ms=NOW,
            clean_shutdown=clean,
            recovery_point=recovery_point,
            log_start_offset=0,
            producers=self.producers,
        )
        self.rise()

    def rise(self) -> None:
        """Everything is safe."""
        self.log.high_watermark = self.log.log_end_offset
        self.producers.advance(self.log.high_watermark)

    @property
    def last_stable_offset(self) -> int:
        """As the partition computes it."""
        return min(self.log.high_watermark, self.producers.first_unstable_offset)

    def append(self, batch: bytearray) -> int:
        """Write one batch."""
        offset = self.log.append(memoryview(batch), read_header(batch), leader_epoch=0, now_ms=self.now_ms)
        self.bounds.append(self.log.log_end_offset)
        return offset

    def key(self) -> bytes:
        """One of many keys; few come again soon."""
        return b"k%d" % self.chance.randrange(40)

    def advance(self, seed: int) -> None:
        """A part of what is written becomes visible, flushed or not; where a table is cleaned only what is flushed."""
        limit = self.log.recovery_point if self.config is COMPACTED else self.log.log_end_offset
        high_watermark = Random(seed).choice([b for b in self.bounds if b <= limit])
        if high_watermark > self.log.high_watermark:
            self.log.high_watermark = high_watermark
            self.producers.advance(high_watermark)

    def write(self, producer_id: int, count: int) -> None:
        """A transactional batch, which opens a transaction if none is."""
        self.count += 1
        values = [(self.key(), b"%d/%d" % (self.count, i)) for i in range(count)]
        known = {entry.producer_id: entry for entry in self.producers.entries()}.get(producer_id)
        batch = build_batch(
            [NewRecord(NOW + self.count, key, value) for key, value in values],
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=known.batches[-1].last_sequence + 1 if known and known.batches else 0,
            transactional=True,
        )
        assert self.producers.check(read_header(batch)) is None
        offset = self.append(batch)
        self.producers.record(read_header(batch), offset, self.now_ms)
        transaction = self.model.open(producer_id)
        if transaction is None:
            transaction = Transaction(producer_id, offset)
            self.model.transactions.append(transaction)
        transaction.records |= dict(enumerate(values, offset))

    def write_plain(self) -> None:
        """A batch of nobody's."""
        self.count += 1
        pair = (self.key(), b"plain %d" % self.count)
        self.model.plain[self.append(build_batch([NewRecord(NOW, *pair)]))] = pair

    def end(self, producer_id: int, *, commit: bool) -> None:
        """A marker, whether a transaction is open or not."""
        marker = EndTransactionMarker(commit, 0, self.now_ms)
        self.producers.check_marker(producer_id, 0, coordinator_epoch=0, transaction_version=1)
        offset = self.append(build_end_marker(marker, producer_id=producer_id, producer_epoch=0))
        aborted = self.producers.end(producer_id, 0, marker, offset)
        if aborted is not None:
            self.log.note_aborted(aborted)
        transaction = self.model.open(producer_id)
        if transaction is not None:
            transaction.last_offset, transaction.committed = offset, commit

    def flush(self) -> None:
        """Make all of it safe."""
        job = self.log.flush_job()
        if job is not None:
            job.run()
            self.log.flushed(job)
        self.rise()

    def crash(self, seed: int, *, power: bool) -> None:
        """Stop without a word and start again, from an old checkpoint of the recovery point."""
        chance = Random(seed)
        recovery_point = chance.choice([0, self.log.recovery_point, chance.randint(0, self.log.recovery_point)])
        flushed = self.log.recovery_point
        if power:
            self.files.power_cut(chance if chance.random() < 0.7 else None)
        self.open(clean=False, recovery_point=recovery_point)
        assert self.log.log_end_offset >= flushed
        assert self.log.findings == []
        self.model.forget_from(self.log.log_end_offset)

    def restart(self) -> None:
        """Stop and start as one should."""
        self.log.close(self.now_ms)
        self.open(clean=True)

    def truncate(self, seed: int) -> None:
        """Cut the log somewhere, as a follower must."""
        offset = Random(seed).randint(0, self.log.log_end_offset)
        self.log.truncate_to(offset)
        self.model.forget_from(self.log.log_end_offset)
        self.rise()

    def clean(self, wait_ms: int = 0) -> None:
        """One round of the cleaner over everything it may touch."""
        self.now_ms += wait_ms
        cleaner = Cleaner(self.files, DIRECTORY, sleep=lambda _: None)
        cleaner.truncated("bank-0", 0)
        plan = cleaner.pick([self.log], self.now_ms)
        if plan is not None:
            assert plan.end_offset <= self.last_stable_offset
            for group in cleaner.clean(plan):
                for segment in cleaner.apply(group):
                    segment.remove()

    def read_committed(self, max_bytes: int = 200) -> Written:
        """What a read_committed consumer gets from the start to the last stable offset."""
        seen: Written = {}
        offset = self.log.log_start_offset
        while offset < self.last_stable_offset:
            span = self.log.read(offset, max_bytes=max_bytes, limit_offset=self.last_stable_offset)
            if not span.size:
                break
            aborted = self.log.aborted_transactions(offset, span.end_offset)
            seen |= {key: value for key, value in filtered(span.view(), aborted).items() if key >= offset}
            offset = span.end_offset
        return seen

    def check(self) -> None:
        """Everything the model can say."""
        end = self.log.log_end_offset
        assert self.last_stable_offset == self.model.last_stable_offset(self.log.high_watermark)
        assert self.read_committed() == self.model.committed(self.last_stable_offset)
        for start in range(0, end + 1, max(1, end // 5)):
            for stop in (start + 1, start + 5, end):
                found = self.log.aborted_transactions(start, stop)
                assert {(t.producer_id, t.first_offset) for t in found} == self.model.aborted(start, stop)


def filtered(view: memoryview, aborted: list[AbortedTransaction]) -> Written:
    """The committed records of a fetch, as a client finds them."""
    waiting = sorted(aborted, key=lambda transaction: transaction.first_offset)
    skipped: set[int] = set()
    seen: Written = {}
    for position, header in split_batches(view):
        while waiting and waiting[0].first_offset <= header.last_offset:
            skipped.add(waiting.pop(0).producer_id)
        batch = view[position : position + header.size]
        if header.is_control:
            marker = read_end_marker(batch, header)
            if marker is not None and not marker.committed:
                skipped.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in skipped):
            seen |= {r.offset: (bytes(r.key or b""), bytes(r.value or b"")) for r in walk(batch)}
    return seen


producer_ids = st.integers(1, PRODUCERS)
seeds = st.integers(0, 2**16)
writes = st.tuples(st.just("write"), producer_ids, st.integers(1, 3))
ends = st.tuples(st.sampled_from(["commit", "abort"]), producer_ids)
others = st.one_of(st.sampled_from([("plain",), ("flush",), ("roll",)]), st.tuples(st.just("advance"), seeds))
work = st.one_of(writes, writes, ends, ends, others)
cleanings = st.tuples(st.just("clean"), st.sampled_from([0, DAY]))
mishaps = st.tuples(st.sampled_from(["kill", "power", "restart", "truncate"]), seeds)


STEPS: dict[str, Callable[..., None]] = {
    "write": Bank.write,
    "commit": lambda bank, producer_id: bank.end(producer_id, commit=True),
    "abort": lambda bank, producer_id: bank.end(producer_id, commit=False),
    "plain": Bank.write_plain,
    "advance": Bank.advance,
    "flush": Bank.flush,
    "roll": lambda bank: bank.log.roll(NOW),
    "kill": lambda bank, seed: bank.crash(seed, power=False),
    "power": lambda bank, seed: bank.crash(seed, power=True),
    "restart": lambda bank, _: bank.restart(),
    "truncate": Bank.truncate,
    "clean": Bank.clean,
}


def step(bank: Bank, what: tuple) -> None:
    """Do one thing to the bank."""
    kind, *arguments = what
    STEPS[kind](bank, *arguments)


@settings(max_examples=150, deadline=None)
@given(st.lists(work, max_size=40))
def test_any_interleaving(steps):
    """Are the last stable offset, the aborted lists and the committed view right after every step?"""
    bank = Bank()
    for what in steps:
        step(bank, what)
        bank.check()
    bank.flush()
    bank.check()


@settings(max_examples=150, deadline=None)
@given(st.lists(st.one_of(work, work, work, mishaps), max_size=50))
def test_any_interleaving_with_crashes(steps):
    """The same where the broker is killed, loses power, restarts or must cut its log anywhere in between?"""
    bank = Bank()
    for what in steps:
        step(bank, what)
        if what[0] in {"kill", "power", "restart", "truncate"}:
            bank.check()
    bank.check()


@settings(max_examples=60, deadline=None)
@given(st.lists(work, min_size=5, max_size=40), seeds, st.booleans())
def test_a_crash_behind_every_step(steps, seed, power):
    """Is after a crash behind any step everything as the log that is left says?"""
    for length in range(1, len(steps) + 1, 3):
        bank = Bank()
        for what in steps[:length]:
            step(bank, what)
        bank.crash(seed, power=power)
        bank.check()


def random_steps(chance: Random, count: int, *, mishaps: bool, cleaning: bool) -> list[tuple]:
    """A long day at the bank."""
    kinds = ["write"] * 8 + ["commit", "abort"] * 3 + ["plain", "flush", "advance", "roll"]
    kinds += ["kill", "power", "restart", "truncate"] if mishaps else []
    kinds += ["clean"] * 2 if cleaning else []
    steps: list[tuple] = []
    for kind in chance.choices(kinds, k=count):
        arguments: dict[str, tuple] = {
            "write": (chance.randint(1, PRODUCERS), chance.randint(1, 3)),
            "commit": (chance.randint(1, PRODUCERS),),
            "abort": (chance.randint(1, PRODUCERS),),
            "clean": (chance.choice([0, 0, DAY]),),
        }
        default = () if kind in {"plain", "flush", "roll"} else (chance.randrange(2**16),)
        steps.append((kind, *arguments.get(kind, default)))
    return steps


@pytest.mark.parametrize("seed", range(12))
def test_long_days(seed):
    """Is everything right after each step of a long run with crashes, restarts and cuts?"""
    bank = Bank()
    for what in random_steps(Random(seed), 150, mishaps=True, cleaning=False):
        step(bank, what)
        bank.check()


@pytest.mark.parametrize("seed", range(12))
def test_long_days_of_a_table(seed):
    """Is the table right after each step of a long run with crashes, restarts and cleaning?"""
    bank = Bank(COMPACTED)
    for what in random_steps(Random(seed), 200, mishaps=False, cleaning=True):
        step(bank, what)
        compare_tables(bank)
        if what[0] == "clean":
            bank.crash(seed, power=True)
            compare_tables(bank)


def compare_tables(bank: Bank) -> None:
    """What a reader of the compacted log learns against what it should."""
    expected = bank.model.committed(bank.last_stable_offset)
    seen = bank.read_committed()
    assert bank.last_stable_offset == bank.model.last_stable_offset(bank.log.high_watermark)
    assert seen.items() <= expected.items()
    assert table(seen) == table(expected)


def table(records: Written) -> dict[bytes, bytes]:
    """The last value of each key."""
    return {records[offset][0]: records[offset][1] for offset in sorted(records)}


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.one_of(work, work, work, st.tuples(st.just("clean"), st.sampled_from([0, DAY]))), max_size=60), seeds
)
def test_compaction(steps, seed):
    """Does a reader of the compacted log learn the same table, nothing aborted, after a crash as well?"""
    bank = Bank(COMPACTED)
    for what in [*steps, ("flush",), ("clean", DAY), ("clean", DAY)]:
        step(bank, what)
        compare_tables(bank)
    bank.crash(seed, power=True)
    compare_tables(bank)


def test_the_cleaner_takes_everything_of_old_transactions():
    """Is in the end nothing left of aborted transactions but each producer's last word?"""
    bank = Bank(COMPACTED)
    for _ in range(10):
        for producer_id in (1, 2, 3):
            bank.write(producer_id, 2)
            bank.end(producer_id, commit=False)
    for _ in range(10):
        bank.write_plain()
    bank.log.roll(NOW)
    bank.flush()
    for _ in range(8):
        bank.clean(DAY)
    left = [header for segment in bank.log.segments() for _, header in segment.headers() if header.producer_id > 0]

    assert len(left) == 6
    assert sum(header.is_control for header in left) == 3
    assert sum(header.record_count for header in left) == 3, "three markers; the batches are headers only"
    assert len(bank.log.aborted_transactions(0, bank.log.log_end_offset)) == 3


@pytest.mark.parametrize("harm", [b"", b"x" * 34, b"\x00" * 68], ids=["emptied", "noise", "zeros"])
def test_a_harmed_index_is_made_anew(harm):
    """Is an index that cannot be right made from the log again, even after a clean stop?"""
    bank = Bank()
    for number in range(12):
        bank.write(1, 2)
        bank.write(2, 1)
        bank.end(1, commit=number % 2 == 0)
    bank.log.close(NOW)
    path = next(segment.path(".txnindex") for segment in bank.log.segments() if segment.aborted.exists)
    sound = bank.files.read(path)
    file = bank.files.open(path, create=True)
    file.pwrite(harm or sound[:33], 0)
    bank.open(clean=True)

    bank.check()
    assert bank.files.read(path) == sound


def test_the_index_is_where_kafka_looks_for_it():
    """Does an abort reach the file with the next flush, and does a segment without one have no file?"""
    bank = Bank(replace(CONFIG, segment_bytes=10_000))
    bank.write(1, 2)
    bank.end(1, commit=True)
    bank.flush()
    assert f"{0:020d}.txnindex" not in bank.files.listdir(PATH)
    bank.write(1, 2)
    bank.end(1, commit=False)
    bank.flush()

    assert len(bank.files.read(f"{PATH}/{0:020d}.txnindex")) == 34


def test_the_index_is_flushed_with_its_segment():
    """Is nothing aborted seen after a power cut behind a flush, though recovery need not look at the old segments?"""
    bank = Bank()
    for _ in range(12):
        bank.write(1, 2)
        bank.end(1, commit=False)
    bank.flush()
    bank.files.power_cut()
    bank.open(clean=False, recovery_point=bank.log.recovery_point)

    bank.check()
    assert len(bank.log.aborted_transactions(0, bank.log.log_end_offset)) == 12


def test_the_index_of_a_closed_log_is_flushed():
    """Is nothing aborted seen after a clean stop and a power cut?"""
    bank = Bank(replace(CONFIG, segment_bytes=10_000))
    bank.write(1, 2)
    bank.flush()
    bank.end(1, commit=False)
    bank.log.close(NOW)
    bank.files.power_cut()
    bank.open(clean=True)

    bank.check()
    assert len(bank.log.aborted_transactions(0, 3)) == 1


def test_a_segment_that_is_active_again():
    """Can a log be flushed whose active segment had been rolled before a cut made it the last again?"""
    bank = Bank()
    bank.write(1, 1)
    bank.write(2, 3)
    bank.log.roll(NOW)
    bank.write(2, 1)
    bank.log.truncate_to(4)
    bank.model.forget_from(4)
    bank.end(2, commit=False)
    bank.flush()

    bank.check()


def test_a_full_disk_hides_no_abort():
    """Is a transaction known as aborted though its index file could not be written?"""
    bank = Bank(replace(CONFIG, segment_bytes=10_000))
    bank.write(1, 2)
    bank.end(1, commit=False)
    bank.files.fail_next("open", path_contains=".txnindex")
    bank.flush()

    bank.check()
    bank.flush()
    bank.write_plain()
    bank.flush()
    assert len(bank.files.read(f"{PATH}/{0:020d}.txnindex")) == 34


def test_followers_index_aborts_too():
    """Does a follower that is given the leader's batches know the same as the leader?"""
    leader, follower = Bank(), Bank()
    for number in range(15):
        leader.write(1 + number % 3, 2)
        leader.end(1 + number * 2 % 3, commit=number % 4 == 0)
    for segment in leader.log.segments():
        for _, _, view in segment.batches():
            follower.log.append_follower(view, NOW)
    leader.rise()
    follower.rise()
    follower.model = leader.model

    follower.check()
    assert follower.producers.first_unstable_offset == leader.producers.first_unstable_offset
