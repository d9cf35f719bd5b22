"""One SchedulerProfile as a profile of kube-scheduler, validated by itself."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final

from ....base.bounded_cache import cached_by_content, cached_by_identity
from ....base.decoding import INVALID_TYPE, UNKNOWN_FIELD
from ....base.findings import Path, Problem, did_you_mean, listing
from ....base.go_values import without_nulls
from ....base.objects import mapping
from ...language.merging.merge import merge_semantically, normalized_json, override_path, sets_path
from ...language.merging.merge_plain import unique_names
from ...language.merging.presets import DEFAULT_PROFILE, PRESETS, profile_fragment
from ...language.plugins.effective_plugins import PluginEntry, effective_plugins
from ...language.schema import API_VERSION, DEFAULT_SCHEDULER, KIND
from ...language.validation.configuration import Target, validate_config
from ...language.validation.profiles import CACHE_SIZE, validate_profile
from ...language.warnings.configuration import profile_warnings

NO_BASE: Final = "None"
BASES: Final = (*PRESETS, NO_BASE)
UNKNOWN_BASE: Final = "UnknownProfile"

_PROFILE_FIELDS: Final = (
    "plugins", "pluginConfig", "percentageOfNodesToScore", "percentageOfPlacementsToScore",
)  # fmt: skip
_FIELDS: Final = ("scheduler", "schedulerName", "base", *_PROFILE_FIELDS)


@dataclass(frozen=True, slots=True)
class ProfileVersion:
    name: str  # of the object
    root: str  # the field of the object that holds the version
    spec: Mapping[str, Any]

    @property
    def scheduler_name(self) -> str:
        return str(self.spec.get("schedulerName") or self.name)


@dataclass(frozen=True, slots=True)
class ProfileCheck:
    """The result for one version; the paths of problems and warnings are in the spec."""

    profile: Mapping[str, Any]  # of KubeSchedulerConfiguration
    problems: tuple[Problem, ...]
    # the plugins that would run, per extension point and in order
    points: Mapping[str, tuple[PluginEntry, ...]]
    warnings: tuple[Problem, ...] = ()  # empty if there are problems


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The rest of a configuration in which a profile is validated; equal if its content is."""

    content: str  # of the profile and the overrides, as text
    # the first profile, whose queue the others share; None if this is the first
    beside: Mapping[str, Any] | None = field(compare=False)
    over: Mapping[str, Any] = field(compare=False)  # the overrides, merged over all profiles
    target: Target

    @classmethod
    def of(
        cls, beside: Mapping[str, Any] | None, over: Mapping[str, Any], target: Target
    ) -> Surroundings:
        """Keep only what affects the validation of a profile."""
        over = {key: over[key] for key in ("profiles", "extenders") if key in over}
        if beside is not None and not over:
            beside = _neighbour(beside, target)
        text = json.dumps([beside, over], sort_keys=True, default=str)
        return cls(text, beside, over, target)

    def with_beside(self, profile: Mapping[str, Any] | None) -> Surroundings:
        return Surroundings.of(profile, self.over, self.target)


@cached_by_content(CACHE_SIZE)
def _neighbour(profile: Mapping[str, Any], target: Target) -> Mapping[str, Any]:
    """Reduce a profile to what affects other profiles.

    Profiles share only the queue, so an edit of anything else in the first profile does not change
    the results for the others.
    """
    profile = normalized_json(profile)
    whole = validate_profile(profile, target)
    if whole.queue is None or whole.problems:
        return profile
    lists = mapping(profile.get("plugins")).get("queueSort")
    least: dict[str, Any] = {
        "schedulerName": profile.get("schedulerName"),
        "plugins": {"queueSort": lists},
        "pluginConfig": [
            entry
            for entry in profile.get("pluginConfig") or ()
            if mapping(entry).get("name") == whole.queue.sorter
        ],
    }
    least = without_nulls(least)
    read = validate_profile(least, target)
    same = (read.name, read.queue, read.problems) == (whole.name, whole.queue, whole.problems)
    return least if same else profile


def check_profile(
    version: ProfileVersion, first: Mapping[str, Any] | None, surroundings: Surroundings
) -> ProfileCheck:
    """Compose and validate one version.

    `first` is the default base; None for LowNodeUtilization. `surroundings` has the rest of the
    configuration, without a first profile if this is the first.
    """
    return _judge(version.scheduler_name, _text(version.spec), _text(first), surroundings)


@cached_by_identity(512)
def _text(value: Mapping[str, Any] | None) -> str:
    return json.dumps(value, default=str)


