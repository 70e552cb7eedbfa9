"""One connection for a program that waits for its answers: no event loop, and room for huge ones used again.

Questions may be sent ahead; answers come in their order, as the protocol promises. What an answer refers to (the
records of a Fetch) lies in the channel's own memory, and stays until the answer after the next is read: one answer can
be worked on while the next arrives.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
from collections import deque
from typing import TYPE_CHECKING, Any, Self

from headrace.client.encryption import is_refusal, strange_length, tls_context, tls_fault
from headrace.client.fault import ConnectionEnded, NoBroker, TimedOut
from headrace.client.handshake import Agreement, handshake
from headrace.model.errors import MalformedRequest
from headrace.wire.apis import APIS
from headrace.wire.codec import decode_response, encode_request
from headrace.wire.header import parse_response_header, request_header

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headrace.client.options import ConnectionOptions

RESPONSE_BYTES_MAX = 256 * 1024 * 1024
_LENGTH = struct.Struct(">i")
_REMEDY = "Is the broker running? Start one with: bin/headrace start"


class BlockingChannel:
    """An open connection; not for use by two threads at once."""

    def __init__(self, host: str, port: int, options: ConnectionOptions) -> None:
        self.where = f"{host}:{port}"
        self._options = options
        self._waiting: deque[tuple[int, int, int]] = deque()
        self._next_id = 0
        self._rooms = (bytearray(), bytearray())
        self._socket = _connect(host, port, options)
        try:
            self._agreement = self._agree()
        except BaseException:
            self.close()
            raise

    def version_of(self, api_key: int, *, at_most: int | None = None) -> int:
        """The newest version both sides know; NotServed if there is none."""
        return self._agreement.version_of(api_key, at_most=at_most)

    def ask(self, api_key: int, message: Any, *, version: int | None = None) -> Any:
        """Send one request and wait for its answer; nothing else may be on its way."""
        assert not self._waiting, "receive first what was sent before"
        self.send(api_key, message, version=version)
        return self.receive()

    def send(self, api_key: int, message: Any, *, version: int | None = None) -> None:
        """Send one request; `receive` waits for the answer."""
        chosen = self.version_of(api_key) if version is None else version
        self.send_body(api_key, chosen, encode_request(api_key, chosen, message))

    def send_body(self, api_key: int, version: int, *body: bytes | bytearray | memoryview) -> None:
        """Send one request that was encoded before, in pieces that are not joined."""
        self._next_id += 1
        header = request_header(api_key, version, self._next_id, self._options.client_id)
        size = len(header) + sum(len(piece) for piece in body)
        with self._faults(api_key):
            self._socket.sendall(_LENGTH.pack(size) + header)
            for piece in body:
                self._socket.sendall(piece)
        self._waiting.append((self._next_id, api_key, version))

    def receive(self) -> Any:
        """The answer to the oldest request that has none yet."""
        correlation_id, api_key, version = self._waiting.popleft()
        with self._faults(api_key):
            frame = self._read_frame()
        found, body = parse_response_header(api_key, version, frame)
        if found != correlation_id:
            raise ConnectionEnded(f"{self.where} answered a question nobody asked", "Does it speak Kafka's protocol?")
        return decode_response(api_key, version, frame, body)

    @property
    def is_idle(self) -> bool:
        """Whether no answer is on its way."""
        return not self._waiting

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _agree(self) -> Agreement:
        talk = handshake(self._options, self.where)
        question = next(talk)
        while True:
            self.send(question.api_key, question.message, version=question.version)
            try:
                answer = self.receive()
            except MalformedRequest as error:
                question = talk.throw(error)
                continue
            try:
                question = talk.send(answer)
            except StopIteration as end:
                agreement: Agreement = end.value
                return agreement

    def _read_frame(self) -> memoryview:
        head = bytearray(_LENGTH.size)
        self._fill(memoryview(head))
        (size,) = _LENGTH.unpack(head)
        if not _LENGTH.size <= size <= RESPONSE_BYTES_MAX:
            raise strange_length(self.where, size)
        first, second = self._rooms
        # A room that is too small is left to whoever still looks into it: it cannot be resized under them.
        room = first if len(first) >= size else bytearray(size)
        self._rooms = (second, room)
        frame = memoryview(room)[:size]
        self._fill(frame)
        return frame

    def _fill(self, room: memoryview) -> None:
        filled = 0
        while filled < len(room):
            count = self._socket.recv_into(room[filled:])
            if not count:
                raise ConnectionEnded(f"The broker at {self.where} closed the connection", "See its log for why")
            filled += count

    @contextlib.contextmanager
    def _faults(self, api_key: int) -> Iterator[None]:
        try:
            yield
        except TimeoutError:
            raise TimedOut(
                f"The broker at {self.where} did not answer {APIS[api_key].name} in time", "Is it overloaded?"
            ) from None
        except OSError as error:
            if isinstance(error, ssl.SSLError) and is_refusal(error):
                # In TLS 1.3 a certificate of ours is refused only after the handshake.
                raise tls_fault(self.where, error) from error
            raise ConnectionEnded(
                f"The broker at {self.where} closed the connection ({error})", "See its log for why"
            ) from error


def _connect(host: str, port: int, options: ConnectionOptions) -> socket.socket:
    where = f"{host}:{port}"
    try:
        plain = socket.create_connection((host, port), timeout=options.connect_timeout_s)
    except TimeoutError:
        raise NoBroker(f"Nothing answers at {where} within {options.connect_timeout_s:g} s", _REMEDY) from None
    except OSError as error:
        raise NoBroker(f"Cannot connect to {where}: {error.strerror or error}", _REMEDY) from error
    try:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        chosen = tls_context(options).wrap_socket(plain, server_hostname=host) if options.uses_tls else plain
        chosen.settimeout(options.request_timeout_s)
    except (ssl.SSLError, ConnectionResetError) as error:
        plain.close()
        raise tls_fault(where, error) from error
    except OSError as error:
        plain.close()
        raise NoBroker(f"Cannot connect to {where}: {error.strerror or error}", _REMEDY) from error
    return chosen
