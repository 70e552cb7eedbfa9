"""What DescribeConfigs shows; the expected answers are those of a live Apache Kafka 4.3.1."""

from collections.abc import Callable

import pytest

from headrace.settings.broker import BrokerConfig
from headrace.settings.catalog import BROKER_SETTINGS
from headrace.settings.describe import (
    ConfigEntry,
    Synonym,
    describe_broker,
    describe_cluster_default,
    describe_topic,
)
from headrace.settings.setting import Kind
from headrace.settings.topic import TOPIC_SETTINGS

Node = Callable[..., BrokerConfig]

TOPIC, DYNAMIC_BROKER, DYNAMIC_DEFAULT, STATIC, DEFAULT = 1, 2, 3, 4, 5


@pytest.fixture
def config(node: Node) -> BrokerConfig:
    """A node with something in every layer."""
    static = node(
        settings={
            "log.retention.hours": "24",
            "log.retention.minutes": "100",
            "ssl.key.password": "hunter2",
            "headrace.unknown": "hunter2",
        }
    )
    return static.with_dynamic(
        {"log.retention.ms": "9000", "log.cleaner.threads": "2"},
        {"log.retention.ms": "8000", "log.segment.bytes": "2000000", "leader.replication.throttled.rate": "5"},
    )


def by_name(entries: list[ConfigEntry]) -> dict[str, ConfigEntry]:
    """The entries under their names."""
    return {entry.name: entry for entry in entries}


def test_a_topic_shows_every_setting(config: BrokerConfig) -> None:
    """Is every topic setting listed once, in order, without the hidden ones nobody set?"""
    names = [entry.name for entry in describe_topic({}, config)]

    assert names == sorted(set(TOPIC_SETTINGS) - {"internal.segment.bytes"})
    assert "internal.segment.bytes" in by_name(describe_topic({"internal.segment.bytes": "5"}, config))


def test_an_override_and_all_that_stands_behind_it(config: BrokerConfig) -> None:
    """Is the chain of an overridden setting Kafka's, layer by layer?"""
    entry = by_name(describe_topic({"retention.ms": " 77 "}, config))["retention.ms"]

    assert entry == ConfigEntry(
        name="retention.ms",
        value="77",
        read_only=False,
        is_sensitive=False,
        source=TOPIC,
        synonyms=(
            Synonym("retention.ms", "77", TOPIC),
            Synonym("log.retention.ms", "9000", DYNAMIC_BROKER),
            Synonym("log.retention.ms", "8000", DYNAMIC_DEFAULT),
            Synonym("log.retention.minutes", "100", STATIC),
            Synonym("log.retention.hours", "24", STATIC),
            Synonym("log.retention.hours", "168", DEFAULT),
        ),
        config_type=Kind.LONG,
        documentation=TOPIC_SETTINGS["retention.ms"].doc,
    )


@pytest.mark.parametrize(
    ("name", "value", "source", "synonyms"),
    [
        (
            "segment.bytes",
            "2000000",
            DYNAMIC_DEFAULT,
            (
                Synonym("log.segment.bytes", "2000000", DYNAMIC_DEFAULT),
                Synonym("log.segment.bytes", "1073741824", DEFAULT),
            ),
        ),
        ("max.message.bytes", "1048588", DEFAULT, (Synonym("message.max.bytes", "1048588", DEFAULT),)),
        ("min.cleanable.dirty.ratio", "0.5", DEFAULT, (Synonym("log.cleaner.min.cleanable.ratio", "0.5", DEFAULT),)),
        ("segment.jitter.ms", "0", DEFAULT, ()),
        ("flush.ms", "9223372036854775807", DEFAULT, ()),
        ("segment.ms", "604800000", DEFAULT, ()),
        ("remote.storage.enable", "false", DEFAULT, ()),
        ("leader.replication.throttled.replicas", "", DEFAULT, ()),
    ],
)
def test_a_topic_setting_that_follows_the_broker(
    config: BrokerConfig, name: str, value: str, source: int, synonyms: tuple[Synonym, ...]
) -> None:
    """Are value, source and chain Kafka's, with its quirk that a chain without the finest unit is empty?"""
    entry = by_name(describe_topic({}, config))[name]

    assert (entry.value, entry.source, entry.synonyms) == (value, source, synonyms)


