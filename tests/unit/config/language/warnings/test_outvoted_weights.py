"""Outvoted plugins never change which node wins, and other plugins can."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kube_scheduler_operator.config.language.warnings.plugins import Scorer, outvoted


def plugins(**weights: int) -> list[Scorer]:
    return [Scorer.plugin(name, weight) for name, weight in weights.items()]


def test_equal_weights_outvote_no_plugin() -> None:
    assert outvoted(plugins(a=1, b=1, c=1)) is None
    assert outvoted(plugins(a=1)) is None
    assert outvoted([]) is None


def test_the_limit_is_a_hundred_times_the_sum_of_the_others() -> None:
    assert outvoted(plugins(a=300, b=1, c=2)) is None
    found = outvoted(plugins(b=1, a=301, c=2))
    assert found is not None
    assert (found.deciding, found.outvoted, found.unit, found.reach) == (
        ("a",),
        ("c", "b"),
        301,
        300,
    )


def test_several_heavy_plugins_outvote_by_the_common_divisor_of_their_weights() -> None:
    found = outvoted(plugins(a=2000, b=3000, c=2))
    assert found is not None
    assert (found.deciding, found.unit) == (("b", "a"), 1000)
    # 3001 and 2000 have nothing in common: their sums can differ by one.
    assert outvoted(plugins(a=2000, b=3001, c=2)) is None


def test_a_scorer_of_some_pods_outvotes_no_plugin() -> None:
    heavy = Scorer.extender("extenders[0]", 1000, optional=True)
    assert outvoted([heavy, *plugins(a=1)]) is None
    assert outvoted([Scorer.extender("extenders[0]", 1000, optional=False), *plugins(a=1)])


WEIGHTS = st.lists(st.integers(1, 2000), min_size=2, max_size=4)
SCORES = st.lists(st.integers(0, 100), min_size=4, max_size=4)


@given(WEIGHTS, SCORES, SCORES, SCORES, SCORES)
def test_outvoted_plugins_never_change_the_best_node(
    weights: list[int], one: list[int], two: list[int], one_more: list[int], two_more: list[int]
) -> None:
    scorers = [Scorer.plugin(str(index), weight) for index, weight in enumerate(weights)]
    found = outvoted(scorers)
    if found is None:
        return
    deciding = [int(name) for name in found.deciding]
    heavy = sum(weights[i] * (one[i] - two[i]) for i in deciding)
    others = [i for i in range(len(weights)) if i not in deciding]
    light = sum(weights[i] * (one_more[i] - two_more[i]) for i in others)
    if heavy:
        assert (heavy + light > 0) == (heavy > 0)


@given(WEIGHTS)
def test_other_plugins_can_change_the_best_node(weights: list[int]) -> None:
    """Against the heaviest one alone, the maximum of all others outweighs one point, or ties."""
    ordered = sorted(weights, reverse=True)
    scorers = [Scorer.plugin(str(index), weight) for index, weight in enumerate(ordered)]
    found = outvoted(scorers)
    if found is None or len(found.deciding) > 1:
        assert 100 * sum(ordered[1:]) >= ordered[0]
