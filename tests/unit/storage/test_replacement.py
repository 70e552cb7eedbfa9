"""Is a replacement of segments seen whole or not at all, whenever the machine stops?"""

from random import Random

import pytest

from headrace.records.batch import patch_offsets
from headrace.storage.memory_files import MemoryFiles
from headrace.storage.segment import Segment
from unit.storage.samples import CONFIG, append, batch, fill, flush, open_log, read_all


class Stop(BaseException):
    """The machine stops here."""


def cleaned(log, old, keep):
    """A segment with only some of the offsets of the old ones, ready to take their place."""
    new = Segment.create(log.files, log.path, old[0].base_offset, now_ms=0, suffix=".cleaned")
    new.configure(CONFIG)
    for offset in range(old[0].base_offset, old[-1].end_offset):
        if keep(offset) or offset == old[-1].end_offset - 1:
            made = batch(1000 + offset)
            patch_offsets(made, 0, base_offset=offset, leader_epoch=0)
            new.append(made, offset, 1000 + offset)
    new.seal()
    new.flush(with_indexes=True)
    return new


def prepared(files, path):
    """A flushed log of several segments, and two pairs of them with their replacements."""
    log = open_log(files, path)
    fill(log, 50)
    flush(log)
    old = log.segments()[:4]
    new = [cleaned(log, old[:2], lambda o: o % 3 == 0), cleaned(log, old[2:], lambda o: o % 5 == 0)]
    return log, new, old


def outcomes(files, path):
    """The offsets before and after the replacement."""
    log, new, old = prepared(files, path)
    before = read_all(log)
    log.replace_segments(new, old)
    return before, read_all(log)


def test_readers_see_the_new_segments(disk):
    """Does the log read without gaps in the new segments, and again after a restart?"""
    log, new, old = prepared(disk.files, f"{disk.root}/t-0")
    span = log.read(1, max_bytes=200, limit_offset=50)
    deleted = log.replace_segments(new, old)
    end = old[-1].end_offset
    first = old[1].end_offset
    expected = [o for o in range(first) if o % 3 == 0 or o == first - 1]
    expected += [o for o in range(first, end) if o % 5 == 0 or o == end - 1]
    expected += list(range(end, 50))

    assert read_all(log) == expected
    assert log.read(1, max_bytes=200, limit_offset=50).base_offset == 3
    assert log.offset_for_timestamp(1001) == (1003, 3, 0)
    assert len(span.load()) == span.size
    assert [d.base_offset for d in deleted] == [s.base_offset for s in old]

    for gone in deleted:
        gone.remove()
    append(log, 1)
    log.close(0)

    assert read_all(open_log(disk.files, f"{disk.root}/t-0", clean=True)) == [*expected, 50]
    assert read_all(open_log(disk.files, f"{disk.root}/t-0")) == [*expected, 50]


def test_retention_was_first(disk):
    """If an old segment went meanwhile, does the replacement come to nothing?"""
    log, new, old = prepared(disk.files, f"{disk.root}/t-0")
    log.advance_start_offset(old[0].end_offset)
    log.delete_old_segments(0)
    start = log.log_start_offset

    assert log.replace_segments(new, old) == []
    assert read_all(log) == list(range(start, 50))
    assert not [name for name in disk.files.listdir(log.path) if name.endswith((".cleaned", ".swap"))]


def test_a_stop_at_every_step():
    """Wherever it stops, and whatever survives, is the log the one before the replacement or the one after it?"""
    before, after = outcomes(MemoryFiles(), "/t-0")
    seen = set()
    step = 0
    while step >= 0:
        for seed in range(4):
            files = MemoryFiles()
            log, new, old = prepared(files, "/t-0")
            countdown = step

            def stop(operation, path):
                nonlocal countdown
                countdown -= 1
                if countdown < 0:
                    raise Stop

            files.before = stop
            try:
                log.replace_segments(new, old)
            except Stop:
                pass
            else:
                step = -2
            files.before = None
            if seed:
                files.power_cut(Random(seed))
            recovered = open_log(files, "/t-0", recovery_point=50)

            assert tuple(read_all(recovered)) in {tuple(before), tuple(after)}

            # A recovery point that was written down long ago must not turn the new segments into lost data.
            assert read_all(open_log(files, "/t-0", recovery_point=0)) == read_all(recovered)
            seen.add(tuple(read_all(recovered)))
        step += 1

    assert seen == {tuple(before), tuple(after)}


def test_segments_must_fit(memory):
    """Is a replacement that would leave a gap refused as our own mistake?"""
    log, new, old = prepared(memory, "/data/t-0")
    new[-1].truncate(new[-1].find(old[-1].end_offset - 1)[0])
    with pytest.raises(AssertionError):
        log.replace_segments(new, old)
