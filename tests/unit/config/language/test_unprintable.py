"""Characters that kube-scheduler cannot log, anywhere in a configuration."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube_scheduler_operator.config.language.validation.configuration import (
    _unprintable,
    unprintable,
)

TEXTS = st.text(
    st.sampled_from("a é\n\t\u2028\x7f\x84\x85\x86\x9f\ufffe\uffff\U0001f600"), max_size=3
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(TEXTS, VALUES, max_size=4))
def test_what_is_skipped_has_no_such_character(config: dict[str, Any]) -> None:
    assert list(unprintable(config)) == list(_unprintable(config, ()))


@pytest.mark.parametrize(
    ("config", "path"),
    [
        ({"profiles": [{"schedulerName": "a\x7f"}]}, ("profiles", 0, "schedulerName")),
        ({"extenders": [{"urlPrefix": "http://a\uffff"}]}, ("extenders", 0, "urlPrefix")),
        ({"a\x9f": 1}, ("a\x9f",)),
    ],
)
def test_the_character_is_reported_at_its_path(config: dict[str, Any], path: Any) -> None:
    (found,) = unprintable(config)
    assert found.path == path
    assert "control character U+" in found.sentence
