"""Colours for people, and none for programs."""

import io

import pytest

from headrace.cli.colours import BOLD, RED, PaintedStream, paint, wants_colour


class Screen(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")


def test_only_a_terminal_is_coloured():
    """Is text coloured on a terminal and left alone in a pipe?"""
    assert paint("well", RED, Screen()) == "\033[31mwell\033[0m"
    assert paint("well", RED, io.StringIO()) == "well"


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_colours_can_be_declined(monkeypatch, name, value):
    """Do NO_COLOR and a dumb terminal mean no colours, while an empty NO_COLOR means nothing?"""
    monkeypatch.setenv(name, value)
    assert not wants_colour(Screen())
    monkeypatch.setenv("NO_COLOR", "")
    monkeypatch.setenv("TERM", "xterm")
    assert wants_colour(Screen())


def test_lines_are_coloured_by_the_first_rule_that_fits():
    """Are whole lines coloured, however they are cut up when they are written?"""
    screen = Screen()
    stream = PaintedStream(screen, [(r"none", RED), (r"^GROUP", BOLD)])
    for part in ("GRO", "UP x\nLeader: no", "ne\n"):
        stream.write(part)

    assert screen.getvalue() == "\033[1mGROUP\033[0m x\nLeader: \033[31mnone\033[0m\n"


def test_a_prompt_is_not_kept_back():
    """Does a flush let go of a line without an end?"""
    screen = Screen()
    stream = PaintedStream(screen, [(r"none", RED)])
    stream.write(">")
    stream.flush()

    assert (screen.getvalue(), stream.isatty()) == (">", True)
