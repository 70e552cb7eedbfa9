"""Small nodes to test with."""

from collections.abc import Callable

import pytest

from headrace.settings.broker import BrokerConfig

COMBINED = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.voters": "1@localhost:9093",
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
    "controller.listener.names": "CONTROLLER",
}

BROKER = {
    "process.roles": "broker",
    "node.id": "2",
    "controller.quorum.voters": "1@localhost:9093",
    "listeners": "PLAINTEXT://localhost:9092",
    "controller.listener.names": "CONTROLLER",
}

CONTROLLER = {
    "process.roles": "controller",
    "node.id": "1",
    "controller.quorum.voters": "1@localhost:9093",
    "listeners": "CONTROLLER://:9093",
    "controller.listener.names": "CONTROLLER",
}

ROLES = {"combined": COMBINED, "broker": BROKER, "controller": CONTROLLER}

Node = Callable[..., BrokerConfig]


@pytest.fixture
def node() -> Node:
    """Makes a node of a role from settings that go over its own; None takes one away."""

    def make(role: str = "combined", settings: dict[str, str | None] | None = None) -> BrokerConfig:
        texts = {name: text for name, text in (ROLES[role] | (settings or {})).items() if text is not None}
        return BrokerConfig.from_properties(texts)

    return make
