"""DescribeConfigs, key 32.

Versions: 1-4.
Behaviour: every setting of a topic, a group or this broker with its value, source, type and, if asked, the chain of
synonyms behind it and its sentence. A broker without a name stands for what all brokers share; another broker's id is
refused, as only that broker knows its file. A group need not be there. Loggers and client metrics have no settings yet.
Deviations: a resource of a type nobody knows fails alone, not the whole request; a resource that is asked for twice in
the same way is answered once, so that a small request cannot ask for an answer without end.
KIPs: 133, 226 synonyms (v1), 569 types and documentation (v3), 848 groups.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.broker.api import Api, Call
from headrace.broker.config_resources import ResourceType, require_own_id
from headrace.cores.metadata import RESOURCE_TOPIC
from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.ids import topic_name_fault
from headrace.settings.describe import describe_broker, describe_cluster_default, describe_group, describe_topic
from headrace.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.broker.broker import Broker
    from headrace.settings.describe import ConfigEntry

Configs = tuple[DescribeConfigsResourceResult, ...]
Overrides = frozenset[tuple[str, str]]


def handle(call: Call, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    """Describe each resource."""
    asked = dict.fromkeys(
        (one.resource_type, one.resource_name, frozenset(one.configuration_keys or ())) for one in request.resources
    )
    view = _View(call.broker, request)
    return DescribeConfigsResponse(results=tuple(view.result(kind, name, keys) for kind, name, keys in asked))


class _View:
    """The settings as one request wants to see them."""

    def __init__(self, broker: Broker, request: DescribeConfigsRequest) -> None:
        self._broker = broker
        self._request = request
        self._topics: dict[tuple[Overrides, frozenset[str]], Configs] = {}
        """Topics with the same overrides, which most have, are worked out once."""

    def result(self, kind: int, name: str, keys: frozenset[str]) -> DescribeConfigsResult:
        """One resource, or why it cannot be described."""
        try:
            configs = self._topic(name, keys) if kind == ResourceType.TOPIC else self._other(kind, name, keys)
        except KafkaError as error:
            return DescribeConfigsResult(
                error_code=int(error.code), error_message=error.message, resource_type=kind, resource_name=name
            )
        return DescribeConfigsResult(resource_type=kind, resource_name=name, configs=configs)

    def _topic(self, name: str, keys: frozenset[str]) -> Configs:
        fault = topic_name_fault(name)
        if fault is not None:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)
        if name not in self._broker.metadata.topics:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")
        overrides = self._broker.metadata.configs(RESOURCE_TOPIC, name)
        known = (frozenset(overrides.items()), keys)
        if known not in self._topics:
            self._topics[known] = self._shown(describe_topic(overrides, self._broker.config), keys)
        return self._topics[known]

    def _other(self, kind: int, name: str, keys: frozenset[str]) -> Configs:
        broker = self._broker
        match kind:
            case ResourceType.BROKER if not name:
                return self._shown(describe_cluster_default(broker.config), keys)
            case ResourceType.BROKER:
                require_own_id(name, broker.node_id, expected=f"{broker.node_id} or empty string,")
                return self._shown(describe_broker(broker.config), keys)
            case ResourceType.BROKER_LOGGER:
                _require_name(name, "Broker id")
                require_own_id(name, broker.node_id, expected=str(broker.node_id))
            case ResourceType.CLIENT_METRICS:
                _require_name(name, "Client metrics subscription name")
            case ResourceType.GROUP:
                _require_name(name, "Group name")
                return self._shown(describe_group(broker.metadata.configs(kind, name), broker.config), keys)
            case _:
                raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unexpected resource type {kind} for resource {name}")
        return ()

    def _shown(self, entries: Sequence[ConfigEntry], keys: frozenset[str]) -> Configs:
        return tuple(_shown(entry, self._request) for entry in entries if not keys or entry.name in keys)


def _require_name(name: str, what: str) -> None:
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{what} must not be empty")


def _shown(entry: ConfigEntry, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    return DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.is_sensitive,
        synonyms=(
            tuple(DescribeConfigsSynonym(name=s.name, value=s.value, source=s.source) for s in entry.synonyms)
            if request.include_synonyms
            else ()
        ),
        config_type=entry.config_type,
        documentation=entry.documentation if request.include_documentation else None,
    )


API = Api(key=32, low=1, high=4, handle=handle, controller=True)
