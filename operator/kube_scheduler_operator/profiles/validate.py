"""SchedulerProfiles: profiles of kube-scheduler that people keep as objects of their own.

Each is judged by itself, as one profile beside the first one of its scheduler, so that a mistake in
one does not stop the others. One that is not accepted is held at the version that was accepted
last, which its status remembers and which is judged again: the scheduler may be another one by now.
Judgements are kept by content, because a cluster may have hundreds of profiles and edits one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ..base.findings import Finding
from ..base.objects import mapping
from ..model.attachment import (
    ACCEPTED,
    PROFILE,
    SPEC,
    Judged,
    age_of,
    last_accepted,
    name_of,
    path_from,
    scheduler_of,
    schedulers_of,
    unattached,
    versions_for,
)
from ..schedulerconfig.check import Target
from ..schedulerconfig.effective_plugins import Entry
from ..schedulerconfig.merge import DEFAULT_SCHEDULER
from .check import Judgement, Surroundings, Version, judge

NAME_TAKEN: Final = "SchedulerNameTaken"


@dataclass(frozen=True, slots=True)
class Verdict(Judged):
    """What became of one SchedulerProfile.

    Attributes:
        points: the plugins that then run, per extension point and in order.
    """

    points: Mapping[str, tuple[Entry, ...]] = field(default_factory=dict)

    @property
    def scheduler_name(self) -> str:
        """What pods name to have it; empty if its scheduler is given nothing."""
        if self.spec is None:
            return ""
        return Version(self.name, self.root, self.spec).scheduler_name


def profiles_of(
    scheduler: str,
    objects: Iterable[Mapping[str, Any]],
    first: Mapping[str, Any],
    target: Target,
    *,
    over: Mapping[str, Any] | None = None,
    taken: Mapping[str, str] | None = None,
) -> tuple[tuple[dict[str, Any], ...], tuple[Verdict, ...]]:
    """The profiles that a scheduler is to have, and what became of its SchedulerProfiles.

    Where two want the same schedulerName, the older object has it: by creationTimestamp, then name.
    One that went from this scheduler to another stays until the other one has accepted it.

    Args:
        scheduler: its name in `spec.scheduler`; empty: the control plane's.
        objects: SchedulerProfiles, also those of other schedulers, as read.
        first: the profile that it has anyway, with its schedulerName; an object with that name lays
            itself over it, and so replaces it. Empty: it has none.
        target: the kube-scheduler that will read them.
        over: KubeSchedulerConfiguration that is laid over the outcome later (overrides); it is not
            part of the result, but what is judged is what it leads to.
        taken: schedulerNames that are not to be had, and who serves them, for messages.

    Returns:
        (profiles, verdicts): profiles with `first` or what replaces it in front, default-scheduler
        next and the others by schedulerName; verdicts of those whose `spec.scheduler` this is, by
        name. Both share data with the arguments and with later results: nobody may change them.
    """
    selection = _Selection(scheduler, first, target, over or {}, taken or {})
    mine = sorted((obj for obj in objects if scheduler in schedulers_of(obj)), key=age_of)
    selection.choose_first(mine)
    for obj in mine:
        selection.choose(obj)
    return selection.profiles(), selection.verdicts(mine)


def unclaimed(
    objects: Iterable[Mapping[str, Any]], schedulers: Iterable[str]
) -> tuple[Verdict, ...]:
    """Verdicts of the SchedulerProfiles whose `spec.scheduler` names none of these schedulers."""
    return tuple(
        Verdict(name_of(each.obj), False, (each.finding,), each.spec)
        for each in unattached(PROFILE, objects, schedulers)
    )


@dataclass(frozen=True, slots=True)
class _Choice:
    """The version of an object that its scheduler is given."""

    spec: Mapping[str, Any]
    root: str
    judgement: Judgement


class _Selection:
    """Who has which schedulerName, and why the others have none."""

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
        # Beside the first profile all others are judged, because they share its queue.
        self._beside = Surroundings.of(first or None, over, target)
        self._alone = self._beside.with_beside(None)
        self._elsewhere = elsewhere
        self._settled = False
        self._taken: dict[str, str] = {}
        self._chosen: dict[str, _Choice] = {}
        self._findings: dict[str, tuple[Finding, ...]] = {}

    def choose_first(self, mine: Iterable[Mapping[str, Any]]) -> None:
        """Find who replaces the first profile, if anybody does."""
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
        """Take the newest version of an object that can run; remember what is wrong with others."""
        name = name_of(obj)
        if name in self._chosen:
            return
        findings: list[Finding] = []
        for version in self._versions(obj):
            server = self._elsewhere.get(version.scheduler_name)
            if server is not None and not _is_leaving(obj, version):
                message = (
                    f'pods that ask for "{version.scheduler_name}" are scheduled by {server}; '
                    "choose another schedulerName"
                )
                path = f"{version.root}.schedulerName"
                findings.append(_finding(obj, NAME_TAKEN, path, message))
                continue
            owner = self._taken.get(version.scheduler_name)
            if owner is not None:
                message = (
                    f'SchedulerProfile "{owner}" is older and has the schedulerName '
                    f'"{version.scheduler_name}"; choose another one, or delete that object'
                )
                path = f"{version.root}.schedulerName"
                findings.append(_finding(obj, NAME_TAKEN, path, message))
                continue
            judgement = self._judge(version)
            late = self._settled and version.scheduler_name == self._first_name
            if late and not judgement.problems:
                continue  # others have been judged beside another first profile already
            if not judgement.problems:
                self._taken[version.scheduler_name] = name
                self._chosen[name] = _Choice(version.spec, version.root, judgement)
                if self._beside.beside is None:
                    self._beside = self._alone.with_beside(judgement.profile)
                break
            findings += (
                _finding(obj, p.reason, path_from(version.root, p), p.message)
                for p in judgement.problems
            )
        # The same mistake in both versions is one mistake.
        self._findings[name] = tuple({f.message: f for f in reversed(findings)}.values())[::-1]

    def profiles(self) -> tuple[dict[str, Any], ...]:
        """The chosen profiles in their order, with the first one unless it was replaced."""
        found = [dict(choice.judgement.profile) for choice in self._chosen.values()]
        if self._first and self._first_name not in self._taken:
            found.append(self._first if isinstance(self._first, dict) else dict(self._first))

        def order(profile: Mapping[str, Any]) -> tuple[bool, bool, str]:
            name = str(profile.get("schedulerName") or DEFAULT_SCHEDULER)
            return name != self._first_name, name != DEFAULT_SCHEDULER, name

        return tuple(sorted(found, key=order))

    def verdicts(self, mine: Iterable[Mapping[str, Any]]) -> tuple[Verdict, ...]:
        """One for each object that is meant for this scheduler, by name."""
        found = []
        for obj in sorted(mine, key=name_of):
            if scheduler_of(mapping(obj.get("spec"))) != self._scheduler:
                continue  # it is on its way to another one, whose verdict counts
            choice = self._chosen.get(name_of(obj))
            if choice is None:
                found.append(Verdict(name_of(obj), False, self._findings[name_of(obj)]))
                continue
            judgement = choice.judgement
            found.append(
                Verdict(
                    name_of(obj),
                    choice.root == SPEC,
                    self._findings[name_of(obj)],
                    choice.spec,
                    tuple(
                        PROFILE.warning(name_of(obj), choice.root, w) for w in judgement.warnings
                    ),
                    judgement.points,
                )
            )
        return tuple(found)

    def _versions(self, obj: Mapping[str, Any]) -> Iterator[Version]:
        """The spec, then the one that was accepted last, as far as they are for this scheduler."""
        for root, spec in versions_for(self._scheduler, obj):
            yield Version(name_of(obj), root, spec)

    def _judge(self, version: Version) -> Judgement:
        if version.scheduler_name == self._first_name:
            return judge(version, self._first, self._alone)
        return judge(version, None, self._beside)


def _is_leaving(obj: Mapping[str, Any], version: Version) -> bool:
    """Whether it is this very object that another scheduler serves until it is accepted here."""
    accepted = last_accepted(obj)
    if accepted is None or scheduler_of(accepted) == scheduler_of(version.spec):
        return False
    return Version(name_of(obj), ACCEPTED, accepted).scheduler_name == version.scheduler_name


def _finding(obj: Mapping[str, Any], reason: str, path: str, message: str) -> Finding:
    return PROFILE.finding(name_of(obj), reason, path, message)
