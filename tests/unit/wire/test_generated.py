"""The generated messages are those the generator would write now."""

import importlib.util
from pathlib import Path

TOOL = Path(__file__).parents[3] / "tools" / "generate_messages.py"


def test_generated_files_are_up_to_date() -> None:
    """Has nobody edited a generated file, or changed the generator or kio without running it?"""
    spec = importlib.util.spec_from_file_location("generate_messages", TOOL)
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)

    files = tool.generate()

    assert [path.name for path, text in files.items() if path.read_text(encoding="utf-8") != text] == []
    made = {path for path in files if path.parent.name == "messages"}
    there = set((tool.WIRE / "messages").glob("[a-z]*.*"))
    by_hand = {path.name for path in there - made}
    assert all(name.removesuffix(".py").removesuffix(".txt").endswith("_records") for name in by_hand), by_hand
