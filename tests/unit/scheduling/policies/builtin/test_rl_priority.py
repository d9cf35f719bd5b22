from __future__ import annotations

import pytest

from kube_scheduler_operator.scheduling.policies.learned_values import CONFIG_MAP, LearnedValues

from ..playing import Play, node, pod


def test_golden_vector() -> None:
    state = LearnedValues()
    play = Play("rl-priority", [node("a")])
    expected = [(0.9, 9), (0.81, 8), (0.729, 7), (0.7561, 7), (0.78049, 7), (0.752441, 7)]
    for reward, (value, score) in zip((0, 0, 0, 1, 1, 0.5), expected, strict=True):
        assert state.reward("web", "a", reward) == pytest.approx(value)
        play.policy.on_config_map("", CONFIG_MAP, state.data())
        assert play.scores(pod(labels={"app": "web"})) == [score]


def test_values_of_another_namespace_do_not_count() -> None:
    state = LearnedValues()
    mine, other = pod(labels={"app": "web"}), pod(labels={"app": "web"})
    mine["metadata"]["namespace"], other["metadata"]["namespace"] = "shop", "tenant"
    for _ in range(20):
        state.reward("tenant/web", "a", 0.0)
    play = Play("rl-priority", [node("a")])
    play.policy.on_config_map("", CONFIG_MAP, state.data())
    assert play.scores(other) == [1]
    assert play.scores(mine) == [5]


def test_an_unseen_node_gets_the_middle_score() -> None:
    state = LearnedValues()
    for _ in range(20):
        state.reward("web", "bad", 0.0)
    state.reward("web", "good", 1.0)
    play = Play("rl-priority", [node("bad"), node("good"), node("new")])
    assert play.policy.config_maps() == [("", CONFIG_MAP)]
    play.policy.on_config_map("", CONFIG_MAP, state.data())
    assert play.scores(pod(labels={"app": "web"}), "bad", "good", "new") == [1, 10, 5]
    assert play.scores(pod(labels={"app": "other"}), "bad", "good", "new") == [5, 5, 5]
    old = Play("rl-priority", [node("new")], compatibility=True)
    assert old.scores() == [0]
    play.policy.on_config_map("", CONFIG_MAP, None)
    assert play.scores(pod(labels={"app": "web"}), "bad", "good", "new") == [5, 5, 5]
