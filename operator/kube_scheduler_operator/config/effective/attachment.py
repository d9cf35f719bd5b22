"""Objects that are attached to a scheduler: SchedulerProfiles and SchedulerExtenders.

Each is validated for the scheduler in its `spec.scheduler`. While its current spec has an error,
the last accepted version stays in use; the object's status keeps it. An object that moves to
another scheduler stays with the first one until the second one has accepted it, so both validate
it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ...base import names
from ...base.defects import DEFECT, contained
from ...base.findings import Finding, Problem, format_path
from ...base.objects import Object, label, mapping

SPEC: Final = "spec"
ACCEPTED: Final = "status.accepted"
SCHEDULER_NOT_FOUND: Final = "SchedulerNotFound"
KIND_NOT_SERVED: Final = "KindNotServed"
CONTROL_PLANE: Final = ""
"""The value of `spec.scheduler` for the control plane's scheduler."""


@dataclass(frozen=True, slots=True)
class ValidationResult:
    name: str
    accepted: bool  # whether the current spec is in use
    # why it is not, or why kube-scheduler does not run with it; each path begins with the object
    findings: tuple[Finding, ...] = ()
    # the version in use: the current spec, the last accepted version, or None
    spec: Mapping[str, Any] | None = None
    # warnings about the version in use; each path begins with the object
    warnings: tuple[Finding, ...] = ()
    # why no scheduler runs the accepted version; empty if one does, or will
    unused: str = field(default="", kw_only=True)

    @property
    def uses_last_accepted(self) -> bool:
        return not self.accepted and self.spec is not None

    @property
    def root(self) -> str:
        """The field of the object that holds the version in use: SPEC or ACCEPTED."""
        return SPEC if self.accepted else ACCEPTED


def rejection_findings(result: ValidationResult) -> tuple[Finding, ...]:
    """Why an object is not accepted, and what is in use instead."""
    if result.accepted:
        return ()  # a refusal by kube-scheduler itself has conditions of its own
    fallback = "its last accepted version stays in use" if result.uses_last_accepted else "not used"
    return tuple(
        Finding(f.condition, f.reason, f.path, f"{f.message} ({fallback})", blocking=False)
        for f in result.findings
    )


@dataclass(frozen=True, slots=True)
class Attachable:
    kind: str
    condition: str  # the condition of KubeScheduler that reports errors in objects of this kind

    def finding(self, name: str, reason: str, path: str, message: str) -> Finding:
        where = f"{self.kind}/{name} {path}"
        return Finding(self.condition, reason, where, message, blocking=False)

    def defect(self, name: str, root: str, error: Exception) -> Finding:
        """An unexpected error in the validation of the version at `root`."""
        message = (
            f"the operator cannot process this: {contained(self.kind, name, error)}; correct it, "
            "or report this with the operator's log"
        )
        return self.finding(name, DEFECT, root, message)

    def as_warning(self, name: str, root: str, problem: Problem) -> Finding:
        """A warning about the version at `root` (SPEC or ACCEPTED) of the object `name`."""
        where = f"{self.kind}/{name} {path_from(root, problem)}"
        return Finding(names.WARNINGS, problem.reason, where, problem.sentence, blocking=False)


PROFILE: Final = Attachable("SchedulerProfile", names.SCHEDULER_PROFILES_DEGRADED)
EXTENDER: Final = Attachable("SchedulerExtender", names.SCHEDULER_EXTENDERS_DEGRADED)


def path_from(root: str, problem: Problem) -> str:
    """The path in the object; `problem` has the path in its version at `root`."""
    return format_path((*root.split("."), *problem.path))


def by_scheduler(
    objects: Iterable[Mapping[str, Any]],
) -> dict[str, tuple[Mapping[str, Any], ...]]:
    """Scheduler -> its objects, including those that are moving to another scheduler.

    With many schedulers, this saves a search through all objects for each of them.
    """
    attached: dict[str, list[Mapping[str, Any]]] = {}
    for obj in objects:
        for scheduler in dict.fromkeys(schedulers_of(obj)):
            attached.setdefault(scheduler, []).append(obj)
    return {scheduler: tuple(attachments) for scheduler, attachments in attached.items()}


def unattached(
    attachable: Attachable, objects: Iterable[Mapping[str, Any]], schedulers: Iterable[str]
) -> Iterator[tuple[Mapping[str, Any], Finding, Mapping[str, Any] | None]]:
    """The objects whose `spec.scheduler` is not among `schedulers`, sorted by name.

    Each with the error, and with its last accepted version if that one's scheduler exists.
    """
    known = frozenset(schedulers)
    for obj in sorted(objects, key=name_of):
        wanted = scheduler_of(mapping(obj.get("spec")))
        if wanted in known:
            continue
        accepted = last_accepted(obj)
        runs = accepted is not None and scheduler_of(accepted) in known
        message = (
            f'SecondaryScheduler "{wanted}" does not exist; create it, or remove the field to use '
            "the control plane's scheduler"
        )
        path = f"{SPEC}.scheduler"
        finding = attachable.finding(name_of(obj), SCHEDULER_NOT_FOUND, path, message)
        yield obj, finding, accepted if runs else None


def versions_for(scheduler: str, obj: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(field, version) of an object: its spec, then its last accepted version.

    Versions for other schedulers are omitted: `scheduler` keeps the last accepted version until the
    other one accepts the object.
    """
    spec, accepted = mapping(obj.get("spec")), last_accepted(obj)
    if scheduler_of(spec) == scheduler:
        yield SPEC, spec
    if accepted is not None and accepted != spec and scheduler_of(accepted) == scheduler:
        yield ACCEPTED, accepted


def schedulers_of(obj: Mapping[str, Any]) -> tuple[str, ...]:
    """The scheduler of an object's spec, then the scheduler of its last accepted version."""
    wanted, accepted = scheduler_of(mapping(obj.get("spec"))), last_accepted(obj)
    return (wanted,) if accepted is None else (wanted, scheduler_of(accepted))


def last_accepted(obj: Mapping[str, Any]) -> Mapping[str, Any] | None:
    accepted = mapping(obj.get("status")).get("accepted")
    return accepted if isinstance(accepted, Mapping) else None


def scheduler_of(spec: Mapping[str, Any]) -> str:
    """The scheduler that a spec names; validation reports a value of another type."""
    scheduler = spec.get("scheduler")
    return scheduler if isinstance(scheduler, str) else CONTROL_PLANE


def name_of(obj: Mapping[str, Any]) -> str:
    return str(mapping(obj.get("metadata")).get("name") or "")


def age_of(obj: Mapping[str, Any]) -> tuple[str, str]:
    """A sort key: older objects come first and win conflicts."""
    # An object that is not in the API yet is newer than all others.
    created = mapping(obj.get("metadata")).get("creationTimestamp")
    return str(created or "~"), name_of(obj)


def is_ours(obj: Object) -> bool:
    """Report whether the operator made a SecondaryScheduler."""
    return label(obj, names.MANAGED_BY_LABEL) == names.PROGRAM


REFUSED: Final = "Refused"


@dataclass(frozen=True, slots=True)
class Refusal:
    config: Mapping[str, Any]
    words: str  # kube-scheduler's error
    state: str  # what runs instead and what to do, for messages

    @property
    def message(self) -> str:
        return f"{self.state}: {self.words}"
