"""Which of the nodes that run here are meant."""

import pytest

from headrace.cli.local_cluster import LocalCluster
from headrace.cli.node_choice import choose_nodes
from headrace.cli.running import RunningServer
from headrace.cli.session import Failure


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Two clusters, of three and of two nodes, and a single node of two disks; all run. The person is beside them."""
    monkeypatch.chdir(tmp_path)
    LocalCluster(tmp_path / "here").make([9092, 9094, 9096])
    LocalCluster(tmp_path / "there").make([9192, 9194])
    places = [(n, f"{tmp_path}/here/node-{n}/data") for n in (1, 2, 3)]
    places += [(n, f"{tmp_path}/there/node-{n}/data") for n in (1, 2)]
    places += [(1, f"{tmp_path}/disk-1,{tmp_path}/disk-2")]
    return [RunningServer(node_id=n, process_roles="broker", pid=i, data=data) for i, (n, data) in enumerate(places)]


@pytest.mark.parametrize(
    ("node_id", "data", "expected"),
    [
        (None, None, [0, 1, 2, 3, 4, 5]),
        (3, None, [2]),
        (9, None, []),
        (None, "here", [0, 1, 2]),
        (None, "here/../there/", [3, 4]),
        (2, "there", [4]),
        (3, "there", []),
        (2, "here/node-2/data", [1]),
        (1, "disk-2", [5]),
        (None, "elsewhere", []),
        (None, ".", []),
    ],
)
def test_who_is_meant(machine, node_id, data, expected):
    """Is a node found by its id, by a directory of its own and by that of its cluster, and by no other?"""
    assert expected == [one.pid for one in choose_nodes(machine, node_id=node_id, data=data)]


def test_an_id_that_several_have(machine):
    """Is it asked which one is meant, by the data that --data takes?"""
    with pytest.raises(Failure) as refused:
        choose_nodes(machine, node_id=2)

    assert "Several nodes 2 run here: here/node-2/data and there/node-2/data." == refused.value.message
    assert "Say which one with --data." == refused.value.remedy
