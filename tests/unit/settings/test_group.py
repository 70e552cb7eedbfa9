"""What a group may be told."""

from collections.abc import Callable

import pytest

from headrace.model.errors import ErrorCode, KafkaError
from headrace.settings.alter import Change, Operation, alter_group
from headrace.settings.broker import BrokerConfig, Source
from headrace.settings.describe import Synonym, describe_group
from headrace.settings.group import resolve_group_values, validate_group_overrides

Node = Callable[..., BrokerConfig]

RESET = "share.auto.offset.reset"


def refusal(overrides: dict[str, str], broker: BrokerConfig) -> str:
    """Why a group cannot be given these."""
    with pytest.raises(KafkaError) as caught:
        validate_group_overrides(overrides, broker)
    assert caught.value.code == ErrorCode.INVALID_CONFIG
    return caught.value.message


def test_group_follows_its_broker(node: Node) -> None:
    """Does a group that says nothing get what the broker says, and one that says something that?"""
    broker = node(settings={"group.consumer.session.timeout.ms": "50000"})

    silent = resolve_group_values({}, broker)
    own = resolve_group_values({"consumer.session.timeout.ms": " 55000 "}, broker)

    assert silent["consumer.session.timeout.ms"] == 50_000
    assert silent[RESET] == "latest"
    assert own["consumer.session.timeout.ms"] == 55_000
    assert own["share.session.timeout.ms"] == 45_000


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"consumer.nap.ms": "1"}, "Unknown group config name: consumer.nap.ms"),
        (
            {"consumer.session.timeout.ms": "soon"},
            "Invalid value soon for configuration consumer.session.timeout.ms: Not a number of type INT",
        ),
        (
            {"share.delivery.count.limit": "1"},
            "Invalid value 1 for configuration share.delivery.count.limit: Value must be at least 2",
        ),
        (
            {"consumer.session.timeout.ms": "44999"},
            "consumer.session.timeout.ms must be greater than or equal to group.consumer.min.session.timeout.ms",
        ),
        (
            {"share.heartbeat.interval.ms": "15001"},
            "share.heartbeat.interval.ms must be less than or equal to group.share.max.heartbeat.interval.ms",
        ),
        (
            {"streams.num.standby.replicas": "3"},
            "streams.num.standby.replicas must be less than or equal to group.streams.max.standby.replicas",
        ),
        (
            {"share.isolation.level": "READ_COMMITTED"},
            (
                "Invalid value READ_COMMITTED for configuration share.isolation.level: "
                "String must be one of: read_committed, read_uncommitted"
            ),
        ),
    ],
)
def test_what_cannot_be_is_refused(node: Node, overrides: dict[str, str], message: str) -> None:
    """Is a setting that the broker does not allow refused in Kafka's words?"""
    assert refusal(overrides, node()) == message


@pytest.mark.parametrize("value", ["earliest", "latest", " latest ", "by_duration:PT1H", "by_duration:p1d"])
def test_places_to_begin(node: Node, value: str) -> None:
    """Is each way to say where to begin allowed?"""
    validate_group_overrides({RESET: value}, node())


@pytest.mark.parametrize(
    "value", ["none", "EARLIEST", "", "by_duration", "by_duration:", "by_duration:1h", "by_duration:-PT1S"]
)
def test_no_places_to_begin(node: Node, value: str) -> None:
    """Is any other refused?"""
    assert refusal({RESET: value}, node()) == (
        f"Invalid value {value} for configuration {RESET}: Invalid value `{value}` for configuration {RESET}. "
        "The value must be either 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."
    )


@pytest.mark.parametrize("kind", ["consumer", "share", "streams"])
def test_sessions_outlast_heartbeats(node: Node, kind: str) -> None:
    """Is a session that ends before the next heartbeat refused, whoever said the other of the two?"""
    broker = node(settings={f"group.{kind}.max.heartbeat.interval.ms": "60000"})

    message = refusal({f"{kind}.heartbeat.interval.ms": "45000"}, broker)

    assert message == f"{kind}.session.timeout.ms must be greater than {kind}.heartbeat.interval.ms"
    validate_group_overrides({f"{kind}.heartbeat.interval.ms": "44999"}, broker)


def test_brokers_faults_are_not_the_groups(node: Node) -> None:
    """Can a group be changed on a broker whose own file is outside its own bounds?"""
    broker = node(
        settings={"group.consumer.session.timeout.ms": "1000", "group.consumer.heartbeat.interval.ms": "2000"}
    )

    validate_group_overrides({"share.delivery.count.limit": "7"}, broker)


def test_changes_add_up(node: Node) -> None:
    """Is one setting changed, another removed, and the whole checked?"""
    before = {"share.delivery.count.limit": "7", RESET: "earliest"}
    changes = [Change("share.delivery.count.limit", Operation.SET, "8"), Change(RESET, Operation.DELETE, None)]

    assert alter_group(before, changes, node()) == {"share.delivery.count.limit": "8"}
    with pytest.raises(KafkaError, match="because its type is not LIST"):
        alter_group(before, [Change(RESET, Operation.APPEND, "latest")], node())


def test_description(node: Node) -> None:
    """Does every setting tell its value, where that is from and what stands behind it?"""
    broker = node(settings={"group.share.session.timeout.ms": "50000"})

    entries = {one.name: one for one in describe_group({"share.session.timeout.ms": "55000"}, broker)}

    own, silent = entries["share.session.timeout.ms"], entries[RESET]
    assert (own.value, own.source) == ("55000", Source.GROUP)
    assert own.synonyms == (
        Synonym("share.session.timeout.ms", "55000", Source.GROUP),
        Synonym("group.share.session.timeout.ms", "50000", Source.STATIC_BROKER),
        Synonym("group.share.session.timeout.ms", "45000", Source.DEFAULT),
    )
    assert (silent.value, silent.source, silent.synonyms) == (
        "latest",
        Source.DEFAULT,
        (Synonym(RESET, "latest", Source.DEFAULT),),
    )
    assert entries["consumer.session.timeout.ms"].synonyms == (
        Synonym("group.consumer.session.timeout.ms", "45000", Source.DEFAULT),
    )
    assert not any(one.read_only or one.is_sensitive for one in entries.values())
