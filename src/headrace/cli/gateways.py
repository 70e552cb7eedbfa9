"""The gateways of this machine: starting one beside the brokers, finding those that run, asking how they are."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from headrace.cli.layout import log_directory
from headrace.cli.local_cluster import is_free
from headrace.cli.nodes import RUNNING, SILENT, STARTING, is_taken, shown_path
from headrace.cli.running import RunningGateway, running_gateways
from headrace.cli.session import Failure

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

PORT = 8082
CONSOLE_PATH = "/console/"
CHOICE = "HEADRACE_GATEWAY"
"""Set to `no`, `headrace start` starts no gateway unless asked to."""
_PORTS_MAX = 100
_PATIENCE_S = 30.0
_STOP_S = 30.0
_PAUSE_S = 0.05
_ANSWER_S = 2.0
_LAST_WORDS_LINES = 5


def free_url() -> str:
    """Where a gateway could listen: on the usual port, or the next that is free."""
    for port in range(PORT, PORT + _PORTS_MAX):
        if is_free(port):
            return f"http://127.0.0.1:{port}"
    raise Failure(f"No port from {PORT} to {PORT + _PORTS_MAX - 1} is free for a gateway.", remedy="End some program.")


def find_gateway(brokers: str) -> RunningGateway | None:
    """The gateway before these brokers, if one runs."""
    wanted = {*brokers.split(",")}
    return next((one for one in running_gateways() if wanted & {*one.brokers.split(",")}), None)


class Launch:
    """A gateway that was started as a process that outlives us."""

    def __init__(self, arguments: Sequence[str], *, by_start: bool = False) -> None:
        from headrace.cli.server_start import STARTED

        directory = log_directory()
        directory.mkdir(parents=True, exist_ok=True)
        self._log = directory / "gateway.log"
        environment = {**os.environ, STARTED: "1"} if by_start else {**os.environ}
        with self._log.open("ab") as output:
            self._before = output.tell()
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "headrace.cli", "gateway", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=environment,
                start_new_session=True,
                close_fds=True,
            )

    def listening(self) -> RunningGateway:
        """Wait until it listens; Failure if it ended instead, with its last words."""
        deadline = time.monotonic() + _PATIENCE_S
        while (found := self._found()) is None and self._process.poll() is None and time.monotonic() < deadline:
            time.sleep(_PAUSE_S)
        log = shown_path(str(self._log))
        if self._process.poll() is not None:
            raise Failure(f"The gateway ended at once:\n{self._last_words()}", remedy=f"Its log: {log}")
        # It belongs to init from here on, and Python need not warn that nobody waited for it.
        self._process.returncode = 0
        if found is None:
            raise Failure(
                f"The gateway does not listen after {_PATIENCE_S:.0f} s, but it is running.",
                remedy=f"Its log says what it does: {log}",
            )
        return found

    def _found(self) -> RunningGateway | None:
        return next((one for one in running_gateways() if one.pid == self._process.pid), None)

    def abandon(self) -> None:
        """What it was for is not there."""
        if self._process.poll() is None:
            self._process.terminate()
            self._process.wait()

    def _last_words(self) -> str:
        with self._log.open("rb") as file:
            file.seek(self._before)
            lines = file.read().decode(errors="replace").splitlines()[-_LAST_WORDS_LINES:]
        return "\n".join(f"  {line}" for line in lines)


def stop_gateways(gateways: Collection[RunningGateway]) -> int:
    """Ask them to end and wait until they are gone."""
    for gateway in gateways:
        with suppress(ProcessLookupError):
            os.kill(gateway.pid, signal.SIGTERM)
    deadline = time.monotonic() + _STOP_S
    while remaining := {one.pid for one in gateways} & {one.pid for one in running_gateways()}:
        if time.monotonic() > deadline:
            print(f"The gateway (process {min(remaining)}) is still stopping after {_STOP_S:.0f} s; its log says why.")
            return 1
        time.sleep(_PAUSE_S)
    for gateway in gateways:
        print(f"Stopped the gateway at {gateway.url} (process {gateway.pid}).")
    return 0


async def gateway_statuses(gateways: Sequence[RunningGateway]) -> list[str]:
    """What each is at."""
    return list(await asyncio.gather(*map(_status, gateways)))


async def _status(gateway: RunningGateway) -> str:
    if await _answers(gateway.url):
        return RUNNING
    return SILENT if await is_taken(gateway.url.partition("://")[2]) else STARTING


async def _answers(url: str) -> bool:
    """Whether a gateway answers there, asked once; one that speaks TLS is only knocked at."""
    scheme, _, address = url.partition("://")
    if scheme != "http":
        return await is_taken(address)
    host, _, port = address.rpartition(":")
    request = f"GET /healthy HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
    try:
        async with asyncio.timeout(_ANSWER_S):
            reader, writer = await asyncio.open_connection(host.strip("[]"), int(port))
            try:
                writer.write(request.encode())
                return b" 200 " in await reader.readline()
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return False


def shown_gateway(gateway: RunningGateway) -> str:
    """One line about it."""
    console = f", console {gateway.url}{CONSOLE_PATH}" if gateway.has_console else ""
    return f"Gateway {gateway.url}{console}"


def gateway_document(gateway: RunningGateway, status: str) -> dict[str, object]:
    """A gateway for programs."""
    return {
        "url": gateway.url,
        "status": status,
        "console": f"{gateway.url}{CONSOLE_PATH}" if gateway.has_console else None,
        "brokers": gateway.brokers,
        "pid": gateway.pid,
    }
