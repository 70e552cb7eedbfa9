"""Many clients of the Stream API in one process: opens them, listens for a while, and says how late records were.

    python -m bench.stream_clients HOST PORT COUNT SECONDS PATH

PATH may hold `{n}`, the number of a client. `ready` is printed once all are open, then one line of JSON at the end.
The producer writes the nanosecond at which a record was handed over into its value: {"at":…}. While they listen, the
clients look at the clock and keep what came; they look into it at the end. They share a machine with what they measure.
"""

import asyncio
import gc
import json
import re
import sys
import time

_AT = re.compile(rb'"at":(\d+)')
_FEW = 0.001


class Client(asyncio.Protocol):
    """One connection; takes the time of whatever comes."""

    def __init__(self, request: bytes, opened: asyncio.Semaphore) -> None:
        self._request = request
        self._opened = opened
        self._came: list[tuple[int, bytes]] = []
        self.is_open = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._came.append((time.time_ns(), data))
        if not self.is_open and b":ok" in data:
            self.is_open = True
            self._opened.release()

    def delays_ns(self) -> list[int]:
        """How late each record was, by the time at which its last byte came."""
        delays, rest = [], b""
        for now, data in self._came:
            whole, separator, rest = (rest + data).rpartition(b"\n\n")
            if separator:
                delays += [now - int(at) for at in _AT.findall(whole)]
        return delays


def _quantiles(delays_ns: list[int]) -> dict[str, float]:
    ordered = sorted(delays_ns)
    named = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999, "max": 1.0}
    return {name: ordered[min(int(len(ordered) * part), len(ordered) - 1)] / 1e6 for name, part in named.items()}


async def _run(host: str, port: int, count: int, seconds: float, path: str) -> dict[str, float]:
    loop = asyncio.get_running_loop()
    opened = asyncio.Semaphore(0)
    clients = []
    for number in range(count):
        request = f"GET {path.format(n=number)} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
        transport, client = await loop.create_connection(lambda r=request: Client(r, opened), host, port)
        clients.append((transport, client))
        await asyncio.sleep(_FEW)
    for _ in range(count):
        await opened.acquire()
    gc.disable()
    print("ready", flush=True)
    await asyncio.sleep(seconds)
    for transport, _ in clients:
        transport.close()
    delays_ns = [delay for _, client in clients for delay in client.delays_ns()]
    lost = sum(1 for _, client in clients if not client.is_open)
    return {"deliveries": len(delays_ns), "not open": lost, **(_quantiles(delays_ns) if delays_ns else {})}


def main() -> None:
    """Run and report."""
    host, port, count, seconds, path = sys.argv[1:]
    try:
        import uvloop  # noqa: PLC0415 - not on Windows
    except ImportError:
        run = asyncio.run
    else:
        run = uvloop.run
    print(json.dumps(run(_run(host, int(port), int(count), float(seconds), path))), flush=True)


if __name__ == "__main__":
    main()
