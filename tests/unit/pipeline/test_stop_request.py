"""Being asked to stop."""

import os
import signal

import pytest

from headrace.pipeline.runs import ask_to_stop
from headrace.pipeline.stop_request import StopRequest


@pytest.fixture(autouse=True)
def _state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_noted_and_a_second_one_ends(number):
    """Does a first signal only leave a note, a second one end the program, and is all as before afterwards?"""
    before = signal.getsignal(number)
    with StopRequest("fleet") as stop:
        assert not stop
        os.kill(os.getpid(), number)
        assert stop
        stop.wait(3600)  # Over at once.
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)

    assert signal.getsignal(number) is before


def test_a_note_is_seen():
    """Is the note that `stop` leaves seen like a signal?"""
    with StopRequest("fleet") as stop:
        assert not stop
        ask_to_stop("fleet")
        assert stop
