"""Whose settings kafka-configs is about: kinds and names, in Kafka's many ways to say it, and what it refuses."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.cli.session import Failure

if TYPE_CHECKING:
    from headrace.cli.tool import Values

TOPICS, CLIENTS, USERS, BROKERS = "topics", "clients", "users", "brokers"
LOGGERS, IPS, CLIENT_METRICS, GROUPS = "broker-loggers", "ips", "client-metrics", "groups"

KINDS = (TOPICS, CLIENTS, USERS, BROKERS, IPS, CLIENT_METRICS, GROUPS, LOGGERS)
PLAIN_ENTITIES = (TOPICS, BROKERS, LOGGERS, CLIENT_METRICS, GROUPS)
WITH_DEFAULTS = (USERS, CLIENTS, BROKERS, IPS)

FLAGS = {
    "topic": TOPICS,
    "client": CLIENTS,
    "user": USERS,
    "broker": BROKERS,
    "broker-logger": LOGGERS,
    "ip": IPS,
    "client-metrics": CLIENT_METRICS,
    "group": GROUPS,
}
DEFAULT_FLAGS = {"client-defaults": CLIENTS, "user-defaults": USERS, "broker-defaults": BROKERS, "ip-defaults": IPS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """Kinds and names by position; an empty name means the default; there may be fewer names than kinds."""

    kinds: tuple[str, ...]
    names: tuple[str, ...]


def entity_of(values: Values) -> Entity:
    """Whose settings are meant; Failure in Kafka's words if that cannot be."""
    flags = [name for name in FLAGS if values.has(name)]
    defaults = [name for name in DEFAULT_FLAGS if values.has(name)]
    kinds = (*values.all("entity-type"), *(FLAGS[name] for name in flags), *(DEFAULT_FLAGS[name] for name in defaults))
    names = (
        *(value or "" for name, value in values.typed if name in {"entity-name", "entity-default"}),
        *(values.get(name) or "" for name in flags),
        *("" for _ in defaults),
    )
    entity = Entity(kinds=kinds, names=names)
    _check_kinds(kinds)
    if any(values.has(f"entity-{part}") for part in ("name", "type", "default")) and (flags or defaults):
        raise Failure("--entity-{type,name,default} should not be used in conjunction with specific entity flags")
    _check_names(entity)
    if values.has("describe"):
        _check_describe(entity, is_default_typed=values.has("entity-default"))
    else:
        _check_alter(entity)
    return entity


def _check_kinds(kinds: tuple[str, ...]) -> None:
    twice = [kind for place, kind in enumerate(kinds) if kind in kinds[:place]]
    if twice:
        raise Failure(f"Duplicate entity type(s) specified: {','.join(twice)}")
    for kind in kinds:
        if kind not in KINDS:
            raise Failure(
                f"Invalid entity type {kind}, the entity type must be one of {', '.join(KINDS)} with a "
                "--bootstrap-server or --bootstrap-controller argument"
            )
    if not kinds:
        raise Failure("At least one entity type must be specified", remedy="For instance: --topic trucks_gps")
    if len(kinds) > 1 and set(kinds) != {USERS, CLIENTS}:
        raise Failure(f"Only '{USERS}' and '{CLIENTS}' entity types may be specified together")


def _check_names(entity: Entity) -> None:
    kind = entity.kinds[0]
    for name in filter(None, entity.names):
        if kind in {BROKERS, LOGGERS} and not _is_number(name):
            raise Failure(f"The entity name for {kind} must be a valid integer broker id, but it is: {name}")
        if kind == IPS and not _is_address(name):
            raise Failure(f"The entity name for {kind} must be a valid IP or resolvable host, but it is: {name}")


def _check_describe(entity: Entity, *, is_default_typed: bool) -> None:
    shown = ",".join(entity.kinds)
    if is_default_typed and not set(entity.kinds) & set(WITH_DEFAULTS):
        raise Failure(f"--entity-default must not be specified with --describe of {shown}")
    if LOGGERS in entity.kinds and not any(entity.names):
        raise Failure(f"An entity name must be specified with --describe of {shown}")
    if len(entity.names) > len(entity.kinds):
        raise Failure("More entity names specified than entity types")


def _check_alter(entity: Entity) -> None:
    if set(entity.kinds) & set(WITH_DEFAULTS):
        if not entity.names:
            raise Failure(
                "An entity-name or default entity must be specified with --alter of users, clients, brokers or ips"
            )
    elif not any(entity.names):
        raise Failure(f"An entity name must be specified with --alter of {','.join(entity.kinds)}")
    if len(entity.names) != len(entity.kinds):
        raise Failure("An entity name must be specified for every entity type")


def _is_number(text: str) -> bool:
    return text.removeprefix("-").isascii() and text.removeprefix("-").isdigit()


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        import socket

        try:
            socket.getaddrinfo(text, None)
        except (OSError, UnicodeError):
            return False
    return True
