"""The gateway's settings: its own, and the client's for the way to the cluster, in one file."""

from collections.abc import Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any

from headrace.settings.fault import ConfigFault
from headrace.settings.setting import Setting, Value
from headrace.settings.table import read_table
from headrace.settings.tables.gateway import ROWS

GATEWAY_SETTINGS: Mapping[str, Setting] = MappingProxyType(read_table(ROWS, "gateway"))
CLIENT_PREFIX = "client."
"""What stands behind it is handed to the client: client.bootstrap.servers, client.security.protocol."""


class GatewayConfig:
    """All settings of one gateway."""

    __slots__ = ("_values", "client")

    def __init__(self, properties: Mapping[str, str]) -> None:
        """ConfigFault if a setting is unknown or its value cannot be."""
        self._values: dict[str, Value] = {}
        self.client: dict[str, str] = {}
        for name, text in properties.items():
            if name.startswith(CLIENT_PREFIX) or name == "bootstrap.servers":
                self.client[name.removeprefix(CLIENT_PREFIX)] = text
            elif name in GATEWAY_SETTINGS:
                self._values[name] = GATEWAY_SETTINGS[name].parse(text)
            else:
                near = get_close_matches(name, GATEWAY_SETTINGS, 1)
                raise ConfigFault(
                    f"The gateway has no setting '{name}'",
                    f"Did you mean {near[0]}?" if near else f"The client's go behind '{CLIENT_PREFIX}'.",
                )

    def __getitem__(self, name: str) -> Any:
        """A value, by its kind."""
        return self._values[name] if name in self._values else GATEWAY_SETTINGS[name].default
