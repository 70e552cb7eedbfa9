"""The documents that tools print for programs."""

import ast
import re

NOT_IN_DOCUMENTS = {"error_cb", "kafka_server", "log_level", "on_delivery", "stats_cb"}
"""Names of librdkafka's settings and of a tool, which are never printed."""
KAFKAS_OWN = {"log_dirs"}
"""What plans for kafka-reassign-partitions have always been made of."""


def keys_of(path):
    """The names that a module writes into dictionaries, of those that are several words joined by underscores."""
    for node in ast.walk(ast.parse(path.read_text())):
        for key in node.keys if isinstance(node, ast.Dict) else ():
            if isinstance(key, ast.Constant) and re.fullmatch(r"[a-z0-9]+(_[a-z0-9]+)+", str(key.value)):
                yield key.value


def test_documents_have_names_of_one_kind(repository):
    """Are the names in all tools' --output json in camel case, as docs/howto/command-line.md says?"""
    found = {
        f"{path.name}: {key}"
        for path in sorted((repository.root / "src/headrace/cli").glob("*.py"))
        for key in keys_of(path)
        if key not in NOT_IN_DOCUMENTS | KAFKAS_OWN
    }

    assert set() == found
