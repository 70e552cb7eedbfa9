from collections.abc import Callable

import pytest

from headrace.settings.broker import BrokerConfig
from headrace.settings.fault import ConfigFault
from headrace.settings.topology import Address, Listener, Voter

Node = Callable[..., BrokerConfig]


def test_a_combined_node(node: Node) -> None:
    """Are addresses, names and voters of an ordinary node read?"""
    config = node()

    assert config.node_id == 1
    assert config.roles == {"broker", "controller"}
    assert config.listeners == (
        Listener("PLAINTEXT", "", 9092, "PLAINTEXT"),
        Listener("CONTROLLER", "", 9093, "PLAINTEXT"),
    )
    assert config.advertised == (Listener("PLAINTEXT", "", 9092, "PLAINTEXT"),)
    assert config.topology.advertised_controllers == (Listener("CONTROLLER", "", 9093, "PLAINTEXT"),)
    assert config.controller_listener_names == ("CONTROLLER",)
    assert config.inter_broker_listener == "PLAINTEXT"
    assert config.quorum_voters == (Voter(1, "localhost", 9093),)


def test_advertised_listeners_are_told_in_place_of_the_bound_ones(node: Node) -> None:
    """Are clients told the advertised address, and controllers theirs?"""
    config = node(settings={"advertised.listeners": "PLAINTEXT://a.example:19092,CONTROLLER://b.example:19093"})

    assert config.advertised == (Listener("PLAINTEXT", "a.example", 19092, "PLAINTEXT"),)
    assert config.topology.advertised_controllers == (Listener("CONTROLLER", "b.example", 19093, "PLAINTEXT"),)


def test_listener_names_in_any_case_and_ipv6(node: Node) -> None:
    """Are names folded to upper case, and IPv6 hosts read out of their brackets?"""
    config = node(
        settings={
            "listeners": "inside://[::1]:9092,Controller://127.0.0.1:9093",
            "listener.security.protocol.map": "INSIDE:PLAINTEXT,controller:PLAINTEXT",
            "inter.broker.listener.name": "Inside",
        }
    )

    assert config.listeners[0] == Listener("INSIDE", "::1", 9092, "PLAINTEXT")
    assert config.inter_broker_listener == "INSIDE"
    assert config.advertised[0].name == "INSIDE"


@pytest.mark.parametrize("role", ["combined", "broker", "controller"])
def test_each_role_starts(node: Node, role: str) -> None:
    """Does the plainest node of each role pass its own rules?"""
    assert node(role).roles == set(node(role)["process.roles"])


def test_bootstrap_servers_in_place_of_voters(node: Node) -> None:
    """Can the controllers be named without their ids?"""
    config = node(settings={"controller.quorum.voters": None, "controller.quorum.bootstrap.servers": "a:1,[::1]:2"})

    assert config.quorum_voters == ()
    assert config.quorum_bootstrap_servers == (Address("a", 1), Address("::1", 2))


def test_port_zero_may_be_shared_and_ipv4_with_ipv6(node: Node) -> None:
    """May listeners take any free port, and may one of each address family share a port?"""
    free = node(settings={"listeners": "PLAINTEXT://:0,CONTROLLER://:0"})
    both = node(settings={"listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://[::1]:9092"})

    assert [one.port for one in free.listeners] == [0, 0]
    assert [one.port for one in both.listeners] == [9092, 9092]


def test_a_wildcard_controller_listener_is_not_advertised_as_such(node: Node) -> None:
    """Is 0.0.0.0 on a controller's listener turned into "this machine", as before Kafka 3.9?"""
    config = node("controller", {"listeners": "CONTROLLER://0.0.0.0:9093"})

    assert config.topology.advertised_controllers == (Listener("CONTROLLER", "", 9093, "PLAINTEXT"),)


