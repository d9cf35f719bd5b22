"""Cached results equal fresh ones after any edits in any order."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
from hypothesis import example, given, settings

from kube_scheduler_operator.base.bounded_cache import cached_by_content, cached_by_identity
from kube_scheduler_operator.base.go_values import without_nulls
from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.base.templates import canonical_json
from kube_scheduler_operator.config.effective.control_plane import compose
from kube_scheduler_operator.config.effective.profiles import check as profile_check
from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.merging.merge import Layers, merge_semantically
from kube_scheduler_operator.config.language.plugins import effective_plugins
from kube_scheduler_operator.config.language.validation import profiles as validate_profiles
from kube_scheduler_operator.config.language.validation.configuration import Target
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.config.language.warnings import configuration as warnings
from kube_scheduler_operator.operator.controlplane import target_config_maps
from kube_scheduler_operator.operator.profiles import status as profile_status

from .....control_plane_inputs import inputs_of

MODULES = (
    validate_profiles,
    compose,
    effective_plugins,
    warnings,
    profile_check,
    target_config_maps,
    profile_status,
)
"""The caches whose keys depend on input of users."""


def forget() -> None:
    for module in MODULES:
        for value in vars(module).values():
            clear: Callable[[], None] | None = getattr(value, "cache_clear", None)
            if clear is not None:
                clear()


# --- edits ----------------------------------------------------------------------------------------

SORTERS: tuple[dict[str, Any], ...] = (
    {},
    {},
    {"queueSort": {"enabled": [{"name": "PrioritySort"}]}},
    {"queueSort": {"enabled": [{"name": "PrioritySort"}], "disabled": [{"name": "*"}]}},
    {"queueSort": {"disabled": [{"name": "*"}]}},
    {"multiPoint": {"disabled": [{"name": "PrioritySort"}]}},
    {"multiPoint": {"disabled": [{"name": "PrioritySort"}], "enabled": [{"name": "OwnSort"}]}},
)
LISTS: tuple[dict[str, Any], ...] = (
    {"score": {"disabled": [{"name": "*"}], "enabled": [{"name": "ImageLocality", "weight": 5}]}},
    {"filter": {"disabled": [{"name": "NodePorts"}]}},
    {"score": {"enabled": [{"name": "ImageLocalty"}]}},
    {"score": {"enabled": None}},
    {"score": "everything"},
)
OLD: dict[str, Any] = {"filter": {"enabled": [{"name": "EBSLimits"}]}}
ARGUMENTS: tuple[dict[str, Any], ...] = (
    {"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 7}},
    {"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 700}},
    {"name": "PrioritySort", "args": {"any": 1}},
    {"name": "PrioritySort", "args": {"any": True}},
    {"name": "NodeResourcesFit", "args": {"ignoredResources": ["example.com/x"]}},
)
NAMES = ("default-scheduler", "a", "b", "c")
PERCENTAGES = st.sampled_from([0, 4, 5.0, 50, 101, "5"])


def sometimes(kind: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), kind)


FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "plugins": st.builds(
        lambda one, other: {**one, **other}, st.sampled_from(SORTERS), st.sampled_from(LISTS)
    ),
    "pluginConfig": st.lists(st.sampled_from(ARGUMENTS), max_size=2),
    "percentageOfNodesToScore": PERCENTAGES,
}
SPECS = st.fixed_dictionaries(
    {},
    optional={
        **FIELDS,
        "base": st.sampled_from(["HighNodeUtilization", "NoScoring", "None", "Nothing", ""]),
        "schedulerName": st.sampled_from(NAMES),
    },
)
PROFILE = st.fixed_dictionaries(
    {}, optional={**FIELDS, "schedulerName": sometimes(st.sampled_from(NAMES))}
)
PROFILES = st.lists(PROFILE, max_size=3)
EXTENDERS = st.sampled_from(
    [
        [],
        [{"urlPrefix": "http://e.example", "filterVerb": "f"}],
        [
            {
                "urlPrefix": "http://e.example",
                "bindVerb": "b",
                "managedResources": [{"name": "example.com/x", "ignoredByScheduler": True}],
            }
        ],
    ]
)
OVERRIDES = st.fixed_dictionaries(
    {}, optional={"profiles": PROFILES, "extenders": EXTENDERS, "parallelism": st.just(0)}
)
EDITS = st.one_of(
    st.tuples(st.just("profile"), st.tuples(st.sampled_from(NAMES), sometimes(SPECS))),
    st.tuples(st.just("profile"), st.tuples(st.sampled_from(NAMES), sometimes(SPECS))),
    st.tuples(st.just("accept"), st.sampled_from(NAMES)),
    st.tuples(
        st.just("shared"), st.sampled_from(["", "HighNodeUtilization", "NoScoring", "Nothing"])
    ),
    st.tuples(st.just("overrides"), sometimes(OVERRIDES)),
    st.tuples(st.just("version"), st.sampled_from([29, 33, 35])),
)


class Cluster:
    """What people have written so far."""

    def __init__(self) -> None:
        self.shared, self.minor = "", 35
        self.overrides: dict[str, Any] | None = None
        self.objects: dict[str, dict[str, Any]] = {}

    def edit(self, what: str, value: Any) -> None:
        if what == "profile":
            name, spec = value
            if spec is None:
                self.objects.pop(name, None)
            else:
                before = self.objects.get(name, {})
                self.objects[name] = {**before, "metadata": {"name": name}, "spec": spec}
        elif what == "accept" and value in self.objects:
            obj = self.objects[value]
            self.objects[value] = {**obj, "status": {"accepted": obj["spec"]}}
        elif what in ("shared", "overrides", "version"):
            setattr(self, "minor" if what == "version" else what, value)

    def composed(self) -> compose.Composition:
        return compose.compose(
            inputs_of(
                platform=KUBEADM,
                default_version=Version(1, self.minor, 1),
                scheduler={"spec": {"profile": self.shared}},
                kubescheduler={"spec": {"unsupportedConfigOverrides": self.overrides}},
                profiles=tuple(self.objects.values()),
            )
        )


def everything(composition: compose.Composition) -> tuple[Any, ...]:
    tables = [profile_status.plugin_table(result) for result in composition.results]
    text = canonical_json(composition.config or {})
    return composition, repr(composition.config), text, tables


@settings(max_examples=150, deadline=None)
@example([("overrides", {"profiles": [{"plugins": OLD}]}), ("version", 29), ("version", 35)])
@given(st.lists(EDITS, min_size=2, max_size=9))
def test_after_any_edits_cached_results_equal_fresh_ones(edits: list[tuple[str, Any]]) -> None:
    forget()
    cluster, cached = Cluster(), []
    for what, value in edits:
        cluster.edit(what, value)
        cached.append(everything(cluster.composed()))
    cluster = Cluster()
    for (what, value), found in zip(edits, cached, strict=True):
        cluster.edit(what, value)
        forget()
        assert everything(cluster.composed()) == found, (what, value)


TARGET = Target(Gates(Version(1, 35, 1)))


@settings(max_examples=400, deadline=None)
@example({}, {"plugins": SORTERS[-1]}, False)
@given(SPECS, PROFILE, st.booleans())
def test_the_reduced_neighbour_gives_the_same_result(
    spec: dict[str, Any], neighbour: dict[str, Any], stock: bool
) -> None:
    target = Target(TARGET.gates, stock=stock)
    version = profile_check.ProfileVersion("mine", "spec", {**spec, "schedulerName": "mine"})
    neighbour = {**neighbour, "schedulerName": "neighbour"}
    least = profile_check.Surroundings.of(neighbour, {}, target)
    whole = profile_check.Surroundings(f"{stock} {neighbour}", neighbour, {}, target)
    assert profile_check.check_profile(version, None, least) == profile_check.check_profile(
        version, None, whole
    )


def test_an_edit_of_the_first_profile_affects_others_only_by_its_queue_sort() -> None:
    def beside(**fields: Any) -> profile_check.Surroundings:
        first = {"schedulerName": "default-scheduler", **fields}
        return profile_check.Surroundings.of(first, {}, TARGET)

    one = beside(plugins=LISTS[0], percentageOfNodesToScore=5)
    assert beside(plugins=LISTS[1], pluginConfig=[ARGUMENTS[0]]) == one
    assert beside(plugins=SORTERS[3]) != one
    assert beside(pluginConfig=[ARGUMENTS[2]]) != beside(pluginConfig=[ARGUMENTS[3]])
    assert beside(plugins=LISTS[2]) != one, "its problems are not reported for others"


# --- merging --------------------------------------------------------------------------------------

ODD_PROFILES = st.one_of(
    PROFILES,
    st.lists(sometimes(st.sampled_from([{}, 5, {"schedulerName": 7}])), max_size=2),
    st.sampled_from([None, {}, {"a": 1}, "x"]),
)
DOCUMENTS = st.fixed_dictionaries({}, optional={"profiles": ODD_PROFILES, "extenders": EXTENDERS})


@settings(max_examples=400, deadline=None)
@example(
    [
        {"profiles": [{"schedulerName": "default-scheduler"}, {"schedulerName": "a"}]},
        {"profiles": [{"schedulerName": None, "plugins": {}}, {"schedulerName": "b"}]},
    ]
)
@example([{"profiles": [{"schedulerName": "default-scheduler"}]}, {"profiles": [{"plugins": {}}]}])
@given(st.lists(DOCUMENTS, min_size=1, max_size=3))
def test_profiles_excluded_from_a_merge_are_the_same_as_merged(
    documents: list[dict[str, Any]],
) -> None:
    expected = without_nulls(merge_semantically(documents))
    merged = Layers.of(*documents).merged()
    assert repr(merged) == repr(expected), "also the order, and 5 for 5.0"


# --- size of the cache ----------------------------------------------------------------------------


class Thing:
    """An object that can be referenced weakly."""


def test_a_cache_by_identity_is_bounded() -> None:
    asked: list[int] = []

    @cached_by_identity(2)
    def number(thing: Thing) -> int:
        asked.append(id(thing))
        return len(asked)

    first, second, third = Thing(), Thing(), Thing()
    assert [number(each) for each in (first, second, first, second)] == [1, 2, 1, 2]
    gone = weakref.ref(first)
    assert number(third) == 3
    del first
    gc.collect()
    assert gone() is None, "evicted objects are not referenced"
    assert number(second) == 2


def test_a_cache_by_content_distinguishes_values_and_schedulers() -> None:
    @cached_by_content(100)
    def asked(value: Any, target: Target) -> object:
        return object()

    def part(value: Any, minor: int = 35, *, stock: bool = True, **gates: bool) -> object:
        return asked(value, Target(Gates(Version(1, minor), gates), stock=stock))

    one = part({"weight": 1})
    assert part({"weight": 1}) is one
    others = (
        part({"weight": True}),
        part({"weight": 1.0}),
        part({"weight": "1"}),
        part({"weight": 1}, 34),
        part({"weight": 1}, stock=False),
        part({"weight": 1}, AllAlpha=True),
    )
    assert all(other is not one for other in others)
    assert part(1) is not part(True)
    assert part({"when": object()}) is not part({"when": object()}), "not JSON: not cached"


def test_a_cache_by_content_is_bounded() -> None:
    asked: list[str] = []

    @cached_by_content(2)
    def number(text: str) -> int:
        asked.append(text)
        return len(asked)

    assert [number(text) for text in ("a", "b", "a", "c", "a", "b")] == [1, 2, 1, 3, 1, 4]
