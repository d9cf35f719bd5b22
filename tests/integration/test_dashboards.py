"""Prometheus itself evaluates the dashboards and alerts, over real programs under load."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster.observe import SCHEDULER, until
from monitoring.boards import ANSWERS, BOARDS
from monitoring.panels import Panel
from monitoring.prometheus import Prometheus

from ..builders import secondary
from .operator_world import REPOSITORY
from .scraped_world import Scraped, scraped

NAME = f"dash-{hashlib.sha256(str(REPOSITORY).encode()).hexdigest()[:6]}"
MONITORING = REPOSITORY / "deploy/monitoring"
SECONDARIES = "/apis/kube-scheduler-operator.dev/v1alpha1/secondaryschedulers"
PROFILE = {"schedulerName": "assigned"}
WAVES = 10

pytestmark = pytest.mark.timeout(600, func_only=True)

PANELS = [
    pytest.param(panel, id=f"{board.name}-{panel.title}")
    for board in BOARDS
    for panel in board.panels
]
ALERTS = [
    pytest.param(rule["expr"], id=f"{rule['alert']}-{rule['labels']['severity']}")
    for component in ("operator", "schedulers")
    for group in yaml.safe_load((MONITORING / component / "rules.yaml").read_text())["spec"][
        "groups"
    ]
    for rule in group["rules"]
]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scraped]:
    """A minute of load, with a rollout in it."""
    with scraped(NAME, tmp_path_factory.mktemp("scraped")) as found:
        found.world.api.create(SECONDARIES, secondary("assigned", assign={}, profiles=[PROFILE]))
        for number in range(WAVES):
            found.load.wave()
            if number == WAVES // 2:
                found.world.patch(SCHEDULER, {"profile": "HighNodeUtilization"})
            time.sleep(2)
        until(found.world.calm, 60, found.world.why)
        until(lambda: not found.prometheus.troubles(), 30, lambda: str(found.prometheus.troubles()))
        if path := os.environ.get(ANSWERS):
            Path(path).write_text(json.dumps(answers(found.prometheus)))
        yield found


def answers(prometheus: Prometheus) -> dict[str, dict[str, list[Any]]]:
    """Dashboard -> title of a panel -> for each query the series of the last minute."""
    end = time.time()
    return {
        board.name: {
            panel.title: [
                prometheus.over_time(query.expr, end - 60, end, 2) for query in panel.queries
            ]
            for panel in board.panels
        }
        for board in BOARDS
    }


@pytest.mark.parametrize("panel", PANELS)
def test_prometheus_evaluates_a_panel(found: Scraped, panel: Panel) -> None:
    for query in panel.queries:
        # Rates need two scrapes within their window, which the current moment may not have.
        end = time.time()
        series = found.prometheus.over_time(query.expr, end - 60, end, 5)
        assert series or panel.quiet, query.expr


@pytest.mark.parametrize("expression", ALERTS)
def test_prometheus_evaluates_an_alert(found: Scraped, expression: str) -> None:
    found.prometheus.now(expression)
