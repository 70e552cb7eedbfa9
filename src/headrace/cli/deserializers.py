"""Kafka's deserializers by their Java class names: what the console consumers print for bytes of that type."""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING

from headrace.cli.tool import UsageError
from headrace.model.errors import HeadraceError

if TYPE_CHECKING:
    from collections.abc import Callable

    Read = Callable[[bytes], bytes]

_PRINTABLE = range(0x20, 0x7F)
_SCIENTIFIC_FROM, _SCIENTIFIC_BELOW = 1e7, 1e-3


class NotDeserialized(HeadraceError):
    """Bytes that are not of the type they are to be read as."""


def deserializer(class_name: str | None) -> Read:
    """What prints bytes of that type; without a name, the bytes as they are."""
    if not class_name:
        return _same
    read = DESERIALIZERS.get(class_name.rsplit(".", 1)[-1])
    if read is None:
        raise UsageError(f"There is no deserializer {class_name} here; known are: {', '.join(DESERIALIZERS)}")
    return read


def _same(data: bytes) -> bytes:
    return data


def _fixed(form: str, what: str, show: Callable[[float], str] = str) -> Read:
    layout = struct.Struct(form)

    def read(data: bytes) -> bytes:
        if len(data) != layout.size:
            raise NotDeserialized(f"Size of data received by {what} is not {layout.size}")
        return show(layout.unpack(data)[0]).encode()

    return read


def _java_number(single: bool) -> Callable[[float], str]:
    """A floating point number as Java prints it."""

    def show(number: float) -> str:
        if math.isnan(number):
            return "NaN"
        if math.isinf(number):
            return "Infinity" if number > 0 else "-Infinity"
        text = _shortest(number) if single else repr(number)
        if number and not _SCIENTIFIC_BELOW <= abs(number) < _SCIENTIFIC_FROM:
            return _scientific(text)
        return _positional(text)

    return show


def _shortest(number: float) -> str:
    """The fewest digits that read back as the same number of 32 bits."""
    texts = (f"{number:.{digits}g}" for digits in range(1, 18))
    return next(text for text in texts if _as_single(float(text)) == number)


def _as_single(number: float) -> float:
    """The nearest number of 32 bits."""
    try:
        return float(struct.unpack(">f", struct.pack(">f", number))[0])
    except OverflowError:
        return math.copysign(math.inf, number)


def _digits(text: str) -> tuple[str, str, int]:
    """A number's sign, its digits, and the power of ten of the first one."""
    mantissa, _, exponent = text.lower().partition("e")
    sign = "-" if mantissa.startswith("-") else ""
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    digits = (whole + fraction).lstrip("0")
    leading = len(whole + fraction) - len(digits)
    return sign, digits.rstrip("0") or "0", len(whole) - 1 - leading + int(exponent or 0)


def _scientific(text: str) -> str:
    sign, digits, power = _digits(text)
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{power}"


def _positional(text: str) -> str:
    sign, digits, power = _digits(text)
    if digits == "0":
        return f"{sign}0.0"
    if power < 0:
        return f"{sign}0.{'0' * (-power - 1)}{digits}"
    return f"{sign}{digits[: power + 1].ljust(power + 1, '0')}.{digits[power + 1 :] or '0'}"


def _boolean(data: bytes) -> bytes:
    if len(data) != 1 or data[0] > 1:
        raise NotDeserialized("Unexpected data received by BooleanDeserializer")
    return b"true" if data[0] else b"false"


def _uuid(data: bytes) -> bytes:
    return data.decode(errors="replace").encode()


def _bytes(data: bytes) -> bytes:
    """Kafka's Bytes.toString: printable ASCII as it is, the rest in hex."""
    return "".join(
        chr(byte) if byte in _PRINTABLE and byte != ord("\\") else f"\\x{byte:02X}" for byte in data
    ).encode()


DESERIALIZERS: dict[str, Read] = {
    "StringDeserializer": lambda data: data.decode(errors="replace").encode(),
    "ByteArrayDeserializer": _same,
    "BytesDeserializer": _bytes,
    "ByteBufferDeserializer": _same,
    "ShortDeserializer": _fixed(">h", "ShortDeserializer"),
    "IntegerDeserializer": _fixed(">i", "IntegerDeserializer"),
    "LongDeserializer": _fixed(">q", "LongDeserializer"),
    "FloatDeserializer": _fixed(">f", "Deserializer", _java_number(single=True)),
    "DoubleDeserializer": _fixed(">d", "Deserializer", _java_number(single=False)),
    "BooleanDeserializer": _boolean,
    "UUIDDeserializer": _uuid,
    "VoidDeserializer": lambda _: b"null",
}
"""Those of Kafka's clients. ByteArray and ByteBuffer print the bytes, where Java would print an object's address."""