FAULTS = [
    ("combined", {"listeners": "PLAINTEXT//:9092"}, "Cannot read 'PLAINTEXT//:9092' in listeners"),
    ("combined", {"listeners": "PLAINTEXT://:65536"}, "Cannot read 'PLAINTEXT://:65536' in listeners"),
    ("combined", {"listeners": "PLAINTEXT://:-1"}, "Cannot read 'PLAINTEXT://:-1' in listeners"),
    ("combined", {"listeners": "PLAINTEXT://a b:1"}, "Cannot read 'PLAINTEXT://a b:1' in listeners"),
    ("combined", {"listeners": "OUTSIDE://:1"}, "No security protocol is defined for listener OUTSIDE"),
    ("combined", {"listeners": "PLAINTEXT://:1,plaintext://:2"}, "Listener PLAINTEXT appears twice in listeners"),
    ("combined", {"listeners": "PLAINTEXT://:1,CONTROLLER://:1"}, "Listeners PLAINTEXT and CONTROLLER share port 1"),
    (
        "combined",
        {"listeners": "PLAINTEXT://127.0.0.1:1,CONTROLLER://127.0.0.2:1"},
        "Listeners PLAINTEXT and CONTROLLER share port 1",
    ),
    (
        "combined",
        {"listener.security.protocol.map": "PLAINTEXT:PLAIN"},
        "Invalid security protocol in 'PLAINTEXT:PLAIN' of listener.security.protocol.map",
    ),
    (
        "combined",
        {"listener.security.protocol.map": "PLAINTEXT:SSL,CONTROLLER:PLAINTEXT"},
        "Listener PLAINTEXT asks for SSL, which is not served yet",
    ),
    (
        "combined",
        {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT"},
        "No security protocol is defined for listener CONTROLLER",
    ),
    (
        "combined",
        {"listeners": "SSL://:9092,CONTROLLER://:9093"},
        "Listener SSL asks for SSL, which is not served yet",
    ),
    (
        "combined",
        {"inter.broker.listener.name": "X"},
        "Listener X of inter.broker.listener.name is not in listener.security.protocol.map",
    ),
    (
        "combined",
        {"inter.broker.listener.name": "CONTROLLER"},
        "inter.broker.listener.name must be a listener of advertised.listeners, not CONTROLLER",
    ),
    (
        "combined",
        {"inter.broker.listener.name": "PLAINTEXT", "security.inter.broker.protocol": "PLAINTEXT"},
        "Only one of inter.broker.listener.name and security.inter.broker.protocol should be set",
    ),
    (
        "combined",
        {"advertised.listeners": "PLAINTEXT://0.0.0.0:9092"},
        "advertised.listeners cannot use the nonroutable address 0.0.0.0",
    ),
    (
        "combined",
        {"listeners": "PLAINTEXT://0.0.0.0:9092,CONTROLLER://:9093"},
        "advertised.listeners cannot use the nonroutable address 0.0.0.0",
    ),
    (
        "broker",
        {
            "advertised.listeners": "PLAINTEXT://a:1,X://a:2",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,X:PLAINTEXT,CONTROLLER:PLAINTEXT",
        },
        "advertised.listeners has X, which listeners does not",
    ),
    (
        "combined",
        {"listeners": "CONTROLLER://:9093"},
        "A broker needs a listener that is not in controller.listener.names",
    ),
    (
        "combined",
        {"listeners": "PLAINTEXT://:9092"},
        "controller.listener.names has CONTROLLER, which listeners does not",
    ),
    ("combined", {"controller.quorum.voters": None}, "With process.roles, the controllers must be named"),
    (
        "combined",
        {"controller.quorum.voters": "localhost:9093"},
        "Cannot read 'localhost:9093' in controller.quorum.voters",
    ),
    ("combined", {"controller.quorum.voters": "x@a:1"}, "Cannot read 'x@a:1' in controller.quorum.voters"),
    ("combined", {"controller.quorum.voters": "1@a"}, "Cannot read '1@a' in controller.quorum.voters"),
    ("combined", {"controller.quorum.voters": "1@a:99999"}, "Cannot read '1@a:99999' in controller.quorum.voters"),
    (
        "combined",
        {"controller.quorum.bootstrap.servers": "a"},
        "Cannot read 'a' in controller.quorum.bootstrap.servers",
    ),
    (
        "combined",
        {"controller.quorum.voters": "7@a:1"},
        "This node is a controller, but its id 1 is not in controller.quorum.voters",
    ),
    (
        "broker",
        {"controller.quorum.voters": "2@a:1"},
        "This node is just a broker, but its id 2 is in controller.quorum.voters",
    ),
    (
        "broker",
        {"listeners": "PLAINTEXT://a:1,CONTROLLER://a:2"},
        "This node is just a broker, but listeners has the controllers' CONTROLLER",
    ),
    (
        "broker",
        {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT"},
        "Controller listener CONTROLLER is not in listener.security.protocol.map",
    ),
    (
        "controller",
        {"listeners": "CONTROLLER://:9093,PLAINTEXT://:9092"},
        "This node is just a controller, but listeners has PLAINTEXT",
    ),
]


@pytest.mark.parametrize(("role", "settings", "problem"), FAULTS)
def test_a_node_that_cannot_be_is_told_why(
    node: Node, role: str, settings: dict[str, str | None], problem: str
) -> None:
    """Does each rule Kafka has about listeners and voters stop the start, with what is wrong and what to do?"""
    with pytest.raises(ConfigFault) as caught:
        node(role, settings)

    assert caught.value.problem == problem
    assert caught.value.remedy.endswith(".")
