"""Who is paced where a broker has clients on its own machine and on others."""

import asyncio
import socket

import pytest

from headrace.net.pacing import UNPACED
from network_hosts import Hosts, NoHosts
from unit.net.listening import control_of, default_control

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not default_control().startswith(b"bbr"), reason="the system does not pace connections"),
]


def test_only_others_are_paced():
    """Is a client on another host paced as the system wants it, and one on the broker's own host not at all?"""
    try:
        hosts = Hosts(1)
    except NoHosts as reason:
        pytest.skip(f"no hosts: {reason}")

    def connect(host, address, port):
        with host.entered():
            return socket.create_connection((address, port))

    try:
        with hosts[1].entered():
            own = asyncio.run(control_of("0.0.0.0", lambda port: connect(hosts[1], "127.0.0.1", port)))
            other = asyncio.run(control_of("0.0.0.0", lambda port: connect(hosts.client, hosts[1].address, port)))
    finally:
        hosts.remove()
    assert (UNPACED, default_control()) == (own, other)
