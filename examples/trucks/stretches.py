"""Which reports must be followed one by one: most only say that a truck is still on its way.

A stretch is a run of reports of one truck without a gap in their numbers, in all of which it drives, is speeding or in
all of which it is not, lies in the same fences, and was never silent in between. To follow its first report and then go
to its last leaves the same state and the same alerts as to follow every one, so only these two are handed on. Where
there is nothing of that kind a stretch is a single report, its own first and last.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from alert_rules import STANDING_KMH, Limits, Report
from geography import CELL_DEGREES, fences_at, fences_of_cell

if TYPE_CHECKING:
    import numpy as np
    from pyarrow import RecordBatch

COLUMNS = ("truck_id", *Report._fields)
_TO = ("seq", "ts_ms", "lat", "lon")
"""What is needed of a last report."""
PACKED_SCHEMA = """
    `group` int, truck_id array<string>, seq array<bigint>, ts_ms array<bigint>, lat array<double>, lon array<double>,
    speed_kmh array<double>, to_seq array<bigint>, to_ts_ms array<bigint>, to_lat array<double>, to_lon array<double>"""


_ROW = 10_000
"""More than there are cells around the earth."""


class Stretch(NamedTuple):
    """The first report and, of the last, what it changes."""

    seq: int
    ts_ms: int
    lat: float
    lon: float
    speed_kmh: float
    to_seq: int
    to_ts_ms: int
    to_lat: float
    to_lon: float


class Packing:
    """Makes one row of the reports of a group that came together: a list of stretches, each column by itself."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits

    def __call__(self, batches: "Iterator[RecordBatch]") -> "Iterator[RecordBatch]":
        """Rows of a group, a truck, and the fields of a report in; what `PACKED_SCHEMA` says out."""
        import numpy as np  # noqa: PLC0415 - the worker has them
        import pyarrow as pa  # noqa: PLC0415

        for batch in batches:
            firsts, lasts = self._ends(batch)
            groups = batch.column("group").to_numpy()[firsts]
            begins = np.flatnonzero(np.diff(groups, prepend=-1)).astype("int32")
            offsets = pa.array(np.append(begins, np.int32(len(groups))), pa.int32())
            chosen, last = batch.select(COLUMNS).take(pa.array(firsts)), batch.select(_TO).take(pa.array(lasts))
            lists = [pa.ListArray.from_arrays(offsets, column) for column in (*chosen.columns, *last.columns)]
            names = ["group", *COLUMNS, *(f"to_{name}" for name in _TO)]
            yield pa.RecordBatch.from_arrays([pa.array(groups[begins]), *lists], names=names)

    def _ends(self, batch: "RecordBatch") -> "tuple[np.ndarray, np.ndarray]":
        """Where the first and the last reports of all stretches stand, ordered by group, truck and number."""
        import numpy as np  # noqa: PLC0415

        truck = batch.column("truck_id").dictionary_encode().indices.to_numpy()
        seq, ts_ms, lat, lon, speed = (batch.column(name).to_numpy() for name in Report._fields)
        order = np.lexsort((seq, truck, batch.column("group").to_numpy()))
        truck, seq = truck[order], seq[order]
        is_new = np.append(np.ones(min(1, len(seq)), bool), (np.diff(truck) != 0) | (np.diff(seq) != 0))
        order, truck, seq = order[is_new], truck[is_new], seq[is_new]
        ts_ms, speed, fences = ts_ms[order], speed[order], _fence_numbers(lat[order], lon[order])
        drives, speeds, waited_ms = speed >= STANDING_KMH, speed > self._limits.speed_kmh, np.diff(ts_ms)
        goes_on = (
            (np.diff(truck) == 0) & (np.diff(seq) == 1) & (fences[1:] == fences[:-1]) & (speeds[1:] == speeds[:-1])
            & drives[1:] & drives[:-1] & (waited_ms >= 0) & (waited_ms < self._limits.silent_ms)
        )  # fmt: skip
        edge = np.zeros(min(1, len(seq)), bool)
        return order[~np.append(edge, goes_on)], order[~np.append(goes_on, edge)]


def _fence_numbers(lats: "np.ndarray", lons: "np.ndarray") -> "np.ndarray":
    """A number for the fences of each point, the same where they are the same."""
    import numpy as np  # noqa: PLC0415

    north, east = (np.floor(degrees / CELL_DEGREES).astype(int) for degrees in (lats, lons))
    _, seen, at = np.unique(north * _ROW + east, return_index=True, return_inverse=True)
    numbers: dict[str, int] = {}
    of_cell, is_near_hub = np.zeros(len(seen), int), np.zeros(len(seen), bool)
    for cell, place in enumerate(seen.tolist()):
        hubs, others = fences_of_cell((int(north[place]), int(east[place])))
        of_cell[cell], is_near_hub[cell] = numbers.setdefault(others, len(numbers)), bool(hubs)
    found = of_cell[at]
    for place in np.flatnonzero(is_near_hub[at]).tolist():
        found[place] = numbers.setdefault(fences_at(float(lats[place]), float(lons[place])), len(numbers))
    return found
