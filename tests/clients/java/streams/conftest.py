"""Kafka Streams beside the clients."""

from pathlib import Path

import pytest

from headrace.testing.java_runner import JavaRunner
from headrace.testing.kafka_jars import STREAMS_AND_CONNECT, PeerUnavailable


@pytest.fixture(scope="session")
def streams(java):
    """A JVM with Kafka Streams."""
    try:
        runner = JavaRunner(Path(__file__).parent, extra=(STREAMS_AND_CONNECT,))
    except PeerUnavailable as missing:
        pytest.skip(str(missing))
    with runner:
        yield runner
