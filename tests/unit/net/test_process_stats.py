"""What a process costs."""

import sys

import pytest

from headrace.model.exposition import render
from headrace.net.process_stats import process_families
from prometheus_text import Metrics


@pytest.mark.skipif(sys.platform != "linux", reason="other systems tell less")
def test_cpu_memory_and_files():
    """Are CPU time, memory and open files there, and of a size that can be?"""
    read = Metrics("".join(render(process_families())))

    assert read.get("process_cpu_seconds_total") > 0
    assert read.get("process_resident_memory_bytes") > 1_000_000
    assert 0 < read.get("process_open_fds") <= read.get("process_max_fds")
    assert read.get("process_start_time_seconds") > 1_700_000_000
