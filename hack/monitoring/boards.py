"""All dashboards, and the files that they are written to."""

from __future__ import annotations

from typing import Final

from cluster.paths import REPOSITORY

from . import assignment, extenders, operator, schedulers

FOLDER: Final = REPOSITORY / "deploy/monitoring/dashboards"
BOARDS: Final = (schedulers.BOARD, operator.BOARD, extenders.BOARD, assignment.BOARD)

ANSWERS: Final = "KSO_DASHBOARD_ANSWERS"
"""Variable with the file in which the integration test leaves the answers of Prometheus."""


def files() -> dict[str, str]:
    """Return name -> content of the files in FOLDER that are made from code."""
    return {f"{board.name}.json": board.json() for board in BOARDS}
