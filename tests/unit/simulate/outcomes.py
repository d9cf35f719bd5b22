"""Three runs of one question: two pods on two nodes of one CPU."""

from __future__ import annotations

from kube_scheduler_operator.simulate.placements import PlacementOutcome
from kube_scheduler_operator.simulate.utilization import Utilization


def outcome(placed: dict[str, str], cpu: dict[str, float]) -> PlacementOutcome:
    utilization = Utilization(
        {node: {"cpu": 1000.0} for node in cpu},
        {node: {"cpu": amount} for node, amount in cpu.items()},
        {node: int(amount > 0) for node, amount in cpu.items()},
    )
    return PlacementOutcome(placed=placed, utilization=utilization)


RUNS = [
    outcome({"x": "a", "y": "a"}, {"a": 900.0, "b": 0.0}),
    outcome({"x": "a", "y": "b"}, {"a": 400.0, "b": 500.0}),
    outcome({"x": "a", "y": "b"}, {"a": 600.0, "b": 300.0}),
]
