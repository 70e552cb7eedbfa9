"""Questions that travel together to other brokers."""

import asyncio

import pytest

from headrace.broker.coordinators import post as post_module
from headrace.broker.coordinators.post import Post
from headrace.net.link import LinkBroken


class Office:
    """Takes requests, and answers each item with its double when the test lets it."""

    def __init__(self):
        self.sent = []
        self.open = asyncio.Event()
        self.broken = False
        self._tasks = set()

    def spawn(self, work):
        """Run in the background."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def send(self, node_id, items):
        """One request."""
        self.sent.append((node_id, list(items)))
        await self.open.wait()
        if self.broken:
            raise LinkBroken("gone")
        return [(node_id, item) for item in items]

    def stop(self):
        """End everything that is under way."""
        for task in tuple(self._tasks):
            task.cancel()

    def post(self, key=lambda item: (item, 0)):
        """The post of this office."""
        return Post(self.spawn, self.send, key)


async def asked(post, *items, node=1):
    """Ask, and go on without the answers."""
    waiting = [asyncio.ensure_future(post.ask(node, item)) for item in items]
    for _ in range(3):
        await asyncio.sleep(0)
    return waiting


def test_what_is_asked_at_once_travels_together():
    """Do questions share a request, and each broker get its own?"""

    async def run():
        office = Office()
        post = office.post()
        waiting = await asked(post, "a", "b", "c") + await asked(post, "d", node=2)
        office.open.set()
        return office.sent, await asyncio.gather(*waiting)

    sent, answers = asyncio.run(run())

    assert sent == [(1, ["a", "b", "c"]), (2, ["d"])]
    assert answers == [(1, "a"), (1, "b"), (1, "c"), (2, "d")]


def test_no_more_than_so_many_are_under_way(monkeypatch):
    """Do questions gather while requests are under way, and go with the next, in requests of a limited size?"""
    monkeypatch.setattr(post_module, "IN_FLIGHT_MAX", 2)
    monkeypatch.setattr(post_module, "BATCH_MAX", 3)

    async def run():
        office = Office()
        post = office.post()
        waiting = []
        for items in ("a", "b", "cdefg"):
            waiting += await asked(post, *items)
        before = list(office.sent)
        office.open.set()
        await asyncio.gather(*waiting)
        return before, office.sent[len(before) :]

    before, after = asyncio.run(run())

    assert before == [(1, ["a"]), (1, ["b"])]
    assert after == [(1, ["c", "d", "e"]), (1, ["f", "g"])]


def test_what_would_be_confused_goes_apart():
    """Do questions about one thing that want different answers go in requests of their own, in order?"""

    async def run():
        office = Office()
        post = office.post(key=lambda item: (item[0], item[1]))
        waiting = await asked(post, "a1", "b1", "a2", "a1", "c1")
        office.open.set()
        answers = await asyncio.gather(*waiting)
        return office.sent, [item for _, item in answers]

    sent, answers = asyncio.run(run())

    assert sent == [(1, ["a1", "b1", "a1", "c1"]), (1, ["a2"])]
    assert answers == ["a1", "b1", "a2", "a1", "c1"]


def test_a_broken_link_is_told_to_all():
    """Does everyone who waits hear that the broker is gone, and can it be asked again?"""

    async def run():
        office = Office()
        office.broken = True
        office.open.set()
        post = office.post()
        lost = await asyncio.gather(*(post.ask(1, item) for item in "ab"), return_exceptions=True)
        office.broken = False
        return lost, await post.ask(1, "c")

    lost, answer = asyncio.run(run())

    assert [type(error) for error in lost] == [LinkBroken, LinkBroken]
    assert answer == (1, "c")


def test_the_queue_is_bounded(monkeypatch):
    """Is somebody sent away rather than queued when a broker does not answer and many wait?"""
    monkeypatch.setattr(post_module, "QUEUE_MAX", 2)
    monkeypatch.setattr(post_module, "IN_FLIGHT_MAX", 1)

    async def run():
        office = Office()
        post = office.post()
        waiting = await asked(post, "a") + await asked(post, "b", "c")
        with pytest.raises(LinkBroken):
            await post.ask(1, "d")
        office.open.set()
        return [item for _, item in await asyncio.gather(*waiting)]

    assert asyncio.run(run()) == ["a", "b", "c"]


def test_nobody_waits_for_a_broker_that_stops():
    """Is a question given up when what carries it ends?"""

    async def run():
        office = Office()
        waiting = await asked(office.post(), "a")
        office.stop()
        return await asyncio.gather(*waiting, return_exceptions=True)

    (lost,) = asyncio.run(run())

    assert isinstance(lost, asyncio.CancelledError)
