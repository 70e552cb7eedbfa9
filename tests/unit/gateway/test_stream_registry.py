"""Limits of streams, and where they begin, without a cluster."""

import asyncio

import pytest

from headrace.client.client_options import gather
from headrace.client.cluster import Cluster
from headrace.client.fetching import Fetcher
from headrace.client.option_table import ADMIN
from headrace.client.records import OffsetAndTimestamp, TopicPartition
from headrace.gateway.problem import Problem
from headrace.gateway.streams.hub import Topic
from headrace.gateway.streams.registry import Streams
from headrace.gateway.streams.start import begin
from headrace.gateway.streams.wish import StreamQuery, read_wish
from headrace.settings.fault import ConfigFault
from headrace.settings.gateway import GATEWAY_SETTINGS, GatewayConfig

NOW = 1_000_000


def make_streams(**settings):
    """Streams of a gateway whose cluster nobody asks."""
    cluster = Cluster(gather(ADMIN, {"bootstrap_servers": "127.0.0.1:1"}).connection())
    config = GatewayConfig({name.replace("_", "."): value for name, value in settings.items()})
    return Streams(config, None, cluster, Fetcher(cluster))


def test_every_limit_is_finite():
    """Has each of the streams' settings a default that ends somewhere, and are others refused by name?"""
    limits = [setting for name, setting in GATEWAY_SETTINGS.items() if name.startswith("stream")]

    assert len(limits) >= 9
    assert all(0 < setting.default < 2**31 for setting in limits)
    with pytest.raises(ConfigFault, match=r"streams\.max"):
        GatewayConfig({"streams.maximum": "1"})


def test_seats():
    """Is a seat given back however its stream ends, and is one too many refused by the limit's name?"""

    async def run():
        streams = make_streams(streams_max="2", streams_max_per_address="1")
        with (
            streams.seat("a"),
            streams.seat("b"),
            pytest.raises(Problem, match=r"streams\.max\)") as full,
            streams.seat("c"),
        ):
            pass
        with pytest.raises(KeyError), streams.seat("a"):
            raise KeyError
        with (
            streams.seat("a"),
            pytest.raises(Problem, match=r"from a, and there may be 1 \(streams\.max\.per\.address\)"),
            streams.seat("a"),
        ):
            pass
        return full.value.status, len(streams)

    assert (429, 0) == asyncio.run(run())


class Offsets:
    """A cluster's offsets: the earliest is 10, the latest 90, and a time is its own offset up to that.

    A transaction is open behind it, up to 95.
    """

    async def list_offsets(self, specs, isolation_level="read_uncommitted"):
        """As the admin client answers."""
        known = {-2: 10, -1: 90 if isolation_level == "read_committed" else 95}
        return {
            place: OffsetAndTimestamp(known.get(spec, spec if spec < 90 else -1), spec) for place, spec in specs.items()
        }


@pytest.mark.parametrize(
    ("query", "last_id", "expected"),
    [
        ({}, None, (90, 90)),
        ({"since": "earliest"}, None, (10, 10)),
        ({"since": "50"}, None, (50, 50)),
        ({"since": "95"}, None, (90, 90)),
        ({"since": "50"}, "t:0=20,1=30", (20, 30)),
        ({"since": "50"}, "t:0=20", (20, 10)),
        ({}, "t:0=@40,1=-1", (40, 90)),
        ({}, "t=@40", (40, 40)),
        ({}, '[{"topic":"t","partition":0,"timestamp":60}]', (60, 10)),
    ],
)
def test_where_a_stream_begins(query, last_id, expected):
    """Does a position beat `since`, and is a partition that it does not know read from its beginning?"""
    wish = read_wish("t", StreamQuery(**query), last_id, topics_max=5, now_ms=NOW)
    topics = {"t": Topic(None, {0: 1, 1: 1})}

    start = asyncio.run(begin(Offsets(), wish, topics, NOW))
    assert expected == (start.positions[TopicPartition("t", 0)], start.positions[TopicPartition("t", 1)])
    assert start.stops is None


@pytest.mark.parametrize(
    ("until", "stop", "is_over"),
    [("latest", 90, False), ("70", 70, False), ("2000", 90, False), ("30", 30, True), (str(NOW + 5), None, False)],
)
def test_where_a_stream_ends(until, stop, is_over):
    """Does `until` become an offset once its time has come, the end where nothing is so late?"""
    wish = read_wish("t", StreamQuery(since="40", until=until), None, topics_max=5, now_ms=NOW)

    start = asyncio.run(begin(Offsets(), wish, {"t": Topic(None, {0: 1})}, NOW))
    assert (None if stop is None else {("t", 0): stop}) == start.stops
    assert is_over is start.is_over


@pytest.mark.parametrize(
    ("until", "last_id", "beyond", "is_over"),
    [
        ("latest", "t:0=90,1=90", {}, True),
        ("latest", "t:0=95,1=90", {}, True),
        ("30", "t:0=40,1=90", {}, True),
        ("latest", "t:0=96,1=90", {("t", 0): 95}, False),
        ("30", "t:0=999,1=96", {("t", 0): 95, ("t", 1): 95}, False),
        (str(NOW + 5), "t:0=999,1=0", {}, False),
        (None, "t:0=999,1=0", {}, False),
    ],
)
def test_a_position_beyond_the_end(until, last_id, beyond, is_over):
    """Is a position that its log never reached found although nothing is to be read there, and no other?"""
    wish = read_wish("t", StreamQuery(until=until), last_id, topics_max=5, now_ms=NOW)

    start = asyncio.run(begin(Offsets(), wish, {"t": Topic(None, {0: 1, 1: 1})}, NOW))
    assert beyond == start.beyond
    assert is_over is start.is_over
