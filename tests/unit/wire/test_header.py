"""Headers of requests and responses."""

import struct

import pytest

from headrace.model.errors import MalformedRequest
from headrace.wire.header import (
    RequestHeader,
    parse_request_header,
    parse_response_header,
    request_header,
    response_header,
)

PRODUCE, METADATA, API_VERSIONS, SASL_HANDSHAKE = 0, 3, 18, 17


def plain_header(api_key: int, version: int, client_id: bytes | None) -> bytes:
    """A request header, written out."""
    length = -1 if client_id is None else len(client_id)
    return struct.pack(">hhih", api_key, version, 77, length) + (client_id or b"")


@pytest.mark.parametrize("client_id", [None, "", "producer-1", "ä" * 200])
@pytest.mark.parametrize(("version", "tags"), [(8, b""), (9, b"\0"), (9, b"\x02\x00\x01x\x09\x00"), (99, b"\0")])
def test_a_request_header_is_read(client_id: str | None, version: int, tags: bytes) -> None:
    """Are both header versions read, tags skipped, and the body found?"""
    head = plain_header(METADATA, version, None if client_id is None else client_id.encode()) + tags

    header = parse_request_header(memoryview(bytearray(head + b"body")))

    assert RequestHeader(METADATA, version, 77, client_id, len(head)) == header


@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize("client_id", [None, "client"])
def test_a_header_cut_anywhere_is_malformed(version: int, client_id: str | None) -> None:
    """Is every proper prefix of a header refused?"""
    head = request_header(METADATA, version, 77, client_id)

    for end in range(len(head)):
        with pytest.raises(MalformedRequest):
            parse_request_header(memoryview(head)[:end])
    assert len(head) == parse_request_header(memoryview(head)).body


@pytest.mark.parametrize(
    "head",
    [
        pytest.param(plain_header(4, 0, b"x"), id="a key that died with ZooKeeper"),
        pytest.param(plain_header(-1, 0, b"x"), id="negative key"),
        pytest.param(plain_header(METADATA, 1, b"\xff\xfe"), id="client id is no UTF-8"),
        pytest.param(plain_header(METADATA, 9, b"x") + b"\xff\xff\xff\xff\x0f", id="more tags than there may be"),
        pytest.param(plain_header(METADATA, 9, b"x") + b"\x01\x00\x09", id="tag beyond the bytes left"),
        pytest.param(plain_header(METADATA, 9, b"x") + b"\x02\x03\x00\x03\x00", id="one tag twice"),
    ],
)
def test_wrong_headers_are_malformed(head: bytes) -> None:
    """Is each way of being wrong refused as such?"""
    with pytest.raises(MalformedRequest):
        parse_request_header(memoryview(head))


def test_one_client_id_is_one_object() -> None:
    """Do a connection's requests share the text of their client id?"""
    first, second = (parse_request_header(memoryview(plain_header(0, 8, b"same"))) for _ in range(2))

    assert first.client_id is second.client_id


@pytest.mark.parametrize(
    ("api_key", "version", "expected"),
    [
        (METADATA, 8, struct.pack(">i", 77)),
        (METADATA, 9, struct.pack(">ib", 77, 0)),
        (API_VERSIONS, 4, struct.pack(">i", 77)),
        (SASL_HANDSHAKE, 1, struct.pack(">i", 77)),
    ],
)
def test_a_response_header_is_written_and_read(api_key: int, version: int, expected: bytes) -> None:
    """Is the header flexible when the version is, except for ApiVersions (KIP-511)?"""
    assert expected == response_header(api_key, version, 77)
    assert (77, len(expected)) == parse_response_header(api_key, version, expected + b"body")


@pytest.mark.parametrize("data", [b"", b"\0\0\0", b"\0\0\0\x01", b"\0\0\0\x01\x01\x00\x09"])
def test_a_wrong_response_header_is_malformed(data: bytes) -> None:
    """Does our client notice a header that is none?"""
    with pytest.raises(MalformedRequest):
        parse_response_header(METADATA, 9, data)
