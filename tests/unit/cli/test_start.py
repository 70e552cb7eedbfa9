"""`headrace start` where other clusters are, and what `add-broker` remembers of them."""

import pytest

from headrace.cli import add_broker, nodes, start
from headrace.cli.local_cluster import LocalCluster
from headrace.cli.profile import DEFAULT, load_profile, save_profile
from headrace.cli.running import RunningServer, registered


@pytest.fixture(autouse=True)
def _place(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path / "home"))
    for name in ("HEADRACE_BOOTSTRAP_SERVERS", "HEADRACE_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(nodes, "base_directory", lambda: tmp_path / "usual")


def test_beside_a_cluster_of_which_a_part_runs(capsys, tmp_path):
    """Is no second cluster made where the rest of the first is meant, and said how either is had?"""
    LocalCluster(tmp_path / "here").make([9092, 9094, 9096])
    running = RunningServer(node_id=1, process_roles="broker", data=f"{tmp_path}/here/node-1/data", by_start=True)

    with registered(running):
        code = start.main(["-n", "3"], "headrace start")

    assert (1, False) == (code, (tmp_path / "usual").exists())
    said, remedy = capsys.readouterr().err.splitlines()
    assert "Node 2 of the cluster in here is stopped, and others of it run." == said
    assert remedy.startswith("To start what is missing: ")
    assert remedy.endswith("start --data here. For another cluster: --data elsewhere.")


@pytest.mark.parametrize(
    ("saved", "expected"),
    [
        ("localhost:9092,localhost:9094", "localhost:9092,localhost:9094,localhost:9096"),
        ("localhost:9192", "localhost:9192"),
        ("localhost:9092,localhost:9096", "localhost:9092,localhost:9096"),
    ],
)
def test_an_added_broker_is_remembered_with_its_own_cluster(saved, expected):
    """Does the address of a new broker join those of its cluster, and never those of another one?"""
    save_profile(DEFAULT, {"bootstrap.servers": saved})

    add_broker._remember("localhost:9096", {"localhost:9092", "localhost:9094"})

    assert expected == load_profile(DEFAULT)["bootstrap.servers"]
