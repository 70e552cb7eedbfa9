"""Where things are in REST v3: their URLs, their names, and lists of them in pages."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import Annotated, Any, NamedTuple, TypeVar
from urllib.parse import quote, urlencode

import msgspec
from msgspec import Meta, Struct

from headrace.gateway.problem import CLUSTER_NOT_FOUND, Problem, bad_request
from headrace.gateway.route import Call

CLUSTER = "/v3/clusters/{cluster_id}"
PAGE_MAX = 10_000
Item = TypeVar("Item")
Key = list[Any]

Url = Annotated[str, Meta(examples=["http://localhost:8082/v3/clusters/Rk5pWl2vTbGk0000000001"])]
Crn = Annotated[str, Meta(examples=["crn:///kafka=Rk5pWl2vTbGk0000000001"])]


class Metadata(Struct, frozen=True, kw_only=True):
    """Where an object is, and its name among all."""

    self: Url
    resource_name: Crn


class ListMetadata(Struct, frozen=True, kw_only=True):
    """Where a list is, and where it goes on; null at its end."""

    self: Url
    next: Url | None = None


class Related(Struct, frozen=True, kw_only=True):
    """Where something that belongs to an object is."""

    related: Url


class Resource(Struct, frozen=True, kw_only=True, tag_field="kind", tag=True):
    """An object; its kind says which."""

    metadata: Metadata


class Page(Struct, frozen=True, kw_only=True):
    """Which part of a list."""

    page_size: Annotated[int, Meta(ge=1, le=PAGE_MAX, description="How many objects at most.", examples=[100])] = (
        PAGE_MAX
    )
    page_token: Annotated[
        str | None, Meta(description="Where to go on: what metadata.next of the page before has in it.")
    ] = None


class Address(NamedTuple):
    """An object's URL and name."""

    url: str
    name: str

    def under(self, folder: str, word: str, key: object) -> Address:
        """The address of something in a folder of this."""
        return Address(f"{self.url}/{folder}/{quote(str(key), safe='')}", f"{self.name}/{word}={key}")

    def related(self, tail: str = "") -> Related:
        """A link to something below, or to this."""
        return Related(related=self.url + tail)

    @property
    def metadata(self) -> Metadata:
        """As objects show it."""
        return Metadata(self=self.url, resource_name=self.name)


def clusters_url(call: Call) -> str:
    """The list of clusters, under the name by which the client reached us."""
    return f"{call.request.base_url}v3/clusters"


def cluster_address(call: Call, cluster_id: str) -> Address:
    """The address of a cluster."""
    return Address(f"{clusters_url(call)}/{quote(cluster_id, safe='')}", f"crn:///kafka={cluster_id}")


async def cluster_of(call: Call) -> Address:
    """The address of the cluster in the path; Problem(404) if it is not the one behind this gateway."""
    asked: str = call.path["cluster_id"]
    found = await call.services.cluster_id(asked)
    if asked != found:
        raise Problem(404, CLUSTER_NOT_FOUND, f"There is no cluster '{asked[:100]}' here; GET /v3/clusters names it.")
    return cluster_address(call, found)


def turn(
    call: Call, url: str, items: Sequence[Item], key: Callable[[Item], Key]
) -> tuple[Sequence[Item], ListMetadata]:
    """One page of a list that is in the order of its keys, and where the next one is."""
    asked: Page = call.query
    after = None if asked.page_token is None else _read_token(asked.page_token)
    try:
        left = items if after is None else [item for item in items if key(item) > after]
    except TypeError:
        raise _bad_token() from None
    shown = left[: asked.page_size]
    if len(shown) == len(left):
        return shown, ListMetadata(self=url)
    rest = urlencode({"page_size": asked.page_size, "page_token": _token(key(shown[-1]))})
    return shown, ListMetadata(self=url, next=f"{url}?{rest}")


def _token(key: Key) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(key)).decode().rstrip("=")


def _read_token(token: str) -> Key:
    try:
        padded = token + "=" * (-len(token) % 4)
        return msgspec.json.decode(base64.urlsafe_b64decode(padded), type=list[str | int])
    except (binascii.Error, ValueError):
        raise _bad_token() from None


def _bad_token() -> Problem:
    return bad_request("This page_token is not from a list of ours; take it from metadata.next.")
