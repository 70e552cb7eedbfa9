"""Lines over time as SVG: no library, and the colours are the theme's."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from html import escape

Points = Sequence[tuple[float, float]]
"""Seconds since 1970, value."""
_WIDTH, _HEIGHT = 1000, 100
"""Of the drawing itself, which is stretched; the words around it are not."""
_BANDS_MAX = 120
_POINT_ZERO = re.compile(r"\.0\b")
_SPAN_LEAST = 1 / 12
"""How much of the time that may be shown is always shown: of an hour, five minutes."""
_SHORT_S = 600
"""Below it, the times have seconds."""


def line_chart(points: Points, *, words: Callable[[float], str], title: str, span_s: float, now: float) -> str:
    """One line with the area below it; `words` says a value, `title` the whole thing to those who cannot see it."""
    if points:
        # Of what has just begun a whole hour would be an empty picture with a spike at its end.
        span_s = min(span_s, max(now - points[0][0], span_s * _SPAN_LEAST))
    inside = [(at, value) for at, value in points if at >= now - span_s]
    top = nice_top(max((value for _, value in inside), default=0))

    def x(at: float) -> float:
        return (at - (now - span_s)) / span_s * _WIDTH

    def y(value: float) -> float:
        return (1 - value / top) * _HEIGHT

    drawn = "".join(
        f'<line class="hr-grid" x1="0" x2="{_WIDTH}" y1="{y(value):.1f}" y2="{y(value):.1f}"/>'
        for value in (0, top / 2, top)
    )
    if len(inside) > 1:
        line = " ".join(f"{x(at):.1f},{y(value):.1f}" for at, value in inside)
        corners = f"{x(inside[0][0]):.1f},{_HEIGHT} {line} {x(inside[-1][0]):.1f},{_HEIGHT}"
        drawn += f'<polygon class="hr-area" points="{corners}"/><polyline class="hr-line" points="{line}"/>'
        drawn += "".join(_bands(inside, x, words))
    values = "".join(f"<span>{escape(label)}</span>" for label in _labels((top, top / 2, 0), words))
    is_short = span_s < _SHORT_S
    times = "".join(f"<span>{_clock(at, seconds=is_short)}</span>" for at in (now - span_s, now - span_s / 2, now))
    return (
        f'<div class="hr-chart" role="img" aria-label="{escape(title)}"><div class="hr-chart-values">{values}</div>'
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" preserveAspectRatio="none" aria-hidden="true">{drawn}</svg>'
        f'<div class="hr-chart-times">{times}</div></div>'
    )


def _labels(values: Sequence[float], words: Callable[[float], str]) -> list[str]:
    """What stands beside the lines; nothing where it would say the same as another, because it was rounded.

    Zero is exact, and so is the top: what is between them gives way, and then the top. The lines are at round numbers,
    which need no zero behind a point.
    """
    top, middle, zero = (_POINT_ZERO.sub("", words(value)) for value in values)
    return [top if top != zero else "", middle if middle not in {top, zero} else "", zero]


def _bands(points: Points, x: Callable[[float], float], words: Callable[[float], str]) -> list[str]:
    """Invisible strips that say time and value under the pointer."""
    some = points[:: len(points) // _BANDS_MAX + 1]
    width = (x(some[-1][0]) - x(some[0][0])) / max(len(some) - 1, 1)
    return [
        f'<rect class="hr-band" x="{x(at) - width / 2:.1f}" y="0" width="{width:.1f}" height="{_HEIGHT}">'
        f"<title>{_clock(at, seconds=True)}  {escape(words(value))}</title></rect>"
        for at, value in some
    ]


def nice_top(highest: float) -> float:
    """The next 1, 2 or 5 with zeros."""
    if highest <= 0:
        return 1.0
    power = 1.0
    while power * 10 <= highest:
        power *= 10
    while power > highest:
        power /= 10
    return next(power * step for step in (1, 2, 5, 10) if power * step >= highest)


def _clock(at: float, *, seconds: bool = False) -> str:
    return time.strftime("%H:%M:%S" if seconds else "%H:%M", time.localtime(at))
