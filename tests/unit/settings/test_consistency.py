from collections.abc import Callable

import pytest

from headrace.settings.broker import BrokerConfig
from headrace.settings.fault import ConfigFault

Node = Callable[..., BrokerConfig]


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"broker.id": "2"}, "node.id is 1 but broker.id is 2"),
        ({"log.roll.ms": "0"}, "log.roll.ms must be greater than or equal to 1"),
        ({"log.roll.jitter.ms": "-1"}, "log.roll.jitter.ms must be greater than or equal to 0"),
        ({"log.retention.ms": "0"}, "log.retention.ms must be unlimited (-1) or greater than 0"),
        ({"log.retention.hours": "0"}, "log.retention.hours must be unlimited (-1) or greater than 0"),
        (
            {"log.cleaner.threads": "128"},
            "log.cleaner.dedupe.buffer.size must be more than 1 MiB per cleaner thread",
        ),
        (
            {"log.cleaner.min.compaction.lag.ms": "9", "log.cleaner.max.compaction.lag.ms": "8"},
            "log.cleaner.min.compaction.lag.ms (9) is more than log.cleaner.max.compaction.lag.ms (8)",
        ),
        (
            {"queued.max.request.bytes": "1000"},
            "queued.max.request.bytes (1000) is less than socket.request.max.bytes (104857600)",
        ),
        (
            {"max.connections.per.ip": "0"},
            "max.connections.per.ip can be zero only if max.connections.per.ip.overrides names exceptions",
        ),
        ({"max.connections.per.ip.overrides": "a"}, "Cannot read 'a' in max.connections.per.ip.overrides"),
        ({"max.connections.per.ip.overrides": "a:-1"}, "Cannot read 'a:-1' in max.connections.per.ip.overrides"),
        (
            {"connections.max.idle.ms": "100"},
            "connection.failed.authentication.delay.ms (100) must be less than connections.max.idle.ms (100)",
        ),
        (
            {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"},
            "authorizer.class.name asks for access control, which is not served yet",
        ),
    ],
)
def test_values_that_do_not_go_together_are_refused(node: Node, settings: dict[str, str], problem: str) -> None:
    """Does each rule between settings stop the start, with what is wrong and what to do?"""
    with pytest.raises(ConfigFault) as caught:
        node(settings=settings)

    assert caught.value.problem == problem
    assert caught.value.remedy.endswith(".")


@pytest.mark.parametrize(
    "settings",
    [
        {"log.retention.ms": "-1"},
        {"queued.max.request.bytes": "-1"},
        {"queued.max.request.bytes": "104857600"},
        {"connections.max.idle.ms": "-1"},
        {"log.cleaner.threads": "0"},
        {"max.connections.per.ip": "0", "max.connections.per.ip.overrides": "127.0.0.1:5"},
    ],
)
def test_the_edges_are_allowed(node: Node, settings: dict[str, str]) -> None:
    """Are the values that mean "no limit" or lie just on the bound taken?"""
    config = node(settings=settings)

    assert all(str(config[name]) == text for name, text in settings.items())


def test_exceptions_per_address_are_read(node: Node) -> None:
    """Are the addresses with limits of their own understood, IPv6 ones too?"""
    config = node(settings={"max.connections.per.ip.overrides": "10.0.0.1:100, ::1:7"})

    assert config.connections_per_ip_overrides == {"10.0.0.1": 100, "::1": 7}
