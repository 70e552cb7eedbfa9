"""Requests under way."""

from headrace.cores.raft.config import QuorumConfig
from headrace.cores.raft.connections import Connections
from headrace.cores.raft.messages import DescribeQuorumRequest

REQUEST = DescribeQuorumRequest()


def test_one_request_at_a_time():
    """Is a node asked one thing at a time, and only the answer to that taken?"""
    connections = Connections(QuorumConfig(), correlation=10)
    assert connections.is_ready(1, 0)
    correlation = connections.sent(1, REQUEST, 0)

    assert not connections.is_ready(1, 5)
    assert connections.is_ready(2, 5)
    assert [None, REQUEST] == [connections.expected(1, correlation - 1), connections.expected(1, correlation)]
    assert connections.expected(2, correlation) is None
    connections.answered(1)
    assert connections.is_ready(1, 5)
    assert connections.expected(1, correlation) is None


def test_silence_and_failure():
    """Is a request given up in time, and the node left alone for a moment?"""
    connections = Connections(QuorumConfig(request_timeout_ms=100, retry_backoff_ms=10))
    connections.sent(1, REQUEST, 0)

    assert 100 == connections.next_ms(1, 0)
    assert not connections.is_ready(1, 99)
    assert connections.is_ready(1, 100)
    connections.sent(1, REQUEST, 100)
    connections.failed(1, 100)
    assert connections.is_waiting(1, 109)
    assert not connections.is_ready(1, 109)
    assert 110 == connections.next_ms(1, 105)
    assert connections.is_ready(1, 110)
    connections.sent(1, REQUEST, 110)
    connections.forget_sent()
    assert connections.is_ready(1, 111)