@lru_cache(maxsize=CACHE_SIZE)
def _judge(name: str, spec_text: str, first_text: str, surroundings: Surroundings) -> ProfileCheck:
    spec, first = json.loads(spec_text), json.loads(first_text)
    over, target = surroundings.over, surroundings.target
    problems = list(_fields(spec))
    if problems:
        return ProfileCheck({"schedulerName": name}, tuple(problems), {})
    written = written_profile(name, spec)
    base = {**_base(spec.get("base"), first), "schedulerName": name}
    named = base if spec.get("base") else {}
    (profile,) = _merged([{"profiles": [base]}, {"profiles": [written]}])["profiles"]
    neighbour = surroundings.beside
    beside = [normalized_json(neighbour)] if neighbour is not None else []
    alone = {"apiVersion": API_VERSION, "kind": KIND, "profiles": [*beside, profile]}
    config = _overlaid(alone, over, name)
    index, errors = _check(config, name, target)
    if config is not alone and (index is None or any(not _within(e, index) for e in errors)):
        # Errors elsewhere must neither hide errors of this profile nor be attributed to it.
        config = alone
        index, errors = _check(config, name, target)
    problems += (
        _in_spec(error, profile, written, named)
        for error in errors
        if index is not None and _within(error, index) and not sets_path(error.path, config, over)
    )
    points: Mapping[str, tuple[PluginEntry, ...]] = {}
    warnings: list[Problem] = []
    if not errors and index is not None:
        mixed = config["profiles"][index]
        points = effective_plugins(mixed, target.gates).points
        points = {point: entries for point, entries in points.items() if entries}
        extenders = config.get("extenders") or ()
        warnings += (
            _in_spec(warning, profile, written, named)
            for warning in profile_warnings(mixed, ("profiles", index), target, extenders)
            if not sets_path(warning.path, config, over)
        )
    return ProfileCheck(profile, tuple(problems), points, tuple(warnings))


def _in_spec(
    problem: Problem,
    profile: Mapping[str, Any],
    written: Mapping[str, Any],
    base: Mapping[str, Any],
) -> Problem:
    """Map a problem of the composed configuration to the spec field that caused it.

    `base` is the profile that spec.base names; empty if it names none.
    """
    path: Path = ("profiles", 0, *problem.path[2:])
    composed, own = {"profiles": [profile]}, {"profiles": [written]}
    if sets_path(path, composed, {"profiles": [base]}) and not sets_path(path, composed, own):
        return replace(problem, path=("base",))
    return replace(problem, path=(override_path(path, composed, own) or problem.path)[2:])


def written_profile(name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a SchedulerProfile's spec to a profile of kube-scheduler, without its base."""
    return {"schedulerName": name, **{k: spec[k] for k in _PROFILE_FIELDS if k in spec}}


def _fields(spec: Mapping[str, Any]) -> Iterator[Problem]:
    """Apply the rules of the CustomResourceDefinition to files that no API server has validated."""
    for key in spec:
        if key not in _FIELDS:
            hint = did_you_mean(key, _FIELDS) or "; remove it"
            yield Problem(UNKNOWN_FIELD, (key,), f'SchedulerProfile has no field "{key}"{hint}')
    for key in ("scheduler", "schedulerName", "base"):
        value = spec.get(key)
        if value is not None and not isinstance(value, str):
            yield Problem(INVALID_TYPE, (key,), "this must be a string; write a name")
        elif key == "base" and value and value not in BASES:
            hint = did_you_mean(value, BASES)
            message = f'base "{value}" is not known; use {listing(BASES)}{hint}'
            yield Problem(UNKNOWN_BASE, (key,), message)


def _base(name: str | None, first: Mapping[str, Any] | None) -> Mapping[str, Any]:
    if name == NO_BASE:
        return {}
    if not name and first is not None:
        return first
    return first_profile(profile_fragment(name or DEFAULT_PROFILE))


def first_profile(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the profile of default-scheduler in a fragment that has at most this one."""
    profiles = config.get("profiles") or [{}]
    return {**profiles[0], "schedulerName": DEFAULT_SCHEDULER}


def _overlaid(config: Mapping[str, Any], over: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    if not over:
        return config
    known = unique_names(over.get("profiles"), "schedulerName")
    if known is not None:
        # Other profiles of the overrides do not affect this one.
        here = {name, *(p.get("schedulerName") for p in config["profiles"])}
        kept = [p for p in over["profiles"] if p["schedulerName"] in here]
        over = {**over, "profiles": kept}
    return _merged([config, over])


def _merged(documents: list[Mapping[str, Any]]) -> dict[str, Any]:
    merged: dict[str, Any] = without_nulls(merge_semantically(documents))
    return merged


def _check(
    config: Mapping[str, Any], name: str, target: Target
) -> tuple[int | None, list[Problem]]:
    """Return (index of the profile in the configuration, all errors of the configuration)."""
    profiles = config.get("profiles")
    known = unique_names(profiles, "schedulerName") or []
    return (known.index(name) if name in known else None), validate_config(config, target)


def _within(problem: Problem, index: int) -> bool:
    return problem.path[:2] == ("profiles", index)
