"""kafka-reassign-partitions: move partitions to other brokers or directories, and see how it goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.cli.addresses import BOOTSTRAP_CONTROLLER, ZOOKEEPER, settle_address
from headrace.cli.session import describe, run_tool
from headrace.cli.tool import BOOTSTRAP, COMMAND_CONFIG, COMMON_OPTIONS, Option, Tool, UsageError, Values, exactly_one
from headrace.model.errors import HeadraceError, KafkaError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.cli.session import Session

ACTIONS = ("generate", "execute", "verify", "cancel", "list")

TOOL = Tool(
    name="kafka-reassign-partitions",
    summary="This tool helps to move topic partitions between replicas.",
    options=(
        BOOTSTRAP,
        BOOTSTRAP_CONTROLLER,
        COMMAND_CONFIG,
        ZOOKEEPER,
        Option(name="verify", help="See whether what --reassignment-json-file asks for is done; then lift throttles."),
        Option(name="generate", help="Propose where the partitions of topics could be. Nothing is moved."),
        Option(name="execute", help="Begin to move partitions as --reassignment-json-file says."),
        Option(name="cancel", help="Cancel an active reassignment."),
        Option(name="list", help="List all active partition reassignments."),
        Option(
            name="reassignment-json-file",
            argument="file",
            help='The plan: {"partitions": [{"topic": "foo", "partition": 1, "replicas": [1,2,3], "log_dirs": '
            '["dir1","dir2","dir3"]}], "version": 1}. log_dirs may be left out, and "any" stands for any directory.',
        ),
        Option(
            name="topics-to-move-json-file",
            argument="file",
            help='With --generate, the topics: {"topics": [{"topic": "foo"}, {"topic": "bar"}], "version": 1}',
        ),
        Option(name="broker-list", argument="id,id", help="With --generate, the brokers to spread them over."),
        Option(name="disable-rack-aware", help="With --generate: do not look at racks."),
        Option(
            name="throttle",
            argument="bytes/s",
            default="-1",
            help="How fast partitions may move between brokers; with --additional it changes what goes on.",
        ),
        Option(
            name="replica-alter-log-dirs-throttle",
            argument="bytes/s",
            default="-1",
            help="How fast replicas may move between directories.",
        ),
        Option(
            name="timeout", argument="ms", default="10000", help="How long to wait for moves of directories to begin."
        ),
        Option(name="additional", help="Execute this besides what goes on already."),
        Option(name="preserve-throttles", help="Do not modify broker or topic throttles."),
        Option(
            name="disallow-replication-factor-change", help="Refuse a plan that changes how many replicas there are."
        ),
    ),
    examples=(
        (
            "Propose a plan",
            "--bootstrap-server localhost:9092 --generate --topics-to-move-json-file topics.json --broker-list 1,2,3",
        ),
        ("Carry it out", "--bootstrap-server localhost:9092 --execute --reassignment-json-file plan.json"),
        ("See whether it is done", "--bootstrap-server localhost:9092 --verify --reassignment-json-file plan.json"),
    ),
)

REQUIRED = {
    "generate": ("topics-to-move-json-file", "broker-list"),
    "execute": ("reassignment-json-file",),
    "verify": ("reassignment-json-file",),
    "cancel": ("reassignment-json-file",),
    "list": (),
}
_ALWAYS = ("bootstrap-server", "command-config", "zookeeper", *(option.name for option in COMMON_OPTIONS))
PERMITTED = {
    "generate": ("disable-rack-aware",),
    "execute": (
        "additional",
        "throttle",
        "replica-alter-log-dirs-throttle",
        "timeout",
        "disallow-replication-factor-change",
    ),
    "verify": ("preserve-throttles",),
    "cancel": ("preserve-throttles", "timeout", "bootstrap-controller"),
    "list": ("bootstrap-controller",),
}
"""What goes with an action besides what it needs."""


def main(arguments: Sequence[str], program: str) -> int:
    """Run the tool."""
    return run_tool(TOOL, arguments, program, _run, check=_check, refusal=_refusal)


def _refusal(error: HeadraceError) -> str:
    if isinstance(error, KafkaError):
        from headrace.cli.java_words import exception

        return f"Error: {exception(error.code, error.message)}"
    return f"Error: {describe(error)}"


def _check(values: Values) -> None:
    choices = ", ".join(f"--{name}" for name in ACTIONS)
    action = exactly_one(values, ACTIONS, f"Command must include exactly one action: {choices}")
    if values.has("bootstrap-server") and values.has("bootstrap-controller"):
        raise UsageError("Please don't specify both --bootstrap-server and --bootstrap-controller")
    for name in REQUIRED[action]:
        values.require(name)
    allowed = {action, *_ALWAYS, *REQUIRED[action], *PERMITTED[action]}
    for name in values.given:
        if name not in allowed:
            raise UsageError(f'Option "[{name}]" can\'t be used with action "[{action}]"')


async def _run(session: Session) -> int:
    from headrace.cli import reassign_actions as actions

    settle_address(session, "Please specify either --bootstrap-server or --bootstrap-controller", with_usage=True)
    action = next(name for name in ACTIONS if session.values.has(name))
    await {
        "generate": actions.generate,
        "execute": actions.execute,
        "verify": actions.verify,
        "cancel": actions.cancel,
        "list": actions.show_ongoing,
    }[action](session)
    return 0
