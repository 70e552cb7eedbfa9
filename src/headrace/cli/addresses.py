"""Where a tool finds its cluster when the user says it in another way than --bootstrap-server.

Tutorials of Kafka 2 and before say `--zookeeper localhost:2181`; there is no ZooKeeper to ask any more, so the tool
asks the cluster of the profile, or the broker every tutorial means.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from headrace.cli.session import Failure
from headrace.cli.tool import Option, UsageError

if TYPE_CHECKING:
    from headrace.cli.session import Session

ZOOKEEPER = Option(name="zookeeper", argument="host:port,...", help="", is_hidden=True)
BOOTSTRAP_CONTROLLER = Option(
    name="bootstrap-controller", argument="host:port,...", help="The controllers to connect to, instead of brokers."
)
USUAL = "localhost:9092"
REMEDY = "Say where a broker is: --bootstrap-server localhost:9092"


def settle_address(session: Session, missing: str = "", *, with_usage: bool = False) -> None:
    """Make sure that somebody says where the cluster is; `missing` is Kafka's sentence where nobody does."""
    values = session.values
    controllers = values.given.get("bootstrap-controller")
    if controllers is not None:
        if values.has("bootstrap-server") and values.given["bootstrap-server"] is not controllers:
            raise Failure("Only one of --bootstrap-server or --bootstrap-controller can be specified")
        values.given["bootstrap-server"] = controllers
    elif values.has("zookeeper"):
        _leave_zookeeper(session)
    elif missing and not values.has("bootstrap-server") and not session.properties().get("bootstrap.servers"):
        if with_usage:
            raise UsageError(missing)
        raise Failure(missing, remedy=REMEDY)


def _leave_zookeeper(session: Session) -> None:
    known = session.values.get("bootstrap-server") or session.properties().get("bootstrap.servers")
    if not known:
        session.values.given["bootstrap-server"] = [USUAL]
    print(f"Kafka 4 has no ZooKeeper, so --zookeeper is not used: asking {known or USUAL}.", file=sys.stderr)
