"""Moving replicas between a broker's log dirs: whole, while they are written to, and through crashes at every step."""

import asyncio
import errno
import os
from random import Random

import pytest

from headrace.broker import future_replica
from headrace.broker.future_replica import FutureReplica
from headrace.broker.handlers.api20_delete_topics import API as DELETE_TOPICS
from headrace.broker.handlers.api34_alter_replica_log_dirs import API
from headrace.broker.handlers.api35_describe_log_dirs import API as DESCRIBE
from headrace.broker.partitions import assigned_directory
from headrace.broker.replica_directories import DirectoryReports
from headrace.model.errors import ErrorCode, KafkaError
from headrace.records.batch import read_header
from headrace.records.build import NewRecord, build_batch
from headrace.records.walk import walk
from headrace.storage.directory_names import future_name
from headrace.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from headrace.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from headrace.wire.messages.describe_log_dirs import DescribeLogDirsRequest

NOW_MS = 1_700_000_000_000
DIRS = {"log.dirs": "/one,/two"}
MOVE_OPERATIONS = 200
"""About how often a move of forty records changes the disk."""


def ask(desk, path, topic="orders", index=0):
    """Ask for a move; the error code."""
    wanted = AlterReplicaLogDir(path=path, topics=(AlterReplicaLogDirTopic(name=topic, partitions=(index,)),))
    ((row,),) = (one.partitions for one in desk.ask(API, AlterReplicaLogDirsRequest(dirs=(wanted,))).results)
    return ErrorCode(row.error_code)


def partition_of(desk, topic="orders", index=0):
    return desk.broker.partitions.require(topic, index)


def home(desk, topic="orders", index=0):
    """The path of the dir that a partition lives in."""
    return desk.broker.partitions.log_dir_of(partition_of(desk, topic, index)).path


def elsewhere(desk):
    """The other dir."""
    return "/two" if home(desk) == "/one" else "/one"


def ended(desk):
    """Wait until no move is under way."""
    desk.run(desk.broker.replicas.moves.ended())


def directories(desk, name="orders-0"):
    """What there is of a partition in both dirs, what is on its way out aside."""
    return sorted(
        f"{path}/{entry}"
        for path in ("/one", "/two")
        for entry in desk.files.listdir(path)
        if entry.startswith(name) and not entry.endswith(("-delete", "-stray"))
    )


def write(desk, *values):
    """Append records in batches of their own, and wait until they are safe."""

    async def append():
        found, loop = partition_of(desk), asyncio.get_running_loop()
        for value in values:
            batch = build_batch([NewRecord(timestamp=NOW_MS, key=None, value=value, headers=())])
            appended = found.append(memoryview(batch), read_header(batch), NOW_MS)
            safe = loop.create_future()
            found.when_safe(appended.end_offset, safe.set_result)
            assert await safe is None

    desk.run(append())


def read(desk):
    """The values of all that consumers may read."""
    partition, values = partition_of(desk), []
    offset = partition.log.log_start_offset
    while offset < partition.log.high_watermark:
        span = partition.log.read(offset, max_bytes=1 << 20, limit_offset=partition.log.high_watermark)
        view, position = span.view(), 0
        while position < len(view):
            header = read_header(view[position:])
            values += [record.value for record in walk(view[position : position + header.size])]
            position += header.size
        offset = span.end_offset
    return [bytes(value) for value in values]


def told(desk):
    """Per dir, whether a partition is told as a future one, and its lag."""
    return {
        result.log_dir: (one.is_future_key, one.offset_lag)
        for result in desk.ask(DESCRIBE, DescribeLogDirsRequest(topics=None)).results
        for topic in result.topics
        for one in topic.partitions
        if (topic.name, one.partition_index) == ("orders", 0)
    }


def numbers(first, end):
    return [b"%d" % number for number in range(first, end)]


def hang_after(monkeypatch, step):
    """Have moves stop after a step and go no further; gives an event that says that one did."""
    reached = asyncio.Event()
    original = getattr(FutureReplica, step)

    async def stuck(self, *arguments):
        await original(self, *arguments)
        reached.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(FutureReplica, step, stuck)
    return reached


