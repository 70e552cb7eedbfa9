"""What a new topic gets where its creator does not say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.cores.controller import Defaults

if TYPE_CHECKING:
    from headrace.settings.broker import BrokerConfig


def topic_defaults(config: BrokerConfig) -> Defaults:
    """The numbers a broker's settings give to new topics."""
    return Defaults(partitions=config["num.partitions"], replication_factor=config["default.replication.factor"])
