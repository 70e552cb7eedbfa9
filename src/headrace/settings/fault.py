"""The one error of this room."""

from headrace.model.errors import HeadraceError


class ConfigFault(HeadraceError):
    """A setting that cannot be: one sentence of what is wrong, and one of what to do about it."""

    def __init__(self, problem: str, remedy: str = "") -> None:
        super().__init__(f"{problem}. {remedy}" if remedy else problem)
        self.problem = problem
        self.remedy = remedy
