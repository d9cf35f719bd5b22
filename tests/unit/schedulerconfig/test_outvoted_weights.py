"""The rule about weights is right: what it calls silenced cannot change who wins, and only that."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kube_scheduler_operator.schedulerconfig.outvoted_weights import Scorer, silenced


def plugins(**weights: int) -> list[Scorer]:
    return [Scorer.plugin(name, weight) for name, weight in weights.items()]


def test_equal_weights_silence_nobody() -> None:
    assert silenced(plugins(a=1, b=1, c=1)) is None
    assert silenced(plugins(a=1)) is None
    assert silenced([]) is None


def test_the_border_is_a_hundred_times_the_sum_of_the_others() -> None:
    assert silenced(plugins(a=300, b=1, c=2)) is None
    found = silenced(plugins(b=1, a=301, c=2))
    assert found is not None
    assert (found.loud, found.silent, found.unit, found.reach) == (("a",), ("c", "b"), 301, 300)


def test_several_heavy_ones_silence_together_by_what_their_weights_have_in_common() -> None:
    found = silenced(plugins(a=2000, b=3000, c=2))
    assert found is not None
    assert (found.loud, found.unit) == (("b", "a"), 1000)
    # 3001 and 2000 have nothing in common: sums of theirs can differ by one.
    assert silenced(plugins(a=2000, b=3001, c=2)) is None


def test_one_who_does_not_always_score_silences_nobody() -> None:
    heavy = Scorer.extender("extenders[0]", 1000, optional=True)
    assert silenced([heavy, *plugins(a=1)]) is None
    assert silenced([Scorer.extender("extenders[0]", 1000, optional=False), *plugins(a=1)])


WEIGHTS = st.lists(st.integers(1, 2000), min_size=2, max_size=4)
SCORES = st.lists(st.integers(0, 100), min_size=4, max_size=4)


@given(WEIGHTS, SCORES, SCORES, SCORES, SCORES)
def test_silenced_plugins_never_change_who_wins(
    weights: list[int], one: list[int], two: list[int], one_more: list[int], two_more: list[int]
) -> None:
    scorers = [Scorer.plugin(str(index), weight) for index, weight in enumerate(weights)]
    found = silenced(scorers)
    if found is None:
        return
    loud = [int(name) for name in found.loud]
    heavy = sum(weights[i] * (one[i] - two[i]) for i in loud)
    silent = [i for i in range(len(weights)) if i not in loud]
    light = sum(weights[i] * (one_more[i] - two_more[i]) for i in silent)
    if heavy:
        assert (heavy + light > 0) == (heavy > 0)


@given(WEIGHTS)
def test_whom_it_does_not_name_can_turn_the_choice_round(weights: list[int]) -> None:
    """Against the heaviest one alone: all others at their best outweigh one point, or tie."""
    ordered = sorted(weights, reverse=True)
    scorers = [Scorer.plugin(str(index), weight) for index, weight in enumerate(ordered)]
    found = silenced(scorers)
    if found is None or len(found.loud) > 1:
        assert 100 * sum(ordered[1:]) >= ordered[0]
