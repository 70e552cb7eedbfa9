"""The handlers keep the form that makes them readable side by side."""

import ast
import re

NAME = re.compile(r"api(\d\d)_[a-z0-9_]+\.py")


def test_every_handler_opens_with_its_header(repository):
    """Does every handler say which API it is, which versions it serves and how it behaves?"""
    faults = []
    for path in repository.files(".py", under="src/headrace/broker/handlers"):
        if path.name == "__init__.py":
            continue
        number = NAME.fullmatch(path.name)
        header = ast.get_docstring(ast.parse(path.read_text())) or ""
        first = re.match(r"\w+, key (\d+)\.\n", header)
        if not (number and first and int(number[1]) == int(first[1])):
            faults.append(f"{path.name}: the header must begin '<Api>, key <number>.' with the number of the file")
        faults += [
            f"{path.name}: no '{word}' in the header" for word in ("Versions:", "Behaviour:") if word not in header
        ]

    assert faults == []
