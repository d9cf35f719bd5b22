"""Objects that name the scheduler they are for: what SchedulerProfiles and -Extenders share.

Each is judged for the scheduler in its `spec.scheduler`. One that is not accepted is held at the
version that was accepted last, which its status remembers. One that went from a scheduler to
another stays with the first until the second has accepted it, so both look at it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ..base import names
from ..base.findings import Finding, Problem, format_path
from ..base.objects import mapping

SPEC: Final = "spec"
ACCEPTED: Final = "status.accepted"
SCHEDULER_NOT_FOUND: Final = "SchedulerNotFound"
CONTROL_PLANE: Final = ""
"""What `spec.scheduler` says for the scheduler of the control plane."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What became of one object.

    Attributes:
        name: of the object.
        accepted: whether its spec, as it is now, is what its scheduler is to have.
        findings: why not, or why kube-scheduler itself does not run with it; a path begins with the
            object.
        spec: what its scheduler is to have: its spec, the last accepted one, or None for nothing.
        warnings: what its scheduler is given and may surprise; a path begins with the object.
    """

    name: str
    accepted: bool
    findings: tuple[Finding, ...] = ()
    spec: Mapping[str, Any] | None = None
    warnings: tuple[Finding, ...] = ()

    @property
    def held(self) -> bool:
        """Whether an older version runs on."""
        return not self.accepted and self.spec is not None

    @property
    def root(self) -> str:
        """Where in the object the version is that its scheduler is to have."""
        return SPEC if self.accepted else ACCEPTED


def said(judged: Judged) -> tuple[Finding, ...]:
    """What keeps an object from being accepted, with what that means for pods."""
    if judged.accepted:
        return ()  # what kube-scheduler itself refuses has conditions of its own
    state = "its last accepted version runs on" if judged.held else "it is left out"
    return tuple(
        Finding(f.condition, f.reason, f.path, f"{f.message} ({state})", blocking=False)
        for f in judged.findings
    )


@dataclass(frozen=True, slots=True)
class Attachable:
    """How one of the kinds is told of.

    Attributes:
        kind: as the API has it.
        condition: of KubeScheduler, which says what is wrong with objects of this kind.
    """

    kind: str
    condition: str

    def finding(self, name: str, reason: str, path: str, message: str) -> Finding:
        """What somebody should mend in the object `name`, at `path` in it."""
        where = f"{self.kind}/{name} {path}"
        return Finding(self.condition, reason, where, message, blocking=False)

    def warning(self, name: str, root: str, problem: Problem) -> Finding:
        """What may surprise in the version at `root` of the object `name`."""
        where = f"{self.kind}/{name} {path_from(root, problem)}"
        return Finding(names.WARNINGS, problem.reason, where, problem.sentence, blocking=False)


PROFILE: Final = Attachable("SchedulerProfile", names.SCHEDULER_PROFILES_DEGRADED)
EXTENDER: Final = Attachable("SchedulerExtender", names.SCHEDULER_EXTENDERS_DEGRADED)


def path_from(root: str, problem: Problem) -> str:
    """Where in the object a problem is that was found in the version at `root` of it."""
    return format_path((*root.split("."), *problem.path))


def by_scheduler(
    objects: Iterable[Mapping[str, Any]],
) -> dict[str, tuple[Mapping[str, Any], ...]]:
    """Scheduler -> the objects that it has to look at: its own, and those that leave it.

    Whoever asks for the objects of many schedulers need not have each look at all of them.
    """
    found: dict[str, list[Mapping[str, Any]]] = {}
    for obj in objects:
        for scheduler in dict.fromkeys(schedulers_of(obj)):
            found.setdefault(scheduler, []).append(obj)
    return {scheduler: tuple(mine) for scheduler, mine in found.items()}


@dataclass(frozen=True, slots=True)
class Unattached:
    """An object whose `spec.scheduler` names no scheduler that there is.

    Attributes:
        obj: the object.
        finding: which says so.
        spec: its last accepted version, if the scheduler of that is there; None for nothing.
    """

    obj: Mapping[str, Any]
    finding: Finding
    spec: Mapping[str, Any] | None


def unattached(
    attachable: Attachable, objects: Iterable[Mapping[str, Any]], schedulers: Iterable[str]
) -> Iterator[Unattached]:
    """The objects, by name, whose `spec.scheduler` names none of these schedulers."""
    known = frozenset(schedulers)
    for obj in sorted(objects, key=name_of):
        wanted = scheduler_of(mapping(obj.get("spec")))
        if wanted in known:
            continue
        accepted = last_accepted(obj)
        runs = accepted is not None and scheduler_of(accepted) in known
        message = (
            f'there is no SecondaryScheduler "{wanted}"; create it, or remove the field for the '
            "scheduler of the control plane"
        )
        path = f"{SPEC}.scheduler"
        finding = attachable.finding(name_of(obj), SCHEDULER_NOT_FOUND, path, message)
        yield Unattached(obj, finding, accepted if runs else None)


def versions_for(scheduler: str, obj: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(where in the object, version): its spec, then the one that was accepted last.

    Those for other schedulers are left out: here, the version before stays until they accept it.
    """
    spec, accepted = mapping(obj.get("spec")), last_accepted(obj)
    if scheduler_of(spec) == scheduler:
        yield SPEC, spec
    if accepted is not None and accepted != spec and scheduler_of(accepted) == scheduler:
        yield ACCEPTED, accepted


def schedulers_of(obj: Mapping[str, Any]) -> tuple[str, ...]:
    """Which scheduler an object is meant for, and for which its last accepted version was."""
    wanted, accepted = scheduler_of(mapping(obj.get("spec"))), last_accepted(obj)
    return (wanted,) if accepted is None else (wanted, scheduler_of(accepted))


def last_accepted(obj: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The spec that was accepted last; None if none ever was."""
    accepted = mapping(obj.get("status")).get("accepted")
    return accepted if isinstance(accepted, Mapping) else None


def scheduler_of(spec: Mapping[str, Any]) -> str:
    """Which scheduler a spec is meant for."""
    return str(spec.get("scheduler") or CONTROL_PLANE)


def name_of(obj: Mapping[str, Any]) -> str:
    """The object's name."""
    return str(mapping(obj.get("metadata")).get("name") or "")


def age_of(obj: Mapping[str, Any]) -> tuple[str, str]:
    """To sort by: older objects come first, and have what only one can have."""
    # One that is not in the API yet is newer than all that are.
    created = mapping(obj.get("metadata")).get("creationTimestamp")
    return str(created or "~"), name_of(obj)


REFUSED: Final = "Refused"


@dataclass(frozen=True, slots=True)
class Refusal:
    """What kube-scheduler said of a configuration that it did not run with.

    Attributes:
        config: the configuration.
        words: its words.
        state: what became of the configuration and what is to be done, for messages.
    """

    config: Mapping[str, Any]
    words: str
    state: str
