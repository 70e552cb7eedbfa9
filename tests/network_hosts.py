"""Hosts on one machine: network namespaces on a bridge, whose cables can be pulled and whose packets can get lost.

Nothing leaves the machine: the bridge lives in a namespace of its own and has no way out. A direction is cut by a
neighbour that does not exist: the sender's packets go to a hardware address nobody has, and nobody tells it. This takes
no packet filter, so it works with every kernel that has namespaces.
"""

import contextlib
import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

BROKERS, CONTROLLERS = 0, 1
"""Every host has an address in both networks; they share its one cable."""
NETWORKS = (BROKERS, CONTROLLERS)
_NOBODY = "02:00:00:00:00:99"
_CLONE_NEWNET = 0x40000000
_COMMAND_TIMEOUT_S = 30
_NAMESPACES = Path("/run/netns")
_NAME = "headrace-{pid}-{label}"


class NoHosts(Exception):
    """There can be no namespaces on this machine; the message says why."""


class Host:
    """One namespace with its cable to the bridge."""

    def __init__(self, number: int, bridge: str) -> None:
        self.number = number
        self.namespace = _NAME.format(pid=os.getpid(), label=number)
        self._bridge = bridge
        self._cable = f"cable{number}"
        self._cuts: set[str] = set()
        _run("ip", "netns", "add", self.namespace)
        _run("ip", "-n", self.namespace, "link", "set", "lo", "up")
        _run("ip", "-n", bridge, "link", "add", self._cable, "type", "veth", "peer", "eth0", "netns", self.namespace)
        _run("ip", "-n", bridge, "link", "set", self._cable, "master", "bridge", "up")
        for network in NETWORKS:
            _run("ip", "-n", self.namespace, "address", "add", f"{self.address_in(network)}/24", "dev", "eth0")
        _run("ip", "-n", self.namespace, "link", "set", "eth0", "up")

    @property
    def address(self) -> str:
        """Where brokers and clients find it."""
        return self.address_in(BROKERS)

    def address_in(self, network: int) -> str:
        """Its address in one of the networks."""
        return f"10.0.{network}.{10 + self.number}"

    def command(self, *words: str) -> list[str]:
        """A command, run on this host; its process id is that of the command.

        `ip netns exec` would give it mounts of its own too, and with them every disk that another test just then has
        mounted: such a disk would live on after that test has unmounted it.
        """
        return ["nsenter", f"--net={_NAMESPACES / self.namespace}", *words]

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Be on this host: this thread, and the threads and processes it starts meanwhile."""
        with Path("/proc/thread-self/ns/net").open("rb") as before, (_NAMESPACES / self.namespace).open("rb") as inside:
            _enter(inside.fileno())
            try:
                yield
            finally:
                _enter(before.fileno())

    # --- faults

    def unplug(self) -> None:
        """Pull its cable: nothing in, nothing out."""
        _run("ip", "-n", self._bridge, "link", "set", self._cable, "down")

    def drop_to(self, others: Iterable["Host"], networks: Iterable[int] = NETWORKS) -> None:
        """Lose what it sends to others, silently and in this direction only."""
        networks = tuple(networks)
        for address in (other.address_in(network) for other in others if other is not self for network in networks):
            words = ("neighbour", "replace", address, "lladdr", _NOBODY, "dev", "eth0", "nud", "permanent")
            _run("ip", "-n", self.namespace, *words)
            self._cuts.add(address)

    def heal(self) -> None:
        """Put everything right that was done to it."""
        for address in self._cuts:
            _run("ip", "-n", self.namespace, "neighbour", "delete", address, "dev", "eth0")
        self._cuts.clear()
        _run("ip", "-n", self._bridge, "link", "set", self._cable, "up")


class Hosts:
    """So many hosts, numbered from 1, and one more for clients."""

    def __init__(self, count: int) -> None:
        if sys.platform != "linux" or os.geteuid() != 0:
            raise NoHosts("namespaces of networks take Linux and root")
        for command, package in (("ip", "iproute2"), ("nsenter", "util-linux")):
            if shutil.which(command) is None:
                raise NoHosts(f"there is no {command} command ({package})")
        _sweep()
        bridge = _NAME.format(pid=os.getpid(), label="bridge")
        self._made = [bridge]
        try:
            _run("ip", "netns", "add", bridge)
            _run("ip", "-n", bridge, "link", "add", "bridge", "type", "bridge")
            _run("ip", "-n", bridge, "link", "set", "bridge", "up")
            self._hosts = {}
            for number in range(1, count + 2):
                self._made.append(_NAME.format(pid=os.getpid(), label=number))
                self._hosts[number] = Host(number, bridge)
        except NoHosts:
            self.remove()
            raise
        self.client = self._hosts.pop(count + 1)

    def __getitem__(self, number: int) -> Host:
        return self._hosts[number]

    def __iter__(self) -> Iterator[Host]:
        return iter(self._hosts.values())

    def others(self, host: Host) -> list[Host]:
        """All but one, and but the client's."""
        return [other for other in self if other is not host]

    def cut(self, ones: Iterable[Host], others: Iterable[Host], networks: Iterable[int] = NETWORKS) -> None:
        """Lose everything between two sides, both ways."""
        ones, others, networks = list(ones), list(others), tuple(networks)
        for one in ones:
            one.drop_to(others, networks)
        for other in others:
            other.drop_to(ones, networks)

    def heal(self) -> None:
        """Put the whole network right."""
        for host in (*self, self.client):
            host.heal()

    def remove(self) -> None:
        """Leave nothing behind; the cables go with what they were plugged into."""
        for name in self._made:
            with contextlib.suppress(NoHosts):
                _run("ip", "netns", "delete", name)


def _sweep() -> None:
    """Remove the namespaces of test runs that were killed before they could, and what still runs in them."""
    for path in _NAMESPACES.glob(_NAME.format(pid="*", label="*")):
        pid = re.fullmatch(_NAME.format(pid=r"(\d+)", label=r"\w+"), path.name)
        if pid is None or Path("/proc", pid[1]).exists():
            continue
        with contextlib.suppress(NoHosts, ProcessLookupError):
            for left in _run("ip", "netns", "pids", path.name).split():
                os.kill(int(left), signal.SIGKILL)
            _run("ip", "netns", "delete", path.name)


def _enter(descriptor: int) -> None:
    """What `os.setns` is from Python 3.12 on."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(descriptor, _CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=_COMMAND_TIMEOUT_S, check=False)
    if done.returncode != 0:
        raise NoHosts(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout
