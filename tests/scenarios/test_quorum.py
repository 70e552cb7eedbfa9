"""Quorums of real nodes: sockets, files, elections, crashes, snapshots; all in one process."""

import asyncio

import pytest

from headrace.coordination.quorum.effects import Effects
from headrace.coordination.quorum.snapshot_file import SnapshotFiles
from headrace.coordination.quorum.snapshot_policy import SnapshotPolicy
from headrace.cores.metadata import Metadata
from headrace.cores.raft.messages import DescribeQuorumRequest, RemoveVoterRequest
from headrace.cores.raft.voters import ReplicaKey
from headrace.model.errors import ErrorCode, KafkaError
from headrace.storage.files import RealFiles
from headrace.storage.memory_files import MemoryFiles
from quorum_nodes import Nodes, creation, dynamic_voters, join, static_voters

EAGER = SnapshotPolicy(bytes_between=1, interval_ms=0, retention_bytes=1, retention_ms=-1)
"""Writes a snapshot after each batch and keeps nothing that it covers."""


@pytest.fixture
def nodes_at(tmp_path):
    """Makes so many nodes with real files."""
    return lambda count, **options: Nodes(
        count, lambda _: RealFiles(), lambda n: str(tmp_path / f"node-{n}"), **options
    )


@pytest.fixture
def memory_nodes_at():
    """Makes so many nodes with disks that can fail."""
    return lambda count, **options: Nodes(count, lambda _: MemoryFiles(), lambda _: "/data", **options)


def names(nodes):
    """The topics a node has, by its image."""
    return set(nodes.quorum.metadata.topics)


def test_elect_and_commit(nodes_at):
    """Do three nodes elect one, and does what it decides reach all of them, in one order?"""

    async def scene():
        async with nodes_at(3) as nodes:
            await nodes.start()
            await nodes.create(*(f"topic-{n}" for n in range(50)))

            assert await nodes.agree()
            active = await nodes.active()
            assert {f"topic-{n}" for n in range(50)} == names(active)
            assert [active.id] * 3 == [node.quorum.leader_id for node in nodes.all]
            assert nodes[1].committed == nodes[2].committed == nodes[3].committed
            assert [active.id] == [node.id for node in nodes.all if node.quorum.is_active]
            assert active.port == nodes[1].quorum.leader_endpoint().port

    asyncio.run(scene())


def test_a_node_of_another_cluster(memory_nodes_at, monkeypatch, caplog):
    """Is it in the logs of both sides that a node is of another cluster, and is it kept out?"""

    async def scene():
        async with memory_nodes_at(3) as nodes:
            await nodes.start(1, 2)
            await nodes.create("topic")
            await nodes.caught_up()
            look = Effects._look_at_cluster

            def heard(effects, *answer):
                look(effects, *answer)
                nodes.bell.set()

            monkeypatch.setattr(Effects, "_look_at_cluster", heard)
            monkeypatch.setattr("quorum_nodes.CLUSTER", "another")
            await nodes.start(3)
            await nodes.until(lambda: nodes[3].quorum.is_elsewhere)

            assert {"topic"} == names(nodes[1])
            assert set() == names(nodes[3])

    asyncio.run(scene())
    told = [record.getMessage().split(" reason=") for record in caplog.records if record.levelname == "WARNING"]
    assert {"node_refused", "quorum_of_another_cluster"} == {head.split()[0] for head, _ in told}
    assert all("error=INCONSISTENT_CLUSTER_ID" in head and "cluster" in sentence for head, sentence in told)


def test_five_controllers_do_without_two(memory_nodes_at):
    """R2: Do five controllers go on deciding when two of them are gone, the active one first?"""

    async def scene():
        async with memory_nodes_at(5) as nodes:
            nodes.options = {"voters": static_voters(nodes.all)}
            await nodes.start()
            for number in range(2):
                await nodes.create(f"topic-{number}")
                await (await nodes.active()).kill()
            await nodes.create("topic-2")

            assert 3 == len(nodes.running)
            assert await nodes.agree()
            assert {"topic-0", "topic-1", "topic-2"} == names(await nodes.active())

    asyncio.run(scene())


def test_only_the_active_controller_decides(nodes_at):
    """Is a command refused elsewhere, with nothing written?"""

    async def scene():
        async with nodes_at(3) as nodes:
            await nodes.start()
            active = await nodes.active()
            other = next(node for node in nodes.all if node is not active)

            with pytest.raises(KafkaError) as refused:
                await other.quorum.run(creation("nowhere"))

            assert refused.value.code is ErrorCode.NOT_CONTROLLER
            assert await nodes.agree()
            assert set() == names(active)

    asyncio.run(scene())


def test_decisions_know_of_each_other_before_they_are_committed(nodes_at):
    """Is the second of two creations of one topic refused, though the first is not committed yet?"""

    async def scene():
        async with nodes_at(3) as nodes:
            await nodes.start()
            active = await nodes.active()

            first, second = await asyncio.gather(
                active.quorum.run(creation("once")), active.quorum.run(creation("once"))
            )

            assert first["once"].partitions == 2
            assert second["once"].code is ErrorCode.TOPIC_ALREADY_EXISTS

    asyncio.run(scene())


