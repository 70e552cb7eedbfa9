"""What a topic should contain: records as they are sent, and as they must come back."""

import json
from dataclasses import dataclass, field
from pathlib import Path

Headers = tuple[tuple[str, bytes | None], ...]

BASE_TIMESTAMP_MS = 1_700_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SentRecord:
    """One record before the broker gave it an offset."""

    partition: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


@dataclass(slots=True)
class RecordBook:
    """The records of one topic, in sending order; within a partition that order is the order of offsets."""

    topic: str
    records: list[SentRecord] = field(default_factory=list)

    def write(self, file: Path, *, first: int = 0) -> Path:
        """The file the Java producer reads, from the given record on."""
        file.write_text("".join(json.dumps(self._line(record)) + "\n" for record in self.records[first:]))
        return file

    def expected(self, *, timestamp_type: str = "CreateTime") -> list[dict[str, object]]:
        """Every record as a reader of the whole topic sees it, by partition and offset."""
        offsets: dict[int, int] = {}
        seen: list[dict[str, object]] = []
        for record in self.records:
            offset = offsets.get(record.partition, 0)
            offsets[record.partition] = offset + 1
            seen.append(self._read(record, offset) | {"timestamp_type": timestamp_type})
        return sorted(seen, key=place)

    def _line(self, record: SentRecord) -> dict[str, object]:
        line = self._read(record, 0) | {"topic": self.topic}
        del line["offset"]
        return line

    @staticmethod
    def _read(record: SentRecord, offset: int) -> dict[str, object]:
        return {
            "partition": record.partition,
            "offset": offset,
            "timestamp": record.timestamp,
            "key": hexed(record.key),
            "value": hexed(record.value),
            "headers": [[name, hexed(value)] for name, value in record.headers],
        }


def sample_records(count: int, partitions: int) -> list[SentRecord]:
    """Records of every shape: null, empty and long keys and values, headers or none, times mostly in order."""
    return [
        SentRecord(
            partition=number % partitions,
            timestamp=BASE_TIMESTAMP_MS + number * 10 - (25 if number % 11 == 5 else 0),
            key=(None, b"", f"key-{number % 17}".encode(), bytes(range(256)))[number % 4],
            value=(b"value-%d " % number * (number % 30 + 1), None, b"")[0 if number % 9 else 1 + number % 2],
            headers=((), (("trace", b"%d" % number), ("empty", b""), ("null", None), ("trace", b"again")))[
                number % 3 == 0
            ],
        )
        for number in range(count)
    ]


def place(line: dict[str, object]) -> tuple[int, int]:
    """Where a read record stands."""
    partition, offset = line["partition"], line["offset"]
    assert isinstance(partition, int)
    assert isinstance(offset, int)
    return partition, offset


def hexed(data: bytes | None) -> str | None:
    """Bytes as the Java programs write them."""
    return None if data is None else data.hex()
