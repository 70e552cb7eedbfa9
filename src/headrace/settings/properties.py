r"""Java's .properties files, read and written as `java.util.Properties` does.

Natural lines are joined into logical ones where a line ends in an odd number of backslashes; a logical line is
a key, one separator (`=`, `:` or white space) and a value; `\t \n \r \f \uXXXX` are escapes and any other
escaped character stands for itself. One deliberate difference: a file that is valid UTF-8 is read as such, and
only otherwise as Latin-1.
"""

from collections.abc import Iterator, Mapping
from os import PathLike

from headrace.settings.fault import ConfigFault

_WHITE = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPED = {character: f"\\{letter}" for letter, character in _ESCAPES.items()}


def load_properties(path: str | PathLike[str]) -> dict[str, str]:
    """The settings in the file at `path`; ConfigFault if it cannot be read."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - pathlib doubles the import time of the tools
            raw = file.read()
    except OSError as error:
        raise ConfigFault(
            f"Cannot read {path}: {error.strerror or error}", "Give the path of a properties file that exists."
        ) from error
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        text = raw.decode("latin-1")
    try:
        return parse_properties(text)
    except ConfigFault as fault:
        raise ConfigFault(f"Cannot read {path}: {fault.problem}", fault.remedy) from None


def parse_properties(text: str) -> dict[str, str]:
    """The settings written in `text`; of a key written twice the last one counts."""
    return dict(_split(line) for line in _logical_lines(text))


def write_properties(path: str | PathLike[str], properties: Mapping[str, str], *, comment: str = "") -> None:
    """Write `properties` to `path`, in the order given, under an optional comment."""
    lines = [f"# {line}" for line in comment.splitlines()]
    lines += [f"{_escape(key, in_key=True)}={_escape(value)}" for key, value in properties.items()]
    with open(path, "w", encoding="ascii", newline="\n") as file:  # noqa: PTH123
        file.writelines(f"{line}\n" for line in lines)


def _logical_lines(text: str) -> Iterator[str]:
    pending, continued = "", False
    for natural in text.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n").split("\n"):
        line = natural.lstrip(_WHITE)
        # As in Java, a line that has joined nothing but backslashes so far may still turn out to be a comment.
        if not pending and (not line or line[0] in "#!"):
            continued = False
            continue
        pending += line
        continued = (len(line) - len(line.rstrip("\\"))) % 2 == 1
        if continued:
            pending = pending[:-1]
        else:
            yield pending
            pending = ""
    if continued:
        yield pending


def _split(line: str) -> tuple[str, str]:
    end = 0
    while end < len(line) and line[end] not in f"=:{_WHITE}":
        end += 2 if line[end] == "\\" else 1
    value = line[end:].lstrip(_WHITE)
    if value and value[0] in "=:":
        value = value[1:].lstrip(_WHITE)
    return _unescape(line[:end]), _unescape(value)


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    out: list[str] = []
    position = 0
    while position < len(text):
        character = text[position]
        position += 1
        if character != "\\" or position == len(text):
            # Java drops a backslash that nothing follows.
            out.append(character if character != "\\" else "")
            continue
        letter = text[position]
        position += 1
        if letter == "u":
            out.append(_read_unicode(text[position : position + 4]))
            position += 4
        else:
            out.append(_ESCAPES.get(letter, letter))
    # Java's characters are UTF-16 units: two escapes in a row may be one character.
    return "".join(out).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _read_unicode(digits: str) -> str:
    if len(digits) != 4 or not set(digits) <= set("0123456789abcdefABCDEF"):
        raise ConfigFault(f"malformed escape \\u{digits}", "Write four hexadecimal digits after \\u, or double it.")
    return chr(int(digits, 16))


def _escape(text: str, *, in_key: bool = False) -> str:
    out: list[str] = []
    for index, character in enumerate(text):
        if character in _ESCAPED:
            out.append(_ESCAPED[character])
        elif character in "=:#!\\" or (character == " " and (in_key or index == 0)):
            out.append(f"\\{character}")
        elif " " <= character <= "~":
            out.append(character)
        else:
            units = character.encode("utf-16-be", "surrogatepass")
            out += [f"\\u{units[i]:02X}{units[i + 1]:02X}" for i in range(0, len(units), 2)]
    return "".join(out)
