"""Where the state of a streams application can be asked for."""

import pytest

from headrace.model.streams_group_records import Endpoint
from streams_shell import StreamsShell, StreamsThread, settle


@pytest.fixture
def shell():
    """A coordinator with one topic of four partitions."""
    return StreamsShell(topics={"orders": 4})


def test_endpoints_tell_where_state_is(shell):
    """Does a member learn which partitions the others have, whenever that changes, and only then?"""
    here, there = Endpoint(host="here", port=1), Endpoint(host="there", port=2)
    first = StreamsThread(shell, "a", user_endpoint=here)
    second = StreamsThread(shell, "b", user_endpoint=there)
    answer = first.join()

    assert [(here, (("orders", (0, 1, 2, 3)),), ())] == [
        (each.endpoint, each.active, each.standby) for each in answer.endpoints
    ]

    second.join()
    settle(first, second)
    answer = first.beat(endpoint_epoch=answer.endpoint_epoch)

    assert {here: (("orders", (0, 1)),), there: (("orders", (2, 3)),)} == {
        each.endpoint: each.active for each in answer.endpoints
    }
    assert first.beat(endpoint_epoch=answer.endpoint_epoch).endpoints is None

    second.leave()

    assert [here] == [each.endpoint for each in first.beat(endpoint_epoch=answer.endpoint_epoch).endpoints]
