"""The programs a demo runs are watched, started again, and ended whatever happens."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.cli.demo_children import ChildDied, Children, wait_until

STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"
)
LASTING = "import time; print('up', flush=True); time.sleep(600)"
PARENT_OF = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', {!r}]).wait()"


def python(code):
    return [sys.executable, "-c", code]


def is_alive(pid):
    """Whether a process runs; one that nobody has waited for yet is dead all the same."""
    try:
        return ") Z" not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


@pytest.fixture
def children(tmp_path):
    with Children(tmp_path, dict(os.environ)) as found:
        yield found


def until(done):
    assert wait_until(done, lambda: None, timeout_s=30)


def test_output_goes_to_a_log(children, tmp_path):
    """Is what a program says kept, and found again as its last words?"""
    child = children.start("talker", python("print('one'); print('two')"))
    child.wait(30)

    assert 0 == child.exit_code
    assert "one\ntwo\n" == (tmp_path / "talker.log").read_text()
    assert "  one\n  two" == child.last_words()


def test_revives_who_may_be(children):
    """Is a program that was killed started again, and nothing done to one that lives?"""
    child = children.start("phoenix", python(LASTING), may_restart=True)
    before = child.pid

    assert not child.revive()

    os.kill(before, signal.SIGKILL)
    until(lambda: not child.is_alive)

    assert child.revive()
    assert child.is_alive
    assert before != child.pid
    assert {"phoenix": child.pid} == children.pids()


def test_tells_of_who_may_not(children):
    """Does the death of a program that must not die say which it was, how it ended and what it said?"""
    child = children.start("mortal", python("import sys; print('alas'); sys.exit(3)"))
    child.wait(30)

    with pytest.raises(ChildDied, match=r"(?s)The mortal ended with exit code 3:.*alas"):
        child.revive()


def test_ends_the_stubborn_and_their_children(children):
    """Is a program that does not want to end made to, and everything it started with it?"""
    child = children.start("parent", python(PARENT_OF.format(STUBBORN)))
    until(lambda: "up" in child.log.read_text())
    family = [child.pid, *_below(child.pid)]
    child.end(timeout_s=0.1)

    assert 2 == len(family)
    until(lambda: not any(map(is_alive, family)))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells children of their parent's death")
def test_children_end_with_a_parent_that_was_killed(tmp_path):
    """Do the programs end when the demo itself is killed the hard way?"""
    code = (
        "import os, sys, time; from pathlib import Path; from headrace.cli.demo_children import Children\n"
        f"child = Children(Path({str(tmp_path)!r}), dict(os.environ)).start('orphan', {python(LASTING)!r})\n"
        "print(child.pid, flush=True); time.sleep(600)"
    )
    with subprocess.Popen(python(code), stdout=subprocess.PIPE, text=True) as parent:
        orphan = int(parent.stdout.readline())
        until(lambda: "up" in (tmp_path / "orphan.log").read_text())
        parent.kill()

    until(lambda: not is_alive(orphan))


def _below(pid):
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(word) for word in text.split()]


def test_all_end_before_the_context_is_left(children):
    """Can everything be ended early, and is nothing listed or ended twice then?"""
    started = [children.start(name, python(LASTING)) for name in ("one", "two")]
    children.end()

    assert [False, False] == [child.is_alive for child in started]
    assert {} == children.pids()
    children.end()
