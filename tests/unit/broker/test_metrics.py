"""What a broker tells Prometheus."""

import time
import urllib.request

import pytest

from headrace import KafkaAdmin, KafkaConsumer, KafkaProducer, NewTopic
from headrace.settings.broker import BrokerConfig
from headrace.settings.fault import ConfigFault
from headrace.testing.cluster import Cluster
from prometheus_text import Metrics

SERVED = {"metrics.listener": "127.0.0.1:0"}


def scraped(broker) -> Metrics:
    """What a scraper sees."""
    with urllib.request.urlopen(f"http://127.0.0.1:{broker.metrics.port}/metrics", timeout=10) as answer:
        assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
        return Metrics(answer.read().decode())


def test_not_unless_asked_for(desk):
    """Does a broker open no other port by itself?"""
    assert desk.broker.metrics.port == 0


def test_a_taken_address_does_not_stop_the_broker(open_desk, caplog):
    """Does a broker whose metrics cannot be had serve its clients all the same, and say so?"""
    with Cluster(SERVED) as cluster:
        taken = cluster.brokers[1].metrics.port
        desk = open_desk({"metrics.listener": f"127.0.0.1:{taken}"})

        desk.create("t")

    assert desk.broker.metrics.port == 0
    assert "metrics_not_served" in caplog.text


@pytest.mark.parametrize("text", ["9404", "host", "host:99999", "http://host:1/x"])
def test_bad_address(text):
    """Is an address that cannot be read refused at the start?"""
    properties = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": "1@localhost:9093",
        "controller.listener.names": "CONTROLLER",
        "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
        "metrics.listener": text,
    }
    with pytest.raises(ConfigFault, match=r"metrics\.listener"):
        BrokerConfig.from_properties(properties)


def test_records_are_counted():
    """Do records and bytes show as they go in and out, by topic and for all, with requests, logs and groups?"""
    with Cluster(SERVED) as cluster:
        broker = cluster.brokers[1]
        with KafkaProducer(bootstrap_servers=cluster.bootstrap) as producer:
            for number in range(50):
                producer.send("readings", value=b"x" * 100, key=str(number).encode())
            producer.flush()
        with KafkaConsumer(
            "readings", bootstrap_servers=cluster.bootstrap, group_id="g", auto_offset_reset="earliest"
        ) as consumer:
            for _, _ in zip(range(50), consumer, strict=False):
                pass
            read = scraped(broker)

    prefix = "kafka_server_brokertopicmetrics"
    assert read.get(f"{prefix}_messagesin_total", topic="readings") == 50
    assert read.get(f"{prefix}_messagesin_total") >= 50
    assert read.get(f"{prefix}_bytesin_total", topic="readings") > 5000
    assert read.get(f"{prefix}_bytesout_total", topic="readings") >= read.get(
        f"{prefix}_bytesin_total", topic="readings"
    )
    assert read.get("kafka_network_requestmetrics_totaltimems_count", request="Produce") >= 1
    assert read.get("kafka_network_requestmetrics_requests_total", request="Fetch") >= 1
    assert read.get("kafka_log_log_logendoffset", topic="readings", partition="0") == 50
    assert read.get("kafka_log_log_size", topic="readings", partition="0") > 5000
    assert read.get("kafka_coordinator_group_groupmetadatamanager_numgroups") == 1
    assert read.get("kafka_controller_kafkacontroller_activecontrollercount") == 1
    assert read.get("kafka_server_replicamanager_underreplicatedpartitions") == 0
    assert read.get("process_resident_memory_bytes") > 0


def test_refused_requests_are_counted(desk):
    """Is a produce to a topic that is not there counted as failed?"""
    from types import SimpleNamespace

    from headrace.wire.codec import encode_request
    from headrace.wire.header import request_header
    from headrace.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

    partition = PartitionProduceData(index=0, records=b"x")
    request = ProduceRequest(
        acks=1, timeout_ms=1, topic_data=(TopicProduceData(name="no", partition_data=(partition,)),)
    )
    frame = request_header(0, 9, 1, "c") + encode_request(0, 9, request)

    desk.broker.dispatch.handle(SimpleNamespace(listener_name="PLAINTEXT"), memoryview(bytearray(frame)))

    read = Metrics("".join(desk.broker.metrics.text()))
    assert read.get("kafka_server_brokertopicmetrics_failedproducerequests_total") == 1
    assert read.get("kafka_server_brokertopicmetrics_totalproducerequests_total") == 1


def test_a_deleted_topic_goes(desk):
    """Does a topic that is deleted take its own series along, but not what the broker carried?"""
    from headrace.broker.handlers.api20_delete_topics import API
    from headrace.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState

    desk.create("gone")
    desk.produce("gone", 3)
    desk.ask(API, DeleteTopicsRequest(topics=(DeleteTopicState(name="gone"),)))

    read = Metrics("".join(desk.broker.metrics.text()))
    assert read.get("kafka_server_brokertopicmetrics_messagesin_total", topic="gone") is None
    assert read.get("kafka_server_brokertopicmetrics_messagesin_total") == 3


@pytest.mark.slow
def test_copies_and_lost_replicas_show():
    """Do copied bytes show on leader and follower, and does a lost broker show as missing replicas?"""
    with Cluster({**SERVED, "replica.lag.time.max.ms": "1000"}, brokers=3) as cluster:
        with KafkaAdmin(bootstrap_servers=cluster.bootstrap) as admin:
            admin.create_topics([NewTopic("copied", 3, 3)])
        with KafkaProducer(bootstrap_servers=cluster.bootstrap, acks="all") as producer:
            for number in range(60):
                producer.send("copied", value=b"x" * 100, key=str(number).encode())
            producer.flush()

        def carried(way):
            name = f"kafka_server_brokertopicmetrics_replicationbytes{way}_total"
            return [scraped(broker).get(name, topic="copied") or 0 for broker in cluster.brokers.values()]

        # On a busy machine a follower may lag for so long that its leader does not wait for it.
        assert eventually(lambda: 0 not in carried("out") + carried("in"))

        cluster.kill(3)
        assert eventually(lambda: over_both(cluster, "underreplicatedpartitions") >= 3)
        cluster.restart(3)
        assert eventually(lambda: over_both(cluster, "underreplicatedpartitions") == 0)
        assert over_both(cluster, "isrexpands_total") >= 1


def over_both(cluster, name):
    """What the two brokers that stayed say together of their replicas."""
    return sum(scraped(cluster.brokers[node]).get(f"kafka_server_replicamanager_{name}") for node in (1, 2))


def eventually(holds):
    """Whether something comes true before long."""
    deadline = time.monotonic() + 30
    while not holds():
        if time.monotonic() > deadline:
            return False
    return True
