"""What people do to a cluster, through the admin clients they use: one story for each admin API, over a real socket."""

import uuid

import confluent_kafka
import kafka
import pytest
from confluent_kafka import TopicCollection
from confluent_kafka import admin as confluent
from kafka import TopicPartition
from kafka import admin as kafka_python
from kafka import errors as kafka_errors

from headrace.testing.cluster import Cluster

pytestmark = pytest.mark.clients

WAIT_S = 10


@pytest.fixture(scope="module")
def cluster():
    """One broker for all of these."""
    with Cluster() as cluster:
        yield cluster


@pytest.fixture
def topic():
    """A topic name of the test's own."""
    return f"admin.{uuid.uuid4().hex[:12]}"


@pytest.fixture
def librdkafka(cluster):
    """confluent-kafka's admin client."""
    return confluent.AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 2})


@pytest.fixture
def python(cluster):
    """kafka-python's admin client."""
    client = kafka_python.KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
    yield client
    client.close()


def done(futures):
    """The results of confluent-kafka's futures, by name."""
    return {key: future.result(WAIT_S) for key, future in futures.items()}


def refusal(futures):
    """The error of the one future that must fail."""
    (future,) = futures.values()
    with pytest.raises(confluent_kafka.KafkaException) as refused:
        future.result(WAIT_S)
    return refused.value.args[0]


def produce(cluster, topic, count):
    """Write records to partition 0 with an idempotent producer."""
    producer = kafka.KafkaProducer(bootstrap_servers=cluster.bootstrap)
    for number in range(count):
        producer.send(topic, b"%d" % number, partition=0)
    producer.flush(WAIT_S)
    producer.close()


# --- topics


def test_create_topics(librdkafka, python, topic):
    """Can both clients create topics with counts and settings, and do they hear why they cannot?"""
    done(librdkafka.create_topics([confluent.NewTopic(topic, 2, 1, config={"retention.ms": "5000"})]))
    answer = python.create_topics({f"{topic}.2": {"num_partitions": 3, "configs": {"cleanup.policy": "compact"}}})

    again = refusal(librdkafka.create_topics([confluent.NewTopic(topic, 2, 1)]))
    wide = refusal(librdkafka.create_topics([confluent.NewTopic(f"{topic}.3", 1, 3)]))

    assert (again.code(), again.str()) == (
        confluent_kafka.KafkaError.TOPIC_ALREADY_EXISTS,
        f"Topic '{topic}' already exists.",
    )
    assert wide.code() == confluent_kafka.KafkaError.INVALID_REPLICATION_FACTOR
    (created,) = answer["topics"]
    assert (created["num_partitions"], created["replication_factor"]) == (3, 1)
    assert created["configs"]["cleanup.policy"]["value"] == "compact"


def test_validated_topic_is_not_created(librdkafka, topic):
    """Does a dry run leave no topic?"""
    done(librdkafka.create_topics([confluent.NewTopic(topic, 2, 1)], validate_only=True))

    assert topic not in librdkafka.list_topics(timeout=WAIT_S).topics


def test_delete_topics(librdkafka, python, topic):
    """Are topics gone when their deletion, by name or by id, is answered?"""
    for name in (topic, f"{topic}.2"):
        done(librdkafka.create_topics([confluent.NewTopic(name, 1, 1)]))
    (described,) = python.describe_topics([f"{topic}.2"])

    done(librdkafka.delete_topics([topic]))
    python.delete_topics([uuid.UUID(described["topic_id"])])

    assert not {topic, f"{topic}.2"} & set(librdkafka.list_topics(timeout=WAIT_S).topics)
    assert refusal(librdkafka.delete_topics([topic])).code() == confluent_kafka.KafkaError.UNKNOWN_TOPIC_OR_PART


def test_create_partitions(librdkafka, python, topic):
    """Can both clients let a topic grow, and never shrink?"""
    done(librdkafka.create_topics([confluent.NewTopic(topic, 1, 1)]))

    done(librdkafka.create_partitions([confluent.NewPartitions(topic, 3)]))
    python.create_partitions({topic: {"count": 4, "assignments": [[1]]}})

    assert len(librdkafka.list_topics(topic, timeout=WAIT_S).topics[topic].partitions) == 4
    with pytest.raises(kafka_errors.InvalidPartitionsError):
        python.create_partitions({topic: 2})


