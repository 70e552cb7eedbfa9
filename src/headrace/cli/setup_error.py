"""What a command says when it cannot set itself up; apart, so that nobody loads what drives pip only to catch it."""


class SetupError(Exception):
    """The environment cannot be made: one sentence of what is wrong, one of what to do."""

    def __init__(self, problem: str, advice: str) -> None:
        super().__init__(problem, advice)
        self.problem = problem
        self.advice = advice

    def __str__(self) -> str:
        return f"{self.problem}\n{self.advice}"
