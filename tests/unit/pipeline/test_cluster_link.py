"""The runner's connection, to a real broker."""

import json
from pathlib import Path

import pytest

from headrace.client.fault import ClientFault
from headrace.pipeline.cluster_link import ClusterLink, is_read_by, written_by
from headrace.pipeline.declaration import Source
from headrace.pipeline.file import parse_pipeline
from headrace.testing.cluster import Cluster

TEXT = """\
[pipeline]
name = "copy"
[source.lines]
topic = "lines"
schema = "a string"
[sink.out]
from = "lines"
topic = "out"
"""


@pytest.fixture
def link(headrace_session_cluster):
    found = ClusterLink(headrace_session_cluster.bootstrap, {"acks": "all", "security.protocol": "PLAINTEXT"})
    yield found
    found.close()


def test_groups_and_starts(link, topic):
    """Does a group show what was committed, and is that where a source begins that asks for it?"""
    link.create({topic: 3})
    link.create({topic: 3})  # Others may be faster.
    link.commit(f"{topic}-group", {(topic, 0): 5, (topic, 2): 7})

    assert topic in link.topics()
    source = Source(name="s", pattern=topic, group=f"{topic}-group")
    assert json.loads(link.starts_of(source)) == {topic: {"0": 5, "1": -2, "2": 7}}


def test_progress_is_written(link, topic):
    """Do documents become records with their keys, one after the other?"""
    link.publish(topic, [("a/x", {"n": 1}), ("a/y", {"n": 2})])
    link.publish(topic, [("a/x", {"n": 3})])
    ends = link._loop.run(link._admin.list_offsets({(topic, 0): "latest"}))

    assert [one.offset for one in ends.values()] == [3]


def test_absence_is_a_fault():
    """Is a broker that is not there a fault that can be told, and is the link good again when it comes?"""
    with Cluster() as cluster:
        link = ClusterLink(cluster.bootstrap, {})
        link.topics()
        cluster.restart()
        assert link.topics() == []
    with pytest.raises(ClientFault):
        link.topics()
    link.close()


def test_what_is_written_to():
    """Are sinks, dead letters and progress the topics that are created?"""
    pipeline = parse_pipeline(TEXT, file=Path("copy.toml"))

    assert written_by(pipeline) == {"out": -1, "copy_dlq": -1, "__pipeline_progress": 1}
    assert is_read_by(pipeline.sources["lines"], "lines")
    assert not is_read_by(Source(name="s", pattern="li"), "lines")
