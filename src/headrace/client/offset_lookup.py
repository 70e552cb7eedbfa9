"""Offsets at points in time, asked of the leaders through the engine's admin client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.client.engine import Engine, EngineException, raise_fault
from headrace.client.records import OffsetAndTimestamp, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headrace.client.client_options import ClientOptions

AT_BEGINNING, AT_END = -2, -1
_CONNECTION = ("bootstrap.", "client.", "security.", "sasl.", "ssl.", "socket.", "enable.ssl", "oauth_cb", "log_level")


class OffsetLookup:
    """Asks where partitions begin and end, and what comes at or after a time."""

    def __init__(self, options: ClientOptions) -> None:
        from confluent_kafka import admin  # noqa: PLC0415 - large, and few programs ask

        self._spec: Any = vars(admin)["OffsetSpec"]
        ours = {name: value for name, value in options.engine.items() if name.startswith(_CONNECTION)}
        ours.pop("client.rack", None)
        self._client = admin.AdminClient(ours)
        committed = options.engine.get("isolation.level") == "read_committed"
        level = Engine.IsolationLevel
        self._isolation = level.READ_COMMITTED if committed else level.READ_UNCOMMITTED

    def find(self, wanted: Mapping[TopicPartition, int], timeout_s: float) -> dict[TopicPartition, OffsetAndTimestamp]:
        """The offset for each time, which is in milliseconds or one of the marks above; -1 where there is none."""
        spec = self._spec
        marks = {AT_BEGINNING: spec.earliest(), AT_END: spec.latest()}
        question = {
            Engine.TopicPartition(*place): marks.get(when) or spec.for_timestamp(when) for place, when in wanted.items()
        }
        if not question:
            return {}
        try:
            answers = self._client.list_offsets(
                question, isolation_level=self._isolation, request_timeout=max(timeout_s, 0.001)
            )
            return {
                TopicPartition(place.topic, place.partition): _found(future.result())
                for place, future in answers.items()
            }
        except EngineException as error:
            raise_fault(error)


def _found(result: object) -> OffsetAndTimestamp:
    epoch = getattr(result, "leader_epoch", None)
    return OffsetAndTimestamp(
        int(getattr(result, "offset", -1)), int(getattr(result, "timestamp", -1)), -1 if epoch is None else int(epoch)
    )
