"""`headrace profile`: saved clusters by hand."""

import json

import pytest

from headrace.cli import profile
from headrace.cli.profile_command import main


@pytest.fixture(autouse=True)
def _home(tmp_path, monkeypatch):
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path))
    for name in ("HEADRACE_BOOTSTRAP_SERVERS", "HEADRACE_PROFILE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def ask(capsys):
    """Runs the command; gives its exit code and what it printed."""

    def run(*words):
        code = main(list(words), "headrace profile")
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return run


def test_the_chosen_profile_counts(ask):
    """After `use`, do the tools talk to that cluster, and does the list mark it?"""
    assert ask("add", "default", "localhost:9092")[0] == 0
    assert ask("add", "work", "kafka.example:9092", "--command-property", "sasl.password=hush")[0] == 0
    assert ask("use", "work") == (0, "The tools talk to kafka.example:9092 from now on.\n", "")
    assert ask("list")[1].splitlines() == [
        "  NAME     BOOTSTRAP-SERVERS",
        "  default  localhost:9092",
        "* work     kafka.example:9092",
    ]
    assert profile.load_profile(None)["sasl.password"] == "hush"


def test_a_misspelt_setting_is_said_when_it_is_saved(ask):
    """Is a setting that nobody knows said while the person is still there who typed it?"""
    code, _, err = ask("add", "work", "kafka.example:9092", "--command-property", "securty.protocol=SSL")

    assert (0, "Warning: securty.protocol is not a known setting; did you mean security.protocol?\n") == (code, err)


def test_what_cannot_be_understood_is_said_shortly(ask):
    """Does a command of our own answer a mistake in two lines, where Kafka's tools print all their options?"""
    code, out, err = ask("list", "--nme")

    assert (1, "") == (code, out)
    assert ["nme is not a recognized option", "`headrace profile --help` shows what can be typed."] == err.splitlines()


def test_passwords_are_not_shown(ask):
    """Is a secret hidden in text and in documents?"""
    ask("add", "work", "kafka.example:9092", "--command-property", "sasl.password=hush")
    code, out, _ = ask("show", "work")

    assert (code, "hush" in out, "sasl.password=[hidden]" in out) == (0, False, True)
    assert json.loads(ask("show", "work", "--output", "json")[1])["settings"]["sasl.password"] == "[hidden]"


def test_the_environment_chooses_too(ask, monkeypatch):
    """Does HEADRACE_PROFILE win over what was chosen with `use`?"""
    ask("add", "one", "a:1")
    ask("add", "two", "b:2")
    ask("use", "one")
    monkeypatch.setenv("HEADRACE_PROFILE", "two")

    assert profile.load_profile(None) == {"bootstrap.servers": "b:2"}


def test_mistakes_are_said(ask):
    """Are a profile that is not there, an unknown word and a missing address refused, each in a sentence?"""
    assert ask("use", "absent") == (1, "", "There is no profile 'absent'.\nKnown are: none yet.\n")
    assert ask("brew")[2].startswith("'brew' is none of list, show, use, add, remove\n")
    assert ask("add", "empty")[0] == 1
    assert profile.profiles() == []


def test_removed_is_gone(ask):
    """Is a removed profile gone, and the default what counts again?"""
    ask("add", "work", "b:2")
    ask("use", "work")

    assert ask("remove", "work") == (0, "Removed work.\n", "")
    assert profile.load_profile(None) == {}
