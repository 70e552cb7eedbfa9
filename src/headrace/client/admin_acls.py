"""Asking a cluster: who may do what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.client.admin_values import AclDescription
from headrace.client.answers import check
from headrace.model.acl_words import ANY, OPERATIONS, PATTERNS, PERMISSIONS, RESOURCES
from headrace.wire.messages.describe_acls import DescribeAclsRequest

if TYPE_CHECKING:
    from headrace.client.cluster import Cluster

DESCRIBE_ACLS = 29
_PATTERN_WORDS = {number: word for word, number in PATTERNS.items()}


class AclAdmin:
    """The part of the admin client that is about access."""

    _cluster: Cluster

    async def describe_acls(self) -> list[AclDescription]:
        """All access rules; KafkaError(SECURITY_DISABLED) or NotServed where a cluster knows none."""
        request = DescribeAclsRequest(
            resource_type_filter=ANY,
            resource_name_filter=None,
            pattern_type_filter=PATTERNS["ANY"],
            principal_filter=None,
            host_filter=None,
            operation=ANY,
            permission_type=ANY,
        )
        answer = await self._cluster.ask(DESCRIBE_ACLS, request)
        check("describe_acls", answer)
        return [
            AclDescription(
                resource_type=RESOURCES.get(resource.resource_type, "UNKNOWN"),
                resource_name=resource.resource_name,
                pattern_type=_PATTERN_WORDS.get(resource.pattern_type, "UNKNOWN"),
                principal=one.principal,
                host=one.host,
                operation=OPERATIONS.get(one.operation, "UNKNOWN"),
                permission=PERMISSIONS.get(one.permission_type, "UNKNOWN"),
            )
            for resource in answer.resources
            for one in resource.acls
        ]
