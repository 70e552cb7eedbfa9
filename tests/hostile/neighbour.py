"""The client next to the hostile one: it writes and reads all the while, and must not notice anything."""

import threading
import time
from itertools import count

from headrace.records.batch import check_batch
from headrace.records.build import NewRecord, build_batch
from headrace.records.walk import walk
from wire_client import WireClient

SLOWEST_S = 1.0
"""No request of an honest client may take longer, whatever another one does."""
DEADLINE_S = 30.0


class Neighbour(threading.Thread):
    """Produces a record, fetches it, compares, and again."""

    def __init__(self, port: int, topic: str) -> None:
        super().__init__(name="neighbour", daemon=True)
        self.topic = topic
        self.values: list[bytes] = []
        self.slowest_s = 0.0
        self.bug: BaseException | None = None
        self._port = port
        self._ending = threading.Event()
        self._rounds = threading.Condition()

    def __enter__(self):
        with WireClient(self._port) as client:
            assert client.create_topic(self.topic).error_code == 0
        self.start()
        self.wait_for_rounds()
        self.slowest_s = 0.0
        return self

    def __exit__(self, kind, error, trace):
        if kind is None:
            self.wait_for_rounds()
        self._ending.set()
        self.join(DEADLINE_S)
        if kind is None:
            self.check()

    def wait_for_rounds(self, number: int = 3) -> None:
        """Until so many more have gone well, or one has not."""
        with self._rounds:
            goal = len(self.values) + number
            done = self._rounds.wait_for(lambda: len(self.values) >= goal or self.bug is not None, DEADLINE_S)
            assert done, "the neighbour is not served any more"

    def check(self) -> None:
        """Has everything gone well, all the time?"""
        if self.bug is not None:
            raise AssertionError(f"the neighbour was disturbed: {self.bug!r}") from self.bug
        assert self.slowest_s < SLOWEST_S, f"a request of the neighbour took {self.slowest_s:.2f} s"
        with WireClient(self._port) as client:
            assert read_values(client, self.topic) == self.values

    def run(self) -> None:
        """Until told to end."""
        try:
            with WireClient(self._port, client_id="neighbour") as client:
                for number in count():
                    self._round(client, b"value %d" % number)
                    with self._rounds:
                        self._rounds.notify_all()
                    if self._ending.wait(0.002):
                        return
        except BaseException as bug:  # noqa: BLE001 - told by `check`
            self.bug = bug
            with self._rounds:
                self._rounds.notify_all()

    def _round(self, client: WireClient, value: bytes) -> None:
        # Of now, as retention takes what is old.
        batch = bytes(build_batch([NewRecord(int(time.time() * 1000), None, value, ())]))
        begin = time.monotonic()
        result = client.produce(self.topic, batch)
        produced = time.monotonic()
        assert (result.error_code, result.base_offset) == (0, len(self.values))
        self.values.append(value)
        found = client.fetch(self.topic, result.base_offset)
        fetched = time.monotonic()
        assert [bytes(r.value) for r in walk(memoryview(found.records), max_bytes=1 << 20)] == [value]
        self.slowest_s = max(self.slowest_s, produced - begin, fetched - produced)


def read_values(client: WireClient, topic: str, partition: int = 0) -> list[bytes]:
    """Every value of a partition, with CRCs and offsets checked."""
    end = client.list_offset(topic, -1, partition=partition).offset
    values: list[bytes] = []
    while len(values) < end:
        found = client.fetch(topic, len(values), partition=partition, max_bytes=1 << 22)
        assert found.error_code == 0
        view, position = memoryview(found.records), 0
        assert view, f"nothing at {len(values)} of {topic}"
        while position < len(view):
            header = check_batch(view, position)
            assert header.base_offset == len(values)
            batch = view[position : position + header.size]
            values += [bytes(record.value or b"") for record in walk(batch, max_bytes=1 << 26)]
            position += header.size
    return values
