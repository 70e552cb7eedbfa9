"""The Python functions of a pipeline, found without running anything of theirs that needs Spark."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from importlib.machinery import PathFinder
from importlib.util import find_spec

from headrace.pipeline.declaration import Pipeline
from headrace.pipeline.fault import FileFault, Mistake
from headrace.pipeline.toml_lines import line_of

_SENT_ALONG = "spark.submit.pyFiles"


def check_modules(pipeline: Pipeline) -> None:
    """Refuse a file whose functions are not where it says; modules that lie elsewhere are found, but not read."""
    mistakes = list(_mistakes(pipeline))
    if mistakes:
        raise FileFault(str(pipeline.file), mistakes)


def _mistakes(pipeline: Pipeline) -> Iterator[Mistake]:
    for name, transform in pipeline.transforms.items():
        if not transform.python:
            continue
        module, _, function = transform.python.partition(":")
        line = line_of(dict(pipeline.lines), "transform", name, "python")
        place = pipeline.directory.joinpath(*module.split("."))
        path = next((one for one in (place.with_suffix(".py"), place / "__init__.py") if one.is_file()), None)
        if path is None:
            if not _is_elsewhere(pipeline, module):
                where = pipeline.directory.absolute()
                yield Mistake(line, f"There is no module '{module}' in {where}. Write it, or mend the name.")
            continue
        try:
            tree = ast.parse(path.read_text())
        except SyntaxError as error:
            yield Mistake(line, f"{path.name} is no Python: {error.msg} in line {error.lineno}. Mend it.")
            continue
        if function not in set(_names(tree)):
            yield Mistake(line, f"{path.name} has no function '{function}'. Define it, or mend the name.")


def _is_elsewhere(pipeline: Pipeline, module: str) -> bool:
    """Whether an import would find the module; nothing of it runs, nor of the packages it lies in."""
    if _SENT_ALONG in pipeline.spark:
        return True  # Only Spark knows what is in there.
    importlib.invalidate_caches()
    top, *below = module.split(".")
    try:
        found = PathFinder.find_spec(top, [str(pipeline.directory.absolute())]) or find_spec(top)
    except ValueError:
        return True  # It is loaded already, by someone who does not say from where.
    name = top
    for part in below:
        if found is None or found.submodule_search_locations is None:
            return False
        name = f"{name}.{part}"
        found = PathFinder.find_spec(name, list(found.submodule_search_locations))
    return found is not None


def _names(tree: ast.Module) -> Iterator[str]:
    """Everything a module gives a name to at its top."""
    for node in tree.body:
        match node:
            case ast.FunctionDef() | ast.ClassDef():
                yield node.name
            case ast.Assign():
                yield from (one.id for one in node.targets if isinstance(one, ast.Name))
            case ast.Import() | ast.ImportFrom():
                yield from (one.asname or one.name for one in node.names)
            case _:
                pass
