"""Settings of topics, of brokers and of all brokers together, in the shapes of REST v3.

The three are served alike: a table says for each whose settings they are.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from headrace.client.admin_values import ConfigEntry, ConfigResource, ConfigResourceType
from headrace.gateway.problem import Problem, unprocessable
from headrace.gateway.route import Call, Route
from headrace.gateway.v3_address import CLUSTER, Address, ListMetadata, Page, Resource, cluster_of, turn
from headrace.gateway.v3_clusters import BrokerId, ClusterId, broker_address, broker_of

_SOURCES = {
    1: "DYNAMIC_TOPIC_CONFIG",
    2: "DYNAMIC_BROKER_CONFIG",
    3: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    4: "STATIC_BROKER_CONFIG",
    5: "DEFAULT_CONFIG",
    6: "DYNAMIC_BROKER_LOGGER_CONFIG",
    7: "DYNAMIC_CLIENT_METRICS_CONFIG",
    8: "DYNAMIC_GROUP_CONFIG",
}
Source = Annotated[str, Meta(description="Where the value comes from.", examples=["DEFAULT_CONFIG"])]
SettingName = Annotated[str, Meta(min_length=1, max_length=249, examples=["retention.ms"])]
SettingValue = Annotated[str | None, Meta(examples=["604800000"])]
ChangesMax = 1000


class ConfigSynonymData(Struct, frozen=True, kw_only=True):
    """Where a value comes from, or would come from if it were not set nearer."""

    name: SettingName
    value: SettingValue
    source: Source


class Setting(Resource, frozen=True, kw_only=True):
    """What all settings show."""

    cluster_id: ClusterId
    name: SettingName
    value: SettingValue
    is_default: bool
    is_read_only: bool
    is_sensitive: bool
    source: Source
    synonyms: list[ConfigSynonymData]


class KafkaTopicConfig(Setting, frozen=True, kw_only=True):
    """A setting of a topic."""

    topic_name: Annotated[str, Meta(examples=["trucks"])]


class KafkaBrokerConfig(Setting, frozen=True, kw_only=True):
    """A setting of one broker."""

    broker_id: BrokerId


class KafkaClusterConfig(Setting, frozen=True, kw_only=True):
    """A setting of all brokers."""

    config_type: Literal["BROKER"] = "BROKER"


class KafkaTopicConfigList(Struct, frozen=True, kw_only=True, tag_field="kind", tag=True):
    """Settings of a topic, by name."""

    metadata: ListMetadata
    data: list[KafkaTopicConfig]


class KafkaBrokerConfigList(Struct, frozen=True, kw_only=True, tag_field="kind", tag=True):
    """Settings of a broker, by name."""

    metadata: ListMetadata
    data: list[KafkaBrokerConfig]


class KafkaClusterConfigList(Struct, frozen=True, kw_only=True, tag_field="kind", tag=True):
    """What was set for all brokers, by name."""

    metadata: ListMetadata
    data: list[KafkaClusterConfig]


class NewValue(Struct, frozen=True, kw_only=True):
    """What a setting shall be."""

    value: Annotated[str, Meta(max_length=32_000, examples=["604800000"])]


class SettingChange(Struct, frozen=True, kw_only=True):
    """One setting, set or taken back to its default."""

    name: SettingName
    value: Annotated[str | None, Meta(description="Needed to set.", examples=["604800000"])] = None
    operation: Literal["SET", "DELETE"] = "SET"


class SettingChanges(Struct, frozen=True, kw_only=True):
    """Several changes, of which all are made or none."""

    data: Annotated[list[SettingChange], Meta(min_length=1, max_length=ChangesMax)]
    validate_only: Annotated[bool, Meta(description="Check, and change nothing.")] = False


class _Owner(Struct, frozen=True, kw_only=True):
    """Whose settings they are."""

    path: str
    whose: str
    find: Callable[[Call], Awaitable[tuple[Address, ConfigResource]]]
    one: type[Setting]
    many: Any
    word: str = "config"
    folder: str = "configs"
    own: Callable[[Call], dict[str, Any]]


async def _list(owner: _Owner, call: Call) -> Any:
    here, resource = await owner.find(call)
    (found,) = await call.services.admin.describe_configs([resource])
    names = sorted(found)
    shown, metadata = turn(call, f"{here.url}/{owner.folder}", names, lambda name: [name])
    return owner.many(metadata=metadata, data=[_setting(owner, call, here, found[name]) for name in shown])


async def _get(owner: _Owner, call: Call) -> Setting:
    here, resource = await owner.find(call)
    name: str = call.path["name"]
    (found,) = await call.services.admin.describe_configs([_only(resource, {name: None})])
    if name not in found:
        raise Problem(404, 404, f"There is no setting '{name[:249]}' here.")
    return _setting(owner, call, here, found[name])


async def _put(owner: _Owner, call: Call) -> None:
    await _change(owner, call, {call.path["name"]: call.body.value})


async def _delete(owner: _Owner, call: Call) -> None:
    await _change(owner, call, {call.path["name"]: None})


async def _alter(owner: _Owner, call: Call) -> None:
    changes: dict[str, str | None] = {}
    asked: SettingChanges = call.body
    for one in asked.data:
        if one.name in changes:
            raise unprocessable(f"The setting '{one.name}' is there twice.")
        if one.operation == "SET" and one.value is None:
            raise unprocessable(f"The setting '{one.name}' needs a value; operation DELETE takes it back.")
        changes[one.name] = one.value if one.operation == "SET" else None
    await _change(owner, call, changes, validate_only=asked.validate_only)


async def _change(owner: _Owner, call: Call, changes: dict[str, str | None], *, validate_only: bool = False) -> None:
    _, resource = await owner.find(call)
    await call.services.admin.alter_configs([_only(resource, changes)], validate_only=validate_only)


def _only(resource: ConfigResource, configs: dict[str, str | None]) -> ConfigResource:
    return ConfigResource(resource.resource_type, resource.name, configs)


def _setting(owner: _Owner, call: Call, here: Address, entry: ConfigEntry) -> Setting:
    return owner.one(
        metadata=here.under(owner.folder, owner.word, entry.name).metadata,
        cluster_id=call.path["cluster_id"],
        name=entry.name,
        value=entry.value,
        is_default=entry.is_default,
        is_read_only=entry.is_read_only,
        is_sensitive=entry.is_sensitive,
        source=_SOURCES.get(entry.source, "UNKNOWN"),
        synonyms=[
            ConfigSynonymData(name=one.name, value=one.value, source=_SOURCES.get(one.source, "UNKNOWN"))
            for one in entry.synonyms
        ],
        **owner.own(call),
    )


async def _topic(call: Call) -> tuple[Address, ConfigResource]:
    name: str = call.path["topic_name"]
    here = (await cluster_of(call)).under("topics", "topic", name)
    return here, ConfigResource(ConfigResourceType.TOPIC, name)


async def _broker(call: Call) -> tuple[Address, ConfigResource]:
    here = broker_address(await cluster_of(call), call.path["broker_id"])
    await broker_of(call)
    return here, ConfigResource(ConfigResourceType.BROKER, str(call.path["broker_id"]))


async def _cluster(call: Call) -> tuple[Address, ConfigResource]:
    return await cluster_of(call), ConfigResource(ConfigResourceType.BROKER, "")


_OWNERS = (
    _Owner(
        path=f"{CLUSTER}/topics/{{topic_name}}/configs",
        whose="a topic",
        find=_topic,
        one=KafkaTopicConfig,
        many=KafkaTopicConfigList,
        own=lambda call: {"topic_name": call.path["topic_name"]},
    ),
    _Owner(
        path=f"{CLUSTER}/brokers/{{broker_id}}/configs",
        whose="a broker",
        find=_broker,
        one=KafkaBrokerConfig,
        many=KafkaBrokerConfigList,
        own=lambda call: {"broker_id": call.path["broker_id"]},
    ),
    _Owner(
        path=f"{CLUSTER}/broker-configs",
        whose="all brokers",
        find=_cluster,
        one=KafkaClusterConfig,
        many=KafkaClusterConfigList,
        word="broker-config",
        folder="broker-configs",
        own=lambda _: {},
    ),
)


def _routes(owner: _Owner) -> tuple[Route, ...]:
    one = f"{owner.path}/{{name}}"
    verbs: tuple[tuple[str, str, Any, str, dict[str, Any]], ...] = (
        ("GET", owner.path, _list, f"The settings of {owner.whose}", {"query": Page, "answer": owner.many}),
        ("GET", one, _get, f"A setting of {owner.whose}", {"answer": owner.one}),
        ("PUT", one, _put, f"Set a setting of {owner.whose}", {"body": NewValue, "status": 204}),
        ("DELETE", one, _delete, f"Take a setting of {owner.whose} back to its default", {"status": 204}),
        (
            "POST",
            f"{owner.path}:alter",
            _alter,
            f"Change several settings of {owner.whose} at once",
            {"body": SettingChanges, "status": 204},
        ),
    )
    return tuple(
        Route(
            method=method,
            path=path,
            handle=partial(handle, owner),
            tag="v3 settings",
            summary=summary,
            problems=(403,),
            **rest,
        )
        for method, path, handle, summary, rest in verbs
    )


ROUTES = tuple(route for owner in _OWNERS for route in _routes(owner))
