"""Small text files that say where things stand: a version line, a count line, then one entry a line (Kafka's form).

Each is replaced whole: written beside, flushed, renamed over, and the directory flushed, so that a crash leaves the old
one or the new one.
"""

from headrace.storage.file_names import TEMPORARY
from headrace.storage.files import Files, write_all

VERSION = 0


def replace_file(files: Files, path: str, data: bytes, *, sync: bool = True) -> None:
    """Put `data` in the place of the file at `path` in one step; durable on return, unless `sync` is off."""
    temporary = path + TEMPORARY
    try:
        file = files.open(temporary, create=True)
        write_all(file, data, 0)
        if sync:
            file.fdatasync()
        files.rename(temporary, path)
    except OSError:
        # On a full disk the half of a file is in the way of everything else.
        files.unlink(temporary)
        raise
    if sync:
        files.fsync_dir(path.rpartition("/")[0])


def encode_entries(lines: list[str]) -> bytes:
    """The file's bytes for entries already turned to text."""
    return "\n".join((str(VERSION), str(len(lines)), *lines, "")).encode()


def decode_entries(data: bytes) -> list[list[str]] | None:
    """The entries' words, or None if the bytes are no such file."""
    try:
        version, count, *lines = data.decode().splitlines()
        if int(version) != VERSION or int(count) != len(lines):
            return None
    except ValueError:
        return None
    return [line.split() for line in lines]


def parse_number(text: str, *, bits: int = 64) -> int:
    """A non-negative decimal number of at most so many bits; ValueError otherwise."""
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= 20 else -1
    if not 0 <= number < 2 ** (bits - 1):
        raise ValueError(f"'{text[:40]}' is not a number from 0 to 2**{bits - 1}")
    return number
