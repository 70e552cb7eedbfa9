"""Taking data away in two steps: a rename that hides it at once, and the removal later, off the loop."""

from headrace.model.errors import StorageFault
from headrace.storage.directory_names import NAME_BYTES_MAX, log_name, unique_mark
from headrace.storage.file_names import DELETED
from headrace.storage.files import Files
from headrace.storage.segment import Segment

DELETE_DIRECTORY = "-delete"
STRAY_DIRECTORY = "-stray"
"""What no topic claims is kept under this ending, as Kafka does: the mistake may be the metadata's."""


class DeletedSegment:
    """A segment that is no longer the log's, its files still there under `.deleted` names."""

    __slots__ = ("_segment", "base_offset", "end_offset", "size")

    def __init__(self, segment: Segment) -> None:
        self._segment = segment
        self.base_offset = segment.base_offset
        self.end_offset = segment.end_offset
        self.size = segment.size

    def remove(self) -> None:
        """Unlink the files; blocking. Readers that still have them open or mapped keep what they have."""
        try:
            self._segment.remove()
        except OSError as problem:
            raise StorageFault(f"{self._segment.path()}: {problem}") from problem


class DeletedLog:
    """A partition directory on its way out."""

    __slots__ = ("_files", "path")

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self.path = path

    def remove(self) -> None:
        """Remove the directory and what is in it; blocking."""
        try:
            for name in self._files.listdir(self.path):
                self._files.unlink(f"{self.path}/{name}")
            self._files.rmdir(self.path)
        except FileNotFoundError:
            return
        except OSError as problem:
            raise StorageFault(f"{self.path}: {problem}") from problem


def mark(segment: Segment) -> DeletedSegment:
    """Hide a segment."""
    segment.rename(DELETED)
    return DeletedSegment(segment)


def mark_directory(files: Files, path: str, ending: str = DELETE_DIRECTORY) -> str:
    """Hide a partition directory, and answer its new path; durable on return, or the topic might come back."""
    parent, _, name = path.rpartition("/")
    topic, _, partition = log_name(name).rpartition("-")
    attempt = 0
    while True:
        tail = f"-{partition}.{unique_mark(path, attempt)}{ending}"
        target = f"{parent}/{topic[: NAME_BYTES_MAX - len(tail)]}{tail}"
        if files.stat(target) is None:
            break
        attempt += 1
    files.rename(path, target)
    files.fsync_dir(parent)
    return target
