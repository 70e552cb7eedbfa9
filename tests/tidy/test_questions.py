"""Every test says in its docstring which question it answers."""

import ast


def _tests_in(node):
    for child in node.body:
        if isinstance(child, ast.ClassDef):
            yield from _tests_in(child)
        elif isinstance(child, ast.FunctionDef) and child.name.startswith("test_"):
            yield child


def test_every_test_asks_a_question(repository):
    """Has each test a docstring with a question mark in it?"""
    silent = [
        f"{repository.name(path)}:{node.lineno} {node.name}"
        for path in repository.files(".py", under="tests")
        if path.name.startswith("test_")
        for node in _tests_in(ast.parse(path.read_text()))
        if "?" not in (ast.get_docstring(node) or "")
    ]

    assert [] == silent
