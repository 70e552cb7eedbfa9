import pytest

from headrace.settings.fault import ConfigFault
from headrace.settings.setting import Fallback, Kind, Setting
from headrace.settings.table import read_table

ROWS = """
a.b  int  5  1..9|-1  high  cluster-wide  served
    First sentence
    goes on.
c  list  ""  {x,y}i  low  hidden
    Second.
d  string  required
    Third.
e  long  unset  ..7  <-a.b*60,f
    Fourth.
"""


def test_a_table_is_read_row_by_row() -> None:
    """Is every fact of the notation understood?"""
    table = read_table(ROWS, "broker")

    assert table == {
        "a.b": Setting(
            "a.b", "broker", Kind.INT, 5, "First sentence goes on.", "high", "cluster-wide", 1.0, 9.0, -1, served=True
        ),
        "c": Setting("c", "broker", Kind.LIST, (), "Second.", "low", choices=("x", "y"), any_case=True, hidden=True),
        "d": Setting("d", "broker", Kind.STRING, None, "Third.", required=True),
        "e": Setting(
            "e", "broker", Kind.LONG, None, "Fourth.", high=7.0, synonyms=(Fallback("a.b", 60), Fallback("f"))
        ),
    }


def test_a_default_obeys_its_own_row() -> None:
    """Is a default outside its own bounds caught at the first import?"""
    with pytest.raises(ConfigFault, match="no more than 9"):
        read_table("a  int  10  1..9\n    Sentence.", "topic")


def test_a_name_stands_once() -> None:
    """Is a row that repeats a name our mistake, caught at the first import?"""
    with pytest.raises(AssertionError, match=r"a\.b"):
        read_table(ROWS.replace("d  string", "a.b  string"), "broker")
