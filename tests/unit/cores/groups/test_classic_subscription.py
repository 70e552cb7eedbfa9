"""Reading the topics out of what consumers tell each other."""

import pytest

from headrace.cores.groups.classic_subscription import subscribed_topics, topics_of
from headrace.cores.groups.consumer_protocol import Subscription, write_subscription


@pytest.mark.parametrize("version", [0, 1, 2, 3, 9])
def test_every_version_begins_the_same(version):
    """Are the topics found whatever version a consumer writes, also one that is not known yet?"""
    written = write_subscription(Subscription(topics=("a", "é"), owned={"a": (1,)}), version=version)
    metadata = version.to_bytes(2, "big") + written[2:]

    assert frozenset({"a", "é"}) == topics_of(metadata)


@pytest.mark.parametrize(
    "metadata",
    [
        b"",
        b"\0\0",
        b"\0\0\xff\xff\xff\xff",
        b"\0\0\0\0\0\1",
        b"\0\0\0\0\0\1\0\5abc",
        b"\0\0\0\0\0\1\xff\xff",
        b"\0\0\0\0\0\1\0\1\xff",
        b"\0\0\x7f\xff\xff\xff\0\1a",
    ],
)
def test_unreadable(metadata):
    """Is what cannot be read known to be so, and never taken for fewer topics?"""
    assert topics_of(metadata) is None
    assert subscribed_topics([write_subscription(Subscription(topics=("a",))), metadata]) is None


def test_all_members_topics():
    """Are the topics of all members put together, and none if there are no members?"""
    written = [write_subscription(Subscription(topics=topics)) for topics in (("a",), ("b", "a"))]

    assert frozenset({"a", "b"}) == subscribed_topics(written)
    assert frozenset() == subscribed_topics([])
