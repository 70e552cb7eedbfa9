"""What a shell offers when somebody presses Tab; live names are asked for in tests/scenarios/test_umbrella.py."""

import os
import shutil
import subprocess
import sys

import pytest

from headrace.cli import completion, profile
from headrace.cli.completion_words import candidates
from headrace.cli.main import ALIASES, COMMANDS, TOOLS


@pytest.fixture(autouse=True)
def _home(tmp_path, monkeypatch):
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path))
    for name in ("HEADRACE_BOOTSTRAP_SERVERS", "HEADRACE_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    profile.save_profile("work", {"bootstrap.servers": "kafka.example:9092"})


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("headrace prof", ["profile"]),
        ("headrace topics ", ["alter", "create", "delete", "describe", "list"]),
        ("headrace profile use ", ["work"]),
        ("headrace completion z", ["zsh"]),
        ("kafka-storage r", ["random-uuid"]),
        ("kafka-storage v", ["version-mapping"]),
        ("kafka-features ", ["describe", "disable", "downgrade", "feature-dependencies", "upgrade", "version-mapping"]),
        ("kafka-features --dry-run u", ["upgrade"]),
        ("kafka-features describe ", []),
        ("kafka-transactions des", ["describe", "describe-producers"]),
        ("kafka-topics --output ", ["json", "text", "yaml"]),
        ("bin/kafka-topics.sh --desc", ["--describe"]),
        ("bin/kafka_topics.sh --desc", ["--describe"]),
        ("headrace kafka-topics --desc", ["--describe"]),
        ("headrace topics create x --part", ["--partition-size-limit-per-response", "--partitions"]),
        ("kafka-topics --topic x --bootstrap-server k", ["kafka.example:9092"]),
        ("kafka-topics --profile ", ["work"]),
        ("kafka-topics --command-config ", []),
        ("kafka-topics --list --topic 'unclosed", []),
        ("ls ", []),
        ("", []),
    ],
)
def test_candidates(line, expected):
    """Is what fits offered, sorted, and nothing else?"""
    assert candidates(line) == expected


def test_every_command_is_offered():
    """Are all commands of the umbrella offered after its name?"""
    assert set(candidates("headrace ")) == {name for name in (*COMMANDS, *TOOLS) if name[0] != "-"} | {"help"}


def test_an_option_is_not_offered_twice():
    """Is an option that stands in the line already no longer offered, unless it may be repeated?"""
    offered = candidates("kafka-topics --create --config a=b --")

    assert "--create" not in offered
    assert "--config" in offered


@pytest.mark.parametrize("shell", completion.SCRIPTS)
def test_a_script_names_every_command(shell, capsys):
    """Does a shell's script complete every name of a command, misspelt ones too?"""
    assert completion.main([shell], "headrace completion") == 0
    out = capsys.readouterr().out

    assert {"headrace", *TOOLS, *(f"{name}.sh" for name in (*TOOLS, *ALIASES))} <= set(out.split())


@pytest.mark.skipif(sys.platform == "win32" or not shutil.which("bash"), reason="there is no bash here")
def test_bash_gets_its_candidates(tmp_path, capsys):
    """Does bash, with our script read, come to the candidates, behind a colon too?"""
    completion.main(["bash"], "headrace completion")
    script = capsys.readouterr().out.replace(
        completion.shlex.quote(completion._command()), '"$HEADRACE" -P -m headrace.cli'
    )
    (tmp_path / "script").write_text(
        script
        + """
complete_line() { COMP_LINE=$1 COMP_POINT=${#1}; _headrace_completion; echo "${COMPREPLY[*]}"; }
complete_line "bin/kafka-topics.sh --desc"
complete_line "kafka-topics --bootstrap-server kafka.example:9"
"""
    )
    environment = {**os.environ, "HEADRACE": sys.executable, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        ["bash", tmp_path / "script"], env=environment, capture_output=True, text=True, check=False, timeout=60
    )

    assert (done.stdout, done.stderr) == ("--describe\n9092\n", "")


def test_an_unknown_shell_is_refused(capsys):
    """Does a shell without a script get the usage on the error stream?"""
    assert completion.main(["tcsh"], "headrace completion") == 1
    assert "headrace completion bash" in capsys.readouterr().err
