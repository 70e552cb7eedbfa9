"""What a pipeline cannot do, said to the person who wrote its file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from headrace.model.errors import HeadraceError


class PipelineFault(HeadraceError):
    """A pipeline cannot be run or found: one sentence of what is wrong, one of what to do."""

    def __init__(self, problem: str, remedy: str = "") -> None:
        super().__init__(f"{problem} {remedy}" if remedy else problem)
        self.problem = problem
        self.remedy = remedy


class Mistake(NamedTuple):
    """One thing that is wrong in a pipeline file, and what to do about it."""

    line: int
    sentence: str


class FileFault(HeadraceError):
    """A pipeline file with mistakes in it: one line each, with file and line in front."""

    def __init__(self, file: str, mistakes: Sequence[Mistake]) -> None:
        self.file = file
        self.mistakes = sorted(mistakes)
        super().__init__("\n".join(f"{file}:{line}: {sentence}" for line, sentence in self.mistakes))
