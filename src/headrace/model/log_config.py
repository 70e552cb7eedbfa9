"""What one partition's log is told about how to keep its data: the topic's settings, resolved and typed."""

from dataclasses import dataclass, field

UNBOUNDED_MS = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """A topic's settings as the log reads them; names are Kafka's with dots turned to underscores."""

    segment_bytes: int = 1024 * 1024 * 1024
    segment_ms: int = 7 * 24 * 3600 * 1000
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 * 1024 * 1024
    segment_preallocate_bytes: int = 16 * 1024 * 1024
    index_interval_bytes: int = 4096
    preallocate: bool = False
    retention_ms: int = 7 * 24 * 3600 * 1000
    retention_bytes: int = -1
    cleanup_delete: bool = True
    cleanup_compact: bool = False
    delete_retention_ms: int = 24 * 3600 * 1000
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = UNBOUNDED_MS
    file_delete_delay_ms: int = 60_000
    max_message_bytes: int = 1024 * 1024 + 12
    max_decompressed_bytes: int = 64 * 1024 * 1024
    compression_type: str = "producer"
    message_timestamp_log_append: bool = False
    message_timestamp_before_max_ms: int = UNBOUNDED_MS
    message_timestamp_after_max_ms: int = 3_600_000
    flush_messages: int = 2**63 - 1
    flush_ms: int = UNBOUNDED_MS
    flush_on_acks_all: bool = True
    min_insync_replicas: int = 1
    unclean_leader_election: bool = False

    checks_every_record: bool = field(init=False)
    """Whether something depends on single records, so that a produced batch has to be taken apart."""
    keeps_codec: bool = field(init=False)
    """Whether batches are stored as their producers compressed them."""

    def __post_init__(self) -> None:
        bounded = self.message_timestamp_before_max_ms != UNBOUNDED_MS and not self.message_timestamp_log_append
        object.__setattr__(self, "checks_every_record", self.cleanup_compact or bounded)
        object.__setattr__(self, "keeps_codec", self.compression_type == "producer")
