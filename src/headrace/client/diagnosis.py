"""Why a broker cannot be reached, asked once more by a connection of our own: the engine tells less of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from headrace.client.blocking_channel import BlockingChannel
from headrace.client.fault import ClientFault
from headrace.model.errors import HeadraceError

if TYPE_CHECKING:
    from headrace.client.options import ConnectionOptions

_PATIENCE_S = 2.0
_ADDRESSES_MAX = 2


def diagnosis(options: ConnectionOptions) -> ClientFault | None:
    """What prevents a connection; None if nothing does, or nothing we could name."""
    quick = replace(options, connect_timeout_s=_PATIENCE_S, request_timeout_s=_PATIENCE_S)
    for host, port in options.bootstrap[:_ADDRESSES_MAX]:
        try:
            BlockingChannel(host, port, quick).close()
        except ClientFault as fault:
            return fault
        except HeadraceError:
            continue
    return None
