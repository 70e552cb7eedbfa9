"""DeleteTopics, key 20.

Versions: 1-6.
Behaviour: topics by name, from v6 also by id. When the answer is sent they are gone from the metadata and are served no
more; their files are removed afterwards. A topic that is named twice, in whatever way, is not deleted. With
`delete.topic.enable=false` nothing is (TOPIC_DELETION_DISABLED, before v3 INVALID_REQUEST).
Deviations: what was done by a try that its controller could not answer is told as done, not refused as done
already; the timeout is not looked at.
KIPs: 599 (v5, throttling errors; we have no quota), 516 topic ids (v6).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from headrace.broker.api import Api, Call
from headrace.cores.controller import DeletedTopic, delete_topics
from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.ids import ZERO_ID
from headrace.wire.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicsResponse

if TYPE_CHECKING:
    from collections.abc import Iterable

_DISABLED_ERROR_FROM = 3


async def handle(call: Call, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    """Delete what is there."""
    names, topic_ids, unclear = _sort_out(request)
    try:
        if not call.broker.config["delete.topic.enable"]:
            raise _deletion_disabled(call.version)
        deleted = await call.broker.controller.run(partial(delete_topics, names=names, topic_ids=topic_ids))
    except KafkaError as error:
        deleted = _none_of(names, topic_ids, error)
    return DeleteTopicsResponse(responses=_results([*unclear, *deleted]))


def _none_of(names: Iterable[str], topic_ids: Iterable[UUID], error: KafkaError) -> list[DeletedTopic]:
    return [
        *(DeletedTopic(name=name, topic_id=ZERO_ID, error=error) for name in dict.fromkeys(names)),
        *(DeletedTopic(name=None, topic_id=topic_id, error=error) for topic_id in dict.fromkeys(topic_ids)),
    ]


def _refused(request: DeleteTopicsRequest, error: KafkaError) -> DeleteTopicsResponse:
    names, topic_ids, unclear = _sort_out(request)
    return DeleteTopicsResponse(responses=_results([*unclear, *_none_of(names, topic_ids, error)]))


def _sort_out(request: DeleteTopicsRequest) -> tuple[list[str], list[UUID], list[DeletedTopic]]:
    """Names, ids, and what is neither."""
    names = list(request.topic_names)
    topic_ids: list[UUID] = []
    unclear: list[DeletedTopic] = []
    for topic in request.topics:
        if topic.name is not None and topic.topic_id == ZERO_ID:
            names.append(topic.name)
        elif topic.name is None and topic.topic_id != ZERO_ID:
            topic_ids.append(topic.topic_id)
        else:
            message = (
                "Neither topic name nor id were specified."
                if topic.name is None
                else "You may not specify both topic name and topic id."
            )
            error = KafkaError(ErrorCode.INVALID_REQUEST, message)
            unclear.append(DeletedTopic(name=topic.name, topic_id=topic.topic_id, error=error))
    return names, topic_ids, unclear


def _deletion_disabled(version: int) -> KafkaError:
    code = ErrorCode.TOPIC_DELETION_DISABLED if version >= _DISABLED_ERROR_FROM else ErrorCode.INVALID_REQUEST
    return KafkaError(code, "Topic deletion is disabled.")


def _results(topics: Iterable[DeletedTopic]) -> tuple[DeletableTopicResult, ...]:
    return tuple(
        DeletableTopicResult(
            name=topic.name,
            topic_id=topic.topic_id,
            error_code=int(topic.error.code) if topic.error else 0,
            error_message=topic.error.message or None if topic.error else None,
        )
        for topic in topics
    )


API = Api(key=20, low=1, high=6, handle=handle, controller=True, refuse=_refused)
