"""Replicas on their way between the directories of a broker: where they are, and how Kafka's tool says it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.cli.administration import by_topic
from headrace.model.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headrace.cli.reassign_plan import Replica
    from headrace.cli.session import Session

DESCRIBE_LOG_DIRS = 35


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveState:
    """Where a replica is, where it shall be, and where its copy grows while it moves."""

    target: str
    current: str = ""
    future: str = ""

    @property
    def is_active(self) -> bool:
        """Whether the replica is being moved now."""
        return bool(self.current and self.future)


async def move_states(session: Session, targets: Mapping[Replica, str]) -> dict[Replica, MoveState]:
    """The state of every replica, asked of its broker."""
    from headrace.wire.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest

    current: dict[Replica, str] = {}
    future: dict[Replica, str] = {}
    there = set(await session.cluster.brokers()) if targets else set()
    for broker in sorted({broker for _, _, broker in targets} & there):
        places = [(topic, index) for topic, index, where in targets if where == broker]
        request = DescribeLogDirsRequest(
            topics=tuple(
                DescribableLogDirTopic(topic=topic, partitions=tuple(indexes))
                for topic, indexes in by_topic(places).items()
            )
        )
        answer = await session.cluster.ask(DESCRIBE_LOG_DIRS, request, node_id=broker)
        for result in answer.results:
            if result.error_code != ErrorCode.NONE:
                continue
            for topic in result.topics:
                for one in topic.partitions:
                    kind = future if one.is_future_key else current
                    kind[topic.name, one.partition_index, broker] = result.log_dir
    return {
        replica: MoveState(target=target, current=current.get(replica, ""), future=future.get(replica, ""))
        for replica, target in targets.items()
    }


def move_text(replica: Replica, state: MoveState) -> str:
    """What Kafka's tool says about a replica that was told a directory."""
    topic, index, broker = replica
    if not state.current:
        return (
            f"Partition {topic}-{index} is not found in any live log dir on broker {broker}. There is likely an "
            "offline log directory on the broker."
        )
    if state.future and state.future == state.target:
        return f"Reassignment of replica {topic}-{index}-{broker} is still in progress."
    if state.future:
        return (
            f"Partition {topic}-{index} on broker {broker} is being moved to log dir {state.future} instead of "
            f"{state.target}."
        )
    if state.current == state.target:
        return f"Reassignment of replica {topic}-{index}-{broker} completed successfully."
    return (
        f"Partition {topic}-{index} on broker {broker} is not being moved from log dir {state.current} to "
        f"{state.target}."
    )
