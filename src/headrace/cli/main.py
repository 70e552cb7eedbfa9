"""The umbrella command `headrace`, and the one door through which every tool is entered.

A tool is a module with `main(arguments, program)`, imported only when it is asked for: `headrace --help` must answer
at once, whatever the tools need. Kafka's tool names are commands of the umbrella too, which is how the launchers in
bin/ reach them; an installed package has a script of that name.
"""

import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import PurePath
from typing import Protocol, cast

from headrace.cli.setup_error import SetupError

TOOLS = {
    "kafka-acls": "headrace.cli.acls",
    "kafka-broker-api-versions": "headrace.cli.broker_api_versions",
    "kafka-cluster": "headrace.cli.cluster",
    "kafka-configs": "headrace.cli.configs",
    "kafka-console-consumer": "headrace.cli.console_consumer",
    "kafka-console-producer": "headrace.cli.console_producer",
    "kafka-console-share-consumer": "headrace.cli.console_share_consumer",
    "kafka-consumer-groups": "headrace.cli.consumer_groups",
    "kafka-consumer-perf-test": "headrace.cli.consumer_perf_test",
    "kafka-delete-records": "headrace.cli.delete_records",
    "kafka-dump-log": "headrace.cli.dump_log",
    "kafka-e2e-latency": "headrace.cli.e2e_latency",
    "kafka-features": "headrace.cli.features",
    "kafka-get-offsets": "headrace.cli.get_offsets",
    "kafka-groups": "headrace.cli.groups",
    "kafka-leader-election": "headrace.cli.leader_election",
    "kafka-log-dirs": "headrace.cli.log_dirs",
    "kafka-metadata-quorum": "headrace.cli.metadata_quorum",
    "kafka-producer-perf-test": "headrace.cli.producer_perf_test",
    "kafka-reassign-partitions": "headrace.cli.reassign_partitions",
    "kafka-run-class": "headrace.cli.run_class",
    "kafka-server-start": "headrace.cli.server_start",
    "kafka-server-stop": "headrace.cli.server_stop",
    "kafka-share-groups": "headrace.cli.share_groups",
    "kafka-storage": "headrace.cli.storage",
    "kafka-streams-groups": "headrace.cli.streams_groups",
    "kafka-topics": "headrace.cli.topics",
    "kafka-transactions": "headrace.cli.transactions",
    "zookeeper-server-start": "headrace.cli.zookeeper_server_start",
    "zookeeper-server-stop": "headrace.cli.zookeeper_server_stop",
}
"""Kafka's names; each has launchers in bin/ and bin/windows/ and a script in the package."""

ALIASES = {"kafka_server": "kafka-server-start", **{tool.replace("-", "_"): tool for tool in TOOLS}}
"""The same names as tutorials misspell them; each has a launcher in bin/."""

COMMANDS = {
    "start": "headrace.cli.start",
    "status": "headrace.cli.status",
    "health": "headrace.cli.health",
    "stop": "headrace.cli.stop",
    "add-broker": "headrace.cli.add_broker",
    "drain-broker": "headrace.cli.drain_broker",
    "rebalance": "headrace.cli.rebalance",
    "topics": "headrace.cli.fronts.topics",
    "produce": "headrace.cli.fronts.produce",
    "consume": "headrace.cli.fronts.consume",
    "groups": "headrace.cli.fronts.groups",
    "gateway": "headrace.cli.gateway",
    "pipeline": "headrace.cli.pipeline",
    "demo": "headrace.cli.demo",
    "profile": "headrace.cli.profile_command",
    "completion": "headrace.cli.completion",
    "server": "headrace.cli.server",
    "storage": "headrace.cli.storage",
    "python": "headrace.cli.python",
    "spark": "headrace.cli.spark",
    "bench": "headrace.cli.bench",
    "version": "headrace.cli.version",
    "--version": "headrace.cli.version",
}
"""Headrace's own names."""

HELP = """\
Headrace: an event streaming broker that speaks Apache Kafka's protocol.

  headrace start           start a broker in the background (localhost:9092), or a cluster with -n 3;
                           with --gateway also REST, streams and the web console (localhost:8082)
  headrace status          what runs, and where
  headrace health          is every partition served? (--watch, --exit-when-healthy)
  headrace stop            stop it, cleanly

  headrace add-broker      one broker more for a cluster
  headrace drain-broker ID move everything a broker has to the others, so that it can go
  headrace rebalance       spread partitions and leaders evenly over the brokers

  headrace topics ...      list, create, describe, alter, delete
  headrace produce TOPIC   send records: those on the command line, or lines of the input
  headrace consume TOPIC   read them
  headrace groups ...      list, describe, members, reset, delete

  headrace gateway         REST, streams and the web console over HTTP, before any cluster (localhost:8082)
  headrace pipeline ...    data pipelines on Spark: run, validate, explain, list, status, stop
  headrace demo            a truck fleet from end to end: broker, Spark pipeline, dashboard
  headrace profile ...     the clusters the tools talk to: list, show, use, add, remove
  headrace completion ...  a script that completes commands and names in bash, zsh or fish
  headrace server ...      start in the foreground, stop, format, by Kafka's rules
  headrace storage ...     look at and format log directories, make ids
  headrace python ...      Python with a Kafka client in it, for your scripts
  headrace spark ...       the same with Spark, which reads and writes topics
  headrace bench           measure this broker beside Apache Kafka
  headrace version         which version this is

Kafka's own names work too: {tools}.
Each of them says more with --help.
"""


class Tool(Protocol):
    """What a tool's module offers."""

    def main(self, arguments: Sequence[str], program: str) -> int:
        """Run the tool; `program` is the name it was called by. Returns the exit code."""


def main() -> int:
    """Run the tool whose name the program was called by, or the one named by the first argument."""
    called = os.environ.pop("HEADRACE_INVOKED_AS", sys.argv[0])
    name = PurePath(sys.argv[0]).stem
    arguments = sys.argv[1:]
    if name in TOOLS:
        return run(TOOLS[name], arguments, program=called)
    command, rest = (arguments[0], arguments[1:]) if arguments else ("help", [])
    if command in {"help", "--help", "-h"}:
        print(HELP.format(tools=", ".join(TOOLS)), end="")
        return 0
    if command in TOOLS:
        return run(TOOLS[command], rest, program=called)
    if command in COMMANDS:
        return run(COMMANDS[command], rest, program=f"headrace {command}")
    print(f"headrace: there is no command '{command}'.{_meant(command)}", file=sys.stderr)
    print("`headrace help` lists the commands.", file=sys.stderr)
    return 1


def _meant(command: str) -> str:
    """What was probably meant, as a sentence to add."""
    from difflib import get_close_matches

    near = get_close_matches(command, (*COMMANDS, *TOOLS), n=1, cutoff=0.7)
    return f" Did you mean '{near[0]}'?" if near else ""


def run(module: str, arguments: Sequence[str], *, program: str) -> int:
    """Import a tool and run it, so that what it cannot do ends in a sentence and an exit code."""
    try:
        return cast("Tool", importlib.import_module(module)).main(arguments, program)
    except SetupError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read our output has gone; say nothing more, not even when Python closes stdout at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
