"""What went in and out of topics."""

from headrace.broker.traffic import Traffics


def test_a_topic_that_is_gone_still_counts():
    """Does the broker's total keep what a deleted topic carried, and a new one of its name begin at zero?"""
    traffics = Traffics()
    traffics.of("a").bytes_in += 5
    traffics.of("b").bytes_in += 7

    traffics.forget("a")
    traffics.forget("never")

    assert (traffics.total().bytes_in, list(traffics.by_topic)) == (12, ["b"])
    assert traffics.of("a").bytes_in == 0
