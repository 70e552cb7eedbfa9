"""Every test says in its docstring which question it answers."""

import ast


def _tests_in(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield node


def test_every_test_asks_a_question(repository):
    """Has each test a docstring with a question mark in it?"""
    silent = [
        f"{repository.name(path)}:{node.lineno} {node.name}"
        for path in repository.files(".py", under="tests")
        if path.name.startswith("test_")
        for node in _tests_in(path)
        if "?" not in (ast.get_docstring(node) or "")
    ]

    assert [] == silent
