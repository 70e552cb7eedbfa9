"""A cold reply, sent by a thread straight from the files.

Pages that came from the disk a moment ago have not been looked at by anybody. Handed over by sendfile(2) they are first
touched by who reads them; copied into the socket by us, they cost the broker several times the CPU of a warm read. It
is sendfile that waits for the disk, too, because then the kernel reads ahead as it does for any program that reads a
file; to bring the pages into the mapping first took a third more CPU and a fifth more time.
What is warm the event loop sends from the files by itself (`net/connection.py`).
"""

from __future__ import annotations

import asyncio
import select
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

from headrace.net.reply import send_piece
from headrace.storage.file_range import FileRange

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from concurrent.futures import Executor

    from headrace.net.reply import Buffer, Buffers

STALL_MS = 50
SECONDS_MAX = 0.5
"""A thread waits no longer for a peer that reads slowly; the event loop has all the patience for the rest."""


class LostHalfway(Exception):
    """The rest of a reply cannot be read any more, and its beginning has left."""


def send_from_files(peer: socket.socket, pieces: Buffers) -> Buffers:
    """Send a reply, answering what the peer has not taken.

    Blocking, for a thread that has the socket, which does not block, to itself and closes it in the end.
    """
    with peer:
        number, done = _send_all(peer, pieces)
    rest = list(map(_brought, pieces[number:]))
    return [rest[0][done:], *rest[1:]] if rest else ()


async def sent_by_a_thread(threads: Executor, send: Callable[[], Buffers]) -> Buffers:
    """What a thread could not send; it goes on and closes its socket even if nobody waits for it any more.

    Closed by anyone else, the socket's number might be another's by the time the thread writes to it.
    A cold reply waits once, so it has one future, and not the four that come with the event loop's own way.
    """
    waiting: asyncio.Future[Buffers] = asyncio.get_running_loop().create_future()
    threads.submit(_send_and_tell, send, waiting)
    return await waiting


def _send_and_tell(send: Callable[[], Buffers], waiting: asyncio.Future[Buffers]) -> None:
    tell: Callable[[], None]
    try:
        tell = partial(waiting.set_result, send())
    except Exception as problem:  # noqa: BLE001 - it is raised where the reply is waited for
        tell = partial(waiting.set_exception, problem)
    # A loop that has ended waits for nothing.
    with suppress(RuntimeError):
        waiting.get_loop().call_soon_threadsafe(_tell, waiting, tell)


def _tell(waiting: asyncio.Future[Buffers], tell: Callable[[], None]) -> None:
    if not waiting.cancelled():
        tell()


def _send_all(peer: socket.socket, pieces: Buffers) -> tuple[int, int]:
    """How far the peer took them: the first piece it has not got, and how much of that it has."""
    writable = select.poll()
    writable.register(peer, select.POLLOUT)
    give_up_at = monotonic() + SECONDS_MAX
    for number, piece in enumerate(pieces):
        done = 0
        while done < len(piece):
            try:
                done += _send(peer, piece, done, last=number == len(pieces) - 1)
            except BlockingIOError:
                if monotonic() > give_up_at or not writable.poll(STALL_MS):
                    return number, done
            except ConnectionError:
                return len(pieces), 0
    return len(pieces), 0


def _brought(piece: Buffer | FileRange) -> memoryview:
    """A piece as the event loop may send it, which must not wait for the disk."""
    try:
        return piece.bring() if isinstance(piece, FileRange) else memoryview(piece)
    except OSError as problem:
        raise LostHalfway(str(problem)) from problem


def _send(peer: socket.socket, piece: Buffer | FileRange, done: int, *, last: bool) -> int:
    try:
        return send_piece(peer, piece, done, last=last)
    except (BlockingIOError, ConnectionError):
        raise
    except OSError as problem:
        raise LostHalfway(str(problem)) from problem
