"""One knob: its name, type, default, bounds and sentence, and how its text becomes a value and back.

Text is read as Kafka reads it (ConfigDef), so that a file that starts Kafka starts Headrace and a refusal
says the same thing. A named tuple and not a dataclass, because four hundred are made at every start.
"""

from enum import IntEnum
from typing import Final, Literal, NamedTuple

from headrace.settings.fault import ConfigFault

Value = bool | int | float | str | tuple[str, ...] | None
"""What a setting's text becomes; None where nothing is set and there is no default."""

Scope = Literal["broker", "topic", "group", "gateway"]
Importance = Literal["high", "medium", "low"]
Mode = Literal["read-only", "per-broker", "cluster-wide"]
"""Whether a broker setting can change while the node runs, and if so, for one broker only or for all."""


class Kind(IntEnum):
    """A setting's type, by the number DescribeConfigs gives it."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class Fallback(NamedTuple):
    """A broker setting that gives another one its default, and the factor between their units."""

    name: str
    factor: int = 1


class Setting(NamedTuple):
    """One row of the table."""

    name: str
    scope: Scope
    kind: Kind
    default: Value
    doc: str
    importance: Importance = "medium"
    mode: Mode = "read-only"
    low: float | None = None
    high: float | None = None
    also: int | None = None
    """One number that is allowed beside the bounds, such as -1 for "the codec's own level"."""
    choices: tuple[str, ...] = ()
    any_case: bool = False
    """Whether the choices may be written in any case."""
    required: bool = False
    nonempty: bool = False
    hidden: bool = False
    """Whether DescribeConfigs leaves it out while nobody has set it."""
    served: bool = False
    """Whether Headrace acts on it now."""
    synonyms: tuple[Fallback, ...] = ()
    """Where the default comes from, first choice first."""

    @property
    def sensitive(self) -> bool:
        """Whether the value is a secret that is never shown."""
        return self.kind is Kind.PASSWORD

    def parse(self, text: str) -> Value:
        """The value `text` stands for; ConfigFault in Kafka's words if it stands for none."""
        try:
            value = _read(self.kind, text.strip())
            self._check(value)
        except ValueError as error:
            shown = "[hidden]" if self.sensitive else text
            raise ConfigFault(
                f"Invalid value {shown} for configuration {self.name}: {error}", f"Give it {self.expectation}."
            ) from None
        return value

    def format(self, value: Value) -> str | None:
        """The text of `value`, as Kafka prints it; None if there is no value or it is secret."""
        if value is None or self.sensitive:
            return None
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, float):
            return format_double(value)
        return ",".join(value) if isinstance(value, tuple) else str(value)

    @property
    def expectation(self) -> str:
        """What the setting wants, in words that fit after "give it"."""
        words = _EXPECTED[self.kind]
        if self.choices:
            one_of = "any of" if self.kind is Kind.LIST else "one of"
            return f"{one_of} {', '.join(self.choices)}"
        if self.low is not None:
            words += f" from {format_bound(self.low)}"
        if self.high is not None:
            words += f" up to {format_bound(self.high)}"
        elif self.low is not None:
            words += " up"
        return words if self.also is None else f"{words}, or {self.also}"

    def _check(self, value: Value) -> None:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            self._check_number(value)
        elif isinstance(value, (str, tuple)):
            if self.nonempty and not value:
                raise ValueError("Value must not be empty")
            for word in value if isinstance(value, tuple) else (value,):
                self._check_word(word)

    def _check_number(self, value: float) -> None:
        too_low = self.low is not None and value < self.low
        too_high = self.high is not None and value > self.high
        if value == self.also or not (too_low or too_high):
            return
        low, high = format_bound(self.low), format_bound(self.high)
        if self.also is not None:
            raise ValueError(f"Value must be between {low} and {high} or equal to {self.also}")
        raise ValueError(f"Value must be at least {low}" if too_low else f"Value must be no more than {high}")

    def _check_word(self, word: str) -> None:
        if self.kind is Kind.LIST and not word:
            raise ValueError("Values of a list must not be empty")
        choices = tuple(choice.lower() for choice in self.choices) if self.any_case else self.choices
        if choices and (word.lower() if self.any_case else word) not in choices:
            raise ValueError(f"String must be one of: {', '.join(self.choices)}")


_BITS: Final = {Kind.SHORT: 16, Kind.INT: 32, Kind.LONG: 64}
_NUMBER_LENGTH_MAX: Final = 400
"""Longer than any double written out; reading a number of a million digits would take the loop hostage."""
_EXPECTED: Final = {
    Kind.BOOLEAN: "true or false",
    Kind.STRING: "a text",
    Kind.INT: "a whole number",
    Kind.SHORT: "a whole number",
    Kind.LONG: "a whole number",
    Kind.DOUBLE: "a number",
    Kind.LIST: "a list separated by commas",
    Kind.CLASS: "a class name",
    Kind.PASSWORD: "a text",
}


def _read(kind: Kind, text: str) -> Value:
    """The value of `text` by type alone; ValueError with Kafka's reason."""
    if kind is Kind.BOOLEAN:
        if text.lower() not in {"true", "false"}:
            raise ValueError("Expected value to be either true or false")
        return text.lower() == "true"
    if kind is Kind.LIST:
        # Kafka drops what is said twice rather than refusing it.
        return tuple(dict.fromkeys(word.strip() for word in text.split(","))) if text else ()
    if kind is Kind.DOUBLE:
        return _read_double(text)
    if kind in _BITS:
        limit = 1 << (_BITS[kind] - 1)
        if not _is_integer(text) or not -limit <= int(text) < limit:
            raise ValueError(f"Not a number of type {kind.name}")
        return int(text)
    return text


def _is_integer(text: str) -> bool:
    # Stricter than int(), which also takes underscores and the digits of every script.
    digits = text[1:] if text.startswith(("+", "-")) else text
    return digits.isascii() and digits.isdecimal() and len(digits) <= _NUMBER_LENGTH_MAX


def _read_double(text: str) -> float:
    plain = text.rstrip("dDfF") if len(text) <= _NUMBER_LENGTH_MAX else ""
    # Stricter than float(), which also takes underscores and words such as "nan".
    if not set(plain) <= set("0123456789+-.eE"):
        raise ValueError("Not a number of type DOUBLE")
    try:
        return float(plain)
    except ValueError:
        raise ValueError("Not a number of type DOUBLE") from None


def format_bound(bound: float | None) -> str:
    """A bound without the decimals it does not have; nothing for an open end."""
    if bound is None:
        return ""
    return str(int(bound)) if bound == int(bound) else str(bound)


def format_double(value: float) -> str:
    """A double as Java prints it: 0.5, 5.0E7, 1.0E-4."""
    text = repr(value)
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return text
    sign = "-" if value < 0 else ""
    mantissa, _, shift = text.lstrip("-").partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    leading_zeros = len(whole + fraction) - len(digits)
    exponent = len(whole) - 1 - leading_zeros + int(shift or 0)
    digits = digits.rstrip("0")
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"
