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
        monkeypatch.setattr(ports.secrets, "randbelow", lambda _: taken - ports._FIRST)
        with pytest.raises(OSError, match="no 1 free ports"):
            free_port()


@pytest.mark.parametrize(("text", "first"), [("40000\t60999\n", 40000), ("1024 65535", 32768), ("", 32768)])
def test_where_outgoing_ports_begin(monkeypatch, tmp_path, text, first):
    """Is the system asked, and what it says not believed where it leaves no room?"""
    (tmp_path / "range").write_text(text)
    monkeypatch.setattr(ports, "_RANGE", Path(tmp_path / "range"))

    assert first == ports._first_outgoing()
