"""kafka-topics: create, delete, describe, list and extend topics."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from headrace.cli.addresses import ZOOKEEPER, settle_address
from headrace.cli.administration import ask_controller, check, describe_topics
from headrace.cli.old_names import BROKER_LIST, adopt
from headrace.cli.session import describe, run_tool
from headrace.cli.tool import BOOTSTRAP, COMMAND_CONFIG, Option, Tool, UsageError, Values, exactly_one, not_together
from headrace.cores.metadata import INTERNAL_TOPICS
from headrace.model.errors import ErrorCode, HeadraceError
from headrace.model.ids import encode_uuid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.cli.session import Session

CREATE_TOPICS, DELETE_TOPICS, CREATE_PARTITIONS = 19, 20, 37
REPLICATION_MAX = 32767
_TIMEOUT_MS = 60_000
_USE_CONFIGS = " (To alter topic configurations, the kafka-configs tool can be used.)"
COLLISION_WARNING = (
    "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') could collide. "
    "To avoid issues it is best to use either, but not both."
)
ACTIONS = ("create", "list", "alter", "describe", "delete")
REPORTS = (
    "under-replicated-partitions",
    "under-min-isr-partitions",
    "at-min-isr-partitions",
    "unavailable-partitions",
)

TOOL = Tool(
    name="kafka-topics",
    summary="This tool helps to create, delete, describe, or change a topic.",
    options=(
        BOOTSTRAP,
        COMMAND_CONFIG,
        ZOOKEEPER,
        BROKER_LIST,
        Option(name="list", help="List all available topics."),
        Option(name="create", help="Create a new topic."),
        Option(name="delete", help="Delete a topic."),
        Option(name="alter", help="Give a topic more partitions." + _USE_CONFIGS),
        Option(name="describe", help="List details for the given topics."),
        Option(
            name="topic",
            argument="topic",
            help="The topic to create, alter, describe or delete. A regular expression, except with --create.",
        ),
        Option(name="topic-id", argument="topic-id", help="The topic to describe, by its id."),
        Option(
            name="config",
            argument="name=value",
            is_repeatable=True,
            help="A setting of the topic to create; may be given several times." + _USE_CONFIGS,
        ),
        Option(name="delete-config", argument="name", is_repeatable=True, help="No longer supported since Kafka 4.0."),
        Option(
            name="partitions",
            argument="number",
            help="How many partitions the topic gets (the cluster's default where it is left out), or is extended to. "
            "More partitions send records of a key elsewhere than before.",
        ),
        Option(
            name="replication-factor",
            argument="number",
            help="How many brokers hold each partition; the cluster's default where it is left out.",
        ),
        Option(
            name="replica-assignment",
            argument="broker:broker,broker:broker,...",
            help="The brokers of each partition, the preferred leader first.",
        ),
        Option(name="under-replicated-partitions", help="Describe only partitions that lack replicas in sync."),
        Option(name="unavailable-partitions", help="Describe only partitions without a live leader."),
        Option(name="under-min-isr-partitions", help="Describe only partitions below min.insync.replicas."),
        Option(name="at-min-isr-partitions", help="Describe only partitions exactly at min.insync.replicas."),
        Option(name="topics-with-overrides", help="Describe only topics with settings of their own."),
        Option(name="if-exists", help="Alter, delete or describe the topic only if there is one."),
        Option(name="if-not-exists", help="Create the topic only if there is none."),
        Option(name="exclude-internal", help="Leave out Kafka's own topics when listing or describing."),
        Option(
            name="partition-size-limit-per-response",
            argument="number",
            help="How many partitions are asked about at once (2000 where it is left out).",
        ),
    ),
    examples=(
        ("Create a topic", "--bootstrap-server localhost:9092 --create --topic trucks_gps --partitions 3"),
        ("See which topics there are", "--bootstrap-server localhost:9092 --list"),
        ("See where its partitions are", "--bootstrap-server localhost:9092 --describe --topic trucks_gps"),
    ),
)


def main(arguments: Sequence[str], program: str) -> int:
    """Run the tool."""
    return run_tool(TOOL, arguments, program, _run, check=_check, refusal=_refusal)


def _refusal(error: HeadraceError) -> str:
    return f"Error while executing topic command : {describe(error)}"


# --- what goes together


def _check(values: Values) -> None:
    adopt(values, {"broker-list": "bootstrap-server"})
    action = exactly_one(
        values,
        ACTIONS,
        "Command must include exactly one action: --list, --describe, --create, --alter or --delete",
    )
    if values.has("delete-config"):
        print(
            "delete-config option is no longer supported and deprecated since version 4.0. The config will be fully "
            "removed in future releases.",
            file=sys.stderr,
        )
    if action == "describe" and values.has("if-exists") and not (values.has("topic") or values.has("topic-id")):
        raise UsageError("--topic or --topic-id is required to describe a topic")
    if action not in {"list", "describe"}:
        values.require("topic")
    if action == "alter":
        if values.has("config"):
            raise UsageError(
                'Option combination "[[bootstrap-server], [config]]" can\'t be used with option "[alter]"'
                + _USE_CONFIGS
            )
        values.require("partitions")
    _check_combinations(values, action)


ONLY_WITH = {
    "config": ("alter", "create"),
    "partitions": ("alter", "create"),
    "replication-factor": ("create",),
    "replica-assignment": ("alter", "create"),
    **dict.fromkeys(REPORTS, ("describe",)),
    "topics-with-overrides": ("describe",),
    "if-exists": ("alter", "delete", "describe"),
    "if-not-exists": ("create",),
    "exclude-internal": ("list", "describe"),
}
"""The actions an option makes sense with."""


def _check_combinations(values: Values, action: str) -> None:
    for name, allowed in ONLY_WITH.items():
        if action not in allowed:
            not_together(values, name, [action])
        if name == "replica-assignment" and action == "create":
            not_together(values, name, ["partitions", "replication-factor"])
        if name in REPORTS:
            not_together(values, name, ["topics-with-overrides"])


# --- the actions


async def _run(session: Session) -> int:
    values = session.values
    settle_address(session, "--bootstrap-server must be specified")
    if values.has("create"):
        await _create(session)
    elif values.has("list"):
        names = await find_topics(session)
        session.report.line("\n".join(names))
        session.report.data(names)
    elif values.has("alter"):
        await _alter(session)
    elif values.has("delete"):
        await _delete(session)
    else:
        from headrace.cli.topics_describe import show_topics

        await show_topics(session)
    return 0


async def find_topics(session: Session, *, must_exist: bool = False) -> list[str]:
    """The names that --topic means, sorted; all where it is left out."""
    from headrace.cli.topic_filter import topic_filter

    values = session.values
    text = values.get("topic")
    keep = topic_filter(text) if text is not None else None
    metadata = await session.cluster.metadata()
    names = sorted(
        topic.name
        for topic in metadata.topics
        if topic.name
        and not (values.has("exclude-internal") and topic.name in INTERNAL_TOPICS)
        and (keep is None or keep(topic.name))
    )
    if must_exist and text and not names and not values.has("if-exists"):
        raise HeadraceError(f"Topic '{text}' does not exist as expected")
    return names


async def _create(session: Session) -> None:
    from headrace.wire.messages.create_topics import (
        CreatableReplicaAssignment,
        CreatableTopic,
        CreatableTopicConfig,
        CreateTopicsRequest,
    )

    values = session.values
    name = values.require("topic")
    assignment = _assignment(values)
    settings = _settings(values)
    partitions, replication = _numbers(values, name)
    topic = CreatableTopic(
        name=name,
        num_partitions=-1 if assignment or partitions is None else partitions,
        replication_factor=-1 if assignment or replication is None else replication,
        assignments=tuple(
            CreatableReplicaAssignment(partition_index=index, broker_ids=tuple(brokers))
            for index, brokers in enumerate(assignment)
        ),
        configs=tuple(CreatableTopicConfig(name=key, value=value) for key, value in settings.items()),
    )
    request = CreateTopicsRequest(topics=(topic,), timeout_ms=_TIMEOUT_MS)
    (result,) = (await ask_controller(session.cluster, CREATE_TOPICS, request)).topics
    if result.error_code != ErrorCode.INVALID_CONFIG:
        _warn_of_collisions(session, name)
    created = result.error_code == ErrorCode.NONE
    if not (result.error_code == ErrorCode.TOPIC_ALREADY_EXISTS and values.has("if-not-exists")):
        check(result.error_code, result.error_message)
        session.report.line(f"Created topic {name}.")
    session.report.data(
        {"topic": name, "topicId": encode_uuid(result.topic_id) if created else None, "created": created}
    )


def _numbers(values: Values, name: str) -> tuple[int | None, int | None]:
    """--partitions and --replication-factor, refused as Kafka's tool does before it asks anybody."""
    try:
        partitions, replication = values.number("partitions"), values.number("replication-factor")
    except UsageError as error:
        raise HeadraceError(str(error)) from None
    if replication is not None and not 1 <= replication <= REPLICATION_MAX:
        raise HeadraceError(f"The replication factor must be between 1 and {REPLICATION_MAX} inclusive")
    if partitions is not None and partitions < 1:
        raise HeadraceError("The partitions must be greater than 0")
    if not name:
        raise HeadraceError("The given topic name '' cannot be represented in a request.")
    return partitions, replication


