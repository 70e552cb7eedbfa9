"""Streams whose hub hands over what came: by the short way if the client waits for it, else by their own loop."""

import asyncio
from types import SimpleNamespace

import pytest

from headrace.client.fetching import FetchedPartition, FetchedRecord
from headrace.client.records import TopicPartition
from headrace.gateway.streams.form import Lines
from headrace.gateway.streams.hub import Hub
from headrace.gateway.streams.start import Start
from headrace.gateway.streams.stream import Ending, Stream
from headrace.gateway.streams.wish import Wish
from headrace.settings.gateway import GatewayConfig

PLACE = TopicPartition("t", 0)


class Readings(Hub):
    """A hub that is given what others fetch; whoever reads for itself finds nobody to ask."""

    def __init__(self):
        super().__init__(None, None, GatewayConfig({}))
        self.doubted = 0

    def enter(self, follower, topics):
        """Nobody looks topics up."""

    def doubt(self, places):
        """Somebody wanted to read."""
        self.doubted += 1

    def bring(self, *values, at):
        """A fetch brought these; who is woken by it."""
        records = [FetchedRecord("t", 0, at + n, 1000, None, value, ()) for n, value in enumerate(values)]
        end = at + len(values)
        return self._take_in(PLACE, at, FetchedPartition(records, end, 0, end))


class Client:
    """A stream that follows one partition, and whoever reads it: it takes what is put there, or only what is sent."""

    def __init__(self, hub, *, has_room=True, short_way=True, **wish):
        self.has_room = has_room
        self.got = []
        self.ways = []
        self.may_go_on = asyncio.Event()
        self.may_go_on.set()
        self.streams = SimpleNamespace(hub=hub, retry_ms=1, delivered=0, reads=asyncio.Semaphore(1))
        start = Start(topics={}, positions={PLACE: 0}, stops=None)
        self.stream = Stream(self.streams, Wish(topics=("t",), **wish), start, Lines("value"))
        assert hub.follow(self.stream, PLACE, 0)
        self.stream.cursor.follow(PLACE)
        self.task = asyncio.create_task(self.stream.run(self._send, self._put if short_way else None))

    def _put(self, data):
        if self.has_room:
            self._take("put", data)
        return self.has_room

    async def _send(self, pieces):
        await self.may_go_on.wait()
        if any(pieces):
            self._take("sent", b"".join(pieces))

    def _take(self, way, data):
        self.ways.append(way)
        self.got += data.decode().split()


async def turns(count=5):
    """Let the others run."""
    for _ in range(count):
        await asyncio.sleep(0)


def play(story):
    """Run a story with a hub of its own."""

    async def run():
        hub = Readings()
        try:
            return await story(hub)
        finally:
            await hub.close()

    return asyncio.run(run())


def test_the_short_way():
    """Does a client that waits get what came before anything else runs, counted and with its position moved?"""

    async def story(hub):
        client = Client(hub)
        await turns()
        for one in hub.bring(b"1", b"2", at=0):
            one.serve(7.0)
        return client.ways, client.got, client.streams.delivered, client.stream.cursor.text

    assert (["put"], ["1", "2"], 2, "t:0=2") == play(story)


@pytest.mark.parametrize("settings", [{"has_room": False}, {"short_way": False}])
def test_the_long_way(settings):
    """Is what finds no room, or no short way at all, sent by the stream's loop, in order and once?"""

    async def story(hub):
        client = Client(hub, **settings)
        await turns()
        for at, value in enumerate((b"1", b"2", b"3")):
            for one in hub.bring(value, at=at):
                one.serve(7.0)
        await turns()
        return set(client.ways), client.got, client.streams.delivered

    assert ({"sent"}, ["1", "2", "3"], 3) == play(story)


def test_a_client_that_is_busy_is_not_overtaken():
    """Does nothing take the short way while the loop is still sending what came before, and everything after that?"""

    async def story(hub):
        client = Client(hub, has_room=False)
        await turns()
        client.may_go_on.clear()
        for at, value in enumerate((b"1", b"2", b"3")):
            for one in hub.bring(value, at=at):
                one.serve(7.0)
            await turns()
            client.has_room = True
        waits = client.stream.sending_since < float("inf"), list(client.got)
        client.may_go_on.set()
        await turns()
        for one in hub.bring(b"4", at=3):
            one.serve(7.0)
        return waits, client.ways, client.got, client.stream.sending_since

    assert ((True, []), ["sent", "sent", "put"], ["1", "2", "3", "4"], float("inf")) == play(story)


def test_the_end_comes_by_the_short_way_too():
    """Does a stream end at its last record although its loop was not woken for it?"""

    async def story(hub):
        client = Client(hub, count_max=2)
        await turns()
        for one in hub.bring(b"1", b"2", b"3", at=0):
            one.serve(7.0)
        return await asyncio.wait_for(client.task, 5), client.got, hub.tail(PLACE)

    assert (Ending("max"), ["1", "2"], None) == play(story)


def test_a_tail_that_went_on_without_it():
    """Does a stream that is too late for its tail begin to read for itself?"""

    async def story(hub):
        client = Client(hub)
        await turns()
        followers = hub.bring(b"1", at=0)
        hub.tail(PLACE).expire(float("inf"))
        for one in followers:
            one.serve(7.0)
        await turns()
        return client.got, client.stream.cursor.behind, hub.doubted

    assert ([], {PLACE}, 1) == play(story)


def test_a_stream_that_is_over():
    """Does nothing happen when somebody is served who has just gone?"""

    async def story(hub):
        client = Client(hub)
        await turns()
        followers = hub.bring(b"1", at=0)
        client.stream.end(Ending("gone"))
        for one in followers:
            one.serve(7.0)
        await client.task
        for one in followers:
            one.serve(7.0)
        return client.got

    assert [] == play(story)


def test_a_sign_of_life_waits_from_the_last_record():
    """Does what went the short way count as something said?"""

    async def story(hub):
        client = Client(hub)
        await turns()
        now_s = asyncio.get_running_loop().time() + 100
        for one in hub.bring(b"1", at=0):
            one.serve(now_s)
        for later_s in (9, 11):
            client.stream.tick(now_s + later_s, 0, 10.0)
            await turns()
        return client.ways

    assert ["put", "sent"] == play(story)
