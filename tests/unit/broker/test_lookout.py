"""Brokers whose processes are gone, noticed before their sessions run out."""

import asyncio
import socket
from types import SimpleNamespace

import pytest

from headrace.broker import lookout as lookout_module
from headrace.broker.handlers import api63_broker_heartbeat
from headrace.broker.lookout import Lookout
from headrace.net.link import LinkBroken
from headrace.testing.ports import free_port
from headrace.wire.messages.broker_heartbeat import BrokerHeartbeatRequest

from .cluster_guest import Guest


@pytest.fixture
def address():
    """Where somebody listens, and how to end that."""
    # Not one that the system gives: somebody else's connection might have it as soon as the server is gone.
    with socket.create_server(("127.0.0.1", free_port())) as server:
        yield server


class Cluster:
    """A controller's node 1, and broker 2 at an address."""

    node_id = 1
    live_brokers = (1, 2)

    def __init__(self, server):
        self.peers = SimpleNamespace(address_of=lambda node: server.getsockname())


def looks(cluster, *, contact=None, count=3, between=lambda: None):
    """What some looks at broker 2 find."""

    async def run():
        watch = Lookout(cluster)
        watch.begin()
        if contact is not None:
            watch.heard(2, contact)
        found = []
        for _ in range(count):
            found.append(await watch.look())
            between()
        return found

    return asyncio.run(run())


def hung_up(is_hung_up=True):
    """A connection."""
    return SimpleNamespace(is_hung_up=is_hung_up)


def refusing(address):
    """A cluster whose broker 2 is gone; its port was free a moment ago."""
    place = address.getsockname()
    address.close()
    return SimpleNamespace(node_id=1, live_brokers=(1, 2), peers=SimpleNamespace(address_of=lambda node: place))


def test_refused_twice(address):
    """Is a broker dead whose connection is closed, when its machine has refused twice?"""
    assert looks(refusing(address), contact=hung_up()) == [[], [2], [2]]


def test_a_connection_that_is_open(address):
    """Is a broker left alone whose connection is open?"""
    assert looks(refusing(address), contact=hung_up(is_hung_up=False)) == [[], [], []]


def test_somebody_listens(address):
    """Is a broker alive that only hung up?"""
    assert looks(Cluster(address), contact=hung_up()) == [[], [], []]


def test_nobody_knows_where(address):
    """Is a broker left to its session whose address is not known?"""

    def unknown(node):
        raise LinkBroken("unknown")

    cluster = Cluster(address)
    cluster.peers.address_of = unknown
    assert looks(cluster, contact=hung_up()) == [[], [], []]


@pytest.mark.parametrize(("patience_s", "found"), [(60.0, [[], []]), (-1.0, [[], [2]])])
def test_one_that_was_never_heard(address, monkeypatch, patience_s, found):
    """Does a new controller give everybody time for a first word, and then look for them?"""
    monkeypatch.setattr(lookout_module, "FIRST_WORD_S", patience_s)

    assert looks(refusing(address), count=2) == found


def test_a_heartbeat_in_between(address):
    """Does a broker that is heard begin anew?"""

    async def run():
        watch = Lookout(refusing(address))
        watch.begin()
        watch.heard(2, hung_up())
        first = await watch.look()
        watch.heard(2, hung_up())
        return first, await watch.look(), await watch.look()

    assert asyncio.run(run()) == ([], [], [2])


def test_a_lost_broker_is_fenced(desk, monkeypatch):
    """Is a broker fenced at once that was found dead, and back with its next heartbeat if it was not?"""
    guest = Guest(desk).join()
    controller = desk.broker.controller

    async def dead():
        return [2]

    monkeypatch.setattr(controller.lookout, "look", dead)
    desk.run(controller.duties._look_out())
    assert guest.registration.fenced

    guest.beat()
    assert not guest.registration.fenced


def test_heartbeats_are_noted(desk):
    """Does the controller know over which connection it hears of a broker?"""
    guest = Guest(desk).join()
    heard = []
    desk.broker.controller.lookout.heard = lambda broker_id, connection: heard.append(broker_id)
    request = BrokerHeartbeatRequest(broker_id=2, broker_epoch=guest.epoch, current_metadata_offset=1)
    desk.ask(api63_broker_heartbeat.API, request, version=2, listener="CONTROLLER")

    assert 2 in heard
