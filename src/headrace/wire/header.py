"""What stands before every request and response body (KIP-482 added tagged fields to both)."""

import struct
from typing import NamedTuple

from headrace.model.errors import MalformedRequest
from headrace.wire.apis import APIS
from headrace.wire.primitives import BAD_BYTES, Budget, Buffer, skip_tags, text_of, write_nullable_string

API_VERSIONS = 18

_FLEXIBLE_FIRST = {api.key: api.flexible_first for api in APIS.values()}
_REQUEST = struct.Struct(">hhih")
_REQUEST_FIXED = struct.Struct(">hhi")
_RESPONSE = struct.Struct(">i")
_FLEXIBLE_RESPONSE = struct.Struct(">ib")


class RequestHeader(NamedTuple):
    """A request's header; `body` is the position after it."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    body: int


_new_header = tuple.__new__


def parse_request_header(view: Buffer) -> RequestHeader:
    """The header at the start of a request; MalformedRequest also if no such API exists, as nothing can answer it.

    A version we do not know still has a header we can read: ApiVersions is answered whatever its version (KIP-511).
    """
    try:
        api_key, version, correlation_id, length = _REQUEST.unpack_from(view)
        flexible_first = _FLEXIBLE_FIRST.get(api_key)
        if flexible_first is None:
            raise MalformedRequest(f"unknown API key {api_key}")
        end = _REQUEST.size
        client_id = None
        if length >= 0:
            end += length
            client_id = text_of(bytes(view[_REQUEST.size : end]))
        if version >= flexible_first:
            end = skip_tags(view, end, Budget()) if view[end] else end + 1
    except BAD_BYTES as error:
        raise MalformedRequest(f"not a request header: {error}") from error
    # A client id cut short was not noticed above.
    if end > len(view):
        raise MalformedRequest("truncated request header")
    return _new_header(RequestHeader, (api_key, version, correlation_id, client_id, end))


def request_header(api_key: int, version: int, correlation_id: int, client_id: str | None) -> bytes:
    """The header of a request of ours."""
    out = bytearray(_REQUEST_FIXED.pack(api_key, version, correlation_id))
    # Kafka keeps the old string form here even in the flexible header.
    write_nullable_string(out, client_id)
    if version >= _FLEXIBLE_FIRST[api_key]:
        out.append(0)
    return bytes(out)


def response_header(api_key: int, version: int, correlation_id: int) -> bytes:
    """The header of a response; that of ApiVersions is never flexible, as its reader cannot know our version yet."""
    if version >= _FLEXIBLE_FIRST[api_key] and api_key != API_VERSIONS:
        return _FLEXIBLE_RESPONSE.pack(correlation_id, 0)
    return _RESPONSE.pack(correlation_id)


def parse_response_header(api_key: int, version: int, view: Buffer) -> tuple[int, int]:
    """The correlation id of a response to us, and the position of its body."""
    try:
        (correlation_id,) = _RESPONSE.unpack_from(view)
        body = _RESPONSE.size
        if version >= _FLEXIBLE_FIRST[api_key] and api_key != API_VERSIONS:
            body = skip_tags(view, body, Budget())
    except BAD_BYTES as error:
        raise MalformedRequest(f"not a response header: {error}") from error
    return correlation_id, body
