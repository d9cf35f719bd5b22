"""Which Pods a SecondaryScheduler is assigned: `spec.assign`, and what of it is in effect.

What is in effect is in `status.assignment`. The API server reads it there, in a
MutatingAdmissionPolicy, or the operator does, in its webhook; neither knows another rule. So the
operator takes an assignment away, or decides between two, by a write of a status that is its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ..base import names
from ..base.findings import Finding
from ..base.objects import Object, age, mapping
from ..base.spec_limits import json_bytes
from ..kube.label_selector import can_both_match, matches, written
from ..model.snapshot import AssignmentWay, PendingPod
from ..schedulerconfig.schema import DEFAULT_SCHEDULER
from ..status.conditions import AS_EXPECTED, Condition

NAMESPACES: Final = "namespaceSelector"
PODS: Final = "podSelector"
CLASSES: Final = "priorityClassNames"

MAX_BYTES: Final = 64 * 1024
"""The largest `status.assignment`; the API server holds all of them in memory."""

MAX_EXCEPT: Final = 64
"""The number of others in `status.assignment.except`, as in its schema."""

NOT_READY: Final = "NotReady"
NOT_INSTALLED: Final = "NotInstalled"
NOT_KNOWN: Final = "NotKnown"
ROLLING_OUT: Final = "RollingOut"
TOO_MANY: Final = "TooManyOthers"

_SHOWN: Final = 3
"""The number of waiting pods that a message names."""

Pods = Mapping[str, Any]
"""Selected pods: the fields of `spec.assign` that restrict something."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What a SecondaryScheduler would be assigned."""

    pods: Pods  # the pods of its `spec.assign`
    # SecondaryScheduler -> pods that it selects as well and that another one keeps
    before: Mapping[str, Pods]
    # pods that name this scheduler and that no scheduler has attempted
    waiting: tuple[PendingPod, ...] = ()
    way: AssignmentWay | None = None  # how the API server learns of it; None: not known yet


@dataclass(frozen=True, slots=True)
class Assigned:
    """What is in effect."""

    assignment: dict[str, Any] | None = None  # the desired `status.assignment`; None: it is absent
    condition: Condition | None = None  # the condition Assigned; None without `spec.assign`


def assigned_pods(obj: Object) -> Pods | None:
    """The pods of `spec.assign`; None without it, empty if it selects every pod."""
    raw = mapping(obj.get("spec")).get("assign")
    if not isinstance(raw, Mapping):
        return None
    found: dict[str, Any] = {}
    for key in (NAMESPACES, PODS):
        selector = {part: value for part, value in mapping(raw.get(key)).items() if value}
        if selector:
            found[key] = selector
    if classes := raw.get(CLASSES):
        found[CLASSES] = list(classes)
    return found


def claim_of(
    obj: Object,
    schedulers: Iterable[Object],
    served: Iterable[str],
    pending: Iterable[PendingPod],
    way: AssignmentWay | None,
) -> Claim | None:
    """What `obj` claims; None without `spec.assign`.

    Args:
        obj: the SecondaryScheduler.
        schedulers: all SecondarySchedulers.
        served: the schedulerNames that it serves.
        pending: pods that no scheduler has attempted.
        way: how the API server learns of assignments.
    """
    pods = assigned_pods(obj)
    if pods is None:
        return None
    own = frozenset(served)
    waiting = tuple(pod for pod in pending if pod.scheduler in own)
    return Claim(pods, before(obj, pods, schedulers), waiting, way)


def before(obj: Object, pods: Pods, schedulers: Iterable[Object]) -> dict[str, Pods]:
    """SecondaryScheduler -> its pods, of those whose assignments come first and overlap."""
    others = sorted(
        (each for each in schedulers if _precedence(each) < _precedence(obj)), key=_precedence
    )
    found = {
        str(each["metadata"]["name"]): mapping(in_effect(each).get("pods"))
        for each in others
        if in_effect(each)
    }
    return {name: theirs for name, theirs in found.items() if overlap(pods, theirs)}


def in_effect(obj: Object) -> Mapping[str, Any]:
    """`status.assignment` of a SecondaryScheduler; empty without it or while it is deleted."""
    if "deletionTimestamp" in obj["metadata"]:
        return {}
    return mapping(mapping(obj.get("status")).get("assignment"))


def _precedence(obj: Object) -> tuple[bool, tuple[str, str]]:
    """A sort key: what selects every pod comes last, then the older object first."""
    return assigned_pods(obj) == {}, age(obj)


def overlap(one: Pods, other: Pods) -> bool:
    """Whether a pod can exist that both select."""
    classes = [set(each[CLASSES]) for each in (one, other) if each.get(CLASSES)]
    return (
        can_both_match(one.get(NAMESPACES), other.get(NAMESPACES))
        and can_both_match(one.get(PODS), other.get(PODS))
        and bool(not classes or set.intersection(*classes))
    )


def overlap_findings(claim: Claim) -> tuple[Finding, ...]:
    """The warning that another scheduler is assigned some of the same pods."""
    if not claim.before:
        return ()
    others = ", ".join(f'"{name}"' for name in claim.before)
    message = (
        f"SecondaryScheduler {others} can select the same Pods and comes first, so these go there; "
        "exclude them with NotIn or DoesNotExist, or accept that (the older object comes first, "
        "and one without a selector last)"
    )
    return (Finding(names.WARNINGS, "AssignmentOverlaps", "spec.assign", message, blocking=False),)


