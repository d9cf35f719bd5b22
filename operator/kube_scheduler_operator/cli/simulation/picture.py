"""One SVG picture of simulated placements: how full the nodes are, configurations side by side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from ...base.foreign_text import one_line
from ...base.quantities import CPU, MEMORY
from ...simulate.placements import Spread
from ..console.output import counted
from .answer import DRAWN, ConfigurationAnswer
from .answer_text import cells

_WIDTH, _HEIGHT = 420, 150
"""Pixels of a diagram."""
_LEFT, _TOP, _GAP = 48, 64, 56
_ROW: Final = _HEIGHT + 48
_LINE: Final = 18
_COLOURS: Final = {CPU: "#3b6ea5", MEMORY: "#4f8f5b"}
_NAMES: Final = {CPU: "CPU", MEMORY: "memory"}
_FONT: Final = "font-family='system-ui, sans-serif'"
_FULL: Final = 100.0


def svg(title: str, columns: Sequence[ConfigurationAnswer]) -> str:
    """Return the picture: for each configuration the nodes, the fullest first, and its figures.

    A bar is the median of the runs, a line in it the range from the least to the most.
    """
    figures = [list(cells(column.figures)) for column in columns]
    count = max(map(len, figures))
    width = _LEFT + len(columns) * (_WIDTH + _GAP)
    height = _TOP + len(DRAWN) * _ROW + count * _LINE + 24
    panels = enumerate(zip(columns, figures, strict=True))
    shapes = [shape for at, (column, rows) in panels for shape in _panel(at, column, rows)]
    return "\n".join(
        [
            f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' "
            f"width='{width}' height='{height}' role='img' {_FONT} font-size='12'>",
            f"<title>{_text(title)}</title>",
            f"<rect width='{width}' height='{height}' fill='#ffffff'/>",
            f"<text x='{_LEFT}' y='22' font-size='16' font-weight='600'>{_text(title)}</text>",
            *shapes,
            "</svg>\n",
        ]
    )


def _text(foreign: str) -> str:
    """Return a text of others as XML: one line of visible characters."""
    return escape(one_line(foreign))


def _panel(at: int, column: ConfigurationAnswer, rows: Sequence[tuple[str, str]]) -> Iterator[str]:
    left = _LEFT + at * (_WIDTH + _GAP)
    of = counted(column.runs, "run")
    yield (
        f"<text x='{left}' y='44' font-size='14' font-weight='600'>{_text(column.name)}</text>"
        f"<text x='{left + _WIDTH}' y='44' text-anchor='end' fill='#666666'>{of}</text>"
    )
    for row, resource in enumerate(DRAWN):
        yield from _diagram(left, _TOP + row * _ROW, resource, column.fullness[resource])
    top = _TOP + len(DRAWN) * _ROW
    for number, (name, value) in enumerate(rows):
        y = top + number * _LINE
        yield f"<text x='{left}' y='{y}' fill='#444444'>{_text(name)}</text>"
        yield f"<text x='{left + _WIDTH}' y='{y}' text-anchor='end'>{_text(value)}</text>"


def _diagram(left: int, top: int, resource: str, values: Sequence[Spread]) -> Iterator[str]:
    highest = highest_of([values])
    for percent in (0, 50, 100):
        y = top + _HEIGHT - _HEIGHT * percent / highest
        yield (
            f"<line x1='{left}' x2='{left + _WIDTH}' y1='{y:.1f}' y2='{y:.1f}' stroke='#dddddd'/>"
            f"<text x='{left - 6}' y='{y + 4:.1f}' text-anchor='end' fill='#666666'>"
            f"{percent} %</text>"
        )
    colour = _COLOURS[resource]
    for bar in bars(values, highest, _WIDTH, _HEIGHT):
        yield (
            f"<rect x='{left + bar.x:.2f}' y='{top + bar.top:.2f}' width='{bar.width:.2f}' "
            f"height='{_HEIGHT - bar.top:.2f}' fill='{colour}'/>"
        )
        if bar.low > bar.high:
            middle = left + bar.x + bar.width / 2
            yield (
                f"<line x1='{middle:.2f}' x2='{middle:.2f}' y1='{top + bar.low:.2f}' "
                f"y2='{top + bar.high:.2f}' stroke='#222222' stroke-width='1'/>"
            )
    label = f"{_NAMES[resource]} requests of {len(values)} nodes, the fullest first"
    yield f"<text x='{left}' y='{top + _HEIGHT + 18}' fill='#444444'>{label}</text>"


@dataclass(frozen=True, slots=True)
class Bar:
    """A node in a diagram, in its pixels; y grows downwards."""

    x: float
    width: float
    top: float  # of the median
    low: float  # of the least
    high: float  # of the most


def highest_of(diagrams: Iterable[Sequence[Spread]]) -> float:
    """Return the top of the scale for diagrams that are compared, in percent."""
    return max([_FULL, *(one.most for values in diagrams for one in values)])


def bars(values: Sequence[Spread], highest: float, width: float, height: float) -> list[Bar]:
    """Return a bar for each node."""
    wide = width / max(len(values), 1)
    body = max(wide * 0.8, 0.5)

    def y(value: float) -> float:
        return height - height * value / highest

    return [
        Bar(at * wide, body, y(each.median), y(each.least), y(each.most))
        for at, each in enumerate(values)
    ]
