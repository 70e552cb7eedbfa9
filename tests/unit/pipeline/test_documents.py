"""What is written about pipelines is true: the keys, and the files to start from."""

import re
from pathlib import Path

import pytest

from headrace.pipeline.file import load_pipeline, parse_pipeline
from headrace.pipeline.reference import key_tables

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/howto/pipelines.md").read_text()


def test_the_page_has_every_key():
    """Do the tables of the page say what the code says? Else: print `key_tables()` into it."""
    assert PAGE.endswith(key_tables())


@pytest.mark.parametrize("path", sorted((ROOT / "examples/pipelines").glob("*.toml")), ids=lambda path: path.name)
def test_examples_are_right(path):
    """Is every file that one may start from without mistakes?"""
    assert load_pipeline(path).name == path.stem


def test_the_first_one_is_right():
    """Is the file on the page without mistakes?"""
    text = re.search(r"```toml\n(.*?)```", PAGE, re.DOTALL)[1]

    assert parse_pipeline(text, file=Path("shout.toml")).name == "shout"
