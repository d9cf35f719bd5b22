"""The parts of a dashboard, and the JSON that Grafana reads of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

Json = dict[str, Any]

WIDTH: Final = 24
"""Columns of a dashboard in Grafana."""

HEIGHT: Final = 8
SCHEMA_VERSION: Final = 39
"""Of Grafana 10.4, the oldest that need not migrate the files; newer ones migrate them."""

DATASOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
INTERVAL: Final = "$__rate_interval"


@dataclass(frozen=True)
class Query:
    """An expression, and the name of its series, in which {{label}} is a label's value."""

    expr: str
    legend: str


@dataclass(frozen=True)
class Panel:
    """A picture of some series over time."""

    title: str
    description: str  # what it shows, and what a bad value means
    unit: str  # of Grafana: short, s, percentunit, ops, bytes, bool ...
    queries: tuple[Query, ...]
    width: int = 12
    stacked: bool = False
    # why an expression may have no series in a cluster without faults; empty: it always has some
    quiet: str = ""


@dataclass(frozen=True)
class Row:
    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True)
class Dashboard:
    name: str  # of the file
    title: str
    description: str
    rows: tuple[Row, ...]
    job: str = ""  # a metric whose jobs the variable `job` offers; empty: no variable

    @property
    def panels(self) -> list[Panel]:
        return [panel for row in self.rows for panel in row.panels]

    def json(self) -> str:
        return json.dumps(_dashboard(self), indent=2) + "\n"


def panel(
    title: str,
    description: str,
    unit: str,
    *queries: tuple[str, str],
    width: int = 12,
    stacked: bool = False,
    quiet: str = "",
) -> Panel:
    return Panel(
        title, description, unit, tuple(Query(*query) for query in queries), width, stacked, quiet
    )


def quantile(share: float, metric: str, by: str, matchers: str = "") -> str:
    """Return the expression of a quantile of a histogram's observations."""
    rate = (
        f"rate({metric}_bucket{{{matchers}}}[{INTERVAL}])"
        if matchers
        else (f"rate({metric}_bucket[{INTERVAL}])")
    )
    return f"histogram_quantile({share}, sum by (le, {by}) ({rate}))".replace("(le, )", "(le)")


def per_second(metric: str, by: str, matchers: str = "") -> str:
    """Return the expression of a counter's increase per second."""
    selected = f"{metric}{{{matchers}}}" if matchers else metric
    rate = f"rate({selected}[{INTERVAL}])"
    return f"sum by ({by}) ({rate})" if by else f"sum({rate})"


def _dashboard(board: Dashboard) -> Json:
    return {
        "uid": f"kso-{board.name}",
        "title": board.title,
        "description": board.description,
        "tags": ["kube-scheduler", "kube-scheduler-operator"],
        "schemaVersion": SCHEMA_VERSION,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "1m",
        "time": {"from": "now-3h", "to": "now"},
        "timezone": "browser",
        "templating": {"list": list(_variables(board))},
        "panels": list(_panels(board)),
    }


def _variables(board: Dashboard) -> Iterator[Json]:
    yield {
        "name": "datasource",
        "label": "Data source",
        "type": "datasource",
        "query": "prometheus",
    }
    if board.job:
        query = f"label_values({board.job}, job)"
        yield {
            "name": "job",
            "label": "Job",
            "type": "query",
            "datasource": DATASOURCE,
            "query": {"query": query, "refId": "job"},
            "refresh": 2,
            "includeAll": True,
            "multi": True,
            "current": {"text": ["All"], "value": ["$__all"]},
        }


def _panels(board: Dashboard) -> Iterator[Json]:
    number = top = 0
    for row in board.rows:
        number += 1
        yield {
            "id": number,
            "type": "row",
            "title": row.title,
            "collapsed": False,
            "gridPos": {"h": 1, "w": WIDTH, "x": 0, "y": top},
            "panels": [],
        }
        top, left = top + 1, 0
        for one in row.panels:
            if left + one.width > WIDTH:
                top, left = top + HEIGHT, 0
            number += 1
            yield _panel(one, number, {"h": HEIGHT, "w": one.width, "x": left, "y": top})
            left += one.width
        top += HEIGHT


def _panel(one: Panel, number: int, place: Json) -> Json:
    custom: Json = {"fillOpacity": 10, "lineWidth": 1, "showPoints": "auto"}
    if one.stacked:
        custom |= {"fillOpacity": 30, "stacking": {"mode": "normal", "group": "A"}}
    return {
        "id": number,
        "type": "timeseries",
        "title": one.title,
        "description": one.description,
        "datasource": DATASOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": one.unit, "custom": custom}, "overrides": []},
        "options": {
            "legend": {
                "displayMode": "table",
                "placement": "right",
                "showLegend": True,
                "calcs": ["lastNotNull", "max"],
            },
            "tooltip": {"mode": "multi", "sort": "desc"},
        },
        "targets": [
            {
                "refId": chr(ord("A") + position),
                "datasource": DATASOURCE,
                "expr": query.expr,
                "legendFormat": query.legend,
            }
            for position, query in enumerate(one.queries)
        ],
    }
