"""What a reader should look at: listed at the end of a run, never a failure."""

import ast
import re

FUNCTION_LINES = 50
FILE_LINES = 500
SHOWN = 8
REQUIREMENTS = range(1, 36)


def test_longest_functions_and_files(repository, report):
    """Which functions and files have grown past what fits on a screen and in a head?"""
    functions, files = [], []
    for path in repository.files(".py"):
        text = path.read_text()
        if "wire/messages/" in repository.name(path):
            continue
        if (lines := text.count("\n")) > FILE_LINES:
            files.append((lines, repository.name(path)))
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                code = node.body[1:] if ast.get_docstring(node) and len(node.body) > 1 else node.body
                length = node.end_lineno - code[0].lineno + 1
                if length > FUNCTION_LINES:
                    functions.append((length, f"{repository.name(path)}:{node.lineno} {node.name}"))

    for title, found in (("longest functions", functions), ("longest files", files)):
        if found:
            rows = sorted(found, reverse=True)[:SHOWN]
            report(f"{title} (to judge, not to fail)", [f"{length:5} {name}" for length, name in rows])


def test_requirements_held_by_tests(repository, report):
    """Which of the numbered requirements does some test's docstring claim so far?"""
    claimed = set()
    for path in repository.files(".py", under="tests"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                claimed |= {int(number) for number in re.findall(r"\bR(\d{1,2})\b", ast.get_docstring(node) or "")}

    open_ones = [f"R{number}" for number in REQUIREMENTS if number not in claimed]
    report(
        f"requirements held by a test: {len(REQUIREMENTS) - len(open_ones)} of {len(REQUIREMENTS)}",
        ["not yet: " + " ".join(open_ones)],
    )
