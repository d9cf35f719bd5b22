"""Merging: OpenShift's process merge by its table, the semantic merge against an oracle."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kube_scheduler_operator.base.go_values import without_nulls
from kube_scheduler_operator.config.language.merging import merge, merge_plain, merge_with_jsonmerge
from kube_scheduler_operator.config.language.merging.merge import (
    TypeMetaError,
    merge_process,
    merge_semantically,
    normalized_json,
)
from kube_scheduler_operator.config.language.merging.merge_plain import Merge

KIND = {"apiVersion": "foo", "kind": "the-kind"}
ENGINES: dict[str, Callable[..., Merge]] = {
    "jsonmerge": merge_with_jsonmerge.engine,
    "plain": merge_plain.engine,
}


@pytest.fixture(params=ENGINES, scope="module", autouse=True)
def _engine(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every test runs with jsonmerge, and with what replaces it where it is not installed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merge, "engine", ENGINES[request.param])
        yield


@pytest.mark.parametrize(
    ("base", "overlay", "merged"),
    [
        pytest.param(
            {"alpha": "first", "bravo": {"apple": "one"}},
            {"bravo": {"banana": "two", "cake": {"armadillo": "uno"}}, "charlie": "third"},
            {
                "alpha": "first",
                "bravo": {"apple": "one", "banana": "two", "cake": {"armadillo": "uno"}},
                "charlie": "third",
            },
            id="maps merge deep",
        ),
        pytest.param(
            {"bravo": {"apple": "one"}},
            {"bravo": {"apple": {"armadillo": "uno"}}},
            {"bravo": {"apple": {"armadillo": "uno"}}},
            id="a map replaces a scalar",
        ),
        pytest.param({"a": [1]}, {"a": {"b": 1}}, {"a": {"b": 1}}, id="a map replaces a list"),
        pytest.param({"a": {"b": 1}}, {"a": [2]}, {"a": [2]}, id="a list replaces a map"),
        pytest.param({"a": [1, 2]}, {"a": [3]}, {"a": [3]}, id="a list replaces a list"),
        pytest.param({"a": "first"}, {"a": None}, {"a": None}, id="null is stored"),
        pytest.param({"a": "first"}, {"a": ""}, {"a": ""}, id="the empty string is kept"),
        pytest.param({"a": {"b": 1}}, {"a": {}}, {"a": {"b": 1}}, id="an empty map adds nothing"),
        pytest.param({}, {"a": {"b": None}}, {"a": {"b": None}}, id="a missing key is copied"),
    ],
)
def test_process_merge(base: Any, overlay: Any, merged: Any) -> None:
    assert merge_process([base, overlay]) == merged


@pytest.mark.parametrize(
    "overlay",
    [
        pytest.param({"bravo": "two"}, id="no type"),
        pytest.param({**KIND, "bravo": "two"}, id="same"),
    ],
)
def test_documents_of_one_kind_merge(overlay: Any) -> None:
    merged = merge_process([{**KIND, "alpha": "first"}, overlay])
    assert merged == {**KIND, "alpha": "first", "bravo": "two"}


@pytest.mark.parametrize(
    ("overlay", "message"),
    [
        pytest.param({"kind": "other"}, "/other does not equal foo/the-kind", id="kind"),
        pytest.param({"apiVersion": "bar"}, "bar/ does not equal foo/the-kind", id="apiVersion"),
    ],
)
@pytest.mark.parametrize("merge", [merge_process, merge_semantically])
def test_documents_of_two_kinds_do_not_merge(merge: Any, overlay: Any, message: str) -> None:
    with pytest.raises(TypeMetaError, match=message):
        merge([KIND, overlay])


def test_empty_documents_are_skipped() -> None:
    assert merge_process([None, {}, {"a": 1}, None, {}]) == {"a": 1}


PROFILE = {"schedulerName": "default-scheduler", "plugins": {"score": {"enabled": [{"name": "A"}]}}}


@pytest.mark.parametrize(
    ("base", "overlay", "merged"),
    [
        pytest.param(
            {"profiles": [PROFILE]},
            {"profiles": [{"percentageOfNodesToScore": 5}]},
            {"profiles": [{**PROFILE, "percentageOfNodesToScore": 5}]},
            id="a single nameless profile is the default scheduler's",
        ),
        pytest.param(
            {"profiles": [PROFILE]},
            {"profiles": [{"schedulerName": "other"}]},
            {"profiles": [PROFILE, {"schedulerName": "other"}]},
            id="a profile with another name is added",
        ),
        pytest.param(
            {
                "profiles": [
                    {"schedulerName": "x", "pluginConfig": [{"name": "A", "args": {"a": 1}}]}
                ]
            },
            {
                "profiles": [
                    {
                        "schedulerName": "x",
                        "pluginConfig": [
                            {"name": "B", "args": {"b": 1}},
                            {"name": "A", "args": {"c": 2}},
                        ],
                    }
                ]
            },
            {
                "profiles": [
                    {
                        "schedulerName": "x",
                        "pluginConfig": [
                            {"name": "A", "args": {"a": 1, "c": 2}},
                            {"name": "B", "args": {"b": 1}},
                        ],
                    }
                ]
            },
            id="arguments of one plugin merge",
        ),
        pytest.param(
            {"profiles": [PROFILE]},
            {"profiles": [{"plugins": {"score": {"enabled": [{"name": "B"}]}}}]},
            {"profiles": [{**PROFILE, "plugins": {"score": {"enabled": [{"name": "B"}]}}}]},
            id="plugin lists replace",
        ),
        pytest.param(
            {"profiles": [PROFILE]},
            {"profiles": [{"schedulerName": "x"}, {"schedulerName": "x"}]},
            {"profiles": [{"schedulerName": "x"}, {"schedulerName": "x"}]},
            id="names that are not unique",
        ),
        pytest.param(
            {"profiles": [PROFILE]},
            {"profiles": "none"},
            {"profiles": "none"},
            id="something else than a list replaces",
        ),
        pytest.param(
            {"extenders": [{"urlPrefix": "a"}]},
            {"extenders": [{"urlPrefix": "b"}]},
            {"extenders": [{"urlPrefix": "a"}, {"urlPrefix": "b"}]},
            id="extenders are appended",
        ),
        pytest.param(
            {"extenders": 1},
            {"extenders": [{}]},
            {"extenders": [{}]},
            id="a list replaces a scalar",
        ),
        pytest.param(
            {"extenders": [{}]}, {"extenders": None}, {"extenders": None}, id="null replaces a list"
        ),
    ],
)
def test_semantic_merge(base: Any, overlay: Any, merged: Any) -> None:
    assert merge_semantically([base, overlay]) == merged


def test_null_removes_a_key_at_any_depth() -> None:
    document = {"a": None, "b": {"c": None, "d": [{"e": None, "f": 0}]}, "g": ""}
    assert without_nulls(document) == {"b": {"d": [{"f": 0}]}, "g": ""}


def test_integral_floats_become_integers_and_others_stay() -> None:
    result = normalized_json({"a": 5.0, "b": [0.5, True]})
    assert result == {"a": 5, "b": [0.5, True]}
    assert isinstance(result["a"], int)


# --- the oracle: plain recursion ---------------------------------------------------------------
def oracle(base: Any, overlay: Any, path: tuple[str, ...] = (), *, meaning: bool) -> Any:
    if isinstance(overlay, dict):
        result = dict(base) if isinstance(base, dict) else {}
        for key, value in overlay.items():
            result[key] = oracle(result.get(key), value, (*path, key), meaning=meaning)
        return result
    if meaning and isinstance(overlay, list):
        known = [] if base is None else base
        if path == ("extenders",) and isinstance(known, list):
            return known + overlay
        for where, key in (
            (("profiles",), "schedulerName"),
            (("profiles", "pluginConfig"), "name"),
        ):
            if path == where and unique(known, key) and unique(overlay, key):
                result_list = list(known)
                for item in overlay:
                    index = next((i for i, o in enumerate(known) if o[key] == item[key]), None)
                    old = None if index is None else known[index]
                    merged = oracle(old, item, path, meaning=True)
                    if index is None:
                        result_list.append(merged)
                    else:
                        result_list[index] = merged
                return result_list
    return overlay


def unique(items: Any, key: str) -> bool:
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        return False
    names = [item.get(key) for item in items]
    return all(isinstance(name, str) for name in names) and len(set(names)) == len(names)


keys = st.one_of(
    st.sampled_from(["profiles", "schedulerName", "pluginConfig", "name", "extenders", "args"]),
    st.sampled_from(["", "a%41", "a/b", "~1", "$ref", "#"]),
    st.text(max_size=3),
)
scalars = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "b"])
trees = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)
named = st.fixed_dictionaries(
    {"name": st.sampled_from("abc")}, optional={"args": st.dictionaries(keys, scalars, max_size=2)}
)
profiles = st.fixed_dictionaries(
    {"schedulerName": st.sampled_from("xyz")},
    optional={"pluginConfig": st.lists(named, max_size=3), "plugins": trees},
)
configurations = st.fixed_dictionaries(
    {},
    optional={
        "profiles": st.lists(profiles, max_size=3) | trees,
        "extenders": st.lists(trees, max_size=2) | scalars,
        "other": trees,
    },
)
documents = st.dictionaries(keys.filter(lambda key: key != "kind"), trees, max_size=4)


@settings(max_examples=200, deadline=None)
@given(st.one_of(documents, configurations), st.one_of(documents, configurations), st.booleans())
def test_merges_with_and_without_jsonmerge_are_equal(
    base: Any, overlay: Any, semantic: bool
) -> None:
    first, second = (engine(semantic=semantic)(base, overlay) for engine in ENGINES.values())
    assert first == second
    assert list(first) == list(second)


@settings(max_examples=60, deadline=None)
@given(documents, documents)
def test_process_merge_equals_plain_recursion(base: Any, overlay: Any) -> None:
    assert merge_process([base, overlay]) == oracle(base, overlay, meaning=False)


@settings(max_examples=60, deadline=None)
@given(configurations, configurations)
def test_semantic_merge_equals_plain_recursion(base: Any, overlay: Any) -> None:
    for document in (base, overlay):
        items = document.get("profiles")
        if isinstance(items, list) and len(items) == 1 and isinstance(items[0], dict):
            items[0].setdefault("schedulerName", "default-scheduler")
    assert merge_semantically([base, overlay]) == oracle(base, overlay, meaning=True)


def containers(value: Any) -> list[int]:
    found = []
    if isinstance(value, dict | list):
        found.append(id(value))
        for item in value.values() if isinstance(value, dict) else value:
            found += containers(item)
    return found


@settings(max_examples=40, deadline=None)
@given(configurations, configurations)
def test_a_merge_neither_changes_nor_shares_its_inputs(base: Any, overlay: Any) -> None:
    before = copy.deepcopy((base, overlay))
    merged = merge_semantically([base, overlay])
    assert (base, overlay) == before
    assert not set(containers(merged)) & set(containers([base, overlay]))
