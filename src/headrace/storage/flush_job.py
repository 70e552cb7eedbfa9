"""Everything of one log that is written but not yet known to be on the disk, flushed in a thread."""

from collections.abc import Callable

from headrace.model.errors import StorageFault
from headrace.storage.epoch_checkpoint import write_epochs
from headrace.storage.files import Files
from headrace.storage.meta_properties import sync_topic_id
from headrace.storage.segment import Segment


class FlushJob:
    """A flush up to one offset: `run` it in a thread, then hand it to `Log.flushed` on the loop."""

    __slots__ = (
        "_break",
        "_files",
        "_path",
        "active",
        "active_bytes",
        "end_offset",
        "epochs",
        "epochs_mark",
        "generation",
        "names",
        "rolled",
        "with_parent",
    )

    def __init__(
        self,
        files: Files,
        path: str,
        break_log: Callable[[str], StorageFault],
        *,
        rolled: list[Segment],
        active: Segment,
        end_offset: int,
        epochs: list[tuple[int, int]] | None,
        epochs_mark: tuple[int, int],
        names: int,
        with_parent: bool,
        generation: int,
    ) -> None:
        self._files = files
        self._path = path
        self._break = break_log
        self.rolled = rolled
        self.active = active
        self.active_bytes = active.size
        self.end_offset = end_offset
        self.epochs = epochs
        """Leader epochs to write down, or None if the file has them."""
        self.epochs_mark = epochs_mark
        self.names = names
        """The count of name changes in the directory that this flush makes durable; 0 if there are none."""
        self.with_parent = with_parent
        """Whether the directory's own name may not be on the disk yet."""
        self.generation = generation

    def run(self) -> None:
        """Flush, oldest first, so that what is durable is always a prefix; StorageFault breaks the log for good.

        After a failed flush the kernel may have dropped the pages and called them clean: trying again proves nothing.
        """
        try:
            for segment in self.rolled:
                segment.flush(with_indexes=True)
            self.active.flush(with_indexes=False)
            if self.with_parent:
                # Before the epochs: where those are, the directory is taken to be able to say whose it is.
                sync_topic_id(self._files, self._path)
            if self.epochs is not None:
                write_epochs(self._files, self._path, self.epochs)
            elif self.names:
                self._files.fsync_dir(self._path)
            if self.with_parent:
                self._files.fsync_dir(self._path.rpartition("/")[0])
        except OSError as problem:
            raise self._break(f"{self._path}: flush failed: {problem}") from problem
        try:
            self.active.write_pending_entries()
        except OSError:
            # The file is only a copy of what memory knows and the log can tell; rolling writes it or says why not.
            return
