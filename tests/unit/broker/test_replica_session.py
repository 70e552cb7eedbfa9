"""A follower's side of a fetch session: is everything said once, and again only when it changed?"""

from uuid import UUID

import pytest

from headrace.broker.replica_session import ReplicaSession
from headrace.cores.replication.messages import FetchPosition
from headrace.wire.messages.fetch import ReplicaState

A, B = (UUID(int=1), 0), (UUID(int=1), 1)


def position(offset):
    """Where a follower is."""
    return FetchPosition(leader_epoch=3, offset=offset, last_fetched_epoch=2, log_start_offset=1)


@pytest.fixture
def ask():
    """Asks in one session: what the request names, by key and offset, what it forgets, and its id and epoch."""
    session = ReplicaSession()

    def ask(questions, *, answer=9):
        request = session.request(
            questions,
            replica=ReplicaState(replica_id=2, replica_epoch=5),
            max_wait_ms=500,
            min_bytes=1,
            max_bytes=1000,
            partition_max_bytes=100,
        )
        if answer is None:
            session.reset()
        else:
            session.answered(answer)
        named = {
            (topic.topic_id, one.partition): one.fetch_offset for topic in request.topics for one in topic.partitions
        }
        forgotten = [(topic.topic_id, index) for topic in request.forgotten_topics_data for index in topic.partitions]
        return named, forgotten, (request.session_id, request.session_epoch)

    return ask


def test_only_news_is_said(ask):
    """Does a session name all partitions first, then those that moved, and forget those that are gone?"""
    assert ({A: 0, B: 0}, [], (0, 0)) == ask({A: position(0), B: position(0)})
    assert ({A: 7}, [], (9, 1)) == ask({A: position(7), B: position(0)})
    assert ({}, [], (9, 2)) == ask({A: position(7), B: position(0)})
    assert ({}, [B], (9, 3)) == ask({A: position(7)})
    assert ({B: 0}, [], (9, 4)) == ask({A: position(7), B: position(0)})


def test_lost_answer_begins_anew(ask):
    """Is everything said again, and the old session closed, when it is not known what the leader heard?"""
    ask({A: position(0)})
    ask({A: position(1)}, answer=None)

    assert ({A: 1}, [], (9, 0)) == ask({A: position(1)})


def test_leader_without_room_is_told_everything_each_time(ask):
    """Does a follower that got no session say everything each time, and ask for one each time?"""
    ask({A: position(0)}, answer=0)

    assert ({A: 0}, [], (0, 0)) == ask({A: position(0)}, answer=0)
    assert ({A: 0}, [], (0, 0)) == ask({A: position(0)})
    assert ({}, [], (9, 1)) == ask({A: position(0)})
