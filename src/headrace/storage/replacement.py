"""Putting cleaned segments in the place of old ones so that a crash at any step leaves the one or the other.

1  the new files are complete, flushed, and called .cleaned       a crash: they are thrown away
2  renamed to .swap, the last first, names flushed                a crash: one is .cleaned still, all are thrown away
3  readers see the new segments; old files renamed to .deleted    a crash: recovery finishes the swap
4  .swap renamed to its final name, names flushed                 a crash: recovery finishes the swap
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headrace.storage import deletion
from headrace.storage.deletion import DeletedSegment
from headrace.storage.file_names import CLEANED, LOG, SWAP, FileName, file_name, parse_file_name
from headrace.storage.files import Files
from headrace.storage.segment import Segment

if TYPE_CHECKING:
    from headrace.storage.log import Log


def replace(log: "Log", new: Sequence[Segment], old: Sequence[Segment]) -> list[DeletedSegment]:
    """Replace segments of a log; answers the old ones, to be removed later, none if retention took one first."""
    new = sorted(new, key=lambda segment: segment.base_offset)
    for segment in reversed(new):
        assert segment.suffix == CLEANED
        # Held open, so that a reader never looks for a file while it is being renamed.
        assert segment.file is not None
        segment.rename(SWAP)
    log.files.fsync_dir(log.path)
    if not log.swap_in(new, old):
        for segment in new:
            segment.remove()
        log.files.fsync_dir(log.path)
        return []
    deleted = [deletion.mark(segment) for segment in old]
    # The old names must be gone for good before a new segment takes its final one, or a power cut could show both.
    log.files.fsync_dir(log.path)
    for segment in new:
        log.rename_segment(segment, "")
    log.files.fsync_dir(log.path)
    return deleted


def finish(files: Files, directory: str, names: Sequence[str]) -> bool:
    """Complete or undo what an unclean stop interrupted in a log's directory; True if any name changed."""
    parsed = [(name, part) for name in names if (part := parse_file_name(name)) is not None and part.suffix]
    if not parsed:
        return False
    cleaned = [part.base_offset for _, part in parsed if part.suffix == CLEANED]
    swaps = [(name, part) for name, part in parsed if part.suffix == SWAP]
    if cleaned:
        # Renaming went from the last segment to the first, so a .cleaned one means it did not get through.
        swaps = [(name, part) for name, part in swaps if part.base_offset < min(cleaned)]
    kept = {name for name, _ in swaps}
    for name, _ in parsed:
        if name not in kept:
            files.unlink(f"{directory}/{name}")
    if swaps:
        _finish_swap(files, directory, names, [part for _, part in swaps])
    files.fsync_dir(directory)
    return True


def _finish_swap(files: Files, directory: str, names: Sequence[str], swaps: Sequence[FileName]) -> None:
    """Remove the old segments that complete .swap ones stand for, then give those their names."""
    ranges = [_range(files, directory, part.base_offset) for part in swaps if part.kind == LOG]
    if ranges:
        first, end = min(start for start, _ in ranges), max(stop for _, stop in ranges)
        for name in names:
            part = parse_file_name(name)
            if part is not None and not part.suffix and part.kind != ".snapshot" and first <= part.base_offset < end:
                files.unlink(f"{directory}/{name}")
        files.fsync_dir(directory)
    for part in sorted(swaps):
        source = f"{directory}/{file_name(part.base_offset, part.kind, SWAP)}"
        files.rename(source, f"{directory}/{file_name(part.base_offset, part.kind)}")


def _range(files: Files, directory: str, base_offset: int) -> tuple[int, int]:
    """The offsets a .swap segment covers: from its base to behind its last batch."""
    stat = files.stat(f"{directory}/{file_name(base_offset, LOG, SWAP)}")
    segment = Segment(files, directory, base_offset, size=stat.size if stat else 0, suffix=SWAP)
    end = base_offset + 1
    for _, _, last_offset, _ in segment.outlines():
        end = last_offset + 1
    return base_offset, end