def hang_before(monkeypatch, step):
    """The same, before the step."""
    reached = asyncio.Event()

    async def stuck(self, *arguments):
        reached.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(FutureReplica, step, stuck)
    return reached


@pytest.fixture
def desk(open_desk):
    """A broker with two log dirs, and a topic with some records in it."""
    made = open_desk(DIRS)
    made.create("orders", internal_segment_bytes="500")
    write(made, *numbers(0, 30))
    return made


@pytest.mark.parametrize("version", range(API.low, API.high + 1))
def test_every_version_is_answered(open_desk, version):
    """Is the same answered to every version?"""
    made = open_desk(DIRS)
    wanted = AlterReplicaLogDir(path="/one", topics=(AlterReplicaLogDirTopic(name="nix", partitions=(0,)),))
    ((row,),) = (
        one.partitions for one in made.ask(API, AlterReplicaLogDirsRequest(dirs=(wanted,)), version=version).results
    )

    assert row.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_replica_moves(desk):
    """Is everything in the other dir after a move, nothing in the first, and do writes go on there?"""
    target = elsewhere(desk)
    old_log = partition_of(desk).log

    assert ask(desk, target) is ErrorCode.NONE
    ended(desk)
    write(desk, b"behind")

    log = partition_of(desk).log
    assert (home(desk), directories(desk)) == (target, [f"{target}/orders-0"])
    assert log is not old_log
    assert read(desk) == [*numbers(0, 30), b"behind"]
    assert told(desk) == {target: (False, 0)}
    assert [one.base_offset for one in log.segments()][:-1] == [one.base_offset for one in old_log.segments()][:-1]


@pytest.mark.parametrize("end", ["restart", "crash", "power_cut"])
def test_moved_replica_is_there_after_a_stop(desk, end):
    """Is a replica found where it was moved to, with all that was acknowledged, however the broker stopped?"""
    target = elsewhere(desk)
    ask(desk, target)
    ended(desk)
    write(desk, b"behind")

    getattr(desk, end)()

    assert (home(desk), directories(desk)) == (target, [f"{target}/orders-0"])
    assert read(desk) == [*numbers(0, 30), b"behind"]


def test_controller_knows_where_a_replica_is(desk):
    """Does the metadata name the new dir before the replica is there, and the old one if the move is given up?"""
    target, source = elsewhere(desk), home(desk)
    ids = {log_dir.path: log_dir.meta.directory_id for log_dir in desk.broker.store.log_dirs}

    def assigned():
        return assigned_directory(desk.broker.metadata.topics["orders"].partitions[0], 1)

    with pytest.MonkeyPatch.context() as patch:
        reached = hang_after(patch, "_tell")
        ask(desk, target)
        desk.run(reached.wait())
        assert (home(desk), assigned()) == (source, ids[target])
        assert ask(desk, source) is ErrorCode.NONE
    desk.run(desk.broker.until(lambda metadata: assigned() == ids[source]))
    assert directories(desk) == [f"{source}/orders-0"]

    ask(desk, target)
    ended(desk)
    assert assigned() == ids[target]


def test_copy_is_told_with_its_lag(desk, monkeypatch):
    """Is a replica on its way told in both dirs, and how many offsets the copy lacks?"""
    target, source = elsewhere(desk), home(desk)
    reached = hang_before(monkeypatch, "_tell")
    ask(desk, target)
    desk.run(reached.wait())
    write(desk, *numbers(30, 37))

    assert told(desk) == {source: (False, 0), target: (True, 7)}
    assert directories(desk) == sorted([f"{source}/orders-0", f"{target}/{future_name('orders-0')}"])


STEPS = [
    ("hang_before", "_catch_up"),
    ("hang_before", "_tell"),
    ("hang_after", "_tell"),
    ("hang_after", "_name"),
    ("hang_before", "_retire"),
]


