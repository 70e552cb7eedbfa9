"""--delete-offsets of the tools for groups: forget what a group has committed for some topics."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from headrace.cli.columns import columns, fixed, least
from headrace.cli.group_queries import delete_offsets
from headrace.cli.java_order import partition_order
from headrace.cli.java_words import exception, sentence
from headrace.cli.log_offsets import leaders
from headrace.cli.offset_reset import parse_partitions, remedy
from headrace.model.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from headrace.cli.session import Session

    Place = tuple[str, int]

NO_PARTITION = -1
_OF_THE_GROUP = frozenset(
    {
        ErrorCode.INVALID_GROUP_ID,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.NON_EMPTY_GROUP,
    }
)
_OF_PARTITIONS = frozenset(
    {
        ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)


async def forget(session: Session, results: dict[Place, int], places: list[Place]) -> int:
    """Forget the offsets, and say what became of each partition; `results` are those known before."""
    group_id = session.values.require("group")
    code = 0
    try:
        answered = await delete_offsets(session.cluster, group_id, places)
        results |= {place: answered.get(place, 0) for place in places}
        code = next((answered[place] for place in partition_order(places) if answered.get(place)), 0)
    except KafkaError as error:
        code = int(error.code)
        results |= dict.fromkeys(places, code)
    session.report.line(_headline(group_id, code))
    if advice := remedy(KafkaError(ErrorCode(code), "")):
        print(advice, file=sys.stderr)
    _print(session, results)
    return int(any(results.values()) or bool(code))


async def partitions_of(session: Session, topics: list[str]) -> tuple[dict[Place, int], list[Place]]:
    """What is already known to be wrong with the topics, and the partitions meant."""
    places = [place for topic in topics if ":" in topic for place in parse_partitions(topic)]
    results: dict[Place, int] = {}
    for topic in topics:
        if ":" not in topic:
            try:
                places += await leaders(session.cluster, [topic])
            except KafkaError as error:
                results[topic, NO_PARTITION] = int(error.code)
    return results, list(dict.fromkeys(places))


def _headline(group_id: str, code: int) -> str:
    if not code:
        return f"Request succeeded for deleting offsets from group {group_id}."
    if code in _OF_THE_GROUP:
        return f"\nError: {sentence(code)}"
    if code in _OF_PARTITIONS:
        return "\nError: Encountered some partition-level error, see the follow-up details."
    return f"\nError: Encountered some unknown error: {ErrorCode(code).name}"


def _print(session: Session, results: dict[Place, int]) -> None:
    rows: list[list[Any]] = [
        [
            topic,
            None if index == NO_PARTITION else index,
            f"Error: {exception(code)}" if code else "Successful",
        ]
        for (topic, index), code in sorted(results.items(), key=lambda item: f"{item[0][0]}{item[0][1]}")
    ]
    session.report.line()
    for line in columns([["TOPIC", "PARTITION", "STATUS"], *rows], [least(15), fixed(10), fixed(15)]):
        session.report.line(line)
    names = ("topic", "partition", "status")
    session.report.data([dict(zip(names, row, strict=True)) for row in rows])
