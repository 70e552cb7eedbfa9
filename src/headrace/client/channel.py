"""One connection to one broker: requests in any number, answers matched to them, in versions both sides know."""

from __future__ import annotations

import asyncio
import os
import ssl
import struct
from typing import TYPE_CHECKING, Any

from headrace.client.encryption import WRONG_DOOR, is_refusal, strange_length, tls_context, tls_fault
from headrace.client.fault import ClientFault, ConnectionEnded, NoBroker, TimedOut
from headrace.client.handshake import Agreement, handshake
from headrace.model.errors import MalformedRequest
from headrace.wire.apis import APIS
from headrace.wire.codec import decode_response, encode_request
from headrace.wire.header import parse_response_header, request_header

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headrace.client.options import ConnectionOptions

RESPONSE_BYTES_MAX = 256 * 1024 * 1024
_LENGTH = struct.Struct(">i")


class Channel:
    """An open connection; `open_channel` makes one."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, options: ConnectionOptions, where: str
    ) -> None:
        self.where = where
        self.agreement = Agreement(where, {}, {})
        """What the broker serves, known once the handshake is over."""
        self._reader = reader
        self._writer = writer
        self._options = options
        self._waiting: dict[int, tuple[int, int, asyncio.Future[Any]]] = {}
        self._next_id = 0
        self._fault: ClientFault | None = None
        self._reading = asyncio.ensure_future(self._read())

    @property
    def is_closed(self) -> bool:
        """Whether nothing more can be asked here."""
        return self._fault is not None

    @property
    def versions(self) -> Mapping[int, tuple[int, int]]:
        """What the broker serves: the first and last version by API key."""
        return self.agreement.versions

    @property
    def features(self) -> Mapping[str, int]:
        """The levels the cluster has agreed on, by feature."""
        return self.agreement.features

    def version_of(self, api_key: int, *, at_most: int | None = None) -> int:
        """The newest version both sides know; NotServed if there is none."""
        return self.agreement.version_of(api_key, at_most=at_most)

    async def ask(
        self, api_key: int, message: Any, *, version: int | None = None, timeout_s: float | None = None
    ) -> Any:
        """Send one request and wait for its answer."""
        chosen = self.version_of(api_key) if version is None else version
        answer = self.send(api_key, chosen, message)
        try:
            # Not wait_for: before Python 3.12 it forgets a cancellation that comes together with the answer.
            async with asyncio.timeout(timeout_s or self._options.request_timeout_s):
                return await answer
        except TimeoutError:
            raise TimedOut(
                f"The broker at {self.where} did not answer {APIS[api_key].name} in time", "Is it overloaded?"
            ) from None

    def send(self, api_key: int, version: int, message: Any) -> asyncio.Future[Any]:
        """Send one request; the answer comes in the future."""
        if self._fault is not None:
            raise self._fault
        self._next_id += 1
        frame = request_header(api_key, version, self._next_id, self._options.client_id) + encode_request(
            api_key, version, message
        )
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[self._next_id] = (api_key, version, answer)
        self._writer.write(_LENGTH.pack(len(frame)) + frame)
        return answer

    async def _read(self) -> None:
        try:
            while True:
                (size,) = _LENGTH.unpack(await self._reader.readexactly(_LENGTH.size))
                if not _LENGTH.size <= size <= RESPONSE_BYTES_MAX:
                    raise strange_length(self.where, size)
                self._take(memoryview(await self._reader.readexactly(size)))
        except ClientFault as fault:
            self._end(fault)
        except (OSError, EOFError, MalformedRequest) as error:
            if isinstance(error, ssl.SSLError) and is_refusal(error):
                # In TLS 1.3 a certificate of ours is refused only after the handshake.
                self._end(tls_fault(self.where, error))
                return
            why = "" if isinstance(error, EOFError) else f" ({error})"
            remedy = "See its log for why" if self.versions else WRONG_DOOR
            self._end(ConnectionEnded(f"The broker at {self.where} closed the connection{why}", remedy))

    def _take(self, frame: memoryview) -> None:
        (correlation_id,) = _LENGTH.unpack_from(frame)
        waiting = self._waiting.pop(correlation_id, None)
        if waiting is None:
            raise ConnectionEnded(f"{self.where} answered a question nobody asked", "Does it speak Kafka's protocol?")
        api_key, version, answer = waiting
        if answer.done():
            return
        try:
            _, body = parse_response_header(api_key, version, frame)
            answer.set_result(decode_response(api_key, version, frame, body))
        except MalformedRequest as error:
            answer.set_exception(error)

    def _end(self, fault: ClientFault) -> None:
        self._fault = self._fault or fault
        waiting, self._waiting = self._waiting, {}
        for _, _, answer in waiting.values():
            if not answer.done():
                answer.set_exception(self._fault)
        self._writer.close()

    async def close(self) -> None:
        """Hang up."""
        self._end(ConnectionEnded("The connection was closed"))
        if self._options.uses_tls:
            # A farewell in TLS waits for the other side's, and nobody may be there any more to wait for it.
            self._writer.transport.abort()
        self._reading.cancel()
        await asyncio.gather(self._reading, self._writer.wait_closed(), return_exceptions=True)


async def open_channel(host: str, port: int, options: ConnectionOptions) -> Channel:
    """Connect, agree on versions, and log in where that is asked for; bounded by the connect timeout."""
    where = f"{host}:{port}"
    channel: Channel | None = None
    try:
        async with asyncio.timeout(options.connect_timeout_s):
            reader, writer = await asyncio.open_connection(
                host, port, ssl=tls_context(options) if options.uses_tls else None, limit=1024 * 1024
            )
            channel = Channel(reader, writer, options, where)
            await _agree(channel, options)
            return channel
    except TimeoutError:
        await _abandon(channel)
        raise NoBroker(f"Nothing answers at {where} within {options.connect_timeout_s:g} s", _REMEDY) from None
    except (ssl.SSLError, ConnectionResetError) as error:
        await _abandon(channel)
        raise tls_fault(where, error) if options.uses_tls else _unreachable(where, error) from error
    except OSError as error:
        await _abandon(channel)
        raise _unreachable(where, error) from error
    except BaseException:
        await _abandon(channel)
        raise


_REMEDY = "Is the broker running? Start one with: bin/headrace start"


def _unreachable(where: str, error: OSError) -> NoBroker:
    # What asyncio says of a refused connection is its own; the system's words are known.
    reason = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
    return NoBroker(f"Cannot connect to {where}: {reason or error}", _REMEDY)


async def _abandon(channel: Channel | None) -> None:
    if channel is not None:
        await channel.close()


async def _agree(channel: Channel, options: ConnectionOptions) -> None:
    """Say what is said first."""
    talk = handshake(options, channel.where)
    question = next(talk)
    while True:
        try:
            answer = await channel.send(*question)
        except MalformedRequest as error:
            question = talk.throw(error)
            continue
        try:
            question = talk.send(answer)
        except StopIteration as end:
            channel.agreement = end.value
            return
