"""Batches as a leader sends them: how far they are taken."""

from headrace.model.errors import ErrorCode
from headrace.records.build import NewRecord, build_batch
from headrace.storage.batch_run import BatchRun


def batch_of(count, base_offset):
    """A batch as a leader numbered it."""
    return bytes(build_batch([NewRecord(timestamp=1, value=b"v") for _ in range(count)], base_offset=base_offset))


def taken(*batches):
    """Where the batches begin that were taken of these, and why no more were."""
    run = BatchRun(memoryview(b"".join(batches)))
    assert [header.size for header in run.headers] == [len(view) for view in run.views]
    return [header.base_offset for header in run.headers], run.fault and run.fault.code


def test_sound_batches():
    """Are all taken that are whole, gaps between them too, and is a beginning at the end left out?"""
    first, second = batch_of(3, 5), batch_of(2, 10)

    assert ([5, 10], None) == taken(first, second)
    assert ([5], None) == taken(first, second[:-1])
    assert ([], None) == taken()


def test_harmed_batch():
    """Is nothing taken from a batch on whose bytes, or whose length, are not those it was sent with?"""
    first, second, third = batch_of(3, 5), batch_of(2, 8), batch_of(1, 10)

    assert ([5], ErrorCode.CORRUPT_MESSAGE) == taken(first, second[:-1] + b"\xff", third)
    assert ([5], ErrorCode.CORRUPT_MESSAGE) == taken(first, second[:8] + bytes(4) + second[12:], third)


def test_batch_that_goes_back():
    """Is nothing taken from a batch on that begins before the one before it ends?"""
    assert ([5], ErrorCode.OFFSET_OUT_OF_RANGE) == taken(batch_of(3, 5), batch_of(3, 7), batch_of(3, 10))
