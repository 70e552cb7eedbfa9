"""A node's settings: what its file says, what was changed while it runs, and the defaults, as typed values.

Four layers, the first that has a name wins: this broker's dynamic settings, the cluster's dynamic defaults, the
file, the table. A `BrokerConfig` never changes; `with_dynamic` gives a new one.
"""

from collections.abc import Mapping, Sequence
from enum import IntEnum
from os import PathLike
from types import MappingProxyType
from typing import Any, Self

from headrace.model.errors import ErrorCode, KafkaError
from headrace.settings.catalog import BROKER_SETTINGS, find_broker_setting, nearest_name, notices
from headrace.settings.consistency import check_consistency, read_ip_overrides
from headrace.settings.fault import ConfigFault
from headrace.settings.properties import load_properties
from headrace.settings.setting import Value
from headrace.settings.topology import Address, Listener, Topology, Voter, read_metrics_address, read_topology

_NOTHING: Mapping[str, str] = MappingProxyType({})


class Source(IntEnum):
    """Where a value comes from, by the number DescribeConfigs gives it."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    GROUP = 8


class BrokerConfig:
    """All settings of one node."""

    __slots__ = ("_topology", "_values", "dynamic_broker", "dynamic_default", "static", "warnings")

    def __init__(
        self, static: Mapping[str, str], dynamic_broker: Mapping[str, str], dynamic_default: Mapping[str, str]
    ) -> None:
        self.static = static
        """The texts of the file, with node.id and broker.id standing in for each other."""
        self.dynamic_broker = dynamic_broker
        self.dynamic_default = dynamic_default
        self._values = _parse_all({**static, **dynamic_default, **dynamic_broker})
        self._topology = read_topology(self, self._values)
        self.warnings = notices(list(static))
        """One line each for a person to read at the start."""
        check_consistency(self)

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> Self:
        """The settings of a node whose file says `properties`; ConfigFault if it cannot start like that."""
        static = _with_both_ids(properties)
        _check_required(static)
        return cls(MappingProxyType(static), _NOTHING, _NOTHING)

    @classmethod
    def load(cls, path: str | PathLike[str], overrides: Mapping[str, str] = _NOTHING) -> Self:
        """The settings in the file at `path`, with `overrides` (k=v of the command line) above them."""
        return cls.from_properties({**load_properties(path), **overrides})

    def with_dynamic(self, broker: Mapping[str, str], default: Mapping[str, str] = _NOTHING) -> "BrokerConfig":
        """These settings with new dynamic layers; KafkaError(INVALID_REQUEST) if one may not be set like that."""
        _check_dynamic(broker)
        _check_dynamic(default)
        single = [name for name in default if _mode(name) == "per-broker"]
        if single:
            raise _refusal("Cannot update these configs at default cluster level, broker id must be specified", single)
        try:
            return BrokerConfig(self.static, MappingProxyType(dict(broker)), MappingProxyType(dict(default)))
        except ConfigFault as fault:
            raise _refusal(fault.problem) from fault

    def __getitem__(self, name: str) -> Any:
        """The value of a broker setting, by its kind: bool, int, float, str, tuple of str, or None if unset."""
        if name in self._values:
            return self._values[name]
        return BROKER_SETTINGS[name].default

    def source(self, name: str) -> Source:
        """Which layer the value of `name` comes from."""
        return next((source for source, texts in self.layers() if name in texts), Source.DEFAULT)

    def layers(self) -> tuple[tuple[Source, Mapping[str, str]], ...]:
        """The texts that were set, strongest first."""
        return (
            (Source.DYNAMIC_BROKER, self.dynamic_broker),
            (Source.DYNAMIC_DEFAULT_BROKER, self.dynamic_default),
            (Source.STATIC_BROKER, self.static),
        )

    def given(self) -> list[str]:
        """The names that were set in any layer, unknown ones included."""
        return list({**self.static, **self.dynamic_default, **self.dynamic_broker})

    def __repr__(self) -> str:
        return f"BrokerConfig(node_id={self.node_id}, given={self.given()})"

    @property
    def topology(self) -> Topology:
        """Addresses, roles and voters together."""
        return self._topology

    @property
    def node_id(self) -> int:
        """This node's number."""
        return self._topology.node_id

    @property
    def roles(self) -> frozenset[str]:
        """`broker`, `controller`, or both."""
        return self._topology.roles

    @property
    def listeners(self) -> tuple[Listener, ...]:
        """Every address to listen on, controllers' included."""
        return self._topology.listeners

    @property
    def advertised(self) -> tuple[Listener, ...]:
        """What clients are told; a host may be empty and a port 0, for the shell to fill in."""
        return self._topology.advertised

    @property
    def controller_listener_names(self) -> tuple[str, ...]:
        """The names of the listeners that controllers speak on."""
        return self._topology.controller_listener_names

    @property
    def inter_broker_listener(self) -> str:
        """The name of the listener brokers reach each other by."""
        return self._topology.inter_broker_listener

    @property
    def quorum_voters(self) -> tuple[Voter, ...]:
        """The controllers that vote, as the file names them."""
        return self._topology.quorum_voters

    @property
    def quorum_bootstrap_servers(self) -> tuple[Address, ...]:
        """Controllers to ask for the quorum."""
        return self._topology.quorum_bootstrap_servers

    @property
    def log_dirs(self) -> tuple[str, ...]:
        """The data directories."""
        dirs: tuple[str, ...] = self["log.dirs"] or self["log.dir"]
        return dirs

    @property
    def metadata_log_dir(self) -> str:
        """The directory of the metadata log."""
        directory: str = self["metadata.log.dir"] or self.log_dirs[0]
        return directory

    @property
    def metrics_address(self) -> Address | None:
        """Where metrics are served; None for nowhere. An empty host means every interface."""
        return read_metrics_address(self["metrics.listener"])

    @property
    def connections_per_ip_overrides(self) -> dict[str, int]:
        """Addresses that may hold more or fewer connections than the rest."""
        return read_ip_overrides(self["max.connections.per.ip.overrides"])


