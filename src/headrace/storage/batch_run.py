"""Batches that follow each other, as a leader sends them: how far they are sound."""

from headrace.model.errors import ErrorCode, KafkaError
from headrace.records.batch import BatchHeader, CorruptBatch, check_batch, split_batches


class BatchRun:
    """The sound batches at the start of a buffer, and what is wrong with the one behind them."""

    __slots__ = ("fault", "headers", "views")

    def __init__(self, batches: memoryview) -> None:
        self.headers: list[BatchHeader] = []
        self.views: list[memoryview] = []
        self.fault: KafkaError | None = None
        try:
            self._take(batches)
        except CorruptBatch as fault:
            self.fault = KafkaError(ErrorCode.CORRUPT_MESSAGE, str(fault))
        except KafkaError as fault:
            self.fault = fault

    def _take(self, batches: memoryview) -> None:
        end_offset = -1
        for position, header in split_batches(batches):
            view = batches[position : position + header.size]
            check_batch(view)
            if header.base_offset < end_offset:
                raise out_of_order(header, end_offset)
            self.headers.append(header)
            self.views.append(view)
            end_offset = header.last_offset + 1


def out_of_order(header: BatchHeader, end_offset: int) -> KafkaError:
    """A batch begins before the place it should have."""
    return KafkaError(
        ErrorCode.OFFSET_OUT_OF_RANGE, f"a batch at {header.base_offset} cannot follow the log end offset {end_offset}"
    )
