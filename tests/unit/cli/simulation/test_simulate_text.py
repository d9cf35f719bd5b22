"""The first sentence of `simulate`, from an answer alone."""

from __future__ import annotations

import pytest

from kube_scheduler_operator.cli.simulation.answer import (
    TODAY,
    ConfigurationAnswer,
    LargestQuestion,
    SimulationAnswer,
)
from kube_scheduler_operator.cli.simulation.answer_text import answer_lines
from kube_scheduler_operator.simulate.placements import Spread

WEB = "Deployment shop/web"


def first_line(pods: int, placed: Spread, largest: Spread | None = None) -> str:
    figures = {"placed": placed} | ({"largest": largest} if largest else {})
    one = ConfigurationAnswer(
        TODAY, True, 5, 0, figures, {}, {}, {}, [], [{}], {}, [], [], False, None
    )
    question = LargestQuestion(WEB, 3) if largest else None
    answer = SimulationAnswer(
        "x", False, None, 5, {WEB: pods}, [], [], [], [], [], {}, [one], [], question
    )
    return next(iter(answer_lines(answer, 3)))


@pytest.mark.parametrize(
    ("pods", "placed", "line"),
    [
        (3, Spread(1, 1, 1), "do not all fit in any of 5 runs: 1 of 3 gets a node."),
        (3, Spread(0, 1, 2), "do not all fit in any of 5 runs: 1 (0-2) of 3 get a node."),
        (1, Spread(0, 0, 0), "does not fit in any of 5 runs."),
    ],
)
def test_how_many_pods_get_a_node_is_in_the_first_sentence(
    pods: int, placed: Spread, line: str
) -> None:
    many = "pod" if pods == 1 else "pods"
    assert first_line(pods, placed) == f"{pods} {many} of {WEB} {line}"


def test_one_pod_that_fits_is_one() -> None:
    one, two = Spread(1, 1, 1), Spread(2, 2, 2)
    assert first_line(0, one, one) == f"1 pod of {WEB} fits: fewer than the 3 of its spec."
    assert first_line(0, two, two) == f"2 pods of {WEB} fit: fewer than the 3 of its spec."
