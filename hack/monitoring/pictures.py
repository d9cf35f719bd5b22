"""Pictures of the panels of a dashboard: the series as Prometheus evaluated them, as SVG."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Final

from .panels import Dashboard, Panel

COLUMNS: Final = 2
WIDTH, HEIGHT, GAP = 470, 226, 14
SHOWN: Final = 6
"""Series with their names below a panel; all of them are drawn."""

_LEFT, _TOP, _BOTTOM = 52, 24, 140  # of the area of the curves, in a panel
_COLOURS: Final = (
    "#1f6fb4", "#c4501b", "#2b8a3e", "#8c3fa0", "#b8860b", "#0b8a8a", "#a61e4d", "#5c6370",
)  # fmt: skip
_STYLE: Final = (
    "text{font:11px sans-serif;fill:#1b1f24}.title{font-weight:bold;font-size:12px}"
    ".grey{fill:#59636e}.curve{fill:none;stroke-width:1.5}"
)

Series = Mapping[str, Any]
"""A series of an answer of Prometheus: metric (labels) and values (pairs of time and text)."""


@dataclass(frozen=True)
class Curve:
    name: str
    points: tuple[tuple[float, float], ...]


def curves(panel: Panel, answers: Sequence[Sequence[Series]]) -> list[Curve]:
    """Return the curves of a panel, by the answers to its queries."""
    found = []
    for query, series in zip(panel.queries, answers, strict=True):
        for one in series:
            points = [(float(at), float(value)) for at, value in one["values"]]
            finite = tuple(point for point in points if math.isfinite(point[1]))
            if finite:
                found.append(Curve(_named(query.legend, one["metric"]), finite))
    return found


def _named(legend: str, labels: Mapping[str, str]) -> str:
    filled = re.sub(r"\{\{(\w+)\}\}", lambda match: labels.get(match[1], ""), legend)
    return " ".join(filled.split()) or "value"


def drawn(board: Dashboard, answers: Mapping[str, Sequence[Sequence[Series]]]) -> str:
    """Return the picture of a dashboard; `answers` are by the titles of panels."""
    panels = board.panels
    lines = math.ceil(len(panels) / COLUMNS)
    width = COLUMNS * (WIDTH + GAP) + GAP
    height = lines * (HEIGHT + GAP) + GAP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img" aria-label="{escape(board.title)}">',
        f"<style>{_STYLE}</style>",
        f'<rect width="{width}" height="{height}" fill="#f6f8fa"/>',
    ]
    for number, panel in enumerate(panels):
        x = GAP + number % COLUMNS * (WIDTH + GAP)
        y = GAP + number // COLUMNS * (HEIGHT + GAP)
        parts.append(f'<g transform="translate({x},{y})">')
        parts += _panel(panel, curves(panel, answers[panel.title]))
        parts.append("</g>")
    return "\n".join([*parts, "</svg>"]) + "\n"


def _panel(panel: Panel, found: Sequence[Curve]) -> Iterator[str]:
    yield f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff" stroke="#d0d7de"/>'
    yield f'<text class="title" x="8" y="16">{escape(panel.title)}</text>'
    if not found:
        yield f'<text class="grey" x="8" y="40">no series: {escape(panel.quiet)}</text>'
        return
    values = [value for curve in found for _, value in curve.points]
    times = [at for curve in found for at, _ in curve.points]
    low, high = min(0.0, *values), max(*values, 0.0)
    high = high if high > low else low + 1
    begin, end = min(times), max(times)
    span = (end - begin) or 1

    def x(at: float) -> float:
        return _LEFT + (at - begin) / span * (WIDTH - _LEFT - 10)

    def y(value: float) -> float:
        return _BOTTOM - (value - low) / (high - low) * (_BOTTOM - _TOP - 8)

    for value in (low, (low + high) / 2, high):
        at = y(value)
        yield (
            f'<line x1="{_LEFT}" x2="{WIDTH - 10}" y1="{at:.1f}" y2="{at:.1f}" stroke="#eaeef2"/>'
            f'<text class="grey" x="{_LEFT - 4}" y="{at + 4:.1f}" text-anchor="end">'
            f"{amount(value, panel.unit)}</text>"
        )
    for number, curve in enumerate(found):
        colour = _COLOURS[number % len(_COLOURS)]
        points = " ".join(f"{x(at):.1f},{y(value):.1f}" for at, value in curve.points)
        yield f'<polyline class="curve" stroke="{colour}" points="{points}"/>'
    for number, curve in enumerate(found[:SHOWN]):
        left, top = 8 + number % 2 * (WIDTH // 2), _BOTTOM + 22 + number // 2 * 20
        colour = _COLOURS[number % len(_COLOURS)]
        name = curve.name if len(curve.name) <= 26 else f"{curve.name[:25]}…"
        last = amount(curve.points[-1][1], panel.unit)
        yield (
            f'<rect x="{left}" y="{top - 8}" width="9" height="9" fill="{colour}"/>'
            f'<text x="{left + 14}" y="{top}">{escape(name)}: {last}</text>'
        )
    if len(found) > SHOWN:
        more = len(found) - SHOWN
        yield f'<text class="grey" x="8" y="{HEIGHT - 10}">and {more} more series</text>'


def amount(value: float, unit: str) -> str:
    """Return a value in its unit, in three digits."""
    if unit == "percentunit":
        return f"{_digits(value * 100)} %"
    if unit == "percent":
        return f"{_digits(value)} %"
    if unit == "bytes":
        return f"{_digits(value / 2**20)} MiB"
    if unit == "s" and abs(value) >= 86400:
        return f"{_digits(value / 86400)} d"
    if unit == "s" and abs(value) >= 120:
        return f"{_digits(value / 60)} min"
    if unit == "s" and 0 < abs(value) < 1:
        return f"{_digits(value * 1000)} ms"
    return _digits(value) + {"s": " s", "ops": "/s"}.get(unit, "")


def _digits(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