def _with_both_ids(properties: Mapping[str, str]) -> dict[str, str]:
    texts = dict(properties)
    if "node.id" in texts:
        texts.setdefault("broker.id", texts["node.id"])
    elif "broker.id" in texts:
        texts["node.id"] = texts["broker.id"]
    return texts


def _check_required(static: Mapping[str, str]) -> None:
    missing = [name for name, setting in BROKER_SETTINGS.items() if setting.required and name not in static]
    if not missing:
        return
    if "process.roles" in missing and "zookeeper.connect" in static:
        raise ConfigFault(
            "This file is for a node that keeps its metadata in ZooKeeper, which is not served yet",
            "Set process.roles=broker,controller, node.id, controller.listener.names and controller.quorum.voters.",
        )
    raise ConfigFault(
        f'Missing required configuration "{missing[0]}" which has no default value',
        f"Add a line such as {missing[0]}={_EXAMPLES[missing[0]]}.",
    )


_EXAMPLES = {"process.roles": "broker,controller", "node.id": "1", "controller.listener.names": "CONTROLLER"}


def _parse_all(texts: Mapping[str, str]) -> dict[str, Value]:
    values: dict[str, Value] = {}
    for name, text in texts.items():
        setting = find_broker_setting(name)
        if setting:
            # A name with a listener prefix is checked like its base but does not replace it.
            values[name] = setting.parse(text)
    return values


def _check_dynamic(texts: Mapping[str, str]) -> None:
    unknown = [name for name in texts if find_broker_setting(name) is None]
    if unknown:
        near = nearest_name(unknown[0])
        raise _refusal(f"Unknown broker config name: {unknown[0]}" + (f"; did you mean {near}?" if near else ""))
    fixed = [name for name in texts if _mode(name) == "read-only"]
    if fixed:
        raise _refusal("Cannot update these configs dynamically", fixed)


def _mode(name: str) -> str:
    setting = find_broker_setting(name)
    return setting.mode if setting else "read-only"


def _refusal(message: str, names: Sequence[str] = ()) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, f"{message}: [{', '.join(names)}]" if names else message)
