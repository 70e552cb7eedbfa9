"""Whether the gateway does what its OpenAPI document says, asked by schemathesis and by hand."""

import httpx
import jsonschema_rs
import msgspec
import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from headrace.gateway.openapi import document
from headrace.gateway.route_table import ROUTES
from headrace.testing.cluster import Cluster
from headrace.testing.gateway_thread import GatewayThread

DOCUMENT = document(ROUTES)


def finite(whole):
    """The document without operations whose answers do not end."""
    paths = {
        path: {
            method: one
            for method, one in methods.items()
            if all(ENDLESS not in answer.get("content", {}) for answer in one["responses"].values())
        }
        for path, methods in whole["paths"].items()
    }
    return {**whole, "paths": {path: methods for path, methods in paths.items() if methods}}


ENDLESS = "text/event-stream"
"""What is answered so has tests of its own: nobody could wait for its end."""
CONFIG = schemathesis.Config.from_dict({"phases": {"coverage": {"enabled": False}}})
SCHEMA = schemathesis.openapi.from_dict(finite(DOCUMENT), config=CONFIG)
THOROUGH = schemathesis.openapi.from_dict(finite(DOCUMENT))
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
ALLOWED = {501, 503, 504}
TOPIC, GROUP = "contract", "contract-group"
QUIET = [HealthCheck.filter_too_much, HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
PARTITIONS_MAX = 3


@schemathesis.serializer("application/x-ndjson")
def lines(context, value):
    """One record is a line, and JSON as well."""
    return msgspec.json.encode(value) if not isinstance(value, bytes) else value


@pytest.fixture(scope="module")
def world():
    """A broker and a gateway of the test's own: whatever fits the schema is done to them."""
    with Cluster({"num.partitions": "1"}) as cluster, GatewayThread(cluster.bootstrap) as gateway:
        with httpx.Client(base_url=gateway.url, timeout=30) as client:
            here = f"/v3/clusters/{client.get('/v3/clusters').json()['data'][0]['cluster_id']}"
            client.post(f"{here}/topics", json={"topic_name": TOPIC}).raise_for_status()
            reset = {"scenario": {"type": "to-earliest"}, "topics": [{"topic_name": TOPIC}], "execute": True}
            client.post(f"{here}/consumer-groups/{GROUP}/offsets:reset", json=reset).raise_for_status()
        yield gateway, here.rpartition("/")[2]


def aim(case, cluster_id):
    """Let about half of the requests meet something that is there, and none make thousands of partitions."""
    real = {"topic_name": TOPIC, "topic": TOPIC, "consumer_group_id": GROUP, "broker_id": 1, "partition_id": 0}
    real |= {"name": "retention.ms", "partition": 0, "topics": TOPIC}
    parameters = case.path_parameters or {}
    if "cluster_id" in parameters:
        parameters["cluster_id"] = cluster_id
    if case.method != "DELETE":
        odd = len(str(sorted(parameters.items()))) % 2
        parameters |= {name: value for name, value in real.items() if name in parameters and odd}
    body = case.body if isinstance(case.body, dict) else {}
    if isinstance(body.get("partitions_count"), int):
        body["partitions_count"] = min(body["partitions_count"], PARTITIONS_MAX)
    if isinstance(body.get("replicas_assignments"), list):
        body["replicas_assignments"] = body["replicas_assignments"][:PARTITIONS_MAX]


def ask(case, world):
    """Ask, and hold the answer against the document."""
    gateway, cluster_id = world
    aim(case, cluster_id)
    answer = case.call(base_url=gateway.url, timeout=30)
    checks = [check for check in CHECKS if answer.status_code not in ALLOWED or check is not not_a_server_error]
    case.validate_response(answer, checks=checks)


def parts(found):
    """Every place of the document where a schema and an example stand side by side."""
    if isinstance(found, dict):
        if "schema" in found and "example" in found:
            yield found
        for one in found.values():
            yield from parts(one)
    elif isinstance(found, list):
        for one in found:
            yield from parts(one)


def test_examples_fit():
    """Does every example in the document fit the schema it stands beside?"""
    shown = list(parts(DOCUMENT))
    for one in shown:
        whole = {**one["schema"], "components": DOCUMENT["components"]}
        jsonschema_rs.validator_for(whole).validate(one["example"])

    assert len(shown) > 100


def test_everything_is_explained():
    """Has every operation a name of its own, a summary and a known tag, and every parameter in a path a sentence?"""
    operations = [one for path in DOCUMENT["paths"].values() for one in path.values()]
    silent = [
        (one["operationId"], parameter["name"])
        for one in operations
        for parameter in one["parameters"]
        if not parameter["description"]
    ]

    assert len(operations) == len({one["operationId"] for one in operations}) == len(ROUTES)
    assert all(one["summary"] for one in operations)
    assert [] == [tag["name"] for tag in DOCUMENT["tags"] if not tag["description"]]
    assert [] == silent


def test_document_is_openapi():
    """Is the document itself what the OpenAPI 3.1 specification says it is?"""
    SCHEMA.validate()


@pytest.mark.slow
@SCHEMA.parametrize()
@settings(max_examples=8, deadline=None, derandomize=True, suppress_health_check=QUIET)
def test_contract(case, world):
    """Is every answer one that the document knows, and never a mistake of ours?"""
    ask(case, world)


@pytest.mark.long
@THOROUGH.parametrize()
@settings(max_examples=200, deadline=None, suppress_health_check=QUIET)
def test_contract_at_length(case, world):
    """The same, for longer and by chance: is every answer one that the document knows?"""
    ask(case, world)
