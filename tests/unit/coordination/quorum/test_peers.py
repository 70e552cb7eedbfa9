"""Links to the other nodes of a quorum."""

import asyncio
from uuid import UUID

import pytest

from headrace.coordination.quorum.peers import Peers
from headrace.coordination.quorum.settings import QuorumSettings
from headrace.cores.raft.config import QuorumConfig
from headrace.cores.raft.messages import FetchRequest, KRaftVersionsRequest, VoteRequest
from headrace.cores.raft.outputs import Send
from headrace.cores.raft.voters import Endpoint, ReplicaKey
from headrace.net.link import LinkBroken
from headrace.storage.memory_files import MemoryFiles
from quorum_nodes import CLUSTER, HOST, Node, static_voters

ME = ReplicaKey(2, UUID(int=22))
VOTE = VoteRequest(cluster_id=CLUSTER, epoch=1, candidate=ME, last_offset=0, last_epoch=0)


def scene(play, **core):
    """Play a scene with a node that listens, and the peers of another."""

    async def story():
        node = Node(1, MemoryFiles(), "/data")
        await node.listen()
        await node.start(static_voters([node]))
        peers = Peers(
            QuorumSettings(
                key=ME,
                core=QuorumConfig(cluster_id=CLUSTER, bootstrap_servers=1, **core),
                bootstrap_servers=((HOST, node.port),),
            )
        )
        try:
            await play(node, peers)
        finally:
            peers.close()
            await node.kill()
            node.close()

    asyncio.run(story())


def test_asking():
    """Does a question reach the node, and its answer come back as the core knows it?"""

    async def play(node, peers):
        answer = await peers.ask(Send(1, (node.endpoint,), 1, VOTE))
        assert (1, 1, False) == (answer.leader_id, answer.epoch, answer.granted)
        assert (node.endpoint,) == answer.endpoints
        versions = await peers.ask(Send(1, (node.endpoint,), 2, KRaftVersionsRequest()))
        assert (0, 1) == versions.kraft_versions

    scene(play)


def test_bootstrap_servers():
    """Is a bootstrap server reached by its number?"""

    async def play(node, peers):
        assert 1 == (await peers.ask(Send(-2, (), 1, VOTE))).leader_id

    scene(play)


def test_a_vote_does_not_stand_behind_a_fetch():
    """Is a vote answered while a fetch to the same node waits for news?"""

    async def play(node, peers):
        end = node.quorum.next_offset
        fetch = FetchRequest(
            cluster_id=CLUSTER, replica=ME, epoch=1, fetch_offset=end, last_epoch=1, max_wait_ms=60_000
        )
        fetching = asyncio.create_task(peers.ask(Send(1, (node.endpoint,), 1, fetch)))
        await peers.ask(Send(1, (node.endpoint,), 2, VOTE))
        assert not fetching.done()
        fetching.cancel()

    scene(play)


def test_a_node_that_moved():
    """Is a node asked where it listens now, not where it did?"""

    async def play(node, peers):
        nowhere = Endpoint("CONTROLLER", HOST, 1)
        with pytest.raises(LinkBroken):
            await peers.ask(Send(1, (nowhere,), 1, VOTE))
        assert 1 == (await peers.ask(Send(1, (node.endpoint,), 2, VOTE))).leader_id

    scene(play)


def test_a_node_nobody_knows():
    """Is a question to a node without an address no answer, rather than a mistake?"""

    async def play(node, peers):
        with pytest.raises(LinkBroken):
            await peers.ask(Send(5, (), 1, VOTE))

    scene(play)


def test_the_controllers_listener_is_chosen():
    """Is a node that listens in several places asked at the controllers' listener?"""

    async def play(node, peers):
        others = (Endpoint("OTHER", HOST, 1), node.endpoint)
        assert 1 == (await peers.ask(Send(1, others, 1, VOTE))).leader_id

    scene(play)
