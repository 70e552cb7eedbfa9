"""kafka-run-class: Kafka's tools by the names of their Java classes, as older tutorials call those without a script.

`kafka-run-class.sh kafka.tools.GetOffsetShell --broker-list localhost:9092 --topic t` was how one asked for offsets.
There is no Java here: the class is only another name of a tool, whichever package Kafka had it in at the time.
"""

from __future__ import annotations

import sys
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING

from headrace.cli.main import TOOLS
from headrace.cli.version import tool_version

if TYPE_CHECKING:
    from collections.abc import Sequence

CLASSES = {
    "AclCommand": "kafka-acls",
    "BrokerApiVersionsCommand": "kafka-broker-api-versions",
    "ClusterTool": "kafka-cluster",
    "ConfigCommand": "kafka-configs",
    "ConsoleConsumer": "kafka-console-consumer",
    "ConsoleProducer": "kafka-console-producer",
    "ConsoleShareConsumer": "kafka-console-share-consumer",
    "ConsumerGroupCommand": "kafka-consumer-groups",
    "ConsumerPerformance": "kafka-consumer-perf-test",
    "DeleteRecordsCommand": "kafka-delete-records",
    "DumpLogSegments": "kafka-dump-log",
    "EndToEndLatency": "kafka-e2e-latency",
    "FeatureCommand": "kafka-features",
    "GetOffsetShell": "kafka-get-offsets",
    "GroupsCommand": "kafka-groups",
    "Kafka": "kafka-server-start",
    "LeaderElectionCommand": "kafka-leader-election",
    "LogDirsCommand": "kafka-log-dirs",
    "MetadataQuorumCommand": "kafka-metadata-quorum",
    "ProducerPerformance": "kafka-producer-perf-test",
    "ReassignPartitionsCommand": "kafka-reassign-partitions",
    "ShareGroupCommand": "kafka-share-groups",
    "StorageTool": "kafka-storage",
    "StreamsGroupCommand": "kafka-streams-groups",
    "TopicCommand": "kafka-topics",
    "TransactionsCommand": "kafka-transactions",
}
"""The tools by the last part of their class."""

USAGE = "USAGE: {} [-daemon] [-name servicename] [-loggc] classname [opts]"
_EXAMPLES = """\
Examples:
  How many records there are   {0} kafka.tools.GetOffsetShell --bootstrap-server localhost:9092 --topic t
  What a segment holds         {0} kafka.tools.DumpLogSegments --files 00000000000000000000.log --output json
"""


def main(arguments: Sequence[str], program: str) -> int:
    """Run the tool that a class is."""
    rest, is_daemon = _without_java(arguments)
    if rest[:1] == ["--version"]:
        print(tool_version())
        return 0
    if not rest or rest[0] == "--help":
        print(USAGE.format(program))
        if rest:
            print(_EXAMPLES.format(program), end="", file=sys.stderr)
        return 1
    name, *words = rest
    tool = CLASSES.get(name.rsplit(".", 1)[-1])
    if tool is None:
        print(f"Error: Could not find or load main class {name}", file=sys.stderr)
        print(f"There is no Java here; {_known(name)}", file=sys.stderr)
        return 1
    if is_daemon and tool == "kafka-server-start":
        words = ["-daemon", *words]
    found: int = import_module(TOOLS[tool]).main(words, tool)
    return found


def _without_java(arguments: Sequence[str]) -> tuple[list[str], bool]:
    """What follows the options for Java's own process, and whether it is to run in the background."""
    rest, is_daemon = list(arguments), False
    while rest and rest[0] in {"-daemon", "-name", "-loggc"}:
        is_daemon = is_daemon or rest[0] == "-daemon"
        rest = rest[2:] if rest[0] == "-name" else rest[1:]
    return rest, is_daemon


def _known(name: str) -> str:
    near = get_close_matches(name.rsplit(".", 1)[-1], CLASSES, n=1)
    return f"did you mean {near[0]}?" if near else f"the classes that are tools are: {', '.join(CLASSES)}."
