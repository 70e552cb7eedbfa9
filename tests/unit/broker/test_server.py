"""A broker as a process: how it ends."""

import asyncio
from types import SimpleNamespace

import pytest

from headrace.broker import server


def ending(*, is_broken, is_stopped):
    """Wait for the end of a node that is broken, told to stop, or both."""

    async def end():
        broken, stop = asyncio.Event(), asyncio.Event()
        if is_broken:
            broken.set()
        if is_stopped:
            stop.set()
        broker = SimpleNamespace(broken=broken, broken_because="All log dirs have failed: /one, /two.")
        stopping = asyncio.ensure_future(stop.wait())
        await asyncio.sleep(0)
        try:
            await server._end(broker, stopping)
        finally:
            stopping.cancel()

    asyncio.run(end())


def test_a_broken_node_ends_with_a_sentence():
    """Is the reason told for which a node cannot go on?"""
    with pytest.raises(server.BrokerBroken, match=r"^All log dirs have failed: /one, /two\. The node stops; "):
        ending(is_broken=True, is_stopped=False)


def test_a_broken_node_that_was_told_to_stop_stops():
    """Is a stop that was asked for no failure, whatever broke meanwhile?"""
    ending(is_broken=True, is_stopped=True)
    ending(is_broken=False, is_stopped=True)


def test_a_failure_is_an_exit_code(monkeypatch, tmp_path, caplog):
    """Does a process whose node broke exit with 1, and say why in one line?"""

    def broken(main):
        main.close()
        raise server.BrokerBroken("All log dirs have failed: /one.")

    monkeypatch.setattr(server, "_run", broken)
    monkeypatch.setattr(server, "_log_to_output", lambda: None)
    properties = tmp_path / "server.properties"
    properties.write_text(
        "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters=1@localhost:9093\n"
        "listeners=PLAINTEXT://:9092,CONTROLLER://:9093\ncontroller.listener.names=CONTROLLER\nlog.dirs=/one\n"
    )

    assert server.run(properties, {}) == 1
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == [
        "broker_failed reason=All log dirs have failed: /one."
    ]
