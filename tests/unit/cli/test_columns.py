"""Tables in the widths of Kafka's tools."""

from headrace.cli.columns import BARE, columns, fixed, least, tabbed


def test_columns_grow_or_stay():
    """Does a column grow with its texts, keep its width, or go without padding, as it was told?"""
    rows = [["GROUP", "N", "LAST"], ["a-long-group", 12345, None]]

    assert ["GROUP        N   LAST", "a-long-group 12345 -"] == columns(rows, [least(8), fixed(3), BARE])


def test_tabbed_columns_end_in_tabs():
    """Is each column as wide as its longest text, with a tab after every one of them?"""
    assert ["Id  \tState\t", "long\tx    \t"] == tabbed([["Id", "State"], ["long", "x"]])
