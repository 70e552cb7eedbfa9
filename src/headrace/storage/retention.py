"""Which segments a log no longer needs to keep: those before its start, over its size, past their time."""

from collections.abc import Sequence

from headrace.model.log_config import LogConfig
from headrace.storage.segment import Segment


def expired(
    segments: Sequence[Segment],
    config: LogConfig,
    *,
    now_ms: int,
    log_start_offset: int,
    limit_offset: int,
    log_end_offset: int,
) -> Sequence[Segment]:
    """The segments to delete, always the first so many: none beyond `limit_offset`, and never an empty active one."""
    excess = _excess_bytes(segments, config)
    count = 0
    for segment in segments:
        end_offset = segment.end_offset if segment.end_offset >= 0 else log_end_offset
        if end_offset > limit_offset or (segment.end_offset < 0 and segment.size == 0):
            break
        over_size = config.cleanup_delete and 0 < segment.size <= excess
        # Only a segment with one behind it can lie wholly before the log's start.
        before_start = 0 <= segment.end_offset <= log_start_offset
        if not (before_start or over_size or _is_past_time(segment, config, now_ms)):
            break
        excess -= segment.size
        count += 1
    return segments[:count]


def _excess_bytes(segments: Sequence[Segment], config: LogConfig) -> int:
    return sum(segment.size for segment in segments) - config.retention_bytes if config.retention_bytes >= 0 else -1


def _is_past_time(segment: Segment, config: LogConfig, now_ms: int) -> bool:
    if not config.cleanup_delete or config.retention_ms < 0:
        return False
    latest_ms, _ = segment.max_timestamp()
    if latest_ms < 0:
        # Records without timestamps are as old as the file.
        stat = segment.files.stat(segment.path())
        latest_ms = stat.modified_ms if stat is not None else now_ms
    return now_ms - latest_ms > config.retention_ms
