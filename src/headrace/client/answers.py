"""Error codes in answers, raised with the name of what they are about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from headrace.client.records import TopicPartition
from headrace.model.errors import ErrorCode, KafkaError


def check(what: str, answer: Any) -> None:
    """Raise the error an answer carries, if it does."""
    if answer.error_code:
        code = ErrorCode(answer.error_code)
        raise KafkaError(code, f"{what}: {getattr(answer, 'error_message', None) or code.name}")


def check_all(answers: Iterable[tuple[str, Any]]) -> None:
    """Raise the first error among the parts of an answer; the other parts were carried out."""
    for what, answer in answers:
        check(what, answer)


def partitions_of(answer: Any) -> Iterator[tuple[TopicPartition, Any]]:
    """The parts of an answer that has topics, and partitions in them."""
    for topic in answer.topics:
        for one in topic.partitions:
            yield TopicPartition(topic.name, one.partition_index), one
