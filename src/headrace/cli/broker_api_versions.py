"""kafka-broker-api-versions: which requests each broker serves, and which of them we can use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.cli.addresses import settle_address
from headrace.cli.administration import check
from headrace.cli.session import describe, run_tool
from headrace.cli.tool import BOOTSTRAP, COMMAND_CONFIG, Tool
from headrace.client.fault import ClientFault
from headrace.wire.apis import APIS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.cli.session import Session

API_VERSIONS = 18
CLIENT_APIS = (
    *range(4),
    *range(8, 52),
    *(55, 57, 60, 61, 64, 65, 66, 68, 69, 71, 72),
    *range(74, 82),
    *range(83, 93),
)
"""The requests of Kafka 4.3.1 that clients may send to brokers; the others are between nodes."""

TOOL = Tool(
    name="kafka-broker-api-versions",
    summary="This tool helps to retrieve broker version information.",
    options=(BOOTSTRAP, COMMAND_CONFIG),
    examples=(("What every broker serves", "--bootstrap-server localhost:9092"),),
)


def main(arguments: Sequence[str], program: str) -> int:
    """Run the tool."""
    return run_tool(TOOL, arguments, program, _run)


async def _run(session: Session) -> int:
    settle_address(session, 'Missing required argument "[bootstrap-server]"', with_usage=True)
    metadata = await session.cluster.metadata(())
    documents, failures = [], 0
    for broker in sorted(metadata.brokers, key=lambda one: int(one.node_id)):
        node = f"{broker.host}:{broker.port} (id: {broker.node_id} rack: {broker.rack or 'null'} isFenced: false)"
        document: dict[str, Any] = {"id": broker.node_id, "host": broker.host, "port": broker.port}
        try:
            served = await _served(session, broker.node_id)
        except ClientFault as fault:
            failures += 1
            session.report.line(f"{node} -> ERROR: {describe(fault)}")
            documents.append(document | {"error": describe(fault)})
            continue
        lines = [_line(key, served.get(key)) for key in sorted({*served, *CLIENT_APIS})]
        session.report.line(f"{node} -> (\n\t" + ",\n\t".join(lines) + "\n)")
        documents.append(document | {"apis": [_document(key, *versions) for key, versions in sorted(served.items())]})
    session.report.data(documents)
    return int(failures > 0)


async def _served(session: Session, node_id: int) -> dict[int, tuple[int, int]]:
    from headrace.wire.messages.api_versions import ApiVersionsRequest

    request = ApiVersionsRequest(client_software_name="headrace", client_software_version="1")
    answer = await session.cluster.ask(API_VERSIONS, request, node_id=node_id)
    check(answer.error_code)
    return {one.api_key: (one.min_version, one.max_version) for one in answer.api_keys}


def _line(key: int, versions: tuple[int, int] | None) -> str:
    name = APIS[key].name if key in APIS else "UNKNOWN"
    if versions is None:
        return f"{name}({key}): UNSUPPORTED"
    low, high = versions
    shown = str(low) if low == high else f"{low} to {high}"
    return f"{name}({key}): {shown}{_usable(key, low, high)}"


def _usable(key: int, low: int, high: int) -> str:
    if key not in APIS:
        return ""
    api = APIS[key]
    if high < api.version_first:
        return " [unusable: node too old]"
    if low > api.version_last:
        return " [unusable: node too new]"
    return f" [usable: {min(high, api.version_last)}]"


def _document(key: int, low: int, high: int) -> dict[str, Any]:
    name = APIS[key].name if key in APIS else None
    usable = min(high, APIS[key].version_last) if key in APIS else None
    return {"key": key, "name": name, "minVersion": low, "maxVersion": high, "usable": usable}
