"""Apache Kafka's command-line tools, the real ones, manage our broker."""

import json
import re

import pytest

from clients.java.record_book import BASE_TIMESTAMP_MS, RecordBook, sample_records

TOPICS = "org.apache.kafka.tools.TopicCommand"
CONFIGS = "kafka.admin.ConfigCommand"
OFFSETS = "org.apache.kafka.tools.GetOffsetShell"
DELETE_RECORDS = "org.apache.kafka.tools.DeleteRecordsCommand"
LOG_DIRS = "org.apache.kafka.tools.LogDirsCommand"
API_VERSIONS = "org.apache.kafka.tools.BrokerApiVersionsCommand"
CLUSTER = "org.apache.kafka.tools.ClusterTool"
TRANSACTIONS = "org.apache.kafka.tools.TransactionsCommand"


@pytest.fixture
def tool(java, broker):
    """Runs a tool against the broker and returns its output; a failure fails the test."""

    def run(program: str, *arguments: object) -> str:
        return java.check(program, "--bootstrap-server", broker.bootstrap, *arguments).out

    return run


@pytest.fixture
def filled(java, broker, topic, tmp_path):
    """A topic of two partitions with 200 records each."""
    book = RecordBook(topic(partitions=2), sample_records(400, 2))
    java.check("Produce", broker.bootstrap, book.write(tmp_path / "records.jsonl"), "linger.ms=20", "batch.size=2000")
    return book


def test_kafka_topics(tool):
    """Can kafka-topics create, list, describe, extend and delete a topic?"""
    tool(TOPICS, "--create", "--topic", "by-tool", "--partitions", 3, "--config", "retention.ms=12345")
    listed = tool(TOPICS, "--list").split()
    described = tool(TOPICS, "--describe", "--topic", "by-tool")
    tool(TOPICS, "--alter", "--topic", "by-tool", "--partitions", 5)
    extended = tool(TOPICS, "--describe", "--topic", "by-tool")
    tool(TOPICS, "--delete", "--topic", "by-tool")
    left = tool(TOPICS, "--list").split()

    assert "by-tool" in listed
    assert re.search(r"PartitionCount: 3\s+ReplicationFactor: 1\s+Configs:.*retention\.ms=12345", described)
    assert re.findall(r"Partition: (\d)\s+Leader: 1\s+Replicas: 1\s+Isr: 1", described) == ["0", "1", "2"]
    assert len(re.findall(r"Partition: \d\s+Leader: 1\s+Replicas: 1\s+Isr: 1", extended)) == 5
    assert "by-tool" not in left


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("fine", 3, 1, "retention.ms=99"), r"3 1 \{retention\.ms=99\}"),
        (("defaults", -1, -1), r"1 1 \{\}"),
        (("no/good", 1, 1), "error InvalidTopicException"),
        (("none", 0, 1), "error InvalidPartitionsException"),
        (("lonely", 1, 3), "error InvalidReplicationFactorException"),
        (("odd", 1, 1, "retention.ms=soon"), "error InvalidConfigurationException"),
        (("strange", 1, 1, "no.such.setting=1"), "error InvalidConfigurationException"),
    ],
)
def test_validate_only(java, broker, tool, arguments, expected):
    """Is a proposed topic judged as it would be if it were created, and not created?"""
    answer = java.check("ProposeTopic", broker.bootstrap, *arguments).out.strip()

    assert re.fullmatch(expected, answer)
    assert arguments[0] not in tool(TOPICS, "--list").split()


def test_existing_topic(java, broker, filled):
    """Is a topic that exists refused by name?"""
    answer = java.check("ProposeTopic", broker.bootstrap, filled.topic, 1, 1).out.strip()

    assert answer == "error TopicExistsException"


def test_kafka_configs_of_a_topic(tool, topic):
    """Can kafka-configs set, show and remove a topic's settings?"""
    name = topic()
    where = ("--entity-type", "topics", "--entity-name", name)

    tool(CONFIGS, "--alter", *where, "--add-config", "segment.bytes=2097152,cleanup.policy=[compact,delete]")
    set_ = tool(CONFIGS, "--describe", *where)
    tool(CONFIGS, "--alter", *where, "--delete-config", "segment.bytes")
    removed = tool(CONFIGS, "--describe", *where)
    everything = tool(CONFIGS, "--describe", "--all", *where)

    assert "segment.bytes=2097152 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:segment.bytes=2097152" in set_
    assert "cleanup.policy=compact,delete" in set_
    assert "segment.bytes=" not in removed
    assert re.search(
        r"segment\.bytes=1073741824 sensitive=false synonyms=\{.*log\.segment\.bytes=1073741824", everything
    )


