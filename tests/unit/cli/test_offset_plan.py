"""Plans of offsets as CSV."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.cli.offset_plan import BadPlan, read_plan, write_plan

PLANS = {"g 1": {("orders", 0): 5, ("orders", 1): 7}, "a-group-with-a-long-name-indeed": {("t", 3): 0}}
NAMES = st.text(
    st.characters(codec="utf-8", exclude_characters="\0\r\n\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"), min_size=1
)


def test_quotes_stand_where_kafka_puts_them():
    """Are long names and names with blanks quoted, and no others?"""
    expected = '"g 1",orders,0,5\n"g 1",orders,1,7\n"a-group-with-a-long-name-indeed",t,3,0\n'

    assert expected == write_plan(PLANS, with_group=True)
    assert expected.count('"g 1",') == 2
    assert "orders,0,5\n" in write_plan(PLANS, with_group=False)


@given(st.dictionaries(NAMES, st.dictionaries(st.tuples(NAMES, st.integers(0, 99)), st.integers(0), min_size=1)))
def test_what_is_written_can_be_read(plans):
    """Does every plan come back?"""
    assert plans == read_plan(write_plan(plans, with_group=True), None)


def test_a_plan_for_one_group_needs_no_group():
    """Do both forms of the file work when one group is asked for?"""
    assert {"g": {("t", 0): 1}} == read_plan("t,0,1\n", "g")
    assert {"other": {("t", 0): 1}} == read_plan("other,t,0,1\n", "g")


@pytest.mark.parametrize("text", ["t,0\n", "t,0,1\n", "g,t,x,1\n", "a,b,c,d,e\n"])
def test_what_is_no_plan(text):
    """Is a file for several groups that is something else refused, naming the line?"""
    with pytest.raises(BadPlan, match="line 1"):
        read_plan(text, None)
