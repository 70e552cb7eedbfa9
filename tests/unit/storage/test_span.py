"""A span is the same bytes however it is looked at."""

import pytest

from headrace.model.errors import StorageFault
from headrace.records.batch import split_batches
from unit.storage.samples import append, open_log


def test_view_and_load_agree(disk):
    """Are the bytes in place and the bytes read the same whole batches, starting with the one that was asked for?"""
    log = open_log(disk.files, f"{disk.root}/t-0")
    for number in range(5):
        append(log, number, number)

    span = log.read(3, max_bytes=10_000, limit_offset=log.log_end_offset)

    assert bytes(span.view()) == span.load()
    assert [2, 4, 6, 8] == [header.base_offset for _, header in split_batches(span.view())]
    assert (span.base_offset, span.end_offset, len(span.view())) == (2, 10, span.size)
    assert span.resident()


def test_an_empty_span_touches_no_disk(memory):
    """Is the span at the end of the log empty, without a look at the file?"""
    log = open_log(memory, "/data/t-0")
    append(log)

    span = log.read(1, max_bytes=10_000, limit_offset=1)

    assert (span.size, bytes(span.view()), span.load(), span.resident()) == (0, b"", b"", True)


def test_a_bad_disk_is_a_storage_fault(memory):
    """Does a read error reach the reader as a named fault?"""
    log = open_log(memory, "/data/t-0")
    append(log)
    span = log.read(0, max_bytes=10_000, limit_offset=1)
    memory.fail_next("read")

    with pytest.raises(StorageFault):
        span.load()