def test_kafka_configs_of_brokers(tool):
    """Can kafka-configs set a dynamic setting for one broker and for all, and show where a value comes from?"""
    one = ("--entity-type", "brokers", "--entity-name", 1)
    every = ("--entity-type", "brokers", "--entity-default")

    tool(CONFIGS, "--alter", *every, "--add-config", "log.retention.ms=777000")
    tool(CONFIGS, "--alter", *one, "--add-config", "log.retention.ms=888000")
    described = tool(CONFIGS, "--describe", *one)
    default = tool(CONFIGS, "--describe", *every)
    tool(CONFIGS, "--alter", *one, "--delete-config", "log.retention.ms")
    tool(CONFIGS, "--alter", *every, "--delete-config", "log.retention.ms")
    after = tool(CONFIGS, "--describe", *one)

    assert re.search(
        r"log\.retention\.ms=888000 .*\{DYNAMIC_BROKER_CONFIG:log\.retention\.ms=888000, "
        r"DYNAMIC_DEFAULT_BROKER_CONFIG:log\.retention\.ms=777000",
        described,
    )
    assert "log.retention.ms=777000" in default
    assert "log.retention.ms=" not in after


def test_kafka_get_offsets(tool, filled):
    """Does kafka-get-offsets show earliest, latest, by time and of the newest record?"""
    timestamp = BASE_TIMESTAMP_MS + 2000

    def offsets(time: object) -> list[str]:
        return tool(OFFSETS, "--topic", filled.topic, "--time", time).split()

    assert [f"{filled.topic}:{partition}:0" for partition in (0, 1)] == offsets("earliest")
    assert [f"{filled.topic}:{partition}:200" for partition in (0, 1)] == offsets("latest")
    assert [f"{filled.topic}:{partition}:100" for partition in (0, 1)] == offsets(timestamp)
    assert [f"{filled.topic}:{partition}:199" for partition in (0, 1)] == offsets("max-timestamp")


def test_kafka_delete_records(tool, filled, tmp_path):
    """Does kafka-delete-records move the start of a partition, and refuse to move it beyond the end?"""
    plan = tmp_path / "offsets.json"

    def delete(offset: int) -> str:
        where = [{"topic": filled.topic, "partition": 0, "offset": offset}]
        plan.write_text(json.dumps({"version": 1, "partitions": where}))
        return tool(DELETE_RECORDS, "--offset-json-file", plan)

    moved = delete(50)
    refused = delete(500)
    starts = tool(OFFSETS, "--topic", filled.topic, "--time", "earliest").split()

    assert re.search(rf"partition: {filled.topic}-0\s+low_watermark: 50", moved)
    assert "OffsetOutOfRangeException" in refused
    assert [f"{filled.topic}:0:50", f"{filled.topic}:1:0"] == starts


def test_kafka_log_dirs(tool, broker, filled):
    """Does kafka-log-dirs show the sizes the files really have?"""
    output = tool(LOG_DIRS, "--describe", "--topic-list", filled.topic)

    report = json.loads(output[output.index("{") :])
    (described,) = report["brokers"]
    (log_dir,) = described["logDirs"]
    sizes = {entry["partition"]: entry["size"] for entry in log_dir["partitions"]}
    on_disk = {
        f"{filled.topic}-{number}": sum(
            file.stat().st_size for file in (broker.log_dir / f"{filled.topic}-{number}").glob("*.log")
        )
        for number in (0, 1)
    }
    assert (described["broker"], log_dir["error"]) == (1, None)
    assert on_disk == sizes


def test_kafka_broker_api_versions(tool):
    """Does kafka-broker-api-versions understand what we serve, and is everything a client needs usable?"""
    output = tool(API_VERSIONS)

    for api in ("Produce(0)", "Fetch(1)", "ListOffsets(2)", "Metadata(3)", "CreateTopics(19)", "InitProducerId(22)"):
        assert re.search(rf"{re.escape(api)}: \d+ to \d+ \[usable: \d+\]", output)


def test_kafka_cluster(tool, java, broker):
    """Does kafka-cluster show the id the log directory carries?"""
    output = java.check(CLUSTER, "cluster-id", "--bootstrap-server", broker.bootstrap).out
    properties = (broker.log_dir / "meta.properties").read_text()

    assert re.search(r"Cluster ID: (\S+)", output)[1] == re.search(r"cluster\.id=(\S+)", properties)[1]


def test_kafka_transactions_describe_producers(tool, filled):
    """Does describe-producers show the idempotent producer and its last sequence number?"""
    output = tool(TRANSACTIONS, "describe-producers", "--topic", filled.topic, "--partition", 0)

    (line,) = output.strip().splitlines()[1:]
    producer_id, epoch, _, sequence, *_ = line.split()
    assert int(producer_id) >= 0
    assert (epoch, sequence) == ("0", "199")
