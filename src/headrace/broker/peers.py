"""The way to the other brokers of the cluster, by their ids, over the listener that brokers use among themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.net.link import Link, LinkBroken

if TYPE_CHECKING:
    from collections.abc import Callable

    from headrace.broker.api import Api
    from headrace.cores.metadata import Metadata


class Peers:
    """Links to brokers, made when they are first needed."""

    def __init__(
        self,
        metadata: Metadata,
        apis: dict[int, Api],
        *,
        node_id: int,
        listener: Callable[[], str],
        timeout_s: Callable[[], float],
    ) -> None:
        """`listener` names the one brokers use among themselves; `timeout_s` is how long an answer may take."""
        self._metadata = metadata
        self._apis = apis
        self._client_id = f"broker-{node_id}"
        self._listener = listener
        self._timeout_s = timeout_s
        self._links: dict[tuple[int, str], Link] = {}

    def address_of(self, node_id: int) -> tuple[str, int]:
        """Where a broker listens for others; LinkBroken if it is not known to be there."""
        registration = self._metadata.brokers.get(node_id)
        for endpoint in registration.end_points if registration is not None else ():
            if endpoint.name == self._listener():
                return endpoint.host, endpoint.port
        raise LinkBroken(f"broker {node_id} is not registered with listener {self._listener()}")

    def link(self, node_id: int, purpose: str = "requests") -> Link:
        """The link to a broker; those that must not wait for each other have a purpose of their own."""
        host, port = self.address_of(node_id)
        known = self._links.get((node_id, purpose))
        if known is not None and (known.host, known.port) == (host, port):
            return known
        if known is not None:
            known.close("the broker has moved")
        made = self._links[node_id, purpose] = Link(host, port, client_id=self._client_id)
        return made

    async def ask(
        self, node_id: int, api_key: int, request: Any, *, purpose: str = "requests", timeout_s: float | None = None
    ) -> Any:
        """Ask a broker, in the newest version of the API we serve ourselves; LinkBroken if it does not answer."""
        version = self._apis[api_key].high
        timeout_s = self._timeout_s() if timeout_s is None else timeout_s
        return await self.link(node_id, purpose).ask(api_key, version, request, timeout_s=timeout_s)

    def close(self) -> None:
        """Hang up everywhere."""
        for link in self._links.values():
            link.close()
        self._links.clear()
