"""Asking and changing a cluster: settings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from headrace.client.admin_values import ConfigEntry, ConfigResource, ConfigResourceType, ConfigSynonym
from headrace.client.answers import check, check_all
from headrace.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from headrace.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

if TYPE_CHECKING:
    from headrace.client.cluster import Cluster

DESCRIBE_CONFIGS, INCREMENTAL_ALTER_CONFIGS = 32, 44
_SET, _DELETE = 0, 1
_DEFAULT_SOURCE = 5
_OF_ONE_BROKER = frozenset({ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER})

Settings = dict[str, ConfigEntry]


class ConfigAdmin:
    """The part of the admin client that is about settings."""

    _cluster: Cluster

    async def describe_configs(self, config_resources: Iterable[ConfigResource]) -> list[Settings]:
        """The settings of each resource by name, in the order of the resources."""
        return [await self._describe_config(resource) for resource in config_resources]

    async def _describe_config(self, resource: ConfigResource) -> Settings:
        wanted = DescribeConfigsResource(
            resource_type=resource.kind,
            resource_name=resource.name,
            configuration_keys=None if resource.configs is None else tuple(resource.configs),
        )
        request = DescribeConfigsRequest(resources=(wanted,), include_synonyms=True)
        answer = await self._cluster.ask(DESCRIBE_CONFIGS, request, node_id=_node_of(resource))
        (result,) = answer.results
        check(f"{resource.kind.name.lower()} {resource.name}", result)
        return {
            one.name: ConfigEntry(
                name=one.name,
                value=one.value,
                is_default=one.config_source == _DEFAULT_SOURCE,
                is_read_only=one.read_only,
                is_sensitive=one.is_sensitive,
                source=one.config_source,
                synonyms=tuple(
                    ConfigSynonym(name=also.name, value=also.value, source=also.source) for also in one.synonyms
                ),
            )
            for one in result.configs
        }

    async def alter_configs(self, config_resources: Iterable[ConfigResource], validate_only: bool = False) -> None:
        """Change the settings named and no others; None as a value takes one back to its default."""
        by_node: dict[int | None, list[ConfigResource]] = {}
        for resource in config_resources:
            by_node.setdefault(_node_of(resource), []).append(resource)
        for node_id, resources in by_node.items():
            request = IncrementalAlterConfigsRequest(
                resources=tuple(_change(resource) for resource in resources), validate_only=validate_only
            )
            answer = await self._cluster.ask(INCREMENTAL_ALTER_CONFIGS, request, node_id=node_id)
            check_all((one.resource_name, one) for one in answer.responses)


def _node_of(resource: ConfigResource) -> int | None:
    """Settings of one broker are its own business; those of all of them, with an empty name, anybody's."""
    return int(resource.name) if resource.kind in _OF_ONE_BROKER and resource.name else None


def _change(resource: ConfigResource) -> AlterConfigsResource:
    return AlterConfigsResource(
        resource_type=resource.kind,
        resource_name=resource.name,
        configs=tuple(
            AlterableConfig(name=name, config_operation=_DELETE if value is None else _SET, value=value)
            for name, value in (resource.configs or {}).items()
        ),
    )