def test_a_crashed_follower_comes_back(nodes_at):
    """Does a follower that was killed have everything again after its restart, and hear only of what is new to it?"""

    async def scene():
        async with nodes_at(3) as nodes:
            await nodes.start()
            await nodes.create("before")
            active = await nodes.active()
            victim = next(node for node in nodes.all if node is not active)
            await victim.kill()
            await nodes.create("meanwhile")
            await nodes.start(victim.id)
            await nodes.create("after")

            assert await nodes.agree()
            assert {"before", "meanwhile", "after"} == names(victim)

    asyncio.run(scene())


def test_a_crashed_leader_is_replaced(nodes_at):
    """Does another node lead after the leader was killed, with all that was acknowledged; does the old one follow?"""

    async def scene():
        async with nodes_at(3) as nodes:
            await nodes.start()
            await nodes.create(*(f"before-{n}" for n in range(10)))
            first = await nodes.active()
            epoch = first.quorum.leader_epoch
            await first.kill()
            await nodes.create("after")
            second = await nodes.active()
            await nodes.start(first.id)

            assert await nodes.agree()
            assert {"after", *(f"before-{n}" for n in range(10))} == names(first)
            assert second.quorum.leader_epoch > epoch

    asyncio.run(scene())


def test_the_whole_quorum_restarts(nodes_at):
    """Is everything there again after all nodes were killed at once?"""

    async def scene():
        async with nodes_at(3) as nodes:
            await nodes.start()
            await nodes.create("one", "two")
            for node in nodes.all:
                await node.kill()
            await nodes.start()
            await nodes.create("three")

            assert await nodes.agree()
            assert {"one", "two", "three"} == names(nodes[2])

    asyncio.run(scene())


def test_a_minority_decides_nothing(nodes_at):
    """Does a leader without followers stop deciding, and is what it could not commit refused?"""

    async def scene():
        async with nodes_at(3) as nodes:
            await nodes.start()
            await nodes.create("committed")
            active = await nodes.active()
            for node in nodes.all:
                if node is not active:
                    await node.kill()

            with pytest.raises(KafkaError) as refused:
                await active.quorum.run(creation("lost"))

            assert refused.value.code is ErrorCode.NOT_CONTROLLER
            assert not active.quorum.is_active
            assert {"committed"} == names(active)

    asyncio.run(scene())


def test_a_deserted_quorum(nodes_at):
    """Does a node know whether enough of those who vote are there to decide anything?"""

    async def scene():
        async with nodes_at(3) as nodes:
            await nodes.start()
            await nodes.create("one")
            last = nodes[2]
            assert not await last.quorum.is_deserted()
            await nodes[0].kill()
            assert not await last.quorum.is_deserted()
            await nodes[1].kill()
            assert await last.quorum.is_deserted()

    asyncio.run(scene())


def test_an_uncommitted_tail_is_cut_off(nodes_at):
    """Does an old leader give up what it wrote alone, once others have decided something else in its place?"""

    async def scene():
        async with nodes_at(3) as nodes:
            await nodes.start()
            await nodes.create("committed")
            await nodes.caught_up()
            old = await nodes.active()
            others = [node for node in nodes.all if node is not old]
            for node in others:
                await node.kill()
            with pytest.raises(KafkaError):
                await old.quorum.run(creation("lost"))
            await old.kill()
            await nodes.start(*(node.id for node in others))
            await nodes.create("decided-by-others")
            await nodes.start(old.id)

            assert await nodes.agree()
            assert {"committed", "decided-by-others"} == names(old)
            logs = [node.quorum._log.find(0, 1 << 20).load() for node in nodes.all]
            assert logs[0] == logs[1] == logs[2]
            assert b"lost" not in logs[0]

    asyncio.run(scene())


def test_a_broken_disk_costs_one_node(memory_nodes_at):
    """Do the others go on when the leader's disk fails, and then a follower's, and do both come back?"""

    async def scene():
        async with memory_nodes_at(3) as nodes:
            await nodes.start()
            await nodes.create("before")
            first = await nodes.active()
            first.files.fail_next("fsync", path_contains=".log")
            with pytest.raises(KafkaError) as told:
                await first.quorum.run(creation("in-doubt"))
            assert told.value.code is ErrorCode.KAFKA_STORAGE_ERROR
            await nodes.create("without-the-first")
            first.files.power_cut()
            await first.kill()
            await nodes.start(first.id)

            second = await nodes.active()
            follower = next(node for node in nodes.all if node is not second)
            follower.files.fail_next("fsync", path_contains=".log")
            await nodes.create("without-a-follower")
            await nodes.until(lambda: follower.quorum.fault is not None)
            assert {second.id} <= {node.id for node in nodes.running}
            await nodes.create("still")
            await follower.kill()
            await nodes.start(follower.id)

            assert await nodes.agree()
            assert {"before", "without-the-first", "without-a-follower", "still"} <= names(follower)

    asyncio.run(scene())


