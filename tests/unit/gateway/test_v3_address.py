"""Addresses and pages of REST v3."""

from types import SimpleNamespace
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.gateway.problem import Problem
from headrace.gateway.v3_address import Address, Page, turn

URL = "http://localhost/v3/things"


def walk(items, size):
    """All pages of a list, from metadata.next to metadata.next."""
    query, pages = Page(page_size=size), []
    while True:
        shown, metadata = turn(SimpleNamespace(query=query), URL, items, lambda item: [item, 0])
        pages.append(list(shown))
        if metadata.next is None:
            return pages
        words = parse_qs(urlsplit(metadata.next).query)
        query = Page(page_size=int(words["page_size"][0]), page_token=words["page_token"][0])


@given(st.sets(st.text(), max_size=20), st.integers(1, 8))
def test_every_item_is_on_one_page(names, size):
    """Is every item on exactly one page, in order, and no page too long?"""
    pages = walk(sorted(names), size)

    assert [name for page in pages for name in page] == sorted(names)
    assert all(len(page) <= size for page in pages)


@pytest.mark.parametrize("token", ["nonsense", "e30", "ÿ", "WzEsMl0", ""])
def test_foreign_token(token):
    """Is a token that is not ours refused?"""
    with pytest.raises(Problem, match="page_token"):
        turn(SimpleNamespace(query=Page(page_token=token)), URL, ["a"], lambda item: [item, 0])


def test_names_with_signs():
    """Is a name with a slash one step of the URL, and itself in the resource name?"""
    group = Address("http://h/v3/clusters/c", "crn:///kafka=c").under("consumer-groups", "consumer-group", "a/b c")

    assert group.url == "http://h/v3/clusters/c/consumer-groups/a%2Fb%20c"
    assert group.name == "crn:///kafka=c/consumer-group=a/b c"
