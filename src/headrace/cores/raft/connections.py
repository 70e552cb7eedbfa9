"""Which requests are under way: one to a node at a time, given up after a while, tried again after a pause."""

from __future__ import annotations

from headrace.cores.raft.config import QuorumConfig
from headrace.cores.raft.messages import Request


class Connections:
    """The requests a replica has sent and not seen answered."""

    __slots__ = ("_config", "_correlation", "_sent", "_wait_until")

    def __init__(self, config: QuorumConfig, correlation: int = 0) -> None:
        self._config = config
        self._correlation = correlation
        self._sent: dict[int, tuple[int, int, Request]] = {}
        """By node: the correlation id, when the request is given up, and the request."""
        self._wait_until: dict[int, int] = {}

    def is_ready(self, node_id: int, now_ms: int) -> bool:
        """Whether a request may be sent to a node; one that is overdue is given up, and was pause enough."""
        sent = self._sent.get(node_id)
        if sent is not None:
            if now_ms < sent[1]:
                return False
            del self._sent[node_id]
        return self._wait_until.get(node_id, now_ms) <= now_ms

    def is_waiting(self, node_id: int, now_ms: int) -> bool:
        """Whether a node failed to answer and is left alone for a moment."""
        return now_ms < self._wait_until.get(node_id, now_ms)

    def sent(self, node_id: int, request: Request, now_ms: int) -> int:
        """Take down a request; gives its correlation id."""
        self._correlation += 1
        self._sent[node_id] = (self._correlation, now_ms + self._config.request_timeout_ms, request)
        return self._correlation

    def expected(self, node_id: int, correlation: int) -> Request | None:
        """The request an answer is to, if it is under way; repeated and late answers are to none."""
        sent = self._sent.get(node_id)
        return sent[2] if sent is not None and sent[0] == correlation else None

    def answered(self, node_id: int) -> None:
        """The node may be asked the next thing."""
        self._sent.pop(node_id, None)
        self._wait_until.pop(node_id, None)

    def failed(self, node_id: int, now_ms: int) -> None:
        """The node did not answer, or not well: leave it alone for a moment."""
        self._sent.pop(node_id, None)
        self._wait_until[node_id] = now_ms + self._config.retry_backoff_ms

    def forget_sent(self) -> None:
        """The role has changed: what was asked in the old one does not matter any more."""
        self._sent.clear()

    def next_ms(self, node_id: int, now_ms: int) -> int:
        """When a node may be asked again at the latest."""
        sent = self._sent.get(node_id)
        return sent[1] if sent is not None else max(self._wait_until.get(node_id, now_ms), now_ms)
