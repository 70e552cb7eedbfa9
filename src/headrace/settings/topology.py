"""Where a node listens, what it tells others, and who votes: the settings that are little languages.

Checked as Kafka checks them (KafkaConfig.validateValues): each role has its own rules about which listeners
must, may and must not be there. Names of listeners are compared in upper case.
"""

import re
from collections.abc import Collection, Iterable
from typing import Any, NamedTuple, Protocol

from headrace.settings.fault import ConfigFault

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
SERVED_PROTOCOLS = frozenset({"PLAINTEXT"})
"""What the sockets can speak now; a listener that was meant to be safe must not be served in the clear."""

_ADDRESS = r"\[?([0-9a-zA-Z\-%._:]*)\]?:([0-9]{1,5})"


class Values(Protocol):
    """Typed values of settings by name."""

    def __getitem__(self, name: str, /) -> Any: ...


class Listener(NamedTuple):
    """One address a node listens on or tells others; an empty host is every interface."""

    name: str
    host: str
    port: int
    protocol: str


class Address(NamedTuple):
    """A host and a port."""

    host: str
    port: int


class Voter(NamedTuple):
    """One controller that votes."""

    node_id: int
    host: str
    port: int


class Topology(NamedTuple):
    """All of a node's addresses and its place in the cluster."""

    node_id: int
    roles: frozenset[str]
    listeners: tuple[Listener, ...]
    advertised: tuple[Listener, ...]
    """What clients and brokers are told; without a host, the shell fills in this machine's name."""
    advertised_controllers: tuple[Listener, ...]
    controller_listener_names: tuple[str, ...]
    inter_broker_listener: str
    quorum_voters: tuple[Voter, ...]
    quorum_bootstrap_servers: tuple[Address, ...]


def read_topology(values: Values, given: Collection[str]) -> Topology:
    """The node's topology; `given` names the settings that were set and are not defaults."""
    protocols = _read_protocol_map(values, given)
    listeners = _read_listeners(values["listeners"], "listeners", protocols)
    _check_ports(listeners)
    controller_names = tuple(name.upper() for name in values["controller.listener.names"])
    told = values["advertised.listeners"]
    advertised = listeners if told is None else _read_listeners(told, "advertised.listeners", protocols)
    voters = _read_voters(values["controller.quorum.voters"])
    topology = Topology(
        node_id=values["node.id"],
        roles=frozenset(values["process.roles"]),
        listeners=listeners,
        advertised=tuple(one for one in advertised if one.name not in controller_names),
        advertised_controllers=_advertise_controllers(listeners, advertised, controller_names),
        controller_listener_names=controller_names,
        inter_broker_listener=_read_inter_broker_listener(values, given, protocols),
        quorum_voters=voters,
        quorum_bootstrap_servers=_read_bootstrap(values["controller.quorum.bootstrap.servers"]),
    )
    _check_quorum(topology)
    _check_controller_names(topology, protocols)
    _check_advertised(topology)
    return topology


def _read_protocol_map(values: Values, given: Collection[str]) -> dict[str, str]:
    protocols: dict[str, str] = {}
    for pair in filter(None, (part.strip() for part in values["listener.security.protocol.map"].split(","))):
        name, colon, protocol = pair.rpartition(":")
        if not colon or protocol.strip() not in PROTOCOLS:
            raise ConfigFault(
                f"Invalid security protocol in '{pair}' of listener.security.protocol.map",
                f"Write NAME:PROTOCOL with one of {', '.join(PROTOCOLS)}.",
            )
        protocols[name.strip().upper()] = protocol.strip()
    if "listener.security.protocol.map" not in given:
        # As Kafka: without a map of one's own, controller listeners are plaintext unless TLS or SASL is in play.
        names = {entry.partition(":")[0].upper() for entry in values["listeners"]}
        controllers = [name.upper() for name in values["controller.listener.names"]]
        if not (names | set(controllers)) & set(PROTOCOLS[1:]):
            protocols |= dict.fromkeys(controllers, "PLAINTEXT")
    return protocols


