"""The page made from the tables, and the sample files beside them."""

import importlib.util
from pathlib import Path

import pytest

from headrace.settings.broker import BrokerConfig
from headrace.settings.properties import load_properties

ROOT = Path(__file__).parents[3]
TOOL = ROOT / "tools" / "generate_settings_reference.py"


def test_the_reference_page_is_what_the_tables_say() -> None:
    """Was docs/reference/settings.md made again after the last change of a table?"""
    spec = importlib.util.spec_from_file_location("generate_settings_reference", TOOL)
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)

    assert tool.TARGET.read_text(encoding="utf-8") == tool.render(), f"run {TOOL.name}"


@pytest.mark.parametrize("name", ["server", "broker", "controller"])
def test_a_sample_starts_without_a_warning(name: str) -> None:
    """Does each node's sample file load, and set nothing that has no effect?"""
    config = BrokerConfig.load(ROOT / "config" / f"{name}.properties")

    assert config.warnings == []
    assert all(not Path(directory).is_absolute() for directory in config.log_dirs)


def test_the_samples_make_one_cluster() -> None:
    """Do the broker's and the controller's sample find each other?"""
    broker = BrokerConfig.load(ROOT / "config" / "broker.properties")
    controller = BrokerConfig.load(ROOT / "config" / "controller.properties")

    assert broker.quorum_voters == controller.quorum_voters
    assert broker.node_id != controller.node_id
    assert controller.listeners[0].port == controller.quorum_voters[0].port


@pytest.mark.parametrize("name", ["producer", "consumer"])
def test_a_client_sample_names_the_server_sample(name: str) -> None:
    """Do the clients' samples point at the node that server.properties starts?"""
    server = BrokerConfig.load(ROOT / "config" / "server.properties")
    client = load_properties(ROOT / "config" / f"{name}.properties")

    assert client["bootstrap.servers"] == f"localhost:{server.advertised[0].port}"
