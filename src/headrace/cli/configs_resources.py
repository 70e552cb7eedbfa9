"""Settings that are names with values: those of topics, brokers, loggers, client metrics and groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.cli.administration import (
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    DELETE,
    GROUP,
    SET,
    TOPIC,
    alter_configs,
    check,
    describe_configs,
    node_ids,
)
from headrace.cli.configs_entity import BROKERS, GROUPS, LOGGERS, TOPICS
from headrace.cli.configs_entity import CLIENT_METRICS as METRICS
from headrace.cli.java_order import hash_order
from headrace.cli.session import Failure
from headrace.client.fault import NotServed
from headrace.model.ids import topic_name_fault

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.cli.configs_entity import Entity
    from headrace.cli.session import Session

LIST_GROUPS, LIST_CONFIG_RESOURCES = 16, 74
RESOURCES = {TOPICS: TOPIC, BROKERS: BROKER, LOGGERS: BROKER_LOGGER, METRICS: CLIENT_METRICS, GROUPS: GROUP}

SOURCES = {
    0: "UNKNOWN",
    1: "DYNAMIC_TOPIC_CONFIG",
    2: "DYNAMIC_BROKER_CONFIG",
    3: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    4: "STATIC_BROKER_CONFIG",
    5: "DEFAULT_CONFIG",
    6: "DYNAMIC_BROKER_LOGGER_CONFIG",
    7: "DYNAMIC_CLIENT_METRICS_CONFIG",
    8: "DYNAMIC_GROUP_CONFIG",
}
"""Where a value comes from, in Kafka's words."""

DYNAMIC = {TOPICS: 1, BROKERS: 2, METRICS: 7, GROUPS: 8}
"""The source of what was set on the thing itself; a logger's level is shown whatever its source."""
_DYNAMIC_DEFAULT = 3


async def show(session: Session, entity: Entity) -> int:
    """Print the settings of one thing, or of all of its kind."""
    kind, shows_all = entity.kinds[0], session.values.has("all")
    if entity.names and entity.names[0] and not shows_all and not await _exists(session, kind, entity.names[0]):
        name = entity.names[0]
        raise Failure(f"The {kind[:-1]} '{name}' doesn't exist and doesn't have dynamic config.", on_stdout=True)
    names = list(entity.names[:1]) or await _all_names(session, kind)
    documents = []
    for name in names:
        what = "All" if shows_all else "Dynamic"
        session.report.line(
            f"{what} configs for {kind[:-1]} {name} are:" if name else f"Default configs for {kind} in the cluster are:"
        )
        entries = await _entries(session, kind, name, shows_all=shows_all)
        for entry in entries:
            session.report.line(_line(entry))
        documents.append({"type": kind, "name": name or None, "configs": [_document(entry) for entry in entries]})
    session.report.data(documents)
    return 0


async def change(session: Session, entity: Entity, added: dict[str, str], deleted: Sequence[str]) -> None:
    """Set and remove settings of one thing."""
    kind, name = entity.kinds[0], entity.names[0]
    if kind == TOPICS:
        _check_topic(name)
    if kind == LOGGERS:
        known = {entry.name for entry in await _entries(session, kind, name, shows_all=False)}
        unknown = [one for one in (*deleted, *added) if one not in known]
        if unknown:
            raise Failure(f"Invalid broker logger(s): {','.join(unknown)}")
    changes = [(key, SET, value) for key, value in added.items()] + [(key, DELETE, "") for key in deleted]
    await alter_configs(session.cluster, {(RESOURCES[kind], name): changes})


async def _entries(session: Session, kind: str, name: str, *, shows_all: bool) -> list[Any]:
    if kind == TOPICS:
        _check_topic(name)
    resource = (RESOURCES[kind], name)
    entries = (await describe_configs(session.cluster, [resource], synonyms=True))[resource]
    source = _DYNAMIC_DEFAULT if kind == BROKERS and not name else DYNAMIC.get(kind)
    kept = [entry for entry in entries if shows_all or source is None or entry.config_source == source]
    return sorted(kept, key=lambda entry: str(entry.name))


def _check_topic(name: str) -> None:
    fault = topic_name_fault(name) if name else None
    if fault:
        raise Failure(fault)


def _line(entry: Any) -> str:
    synonyms = ", ".join(
        f"{SOURCES.get(one.source, 'UNKNOWN')}:{one.name}={_java(one.value)}" for one in entry.synonyms
    )
    sensitive = str(entry.is_sensitive).lower()
    return f"  {entry.name}={_java(entry.value)} sensitive={sensitive} synonyms={{{synonyms}}}"


def _document(entry: Any) -> dict[str, Any]:
    return {
        "name": entry.name,
        "value": entry.value,
        "source": SOURCES.get(entry.config_source, "UNKNOWN"),
        "sensitive": entry.is_sensitive,
        "readOnly": entry.read_only,
        "synonyms": [
            {"source": SOURCES.get(one.source, "UNKNOWN"), "name": one.name, "value": one.value}
            for one in entry.synonyms
        ],
    }


def _java(value: str | None) -> str:
    return "null" if value is None else value


# --- which there are


async def _exists(session: Session, kind: str, name: str) -> bool:
    if kind == TOPICS:
        _check_topic(name)
    return name in await _all_names(session, kind)


async def _all_names(session: Session, kind: str) -> list[str]:
    """Everything of a kind that may have settings, in the order Kafka's tool shows them; "" is the default."""
    cluster = session.cluster
    if kind == TOPICS:
        return hash_order(topic.name for topic in (await cluster.metadata()).topics if topic.name)
    if kind in {BROKERS, LOGGERS}:
        return [*map(str, await node_ids(cluster)), ""]
    listed = await _listed(session, RESOURCES[kind])
    if kind == GROUPS:
        listed |= await _groups(session)
    return sorted(listed)


async def _listed(session: Session, resource_type: int) -> set[str]:
    from headrace.wire.messages.list_config_resources import ListConfigResourcesRequest

    try:
        answer = await session.cluster.ask(
            LIST_CONFIG_RESOURCES, ListConfigResourcesRequest(resource_types=(resource_type,))
        )
    except NotServed:
        return set()
    check(answer.error_code)
    return {one.resource_name for one in answer.config_resources if one.resource_type == resource_type}


async def _groups(session: Session) -> set[str]:
    from headrace.wire.messages.list_groups import ListGroupsRequest

    found: set[str] = set()
    for node_id in await session.cluster.brokers():
        answer = await session.cluster.ask(LIST_GROUPS, ListGroupsRequest(), node_id=node_id)
        check(answer.error_code)
        found |= {group.group_id for group in answer.groups}
    return found