def assign(
    claim: Claim | None, names_: Sequence[str], served: Iterable[str], last: str, *, available: bool
) -> Assigned:
    """Decide what is in effect.

    Args:
        claim: what the scheduler claims.
        names_: the schedulerNames of its desired content, the first one is for assigned pods.
        served: the schedulerNames that each of its Ready pods serves.
        last: the schedulerName that is in effect now; empty without one.
        available: whether it schedules, steadily if nothing is in effect now.
    """
    if claim is None:
        return Assigned()
    first = next(iter(names_), "")
    if not available:
        message = (
            f"this scheduler does not schedule, or was restarted a moment ago; new Pods go to "
            f"{DEFAULT_SCHEDULER}"
        )
        return _withdrawn(NOT_READY, message + _waiting(claim.waiting))
    if claim.way is AssignmentWay.NONE_POLICY:
        return _withdrawn(NOT_INSTALLED, _install("policy"))
    if claim.way is AssignmentWay.NONE_WEBHOOK:
        return _withdrawn(NOT_INSTALLED, _install("webhook"))
    if claim.way is None and not last:
        return _withdrawn(
            NOT_KNOWN, "what applies it to new Pods is not ready yet; the operator looks again"
        )
    every = frozenset(served)
    name = first if first in every else last if last in every else ""
    if not name:
        message = (
            f'some of its Pods do not serve "{first}" yet; new Pods go to {DEFAULT_SCHEDULER} '
            "until the rollout has ended"
        )
        return _withdrawn(ROLLING_OUT, message)
    assignment: dict[str, Any] = {"schedulerName": name, "pods": dict(claim.pods)}
    if claim.before:
        assignment["except"] = [dict(pods) for pods in claim.before.values()]
    if len(claim.before) > MAX_EXCEPT or json_bytes(assignment) > MAX_BYTES:
        message = (
            f"{len(claim.before)} other SecondarySchedulers can select the same Pods and come "
            f"first, which is more than {MAX_EXCEPT} or {MAX_BYTES // 1024} KiB; no Pod is "
            "assigned to this one; select Pods that others do not select"
        )
        return _withdrawn(TOO_MANY, message)
    message = f'new Pods get schedulerName "{name}": {described(claim.pods)}{_by(claim.way)}'
    return Assigned(assignment, Condition(names.ASSIGNED, "True", AS_EXPECTED, message))


def described(pods: Pods) -> str:
    """The selected pods in words."""
    parts = [
        f"{what} {text}"
        for what, text in (
            ("in namespaces with", written(pods.get(NAMESPACES))),
            ("with labels", written(pods.get(PODS))),
            ("with PriorityClass", " or ".join(pods.get(CLASSES) or ())),
        )
        if text
    ]
    return f"those {', '.join(parts)}" if parts else "all that may be assigned"


def chosen(
    schedulers: Iterable[Object],
    namespace_labels: Mapping[str, str],
    labels: Mapping[str, str],
    priority_class: str,
) -> str:
    """The schedulerName that a new pod gets; empty: it keeps its own.

    The CEL of deploy/assignment/policy states the same rule.
    """
    for obj in schedulers:
        assignment = in_effect(obj)
        excluded = assignment.get("except") or ()
        if (
            assignment
            and selects(mapping(assignment.get("pods")), namespace_labels, labels, priority_class)
            and not any(
                selects(mapping(other), namespace_labels, labels, priority_class)
                for other in excluded
            )
        ):
            return str(assignment.get("schedulerName") or "")
    return ""


def selects(
    pods: Pods, namespace_labels: Mapping[str, str], labels: Mapping[str, str], priority_class: str
) -> bool:
    """Whether a pod with these labels and this class is among the selected ones."""
    classes = pods.get(CLASSES)
    return (
        matches(pods.get(NAMESPACES), namespace_labels)
        and matches(pods.get(PODS), labels)
        and (not classes or priority_class in classes)
    )


def _withdrawn(reason: str, message: str) -> Assigned:
    return Assigned(None, Condition(names.ASSIGNED, "False", reason, message))


def _waiting(pods: Sequence[PendingPod]) -> str:
    """The pods that wait, and what can be done about them."""
    if not pods:
        return ""
    listed = ", ".join(sorted(f"{pod.namespace}/{pod.name}" for pod in pods)[:_SHOWN])
    more = f" and {len(pods) - _SHOWN} more" if len(pods) > _SHOWN else ""
    count = "1 Pod waits" if len(pods) == 1 else f"{len(pods)} Pods wait"
    return (
        f"; {count} for it ({listed}{more}), and schedulerName cannot be changed: make this "
        f"scheduler Ready again, or delete them, so that their controllers create them for "
        f"{DEFAULT_SCHEDULER}"
    )


def _install(way: str) -> str:
    return (
        "nothing applies it to new Pods; run kubectl apply --server-side -k "
        f"deploy/assignment/{way} (Helm: assignment.enabled=true)"
    )


def _by(way: AssignmentWay | None) -> str:
    text = (
        {
            AssignmentWay.POLICY: f"MutatingAdmissionPolicy {names.ASSIGNMENT}",
            AssignmentWay.WEBHOOK: f"MutatingWebhookConfiguration {names.ASSIGNMENT}",
        }.get(way)
        if way is not None
        else None
    )
    return f"; by {text}" if text else ""
