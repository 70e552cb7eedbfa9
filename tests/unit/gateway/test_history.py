"""What the gateway remembers of throughput and lag, without a cluster: samples are handed to it."""

import asyncio

import pytest

from headrace.client.records import TopicPartition
from headrace.gateway.history import History
from headrace.gateway.services import Services
from headrace.settings.gateway import GatewayConfig

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


@pytest.fixture
def history():
    """One that asks nobody."""

    async def make():
        services = Services(GatewayConfig({"bootstrap.servers": "127.0.0.1:1"}))
        return History(services)

    return asyncio.run(make())


def test_throughput(history):
    """Is the rate of a topic the growth of its partitions, and that of all the sum?"""
    history.take_ends(100.0, {A0: 0, A1: 0, B0: 50})
    history.take_ends(110.0, {A0: 100, A1: 20, B0: 50})

    assert (history.rate("a"), history.rate("b"), history.rate()) == (12.0, 0.0, 12.0)
    assert history.throughput("a") == [(110.0, 12.0)]


def test_deleted_topic_takes_nothing_away(history):
    """Does the sum not fall when a topic goes, nor jump when one comes that was there before we looked?"""
    history.take_ends(100.0, {A0: 1000})
    history.take_ends(110.0, {B0: 500})
    history.take_ends(120.0, {B0: 510})

    assert [value for _, value in history.throughput()] == [0.0, 1.0]
    assert history.rate("a") is None


def test_lag_in_records_and_seconds(history):
    """Is lag in seconds the age of the next record to read, as the samples tell it?"""
    history.take_ends(100.0, {A0: 0, A1: 0})
    history.take_ends(110.0, {A0: 100, A1: 0})
    history.take_ends(120.0, {A0: 200, A1: 0})
    history.take_commits(120.0, {"g": {A0: 150, A1: 0}, "up to date": {A0: 200}})

    lag = history.lag("g")
    assert (lag.records, lag.seconds) == (50, 5.0)
    assert history.lag("up to date").seconds == 0.0
    assert history.lag("nobody") is None
    assert history.lag_records("g") == [(120.0, 50.0)]


def test_lag_older_than_the_samples(history):
    """Is the lag in seconds of a group that stands before all samples unknown, and not a guess?"""
    history.take_ends(100.0, {A0: 1000})
    history.take_commits(100.0, {"g": {A0: 10}})

    assert (history.lag("g").records, history.lag("g").seconds) == (990, None)
