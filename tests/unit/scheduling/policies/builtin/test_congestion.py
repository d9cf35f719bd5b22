from __future__ import annotations

import pytest

from ..playing import Play, node, usage


@pytest.mark.parametrize(
    ("factor", "most", "score"),
    [(0, 100, 10), (5, 10, 5), (25, 100, 8), (100, 100, 0), (250, 100, 0), (-3, 100, 10)],
)
@pytest.mark.parametrize("annotations", ["own", "safe"])
def test_golden_vectors(factor: int, most: int, score: int, annotations: str) -> None:
    reported = (
        usage(congestion=factor) if annotations == "own" else {"congestion-factor": str(factor)}
    )
    play = Play(
        "congestion", [node("a", annotations=reported)], maximum=most, annotations=annotations
    )
    assert play.scores() == [score]


def test_compatibility_treats_a_missing_annotation_as_no_congestion() -> None:
    play = Play("congestion", [node("a"), node("b", annotations={"congestion-factor": "x"})],
                annotations="safe", compatibility=True)  # fmt: skip
    assert play.scores() == [10, 10]


def test_a_missing_annotation_gets_the_median() -> None:
    nodes = [
        node(name, annotations=usage(congestion=v))
        for name, v in zip("abc", (0, 50, 90), strict=True)
    ]
    assert Play("congestion", [*nodes, node("d")]).scores() == [10, 5, 1, 5]
