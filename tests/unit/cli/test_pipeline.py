"""`headrace pipeline`: what can be done without Spark."""

import json
import threading

import pytest

from headrace.cli import extras
from headrace.cli.pipeline import main
from headrace.pipeline import runs
from headrace.pipeline.failure import SparkTrace
from headrace.pipeline.fault import PipelineFault
from headrace.pipeline.progress import Tracker
from headrace.pipeline.runs import Run

TEXT = """\
[pipeline]
name = "copy"
[source.lines]
topic = "lines"
format = "string"
[transform.loud]
python = "loud:shout"
inputs = "lines"
[sink.out]
from = "loud"
topic = "out"
"""


@pytest.fixture(autouse=True)
def _state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "copy.toml").write_text(TEXT)
    (tmp_path / "loud.py").write_text("def shout(inputs, spark, options): ...\n")


@pytest.fixture
def ask(capsys):
    """Runs the command; gives its exit code and what it printed."""

    def run(*words):
        code = main(list(words), "headrace pipeline")
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return run


def test_a_right_file(ask):
    """Is a file without mistakes called right, in words and as a document?"""
    assert ask("validate", "copy.toml") == (0, "copy.toml is right: 1 source, 1 transform, 1 sink.\n", "")
    assert json.loads(ask("validate", "copy.toml", "--output", "json")[1])["pipeline"] == "copy"


def test_mistakes_are_told_with_their_line(ask, tmp_path):
    """Is a mistake one line with file and line on the error stream, and the exit code 1?"""
    (tmp_path / "copy.toml").write_text(TEXT.replace('from = "loud"', 'from = "lout"'))
    code, out, err = ask("validate", "copy.toml")
    assert (code, out) == (1, "")
    assert err == "copy.toml:10: Sink 'out' takes 'lout', which is not declared. Did you mean 'loud'?\n"

    (tmp_path / "copy.toml").write_text(TEXT)
    (tmp_path / "loud.py").write_text("def whisper(): ...\n")
    assert ask("validate", "copy.toml")[2] == (
        "copy.toml:7: loud.py has no function 'shout'. Define it, or mend the name.\n"
    )
    (tmp_path / "loud.py").write_text("def :\n")
    assert ask("validate", "copy.toml")[2].startswith("copy.toml:7: loud.py is no Python: invalid syntax in line 1.")
    assert ask("validate", "absent.toml")[2].startswith("absent.toml cannot be read: no such file or directory.\n")


def test_the_graph(ask):
    """Does `explain` show a line for every step?"""
    code, out, _ = ask("explain", "copy.toml")

    assert (code, [line.split()[:2] for line in out.splitlines()]) == (
        0,
        [["source", "lines"], ["transform", "loud"], ["sink", "out"]],
    )


def test_nobody_says_where_the_cluster_is(ask, monkeypatch):
    """Is a run without an address refused in a sentence, before Spark starts?"""
    monkeypatch.delenv("HEADRACE_BOOTSTRAP_SERVERS", raising=False)
    monkeypatch.setattr(extras, "ensure_extra", lambda *_: None)
    code, _, err = ask("run", "copy.toml")

    assert (code, err.splitlines()[0]) == (1, "Nobody says where the cluster is.")


def test_verbose_failures(ask, monkeypatch):
    """Is a failure one sentence and what to do, and with -v all that Spark said?"""

    def fail(*_):
        raise PipelineFault("Query out failed: It broke.", "Mend it.") from SparkTrace("org.x.Deep\n\tat org.x.Where")

    monkeypatch.setattr(extras, "ensure_extra", lambda *_: None)
    monkeypatch.setattr("headrace.spark.java.find_java", lambda: None)
    monkeypatch.setattr("headrace.pipeline.session.run_pipeline", fail)

    assert ask("run", "copy.toml")[::2] == (1, "Query out failed: It broke.\nMend it.\n")
    code, _, err = ask("run", "copy.toml", "-v")
    assert (code, "at org.x.Where" in err, err.endswith("Query out failed: It broke.\nMend it.\n")) == (1, True, True)


def test_runs_are_listed(ask):
    """Are running and ended pipelines listed, with what they do and why they ended?"""
    assert ask("list")[1] == "NAME  STATE  PROCESS  BROKERS  FILE\n"
    progress = Tracker("copy", "out").take({"batchId": 3, "numInputRows": 7}, now_ms=1)
    with runs.claimed("copy"):
        runs.save_run(
            Run(name="copy", file="copy.toml", brokers="b:1", state="running", pid=7, queries=[progress.document()])
        )
        runs.save_run(Run(name="other", file="o.toml", brokers="b:1", state="failed", reason="Query x failed: No."))

        assert [line.split() for line in ask("list")[1].splitlines()[1:]] == [
            ["copy", "running", "7", "b:1", "copy.toml"],
            ["other", "failed", "-", "b:1", "o.toml"],
        ]
        code, out, _ = ask("status", "copy")
        assert (code, out.splitlines()[2].split()[:3]) == (0, ["out", "3", "7"])
    assert ask("status", "other") == (
        1,
        f"other is failed: o.toml at b:1, Spark {''}.\nQuery x failed: No.\n",
        "",
    )
    assert json.loads(ask("status", "copy", "--output", "json")[1])["state"] == "lost"


def test_stop_waits_until_the_run_is_over(ask):
    """Is a run asked to stop and waited for, and one that does not run a sentence?"""
    claimed, ended = threading.Event(), threading.Event()

    def live():
        with runs.claimed("copy"):
            runs.save_run(Run(name="copy", file="f", brokers="b", state="running"))
            claimed.set()
            while not runs.is_asked_to_stop("copy"):
                pass
            ended.set()
            runs.save_run(Run(name="copy", file="f", brokers="b", state="stopped"))

    thread = threading.Thread(target=live)
    thread.start()
    claimed.wait()

    assert ask("stop", "copy") == (0, "Stopped copy.\n", "")
    assert ended.is_set()
    thread.join()
    assert ask("stop", "copy") == (1, "", "The pipeline 'copy' does not run.\nIt is stopped.\n")
    assert ask("stop", "absent")[2].startswith("No pipeline 'absent' has run on this machine.\n")


def test_words_that_make_no_sense(ask):
    """Is an unknown verb, a missing file or a word too many refused?"""
    for words, expected in (
        (["brew"], "'brew' is none of run, validate"),
        (["run"], "'run' takes one file"),
        (["list", "x"], "'list' takes no words"),
    ):
        code, _, err = ask(*words)
        assert (code, err.startswith(expected)) == (1, True)


def test_every_key_is_told(ask):
    """Does `keys` name every key of a file with what it is for?"""
    code, out, _ = ask("keys")

    assert (code, "[source.NAME]" in out, "  watermark " in out) == (0, True, True)
    assert json.loads(ask("keys", "--output", "json")[1])["sink"]["mode"]["default"] == "append"
