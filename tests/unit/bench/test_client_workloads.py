"""The measurements of the Python clients: who is measured, and what is made of the rates."""

import bench.__main__ as program
import pytest
from bench import plan
from bench.client_workloads import Clients, compared

from headrace.cli.bootstrap import SetupError


@pytest.mark.parametrize(("name", "bound"), [("confluent-kafka", 0.9), ("kafka-python", 5.0)])
def test_every_peer_is_measured_and_has_a_target(name, bound):
    """Are producer and consumer both measured beside each peer, with the target that the project set itself?"""
    contests = {work.name: work for work in plan.workloads(quick=True) if isinstance(work, Clients)}

    assert list(contests) == ["Python producer", "Python consumer"]
    for kind, work in contests.items():
        target = plan.TARGETS[kind, f"× {name}"]
        assert name in work.contestants
        assert target.text() == f"≥ {bound:g}×"
        assert target.met(bound)
        assert not target.met(bound - 0.01)


def test_ratio_is_taken_within_a_turn():
    """Is a slow moment of the machine, which all contestants of a turn meet, taken out by the ratio?"""
    numbers = compared({"headrace": [600, 60, 500], "confluent-kafka": [600, 60, 400], "kafka-python": [100, 10, 50]})

    assert numbers == {"records/s": 500, "× confluent-kafka": 1, "× kafka-python": 6}


def test_clients_are_left_out_where_their_peers_cannot_be_installed(monkeypatch, capsys):
    """Does a machine without a network still measure all the rest, and say what it does not?"""

    def refuse(*names: str) -> None:
        raise SetupError(f"No network for {' and '.join(names)}.", "Try again.")

    monkeypatch.setattr(program, "ensure_extra", refuse)
    every = plan.workloads(quick=True)

    left = program._with_peers(every)

    assert [work.name for work in every[:-2]] == [work.name for work in left]
    assert "The Python clients are left out: No network for client and bench." in capsys.readouterr().out
