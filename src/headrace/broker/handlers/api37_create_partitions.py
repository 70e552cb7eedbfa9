"""CreatePartitions, key 37.

Versions: 0-3.
Behaviour: raises a topic's partition count, placing the new ones by itself or as told; a count can only grow. Every
topic stands for itself, all that can grow do so in one write to the metadata log. `validate_only` does everything but
the write.
Deviations: what was done by a try that its controller could not answer is told as done, not refused as done
already; the timeout is not looked at.
KIPs: 195.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from headrace.broker.api import Api, Call
from headrace.cores.controller import MorePartitions, create_partitions
from headrace.model.errors import KafkaError
from headrace.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)

if TYPE_CHECKING:
    from collections.abc import Mapping


async def handle(call: Call, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
    """Grow what can grow."""
    command = partial(
        create_partitions,
        wanted=[_wanted(topic) for topic in request.topics],
        validate_only=request.validate_only,
    )
    try:
        results = await call.broker.controller.run(command)
    except KafkaError as error:
        return _refused(request, error)
    refused = ((f"topic={name}", error) for name, error in results.items())
    call.broker.refusals.tell_all("partitions_refused", refused)
    return _answer(results)


def _answer(results: Mapping[str, KafkaError | None]) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(
        results=tuple(
            CreatePartitionsTopicResult(
                name=name,
                error_code=int(error.code) if error else 0,
                error_message=error.message or None if error else None,
            )
            for name, error in results.items()
        )
    )


def _wanted(topic: CreatePartitionsTopic) -> MorePartitions:
    placed = topic.assignments
    return MorePartitions(
        name=topic.name,
        count=topic.count,
        assignments=None if placed is None else [one.broker_ids for one in placed],
    )


def _refused(request: CreatePartitionsRequest, error: KafkaError) -> CreatePartitionsResponse:
    return _answer(dict.fromkeys((topic.name for topic in request.topics), error))


API = Api(key=37, low=0, high=3, handle=handle, controller=True, refuse=_refused)
