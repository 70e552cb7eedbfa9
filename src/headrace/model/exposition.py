"""What is measured, in the text that Prometheus reads (text format 0.0.4).

A family is a name, a kind, a sentence and its samples; who measures makes families, who is asked renders them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, NamedTuple

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

PIECE_LINES = 200

Kind = Literal["counter", "gauge", "histogram"]
Number = int | float


class Sample(NamedTuple):
    """One value; `suffix` is what a histogram's parts have behind the family's name."""

    labels: Mapping[str, str]
    value: Number
    suffix: str = ""


class Family(NamedTuple):
    """All values of one name."""

    name: str
    kind: Kind
    sentence: str
    samples: Iterable[Sample]


NO_LABELS: Mapping[str, str] = {}


def counter(name: str, sentence: str, value: Number) -> Family:
    """A family of one value that only grows."""
    return Family(name, "counter", sentence, (Sample(NO_LABELS, value),))


def gauge(name: str, sentence: str, value: Number) -> Family:
    """A family of one value that goes up and down."""
    return Family(name, "gauge", sentence, (Sample(NO_LABELS, value),))


def labelled(name: str, kind: Kind, sentence: str, rows: Iterable[tuple[Mapping[str, str], Number]]) -> Family:
    """A family of values that labels tell apart."""
    return Family(name, kind, sentence, (Sample(labels, value) for labels, value in rows))


def render(families: Iterable[Family]) -> Iterator[str]:
    """The text in pieces, so that who has much to tell can do other things in between; no samples, no family."""
    for family in families:
        lines = [f"# HELP {family.name} {_sentence(family.sentence)}\n# TYPE {family.name} {family.kind}\n"]
        has_samples = False
        for sample in family.samples:
            has_samples = True
            lines.append(_line(family.name, sample))
            if len(lines) >= PIECE_LINES:
                yield "".join(lines)
                lines = []
        if has_samples:
            yield "".join(lines)


def _line(name: str, sample: Sample) -> str:
    if not sample.labels:
        return f"{name}{sample.suffix} {_number(sample.value)}\n"
    labels = ",".join(f'{label}="{_label(value)}"' for label, value in sample.labels.items())
    return f"{name}{sample.suffix}{{{labels}}} {_number(sample.value)}\n"


def _sentence(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")


def _label(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _number(value: Number) -> str:
    return repr(value)
