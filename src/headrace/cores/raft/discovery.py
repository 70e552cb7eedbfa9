"""How a replica that has no leader to fetch from finds one: it asks around with fetches."""

from __future__ import annotations

from headrace.cores.raft.messages import FetchRequest
from headrace.cores.raft.replica import BOOTSTRAP_FIRST, Replica
from headrace.cores.raft.states import NEVER
from headrace.cores.raft.voters import Endpoints


def fetch_request(replica: Replica, max_wait_ms: int) -> FetchRequest:
    """A fetch from where the log ends; only ever sent when all of it is flushed."""
    log = replica.log
    assert log.is_flushed, "a fetch offset says what is flushed"
    return FetchRequest(
        cluster_id=replica.config.cluster_id,
        replica=replica.key,
        epoch=replica.epoch,
        fetch_offset=log.end_offset,
        last_epoch=log.last_epoch,
        max_wait_ms=max_wait_ms,
        high_watermark=replica.high_watermark,
    )


def _places(replica: Replica) -> list[tuple[int, Endpoints]]:
    """Whom to ask: the bootstrap servers if there are any, else the voters."""
    count = replica.config.bootstrap_servers
    if count:
        return [(BOOTSTRAP_FIRST - index, ()) for index in range(count)]
    voters = replica.log.voters.last.by_id.values()
    return [(voter.key.id, voter.endpoints) for voter in voters if voter.key.id != replica.key.id]


def discover(replica: Replica) -> int:
    """Ask one of them, drawn by chance, if nobody is being asked; gives when to look again."""
    places = _places(replica)
    if not places or not replica.log.is_flushed:
        return NEVER
    node_id, endpoints = places[replica.chance(0, len(places) - 1)]
    asked = [node for node, _ in places if not replica.connections.is_ready(node, replica.now_ms)]
    if not asked:
        replica.send(node_id, endpoints, fetch_request(replica, 0))
        asked = [node_id]
    return min(replica.connections.next_ms(node, replica.now_ms) for node in asked)
