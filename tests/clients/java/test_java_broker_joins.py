"""A broker of Apache Kafka's in a cluster of ours: everything between the nodes is Kafka's, or it would not work."""

import subprocess

import confluent_kafka
import pytest

from cluster_shell import PATIENCE_S, BrokerGroup, free_ports
from headrace.testing.kafka_jars import PeerUnavailable, classpath, java_command
from headrace.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest

CREATE_TOPICS = 19
KAFKA = 9
EVERYBODY = {1, 2, KAFKA}


@pytest.fixture
def nodes():
    """Two brokers and a controller."""
    with BrokerGroup(2, controllers=1) as nodes:
        yield nodes


@pytest.fixture
def kafka(nodes, tmp_path):
    """Apache Kafka's broker, told to join them; gives its process and its port."""
    try:
        java, jars = java_command(), classpath()
    except PeerUnavailable as missing:
        pytest.skip(str(missing))
    (port,) = free_ports(1)
    config = tmp_path / "server.properties"
    settings = {
        "process.roles": "broker",
        "node.id": KAFKA,
        "controller.quorum.voters": nodes.voters,
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "log.dirs": tmp_path / "data",
        # Every two seconds, as it would by itself, is too seldom for this controller, which waits no longer.
        "broker.heartbeat.interval.ms": 200,
    }
    config.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    formatted = [java, "-cp", jars, "kafka.tools.StorageTool", "format", "-t", nodes.cluster_id, "-c", str(config)]
    subprocess.run(formatted, check=True, capture_output=True, timeout=PATIENCE_S)
    command = [java, "-Xmx400m", "-XX:+UseSerialGC", "-cp", jars, "kafka.Kafka", str(config)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield process, port
        finally:
            process.kill()


def leaders_of_mixed(broker):
    """Who leads the topic's partitions, as this broker has it; ours and Kafka's."""
    return {state.leader for state in broker.metadata.topics["mixed"].partitions}


def test_kafka_joins(nodes, kafka):
    """Does Kafka's broker register, copy from ours and be copied from, and hand over when it stops?"""
    process, port = kafka
    nodes.until(nodes.controller, lambda metadata: metadata.is_active(KAFKA))
    topic = CreatableTopic(name="mixed", num_partitions=3, replication_factor=3)
    nodes.call(1, lambda broker: broker.control.ask(CREATE_TOPICS, CreateTopicsRequest(topics=(topic,))))
    nodes.until(nodes.controller, lambda metadata: "mixed" in metadata.topics)
    leaders = nodes.ask(nodes.controller, leaders_of_mixed)

    producer = confluent_kafka.Producer({"bootstrap.servers": f"127.0.0.1:{port}", "acks": "all"})
    delivered = []
    for number in range(30):
        producer.produce("mixed", b"%d" % number, partition=number % 3, on_delivery=lambda *end: delivered.append(end))
    assert producer.flush(PATIENCE_S) == 0

    assert leaders == EVERYBODY
    assert [error for error, _ in delivered] == [None] * 30
    nodes.until(
        nodes.controller,
        lambda metadata: all(set(state.isr) == EVERYBODY for state in metadata.topics["mixed"].partitions),
    )

    process.terminate()
    nodes.until(nodes.controller, lambda metadata: not metadata.is_active(KAFKA) and metadata.brokers[KAFKA].fenced)
    assert nodes.ask(nodes.controller, leaders_of_mixed) <= EVERYBODY - {KAFKA}