def _read_listeners(entries: Iterable[str], setting: str, protocols: dict[str, str]) -> tuple[Listener, ...]:
    listeners: dict[str, Listener] = {}
    for entry in entries:
        name, _, rest = entry.partition("://")
        match = re.fullmatch(_ADDRESS, rest)
        if not name or not match or int(match[2]) > 65535:
            raise ConfigFault(
                f"Cannot read '{entry}' in {setting}", "Write NAME://host:port with a port from 0 to 65535."
            )
        name = name.upper()
        if name not in protocols:
            raise ConfigFault(
                f"No security protocol is defined for listener {name}",
                f"Add {name}:PLAINTEXT to listener.security.protocol.map.",
            )
        if name in listeners:
            raise ConfigFault(f"Listener {name} appears twice in {setting}", "Give each listener its own name.")
        if protocols[name] not in SERVED_PROTOCOLS:
            raise ConfigFault(
                f"Listener {name} asks for {protocols[name]}, which is not served yet",
                f"Map {name} to one of {', '.join(sorted(SERVED_PROTOCOLS))}, or leave it out.",
            )
        listeners[name] = Listener(name, match[1], int(match[2]), protocols[name])
    return tuple(listeners.values())


def _check_ports(listeners: tuple[Listener, ...]) -> None:
    """Two listeners may share a port only as one IPv4 and one IPv6 address; port 0 is any free one."""
    by_port: dict[int, list[Listener]] = {}
    for listener in listeners:
        if listener.port:
            by_port.setdefault(listener.port, []).append(listener)
    for port, sharing in by_port.items():
        if len(sharing) > 1 and sorted(_ip_version(one.host) for one in sharing) != [4, 6]:
            names = " and ".join(one.name for one in sharing)
            raise ConfigFault(f"Listeners {names} share port {port}", "Give each listener its own port.")


def _ip_version(host: str) -> int:
    if ":" in host:
        return 6
    return 4 if re.fullmatch(r"[0-9.]+", host) else 0


def _advertise_controllers(
    listeners: tuple[Listener, ...], advertised: tuple[Listener, ...], names: tuple[str, ...]
) -> tuple[Listener, ...]:
    told = {one.name: one for one in advertised}
    found = (told.get(one.name, one) for name in names for one in listeners if one.name == name)
    # Before 3.9 controllers were not advertised, so the wildcard is not a mistake here: it means "this machine".
    return tuple(one._replace(host="") if one.host == "0.0.0.0" else one for one in found)  # noqa: S104


def _read_inter_broker_listener(values: Values, given: Collection[str], protocols: dict[str, str]) -> str:
    name: str | None = values["inter.broker.listener.name"]
    if name is None:
        protocol: str = values["security.inter.broker.protocol"]
        return protocol
    if "security.inter.broker.protocol" in given:
        raise ConfigFault(
            "Only one of inter.broker.listener.name and security.inter.broker.protocol should be set",
            "Remove security.inter.broker.protocol.",
        )
    if name.upper() not in protocols:
        raise ConfigFault(
            f"Listener {name} of inter.broker.listener.name is not in listener.security.protocol.map",
            f"Add {name}:PLAINTEXT to listener.security.protocol.map.",
        )
    return name.upper()


def _read_voters(entries: Iterable[str]) -> tuple[Voter, ...]:
    voters: dict[int, Voter] = {}
    for entry in entries:
        number, at, rest = entry.partition("@")
        match = re.fullmatch(_ADDRESS, rest)
        if not at or not match or not match[1] or not re.fullmatch(r"[0-9]{1,10}", number) or int(match[2]) > 65535:
            raise ConfigFault(f"Cannot read '{entry}' in controller.quorum.voters", "Write id@host:port.")
        voters[int(number)] = Voter(int(number), match[1], int(match[2]))
    return tuple(voters.values())


