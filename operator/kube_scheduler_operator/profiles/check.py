"""One SchedulerProfile as a profile of kube-scheduler, and what is wrong with it.

The result depends on nothing but the arguments and is kept by their content.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final

from ..base.findings import Path, Problem, did_you_mean, listing
from ..base.objects import mapping
from ..schedulerconfig.check import Target, check_config
from ..schedulerconfig.check_profiles import read_profile
from ..schedulerconfig.decode import INVALID_TYPE, UNKNOWN_FIELD
from ..schedulerconfig.effective_plugins import Entry, effective_plugins
from ..schedulerconfig.go_values import without_nulls
from ..schedulerconfig.locate import locate
from ..schedulerconfig.memo import REMEMBERED, Part, by_identity
from ..schedulerconfig.merge import DEFAULT_SCHEDULER, merge_by_meaning, names_of, plain
from ..schedulerconfig.presets import DEFAULT_PROFILE, PROFILES, profile_fragment
from ..schedulerconfig.schema import API_VERSION, KIND
from ..schedulerconfig.warnings import profile_hazards

NO_BASE: Final = "None"
BASES: Final = (*PROFILES, NO_BASE)
UNKNOWN_BASE: Final = "UnknownProfile"

_PROFILE_FIELDS: Final = ("plugins", "pluginConfig", "percentageOfNodesToScore")
_FIELDS: Final = ("scheduler", "schedulerName", "base", *_PROFILE_FIELDS)


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a SchedulerProfile's spec.

    Attributes:
        name: of the object.
        root: where in the object the version is.
        spec: the version.
    """

    name: str
    root: str
    spec: Mapping[str, Any]

    @property
    def scheduler_name(self) -> str:
        """What pods name to have this profile."""
        return str(self.spec.get("schedulerName") or self.name)


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a version comes to.

    Attributes:
        profile: of KubeSchedulerConfiguration.
        problems: why kube-scheduler would not start with it; paths are in the spec.
        points: the plugins that would run, per extension point and in order.
        warnings: what would run and may surprise; paths are in the spec. None with problems.
    """

    profile: Mapping[str, Any]
    problems: tuple[Problem, ...]
    points: Mapping[str, tuple[Entry, ...]]
    warnings: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the profiles of a scheduler are judged in, the same if its content is.

    Attributes:
        content: all of it as text.
        beside: the profile whose queue they share; None: there is none yet.
        over: configuration that is laid over all profiles later.
        target: the kube-scheduler that will read them.
    """

    content: str
    beside: Mapping[str, Any] | None = field(compare=False)
    over: Mapping[str, Any] = field(compare=False)
    target: Target = field(compare=False)

    @classmethod
    def of(
        cls, beside: Mapping[str, Any] | None, over: Mapping[str, Any], target: Target
    ) -> Surroundings:
        """Of these, without what means nothing to a profile."""
        over = {key: over[key] for key in ("profiles", "extenders") if key in over}
        if beside is not None and not over:
            beside = _neighbour(beside, target)
        gates = target.gates
        facts = [beside, over, str(gates.version), sorted(gates.explicit.items()), target.stock]
        return cls(json.dumps(facts, sort_keys=True, default=str), beside, over, target)

    def with_beside(self, profile: Mapping[str, Any] | None) -> Surroundings:
        """The same with another profile beside them, or none."""
        return Surroundings.of(profile, self.over, self.target)


def _neighbour(profile: Mapping[str, Any], target: Target) -> Mapping[str, Any]:
    """The least profile that is to those beside it what this one is; itself if there is none less.

    They share nothing but the queue: an edit of anything else is of no interest to them.
    """
    part = Part.of(profile, target)
    return profile if part is None else _least(part)


@lru_cache(maxsize=REMEMBERED)
def _least(part: Part) -> Mapping[str, Any]:
    profile: dict[str, Any] = plain(part.value)
    whole = read_profile(profile, part.target)
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
    read = read_profile(least, part.target)
    same = (read.name, read.queue, read.problems) == (whole.name, whole.queue, whole.problems)
    return least if same else profile


def judge(
    version: Version, first: Mapping[str, Any] | None, surroundings: Surroundings
) -> Judgement:
    """Compose and check one version.

    Args:
        version: of a SchedulerProfile.
        first: the profile that it is laid over if it names no base; None: LowNodeUtilization.
        surroundings: what else its scheduler will read, without a profile beside it if it is the
            first one itself.
    """
    texts = (_text(version.spec), "" if first is None else _text(first))
    return _judge(_Case(version.scheduler_name, texts, surroundings, version, first))


@by_identity(512)
def _text(value: Mapping[str, Any]) -> str:
    return json.dumps(value, sort_keys=True, default=str)


