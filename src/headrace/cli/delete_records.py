"""kafka-delete-records: delete records of partitions up to an offset."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.cli.addresses import settle_address
from headrace.cli.administration import by_topic
from headrace.cli.java_order import partition_order
from headrace.cli.java_words import exception
from headrace.cli.json_file import FileRefused, check_version, field, read_json, rows
from headrace.cli.session import run_tool
from headrace.cli.tool import BOOTSTRAP, COMMAND_CONFIG, Option, Tool, Values
from headrace.model.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headrace.cli.administration import Place
    from headrace.cli.session import Session

DELETE_RECORDS = 21
_TIMEOUT_MS = 30_000

TOOL = Tool(
    name="kafka-delete-records",
    summary="This tool helps to delete records of the given partitions down to the specified offset.",
    options=(
        BOOTSTRAP,
        COMMAND_CONFIG,
        Option(
            name="offset-json-file",
            argument="file",
            help="Which records to delete: those before the offset; -1 stands for all there are. The file says: "
            '{"partitions": [{"topic": "foo", "partition": 1, "offset": 1}], "version": 1}',
        ),
    ),
    examples=(("Delete what the file says", "--bootstrap-server localhost:9092 --offset-json-file offsets.json"),),
)


def main(arguments: Sequence[str], program: str) -> int:
    """Run the tool."""
    return run_tool(TOOL, arguments, program, _run, check=_check)


def _check(values: Values) -> None:
    values.require("offset-json-file")


async def _run(session: Session) -> int:
    settle_address(session, 'Missing required argument "[bootstrap-server]"', with_usage=True)
    report = session.report
    offsets = _offsets(session.values.require("offset-json-file"))
    report.line("Executing records delete operation")
    results = await _delete(session, offsets)
    report.line("Records delete operation completed:")
    documents = []
    for topic, index in sorted(offsets):
        code, low_watermark = results[topic, index]
        told = f"error: {exception(code)}" if code else f"low_watermark: {low_watermark}"
        report.line(f"partition: {topic}-{index}\t{told}")
        document = {"topic": topic, "partition": index, "lowWatermark": None if code else low_watermark}
        documents.append(document | ({"error": ErrorCode(code).name} if code else {}))
    report.data(documents)
    return int(any(code for code, _ in results.values()))


def _offsets(path: str) -> dict[Place, int]:
    document = read_json(path)
    check_version(document)
    if "partitions" not in document:
        raise FileRefused("Missing partitions field")
    found: dict[Place, int] = {}
    twice: dict[Place, None] = {}
    for row in rows(document, "partitions"):
        place = (field(row, "topic", str), field(row, "partition", int))
        if place in found:
            twice[place] = None
        found[place] = field(row, "offset", int)
    if twice:
        shown = ",".join(f"{topic}-{index}" for topic, index in partition_order(twice))
        raise FileRefused(f"Offset json file contains duplicate topic partitions: {shown}")
    return found


async def _delete(session: Session, offsets: Mapping[Place, int]) -> dict[Place, tuple[int, int]]:
    """Error and low watermark of each partition, asked of its leader."""
    from headrace.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic

    metadata = await session.cluster.metadata(dict.fromkeys(topic for topic, _ in offsets))
    leaders = {
        (topic.name, partition.partition_index): (partition.leader_id, partition.error_code)
        for topic in metadata.topics
        for partition in topic.partitions
    }
    results: dict[Place, tuple[int, int]] = {}
    by_leader: dict[int, list[Place]] = {}
    for place in offsets:
        leader, _ = leaders.get(place, (None, 0))
        if leader is None:
            results[place] = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
        elif leader < 0:
            results[place] = (ErrorCode.LEADER_NOT_AVAILABLE, -1)
        else:
            by_leader.setdefault(leader, []).append(place)
    for leader, places in by_leader.items():
        topics = tuple(
            DeleteRecordsTopic(
                name=name,
                partitions=tuple(
                    DeleteRecordsPartition(partition_index=index, offset=offsets[name, index]) for index in indexes
                ),
            )
            for name, indexes in by_topic(places).items()
        )
        request = DeleteRecordsRequest(topics=topics, timeout_ms=_TIMEOUT_MS)
        answer = await session.cluster.ask(DELETE_RECORDS, request, node_id=leader)
        for topic in answer.topics:
            for one in topic.partitions:
                results[topic.name, one.partition_index] = (one.error_code, one.low_watermark)
    return results