@pytest.mark.parametrize("end", ["restart", "crash", "power_cut"])
@pytest.mark.parametrize(("how", "step"), STEPS)
def test_move_goes_on_after_a_stop(desk, how, step, end):
    """Wherever a move is when the broker stops: is nothing lost, and does the move come to its end all the same?"""
    target = elsewhere(desk)
    with pytest.MonkeyPatch.context() as patch:
        reached = globals()[how](patch, step)
        ask(desk, target)
        desk.run(reached.wait())
        write(desk, *numbers(30, 40))
        if end == "power_cut":
            desk.run(desk.broker.housekeeping.checkpoint())
    getattr(desk, end)()
    assert read(desk) == numbers(0, 40)

    ended(desk)
    write(desk, b"behind")

    assert (home(desk), directories(desk)) == (target, [f"{target}/orders-0"])
    assert read(desk) == [*numbers(0, 40), b"behind"]
    desk.restart()
    assert read(desk) == [*numbers(0, 40), b"behind"]


async def running_loop():
    return asyncio.get_running_loop()


CUTS = int(os.environ.get("HEADRACE_CUTS", "6"))


@pytest.mark.parametrize("cut", range(CUTS))
def test_power_cut_at_any_operation(desk, cut, monkeypatch):
    """Wherever among a move's file operations the power goes: is all there that was promised, and does it move on?"""
    target, chance = elsewhere(desk), Random(cut)
    operations, last = [0], (cut * MOVE_OPERATIONS) // CUTS

    loop, gone = desk.run(running_loop()), asyncio.Event()

    def before(operation, path):
        operations[0] += operation not in {"stat", "read", "listdir"}
        if operations[0] > last:
            loop.call_soon_threadsafe(gone.set)
            raise OSError(errno.EIO, "the power is gone", path)

    async def over():
        waits = [asyncio.ensure_future(one) for one in (desk.broker.replicas.moves.ended(), gone.wait())]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()

    promised = numbers(0, 30)
    monkeypatch.setattr(desk.files, "before", before)
    answer = ask(desk, target)
    for value in numbers(30, 40):
        try:
            write(desk, value)
        except (AssertionError, KafkaError):
            break
        promised.append(value)
    desk.run(over())
    desk.run(desk.broker.abandon())
    monkeypatch.setattr(desk.files, "before", None)
    desk.files.power_cut(chance)
    desk.__enter__()

    assert read(desk)[: len(promised)] == promised
    ended(desk)
    assert home(desk) == target or answer is not ErrorCode.NONE
    assert directories(desk) == [f"{home(desk)}/orders-0"]
    assert read(desk)[: len(promised)] == promised


def test_operations_of_a_move_are_as_many_as_the_cuts_assume(desk):
    """Does a move take about as many file operations as the cuts above are spread over?"""
    target, operations = elsewhere(desk), [0]

    def before(operation, path):
        operations[0] += operation not in {"stat", "read", "listdir"}

    desk.files.before = before
    ask(desk, target)
    write(desk, *numbers(30, 40))
    ended(desk)

    assert MOVE_OPERATIONS / 2 < operations[0] < MOVE_OPERATIONS * 1.2


def test_move_keeps_pace_with_writes(desk, monkeypatch):
    """Does a move end while something is written before each of its steps, and lose none of that?"""
    target = elsewhere(desk)
    count = [30]

    def before(step):
        original = getattr(FutureReplica, step)

        def with_a_write(self, *arguments):
            batch = build_batch([NewRecord(timestamp=NOW_MS, key=None, value=b"%d" % count[0], headers=())])
            self.partition.append(memoryview(batch), read_header(batch), NOW_MS)
            count[0] += 1
            return original(self, *arguments)

        monkeypatch.setattr(FutureReplica, step, with_a_write)

    for step in ("_step", "_read", "_tell", "_name", "_switch", "_retire"):
        before(step)
    assert ask(desk, target) is ErrorCode.NONE
    ended(desk)
    write(desk, b"last")

    assert home(desk) == target
    assert count[0] > 40
    assert read(desk) == [*numbers(0, count[0]), b"last"]


