"""The Python functions of a pipeline, found without running anything of theirs that needs Spark."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from headrace.pipeline.declaration import Pipeline
from headrace.pipeline.fault import FileFault, Mistake
from headrace.pipeline.toml_lines import line_of


def check_modules(pipeline: Pipeline) -> None:
    """Refuse a file whose functions are not where it says; modules that lie elsewhere are only looked for in a run."""
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
            continue
        try:
            tree = ast.parse(path.read_text())
        except SyntaxError as error:
            yield Mistake(line, f"{path.name} is no Python: {error.msg} in line {error.lineno}. Mend it.")
            continue
        if function not in set(_names(tree)):
            yield Mistake(line, f"{path.name} has no function '{function}'. Define it, or mend the name.")


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
