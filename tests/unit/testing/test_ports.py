"""Ports for servers that are started a moment later."""

import socket
from pathlib import Path

import pytest

from headrace.testing import ports
from headrace.testing.ports import free_port, free_ports


def test_ports_are_free_and_different():
    """Can all of them be listened on at the same time?"""
    found = free_ports(20)
    listeners = [socket.create_server(("127.0.0.1", port)) for port in found]
    for listener in listeners:
        listener.close()

    assert 20 == len(set(found))


def test_no_outgoing_connection_takes_them():
    """Do they lie below the ports that the system gives to outgoing connections?"""
    assert max(free_ports(50)) < ports._first_outgoing()


def test_taken_ports_are_not_given(monkeypatch):
    """Is a port passed over that somebody listens on, and is it an error if there is no other?"""
    taken = free_port()
    with socket.create_server(("127.0.0.1", taken)):
        monkeypatch.setattr(ports, "_FIRST", taken)
        monkeypatch.setattr(ports, "_share", lambda first, last: (first, last))
        monkeypatch.setattr(ports.secrets, "randbelow", lambda _: 0)
        with pytest.raises(OSError, match="no 1 free ports"):
            free_port()


def test_workers_of_a_test_run_do_not_share_ports(monkeypatch):
    """Has each of several workers a range of its own, and one that is alone all there are?"""
    monkeypatch.setenv("PYTEST_XDIST_WORKER_COUNT", "4")
    shares = []
    for worker in range(4):
        monkeypatch.setenv("PYTEST_XDIST_WORKER", f"gw{worker}")
        shares.append(range(*ports._share(10_000, 30_003)))
    monkeypatch.delenv("PYTEST_XDIST_WORKER")

    assert [range(10_000 + 5000 * worker, 15_000 + 5000 * worker) for worker in range(4)] == shares
    assert (10_000, 30_003) == ports._share(10_000, 30_003)


@pytest.mark.parametrize(("text", "first"), [("40000\t60999\n", 40000), ("1024 65535", 32768), ("", 32768)])
def test_where_outgoing_ports_begin(monkeypatch, tmp_path, text, first):
    """Is the system asked, and what it says not believed where it leaves no room?"""
    (tmp_path / "range").write_text(text)
    monkeypatch.setattr(ports, "_RANGE", Path(tmp_path / "range"))

    assert first == ports._first_outgoing()