def test_a_topic_that_follows_hours_only_counts_as_default(node: Node) -> None:
    """Is retention by log.retention.hours alone shown as Kafka shows it: right value, empty chain, default?"""
    entry = by_name(describe_topic({}, node(settings={"log.retention.hours": "1"})))["retention.ms"]

    assert (entry.value, entry.source, entry.synonyms) == ("3600000", DEFAULT, ())


def test_a_broker_shows_every_setting(config: BrokerConfig) -> None:
    """Is every broker setting listed once, in order, hidden ones only if someone set them?"""
    names = [entry.name for entry in describe_broker(config)]
    hidden = {name for name, setting in BROKER_SETTINGS.items() if setting.hidden}

    assert names == sorted(names)
    assert set(names) - set(BROKER_SETTINGS) == {"headrace.unknown"}
    assert set(BROKER_SETTINGS) - set(names) == hidden - {"leader.replication.throttled.rate"}


@pytest.mark.parametrize(
    ("name", "value", "read_only", "source", "synonyms"),
    [
        (
            "log.cleaner.threads",
            "2",
            False,
            DYNAMIC_BROKER,
            (Synonym("log.cleaner.threads", "2", DYNAMIC_BROKER), Synonym("log.cleaner.threads", "1", DEFAULT)),
        ),
        (
            "log.retention.minutes",
            "100",
            True,
            STATIC,
            (
                Synonym("log.retention.minutes", "100", STATIC),
                Synonym("log.retention.hours", "24", STATIC),
                Synonym("log.retention.hours", "168", DEFAULT),
            ),
        ),
        ("node.id", "1", True, STATIC, (Synonym("node.id", "1", STATIC),)),
        ("broker.id", "1", True, STATIC, (Synonym("broker.id", "1", STATIC), Synonym("broker.id", "-1", DEFAULT))),
        ("log.roll.ms", None, False, DEFAULT, ()),
        ("advertised.listeners", None, True, DEFAULT, ()),
        (
            "log.cleaner.io.max.bytes.per.second",
            "1.7976931348623157E308",
            False,
            DEFAULT,
            (Synonym("log.cleaner.io.max.bytes.per.second", "1.7976931348623157E308", DEFAULT),),
        ),
        (
            "leader.replication.throttled.rate",
            "5",
            False,
            DYNAMIC_DEFAULT,
            (Synonym("leader.replication.throttled.rate", "5", DYNAMIC_DEFAULT),),
        ),
    ],
)
def test_a_broker_setting(
    config: BrokerConfig, name: str, value: str | None, read_only: bool, source: int, synonyms: tuple[Synonym, ...]
) -> None:
    """Are a broker setting's value, mode, source and chain Kafka's?"""
    entry = by_name(describe_broker(config))[name]

    assert (entry.value, entry.read_only, entry.source, entry.synonyms) == (value, read_only, source, synonyms)


def test_secrets_and_unknown_names_show_no_value(config: BrokerConfig) -> None:
    """Does DescribeConfigs never give away a password, nor a name it cannot judge?"""
    entries = by_name(describe_broker(config))
    password, unknown = entries["ssl.key.password"], entries["headrace.unknown"]

    assert password[:5] == ("ssl.key.password", None, False, True, STATIC)
    assert password.synonyms == (Synonym("ssl.key.password", None, STATIC),)
    assert unknown == ConfigEntry(
        "headrace.unknown", None, True, True, STATIC, (Synonym("headrace.unknown", None, STATIC),), 0, ""
    )
    assert "hunter2" not in str(entries)


def test_a_listeners_own_setting_is_shown_with_its_base(node: Node) -> None:
    """Does a name with a listener prefix keep its secret and name what it overrides?"""
    config = node(settings={"listener.name.plaintext.ssl.keystore.password": "hunter2"})
    entry = by_name(describe_broker(config))["listener.name.plaintext.ssl.keystore.password"]

    assert entry.is_sensitive
    assert "hunter2" not in str(entry)


def test_the_shared_settings_alone(config: BrokerConfig) -> None:
    """Does describing the nameless broker show just what was set for all, with that as the only source?"""
    entries = describe_cluster_default(config)

    assert [(entry.name, entry.value) for entry in entries] == [
        ("leader.replication.throttled.rate", "5"),
        ("log.retention.ms", "8000"),
        ("log.segment.bytes", "2000000"),
    ]
    assert entries[1].synonyms == (Synonym("log.retention.ms", "8000", DYNAMIC_DEFAULT),)
    assert {entry.source for entry in entries} == {DYNAMIC_DEFAULT}
