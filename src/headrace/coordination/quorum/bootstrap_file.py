"""What a new cluster begins with, as `kafka-storage format` writes it down: the levels of its features.

    LOG-DIR/bootstrap.checkpoint    a snapshot of records that the first active controller appends to an empty log

Kafka writes and reads the same file, so that a directory may be formatted by one and started by the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.coordination.quorum.snapshot_file import read_snapshot, snapshot_batches, write_batches
from headrace.model.errors import StorageFault
from headrace.records.batch import CorruptBatch

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from headrace.model.metadata_records import MetadataRecord
    from headrace.storage.files import Files

BOOTSTRAP = "bootstrap.checkpoint"


def read_bootstrap(files: Files, log_dir: str) -> Sequence[MetadataRecord]:
    """The first records of the cluster, none if the directory does not say; blocking."""
    path = f"{log_dir}/{BOOTSTRAP}"
    try:
        return read_snapshot(files.read(path)).records
    except FileNotFoundError:
        return ()
    except (OSError, CorruptBatch, StorageFault) as problem:
        raise StorageFault(f"{path}: {problem}") from problem


def write_bootstrap(files: Files, log_dir: str, records: Iterable[MetadataRecord], *, now_ms: int) -> None:
    """Say with which records the cluster begins; durable on return."""
    batches = snapshot_batches(records, epoch=0, timestamp_ms=0, voters=None, now_ms=now_ms)
    write_batches(files, log_dir, BOOTSTRAP, batches)
