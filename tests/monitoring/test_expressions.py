"""What the tests read in the expressions of dashboards and alerts is what Prometheus reads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from monitoring.boards import BOARDS
from monitoring.prometheus import Prometheus, running
from monitoring.promql import named

MONITORING = Path(__file__).resolve().parents[2] / "deploy" / "monitoring"

# Without Prometheus it is downloaded or built first, which takes minutes.
pytestmark = pytest.mark.timeout(3600)

EXPRESSIONS = [
    *(
        pytest.param(query.expr, id=f"{board.name}-{panel.title}-{number}")
        for board in BOARDS
        for panel in board.panels
        for number, query in enumerate(panel.queries)
    ),
    *(
        pytest.param(rule["expr"], id=f"{rule['alert']}-{rule['labels']['severity']}")
        for component in ("operator", "schedulers")
        for group in yaml.safe_load((MONITORING / component / "rules.yaml").read_text())["spec"][
            "groups"
        ]
        for rule in group["rules"]
    ),
]


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    with running(tmp_path_factory.mktemp("prometheus"), []) as found:
        yield found


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_metrics_and_labels_are_those_of_the_syntax_tree(
    prometheus: Prometheus, expression: str
) -> None:
    metrics, labels = prometheus.metrics_and_labels(expression)
    found = named(expression)
    assert found.metrics == metrics
    assert {label for _, of in found.selectors for label in of} | found.grouping == labels