@dataclass(frozen=True, slots=True)
class _Case:
    """The arguments of `judge`, the same if their content is."""

    name: str
    texts: tuple[str, str]
    surroundings: Surroundings
    version: Version = field(compare=False)
    first: Mapping[str, Any] | None = field(compare=False)


@lru_cache(maxsize=REMEMBERED)
def _judge(case: _Case) -> Judgement:
    spec, name = case.version.spec, case.version.scheduler_name
    over, target = case.surroundings.over, case.surroundings.target
    problems = list(_fields(spec))
    if problems:
        return Judgement({"schedulerName": name}, tuple(problems), {})
    written = written_profile(name, spec)
    base = {**_base(spec.get("base"), case.first), "schedulerName": name}
    (profile,) = _merged([{"profiles": [base]}, {"profiles": [written]}])["profiles"]
    neighbour = case.surroundings.beside
    beside = [plain(neighbour)] if neighbour is not None else []
    alone = {"apiVersion": API_VERSION, "kind": KIND, "profiles": [*beside, profile]}
    config = _overlaid(alone, over, name)
    index, found = _check(config, name, target)
    if config is not alone and (index is None or any(not _within(p, index) for p in found)):
        # What is wrong elsewhere must not hide what is wrong here, nor be blamed on it.
        config = alone
        index, found = _check(config, name, target)
    mine = [p for p in found if index is not None and _within(p, index)]
    mine = [p for p in mine if not _exists(p.path, config, over)]
    problems += (_in_spec(problem, profile, written) for problem in mine)
    points: Mapping[str, tuple[Entry, ...]] = {}
    warnings: list[Problem] = []
    if not found and index is not None:
        mixed = config["profiles"][index]
        points = effective_plugins(mixed, target.gates).points
        points = {point: entries for point, entries in points.items() if entries}
        extenders = config.get("extenders") or ()
        told = profile_hazards(mixed, ("profiles", index), target, extenders)
        told = (each for each in told if not _exists(each.path, config, over))
        warnings += (_in_spec(problem, profile, written) for problem in told)
    return Judgement(profile, tuple(problems), points, tuple(warnings))


def _in_spec(problem: Problem, profile: Mapping[str, Any], written: Mapping[str, Any]) -> Problem:
    """A problem of a profile in a configuration, at the field that a user can edit."""
    path = locate(
        ("profiles", 0, *problem.path[2:]), {"profiles": [profile]}, {"profiles": [written]}
    )
    return replace(problem, path=(path or problem.path)[2:])


def written_profile(name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    """What a SchedulerProfile's spec says itself, as a profile of KubeSchedulerConfiguration."""
    return {"schedulerName": name, **{k: spec[k] for k in _PROFILE_FIELDS if k in spec}}


def _fields(spec: Mapping[str, Any]) -> Iterator[Problem]:
    """What the API server refuses as well; but files are not read by it."""
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
    """The profile that a SchedulerProfile is laid over."""
    if name == NO_BASE:
        return {}
    if not name and first is not None:
        return first
    fragment = profile_fragment(name or DEFAULT_PROFILE)
    return first_profile(fragment)


def first_profile(config: Mapping[str, Any]) -> dict[str, Any]:
    """The profile of default-scheduler in a fragment that has at most this one."""
    profiles = config.get("profiles") or [{}]
    return {**profiles[0], "schedulerName": DEFAULT_SCHEDULER}


def _overlaid(config: Mapping[str, Any], over: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The configuration with what is laid over it; itself if that has nothing to say to it."""
    if not over:
        return config
    known = names_of(over.get("profiles"), "schedulerName")
    if known is not None:
        # Other profiles of the overlay's own are none of this one's business.
        here = {name, *(p.get("schedulerName") for p in config["profiles"])}
        kept = [p for p in over["profiles"] if p["schedulerName"] in here]
        over = {**over, "profiles": kept}
    return _merged([config, over])


def _merged(documents: list[Mapping[str, Any]]) -> dict[str, Any]:
    merged: dict[str, Any] = without_nulls(merge_by_meaning(documents))
    return merged


def _check(
    config: Mapping[str, Any], name: str, target: Target
) -> tuple[int | None, list[Problem]]:
    """(where the profile is in the configuration, everything that is wrong with all of it)."""
    profiles = config.get("profiles")
    known = names_of(profiles, "schedulerName") or []
    return (known.index(name) if name in known else None), check_config(config, target)


def _within(problem: Problem, index: int) -> bool:
    return problem.path[:2] == ("profiles", index)


def _exists(path: Path, config: Mapping[str, Any], over: Mapping[str, Any]) -> bool:
    """Whether the overlay itself has the field that a problem is about."""
    found = locate(path, config, over)
    value: Any = over
    for part in found or ():
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            return False
    return found is not None
