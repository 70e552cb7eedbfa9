"""What kafka-reassign-partitions does: propose, execute, verify, cancel and list moves of partitions."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Any

from headrace.cli.administration import (
    BROKER,
    DELETE,
    SET,
    TOPIC,
    alter_configs,
    ask_controller,
    by_topic,
    check,
    describe_topics,
    reassignments,
)
from headrace.cli.java_order import hash_order
from headrace.cli.java_words import sentence
from headrace.cli.progress import Progress
from headrace.cli.reassign_moves import move_states, move_text
from headrace.cli.reassign_plan import (
    Plan,
    Replica,
    brokers_of,
    check_plan,
    listed,
    moves,
    plan_document,
    plan_json,
    propose,
    read_brokers,
    read_plan,
    read_topics,
    shown,
    throttled_replicas,
)
from headrace.cli.session import Failure
from headrace.model.errors import ErrorCode, HeadraceError, KafkaError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from headrace.cli.administration import Place
    from headrace.cli.session import Session

ALTER_REPLICA_LOG_DIRS, ALTER_PARTITION_REASSIGNMENTS = 34, 45
_TIMEOUT_MS = 60_000
_PAUSE_S = 0.1

LEADER_RATE, FOLLOWER_RATE = "leader.replication.throttled.rate", "follower.replication.throttled.rate"
LOG_DIR_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
BROKER_THROTTLES = (LEADER_RATE, FOLLOWER_RATE, LOG_DIR_RATE)
LEADER_REPLICAS = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS = "follower.replication.throttled.replicas"
EXISTING = (
    "Cannot execute because there is an existing partition assignment.  Use --additional to override this and create "
    "a new partition assignment in addition to the existing one. The --additional flag can also be used to change the "
    "throttle by resubmitting the current reassignment."
)
RUN_VERIFY = (
    "Warning: You must run --verify periodically, until the reassignment completes, to ensure the throttle is removed."
)


# --- generate


async def generate(session: Session) -> None:
    """Print where partitions are and where they could be."""
    values = session.values
    brokers = read_brokers(values.require("broker-list"))
    current = await _replicas_of_topics(session, read_topics(values.require("topics-to-move-json-file")))
    log_dirs = await _log_dirs(session, current)
    racks = await _racks(session, brokers, aware=not values.has("disable-rack-aware"))
    proposed = propose(current, racks, random.Random())  # noqa: S311 - a spread, not a secret
    session.report.line(f"Current partition replica assignment\n{plan_json(current, log_dirs)}\n")
    session.report.line(f"Proposed partition reassignment configuration\n{plan_json(proposed, {})}")
    session.report.data({"current": plan_document(current, log_dirs), "proposed": plan_document(proposed, {})})


async def _replicas_of_topics(session: Session, topics: Iterable[str]) -> dict[Place, list[int]]:
    found: dict[Place, list[int]] = {}
    for name in topics:
        try:
            (state,) = await describe_topics(session.cluster, [name])
        except KafkaError as error:
            if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            raise KafkaError(error.code, f"Topic {name} not found.") from None
        found |= {(name, partition.index): list(partition.replicas) for partition in state.partitions}
    return found


async def _racks(session: Session, brokers: Sequence[int], *, aware: bool) -> dict[int, str | None]:
    metadata = await session.cluster.metadata(())
    racks = {one.node_id: one.rack if aware else None for one in metadata.brokers if one.node_id in brokers}
    without = sum(not rack for rack in racks.values())
    if aware and without and without != len(racks):
        raise HeadraceError(
            "Not all brokers have rack information. Add --disable-rack-aware in command line to make replica "
            "assignment without rack information."
        )
    return racks


async def _log_dirs(session: Session, replicas: Mapping[Place, Iterable[int]]) -> dict[Replica, str]:
    """The directory of every replica that a living broker tells."""
    asked = {(*place, broker): "" for place, brokers in replicas.items() for broker in brokers}
    return {replica: state.current for replica, state in (await move_states(session, asked)).items() if state.current}


# --- execute


async def execute(session: Session) -> None:
    """Begin to move partitions."""
    values, report = session.values, session.report
    plan = read_plan(values.require("reassignment-json-file"))
    check_plan(plan)
    throttle, log_dir_throttle = values.number("throttle") or 0, values.number("replica-alter-log-dirs-throttle") or 0
    ongoing = await reassignments(session.cluster)
    if ongoing and not values.has("additional"):
        raise Failure(EXISTING, on_stdout=True)
    targets = plan.targets()
    await _check_brokers(session, targets)
    current = await _current(session, targets)
    log_dirs = await _log_dirs(session, current)
    report.line(
        f"Current partition replica assignment\n\n{plan_json(current, log_dirs)}\n\nSave this to use as the "
        "--reassignment-json-file option during rollback"
    )
    if throttle >= 0 or log_dir_throttle >= 0:
        report.line(RUN_VERIFY)
        if throttle >= 0:
            await throttle_moves(session, moves(ongoing, targets, current), throttle)
        if log_dir_throttle >= 0:
            await _throttle_log_dirs(session, {broker for _, _, broker in plan.log_dirs}, log_dir_throttle)
    errors = await ask_for_moves(session, targets)
    if errors:
        told = "\n".join(f"{shown(place)}: {errors[place]}" for place in sorted(errors))
        raise Failure(f"Error reassigning partition(s):\n{told}", on_stdout=True)
    report.line(f"Successfully started partition reassignment{_s(targets)} for {listed(targets)}")
    if plan.log_dirs:
        await _move_log_dirs(session, plan.log_dirs)
    report.data({"started": plan_document(targets, plan.log_dirs), "rollback": plan_document(current, log_dirs)})


def _s(many: Any) -> str:
    return "" if len(many) == 1 else "s"


async def _check_brokers(session: Session, targets: Mapping[Place, Sequence[int]]) -> None:
    there = set(await session.cluster.brokers())
    for broker in sorted({broker for brokers in targets.values() for broker in brokers}):
        if broker not in there:
            raise HeadraceError(f"Unknown broker id {broker}")


async def _current(session: Session, targets: Mapping[Place, Sequence[int]]) -> dict[Place, list[int]]:
    found = await _replicas_of_topics(session, by_topic(targets))
    missing = [place for place in targets if place not in found]
    if missing:
        told = ", ".join(map(shown, missing))
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition: {told}")
    return {place: found[place] for place in targets}


async def ask_for_moves(session: Session, targets: Mapping[Place, Sequence[int] | None]) -> dict[Place, str]:
    """Ask for moves, or with None for their end; what went wrong by partition."""
    from headrace.wire.messages.alter_partition_reassignments import (
        AlterPartitionReassignmentsRequest,
        ReassignablePartition,
        ReassignableTopic,
    )

    topics = []
    for topic, indexes in by_topic(targets).items():
        partitions = []
        for index in indexes:
            brokers = targets[topic, index]
            partitions.append(
                ReassignablePartition(partition_index=index, replicas=None if brokers is None else tuple(brokers))
            )
        topics.append(ReassignableTopic(name=topic, partitions=tuple(partitions)))
    request = AlterPartitionReassignmentsRequest(
        timeout_ms=_TIMEOUT_MS,
        allow_replication_factor_change=not session.values.has("disallow-replication-factor-change"),
        topics=tuple(topics),
    )
    answer = await ask_controller(session.cluster, ALTER_PARTITION_REASSIGNMENTS, request)
    check(answer.error_code, answer.error_message)
    return {
        (topic.name, one.partition_index): sentence(one.error_code, one.error_message)
        for topic in answer.responses
        for one in topic.partitions
        if one.error_code
    }


async def throttle_moves(session: Session, found: Any, rate: int) -> None:
    """Let moves between brokers be no faster than so many bytes in a second."""
    replicas = throttled_replicas(found)
    await alter_configs(
        session.cluster,
        {
            (TOPIC, topic): [(LEADER_REPLICAS, SET, leaders), (FOLLOWER_REPLICAS, SET, followers)]
            for topic, (leaders, followers) in replicas.items()
        },
    )
    changes = [(LEADER_RATE, SET, str(rate)), (FOLLOWER_RATE, SET, str(rate))]
    await alter_configs(session.cluster, {(BROKER, str(broker)): changes for broker in brokers_of(found)})
    session.report.line(f"The inter-broker throttle limit was set to {rate} B/s")


async def _throttle_log_dirs(session: Session, brokers: Iterable[int], rate: int) -> None:
    changes = [(LOG_DIR_RATE, SET, str(rate))]
    await alter_configs(session.cluster, {(BROKER, str(broker)): changes for broker in sorted(brokers)})
    session.report.line(f"The replica-alter-dir throttle limit was set to {rate} B/s")


async def _move_log_dirs(session: Session, log_dirs: Mapping[Replica, str]) -> None:
    """Begin to move replicas to directories; one that is not there yet is waited for."""
    pending = dict(log_dirs)
    loop = asyncio.get_running_loop()
    deadline = loop.time() + (session.values.number("timeout") or 0) / 1000
    with Progress() as progress:
        while True:
            for replica in sorted(await _alter_log_dirs(session, pending), key=_by_broker):
                topic, index, broker = replica
                session.report.line(
                    f"Successfully started moving log directory to {pending.pop(replica)} for replica {topic}-{index} "
                    f"with broker {broker} "
                )
            if not pending:
                return
            if loop.time() >= deadline:
                told = ",".join("-".join(map(str, replica)) for replica in sorted(pending, key=_by_broker))
                raise Failure(
                    f"Timed out before log directory move{_s(pending)} could be started for: {told}", on_stdout=True
                )
            progress.detail(f"waiting for {len(pending)} replica(s) to be where they shall move")
            await asyncio.sleep(_PAUSE_S)


def _by_broker(replica: Replica) -> tuple[int, str, int]:
    topic, index, broker = replica
    return broker, topic, index


async def _alter_log_dirs(session: Session, log_dirs: Mapping[Replica, str]) -> list[Replica]:
    """Ask brokers to move replicas between directories; those that have begun."""
    from headrace.wire.messages.alter_replica_log_dirs import (
        AlterReplicaLogDir,
        AlterReplicaLogDirsRequest,
        AlterReplicaLogDirTopic,
    )

    begun: list[Replica] = []
    for broker in sorted({broker for _, _, broker in log_dirs}):
        paths: dict[str, list[Place]] = {}
        for (topic, index, where), path in log_dirs.items():
            if where == broker:
                paths.setdefault(path, []).append((topic, index))
        request = AlterReplicaLogDirsRequest(
            dirs=tuple(
                AlterReplicaLogDir(
                    path=path,
                    topics=tuple(
                        AlterReplicaLogDirTopic(name=topic, partitions=tuple(indexes))
                        for topic, indexes in by_topic(places).items()
                    ),
                )
                for path, places in paths.items()
            )
        )
        answer = await session.cluster.ask(ALTER_REPLICA_LOG_DIRS, request, node_id=broker)
        for result in answer.results:
            for one in result.partitions:
                if not one.error_code:
                    begun.append((result.topic_name, one.partition_index, broker))
                elif one.error_code != ErrorCode.REPLICA_NOT_AVAILABLE:
                    raise HeadraceError(
                        f"Failed to alter dir for {result.topic_name}-{one.partition_index}-{broker}: "
                        f"{sentence(one.error_code)}"
                    )
    return begun


# --- verify, cancel, list


async def verify(session: Session) -> None:
    """Say of each partition of a plan how far it is; when all is done, throttles are lifted."""
    plan = read_plan(session.values.require("reassignment-json-file"))
    ongoing = await reassignments(session.cluster)
    report = session.report
    report.line("\n".join(["Status of partition reassignment:", *(await _states(session, plan, ongoing)).values()]))
    states = await move_states(session, plan.log_dirs)
    report.line("\n".join(move_text(replica, states[replica]) for replica in sorted(states, key=_by_broker)))
    is_moving = any(state.is_active for state in states.values())
    if not ongoing and not is_moving and not session.values.has("preserve-throttles"):
        await clear_throttles(session, plan)
    report.data(
        {
            "partitions": [
                {"topic": topic, "partition": index, "inProgress": (topic, index) in ongoing, "replicas": brokers}
                for (topic, index), brokers in sorted(plan.targets().items())
            ],
            "inProgress": bool(ongoing) or is_moving,
        }
    )


async def _states(session: Session, plan: Plan, ongoing: Mapping[Place, Any]) -> dict[Place, str]:
    """A sentence about each partition."""
    found: dict[Place, str] = {}
    targets = plan.targets()
    known: dict[Place, list[int]] = {}
    for topic in by_topic(targets):
        try:
            known |= await _replicas_of_topics(session, [topic])
        except KafkaError as error:
            if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
    for place, brokers in sorted(targets.items()):
        now = known.get(place, [])
        if place in ongoing:
            found[place] = f"Reassignment of partition {shown(place)} is still in progress."
        elif now == brokers:
            found[place] = f"Reassignment of partition {shown(place)} is completed."
        else:
            found[place] = (
                f"There is no active reassignment of partition {shown(place)}, but replica set is "
                f"{','.join(map(str, now))} rather than {','.join(map(str, brokers))}."
            )
    return found


async def clear_throttles(session: Session, plan: Plan) -> None:
    """Lift what slows down moves of brokers and topics."""
    named = {broker for _, brokers in plan.replicas for broker in brokers}
    brokers = sorted({*await session.cluster.brokers()} | named)
    session.report.line(f"Clearing broker-level throttles on broker{_s(brokers)} {','.join(map(str, brokers))}")
    lifted = [(name, DELETE, None) for name in BROKER_THROTTLES]
    await alter_configs(session.cluster, {(BROKER, str(broker)): lifted for broker in brokers})
    topics = hash_order(topic for (topic, _), _ in plan.replicas)
    session.report.line(f"Clearing topic-level throttles on topic{_s(topics)} {','.join(topics)}")
    lifted = [(name, DELETE, None) for name in (LEADER_REPLICAS, FOLLOWER_REPLICAS)]
    await alter_configs(session.cluster, {(TOPIC, topic): lifted for topic in topics})


async def cancel(session: Session) -> None:
    """End the moves of a plan where they stand."""
    report = session.report
    plan = read_plan(session.values.require("reassignment-json-file"))
    targets = plan.targets()
    ongoing = await reassignments(session.cluster, targets) if targets else {}
    moving = [place for place, move in ongoing.items() if move.adding or move.removing]
    if moving:
        errors = await ask_for_moves(session, dict.fromkeys(moving))
        if errors:
            told = "\n".join(f"{shown(place)}: {errors[place]}" for place in sorted(errors))
            raise Failure(f"Error cancelling partition reassignment{_s(errors)} for:\n{told}", on_stdout=True)
        report.line(f"Successfully cancelled partition reassignment{_s(moving)} for: {listed(moving)}")
    else:
        report.line("None of the specified partition reassignments are active.")
    states = await move_states(session, plan.log_dirs)
    back = {replica: state.current for replica, state in states.items() if state.is_active}
    if back:
        await _move_log_dirs(session, back)
    elif report.is_text:
        # Kafka's tool does not end this line.
        print("None of the specified partition moves are active.", end="")
    if not session.values.has("preserve-throttles"):
        await clear_throttles(session, plan)
    report.data({"cancelled": [{"topic": topic, "partition": index} for topic, index in sorted(moving)]})


async def show_ongoing(session: Session) -> None:
    """Print every partition that moves."""
    ongoing = await reassignments(session.cluster)
    if not ongoing:
        session.report.line("No partition reassignments found.")
    else:
        session.report.line("Current partition reassignments:")
    for place, move in sorted(ongoing.items()):
        parts = [f"{shown(place)}: replicas: {','.join(map(str, move.replicas))}."]
        parts += [f"adding: {','.join(map(str, move.adding))}."] if move.adding else []
        parts += [f"removing: {','.join(map(str, move.removing))}."] if move.removing else []
        session.report.line(" ".join(parts))
    session.report.data(
        [
            {
                "topic": topic,
                "partition": index,
                "replicas": move.replicas,
                "adding": move.adding,
                "removing": move.removing,
            }
            for (topic, index), move in sorted(ongoing.items())
        ]
    )
