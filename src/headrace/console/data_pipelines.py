"""What the pages about pipelines show: the records pipelines write about themselves, of the last hour.

Each tab has a reader of its own that goes on where it stopped: it costs what is new.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from headrace.client.records import TopicPartition
from headrace.model.errors import ErrorCode, KafkaError
from headrace.pipeline.declaration import PROGRESS_TOPIC
from headrace.pipeline.progress import QueryProgress

if TYPE_CHECKING:
    from headrace.client.fetching import FetchedRecord
    from headrace.gateway.services import Services

SPAN_MS = 3_600_000
_RECORDS_MAX = 30_000
"""Read at the most when a tab is opened."""
_BATCHES_MAX = 4000
"""Kept of one query: an hour at about one a second."""
_FETCH_BYTES = 256 * 1024
_ROUNDS_MAX = 400
_RUNS_MS = 60_000
"""A query that says nothing for longer does not run: an idle one speaks every ten seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryView:
    """A query as it is now, and its batches of the last hour."""

    latest: QueryProgress
    batches: tuple[QueryProgress, ...]
    is_running: bool

    @property
    def name(self) -> str:
        """Of the pipeline and of the query."""
        return f"{self.latest.pipeline}/{self.latest.query}"


class ProgressReader:
    """Follows the topic of progress."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._positions: dict[TopicPartition, int] = {}
        self._batches: dict[tuple[str, str], deque[QueryProgress]] = {}

    async def read(self) -> list[QueryView]:
        """Everything known now, by name; nothing if no pipeline has ever run."""
        now_ms = time.time_ns() // 1_000_000
        if not self._positions:
            self._positions = await self._begin(now_ms)
        for _ in range(_ROUNDS_MAX if self._positions else 0):
            if not await self._read_on():
                break
        return self._views(now_ms)

    async def _begin(self, now_ms: int) -> dict[TopicPartition, int]:
        admin = self._services.admin
        try:
            (topic,) = await admin.describe_topics([PROGRESS_TOPIC])
        except KafkaError as error:
            if error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                return {}
            raise
        places = [TopicPartition(PROGRESS_TOPIC, one.partition) for one in topic.partitions]
        ends = await admin.list_offsets(dict.fromkeys(places, "latest"))
        first = await admin.list_offsets(dict.fromkeys(places, "earliest"))
        since = await admin.list_offsets(dict.fromkeys(places, now_ms - SPAN_MS))
        return {
            place: max(
                first[place].offset,
                # Nothing as late: only what is about to come.
                since[place].offset if since[place].offset >= 0 else ends[place].offset,
                ends[place].offset - _RECORDS_MAX,
            )
            for place in places
        }

    async def _read_on(self) -> bool:
        """Whether there may be more."""
        try:
            found = await self._services.fetcher.fetch(
                self._positions, max_wait_ms=0, max_bytes=_FETCH_BYTES, partition_bytes=_FETCH_BYTES
            )
        except KafkaError as error:
            if error.code != ErrorCode.OFFSET_OUT_OF_RANGE:
                raise
            # What was to be read was deleted: begin anew.
            self._positions = {}
            return False
        more = False
        for place, part in found.items():
            self.take(part.records)
            more = more or part.position > self._positions[place]
            self._positions[place] = part.position
        return more

    def take(self, records: Iterable[FetchedRecord]) -> None:
        """Keep what records say; what is no progress is passed over."""
        for record in records:
            try:
                progress = QueryProgress.from_document(msgspec.json.decode(record.value or b""))
            except (msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError):
                continue
            name = (progress.pipeline, progress.query)
            self._batches.setdefault(name, deque(maxlen=_BATCHES_MAX)).append(progress)

    def _views(self, now_ms: int) -> list[QueryView]:
        found = []
        for name in sorted(self._batches):
            batches = self._batches[name]
            while len(batches) > 1 and batches[0].time_ms < now_ms - SPAN_MS:
                batches.popleft()
            found.append(
                QueryView(
                    latest=batches[-1],
                    batches=tuple(batches),
                    is_running=now_ms - batches[-1].time_ms < _RUNS_MS,
                )
            )
        return found
