"""The gateway's settings, their page and their sample."""

import importlib.util
from pathlib import Path

import pytest

from headrace.settings.fault import ConfigFault
from headrace.settings.gateway import GATEWAY_SETTINGS, GatewayConfig
from headrace.settings.properties import load_properties

ROOT = Path(__file__).parents[3]
TOOL = ROOT / "tools" / "generate_gateway_settings.py"


def test_own_and_the_clients():
    """Are the gateway's settings read by their kinds, and the client's handed on without their prefix?"""
    config = GatewayConfig(
        {
            "listeners": "http://127.0.0.1:1,https://[::1]:2",
            "streams.max": "7",
            "bootstrap.servers": "a:1",
            "client.security.protocol": "SSL",
        }
    )

    assert (config["listeners"], config["streams.max"]) == (("http://127.0.0.1:1", "https://[::1]:2"), 7)
    assert config["console.enable"] is True
    assert config.client == {"bootstrap.servers": "a:1", "security.protocol": "SSL"}


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("stream.max", "7", "Did you mean streams.max"),
        ("quite.other", "7", "behind 'client.'"),
        ("streams.max", "0", "streams.max"),
        ("streams.max", "many", "streams.max"),
    ],
)
def test_what_cannot_be(name, text, said):
    """Is an unknown name or a value out of bounds refused, with what was probably meant?"""
    with pytest.raises(ConfigFault) as refused:
        GatewayConfig({name: text})

    assert said in str(refused.value)


def test_every_setting_is_bounded_and_explained():
    """Has every number both its bounds, every setting a sentence, and every default a value that it allows?"""
    for name, setting in GATEWAY_SETTINGS.items():
        assert setting.doc.endswith("."), name
        if setting.kind.name in {"INT", "LONG"}:
            assert None not in (setting.low, setting.high), name
        if setting.default is not None:
            assert setting.parse(setting.format(setting.default) or "") == setting.default, name


def test_page_and_sample_are_what_the_table_says():
    """Were both made again after the last change of the table, and does the sample change nothing?"""
    spec = importlib.util.spec_from_file_location(TOOL.stem, TOOL)
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)

    assert tool.PAGE.read_text(encoding="utf-8") == tool.page(), f"run {TOOL.name}"
    assert tool.SAMPLE.read_text(encoding="utf-8") == tool.sample(), f"run {TOOL.name}"
    config = GatewayConfig(load_properties(tool.SAMPLE))
    assert all(config[name] == setting.default for name, setting in GATEWAY_SETTINGS.items())
    assert config.client == {"bootstrap.servers": "localhost:9092"}
