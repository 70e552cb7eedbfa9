import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.model.errors import ErrorCode, KafkaError
from headrace.settings.broker import BrokerConfig, Source
from headrace.settings.fault import ConfigFault
from headrace.settings.properties import parse_properties

Node = Callable[..., BrokerConfig]

STOCK_COMBINED = """
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,\\
    SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/tmp/kraft-combined-logs
num.partitions=1
num.recovery.threads.per.data.dir=1
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""
"""What the server.properties of a Kafka 4.x download sets."""


def test_a_stock_kafka_file_starts_unchanged() -> None:
    """Does Kafka's own combined server.properties load, with one line about what is not served yet?"""
    config = BrokerConfig.from_properties(parse_properties(STOCK_COMBINED))

    assert config.node_id == 1
    assert config["num.partitions"] == 1
    assert config["log.retention.hours"] == 168
    assert config.log_dirs == ("/tmp/kraft-combined-logs",)
    assert config.metadata_log_dir == "/tmp/kraft-combined-logs"
    assert config.warnings == ["Not served yet, so without effect: num.network.threads, num.io.threads."]


def test_the_old_way_to_name_voters_starts_too() -> None:
    """Does the file of a Kafka 3.x node in KRaft mode load?"""
    old = STOCK_COMBINED.replace("bootstrap.servers=localhost:9093", "voters=1@localhost:9093")

    assert len(BrokerConfig.from_properties(parse_properties(old)).quorum_voters) == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("auto.create.topics.enable", True),
        ("message.max.bytes", 1048588),
        ("log.cleaner.min.cleanable.ratio", 0.5),
        ("compression.type", "producer"),
        ("log.cleanup.policy", ("delete",)),
        ("broker.rack", None),
    ],
)
def test_a_setting_nobody_set_has_its_default(node: Node, name: str, value: object) -> None:
    """Is a default of each kind there, typed, and marked as one?"""
    assert node()[name] == value
    assert node().source(name) is Source.DEFAULT


def test_a_name_that_is_no_setting_is_our_mistake(node: Node) -> None:
    """Does asking for a setting that does not exist fail loudly?"""
    with pytest.raises(KeyError):
        node()["num.partition"]


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("process.roles", "Add a line such as process.roles=broker,controller."),
        ("node.id", "Add a line such as node.id=1."),
        ("controller.listener.names", "Add a line such as controller.listener.names=CONTROLLER."),
    ],
)
def test_what_has_no_default_must_be_set(node: Node, name: str, remedy: str) -> None:
    """Does a missing required setting say which and how to set it?"""
    with pytest.raises(ConfigFault) as caught:
        node(settings={name: None})

    assert caught.value.problem == f'Missing required configuration "{name}" which has no default value'
    assert caught.value.remedy == remedy


def test_a_zookeeper_file_is_told_so() -> None:
    """Does a file from ZooKeeper days say that it is one, rather than what else is missing?"""
    with pytest.raises(ConfigFault, match="keeps its metadata in ZooKeeper"):
        BrokerConfig.from_properties({"broker.id": "0", "zookeeper.connect": "localhost:2181"})


def test_the_old_id_stands_in_for_the_new(node: Node) -> None:
    """Does broker.id alone number the node, and node.id alone show up as broker.id?"""
    old = node(settings={"node.id": None, "broker.id": "1"})

    assert old.node_id == 1
    assert node()["broker.id"] == 1
    assert node().source("broker.id") is Source.STATIC_BROKER


def test_log_dirs_win_over_log_dir(node: Node) -> None:
    """Which data directories count when both are given, one, or none?"""
    assert node().log_dirs == ("/tmp/kafka-logs",)
    assert node(settings={"log.dir": "a"}).log_dirs == ("a",)
    assert node(settings={"log.dir": "a", "log.dirs": "b, c"}).log_dirs == ("b", "c")
    assert node(settings={"log.dirs": "b,c", "metadata.log.dir": "m"}).metadata_log_dir == "m"


def test_a_bad_value_names_the_setting_and_the_way_out(node: Node) -> None:
    """Does a typo in a value give a sentence about it and one about what would be right?"""
    with pytest.raises(ConfigFault) as caught:
        node(settings={"num.partitions": "many"})

    assert str(caught.value) == (
        "Invalid value many for configuration num.partitions: Not a number of type INT. "
        "Give it a whole number from 1 up."
    )