def _warn_of_collisions(session: Session, name: str) -> None:
    if "." in name or "_" in name:
        session.report.note(COLLISION_WARNING)


def _settings(values: Values) -> dict[str, str]:
    found = {}
    for text in values.all("config"):
        key, *rest = re.split(r"\s*=\s*", text)
        if len(rest) != 1 or not rest[0]:
            raise HeadraceError(
                'requirement failed: Invalid topic config: all configs to be added must be in the format "key=val".'
            )
        found[key.strip()] = rest[0].strip()
    return found


def _assignment(values: Values) -> list[list[int]]:
    """The brokers of each partition."""
    text = values.get("replica-assignment")
    found: list[list[int]] = []
    for index, part in enumerate(text.split(",") if text else ()):
        brokers = [_broker(one.strip()) for one in part.split(":")]
        twice = sorted({broker for broker in brokers if brokers.count(broker) > 1})
        if twice:
            shown = ",".join(map(str, twice))
            raise HeadraceError(f"Partition replica lists may not contain duplicate entries: {shown}")
        found.append(brokers)
        if len(brokers) != len(found[0]):
            raise HeadraceError(f"Partition {index} has different replication factor: {brokers}")
    return found


def _broker(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise HeadraceError(f'For input string: "{text}"') from None


async def _alter(session: Session) -> None:
    from headrace.wire.messages.create_partitions import (
        CreatePartitionsAssignment,
        CreatePartitionsRequest,
        CreatePartitionsTopic,
    )

    cluster, values = session.cluster, session.values
    assignment = _assignment(values)
    partitions, _ = _numbers(values, values.require("topic"))
    names = await find_topics(session, must_exist=True)
    topics = []
    for state in await describe_topics(cluster, names) if assignment else ():
        added = tuple(
            CreatePartitionsAssignment(broker_ids=tuple(brokers)) for brokers in assignment[len(state.partitions) :]
        )
        topics.append(CreatePartitionsTopic(name=state.name, count=partitions or 0, assignments=added))
    if not assignment:
        topics = [CreatePartitionsTopic(name=name, count=partitions or 0, assignments=None) for name in names]
    if topics:
        request = CreatePartitionsRequest(topics=tuple(topics), timeout_ms=_TIMEOUT_MS)
        for result in (await ask_controller(cluster, CREATE_PARTITIONS, request)).results:
            check(result.error_code, result.error_message)
    session.report.data({"altered": names, "partitions": partitions})


async def _delete(session: Session) -> None:
    from headrace.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState

    names = await find_topics(session, must_exist=True)
    if names:
        request = DeleteTopicsRequest(
            topics=tuple(DeleteTopicState(name=name) for name in names),
            topic_names=tuple(names),  # what brokers before Kafka 2.8 read
            timeout_ms=_TIMEOUT_MS,
        )
        for result in (await ask_controller(session.cluster, DELETE_TOPICS, request)).responses:
            check(result.error_code, result.error_message)
    session.report.data({"deleted": names})
