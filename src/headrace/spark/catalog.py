"""The cluster as the planner of a query sees it: partitions, who leads them, where they begin and end; and groups.

Everything here waits for its answer, and is tried again while a broker restarts or a leader moves, until the patience
the options give is over. A cluster that was never reached is not waited for as long: its address is likely wrong.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeVar

from headrace.client.admin_groups import GroupAdmin
from headrace.client.cluster import Cluster
from headrace.client.fault import ClientFault, NoBroker
from headrace.client.loop_thread import LoopThread
from headrace.client.records import TopicPartition
from headrace.model.errors import ErrorCode, KafkaError
from headrace.spark.offsets import Offsets, name_of
from headrace.spark.option_table import SourceOptions
from headrace.spark.positions import LATEST
from headrace.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

LIST_OFFSETS = 2
_CONSUMER = -1
_READ_UNCOMMITTED, _READ_COMMITTED = 0, 1
_FIRST_CONTACT_S = 15.0
_COMMIT_S = 5.0
_MISSING_TOPIC_S = 3.0
"""A topic that was created a moment ago is not known everywhere at once."""

NO_LEADER = -1
Result = TypeVar("Result")


class Catalog:
    """Answers the planner's questions; one for each query, with a thread and connections of its own."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._thread = LoopThread()
        self._cluster = Cluster(options.connection)
        self._groups = _Groups(self._cluster)
        self._is_reached = False
        self._missing: set[str] = set()
        self._leaders: dict[TopicPartition, int] = {}

    def close(self) -> None:
        """Hang up."""
        self._thread.run(self._cluster.close())
        self._thread.end()

    def leader_of(self, place: TopicPartition) -> int:
        """Who led a partition when we last looked; -1 if we did not."""
        return self._leaders.get(place, NO_LEADER)

    # --- questions

    def places(self) -> list[TopicPartition]:
        """The partitions that the subscription means now; a topic that is named and is not there is a fault."""
        return self._run(lambda: self._places(needs_all=True))

    def latest(self) -> dict[TopicPartition, int]:
        """Where the partitions that the subscription means, and that are there, end now."""
        return self._run(self._latest)

    def find(self, marks: Offsets) -> dict[TopicPartition, int]:
        """The offset for each EARLIEST, LATEST or time in milliseconds; -1 where no record is that young."""
        return self._run(lambda: self._find(marks)) if marks else {}

    def find_what_is_there(self, marks: Offsets) -> dict[TopicPartition, int]:
        """The same, without the partitions that are gone."""

        async def attempt() -> dict[TopicPartition, int]:
            there = set(await self._places(needs_all=False))
            return await self._find({place: mark for place, mark in marks.items() if place in there})

        return self._run(attempt) if marks else {}

    def committed(self, group: str, places: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """What a group has committed, where it has."""
        wanted = list(places)
        found = self._run(lambda: self._groups.list_group_offsets(group, wanted))
        return {place: one.offset for place, one in found.items()}

    def latest_and_commit(self, group: str, offsets: Offsets) -> tuple[dict[TopicPartition, int], Exception | None]:
        """Where partitions end, and at the same time commit a group's offsets; and why that failed, if it did."""

        async def both() -> tuple[dict[TopicPartition, int], Exception | None]:
            commit = self._commit(group, offsets)
            latest, problem = await asyncio.gather(self._latest(), commit, return_exceptions=True)
            if isinstance(latest, BaseException):
                raise latest
            assert not isinstance(problem, BaseException) or isinstance(problem, Exception)
            return latest, problem

        return self._run(both)

    def commit(self, group: str, offsets: Offsets) -> Exception | None:
        """Commit a group's offsets; why it failed, if it did: progress that is not seen is no reason to stop."""
        return self._thread.run(self._commit(group, offsets))

    # --- how they are answered

    def _run(self, attempt: Callable[[], Awaitable[Result]]) -> Result:
        patience_s = self._options.patience_s
        if not self._is_reached:
            patience_s = min(patience_s, _FIRST_CONTACT_S)

        async def guarded() -> Result:
            try:
                return await attempt()
            except NoBroker as fault:
                # Whoever is down may come up again: this passes, and another may be responsible then.
                raise KafkaError(ErrorCode.NETWORK_EXCEPTION, str(fault)) from fault

        try:
            found = self._thread.run(self._cluster.persist(guarded, timeout_s=patience_s))
        except KafkaError as error:
            raise _readable(error) from error
        self._is_reached = True
        return found

    async def _commit(self, group: str, offsets: Offsets) -> Exception | None:
        try:
            await asyncio.wait_for(self._groups.alter_group_offsets(group, offsets), _COMMIT_S)
        except (ClientFault, KafkaError, TimeoutError) as problem:
            return problem
        return None

    async def _latest(self) -> dict[TopicPartition, int]:
        places = await self._places(needs_all=False)
        return await self._find(dict.fromkeys(places, LATEST))

    async def _places(self, *, needs_all: bool) -> list[TopicPartition]:
        """Look who leads what; a topic that is missing is looked for a little longer, but only once."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _MISSING_TOPIC_S
        while True:
            leaders, missing = await self._look()
            if missing <= self._missing or loop.time() > deadline:
                break
            await asyncio.sleep(0.1)
        self._missing = missing
        if missing and needs_all:
            raise self._not_there(min(missing))
        self._leaders = leaders
        return sorted(leaders)

    async def _look(self) -> tuple[dict[TopicPartition, int], set[str]]:
        subscription = self._options.subscription
        answer = await self._cluster.metadata(subscription.topics)
        brokers = {broker.node_id for broker in answer.brokers}
        leaders: dict[TopicPartition, int] = {}
        missing: set[str] = set()
        for topic in answer.topics:
            name = topic.name or ""
            if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                missing.add(name)
                continue
            if topic.error_code:
                raise KafkaError(ErrorCode(topic.error_code), f"topic '{name}'")
            if subscription.pattern and topic.is_internal:
                continue
            for one in topic.partitions:
                place = TopicPartition(name, one.partition_index)
                if not subscription.wants(place):
                    continue
                if one.leader_id not in brokers:
                    raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{place.topic}-{place.partition} has no leader")
                leaders[place] = one.leader_id
        there = {place for place in subscription.assigned if place.topic not in missing}
        missing |= {name_of(place) for place in there if place not in leaders}
        return leaders, missing

    def _not_there(self, name: str) -> ClientFault:
        if name not in (self._options.subscription.topics or ()):
            return ClientFault(f"Partition {name} does not exist", "Correct it in assign.")
        return ClientFault(
            f"Topic '{name}' does not exist", f"Create it (headrace topics create {name}), or correct its name."
        )

    async def _find(self, marks: Offsets) -> dict[TopicPartition, int]:
        if not marks.keys() <= self._leaders.keys():
            await self._places(needs_all=False)
        shares: dict[int, dict[TopicPartition, int]] = {}
        for place, mark in marks.items():
            if place not in self._leaders:
                raise ClientFault(f"{place.topic}-{place.partition} does not exist", "Was its topic deleted?")
            shares.setdefault(self._leaders[place], {})[place] = mark
        try:
            answers = await asyncio.gather(*(self._ask(node_id, share) for node_id, share in shares.items()))
        except KafkaError:
            self._leaders = {}
            raise
        return {place: offset for answer in answers for place, offset in answer.items()}

    async def _ask(self, node_id: int, marks: Offsets) -> dict[TopicPartition, int]:
        topics: dict[str, list[ListOffsetsPartition]] = {}
        for place, mark in marks.items():
            one = ListOffsetsPartition(partition_index=place.partition, timestamp=mark)
            topics.setdefault(place.topic, []).append(one)
        request = ListOffsetsRequest(
            replica_id=_CONSUMER,
            isolation_level=_READ_COMMITTED if self._options.is_committed_only else _READ_UNCOMMITTED,
            topics=tuple(ListOffsetsTopic(name=name, partitions=tuple(ones)) for name, ones in topics.items()),
            timeout_ms=int(self._options.connection.request_timeout_s * 1000),
        )
        answer = await self._cluster.ask(LIST_OFFSETS, request, node_id=node_id)
        return {
            TopicPartition(topic.name, one.partition_index): _offset_of(topic.name, one)
            for topic in answer.topics
            for one in topic.partitions
        }


class _Groups(GroupAdmin):
    """The admin client's way with groups, over a cluster that is open already."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster


def _offset_of(topic: str, one: Any) -> int:
    if one.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        # The metadata named it a moment ago; the next look will tell.
        raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{topic}-{one.partition_index} is not at its leader")
    if one.error_code:
        raise KafkaError(ErrorCode(one.error_code), f"{topic}-{one.partition_index}")
    return int(one.offset)


_REMEDIES: Mapping[ErrorCode, str] = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "Ask for the right to read it.",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "Ask for the right to use this group.",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "Correct the name in subscribe.",
    ErrorCode.LEADER_NOT_AVAILABLE: "Is the broker that has it running?",
}


def _readable(error: KafkaError) -> Exception:
    """What will not pass, as a sentence; a broker that cannot be reached has one already."""
    if isinstance(error.__cause__, NoBroker):
        return error.__cause__
    return ClientFault(f"The cluster answers {error.code.name}: {error}", _REMEDIES.get(error.code, "See its log."))
