"""Every broker setting by name, and how a name that is not there is understood."""

from headrace.settings.setting import Setting
from headrace.settings.table import read_table
from headrace.settings.tables import (
    groups,
    log,
    network,
    quorum,
    quotas,
    replication,
    security,
    tiered,
    transactions,
)
from headrace.settings.tables.legacy import LEGACY

THEMES = {
    "The node and its quorum": quorum.ROWS,
    "Network": network.ROWS,
    "The log": log.ROWS,
    "Replication": replication.ROWS,
    "Groups": groups.ROWS,
    "Transactions": transactions.ROWS,
    "Security": security.ROWS,
    "Quotas and metrics": quotas.ROWS,
    "Remote storage": tiered.ROWS,
}
"""The tables under the headings of the reference page."""

BROKER_SETTINGS: dict[str, Setting] = {}
for _rows in THEMES.values():
    BROKER_SETTINGS.update(read_table(_rows, "broker"))

_LISTENER_PREFIX = "listener.name."
_MECHANISM_SUFFIXES = (
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
    "connections.max.reauth.ms",
)
"""Settings a listener may carry once per SASL mechanism: listener.name.<listener>.<mechanism>.<setting>."""

_OPEN_PREFIXES = ("config.providers.", "rsm.config.", "rlmm.config.")
"""Names under these belong to plug-ins, so nobody can say that they are wrong."""


def find_broker_setting(name: str) -> Setting | None:
    """The setting `name` stands for, its listener prefix looked through; None if there is none."""
    if setting := BROKER_SETTINGS.get(name):
        return setting
    if not name.startswith(_LISTENER_PREFIX):
        return None
    own = name.removeprefix(_LISTENER_PREFIX).partition(".")[2]
    return BROKER_SETTINGS.get(next((suffix for suffix in _MECHANISM_SUFFIXES if own.endswith(suffix)), own))


def nearest_name(name: str) -> str | None:
    """The known broker setting that looks most like `name`, if any does."""
    # Imported here because a start with no mistake in its file never needs it.
    from difflib import get_close_matches  # noqa: PLC0415

    return next(iter(get_close_matches(name, BROKER_SETTINGS, n=1, cutoff=0.6)), None)


def notices(given: list[str]) -> list[str]:
    """What a person should know about the names in their file: not served, dropped by Kafka, unknown."""
    lines: list[str] = []
    idle: list[str] = []
    for name in given:
        setting = find_broker_setting(name)
        if setting:
            if not setting.served or name not in BROKER_SETTINGS:
                idle.append(name)
        elif name in LEGACY:
            lines.append(f"{name} is a setting of older Kafka versions and has no effect; use {LEGACY[name]}.")
        elif not name.startswith(_OPEN_PREFIXES):
            near = nearest_name(name)
            lines.append(f"{name} is not a known setting" + (f"; did you mean {near}?" if near else "."))
    if idle:
        lines.insert(0, f"Not served yet, so without effect: {', '.join(idle)}.")
    return lines
