"""The identity of a revision's content."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kube_scheduler_operator.operator.controlplane.revision.content import RevisionContent

PARTS = st.dictionaries(
    st.text(max_size=5), st.dictionaries(st.text(max_size=5), st.text(max_size=5)), max_size=4
)


@given(PARTS)
def test_hash_does_not_depend_on_order(parts: dict[str, dict[str, str]]) -> None:
    turned = {
        name: dict(reversed(list(data.items()))) for name, data in reversed(list(parts.items()))
    }
    assert RevisionContent(turned).hash == RevisionContent(parts).hash


@given(PARTS, PARTS)
def test_equal_hashes_mean_equal_content(
    one: dict[str, dict[str, str]], other: dict[str, dict[str, str]]
) -> None:
    assert (RevisionContent(one).hash == RevisionContent(other).hash) == (one == other)


def test_text_cannot_move_between_key_and_value_unnoticed() -> None:
    assert RevisionContent({"a": {"b": "c"}}).hash != RevisionContent({"a": {"bc": ""}}).hash
    assert (
        RevisionContent({"a": {"b": "c"}}).hash != RevisionContent({"a": {}, "b": {"b": "c"}}).hash
    )


def test_differences_are_listed_by_name() -> None:
    old = RevisionContent({"pod": {"x": "1"}, "config": {"y": "1"}})
    new = RevisionContent({"pod": {"x": "2"}, "config": {"y": "1"}})
    assert new.differences(old) == ("required configmap/pod has changed",)
    assert new.differences(new) == ()
    assert new.differences(None) == (
        "required configmap/config has been created",
        "required configmap/pod has been created",
    )
