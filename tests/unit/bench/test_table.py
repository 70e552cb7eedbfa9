"""The benchmark's arithmetic: medians, ratios by round, verdicts, and the page it writes into."""

from bench.seats import HEADRACE, HEADRACE_FLUSH, KAFKA
from bench.table import BEGIN, END, Results, Target, markdown, number, shortfalls, write_into


def measured(*rounds: tuple[float, float]) -> Results:
    """Results of one metric, for Kafka and Headrace in every round."""
    results = Results()
    for index, (kafka, headrace) in enumerate(rounds):
        results.add("work", KAFKA, index, {"records/s": kafka})
        results.add("work", HEADRACE, index, {"records/s": headrace})
    return results


def test_ratio_is_taken_within_a_round():
    """Is the machine's slow moment, which hits both brokers of a round, taken out by the ratio?"""
    results = measured((100, 150), (10, 15), (200, 300))

    assert results.ratios("work", "records/s", HEADRACE) == [1.5, 1.5, 1.5]
    assert results.middle("work", "records/s", KAFKA) == 100


def test_missing_rounds_have_no_ratio():
    """Does a round without the peer's number give no ratio instead of a wrong one?"""
    results = measured((100, 150))
    results.add("work", HEADRACE, 1, {"records/s": 999})
    results.add("work", HEADRACE_FLUSH, 2, {"records/s": 1})

    assert results.ratios("work", "records/s", HEADRACE) == [1.5]
    assert results.ratios("work", "records/s", HEADRACE_FLUSH) == []


def test_verdicts():
    """Does a target on a ratio look at the ratio, and one on a number at the number of its own seat?"""
    results = measured((100, 110))
    results.add("work", HEADRACE_FLUSH, 0, {"records/s": 9})
    key = ("work", "records/s")

    def verdict(target: Target) -> str:
        return markdown(results, {key: target}).splitlines()[-1].split("|")[-2].strip()

    assert verdict(Target(bound=1.1, at_least=True)) == "yes"
    assert verdict(Target(bound=1.2, at_least=True)) == "**no**"
    assert verdict(Target(bound=0.6)) == "**no**"
    assert verdict(Target(bound=10, ratio=False, seat=HEADRACE_FLUSH)) == "yes"
    assert verdict(Target(bound=10, ratio=False)) == "**no**"


def test_shortfalls_are_named():
    """Is every target that was missed named with what was reached, and no other?"""
    results = measured((100, 110))
    results.add("rest", HEADRACE, 0, {"MiB": 90.0, "s": 1.0})
    targets = {
        ("work", "records/s"): Target(bound=1.2, at_least=True),
        ("rest", "MiB"): Target(bound=80, ratio=False),
        ("rest", "s"): Target(bound=3, ratio=False),
    }

    lines = shortfalls(results, targets).splitlines()

    assert lines == ["- work: records/s is 1.10×, wanted ≥ 1.2×", "- rest: MiB is 90, wanted ≤ 80"]


def test_headrace_alone():
    """Does the table of a machine without Java leave out what it cannot say?"""
    results = Results()
    results.add("work", HEADRACE, 0, {"records/s": 1234.5})

    (row,) = markdown(results, {("work", "records/s"): Target(bound=1.2, at_least=True)}).splitlines()[2:]

    cells = [cell.strip() for cell in row.split("|")[1:-1]]
    assert cells == ["work: records/s", "", "1,234", "", "", "", "", "", "≥ 1.2×", ""]


def test_numbers():
    """Are numbers short enough to read and long enough to compare?"""
    values = (0.0123456, 1.2345, 99.4, 123.4, 1234.5, 1234567.0)

    assert [number(value) for value in values] == ["0.0123", "1.23", "99.4", "123", "1,234", "1,234,567"]


def test_page_keeps_its_prose(tmp_path):
    """Does writing the table twice replace the table and nothing else?"""
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")

    write_into(page, "first\n")
    write_into(page, "second\n")

    assert page.read_text() == f"before\n{BEGIN}\nsecond\n{END}\nafter\n"
