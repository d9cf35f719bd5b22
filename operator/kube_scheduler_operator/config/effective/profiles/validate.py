"""Validation of SchedulerProfiles.

Each is validated only with the first profile of its scheduler, so that an error in one does not
stop the others. While its current spec has an error, the last accepted version stays in use; it is
validated again, because its scheduler may have changed. Results are cached by content: a cluster
may have hundreds of profiles, and an edit changes one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ....base.bounded_cache import cached_by_identity
from ....base.defects import DEFECT
from ....base.findings import Finding, Problem
from ....base.limits import COMPOSED_BYTES, CONFIG_MAP_BYTES
from ....base.objects import mapping
from ....base.spec_limits import TOO_LARGE, json_bytes, limit_problems
from ...language.plugins.effective_plugins import PluginEntry
from ...language.schema import DEFAULT_SCHEDULER
from ...language.validation.configuration import Target
from ..attachment import (
    ACCEPTED,
    PROFILE,
    SPEC,
    ValidationResult,
    age_of,
    last_accepted,
    name_of,
    path_from,
    scheduler_of,
    schedulers_of,
    unattached,
    versions_for,
)
from .check import ProfileCheck, ProfileVersion, Surroundings, check_profile

NAME_TAKEN: Final = "SchedulerNameTaken"


@dataclass(frozen=True, slots=True)
class ProfileResult(ValidationResult):
    # the plugins of the version in use, per extension point and in order
    points: Mapping[str, tuple[PluginEntry, ...]] = field(default_factory=dict)
    serves: str = ""  # the schedulerName that it serves instead of its own; empty: its own

    @property
    def scheduler_name(self) -> str:
        """The schedulerName of the version in use; empty if no version is."""
        if self.spec is None:
            return ""
        return self.serves or ProfileVersion(self.name, self.root, self.spec).scheduler_name


def validate_profiles(
    scheduler: str,
    objects: Iterable[Mapping[str, Any]],
    first: Mapping[str, Any],
    target: Target,
    *,
    over: Mapping[str, Any] | None = None,
    taken: Mapping[str, str] | None = None,
    reserved: int = 0,
) -> tuple[tuple[dict[str, Any], ...], tuple[ProfileResult, ...]]:
    """Validate the SchedulerProfiles of one scheduler.

    The older object wins a schedulerName that two use: by creationTimestamp, then name. An object
    that moves to another scheduler stays until that one has accepted it.

    Args:
        scheduler: its name in `spec.scheduler`; "" for the control plane's.
        objects: SchedulerProfiles, also those of other schedulers.
        first: the scheduler's own first profile; a SchedulerProfile with its schedulerName is
            merged over it and replaces it. Empty if it has no profile.
        target: the kube-scheduler that will read them.
        over: the overrides, which are merged over the profiles later. They are not in the returned
            profiles, but validation includes them.
        taken: schedulerName -> the other scheduler that serves it, for messages.
        reserved: bytes of the composed configuration that are not profiles.

    Returns:
        (profiles, results): the profiles, with `first` or its replacement in front, then
        default-scheduler, then the others by schedulerName; the results for the objects whose spec
        names the scheduler, by name. Callers must not change either: they share cached data.
    """
    selection = _Selection(scheduler, first, target, over or {}, taken or {})
    mine = sorted((obj for obj in objects if scheduler in schedulers_of(obj)), key=age_of)
    selection.choose_first(mine)
    for obj in mine:
        selection.choose(obj)
    selection.fit(mine, COMPOSED_BYTES - reserved)
    return selection.profiles(), selection.results(mine)


def unattached_profiles(
    objects: Iterable[Mapping[str, Any]], schedulers: Iterable[str]
) -> tuple[ProfileResult, ...]:
    """Report the SchedulerProfiles whose `spec.scheduler` names none of these schedulers."""
    return tuple(
        ProfileResult(name_of(obj), False, (finding,), spec)
        for obj, finding, spec in unattached(PROFILE, objects, schedulers)
    )


@dataclass(frozen=True, slots=True)
class _Choice:
    """The version of an object that is in use."""

    spec: Mapping[str, Any]
    root: str
    judgement: ProfileCheck


class _Selection:
    """The objects that are in use, and the errors of the others."""

    def __init__(
        self,
        scheduler: str,
        first: Mapping[str, Any],
        target: Target,
        over: Mapping[str, Any],
        elsewhere: Mapping[str, str],
    ) -> None:
        self._scheduler = scheduler
        self._first = first
        self._first_name = str(first.get("schedulerName") or DEFAULT_SCHEDULER) if first else None
        # All others are validated together with the first profile, because they share its queue.
        self._beside = Surroundings.of(first or None, over, target)
        self._alone = self._beside.with_beside(None)
        self._elsewhere = elsewhere
        self._settled = False
        self._taken: dict[str, str] = {}
        self._chosen: dict[str, _Choice] = {}
        self._findings: dict[str, tuple[Finding, ...]] = {}

    def choose_first(self, mine: Iterable[Mapping[str, Any]]) -> None:
        """Find the object that replaces the first profile, if there is one."""
        if self._first_name is None:
            return
        for obj in mine:
            versions = tuple(self._versions(obj))
            if all(version.scheduler_name != self._first_name for version in versions):
                continue
            for version in versions:
                judgement = self._judge(version)
                if judgement.problems:
                    continue
                if version.scheduler_name == self._first_name:
                    self.choose(obj)
                    self._beside = self._alone.with_beside(judgement.profile)
                    self._settled = True
                    return
                break
        self._settled = True

    def choose(self, obj: Mapping[str, Any]) -> None:
        """Use the newest valid version of an object; record the errors of the others."""
        name = name_of(obj)
        if name in self._chosen:
            return
        findings: list[Finding] = []
        for version in self._versions(obj):
            conflict = self._conflict(obj, version)
            if conflict:
                path = f"{version.root}.schedulerName"
                findings.append(PROFILE.finding(name, NAME_TAKEN, path, conflict))
                continue
            judgement = self._judge(version)
            late = self._settled and version.scheduler_name == self._first_name
            if late and not judgement.problems:
                continue  # the others were validated with another first profile
            if not judgement.problems:
                self._taken[version.scheduler_name] = name
                self._chosen[name] = _Choice(version.spec, version.root, judgement)
                if self._beside.beside is None:
                    self._beside = self._alone.with_beside(judgement.profile)
                break
            findings += (
                PROFILE.finding(name, p.reason, path_from(version.root, p), p.message)
                for p in judgement.problems
            )
        # An error in both versions is reported once.
        self._findings[name] = tuple({f.message: f for f in reversed(findings)}.values())[::-1]

    def _conflict(self, obj: Mapping[str, Any], version: ProfileVersion) -> str:
        """Explain why the version cannot have its schedulerName; empty if it can."""
        name = version.scheduler_name
        server = self._elsewhere.get(name)
        if server is not None and not _is_leaving(obj, version):
            return f'{server} already serves schedulerName "{name}"; use another schedulerName'
        owner = self._taken.get(name)
        if owner is not None:
            return (
                f'the older SchedulerProfile "{owner}" has schedulerName "{name}"; use another '
                "schedulerName, or delete that object"
            )
        return ""

    def profiles(self) -> tuple[dict[str, Any], ...]:
        """Return the profiles in use, in order, with the first one unless it was replaced."""
        profiles = [dict(choice.judgement.profile) for choice in self._chosen.values()]
        if self._first and self._first_name not in self._taken:
            profiles.append(self._first if isinstance(self._first, dict) else dict(self._first))

        def order(profile: Mapping[str, Any]) -> tuple[bool, bool, str]:
            name = str(profile.get("schedulerName") or DEFAULT_SCHEDULER)
            return name != self._first_name, name != DEFAULT_SCHEDULER, name

        return tuple(sorted(profiles, key=order))

    def results(self, mine: Iterable[Mapping[str, Any]]) -> tuple[ProfileResult, ...]:
        """Return the results for the objects whose spec names this scheduler, by name."""
        results = []
        for obj in sorted(mine, key=name_of):
            if scheduler_of(mapping(obj.get("spec"))) != self._scheduler:
                continue  # it moves to another scheduler, whose result counts
            name = name_of(obj)
            choice, findings = self._chosen.get(name), self._findings[name]
            if choice is None:
                results.append(ProfileResult(name, False, findings))
                continue
            root, judgement = choice.root, choice.judgement
            warnings = tuple(PROFILE.as_warning(name, root, w) for w in judgement.warnings)
            results.append(
                ProfileResult(
                    name, root == SPEC, findings, choice.spec, warnings, points=judgement.points
                )
            )
        return tuple(results)

    def fit(self, mine: Sequence[Mapping[str, Any]], room: int) -> None:
        """Reject versions until all profiles have at most `room` bytes.

        Versions that were accepted before stay in use as far as possible; the remaining room goes
        to the oldest of the others.
        """
        whole = sum(_size(choice.judgement) for choice in self._chosen.values())
        if whole <= room:
            return
        chosen = [(obj, self._chosen[name_of(obj)]) for obj in mine if name_of(obj) in self._chosen]
        new = [pair for pair in chosen if pair[1].spec != last_accepted(pair[0])]
        kept = [pair for pair in chosen if pair not in new]
        total = sum(_size(choice.judgement) for _, choice in kept)
        for obj, choice in reversed(kept):
            if total > room:
                self._reject(obj, choice, whole, room)
                total -= _size(choice.judgement)
        fallbacks = {name_of(obj): self._last_version(obj, choice) for obj, choice in new}
        total += sum(_size(choice.judgement) for choice in fallbacks.values() if choice)
        for obj, choice in new:
            fallback = fallbacks[name_of(obj)]
            before = 0 if fallback is None else _size(fallback.judgement)
            more = _size(choice.judgement) - before
            if total + more <= room:
                total += more
                continue
            self._reject(obj, choice, whole, room)
            if fallback is not None and total <= room:
                self._chosen[name_of(obj)] = fallback
                scheduler_name = str(fallback.judgement.profile["schedulerName"])
                self._taken[scheduler_name] = name_of(obj)

    def _reject(self, obj: Mapping[str, Any], choice: _Choice, whole: int, room: int) -> None:
        name = name_of(obj)
        message = (
            f"the profiles of this scheduler have {whole} bytes, and its ConfigMap has room for "
            f"{room} of {CONFIG_MAP_BYTES}; shorten this profile, or move it to a "
            "SecondaryScheduler"
        )
        finding = PROFILE.finding(name, TOO_LARGE, choice.root, message)
        self._findings[name] = (*self._findings.get(name, ()), finding)
        del self._chosen[name]
        self._taken = {taken: owner for taken, owner in self._taken.items() if owner != name}

    def _last_version(self, obj: Mapping[str, Any], choice: _Choice) -> _Choice | None:
        """Choose the last accepted version that a new one would replace; None if unusable."""
        for version in self._versions(obj):
            same = version.scheduler_name == choice.judgement.profile["schedulerName"]
            if version.root == choice.root or not (same or not self._conflict(obj, version)):
                continue
            judgement = self._judge(version)
            if not judgement.problems:
                return _Choice(version.spec, version.root, judgement)
        return None

    def _versions(self, obj: Mapping[str, Any]) -> Iterator[ProfileVersion]:
        """Yield the spec, then the last accepted version, if they are for this scheduler."""
        for root, spec in versions_for(self._scheduler, obj):
            yield ProfileVersion(name_of(obj), root, spec)

    def _judge(self, version: ProfileVersion) -> ProfileCheck:
        """Check one version; an unexpected error is a problem of this version only."""
        problems = limit_problems(version.spec)
        if problems:
            return ProfileCheck({}, problems, {})
        try:
            if version.scheduler_name == self._first_name:
                return check_profile(version, self._first, self._alone)
            return check_profile(version, None, self._beside)
        except Exception as error:
            message = PROFILE.defect(version.name, version.root, error).message
            return ProfileCheck({}, (Problem(DEFECT, (), message),), {})


@cached_by_identity(1024)
def _size(judgement: ProfileCheck) -> int:
    """Return the bytes of a profile in a configuration, with the comma after it."""
    return json_bytes(judgement.profile) + 1


def _is_leaving(obj: Mapping[str, Any], version: ProfileVersion) -> bool:
    """Return whether the other scheduler serves this object until this scheduler accepts it."""
    accepted = last_accepted(obj)
    if accepted is None or scheduler_of(accepted) == scheduler_of(version.spec):
        return False
    return ProfileVersion(name_of(obj), ACCEPTED, accepted).scheduler_name == version.scheduler_name