def test_hand_over(nodes_at):
    """Does a leader that stops in good order hand over, and is nothing lost by it?"""

    async def scene():
        async with nodes_at(3) as nodes:
            await nodes.start()
            await nodes.create("before")
            first = await nodes.active()
            await first.stop()
            await nodes.create("after")
            second = await nodes.active()

            assert [True, False] == first.leaderships
            assert second is not first
            assert await nodes.agree()
            assert {"before", "after"} == names(second)

    asyncio.run(scene())


def test_catching_up_by_a_snapshot(nodes_at):
    """Does a node with nothing get a snapshot, though the log it covers is gone, and then the log behind it?"""

    async def scene():
        async with nodes_at(3) as nodes:
            nodes.options["snapshots"] = SnapshotPolicy(retention_bytes=1, retention_ms=-1)
            await nodes.start(1, 2)
            await nodes.create(*(f"old-{n}" for n in range(20)))
            active = await nodes.active()
            await active.quorum.snapshot()
            await nodes.create("in-between")
            await active.quorum.snapshot()
            await nodes.create("new")
            await nodes.start(3)

            assert await nodes.agree()
            assert len(nodes[3].quorum.metadata.topics) == 22
            assert active.start_offset > 0
            assert nodes[3].start_offset == active.start_offset
            # The first that node 3 heard of is the difference to nothing: all that is in the snapshot, in one piece.
            assert len(nodes[3].committed[0]) > 20

            await nodes[3].kill()
            await nodes.start(3)
            await nodes.create("newest")
            assert await nodes.agree()

    asyncio.run(scene())


def test_snapshots_all_the_time(nodes_at):
    """Do nodes agree when each writes a snapshot after every batch, over restarts too?"""

    async def scene():
        async with nodes_at(3) as nodes:
            nodes.options["snapshots"] = EAGER
            await nodes.start()
            for number in range(5):
                await nodes.create(f"{number}-a", f"{number}-b")
                await nodes[number % 3 + 1].kill()
                await nodes.create(f"{number}-c")
                await nodes.start(number % 3 + 1)

            assert await nodes.agree()
            assert len(nodes[1].quorum.metadata.topics) == 15

    asyncio.run(scene())


def test_observers(nodes_at):
    """Does a node that does not vote have what the voters commit, and is it seen by the leader?"""

    async def scene():
        async with nodes_at(4) as nodes:
            await nodes.start()
            await nodes.create("seen")

            assert await nodes.agree()
            assert {"seen"} == names(nodes[4])
            active = await nodes.active()
            described = await active.quorum.handle(DescribeQuorumRequest())
            assert [4] == [status.key.id for status in described.observers]
            assert {1, 2, 3} == {status.key.id for status in described.voters}

    asyncio.run(scene())


def test_voters_in_the_log(nodes_at):
    """Does a quorum that was formatted with one voter take in a second and a third, and let the first one go?"""

    async def scene():
        async with nodes_at(3) as nodes:
            log_dir, log = nodes[1].open_log()
            SnapshotFiles(log_dir.files, log.path).write_bootstrap(dynamic_voters([nodes[1]]), now_ms=0)
            log_dir.close(0)
            patient = {"fetch_timeout_ms": 3000}
            await nodes[1].start(None, core=patient)
            nodes.options.update(voters=None, bootstrap=[("127.0.0.1", nodes[1].port)], core=patient)
            await nodes.start(2, 3)
            await nodes.create("first")
            await nodes.caught_up()
            for joining in (nodes[2], nodes[3]):
                await join(nodes[1], ReplicaKey(joining.id, joining.directory_id), joining.endpoint)
            await nodes.create("second")
            answer = await nodes[1].quorum.handle(RemoveVoterRequest(voter=ReplicaKey(1, nodes[1].directory_id)))
            assert answer.error is ErrorCode.NONE
            await nodes[1].kill()
            await nodes.create("third")

            assert await nodes.agree()
            active = await nodes.active()
            assert {"first", "second", "third"} == names(active)
            described = await active.quorum.handle(DescribeQuorumRequest())
            assert {2, 3} == {status.key.id for status in described.voters}

    asyncio.run(scene())


def test_deleted_topics_vanish_by_a_snapshot(nodes_at):
    """Is a node that slept through a deletion told of it, though it only gets a snapshot?"""

    async def scene():
        async with nodes_at(3) as nodes:
            nodes.options["snapshots"] = SnapshotPolicy(retention_bytes=1, retention_ms=-1)
            await nodes.start()
            await nodes.create("stays", "goes")
            await nodes.caught_up()
            active = await nodes.active()
            sleeper = next(node for node in nodes.all if node is not active)
            await sleeper.quorum.snapshot()
            await sleeper.stop()
            await nodes.delete("goes")
            await active.quorum.snapshot()
            await nodes.create("comes")
            await active.quorum.snapshot()
            await nodes.start(sleeper.id)

            assert await nodes.agree()
            assert {"stays", "comes"} == names(sleeper)
            heard = Metadata()
            for records in [sleeper.before, *sleeper.committed]:
                for record in records:
                    heard.replay(record)
            assert heard == active.quorum.metadata

    asyncio.run(scene())
