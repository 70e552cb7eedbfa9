"""All pages: one list, in the order of the navigation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.console import (
    brokers_page,
    explorer_page,
    fleet_page,
    group_page,
    groups_page,
    overview_page,
    pipelines_page,
    quorum_page,
    reset_page,
    topic_page,
    topics_page,
    transactions_page,
)

if TYPE_CHECKING:
    from headrace.console.page import Page

PAGES: tuple[Page, ...] = (
    *overview_page.PAGES,
    *topics_page.PAGES,
    *topic_page.PAGES,
    *groups_page.PAGES,
    # A group may have any name, slashes in it too: the longer path is tried first.
    *reset_page.PAGES,
    *group_page.PAGES,
    *transactions_page.PAGES,
    *pipelines_page.PAGES,
    *brokers_page.PAGES,
    *quorum_page.PAGES,
    *fleet_page.PAGES,
    *explorer_page.PAGES,
)
