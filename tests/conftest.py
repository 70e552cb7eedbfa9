"""What every test may count on: a state directory of its own, hypothesis set for the run at hand, and brokers."""

import gc
import os
import re
import time

import pytest
from hypothesis import HealthCheck, settings

# By name rather than as a plugin: where the package is installed, pytest has registered the plugin already.
from headrace.testing.pytest_plugin import headrace_brokers as headrace_brokers
from headrace.testing.pytest_plugin import headrace_cluster as headrace_cluster
from headrace.testing.pytest_plugin import headrace_session_cluster as headrace_session_cluster
from headrace.testing.pytest_plugin import headrace_settings as headrace_settings
from wire_client import WireClient

settings.register_profile("default", deadline=None, derandomize=True, max_examples=50)
settings.register_profile("fast", deadline=None, derandomize=True, max_examples=10)
settings.register_profile(
    "long", deadline=None, max_examples=2000, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
# `headrace start` starts no gateway beside the brokers of tests that do not ask for one.
os.environ["HEADRACE_GATEWAY"] = "no"

settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


ALONE = ("tests/crash/test_group_churn.py", "tests/hostile/", "tests/tidy/test_reports.py")
"""Where tests measure what a broker takes or how long something is without an owner, or report at the end."""
HEAVY = ("tests/browser/", "tests/crash/", "tests/spark/")
"""Where tests kill what is at work, start many processes or a browser: no more at a time than there are cores.

Spark's gateway waits with `select`, which knows the first thousand open files only: it cannot share a process with the
broker that a session of other tests has filled with topics.
"""


SLOW = (
    "tests/crash/",
    "tests/hostile/",
    "tests/properties/",
    "tests/scenarios/",
    "tests/simulation/",
    "tests/tidy/test_reports.py",
    "tests/unit/bench/",
    "tests/unit/broker/test_group_handlers.py",
    "tests/unit/broker/test_replica_moves.py",
    "tests/unit/broker/test_share_",
    "tests/unit/cores/groups/test_consumer_laws.py",
    "tests/unit/cores/groups/test_streams_laws.py",
    "tests/unit/cores/groups/test_upgrade_laws.py",
    "tests/unit/examples/",
    "tests/unit/spark/",
)
"""What is not for all day: schedules, inputs of chance, whole programs, compilers, and brokers by the hundred."""
ROOM_MARKS = {"slow", "heavy", "alone"}
LONGEST = (
    "tests/clients/java/",
    "tests/simulation/",
    "tests/unit/test_launchers.py",
    "tests/scenarios/",
    "tests/clients/",
    "tests/gateway/",
    "tests/spark/",
)
"""Where files take long. They begin first, so that at the end no worker has a long one left while the others idle."""


class _LongestFirst:
    """Sorts what is left after everybody else has shuffled and selected."""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):
        """Put the longest files first; otherwise chance decides."""
        rank = {room: number for number, room in enumerate(LONGEST)}
        items.sort(
            key=lambda item: next((rank[room] for room in LONGEST if item.nodeid.startswith(room)), len(LONGEST))
        )


def pytest_configure(config):
    """Have the order decided at last."""
    config.pluginmanager.register(_LongestFirst(), "longest-first")


def _marks_of(name: str) -> set[str]:
    """The marks of the room that a test or its file is in."""
    marks = {"slow"} if name.startswith(SLOW) else set()
    if name.startswith(ALONE):
        return marks | {"alone"}
    return marks | {"heavy"} if name.startswith(HEAVY) else marks


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark the rooms whose tests want the machine, or a core of it, for themselves, before any is selected by mark."""
    for item in items:
        for mark in _marks_of(item.nodeid):
            item.add_marker(mark)


def pytest_ignore_collect(collection_path, config):
    """Leave out files whose room `-m` deselects: to import them all takes each worker longer than many of their tests.

    True leaves a file out; None lets others decide.
    """
    if collection_path.suffix != ".py":
        return None
    marks = _marks_of(collection_path.relative_to(config.rootpath).as_posix())
    return any(_is_out(collection_path, marks, term) for term in _terms(config)) or None


def _is_out(file, marks: set[str], term: str) -> bool:
    """Whether no test of a file can be what one term of `-m` demands."""
    if term.startswith("not "):
        return term.removeprefix("not ") in marks
    return term in ROOM_MARKS - marks and f"mark.{term}" not in file.read_text()


def _terms(config) -> list[str]:
    """What `-m` demands, where it demands several things at once; nothing where it gives a choice."""
    selection = config.option.markexpr
    return [] if re.search(r"\bor\b|[()]", selection) else re.split(r"\s+and\s+", selection)


gc.disable()


def pytest_collection_finish():
    """Let the collector pass over what is here to stay: all modules and tests, ten times what one test makes."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def _state_of_our_own(tmp_path_factory):
    """Servers started by tests are listed apart: a test that stops servers must never find a person's own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("HEADRACE_HOME", raising=False)
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="session", autouse=True)
def _patient_tools():
    """Tools of this process do not say that they wait: on a busy machine it would be in what tests compare."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headrace.cli.patience._SLOW_S", 600.0)
        patch.setattr("headrace.cli.topic_lookup._GRACE_S", 600.0)
        yield


@pytest.fixture
def cluster(headrace_cluster):
    """A broker of the test's own, for those that restart it, break it or look into it."""
    return headrace_cluster


@pytest.fixture(scope="session")
def shared(headrace_session_cluster):
    """One broker for all tests that only use topics of their own."""
    return headrace_session_cluster


@pytest.fixture
def topic(request):
    """A topic name nobody else uses."""
    return re.sub(r"[^a-zA-Z0-9._-]+", "-", request.node.nodeid.partition("::")[2])[:200].strip("-")


@pytest.fixture
def wire(request):
    """Connects wire clients, to a cluster or a port, and hangs up when the test ends."""
    clients = []

    def connect(where, **options) -> WireClient:
        clients.append(WireClient(where if isinstance(where, int) else where.port, **options))
        return clients[-1]

    yield connect
    for client in clients:
        client.close()


@pytest.fixture
def until_parked():
    """Waits until a fetch waits at the broker for more records of a partition; what is produced then, ends its wait."""

    def wait(cluster, topic: str, partition: int = 0, *, fetches: int = 1) -> None:
        end = time.monotonic() + 20
        while cluster.ask(lambda broker: len(broker.partitions.require(topic, partition)._fetch_waiters)) < fetches:
            assert time.monotonic() < end, "no fetch was parked"

    return wait
