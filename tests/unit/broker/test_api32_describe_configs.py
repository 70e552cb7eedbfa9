"""DescribeConfigs."""

import pytest

from headrace.broker.handlers.api32_describe_configs import API
from headrace.model.errors import ErrorCode
from headrace.model.metadata_records import ConfigRecord
from headrace.settings.broker import Source
from headrace.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32


def described(desk, kind, name, *, keys=None, version=None, **options):
    """The answer for one resource."""
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
    (result,) = desk.ask(API, DescribeConfigsRequest(resources=(resource,), **options), version=version).results
    assert (result.resource_type, result.resource_name) == (kind, name)
    return result


def settings(result):
    """Value and source by name."""
    assert (result.error_code, result.error_message) == (0, "")
    return {config.name: (config.value, config.config_source) for config in result.configs}


@pytest.mark.parametrize("version", range(API.low, API.high + 1))
def test_topic_is_described_whole(desk, version):
    """Does every version tell all settings of a topic, own ones and defaults, with their source?"""
    desk.create("orders", retention_ms="5000")

    found = settings(described(desk, TOPIC, "orders", version=version))

    assert found["retention.ms"] == ("5000", Source.TOPIC)
    assert found["segment.bytes"] == ("1073741824", Source.DEFAULT)
    assert len(found) > 30


def test_topic_follows_the_brokers_file(open_desk):
    """Is a value from the broker's file told as such, with the chain behind it where asked for?"""
    desk = open_desk({"log.retention.ms": "7000"})
    desk.create("orders", retention_ms="5000")

    result = described(desk, TOPIC, "orders", keys=("retention.ms",), include_synonyms=True)

    (config,) = result.configs
    assert [(s.name, s.value, s.source) for s in config.synonyms][:2] == [
        ("retention.ms", "5000", Source.TOPIC),
        ("log.retention.ms", "7000", Source.STATIC_BROKER),
    ]
    assert described(desk, TOPIC, "orders", keys=("retention.ms",)).configs[0].synonyms == ()


@pytest.mark.parametrize(("keys", "count"), [(("retention.ms", "no.such"), 1), (("no.such",), 0)])
def test_only_what_is_asked_for_is_told(desk, keys, count):
    """Does a list of names narrow the answer?"""
    desk.create("orders")

    assert len(described(desk, TOPIC, "orders", keys=keys).configs) == count


def test_no_names_mean_all(desk):
    """Do both no list and an empty list of names ask for everything?"""
    desk.create("orders")

    everything = described(desk, TOPIC, "orders", keys=None).configs

    assert everything == described(desk, TOPIC, "orders", keys=()).configs


def test_types_and_sentences_are_told_where_asked_for(desk):
    """Does the answer carry a setting's type, and its sentence only on request?"""
    desk.create("orders")

    (with_words,) = described(desk, TOPIC, "orders", keys=("retention.ms",), include_documentation=True).configs
    (without,) = described(desk, TOPIC, "orders", keys=("retention.ms",)).configs

    assert with_words.config_type == 5
    assert "kept" in with_words.documentation
    assert without.documentation is None


def test_broker_is_described_from_its_file(open_desk):
    """Does this broker tell its file's values, its defaults, and which need a restart?"""
    desk = open_desk({"num.partitions": "3"})

    result = described(desk, BROKER, "1")

    found = settings(result)
    read_only = {config.name: config.read_only for config in result.configs}
    assert found["num.partitions"] == ("3", Source.STATIC_BROKER)
    assert found["log.retention.hours"] == ("168", Source.DEFAULT)
    assert (read_only["num.partitions"], read_only["message.max.bytes"]) == (True, False)
    assert len(found) > 150


def test_cluster_default_is_empty_at_first(desk):
    """Does the broker without a name tell only what was set for all?"""
    assert settings(described(desk, BROKER, "")) == {}


def test_group_is_described_though_nobody_is_in_it(open_desk):
    """Does any group tell its settings, its own and its broker's, with their sources?"""
    desk = open_desk({"group.share.session.timeout.ms": "50000"})
    own = ConfigRecord(resource_type=GROUP, resource_name="g", name="share.delivery.count.limit", value="7")
    desk.broker.metadata.replay(own)

    found = settings(described(desk, GROUP, "g"))

    assert found["share.delivery.count.limit"] == ("7", Source.GROUP)
    assert found["share.session.timeout.ms"] == ("50000", Source.STATIC_BROKER)
    assert found["consumer.session.timeout.ms"] == ("45000", Source.DEFAULT)
    assert len(found) == 17
    assert settings(described(desk, GROUP, "other"))["share.delivery.count.limit"] == ("5", Source.DEFAULT)


@pytest.mark.parametrize("kind", [LOGGER, METRICS])
def test_other_resources_have_no_settings_yet(desk, kind):
    """Are resources that have no settings answered with none?"""
    assert settings(described(desk, kind, "1")) == {}


@pytest.mark.parametrize(
    ("kind", "name", "code", "message"),
    [
        (TOPIC, "x", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition."),
        (TOPIC, "", ErrorCode.INVALID_TOPIC_EXCEPTION, "Topic name is invalid: the empty string is not allowed"),
        (
            BROKER,
            "5",
            ErrorCode.INVALID_REQUEST,
            "Unexpected broker id, expected 1 or empty string, but received 5",
        ),
        (BROKER, "one", ErrorCode.INVALID_REQUEST, "Broker id must be an integer, but it is: one"),
        (LOGGER, "", ErrorCode.INVALID_REQUEST, "Broker id must not be empty"),
        (LOGGER, "5", ErrorCode.INVALID_REQUEST, "Unexpected broker id, expected 1 but received 5"),
        (METRICS, "", ErrorCode.INVALID_REQUEST, "Client metrics subscription name must not be empty"),
        (GROUP, "", ErrorCode.INVALID_REQUEST, "Group name must not be empty"),
        (99, "x", ErrorCode.INVALID_REQUEST, "Unexpected resource type 99 for resource x"),
    ],
)
def test_what_cannot_be_described_is_told_why(desk, kind, name, code, message):
    """Is each resource that cannot be described refused in Kafka's words?"""
    result = described(desk, kind, name)

    assert (result.error_code, result.error_message, result.configs) == (code, message, ())


def test_small_request_cannot_ask_for_an_endless_answer(desk):
    """Is a resource that is named a thousand times described once?"""
    resource = DescribeConfigsResource(resource_type=BROKER, resource_name="1", configuration_keys=None)

    answer = desk.ask(API, DescribeConfigsRequest(resources=(resource,) * 1000))

    assert len(answer.results) == 1


def test_controller_listener_answers_too():
    """Is the API there for tools that are given --bootstrap-controller?"""
    assert API.controller
