"""The page made from the handlers' headers."""

import importlib.util
from pathlib import Path

TOOL = Path(__file__).parents[3] / "tools" / "generate_api_reference.py"


def test_the_api_page_is_what_the_handlers_say():
    """Was docs/reference/apis.md made again after the last change of a handler's header?"""
    spec = importlib.util.spec_from_file_location("generate_api_reference", TOOL)
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)

    assert tool.TARGET.read_text(encoding="utf-8") == tool.render(), f"run {TOOL.name}"