def test_describe_topic_partitions(python, topic):
    """Can a client page through the partitions of a topic?"""
    python.create_topics({topic: {"num_partitions": 5}})
    seen, cursor = [], None
    for _ in range(5):
        page = python.describe_topic_partitions([topic], response_partition_limit=2, cursor=cursor)
        seen += [one["partition_index"] for one in page["topics"][0]["partitions"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break

    assert seen == [0, 1, 2, 3, 4]


# --- settings


def test_describe_configs(librdkafka, topic):
    """Do clients see every setting of topics and brokers, and where its value comes from?"""
    done(librdkafka.create_topics([confluent.NewTopic(topic, 1, 1, config={"retention.ms": "5000"})]))
    resources = [confluent.ConfigResource("topic", topic), confluent.ConfigResource("broker", "1")]

    of_topic, of_broker = done(librdkafka.describe_configs(resources)).values()

    assert (of_topic["retention.ms"].value, of_topic["retention.ms"].source) == ("5000", 1)
    assert (of_topic["cleanup.policy"].value, of_topic["cleanup.policy"].is_default) == ("delete", True)
    assert (of_broker["node.id"].value, of_broker["node.id"].is_read_only) == ("1", True)


def test_alter_configs(librdkafka, python, topic):
    """Does the older way of changing settings replace them all?"""
    done(librdkafka.create_topics([confluent.NewTopic(topic, 1, 1, config={"retention.ms": "5000"})]))

    with pytest.warns(DeprecationWarning, match="incremental"):
        done(librdkafka.alter_configs([confluent.ConfigResource("topic", topic, set_config={"flush.ms": "7"})]))

    assert own_settings(python, topic) == {"flush.ms": "7"}


def test_incremental_alter_configs(librdkafka, python, topic):
    """Can both clients set, extend and reset single settings?"""
    done(librdkafka.create_topics([confluent.NewTopic(topic, 1, 1, config={"retention.ms": "5000"})]))
    append = confluent.ConfigEntry(
        "cleanup.policy", "compact", incremental_operation=confluent.AlterConfigOpType.APPEND
    )

    done(librdkafka.incremental_alter_configs([confluent.ConfigResource("topic", topic, incremental_configs=[append])]))
    both = own_settings(python, topic)
    python.reset_configs([kafka_python.ConfigResource("topic", topic, ["retention.ms"])])

    assert both == {"retention.ms": "5000", "cleanup.policy": "delete,compact"}
    assert own_settings(python, topic) == {"cleanup.policy": "delete,compact"}


def own_settings(python, topic):
    """What a topic says for itself."""
    described = python.describe_configs([kafka_python.ConfigResource("topic", topic)])
    return {name: entry["value"] for name, entry in described["topic"][topic].items()}


def test_broker_settings_change_while_it_runs(python, cluster):
    """Is a dynamic broker setting in force at once, and told as such?"""
    python.alter_configs([kafka_python.ConfigResource("broker", "1", {"log.retention.ms": "123456"})])

    described = python.describe_configs([kafka_python.ConfigResource("broker", "1")])
    entry = described["broker"]["1"]["log.retention.ms"]
    python.reset_configs([kafka_python.ConfigResource("broker", "1", ["log.retention.ms"])])

    assert (entry["value"], entry["config_source"]) == ("123456", "DYNAMIC_BROKER_CONFIG")
    assert cluster.ask(lambda broker: broker.config["log.retention.ms"]) is None


def test_list_config_resources(python, topic):
    """Can a client list what has settings?"""
    python.create_topics([topic])

    listed = python.list_config_resources(["TOPIC", "BROKER"])

    assert topic in listed["topic"]
    assert listed["broker"] == ["1"]


# --- records and disks


def test_delete_records(cluster, librdkafka, python, topic):
    """Do deleted records stay away from consumers, and is what is not there refused?"""
    python.create_topics([topic])
    produce(cluster, topic, 10)

    deleted = python.delete_records({TopicPartition(topic, 0): 4})
    too_far = refusal(librdkafka.delete_records([confluent_kafka.TopicPartition(topic, 0, 11)]))

    consumer = kafka.KafkaConsumer(bootstrap_servers=cluster.bootstrap)
    beginning = consumer.beginning_offsets([TopicPartition(topic, 0)])
    consumer.close()
    assert deleted[TopicPartition(topic, 0)]["low_watermark"] == 4
    assert list(beginning.values()) == [4]
    assert too_far.code() == confluent_kafka.KafkaError.OFFSET_OUT_OF_RANGE


def test_describe_producers(cluster, python, topic):
    """Is an idempotent producer seen at its partition?"""
    python.create_topics([topic])
    produce(cluster, topic, 10)

    (state,) = python.describe_producers([TopicPartition(topic, 0)]).values()

    (producer,) = state.active_producers
    assert producer.last_sequence == 9


def test_describe_log_dirs(cluster, python, topic):
    """Are a topic's bytes found where they are?"""
    python.create_topics([topic])
    produce(cluster, topic, 10)

    (broker,) = python.describe_log_dirs({topic: [0]})

    (log_dir,) = broker["log_dirs"]
    assert log_dir["log_dir"] == str(cluster.directory)
    assert log_dir["topics"][0]["partitions"][0]["partition_size"] > 0
    assert 0 < log_dir["usable_bytes"] <= log_dir["total_bytes"]


# --- the cluster


def test_describe_cluster(cluster, librdkafka, python):
    """Do both clients find the cluster, its broker and what they may do?"""
    seen = librdkafka.describe_cluster(include_authorized_operations=True).result(WAIT_S)
    told = python.describe_cluster()

    assert [(node.id, node.host, node.port) for node in seen.nodes] == [(1, "127.0.0.1", cluster.port)]
    assert seen.cluster_id == told["cluster_id"] == cluster.broker.cluster_id
    assert "ALTER" in told["authorized_operations"]
    assert confluent.AclOperation.ALTER in seen.authorized_operations


def test_describe_topics(librdkafka, topic):
    """Does a client learn a topic's id, partitions and what it may do with them?"""
    done(librdkafka.create_topics([confluent.NewTopic(topic, 2, 1)]))

    described = done(librdkafka.describe_topics(TopicCollection([topic]), include_authorized_operations=True))[topic]

    assert len(described.partitions) == 2
    assert not described.is_internal
    assert confluent.AclOperation.WRITE in described.authorized_operations
