"""The `leader-epoch-checkpoint` file of a partition: "epoch start-offset" lines."""

from itertools import pairwise

from headrace.storage.checkpoint_file import decode_entries, encode_entries, parse_number, replace_file
from headrace.storage.files import Files

FILE_NAME = "leader-epoch-checkpoint"


def read_epochs(files: Files, directory: str) -> list[tuple[int, int]] | None:
    """Epochs and their start offsets, empty if there is no file, None if it cannot be right."""
    try:
        data = files.read(f"{directory}/{FILE_NAME}")
    except FileNotFoundError:
        return []
    entries = decode_entries(data)
    if entries is None:
        return None
    try:
        epochs = [(parse_number(epoch, bits=32), parse_number(start)) for epoch, start in entries]
    except ValueError:
        return None
    rising = all(a[0] < b[0] and a[1] <= b[1] for a, b in pairwise(epochs))
    return epochs if rising else None


def write_epochs(files: Files, directory: str, epochs: list[tuple[int, int]], *, sync: bool = True) -> None:
    """Replace the file."""
    lines = [f"{epoch} {start}" for epoch, start in epochs]
    replace_file(files, f"{directory}/{FILE_NAME}", encode_entries(lines), sync=sync)
