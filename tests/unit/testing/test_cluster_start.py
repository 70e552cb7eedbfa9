"""How a test's cluster comes up."""

import os
import time

import pytest

from headrace.storage import files
from headrace.testing.cluster import Cluster

SLOW_S = 0.05


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fdatasync"), reason="what is made slow here is Linux's way to write")
def test_a_slow_disk(monkeypatch):
    """Does a cluster of three agree on a controller where every write takes longer than on an idle machine?"""

    def slowly(fd):
        time.sleep(SLOW_S)  # what the disk takes, not a wait of ours
        os.fdatasync(fd)

    monkeypatch.setattr(files, "_datasync", slowly)
    with Cluster(brokers=3) as cluster:
        assert cluster.controller in cluster.nodes
