"""Brokers and workers that die under a query: it goes on, and every record comes once."""

import os
import signal

import pytest

from headrace.testing.broker_process import HeadraceProcess
from spark.queries import Query
from spark.topics import Topics


@pytest.fixture
def process(tmp_path):
    """A broker that can be killed."""
    with HeadraceProcess(tmp_path / "broker") as running:
        yield running


def numbered(first, last):
    return [b"%06d" % number for number in range(first, last)]


def test_broker_killed_under_a_query(spark, process, tmp_path, topic):
    """Is every record read once by a query whose broker is killed and started again, several times? (R31)"""
    with Topics(process.bootstrap) as topics:
        topics.create(topic, 2)
        options = {
            "kafka.bootstrap.servers": process.bootstrap,
            "subscribe": topic,
            "startingOffsets": "earliest",
            "maxOffsetsPerTrigger": "60",
            "commitGroup": topic,
        }
        query = Query(spark, options, None, tmp_path / "checkpoint")
        running = query.start()
        for turn in range(3):
            for partition in range(2):
                first = 1000 * partition + 100 * turn
                topics.send(topic, numbered(first, first + 100), partition=partition)
            query.wait_for(200 * turn + 60)
            process.kill()
            process.start()
        rows = query.wait_for(600)
        running.stop()

    assert numbered(0, 300) + numbered(1000, 1300) == sorted(bytes(row.value) for row in rows)


def test_worker_killed_under_a_query(spark, process, tmp_path, topic):
    """Does a query whose worker is killed fail, and read every record once when it is started again?"""
    with Topics(process.bootstrap) as topics:
        topics.create(topic)
        topics.send(topic, numbered(0, 50))
        options = {"kafka.bootstrap.servers": process.bootstrap, "subscribe": topic, "startingOffsets": "earliest"}
        query = Query(spark, options, "value binary, offset bigint", tmp_path / "checkpoint")
        killed = []

        def kill_reader(batches):
            """The first worker that reads is killed once it has read something."""
            for batch in batches:
                yield batch
                if not (tmp_path / "killed").exists():
                    (tmp_path / "killed").touch()
                    os.kill(os.getpid(), signal.SIGKILL)

        plain = query.frame
        query.frame = lambda: plain().mapInArrow(kill_reader, "value binary, offset bigint")
        with pytest.raises(Exception, match=r"worker|Worker|Python"):
            killed.append(query.run())

        assert not killed
        assert numbered(0, 50) == sorted(bytes(row.value) for row in query.run())
