"""`AsyncKafkaAdmin`: topics, settings, groups, nodes and transactions, on our own wire client."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Self

from headrace.client.admin_acls import AclAdmin
from headrace.client.admin_brokers import BrokerAdmin
from headrace.client.admin_configs import ConfigAdmin
from headrace.client.admin_groups import GroupAdmin
from headrace.client.admin_reassignments import ReassignmentAdmin
from headrace.client.admin_transactions import TransactionAdmin
from headrace.client.client_options import gather
from headrace.client.cluster import Cluster
from headrace.client.option_table import ADMIN


class AsyncKafkaAdmin(TransactionAdmin, ReassignmentAdmin, ConfigAdmin, GroupAdmin, AclAdmin, BrokerAdmin):
    """Administers a cluster; use it as an asynchronous context manager, or `start` and `close` it."""

    def __init__(
        self,
        *,
        config: Mapping[str, Any] | None = None,
        config_file: str | os.PathLike[str] | None = None,
        **options: Any,
    ) -> None:
        """Options have kafka-python's names, in `config` and `config_file` Java's as well; docs/howto/clients.md."""
        connection = gather(ADMIN, options, config=config, config_file=config_file).connection()
        self._cluster = Cluster(connection)
        self._timeout_ms = int(connection.request_timeout_s * 1000)

    async def start(self) -> None:
        """Connect; whatever prevents it is raised here."""
        await self._cluster.any_channel()

    async def close(self) -> None:
        """Hang up."""
        await self._cluster.close()

    stop = close

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
