"""Makes HTML from typed answers by jinja2.

Every value is escaped, and is bounded: text that others wrote is one line of at most TEXT_LENGTH
visible characters, and a list on a page has at most ROWS entries.
"""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any, Final

import jinja2
from markupsafe import Markup

from ...base import assets
from ...base.foreign_text import one_line
from . import views

TEXT_LENGTH: Final = 4096
ROWS: Final = 500


def shown(value: Any) -> Any:
    """Return a value as one line of visible characters; markup of our templates stays."""
    if value is None or isinstance(value, (Markup, jinja2.Undefined, bool, int, float)):
        return "" if value is None else value
    return one_line(_bounded(str(value)))


def lines(text: str) -> Markup:
    """Return a text that has lines of its own: each is one, whatever it quotes."""
    return Markup("<br>").join(map(one_line, _bounded(text).split("\n")))


def _bounded(text: str) -> str:
    return text if len(text) <= TEXT_LENGTH else f"{text[: TEXT_LENGTH - 1]}…"


def most(rows: Iterable[Any], limit: int = ROWS) -> list[Any]:
    """Return the first entries of a list; the macro `more` shows how many a page leaves out."""
    return list(islice(rows, limit))


_HEADER: Final = re.compile('<th scope="col"[^>]*>(.*?)</th>', re.DOTALL)
_ROW: Final = re.compile("<tr[^>]*>.*?</tr>", re.DOTALL)
_CELL: Final = re.compile("<(td|th)(?=[ >])(?! colspan)")


def labelled(table: str) -> Markup:
    """Return a table whose cells have the titles of their columns, for narrow windows.

    Quotes and angle brackets of values are escaped, so only templates have these elements. A cell
    that spans columns needs no title: it is alone in its row.
    """
    head, end, body = str(table).partition("</thead>")
    titles = _HEADER.findall(head)

    def row(found: re.Match[str]) -> str:
        remaining = iter(titles)
        return _CELL.sub(lambda cell: f'{cell[0]} data-label="{next(remaining, "")}"', found[0])

    return Markup(head + end + _ROW.sub(row, body))  # noqa: S704 - made by our templates


def time_of_day(seconds: float) -> str:
    """Return a Unix time as a local time of day, with the zone."""
    return f"{datetime.fromtimestamp(seconds).astimezone():%H:%M:%S %Z}"


def identity_flags(args: argparse.Namespace) -> tuple[str, ...]:
    """Return the flags of `add_cluster_flags` that kubectl has too, as they were given."""
    flags = [("--kubeconfig", args.kubeconfig), ("--context", args.context)]
    flags += [("--as", args.as_user), *(("--as-group", group) for group in args.as_groups)]
    flags.append(("--as-uid", args.as_uid))
    return tuple(f"{name}={value}" for name, value in flags if value)


@dataclass(frozen=True, slots=True)
class Templates:
    """The templates of the console."""

    flags: Sequence[str] = ()  # of `identity_flags`, which commands to copy repeat
    links: bool = True  # whether pages can name each other's addresses
    environment: jinja2.Environment = field(init=False)

    def __post_init__(self) -> None:
        environment = jinja2.Environment(
            loader=jinja2.FunctionLoader(lambda name: assets.text("templates", f"console/{name}")),
            undefined=jinja2.StrictUndefined,
            autoescape=True,
            finalize=shown,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        environment.filters.update(
            kubectl=self.kubectl,
            labelled=labelled,
            lines=lines,
            most=most,
            shell=shlex.join,
            time_of_day=time_of_day,
        )
        environment.globals.update(views.FUNCTIONS)
        environment.globals.update(views.VALUES, ROWS=ROWS, links=self.links)
        object.__setattr__(self, "environment", environment)

    def kubectl(self, words: Sequence[str]) -> str:
        """Return a kubectl command to copy, quoted for a shell, with the reader's context."""
        return shlex.join(["kubectl", *map(str, words), *self.flags])

    def render(self, template: str, **values: Any) -> str:
        return self.environment.get_template(template).render(**values)
