from __future__ import annotations

from ..playing import Play, node


def test_foo_accepts_all_nodes_with_the_same_score() -> None:
    play = Play("foo", [node("a"), node("b")])
    assert play.rejected() == {}
    assert play.scores() == [1, 1]
    assert Play("foo", [node("a")], value=7).scores() == [7]
    rows = play.policy.explain(play.pod(None), play.indices())
    assert rows == [{"node": "a", "score": 1}, {"node": "b", "score": 1}]