def read_metrics_address(text: str) -> Address | None:
    """The address in `metrics.listener`; None if it is empty."""
    match = re.fullmatch(_ADDRESS, text.removeprefix("http://").rstrip("/"))
    if text and (not match or int(match[2]) > 65535):
        raise ConfigFault(f"Cannot read '{text}' in metrics.listener", "Write host:port.")
    return Address(match[1], int(match[2])) if match else None


def _read_bootstrap(entries: Iterable[str]) -> tuple[Address, ...]:
    addresses = []
    for entry in entries:
        match = re.fullmatch(_ADDRESS, entry)
        if not match or not match[1] or int(match[2]) > 65535:
            raise ConfigFault(f"Cannot read '{entry}' in controller.quorum.bootstrap.servers", "Write host:port.")
        addresses.append(Address(match[1], int(match[2])))
    return tuple(addresses)


def _check_quorum(topology: Topology) -> None:
    voter_ids = {voter.node_id for voter in topology.quorum_voters}
    if not voter_ids and not topology.quorum_bootstrap_servers:
        raise ConfigFault(
            "With process.roles, the controllers must be named",
            "Set controller.quorum.bootstrap.servers=host:port, or controller.quorum.voters=id@host:port.",
        )
    if "controller" in topology.roles and voter_ids and topology.node_id not in voter_ids:
        raise ConfigFault(
            f"This node is a controller, but its id {topology.node_id} is not in controller.quorum.voters",
            f"Add {topology.node_id}@host:port to controller.quorum.voters, or change node.id.",
        )
    if "controller" not in topology.roles and topology.node_id in voter_ids:
        raise ConfigFault(
            f"This node is just a broker, but its id {topology.node_id} is in controller.quorum.voters",
            "Give the broker another node.id, or add controller to process.roles.",
        )


def _check_controller_names(topology: Topology, protocols: dict[str, str]) -> None:
    listening = {one.name for one in topology.listeners}
    names = topology.controller_listener_names
    if "controller" in topology.roles:
        if missing := [name for name in names if name not in listening]:
            raise ConfigFault(
                f"controller.listener.names has {', '.join(missing)}, which listeners does not",
                f"Add {missing[0]}://host:port to listeners.",
            )
        if topology.roles == {"controller"} and (others := sorted(listening - set(names))):
            raise ConfigFault(
                f"This node is just a controller, but listeners has {', '.join(others)}",
                "Keep only listeners of controller.listener.names, or add broker to process.roles.",
            )
        return
    if shared := [name for name in names if name in listening]:
        raise ConfigFault(
            f"This node is just a broker, but listeners has the controllers' {', '.join(shared)}",
            "Take it out of listeners, or add controller to process.roles.",
        )
    if unmapped := [name for name in names if name not in protocols]:
        raise ConfigFault(
            f"Controller listener {unmapped[0]} is not in listener.security.protocol.map",
            f"Add {unmapped[0]}:PLAINTEXT to listener.security.protocol.map.",
        )


def _check_advertised(topology: Topology) -> None:
    if "broker" not in topology.roles:
        return
    names = {one.name for one in topology.advertised}
    if not names:
        raise ConfigFault(
            "A broker needs a listener that is not in controller.listener.names", "Add PLAINTEXT://:9092 to listeners."
        )
    if unheard := sorted(names - {one.name for one in topology.listeners}):
        raise ConfigFault(
            f"advertised.listeners has {', '.join(unheard)}, which listeners does not",
            f"Add {unheard[0]}://host:port to listeners.",
        )
    if topology.inter_broker_listener not in names:
        raise ConfigFault(
            f"inter.broker.listener.name must be a listener of advertised.listeners, not "
            f"{topology.inter_broker_listener}",
            f"Set it to one of {', '.join(sorted(names))}.",
        )
    if any(one.host == "0.0.0.0" for one in topology.advertised):  # noqa: S104
        raise ConfigFault(
            "advertised.listeners cannot use the nonroutable address 0.0.0.0",
            "Set advertised.listeners to an address that clients can reach.",
        )
