"""The Python processes that Spark starts."""

import os

THREADS = "OPENBLAS_NUM_THREADS"


def test_numpy_has_no_threads_of_its_own(spark):
    """Does a worker's numpy do without threads, unless somebody wants them, and is the driver's left alone?"""
    before = os.environ.get(THREADS)

    in_worker = spark.sparkContext.parallelize([0], 1).map(lambda _: os.environ.get(THREADS)).first()

    assert (before or "1", before) == (in_worker, os.environ.get(THREADS))
