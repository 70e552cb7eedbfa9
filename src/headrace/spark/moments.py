"""Texts of dates and timestamps as Arrow arrays."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace.spark import time_kernels
from headrace.spark.compiled import reading

MOMENTS = {
    pa.date32(): time_kernels.DATE,
    pa.timestamp("us", tz="UTC"): time_kernels.MOMENT,
    pa.timestamp("us"): time_kernels.LOCAL_MOMENT,
}
"""The types that texts can be read as, and what the kernel calls them."""

_NO_BYTES = reading(np.zeros(0, np.uint8))


def read_moments(array: pa.Array, data_type: pa.DataType) -> tuple[pa.Array, npt.NDArray[np.int64]]:
    """An array of strings as one of dates or timestamps, and the rows whose text is none."""
    out, valid, mask, faults = np.zeros(len(array), np.int64), _NO_BYTES, None, np.zeros(0, np.int64)
    if array.null_count:
        is_valid = array.is_valid().to_numpy(zero_copy_only=False)
        valid, mask = reading(is_valid.view(np.uint8)), ~is_valid
    _, ends, data = array.buffers()
    if len(array):
        fault_count = time_kernels.read_moments(
            _NO_BYTES if data is None else reading(np.frombuffer(data, np.uint8)),
            reading(np.frombuffer(ends, np.int32)[array.offset : array.offset + len(array) + 1]),
            *(valid, MOMENTS[data_type], out),
        )
        if fault_count:
            faults = np.flatnonzero(out == time_kernels.FAULT)
            out[faults] = 0
    if data_type == pa.date32():
        return pa.array(out.astype(np.int32), pa.int32(), mask=mask).view(data_type), faults
    return pa.array(out, pa.int64(), mask=mask).view(data_type), faults