def test_names_are_explained(node: Node) -> None:
    """Are dropped and unknown names explained one by one, with the nearest name we know?"""
    config = node(
        settings={
            "zookeeper.connect": "localhost:2181",
            "num.partition": "3",
            "qqqqqqqqqq": "1",
            "listener.name.plaintext.sasl.enabled.mechanisms": "PLAIN",
            "listener.name.plaintext.scram-sha-256.sasl.jaas.config": "x",
            "config.providers.file.class": "X",
        }
    )

    assert config.warnings == [
        (
            "Not served yet, so without effect: listener.name.plaintext.sasl.enabled.mechanisms, "
            "listener.name.plaintext.scram-sha-256.sasl.jaas.config."
        ),
        (
            "zookeeper.connect is a setting of older Kafka versions and has no effect; "
            "use process.roles and controller.quorum.voters."
        ),
        "num.partition is not a known setting; did you mean num.partitions?",
        "qqqqqqqqqq is not a known setting.",
    ]


def test_a_setting_with_a_listener_prefix_is_checked_but_stays_apart(node: Node) -> None:
    """Is a listener's own value held to the same rules, without changing the general one?"""
    config = node(settings={"listener.name.plaintext.max.connections": "5"})

    assert config["max.connections"] == 8192
    with pytest.raises(ConfigFault, match="Not a number"):
        node(settings={"listener.name.plaintext.max.connections": "x"})


def test_overrides_of_the_command_line_win_over_the_file(tmp_path: Path) -> None:
    """Does --override beat what the file says?"""
    path = tmp_path / "server.properties"
    path.write_text(STOCK_COMBINED)

    assert BrokerConfig.load(path, {"num.partitions": "7"})["num.partitions"] == 7


def test_dynamic_settings_win_in_order(node: Node) -> None:
    """Does this broker's layer beat the cluster's, which beats the file, and is the first config left alone?"""
    static = node(settings={"log.segment.bytes": "2000000", "log.retention.bytes": "5"})
    config = static.with_dynamic({"log.segment.bytes": "4000000"}, {"log.segment.bytes": "3000000"})

    assert config["log.segment.bytes"] == 4000000
    assert config.source("log.segment.bytes") is Source.DYNAMIC_BROKER
    assert static.with_dynamic({}, {"log.segment.bytes": "3000000"})["log.segment.bytes"] == 3000000
    assert config.source("log.retention.bytes") is Source.STATIC_BROKER
    assert static["log.segment.bytes"] == 2000000
    assert config.with_dynamic({})["log.segment.bytes"] == 2000000


@pytest.mark.parametrize(
    ("broker", "default", "message"),
    [
        ({"num.partitions": "3"}, {}, "Cannot update these configs dynamically: [num.partitions]"),
        ({"listeners": "PLAINTEXT://:1"}, {}, "Cannot update these configs dynamically: [listeners]"),
        ({}, {"node.id": "3"}, "Cannot update these configs dynamically: [node.id]"),
        (
            {},
            {"ssl.keystore.location": "/x"},
            (
                "Cannot update these configs at default cluster level, broker id must be specified: "
                "[ssl.keystore.location]"
            ),
        ),
        (
            {"log.retention.ms": "abc"},
            {},
            "Invalid value abc for configuration log.retention.ms: Not a number of type LONG",
        ),
        (
            {"log.cleaner.threads": "1000"},
            {},
            "log.cleaner.dedupe.buffer.size must be more than 1 MiB per cleaner thread",
        ),
        ({"log.retension.ms": "1"}, {}, "Unknown broker config name: log.retension.ms; did you mean log.retention.ms?"),
    ],
)
def test_what_cannot_change_at_run_time_is_refused(
    node: Node, broker: dict[str, str], default: dict[str, str], message: str
) -> None:
    """Is a dynamic change that may not be refused as Kafka refuses it?"""
    with pytest.raises(KafkaError) as caught:
        node().with_dynamic(broker, default)

    assert caught.value.code is ErrorCode.INVALID_REQUEST
    assert caught.value.message == message


def test_a_config_does_not_give_secrets_away(node: Node) -> None:
    """Is a password absent when a config is printed or logged?"""
    assert "hunter2" not in repr(node(settings={"ssl.key.password": "hunter2"}))


def test_loading_the_table_stays_cheap() -> None:
    """Does reading settings pull in none of the slow modules, so that a tool can answer at once?"""
    slow = {"asyncio", "dataclasses", "difflib", "inspect", "ipaddress", "json", "logging", "pathlib", "msgspec"}
    script = f"import sys, headrace.settings.broker; print(sorted({slow} & set(sys.modules)))"
    # -S, because site's own imports are not ours.
    run = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}; {script}"],
        capture_output=True,
        text=True,
        check=True,
    )

    assert run.stdout.strip() == "[]"
