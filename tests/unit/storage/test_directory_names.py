"""The names of a log dir's directories."""

import pytest

from headrace.storage.directory_names import (
    future_name,
    is_deleted,
    is_future,
    is_log,
    log_name,
)

HEX = "0123456789abcdef" * 2


@pytest.mark.parametrize(
    ("directory", "kinds"),
    [
        ("orders-0", (True, False, False)),
        ("a.b_c-1-10", (True, False, False)),
        ("orders-01", (False, False, False)),
        (f"orders-0.{HEX}-delete", (False, True, False)),
        (f"orders-0.{HEX}-stray", (False, False, False)),
        (f"orders-0.{HEX}-future", (False, False, True)),
        (f"orders.{HEX}-future-3", (True, False, False)),
        ("orders-0.abc-future", (False, False, False)),
        ("checkpoint", (False, False, False)),
    ],
)
def test_kinds(directory, kinds):
    """Is each name known for what it is, and nothing for two things?"""
    assert (is_log(directory), is_deleted(directory), is_future(directory)) == kinds


@pytest.mark.parametrize("name", ["orders-0", "a.b-c-12"])
def test_a_copy_has_the_name_of_its_log(name):
    """Does the name of a copy tell the partition, and is it the same each time?"""
    assert is_future(future_name(name))
    assert log_name(future_name(name)) == name == log_name(name)
    assert future_name(name) == future_name(name)
