"""Who may do what, in the shapes of REST v3; only to look at."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from headrace.client.admin_values import AclDescription
from headrace.client.fault import NotServed
from headrace.gateway.problem import Problem
from headrace.gateway.route import Call, Route
from headrace.gateway.v3_address import CLUSTER, Address, Key, ListMetadata, Page, Resource, cluster_of, turn
from headrace.gateway.v3_clusters import ClusterId
from headrace.model.errors import ErrorCode, KafkaError

_NO_ACLS = 50101


class KafkaAcl(Resource, frozen=True, kw_only=True):
    """Who may do what to which resources, or must not."""

    cluster_id: ClusterId
    resource_type: Annotated[str, Meta(examples=["TOPIC"])]
    resource_name: Annotated[str, Meta(examples=["trucks"])]
    pattern_type: Annotated[str, Meta(examples=["LITERAL"])]
    principal: Annotated[str, Meta(examples=["User:panel"])]
    host: Annotated[str, Meta(examples=["*"])]
    operation: Annotated[str, Meta(examples=["READ"])]
    permission: Annotated[str, Meta(examples=["ALLOW"])]


class KafkaAclList(Struct, frozen=True, kw_only=True, tag_field="kind", tag=True):
    """Access rules."""

    metadata: ListMetadata
    data: list[KafkaAcl]


async def _list(call: Call) -> KafkaAclList:
    cluster = await cluster_of(call)
    found = sorted(await _rules(call), key=_key)
    shown, metadata = turn(call, f"{cluster.url}/acls", found, _key)
    return KafkaAclList(metadata=metadata, data=[_acl(call, cluster, one) for one in shown])


async def _rules(call: Call) -> list[AclDescription]:
    nothing = Problem(501, _NO_ACLS, "This cluster has no access rules; nobody is kept from anything.")
    try:
        return await call.services.admin.describe_acls()
    except NotServed:
        raise nothing from None
    except KafkaError as error:
        raise (nothing if error.code == ErrorCode.SECURITY_DISABLED else error) from None


def _key(one: AclDescription) -> Key:
    return [
        one.resource_type,
        one.resource_name,
        one.pattern_type,
        one.principal,
        one.host,
        one.operation,
        one.permission,
    ]


def _acl(call: Call, cluster: Address, one: AclDescription) -> KafkaAcl:
    return KafkaAcl(
        metadata=cluster.under("acls", "acl", ":".join(_key(one))).metadata,
        cluster_id=call.path["cluster_id"],
        resource_type=one.resource_type,
        resource_name=one.resource_name,
        pattern_type=one.pattern_type,
        principal=one.principal,
        host=one.host,
        operation=one.operation,
        permission=one.permission,
    )


ROUTES = (
    Route(
        method="GET",
        path=f"{CLUSTER}/acls",
        handle=_list,
        tag="v3 cluster",
        summary="The access rules",
        detail="Answered with 501 by a cluster that has none, as Headrace itself has none yet.",
        query=Page,
        answer=KafkaAclList,
        problems=(403,),
    ),
)