def test_log_that_starts_later_is_copied_from_there(desk, monkeypatch):
    """Does a copy begin where the log does, and follow when records are deleted meanwhile?"""
    log = partition_of(desk).log
    desk.run(_later(log.advance_start_offset, 7))
    reached = hang_after(monkeypatch, "_tell")
    target = elsewhere(desk)
    ask(desk, target)
    desk.run(reached.wait())
    assert partition_of(desk).log is log
    monkeypatch.undo()
    desk.run(_later(log.advance_start_offset, 20))
    desk.crash()
    desk.run(_later(partition_of(desk).log.advance_start_offset, 20))
    ended(desk)

    assert home(desk) == target
    assert partition_of(desk).log.log_start_offset == 20
    assert read(desk) == numbers(20, 30)


async def _later(work, *arguments):
    return work(*arguments)


def test_copy_of_a_truncated_log_is_cut(desk, monkeypatch):
    """Is a copy cut where the log was cut and written anew in another epoch, so that both end alike?"""
    reached = hang_before(monkeypatch, "_tell")
    target = elsewhere(desk)
    ask(desk, target)
    desk.run(reached.wait())
    monkeypatch.undo()
    partition = partition_of(desk)
    log_dir = desk.broker.partitions.log_dir_of(partition)

    async def cut():
        done = partition.begin_settling()
        log_dir.truncate(partition.log, 10)
        done()
        partition.lead(partition.leader_epoch + 1)
        partition.log.assign_epoch(partition.leader_epoch, 10)

    desk.run(cut())
    write(desk, b"other", b"records")
    desk.run(_stop_and_go_on(desk))
    ended(desk)

    assert home(desk) == target
    assert read(desk) == [*numbers(0, 10), b"other", b"records"]


async def _stop_and_go_on(desk):
    """Begin the moves of a broker anew, as a start does."""
    moves = desk.broker.replicas.moves
    for _, task in tuple(moves._moves.values()):
        task.cancel()
    await moves.ended()
    moves.go_on()


def test_producers_are_known_after_a_move(desk):
    """Is a batch that is sent again after a move known as one, and the next one in order?"""
    desk.produce("orders", 3, producer_id=7)
    end_offset = partition_of(desk).log.log_end_offset
    ask(desk, elsewhere(desk))
    ended(desk)

    desk.produce("orders", 3, producer_id=7)
    assert partition_of(desk).log.log_end_offset == end_offset
    desk.crash()
    desk.produce("orders", 3, producer_id=7)
    assert partition_of(desk).log.log_end_offset == end_offset


def test_moves_obey_the_throttle(desk, monkeypatch):
    """Is no more copied than the quota allows, and does a move go on when the throttle is lifted?"""
    monkeypatch.setattr(future_replica, "COPY_BYTES", 200)
    monkeypatch.setattr(future_replica, "THROTTLED_MS", 1)
    now_ms, looks = [0], asyncio.Semaphore(0)

    def look():
        looks.release()
        return now_ms[0]

    monkeypatch.setattr(future_replica, "steady_ms", look)
    quota = desk.broker.throttles.moves
    quota.bound = 100
    target = elsewhere(desk)
    ask(desk, target)

    async def look_often():
        for _ in range(20):
            await looks.acquire()

    desk.run(look_often())
    copy = next(log_dir.futures["orders-0"] for log_dir in desk.broker.store.log_dirs if log_dir.path == target)
    assert 0 < copy.size_bytes < partition_of(desk).log.size_bytes
    assert quota.is_exceeded(now_ms[0])
    quota.bound = 2**63 - 1
    ended(desk)

    assert home(desk) == target


def test_refusals(desk):
    """Does every move that cannot be get Kafka's error, and change nothing?"""
    before = directories(desk)
    desk.create("t" * 220)

    assert ask(desk, "/three") is ErrorCode.LOG_DIR_NOT_FOUND
    assert ask(desk, "/one/") is ErrorCode.LOG_DIR_NOT_FOUND
    assert ask(desk, "/one", topic="nix") is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert ask(desk, "/one", index=7) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert ask(desk, "/one", topic="t" * 220) is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert ask(desk, home(desk)) is ErrorCode.NONE
    ended(desk)
    assert directories(desk) == before


