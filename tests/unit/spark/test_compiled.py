"""Kernels are compiled once, by whoever comes first, and found by all who come later."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from headrace.spark import compiled, time_kernels
from headrace.spark.compiled import prepare, reading

COUNTS = """
import sys
from headrace.spark import time_kernels
stats = time_kernels.read_moments.stats
print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""


def kernels_of(module):
    """The compiled functions of a module."""
    return [function for function in vars(module).values() if hasattr(function, "nopython_signatures")]


def test_prepare_compiles_everything():
    """Are all modules with kernels known, and is each kernel compiled for exactly one kind of arguments?"""
    prepare()

    package = Path(sys.modules["headrace.spark"].__path__[0])
    files = {path.stem for path in package.glob("*_kernels.py")}
    assert files == set(compiled._KERNEL_MODULES)
    for name in files:
        signed = [kernel for kernel in kernels_of(sys.modules[f"headrace.spark.{name}"]) if not kernel._can_compile]
        assert signed
        assert all(1 == len(kernel.nopython_signatures) for kernel in signed)


def test_other_arguments_are_refused():
    """Is an array that may be written to, where one to read is expected, an error rather than a long compilation?"""
    texts, ends, none = np.zeros(1, np.uint8), np.zeros(2, np.int32), np.zeros(0, np.uint8)

    with pytest.raises(TypeError, match="No matching definition"):
        time_kernels.read_moments(texts, ends, none, 5.5, np.zeros(1, np.int32))


def test_reading_protects():
    """Does memory seen for reading refuse to be written to, while its owner still may?"""
    array = np.zeros(3, np.uint8)
    view = reading(array)
    array[0] = 7

    assert 7 == view[0]
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 1


@pytest.mark.slow
def test_processes_that_compile_at_once(tmp_path):
    """When several processes start with an empty cache: does one compile and do the others load what it made?"""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", COUNTS]
    started = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    answers = [process.communicate() for process in started]

    assert [0] * 3 == [process.returncode for process in started], answers
    assert ["0 1", "1 0", "1 0"] == sorted(out.strip() for out, _ in answers)
