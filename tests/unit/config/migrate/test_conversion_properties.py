"""For any plugin lists, the same plugins run after the conversion, which is idempotent."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import hypothesis.strategies as st
from hypothesis import given, settings

from kube_scheduler_operator.base.findings import Problem
from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.plugins.effective_plugins import effective_plugins
from kube_scheduler_operator.config.language.validation.configuration import Target
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.config.migrate.changes import ConversionError
from kube_scheduler_operator.config.migrate.convert import Conversion, convert

from .conversion_cases import CASES
from .conversions import BETA_SCORES, FILTERS, LATER, component

DEFAULTS: dict[str, dict[str, int]] = {
    "preFilter": dict.fromkeys((
        "NodeResourcesFit", "NodePorts", "VolumeRestrictions", "PodTopologySpread",
        "InterPodAffinity", "VolumeBinding", "NodeAffinity",
    ), 1),
    "filter": dict.fromkeys(FILTERS.split(), 1),
    "postFilter": {"DefaultPreemption": 1},
    "preScore": dict.fromkeys((
        "InterPodAffinity", "PodTopologySpread", "TaintToleration", "NodeAffinity",
    ), 1),
    "score": {
        name: int(weight) for name, _, weight in (w.partition("=") for w in BETA_SCORES.split())
    },
    "reserve": {"VolumeBinding": 1},
    "preBind": {"VolumeBinding": 1},
    "bind": {"DefaultBinder": 1},
}  # fmt: skip
"""Of v1beta2 (pkg/scheduler/apis/config/v1beta2/default_plugins.go of Kubernetes 1.22)."""
SINCE = {
    "preFilter": (
        "VolumeZone", "NodeVolumeLimits", "NodeName", "NodeUnschedulable", "TaintToleration",
    ),
    "preScore": ("NodeResourcesFit", "NodeResourcesBalancedAllocation", "VolumeBinding"),
    "score": ("VolumeBinding",),
}  # fmt: skip
"""Points that these plugins implement since then; they make no new decision there."""
CLOUD = ("EBSLimits", "GCEPDLimits", "AzureDiskLimits")
VERSIONS = ("1.29", "1.31", "1.34", "1.35", "1.36", "1.37")


@st.composite
def lists(draw: st.DrawFn) -> dict[str, Any]:
    """`plugins` of a profile: at any points, any of the defaults on, off, weighted, or moved."""
    found: dict[str, Any] = {}
    for point in draw(st.sets(st.sampled_from(sorted(DEFAULTS)))):
        names = st.sampled_from(sorted(DEFAULTS[point]))
        enabled = [
            {"name": name, **({"weight": draw(st.integers(1, 9))} if draw(st.booleans()) else {})}
            for name in draw(st.lists(names, unique=True, max_size=4))
        ]
        disabled = [
            {"name": name}
            for name in draw(st.lists(st.one_of(names, st.just("*")), unique=True, max_size=4))
        ]
        found[point] = {"enabled": enabled, "disabled": disabled}
    return found


def ran(point: str, written: dict[str, Any]) -> dict[str, int]:
    """What a scheduler of that time ran at a point: name and weight."""
    sets = written.get(point, {"enabled": [], "disabled": []})
    off = {each["name"] for each in sets["disabled"]}
    kept = {
        name: weight
        for name, weight in DEFAULTS[point].items()
        if "*" not in off and name not in off
    }
    return kept | {each["name"]: each.get("weight", 1) for each in sets["enabled"]}


def converted(document: dict[str, Any], version: str) -> Conversion:
    return convert(document, Target(Gates(Version.parse(version))))


@settings(max_examples=150)
@given(written=lists(), version=st.sampled_from(VERSIONS))
def test_the_same_plugins_run_with_the_same_weights(written: dict[str, Any], version: str) -> None:
    document = component("v1beta2", profiles=[{"plugins": written}])
    (made,) = converted(document, version).config.get("profiles") or [{}]
    runs = effective_plugins(made, Gates(Version.parse(version))).points
    for point in DEFAULTS:
        expected = ran(point, written)
        found = {
            entry.name: (entry.weight or 1) if point == "score" else 1
            for entry in runs[point]
            if entry.name not in (*LATER, *CLOUD)
        }
        found = {
            name: weight
            for name, weight in found.items()
            if name in expected or name not in SINCE.get(point, ())
        }
        assert found == (expected if point == "score" else dict.fromkeys(expected, 1)), point


@settings(max_examples=100)
@given(
    first=lists(),
    second=lists(),
    name=st.sampled_from(("v1alpha2", "v1beta1", "v1beta2", "v1beta3")),
    version=st.sampled_from(VERSIONS),
)
def test_a_result_is_converted_to_itself(
    first: dict[str, Any], second: dict[str, Any], name: str, version: str
) -> None:
    profiles = [
        {"schedulerName": "a", "plugins": first},
        {"schedulerName": "b", "plugins": second},
    ]
    once = converted(component(name, profiles=profiles), version)
    again = converted(once.config, version)
    assert (again.config, again.changes) == (once.config, ())
    assert again.problems == once.problems


@given(written=lists())
def test_every_entry_is_kept_or_reported(written: dict[str, Any]) -> None:
    result = converted(component("v1beta2", profiles=[{"plugins": written}]), "1.35")
    reported = {change.path for change in result.changes}
    profiles = result.config.get("profiles") or [{}]
    made = profiles[0].get("plugins", {})
    for point, sets in written.items():
        for key in ("enabled", "disabled"):
            left = {each["name"] for each in made.get(point, {}).get(key, [])}
            for index, each in enumerate(sets[key]):
                path = ("profiles", 0, "plugins", point, key, index)
                assert each["name"] in left or path in reported, path


JUNK: tuple[Any, ...] = (
    None, 0, -1, 1.5, "", "x", True, [], {}, [None], [[]], {"a": None}, [{"name": None}],
    {"name": 1},
)  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a document."""
    yield path
    items = value.items() if isinstance(value, dict) else ()
    entries = enumerate(value) if isinstance(value, list) else ()
    for key, item in (*items, *entries):
        yield from places(item, (*path, key))


def replaced(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    changed = copy.deepcopy(document)
    owner = changed
    for part in path[:-1]:
        owner = owner[part]
    owner[path[-1]] = value
    return changed


@settings(max_examples=400)
@given(data=st.data(), name=st.sampled_from(sorted(CASES)), junk=st.sampled_from(JUNK))
def test_invalid_values_are_converted_or_rejected_with_a_message(
    data: st.DataObject, name: str, junk: Any
) -> None:
    document, given_policy = CASES[name].document, CASES[name].policy
    if given_policy is not None and data.draw(st.booleans()):
        given_policy = replaced(
            given_policy, data.draw(st.sampled_from(list(places(given_policy)))), junk
        )
    else:
        document = replaced(document, data.draw(st.sampled_from(list(places(document)))), junk)
    problems: tuple[Problem, ...] = ()
    try:
        json.dumps(convert(document, Target(Gates(Version(1, 35))), given_policy).config)
    except ConversionError as error:
        problems = error.problems
        refused = True
    else:
        refused = False
    assert refused == bool(problems)
    assert all(problem.message for problem in problems)