def test_failed_dirs_take_part_in_no_move(desk):
    """Is a move to a dir that failed refused, and any other while there is one?"""
    target = elsewhere(desk)
    log_dir = next(one for one in desk.broker.store.log_dirs if one.path == target)
    log_dir.online = False

    assert ask(desk, target) is ErrorCode.KAFKA_STORAGE_ERROR
    desk.broker.store.log_dirs[0].online = True
    assert directories(desk) == [f"{home(desk)}/orders-0"]


def test_copy_whose_disk_fails_is_given_up(desk, monkeypatch):
    """Does a replica stay where it is, and go on, when the disk it was to move to fails?"""
    target, source = elsewhere(desk), home(desk)
    desk.files.fail_next("fsync", path_contains=f"{target}/orders")
    ask(desk, target)
    ended(desk)
    write(desk, b"behind")

    assert home(desk) == source
    assert read(desk) == [*numbers(0, 30), b"behind"]
    assert ask(desk, target) is ErrorCode.KAFKA_STORAGE_ERROR


@pytest.mark.parametrize("which", ["source", "target"])
def test_promise_is_taken_back_when_a_disk_fails(desk, which, monkeypatch):
    """Is the controller told nothing more of a move, and the move over, once one of its two disks has failed?"""
    target, source = elsewhere(desk), home(desk)
    dirs = {log_dir.path: log_dir for log_dir in desk.broker.store.log_dirs}
    reached = asyncio.Event()

    def never_told(self):
        if dirs[target].meta.directory_id in self._unknown.values():
            reached.set()
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, "there is no controller")

    monkeypatch.setattr(DirectoryReports, "_request", never_told)
    ask(desk, target)
    desk.run(reached.wait())
    error = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk is gone")
    desk.run(_later(desk.broker.partitions.take_offline, dirs[{"source": source, "target": target}[which]], error))
    ended(desk)

    reports = desk.broker.replicas._directories
    assert reports._promised == {}
    assert dirs[target].meta.directory_id not in reports._unknown.values()
    assert read(desk) == numbers(0, 30)


def test_move_turns_round(desk, monkeypatch):
    """Is a copy given up when the replica shall stay where it is after all?"""
    reached = hang_before(monkeypatch, "_tell")
    ask(desk, elsewhere(desk))
    desk.run(reached.wait())

    assert ask(desk, home(desk)) is ErrorCode.NONE
    ended(desk)
    assert directories(desk) == [f"{home(desk)}/orders-0"]


def test_topic_is_deleted_with_its_copy(desk, monkeypatch):
    """Is nothing left of a topic that is deleted while a replica moves, and can one of its name be made again?"""
    reached = hang_before(monkeypatch, "_tell")
    ask(desk, elsewhere(desk))
    desk.run(reached.wait())

    desk.ask(DELETE_TOPICS, DeleteTopicsRequest(topics=(DeleteTopicState(name="orders"),)))
    desk.run(desk.broker.until(lambda metadata: "orders" not in metadata.topics))
    ended(desk)

    assert directories(desk) == []
    desk.create("orders")
    write(desk, b"new")
    assert read(desk) == [b"new"]


def test_copy_that_nobody_wants_is_removed(desk, monkeypatch):
    """Is a copy removed at the start whose partition lives in that dir, or is known no more?"""
    desk.files.mkdir(f"{home(desk)}/{future_name('orders-0')}")
    desk.files.mkdir(f"/one/{future_name('gone-3')}")

    desk.restart()

    assert directories(desk) == [f"{home(desk)}/orders-0"]
    assert directories(desk, "gone") == []


def test_damaged_copy_is_begun_again(desk):
    """Is a copy that cannot be opened thrown away, and the move begun again?"""
    target = elsewhere(desk)
    with pytest.MonkeyPatch.context() as patch:
        reached = hang_before(patch, "_tell")
        ask(desk, target)
        desk.run(reached.wait())
    desk.run(desk.broker.abandon())
    path = f"{target}/{future_name('orders-0')}/partition.metadata"
    desk.files.unlink(path)
    desk.files.open(path, create=True).pwrite(b"nothing of the kind" * 9, 0)

    desk.__enter__()
    ended(desk)

    assert (home(desk), directories(desk)) == (target, [f"{target}/orders-0"])
    assert read(desk) == numbers(0, 30)
