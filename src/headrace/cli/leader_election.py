"""kafka-leader-election: give partitions their preferred leader back, or any leader at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.cli.addresses import settle_address
from headrace.cli.administration import ask_controller, by_topic, check
from headrace.cli.java_order import partition_order
from headrace.cli.java_words import exception
from headrace.cli.json_file import FileRefused, field, read_json, rows
from headrace.cli.session import Failure, run_tool
from headrace.cli.tool import BOOTSTRAP, COMMAND_CONFIG, Option, Tool, Values
from headrace.model.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from headrace.cli.administration import Place
    from headrace.cli.session import Session

ELECT_LEADERS = 43
ELECTIONS = {"preferred": 0, "unclean": 1}
WAYS = ("topic", "all-topic-partitions", "path-to-json-file")
_TIMEOUT_MS = 15_000

TOOL = Tool(
    name="kafka-leader-election",
    summary="This tool attempts to elect a new leader for a set of topic partitions. The type of elections supported "
    "are preferred replicas and unclean replicas.",
    options=(
        BOOTSTRAP,
        COMMAND_CONFIG,
        Option(
            name="admin.config",
            argument="file",
            help="A properties file with the client's settings.",
            replaced_by="command-config",
            warning="Option --admin.config has been deprecated and will be removed in a future version. Use "
            "--command-config instead.",
            conflict='Option "[admin.config]" can\'t be used with option "[command-config]"',
        ),
        Option(
            name="path-to-json-file",
            argument="file",
            help='The partitions: {"partitions": [{"topic": "foo", "partition": 1}, {"topic": "bar", "partition": 2}]}',
        ),
        Option(name="topic", argument="topic", help="The topic of the partition."),
        Option(name="partition", argument="id", help="The partition; needed with --topic."),
        Option(name="all-topic-partitions", help="Every partition that such an election can help."),
        Option(
            name="election-type",
            argument="preferred|unclean",
            help="preferred: where another than the preferred replica leads. unclean: where none leads, even at the "
            "cost of records.",
        ),
    ),
    examples=(
        (
            "After a broker came back",
            "--bootstrap-server localhost:9092 --election-type preferred --all-topic-partitions",
        ),
    ),
)


def main(arguments: Sequence[str], program: str) -> int:
    """Run the tool."""
    return run_tool(TOOL, arguments, program, _run)


def _check(session: Session) -> None:
    values = session.values
    missing = []
    if not values.has("bootstrap-server") and not session.properties().get("bootstrap.servers"):
        missing.append("bootstrap-server")
    if not values.has("election-type"):
        missing.append("election-type")
    if missing:
        raise Failure(f"Missing required option(s): {', '.join(missing)}")
    if sum(values.has(name) for name in WAYS) != 1:
        raise Failure(f"One and only one of the following options is required: {', '.join(WAYS)}")
    if values.has("topic") and not values.has("partition"):
        raise Failure("Missing required option(s): partition")
    if not values.has("topic") and values.has("partition"):
        raise Failure("Option partition is only allowed if topic is used")


async def _run(session: Session) -> int:
    _check(session)
    settle_address(session)
    kind = session.values.require("election-type").lower()
    if kind not in ELECTIONS:
        raise Failure(f"Cannot parse argument '{kind}' of option election-type", remedy="Say preferred or unclean.")
    results = await elect(session, ELECTIONS[kind], _places(session.values))
    report = session.report
    done = [place for place, (code, _) in results.items() if not code]
    needless = [place for place, (code, _) in results.items() if code == ErrorCode.ELECTION_NOT_NEEDED]
    failed = {place: error for place, error in results.items() if place not in done and place not in needless}
    if done:
        report.line(f"Successfully completed leader election ({kind.upper()}) for partitions {_shown(done)}")
    if needless:
        report.line(f"Valid replica already elected for partitions {_shown(needless)}")
    for topic, index in partition_order(failed):
        code, message = failed[topic, index]
        report.line(
            f"Error completing leader election ({kind.upper()}) for partition: {topic}-{index}: "
            f"{exception(code, message)}"
        )
    report.data(
        [
            {
                "topic": topic,
                "partition": index,
                "elected": not code,
                "error": ErrorCode(code).name if code else None,
            }
            for (topic, index), (code, _) in sorted(results.items())
        ]
    )
    if failed:
        raise Failure(f"{len(failed)} replica(s) could not be elected")
    return 0


def _shown(places: Iterable[Place]) -> str:
    return ", ".join(f"{topic}-{index}" for topic, index in partition_order(places))


def _places(values: Values) -> list[Place] | None:
    """The partitions that were named; None for all."""
    if values.has("all-topic-partitions"):
        return None
    if values.has("topic"):
        return [(values.require("topic"), values.number("partition") or 0)]
    document = read_json(values.require("path-to-json-file"), invalid="Replica election data is empty")
    if "partitions" not in document:
        raise FileRefused('Replica election data is missing "partitions" field')
    places = [(field(row, "topic", str), field(row, "partition", int)) for row in rows(document, "partitions")]
    twice = [place for position, place in enumerate(places) if place in places[:position]]
    if twice:
        raise FileRefused(f"Replica election data contains duplicate partitions: [{_shown(twice)}]")
    return places


async def elect(
    session: Session, election_type: int, places: list[Place] | None
) -> dict[Place, tuple[int, str | None]]:
    """Hold elections in these partitions, or with None in all; error code and message by partition."""
    from headrace.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions

    asked = None
    if places is not None:
        asked = tuple(
            TopicPartitions(topic=topic, partitions=tuple(indexes)) for topic, indexes in by_topic(places).items()
        )
    request = ElectLeadersRequest(election_type=election_type, topic_partitions=asked, timeout_ms=_TIMEOUT_MS)
    answer = await ask_controller(session.cluster, ELECT_LEADERS, request)
    try:
        check(answer.error_code)
    except KafkaError as error:
        if error.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            session.report.line("Not authorized to perform leader election")
            raise Failure("Not authorized to perform leader election") from None
        raise
    return {
        (topic.topic, one.partition_id): (one.error_code, one.error_message)
        for topic in answer.replica_election_results
        for one in topic.partition_result
    }
