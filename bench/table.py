"""The numbers as a table: medians over rounds, and medians of the ratios within each round."""

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

from bench.seats import HEADRACE, HEADRACE_FLUSH, KAFKA, KAFKA_FLUSH, TITLES

BEGIN: Final = "<!-- measured:begin -->"
END: Final = "<!-- measured:end -->"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What the project set itself: a bound on a seat's number, or on its ratio to Kafka's."""

    bound: float
    at_least: bool = False
    ratio: bool = True
    seat: str = HEADRACE
    unit: str = ""

    def text(self) -> str:
        """As the table shows it."""
        sign = "≥" if self.at_least else "≤"
        where = "" if self.seat == HEADRACE else " (flushed)"
        return f"{sign} {self.bound:g}{'×' if self.ratio else self.unit}{where}"

    def met(self, value: float) -> bool:
        """Whether a value keeps the bound."""
        return value >= self.bound if self.at_least else value <= self.bound


class Results:
    """Every number measured, by workload, metric and seat, in the order of the rounds."""

    def __init__(self) -> None:
        self._values: dict[tuple[str, str, str], dict[int, float]] = defaultdict(dict)
        self._rows: dict[tuple[str, str], None] = {}

    def add(self, workload: str, seat: str, round_number: int, numbers: dict[str, float]) -> None:
        """Keep what one run of a workload gave."""
        for metric, value in numbers.items():
            self._rows[workload, metric] = None
            self._values[workload, metric, seat][round_number] = value

    def rows(self) -> list[tuple[str, str]]:
        """Workloads and their metrics, in the order they were first seen."""
        return list(self._rows)

    def middle(self, workload: str, metric: str, seat: str) -> float | None:
        """The median over rounds."""
        values = self._values.get((workload, metric, seat))
        return median(values.values()) if values else None

    def ratios(self, workload: str, metric: str, seat: str) -> list[float]:
        """The seat's number over Kafka's, round by round."""
        own = self._values.get((workload, metric, seat), {})
        peer = self._values.get((workload, metric, KAFKA), {})
        return [own[number] / peer[number] for number in sorted(own) if peer.get(number)]


def markdown(results: Results, targets: dict[tuple[str, str], Target]) -> str:
    """The whole table."""
    seats = (KAFKA, HEADRACE, HEADRACE_FLUSH, KAFKA_FLUSH)
    head = ["measure", TITLES[KAFKA], TITLES[HEADRACE], "ratio", "by round"]
    head += [TITLES[HEADRACE_FLUSH], "ratio", TITLES[KAFKA_FLUSH], "target", "met"]
    lines = [_line(head), _line(["---", *["--:"] * (len(head) - 2), ":-:"])]
    for workload, metric in results.rows():
        shown = {seat: results.middle(workload, metric, seat) for seat in seats}
        plain = results.ratios(workload, metric, HEADRACE)
        flushed = results.ratios(workload, metric, HEADRACE_FLUSH)
        target = targets.get((workload, metric))
        lines.append(
            _line(
                [
                    f"{workload}: {metric}",
                    number(shown[KAFKA]),
                    number(shown[HEADRACE]),
                    _ratio(plain),
                    " ".join(f"{ratio:.2f}" for ratio in plain),
                    number(shown[HEADRACE_FLUSH]),
                    _ratio(flushed),
                    number(shown[KAFKA_FLUSH]),
                    target.text() if target else "",
                    _verdict(target, results, workload, metric),
                ]
            )
        )
    return "\n".join(lines) + "\n"


def shortfalls(results: Results, targets: dict[tuple[str, str], Target]) -> str:
    """What was not reached, one line each; empty if all was."""
    lines = []
    for workload, metric in results.rows():
        target = targets.get((workload, metric))
        value = _judged(target, results, workload, metric) if target else None
        if target is not None and value is not None and not target.met(value):
            reached = f"{value:.2f}×" if target.ratio else number(value) + target.unit
            lines.append(f"- {workload}: {metric} is {reached}, wanted {target.text()}\n")
    return "".join(lines)


def write_into(page: Path, text: str) -> None:
    """Replace the measured part of a page and leave its prose alone."""
    before, _, rest = page.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{BEGIN}\n{text}{END}{after}")


def number(value: float | None) -> str:
    """Three significant digits, thousands set apart."""
    if value is None:
        return ""
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def _judged(target: Target, results: Results, workload: str, metric: str) -> float | None:
    """The value a target is about: a median of ratios, or of numbers."""
    if not target.ratio:
        return results.middle(workload, metric, target.seat)
    ratios = results.ratios(workload, metric, target.seat)
    return median(ratios) if ratios else None


def _verdict(target: Target | None, results: Results, workload: str, metric: str) -> str:
    value = _judged(target, results, workload, metric) if target else None
    if target is None or value is None:
        return ""
    return "yes" if target.met(value) else "**no**"


def _ratio(ratios: list[float]) -> str:
    return f"{median(ratios):.2f}×" if ratios else ""


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"
