"""The other nodes: questions of the core put on the wire, and their answers.

A node has two links: a fetch may wait for news at the other side, and answers leave a connection in the order of their
questions, so a vote must not stand behind a fetch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.coordination.quorum import epoch_messages, fetch_messages, vote_messages, voter_messages
from headrace.coordination.quorum.wire_terms import listening_at
from headrace.cores.raft import messages as core
from headrace.cores.raft.replica import BOOTSTRAP_FIRST
from headrace.net.link import Link, LinkBroken, is_listening

if TYPE_CHECKING:
    from headrace.coordination.quorum.settings import QuorumSettings
    from headrace.cores.raft.outputs import Send
    from headrace.cores.raft.voters import Endpoints

DESCRIBE_QUORUM, DESCRIBE_QUORUM_VERSION = 55, 2


class Form(NamedTuple):
    """How a question of the core goes over the wire."""

    api_key: int
    version: int
    to_wire: Callable[[Any], Any]
    from_wire: Callable[[Any, str], core.Response | None]


def _forms(fetch_bytes_max: int) -> dict[type[core.Request], Form]:
    return {
        core.VoteRequest: Form(52, 2, vote_messages.request_to_wire, vote_messages.response_from_wire),
        core.BeginQuorumEpochRequest: Form(
            53, 1, epoch_messages.begin_request_to_wire, epoch_messages.begin_response_from_wire
        ),
        core.EndQuorumEpochRequest: Form(
            54, 1, epoch_messages.end_request_to_wire, epoch_messages.end_response_from_wire
        ),
        core.FetchRequest: Form(
            1,
            18,
            lambda request: fetch_messages.fetch_request_to_wire(request, fetch_bytes_max),
            fetch_messages.fetch_response_from_wire,
        ),
        core.FetchSnapshotRequest: Form(
            59, 1, fetch_messages.snapshot_request_to_wire, fetch_messages.snapshot_response_from_wire
        ),
        core.UpdateVoterRequest: Form(
            82, 0, voter_messages.update_request_to_wire, voter_messages.update_response_from_wire
        ),
        core.KRaftVersionsRequest: Form(
            18, 4, voter_messages.versions_request_to_wire, voter_messages.versions_response_from_wire
        ),
    }


class Peers:
    """Links to the nodes of the quorum."""

    def __init__(self, settings: QuorumSettings) -> None:
        self._settings = settings
        self._forms = _forms(settings.fetch_bytes_max)
        self._links: dict[tuple[int, bool], Link] = {}
        """By node and whether it is for fetches."""

    async def ask(self, send: Send) -> core.Response:
        """Ask a node what the core wants to know; LinkBroken if there is no answer, or none that makes sense."""
        form = self._forms[type(send.request)]
        link = self._link(send.to, send.endpoints, for_fetches=isinstance(send.request, core.FetchRequest))
        message = await link.ask(
            form.api_key,
            form.version,
            form.to_wire(send.request),
            timeout_s=self._settings.core.request_timeout_ms / 1000,
        )
        response = form.from_wire(message, self._settings.listener)
        if response is None:
            raise LinkBroken(f"{link} answered something else")
        return response

    async def describe(self, leader_id: int, endpoints: Endpoints, question: Any) -> Any:
        """Ask the leader for the state of the quorum."""
        return await self._link(leader_id, endpoints, for_fetches=False).ask(
            DESCRIBE_QUORUM,
            DESCRIBE_QUORUM_VERSION,
            question,
            timeout_s=self._settings.core.request_timeout_ms / 1000,
        )

    async def is_there(self, endpoints: Endpoints) -> bool:
        """Whether a node accepts connections; one that nobody knows the address of does not."""
        found = listening_at(endpoints, self._settings.listener)
        timeout_s = self._settings.core.request_timeout_ms / 1000
        return found is not None and await is_listening(found.host, found.port, timeout_s=timeout_s)

    def _link(self, node_id: int, endpoints: Endpoints, *, for_fetches: bool) -> Link:
        host, port = self._address(node_id, endpoints)
        link = self._links.get((node_id, for_fetches))
        if link is None or (link.host, link.port) != (host, port):
            if link is not None:
                link.close("the node listens elsewhere now")
            link = Link(host, port, client_id=f"quorum-{self._settings.key.id}")
            self._links[node_id, for_fetches] = link
        return link

    def _address(self, node_id: int, endpoints: Endpoints) -> tuple[str, int]:
        if node_id <= BOOTSTRAP_FIRST:
            return self._settings.bootstrap_servers[BOOTSTRAP_FIRST - node_id]
        found = listening_at(endpoints, self._settings.listener)
        if found is None:
            raise LinkBroken(f"nobody knows where node {node_id} listens")
        return found.host, found.port

    def close(self) -> None:
        """Hang up everywhere."""
        for link in self._links.values():
            link.close()
        self._links.clear()
