import pytest
from kio.schema.errors import ErrorCode as KioErrorCode

from headrace.model.errors import (
    RETRIABLE,
    ErrorCode,
    HeadraceError,
    KafkaError,
    MalformedRequest,
    StorageFault,
)


def test_codes_are_kafkas() -> None:
    """Do our codes carry the names and numbers that Kafka's own schema gives them?"""
    theirs = {code.value: code.name.upper() for code in KioErrorCode}

    assert theirs == {code.value: code.name for code in ErrorCode}


def test_retriable_codes_are_kafkas() -> None:
    """Do we call retriable what Kafka's clients retry?"""
    theirs = {code.value for code in KioErrorCode if code.retriable}

    assert theirs == {int(code) for code in RETRIABLE}


def test_kafka_error_carries_code_and_sentence() -> None:
    """Can a handler answer with the code and the sentence it caught?"""
    error = KafkaError(ErrorCode.INVALID_CONFIG, "Unknown topic config name: x")

    assert error.code is ErrorCode.INVALID_CONFIG
    assert error.message == "Unknown topic config name: x"
    assert str(error) == "Unknown topic config name: x"


def test_kafka_error_without_a_sentence_says_its_code() -> None:
    """Does an error without a sentence still say something in a log?"""
    error = KafkaError(ErrorCode.NOT_CONTROLLER)

    assert error.message == ""
    assert str(error) == "NOT_CONTROLLER"


@pytest.mark.parametrize("kind", [KafkaError, MalformedRequest, StorageFault])
def test_every_error_is_ours(kind: type[Exception]) -> None:
    """Can everything raised on purpose be caught as one?"""
    assert issubclass(kind, HeadraceError)
