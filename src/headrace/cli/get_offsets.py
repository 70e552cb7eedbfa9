"""kafka-get-offsets: the offsets of partitions at a point in time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.cli.session import Failure, run_tool
from headrace.cli.tool import BOOTSTRAP, COMMAND_CONFIG, Option, Tool, Values
from headrace.cli.topic_filter import topic_filter
from headrace.cores.metadata import INTERNAL_TOPICS
from headrace.model.errors import ErrorCode, HeadraceError
from headrace.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from headrace.cli.session import Session

LIST_OFFSETS = 2
TIMES = {
    "latest": -1,
    "earliest": -2,
    "max-timestamp": -3,
    "earliest-local": -4,
    "latest-tiered": -5,
    "earliest-pending-upload": -6,
}

TOOL = Tool(
    name="kafka-get-offsets",
    summary="An interactive shell for getting topic-partition offsets.",
    options=(
        BOOTSTRAP,
        COMMAND_CONFIG,
        Option(name="broker-list", argument="host:port,...", help="", replaced_by="bootstrap-server", is_hidden=True),
        Option(
            name="topic-partitions",
            argument="topic1:1,topic2:0-3,topic3,topic4:5-,topic5:-3",
            help="Partitions by topic; a range leaves out its end. Topics are regular expressions.",
        ),
        Option(name="topic", argument="regex", help="The topics to ask about; all where there is none."),
        Option(name="partitions", argument="ids", help="Partitions to ask about, separated by commas; else all."),
        Option(
            name="time",
            argument="timestamp|latest|earliest|max-timestamp|earliest-local|latest-tiered|earliest-pending-upload",
            default="latest",
            help="When: milliseconds since 1970, or one of the words; -1 to -6 stand for them too.",
        ),
        Option(name="exclude-internal-topics", help="Leave out Kafka's own topics."),
    ),
    examples=(
        ("How many records each partition has", "--bootstrap-server localhost:9092 --topic trucks_gps"),
        ("Where each partition begins", "--bootstrap-server localhost:9092 --topic trucks_gps --time earliest"),
    ),
)

Place = tuple[str, int]


def main(arguments: Sequence[str], program: str) -> int:
    """Run the tool."""
    return run_tool(TOOL, arguments, program, _run, check=_check)


def _check(values: Values) -> None:
    if values.has("topic-partitions") and (values.has("topic") or values.has("partitions")):
        raise Failure("Error occurred: --topic-partitions cannot be used with --topic or --partitions")
    _time(values)


def _time(values: Values) -> int:
    text = values.require("time")
    if text in TIMES:
        return TIMES[text]
    try:
        return int(text)
    except ValueError:
        raise Failure(
            f"Error occurred: Malformed time argument {text}. Please use -1 or latest / -2 or earliest / -3 or "
            "max-timestamp / -4 or earliest-local / -5 or latest-tiered / -6 or earliest-pending-upload, or a "
            "specified long format timestamp"
        ) from None


async def _run(session: Session) -> int:
    cluster, values = session.cluster, session.values
    wanted = _filter(values)
    metadata = await cluster.metadata()
    places = {
        (name, partition.partition_index): partition.leader_id
        for topic in metadata.topics
        if (name := topic.name) and not (values.has("exclude-internal-topics") and name in INTERNAL_TOPICS)
        for partition in topic.partitions
        if wanted(name, partition.partition_index)
    }
    if not places:
        raise Failure("Error occurred: Could not match any topic-partitions with the specified filters")
    found = await _ask(session, places, _time(values))
    for (topic, index), offset in sorted(found.items()):
        if offset is not None:
            session.report.line(f"{topic}:{index}:{offset}")
    session.report.data(
        [{"topic": topic, "partition": index, "offset": offset} for (topic, index), offset in sorted(found.items())]
    )
    return 0


async def _ask(session: Session, places: dict[Place, int], time: int) -> dict[Place, int | None]:
    """The offset of each partition from its leader; None where there is no record as late."""
    found: dict[Place, int | None] = {}
    for leader in sorted(set(places.values())):
        mine = [place for place, where in places.items() if where == leader]
        request = ListOffsetsRequest(replica_id=-1, isolation_level=0, topics=tuple(_topics(mine, time)))
        answer = await session.cluster.ask(LIST_OFFSETS, request, node_id=leader)
        for topic in answer.topics:
            for partition in topic.partitions:
                if partition.error_code:
                    raise Failure(
                        f"Error occurred: Skip getting offsets for topic-partition "
                        f"{topic.name}-{partition.partition_index} due to error: "
                        f"{ErrorCode(partition.error_code).name}"
                    )
                offset = partition.offset
                found[topic.name, partition.partition_index] = None if offset < 0 else offset
    return found


def _topics(places: Iterable[Place], time: int) -> Iterable[Any]:
    by_topic: dict[str, list[ListOffsetsPartition]] = {}
    for topic, index in places:
        by_topic.setdefault(topic, []).append(ListOffsetsPartition(partition_index=index, timestamp=time))
    return (ListOffsetsTopic(name=name, partitions=tuple(asked)) for name, asked in by_topic.items())


# --- which partitions


def _filter(values: Values) -> Callable[[str, int], bool]:
    listed = values.get("topic-partitions")
    if listed is not None:
        rules = [_rule(text) for text in listed.split(",") if text]
        return lambda topic, index: any(rule(topic, index) for rule in rules)
    topics = _topics_named(values.get("topic") or ".*")
    ids = values.get("partitions")
    chosen = None if ids is None else _chosen(ids)
    return lambda topic, index: topics(topic) and (chosen is None or index in chosen)


def _chosen(ids: str) -> set[int]:
    try:
        return {int(text) for text in ids.split(",") if text}
    except ValueError:
        raise Failure(
            f"Error occurred: --partitions expects a comma separated list of numeric partition ids, but received: {ids}"
        ) from None


def _rule(text: str) -> Callable[[str, int], bool]:
    """One of `topic`, `topic:3`, `topic:1-4`, `topic:2-`, `topic:-5`; ranges leave out their end."""
    name, colon, span = text.rpartition(":")
    if not colon:
        name, span = text, ""
    topics = _topics_named(name or ".*")
    if not span:
        return lambda topic, _: topics(topic)
    first, dash, last = span.partition("-")
    if not dash:
        only = _number(first, text)
        return lambda topic, index: topics(topic) and index == only
    low = _number(first, text) if first else 0
    high = _number(last, text) if last else None
    return lambda topic, index: topics(topic) and low <= index and (high is None or index < high)


def _topics_named(text: str) -> Callable[[str], bool]:
    try:
        return topic_filter(text)
    except HeadraceError as error:
        raise Failure(f"Error occurred: {error}") from None


def _number(text: str, within: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise Failure(
            f"Error occurred: org.apache.kafka.tools.TerseException: Invalid rule specification: {within}",
            remedy="Write topic:3, topic:1-4, topic:2- or topic:-5.",
        )
    return int(text)
