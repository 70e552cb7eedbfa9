"""Every module of the inner rooms has tests, and every file name is a noun that says what is in it."""

import re
from pathlib import Path

ROOMS = ("model", "settings", "records", "wire", "cores", "storage")
GENERATED_OR_TABLES = ("wire/messages/", "settings/tables/")
EMPTY_WORDS = re.compile(r"(^|_)(utils?|helpers?|common|managers?|misc)(_|\.|$)")


def is_generated(path: Path) -> bool:
    """Whether a file says in its first lines that a tool wrote it; such files are generated again and compared."""
    return "generated" in path.read_text()[:300].lower()


def imported_by(text: str) -> set[str]:
    """The modules, and the names in modules, that a file imports from this package."""
    found = set(re.findall(r"import (headrace[\w.]*)", text))
    for module, names in re.findall(r"from (headrace[\w.]*) import (\([^)]*\)|[^\n]*)", text):
        found.add(module)
        found.update(f"{module}.{name}" for name in re.findall(r"\w+", names))
    return found


def test_every_inner_module_has_tests(repository):
    """Is there, for every module of the inner rooms, a test module of its name or one that imports it?"""
    tests = list(repository.files(".py", under="tests"))
    names = {path.name for path in tests}
    imported = {module for path in tests for module in imported_by(path.read_text())}
    untested = []
    for room in ROOMS:
        for path in repository.files(".py", under=f"src/headrace/{room}"):
            inside = path.relative_to(repository.root / "src/headrace").as_posix()
            if path.stem == "__init__" or inside.startswith(GENERATED_OR_TABLES) or is_generated(path):
                continue
            module = "headrace." + inside.removesuffix(".py").replace("/", ".")
            if f"test_{path.stem}.py" not in names and module not in imported:
                untested.append(inside)

    assert not untested, "without a test module:\n" + "\n".join(untested)


def test_names_say_something(repository):
    """Does no file hide behind a name like `utils`?"""
    empty = [repository.name(path) for path in repository.files() if EMPTY_WORDS.search(path.stem)]

    assert empty == []
