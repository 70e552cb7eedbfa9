"""Which pipelines run on this machine."""

import os

import pytest

from headrace.pipeline import runs
from headrace.pipeline.fault import PipelineFault
from headrace.pipeline.runs import Run


@pytest.fixture(autouse=True)
def _state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def test_a_run_is_found_while_it_lives():
    """Is a run listed as running while its lock is held, and as lost when it is gone without a word?"""
    run = Run(name="fleet", file="fleet.toml", brokers="localhost:9092", state=runs.RUNNING, queries=[])
    with runs.claimed("fleet"):
        runs.save_run(run)

        assert (runs.known_runs(), runs.is_claimed("fleet")) == ([run], True)
        assert runs.find_run("fleet").pid == os.getpid()
    lost = runs.find_run("fleet")

    assert (lost.state, lost.reason, lost.is_alive) == (runs.LOST, "The process ended without a word.", False)


def test_what_ended_stays_known():
    """Is a run that ended still known, with the state it ended in?"""
    with runs.claimed("fleet"):
        runs.save_run(Run(name="fleet", file="f", brokers="b", state=runs.FAILED, reason="No room."))

    assert (runs.find_run("fleet").state, runs.find_run("fleet").reason) == (runs.FAILED, "No room.")


def test_never_two_at_once():
    """Is a second run of the same pipeline refused, and one of another not?"""
    with runs.claimed("fleet"), runs.claimed("other"):
        with pytest.raises(PipelineFault, match="'fleet' runs already") as caught, runs.claimed("fleet"):
            pass
        assert caught.value.remedy == "Stop it with: headrace pipeline stop fleet"
    with runs.claimed("fleet"):
        pass


def test_a_note_to_stop():
    """Is the wish to stop seen by the run it is for, and forgotten by the next one?"""
    with runs.claimed("fleet"):
        assert not runs.is_asked_to_stop("fleet")
        runs.ask_to_stop("fleet")
        assert (runs.is_asked_to_stop("fleet"), runs.is_asked_to_stop("other")) == (True, False)
    with runs.claimed("fleet"):
        assert not runs.is_asked_to_stop("fleet")


def test_unknown_pipelines_and_spoilt_files():
    """Is a pipeline that never ran refused with those that did, and a file that is no state skipped?"""
    runs.save_run(Run(name="fleet", file="f", brokers="b"))
    (runs.state_directory() / "spoilt.json").write_text("{")
    (runs.state_directory() / "foreign.json").write_text('{"a": 1}')

    with pytest.raises(PipelineFault, match="No pipeline 'flete' has run on this machine") as caught:
        runs.find_run("flete")
    assert caught.value.remedy == "Known are: fleet."


def test_without_a_home(monkeypatch, tmp_path):
    """Is the temporary directory used where the state directory cannot be made?"""
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / "elsewhere"))

    assert runs.state_directory().is_relative_to(tmp_path / "elsewhere")


def test_a_run_is_forgotten():
    """Does nothing stay of a pipeline that is forgotten, and everything of one whose name begins alike?"""
    for name in ("fleet-demo", "fleet"):
        with runs.claimed(name):
            runs.save_run(Run(name=name, file="f", brokers="b", state=runs.STOPPED))
            runs.log_file(name).touch()
            runs.ask_to_stop(name)
        (runs.state_directory() / f"{name}.zip").touch()
        (runs.state_directory() / "checkpoints" / name).mkdir(parents=True)
    runs.forget_run("fleet-demo")
    runs.forget_run("fleet-demo")

    assert [run.name for run in runs.known_runs()] == ["fleet"]
    assert not list(runs.state_directory().rglob("fleet-demo*"))
    assert len(list(runs.state_directory().rglob("fleet*"))) == 6
