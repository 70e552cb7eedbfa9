"""Saved clusters."""

import pytest

from headrace.cli import profile
from headrace.client.fault import ClientFault


@pytest.fixture(autouse=True)
def _home(tmp_path, monkeypatch):
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path))
    monkeypatch.delenv("HEADRACE_BOOTSTRAP_SERVERS", raising=False)
    monkeypatch.delenv("HEADRACE_PROFILE", raising=False)


def test_what_was_saved_is_found():
    """Is a profile read as it was written, by its name or as the default, and listed?"""
    profile.save_profile("default", {"bootstrap.servers": "a:1"})
    profile.save_profile("work", {"bootstrap.servers": "b:2", "sasl.password": "p w"})
    assert profile.load_profile(None) == {"bootstrap.servers": "a:1"}
    assert profile.load_profile("work")["sasl.password"] == "p w"
    assert profile.profiles() == ["default", "work"]


def test_a_profile_is_its_owners_alone():
    """Is the file, which may hold a password, closed to others?"""
    assert profile.save_profile("p", {}).stat().st_mode & 0o077 == 0


def test_the_environment_comes_first(monkeypatch):
    """Does HEADRACE_BOOTSTRAP_SERVERS win over a saved default?"""
    profile.save_profile("default", {"bootstrap.servers": "a:1"})
    monkeypatch.setenv("HEADRACE_BOOTSTRAP_SERVERS", "c:3")
    assert profile.load_profile(None) == {"bootstrap.servers": "c:3"}


def test_without_any_there_is_nothing():
    """Is a machine without profiles no error?"""
    assert profile.load_profile(None) == {}


@pytest.mark.parametrize("name", ["absent", "../x", "a/b", ""])
def test_a_wrong_name_is_refused(name):
    """Do unknown and impossible names end in a sentence, and never in another directory?"""
    with pytest.raises(ClientFault):
        profile.load_profile(name)


def test_a_profile_is_forgotten_only_while_it_is_ours():
    """Does stopping a cluster leave a profile alone that names another by now?"""
    profile.save_profile("default", {"bootstrap.servers": "a:1"})
    profile.forget_profile("default", only_for="b:2")
    assert profile.profiles() == ["default"]
    profile.forget_profile("default", only_for="a:1")
    assert profile.profiles() == []
