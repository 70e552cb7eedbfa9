"""How far everything is safe: the lowest offset over all replicas that could be elected."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headrace.cores.replication.progress import FollowerProgress


def safe_offset(own_offset: int, followers: Iterable[FollowerProgress]) -> int:
    """The offset below which we and each of these followers have everything; HOT."""
    mark = own_offset
    for follower in followers:
        if follower.offset < mark:  # noqa: PLR1730 - a call for each follower of each fetch costs more than it says
            mark = follower.offset
    return mark
