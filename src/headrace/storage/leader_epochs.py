"""Which leader epoch wrote from which offset on (KIP-101): what followers and consumers find a divergence with.

Rebuilt from batch headers where the log is recovered, so its file must be durable only as far as the log is flushed.
"""

from bisect import bisect_left, bisect_right

UNDEFINED = (-1, -1)


class LeaderEpochs:
    """Epochs and start offsets, both rising."""

    __slots__ = ("_epochs", "_starts", "_version", "latest")

    def __init__(self, entries: list[tuple[int, int]]) -> None:
        self._epochs = [epoch for epoch, _ in entries]
        self._starts = [start for _, start in entries]
        self.latest = self._epochs[-1] if entries else -1
        self._version = 0

    def entries(self) -> list[tuple[int, int]]:
        """All epochs with their start offsets."""
        return list(zip(self._epochs, self._starts, strict=True))

    def mark(self, end_offset: int) -> tuple[int, int]:
        """Changes whenever the epochs that begin below `end_offset` do; its second number is how many those are."""
        return self._version, bisect_left(self._starts, end_offset)

    def assign(self, epoch: int, start_offset: int) -> None:
        """Let an epoch begin; entries that it contradicts go, as do epochs that wrote nothing."""
        if epoch < 0 or start_offset < 0:
            return
        epochs, starts = self._epochs, self._starts
        if epochs and epochs[-1] == epoch and starts[-1] <= start_offset:
            return
        while epochs and (epochs[-1] >= epoch or starts[-1] >= start_offset):
            epochs.pop()
            starts.pop()
        epochs.append(epoch)
        starts.append(start_offset)
        self._changed()

    def end_offset(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """The greatest epoch not above the asked one, and where it ends; (-1, -1) if that cannot be told."""
        epochs = self._epochs
        if not epochs or epoch < 0 or epoch > epochs[-1]:
            return UNDEFINED
        if epoch == epochs[-1]:
            return epoch, log_end_offset
        above = bisect_right(epochs, epoch)
        # Older than all we know: its data is gone, and what we have begins with the next epoch.
        return (epochs[above - 1] if above else epoch), self._starts[above]

    def epoch_at(self, offset: int) -> int:
        """The epoch that wrote an offset, -1 if unknown."""
        slot = bisect_right(self._starts, offset)
        return self._epochs[slot - 1] if slot else -1

    def truncate_from_end(self, end_offset: int) -> None:
        """Forget epochs that begin at `end_offset` or later."""
        changed = False
        while self._starts and self._starts[-1] >= end_offset:
            self._epochs.pop()
            self._starts.pop()
            changed = True
        if changed:
            self._changed()

    def truncate_from_start(self, start_offset: int) -> None:
        """Let the epoch that wrote `start_offset` begin there, and forget the ones before."""
        below = bisect_right(self._starts, start_offset)
        if below == 0 or (below == 1 and self._starts[0] == start_offset):
            return
        del self._epochs[: below - 1]
        del self._starts[: below - 1]
        self._starts[0] = start_offset
        self._changed()

    def clear(self) -> None:
        """Forget everything."""
        self._epochs.clear()
        self._starts.clear()
        self._changed()

    def _changed(self) -> None:
        self.latest = self._epochs[-1] if self._epochs else -1
        self._version += 1
