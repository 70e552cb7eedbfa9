"""How many records fit an answer."""

import pytest

from headrace.client.fetching import FetchedRecord
from headrace.gateway.formats import FORMATS
from headrace.gateway.problem import Problem
from headrace.gateway.records_v2 import Page


def records(*values):
    return [FetchedRecord("t", 0, offset, 0, None, value, ()) for offset, value in enumerate(values)]


@pytest.mark.parametrize(
    ("max_bytes", "fitting", "is_full"), [(1, 1, True), (4, 2, True), (6, 3, False), (7, 3, False)]
)
def test_as_many_as_fit(max_bytes, fitting, is_full):
    """Are so many taken as fit, one in any case?"""
    page = Page(FORMATS["text"], max_bytes)

    assert (page.add(records(b"ab", b"cd", b"ef")), page.is_full) == (fitting, is_full)


def test_a_misfit_ends_a_page():
    """Are the records before a misfit given, and is it refused when it is the first?"""
    page = Page(FORMATS["json"], 100)

    assert (page.add(records(b"1", b"{", b"3")), page.is_full) == (1, True)
    with pytest.raises(Problem, match=r"t-0 at offset 0 is not JSON") as refused:
        Page(FORMATS["json"], 100).add(records(b"{"))
    assert (refused.value.status, refused.value.code) == (406, 40601)
