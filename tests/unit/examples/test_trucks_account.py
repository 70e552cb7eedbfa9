"""The fleet's account finds what is lost and what came twice."""

from account import Account

LEDGER = {"T-1": 3, "T-2": 2}


def filled():
    account = Account()
    for truck, seq in (("T-1", 0), ("T-1", 2), ("T-2", 0), ("T-2", 1)):
        account.add_position(truck, seq, latency_ms=100 * (seq + 1))
    account.add_dead_letter("T-1", 1)
    return account


def test_whole():
    """Is an account whole in which every report is a position or a dead letter?"""
    account = filled()
    verdict = account.verdict(LEDGER)

    assert account.is_complete(LEDGER)
    assert (5, 4, 1, 0, 0) == (
        verdict.sent,
        verdict.processed,
        verdict.dead_lettered,
        verdict.missing,
        verdict.twice,
    )
    assert verdict.is_whole
    assert (200, 300) == (verdict.latency_p50_ms, verdict.latency_p99_ms)


def test_missing():
    """Are reports in the middle, at the end and of trucks that were never seen found missing?"""
    account = Account()
    account.add_position("T-1", 1, latency_ms=1)
    verdict = account.verdict(LEDGER)

    assert not account.is_complete(LEDGER)
    assert not verdict.is_whole
    assert (4, ["T-1:0", "T-1:2", "T-2:0", "T-2:1"]) == (verdict.missing, verdict.examples)


def test_twice():
    """Is a position that comes again found, one that is a dead letter as well, and one that nobody sent?"""
    again, both, unknown, stranger = filled(), filled(), filled(), filled()
    again.add_position("T-1", 0, latency_ms=1)
    both.add_dead_letter("T-1", 0)
    unknown.add_position("T-2", 2, latency_ms=1)
    stranger.add_position("T-9", 0, latency_ms=1)

    assert [1, 1, 1, 1] == [one.verdict(LEDGER).twice for one in (again, both, unknown, stranger)]


def test_dead_letters_may_repeat():
    """Does a dead letter that comes again count once?"""
    account = filled()
    account.add_dead_letter("T-1", 1)

    assert account.verdict(LEDGER).is_whole


def test_alerts():
    """Are alerts counted by kind, and those that came twice found?"""
    account = filled()
    account.add_alert("T-1:idle:0", "idle")
    account.add_alert("T-1:speeding:0", "speeding")

    assert account.verdict(LEDGER).is_whole

    account.add_alert("T-1:idle:0", "idle")
    verdict = account.verdict(LEDGER)

    assert ({"idle": 1, "speeding": 1}, 1) == (verdict.alerts, verdict.alerts_twice)
    assert not verdict.is_whole


def test_latencies_are_those_of_all_reports():
    """Do the last of many reports count as much as the first, and are long latencies told to a tenth of a second?"""
    account = Account()
    for seq in range(1_100_000):
        account.add_position("T-1", seq, 5 if seq < 400_000 else 25_678)
    verdict = account.verdict({"T-1": 1_100_000})

    assert (25_600, 25_600) == (verdict.latency_p50_ms, verdict.latency_p99_ms)
