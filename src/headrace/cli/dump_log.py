"""kafka-dump-log: what is in a partition's files."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from headrace.cli.session import run_tool
from headrace.cli.tool import Option, Tool, Values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.cli.dump_log_indexes import Pairs, Problems
    from headrace.cli.session import Session

_STRINGS = "org.apache.kafka.tools.api.StringDecoder"
DECODERS = (
    "offsets-decoder",
    "transaction-log-decoder",
    "cluster-metadata-decoder",
    "remote-log-metadata-decoder",
    "share-group-state-decoder",
)

TOOL = Tool(
    name="kafka-dump-log",
    summary=(
        "This tool helps to parse a log file and dump its contents to the console, useful for debugging a seemingly "
        "corrupt log segment."
    ),
    options=(
        Option(name="files", argument="file1,file2,...", help="REQUIRED: The files to show."),
        Option(name="print-data-log", help="Print the records' keys and values; every decoder does, too."),
        Option(name="deep-iteration", help="Print the records, not just the batches; --print-data-log does, too."),
        Option(name="verify-index-only", help="Hold indexes against the log without printing them."),
        Option(name="index-sanity-check", help="Check indexes as a broker does at its start, without printing them."),
        Option(name="max-message-size", argument="bytes", default="5242880", help="The size of the largest batch."),
        Option(name="max-bytes", argument="bytes", default="2147483647", help="How much of each log to read."),
        Option(name="skip-record-metadata", help="Print keys and values only, and no control records."),
        Option(
            name="key-decoder-class", argument="class", is_argument_optional=True, default=_STRINGS, help="For keys."
        ),
        Option(
            name="value-decoder-class",
            argument="class",
            is_argument_optional=True,
            default=_STRINGS,
            help="For values.",
        ),
        Option(name="offsets-decoder", help="Read records as those of __consumer_offsets."),
        Option(name="transaction-log-decoder", help="Read records as those of __transaction_state."),
        Option(name="cluster-metadata-decoder", help="Read records as those of __cluster_metadata."),
        Option(name="remote-log-metadata-decoder", help="Read records as those of __remote_log_metadata."),
        Option(name="share-group-state-decoder", help="Read records as those of __share_group_state."),
    ),
    examples=(
        ("The records of a segment", "--print-data-log --files data/trucks_gps-0/00000000000000000000.log"),
        ("The metadata log", "--cluster-metadata-decoder --files data/__cluster_metadata-0/00000000000000000000.log"),
    ),
)


def main(arguments: Sequence[str], program: str) -> int:
    """Run the tool."""
    return run_tool(TOOL, arguments, program, _run, check=_check)


def _check(values: Values) -> None:
    values.require("files")
    for name in ("max-message-size", "max-bytes"):
        values.number(name)


async def _run(session: Session) -> int:
    from headrace.cli.dump_log_indexes import Problems

    values = session.values
    problems = Problems()
    gaps: dict[str, Pairs] = {}
    documents = []
    for path in values.require("files").split(","):
        session.report.line(f"Dumping {path}")
        documents.append({"file": path, "entries": _dump(session, path, problems, gaps)})
    session.report.data(documents)
    _print_problems(problems, gaps)
    return 0


def _dump(session: Session, path: str, problems: Problems, gaps: dict[str, Pairs]) -> list[dict[str, Any]]:
    """Print one file, by its kind."""
    import os.path

    from headrace.cli import dump_log_indexes as indexes
    from headrace.cli.dump_log_segment import dump_segment

    values, report = session.values, session.report
    check = indexes.Check(
        sanity_only=values.has("index-sanity-check"),
        verify_only=values.has("verify-index-only"),
        max_message_bytes=values.number("max-message-size") or 0,
    )
    kind = os.path.splitext(path)[1]  # noqa: PTH122
    if kind in {".log", ".checkpoint"}:
        documents, found = dump_segment(path, _view(values), report)
        if found:
            gaps[os.path.abspath(path)] = found  # noqa: PTH100
        return documents
    if kind == ".index":
        return indexes.dump_offset_index(path, check, problems, report)
    if kind == ".timeindex":
        return indexes.dump_time_index(path, check, problems, report)
    if kind == ".snapshot":
        return indexes.dump_producers(path, report)
    if kind == ".txnindex":
        return indexes.dump_aborted(path, report)
    print(f"Ignoring unknown file {path}", file=sys.stderr)
    return []


def _view(values: Values) -> Any:
    from headrace.cli.dump_log_decoders import PARSERS, decoded
    from headrace.cli.dump_log_segment import View

    chosen = next((name for name in DECODERS if values.has(name)), None)
    classes = [values.get(f"{part}-decoder-class") or _STRINGS for part in ("key", "value")]
    prints_data = chosen is not None or any(
        values.has(name) for name in ("print-data-log", "key-decoder-class", "value-decoder-class")
    )
    return View(
        parse=PARSERS[chosen] if chosen else decoded(*classes),
        prints_data=prints_data,
        is_deep=prints_data or values.has("deep-iteration"),
        skips_metadata=values.has("skip-record-metadata"),
        max_bytes=values.number("max-bytes") or 0,
    )


def _print_problems(problems: Problems, gaps: dict[str, Pairs]) -> None:
    """Tell what does not fit together, as Kafka does, on standard error."""
    kinds = (
        (problems.offsets, "Mismatches in :{}", "  Index offset: {}, log offset: {}"),
        (problems.timestamps, "Found timestamp mismatch in :{}", "  Index timestamp: {}, log timestamp: {}"),
        (
            problems.order,
            "Found out of order timestamp in :{}",
            "  Index timestamp: {}, Previously indexed timestamp: {}",
        ),
        (
            problems.not_found,
            "The following indexed offsets are not found in :{}",
            "Indexed offset: {}, found log offset: {}",
        ),
        (gaps, "Non-consecutive offsets in {}", "  {} is followed by {}"),
    )
    for found, title, line in kinds:
        for path, pairs in found.items():
            print(title.format(path), file=sys.stderr)
            for pair in pairs:
                print(line.format(*pair), file=sys.stderr)
