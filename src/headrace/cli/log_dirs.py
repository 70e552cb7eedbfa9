"""kafka-log-dirs: what lies in the log directories of brokers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from headrace.cli.addresses import settle_address
from headrace.cli.administration import check
from headrace.cli.java_order import hash_order, partition_order
from headrace.cli.java_words import class_name
from headrace.cli.session import Failure, run_tool
from headrace.cli.tool import BOOTSTRAP, COMMAND_CONFIG, Option, Tool, UsageError, Values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.cli.session import Session

DESCRIBE_LOG_DIRS = 35

TOOL = Tool(
    name="kafka-log-dirs",
    summary="This tool helps to query log directory usage on the specified brokers.",
    options=(
        BOOTSTRAP,
        COMMAND_CONFIG,
        Option(name="describe", help="Describe the specified log directories on the specified brokers."),
        Option(name="topic-list", argument="topic,topic", default="", help="Only these topics; else all."),
        Option(name="broker-list", argument="id,id", default="", help="Only these brokers; else all."),
    ),
    examples=(
        ("How large a topic's partitions are", "--bootstrap-server localhost:9092 --describe --topic-list trucks_gps"),
    ),
)


def main(arguments: Sequence[str], program: str) -> int:
    """Run the tool."""
    return run_tool(TOOL, arguments, program, _run, check=_check)


def _check(values: Values) -> None:
    if not values.has("describe"):
        raise UsageError('Missing required argument "[describe]"')


async def _run(session: Session) -> int:
    settle_address(session, 'Missing required argument "[bootstrap-server]"', with_usage=True)
    values, report = session.values, session.report
    topics = set(_listed(values, "topic-list"))
    there = list(await session.cluster.brokers())
    wanted = [_number(text) for text in _listed(values, "broker-list")]
    absent = sorted(set(wanted) - set(there))
    if absent:
        raise Failure(
            f"ERROR: The given brokers do not exist from --broker-list: {_ids(absent)}. "
            f"Current existent brokers: {_ids(there)}"
        )
    chosen = [broker for broker in there if not wanted or broker in wanted]
    report.line("Querying brokers for log directories information")
    brokers = [{"broker": broker, "logDirs": await _log_dirs(session, broker, topics)} for broker in chosen]
    report.line(f"Received log directory information from brokers {_ids(chosen)}")
    document = {"brokers": brokers, "version": 1}
    report.line(json.dumps(document, separators=(",", ":"), ensure_ascii=False))
    report.data(document)
    return 0


async def _log_dirs(session: Session, broker: int, topics: set[str]) -> list[dict[str, Any]]:
    from headrace.wire.messages.describe_log_dirs import DescribeLogDirsRequest

    answer = await session.cluster.ask(DESCRIBE_LOG_DIRS, DescribeLogDirsRequest(topics=None), node_id=broker)
    check(answer.error_code)
    found = {
        result.log_dir: {
            "partitions": _partitions(result, topics),
            "error": class_name(result.error_code) if result.error_code else None,
            "logDir": result.log_dir,
        }
        for result in answer.results
    }
    return [found[path] for path in hash_order(found)]


def _partitions(result: Any, topics: set[str]) -> list[dict[str, Any]]:
    found = {
        (topic.name, one.partition_index): {
            "partition": f"{topic.name}-{one.partition_index}",
            "size": one.partition_size,
            "offsetLag": one.offset_lag,
            "isFuture": one.is_future_key,
        }
        for topic in result.topics
        if not topics or topic.name in topics
        for one in topic.partitions
    }
    return [found[place] for place in partition_order(found)]


def _listed(values: Values, name: str) -> list[str]:
    return [part for part in (values.get(name) or "").split(",") if part]


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise Failure(f'For input string: "{text}"', remedy="Brokers are given by their ids.") from None


def _ids(brokers: Sequence[int]) -> str:
    return ",".join(map(str, brokers))
