"""The table of handlers made from what they declare."""

import importlib.util
from pathlib import Path

from headrace.broker.dispatch import declared_apis, load_apis

TOOL = Path(__file__).parents[3] / "tools" / "generate_handler_index.py"


def test_the_index_is_what_the_handlers_declare():
    """Was handler_index.py made again after the last change of a handler's versions?"""
    spec = importlib.util.spec_from_file_location("generate_handler_index", TOOL)
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)

    assert tool.TARGET.read_text(encoding="utf-8") == tool.render(), f"run {TOOL.name}"


def test_each_key_once():
    """Has no API two handlers?"""
    assert len(declared_apis()) == len(load_apis())
