"""DescribeConfigs, key 32.

Versions: 1-4.
Behaviour: every setting of a topic or of this broker with its value, source, type and, if asked, the chain of synonyms
behind it and its sentence. A broker without a name stands for what all brokers share; another broker's id is refused,
as only that broker knows its file. Loggers, client metrics and groups have no settings yet.
Deviations: a resource of a type nobody knows fails alone, not the whole request; a resource that is asked for twice in
the same way is answered once, so that a small request cannot ask for an answer without end.
KIPs: 133, 226 synonyms (v1), 569 types and documentation (v3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.broker.api import Api, Call
from headrace.broker.config_resources import ResourceType, require_own_id
from headrace.cores.metadata import RESOURCE_TOPIC
from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.ids import topic_name_fault
from headrace.settings.describe import describe_broker, describe_cluster_default, describe_topic
from headrace.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headrace.broker.broker import Broker
    from headrace.settings.describe import ConfigEntry


def handle(call: Call, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    """Describe each resource."""
    topics = _Topics(call.broker)
    asked = dict.fromkeys(
        (one.resource_type, one.resource_name, frozenset(one.configuration_keys or ())) for one in request.resources
    )
    return DescribeConfigsResponse(
        results=tuple(_described(topics, request, kind, name, keys) for kind, name, keys in asked)
    )


def _described(
    topics: _Topics, request: DescribeConfigsRequest, kind: int, name: str, keys: frozenset[str]
) -> DescribeConfigsResult:
    try:
        entries = _entries(topics, kind, name)
    except KafkaError as error:
        return DescribeConfigsResult(
            error_code=int(error.code), error_message=error.message, resource_type=kind, resource_name=name
        )
    return DescribeConfigsResult(
        resource_type=kind,
        resource_name=name,
        configs=tuple(_shown(entry, request) for entry in entries if not keys or entry.name in keys),
    )


def _entries(topics: _Topics, kind: int, name: str) -> Sequence[ConfigEntry]:
    """Every setting of a resource."""
    broker = topics.broker
    match kind:
        case ResourceType.TOPIC:
            return topics.entries(name)
        case ResourceType.BROKER:
            if not name:
                return describe_cluster_default(broker.config)
            require_own_id(name, broker.node_id, expected=f"{broker.node_id} or empty string,")
            return describe_broker(broker.config)
        case ResourceType.BROKER_LOGGER:
            _require_name(name, "Broker id")
            require_own_id(name, broker.node_id, expected=str(broker.node_id))
            return ()
        case ResourceType.CLIENT_METRICS:
            _require_name(name, "Client metrics subscription name")
            return ()
        case ResourceType.GROUP:
            _require_name(name, "Group name")
            return ()
        case _:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unexpected resource type {kind} for resource {name}")


def _require_name(name: str, what: str) -> None:
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{what} must not be empty")


class _Topics:
    """The settings of topics; those with the same overrides, which most have, are worked out once."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self._known: dict[frozenset[tuple[str, str]], list[ConfigEntry]] = {}

    def entries(self, name: str) -> list[ConfigEntry]:
        """Every setting of a topic."""
        fault = topic_name_fault(name)
        if fault is not None:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)
        if name not in self.broker.metadata.topics:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")
        overrides: Mapping[str, str] = self.broker.metadata.configs(RESOURCE_TOPIC, name)
        key = frozenset(overrides.items())
        if key not in self._known:
            self._known[key] = describe_topic(overrides, self.broker.config)
        return self._known[key]


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
