"""The assignment of Pods to SecondarySchedulers: `spec.assign`, and the part that is in effect.

`status.assignment` has the part in effect. A MutatingAdmissionPolicy in the API server, or the
operator's webhook, applies it and knows no other rule. So the operator withdraws an assignment, or
decides between two, by writing a status.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ...base import names
from ...base.findings import Finding
from ...base.objects import Object, age, is_being_deleted, mapping
from ...base.spec_limits import json_bytes
from ...config.language.schema import DEFAULT_SCHEDULER
from ...kube.label_selector import can_both_match, matches, written
from ..model.snapshot import AssignmentWay, PendingPod
from ..status.conditions import AS_EXPECTED, Condition

NAMESPACES: Final = "namespaceSelector"
PODS: Final = "podSelector"
CLASSES: Final = "priorityClassNames"

MAX_BYTES: Final = 64 * 1024
"""The largest `status.assignment`; the API server holds all of them in memory."""

MAX_EXCEPT: Final = 64
"""The longest `status.assignment.except`, as in its schema."""

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
    """The pods that a SecondaryScheduler claims by `spec.assign`."""

    pods: Pods
    before: Mapping[str, Pods]  # overlapping SecondarySchedulers that come first -> their pods
    waiting: tuple[PendingPod, ...] = ()  # unattempted pods with a schedulerName of this one
    way: AssignmentWay | None = None  # how the API server learns of it; None: not known yet


@dataclass(frozen=True, slots=True)
class Assigned:
    assignment: dict[str, Any] | None = None  # the desired `status.assignment`; None: absent
    condition: Condition | None = None  # the condition Assigned; None without `spec.assign`


def assigned_pods(obj: Object) -> Pods | None:
    """Read the pods of `spec.assign`; None without it, empty if it selects every pod."""
    raw = mapping(obj.get("spec")).get("assign")
    if not isinstance(raw, Mapping):
        return None
    pods: dict[str, Any] = {}
    for key in (NAMESPACES, PODS):
        selector = {part: value for part, value in mapping(raw.get(key)).items() if value}
        if selector:
            pods[key] = selector
    if classes := raw.get(CLASSES):
        pods[CLASSES] = list(classes)
    return pods


def claim_of(
    obj: Object,
    schedulers: Iterable[Object],
    served: Iterable[str],
    pending: Iterable[PendingPod],
    way: AssignmentWay | None,
) -> Claim | None:
    """Read what `obj` claims among all `schedulers`; None without `spec.assign`.

    `served` has the schedulerNames of `obj`, `pending` the pods that no scheduler has attempted.
    """
    pods = assigned_pods(obj)
    if pods is None:
        return None
    own_names = frozenset(served)
    waiting = tuple(pod for pod in pending if pod.scheduler in own_names)
    return Claim(pods, before(obj, pods, schedulers), waiting, way)


def before(obj: Object, pods: Pods, schedulers: Iterable[Object]) -> dict[str, Pods]:
    """Find the SecondarySchedulers that come first and select some of `pods`, and their pods."""
    others = {
        str(other["metadata"]["name"]): mapping(in_effect(other).get("pods"))
        for other in sorted(schedulers, key=_precedence)
        if _precedence(other) < _precedence(obj) and in_effect(other)
    }
    return {name: theirs for name, theirs in others.items() if overlap(pods, theirs)}


def in_effect(obj: Object) -> Mapping[str, Any]:
    """Read `status.assignment`; empty without it, and while the object is being deleted."""
    if is_being_deleted(obj):
        return {}
    return mapping(mapping(obj.get("status")).get("assignment"))


def _precedence(obj: Object) -> tuple[bool, tuple[str, str]]:
    """Sort schedulers that select every pod last, and older objects first."""
    return assigned_pods(obj) == {}, age(obj)


def overlap(one: Pods, other: Pods) -> bool:
    """Return whether a pod can exist that both select."""
    classes = [set(pods[CLASSES]) for pods in (one, other) if pods.get(CLASSES)]
    return (
        can_both_match(one.get(NAMESPACES), other.get(NAMESPACES))
        and can_both_match(one.get(PODS), other.get(PODS))
        and bool(not classes or set.intersection(*classes))
    )


def overlap_findings(claim: Claim) -> tuple[Finding, ...]:
    """Warn that another scheduler is assigned some of the same pods."""
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
    claim: Claim | None,
    names_: Sequence[str],
    served: Iterable[str],
    last: str,
    *,
    withheld: str = "",
) -> Assigned:
    """Decide what is in effect.

    Args:
        claim: the pods that the scheduler claims.
        names_: the schedulerNames of its desired content; the first one is for assigned pods.
        served: the schedulerNames that every one of its Ready pods serves.
        last: the schedulerName that is in effect now; empty without one.
        withheld: why the scheduler may get no pods; empty if it may.
    """
    if claim is None:
        return Assigned()
    first = next(iter(names_), "")
    if withheld:
        message = f"{withheld}; new Pods go to {DEFAULT_SCHEDULER}"
        return _withdrawn(NOT_READY, message + _waiting(claim.waiting))
    if claim.way is AssignmentWay.NONE_POLICY:
        return _withdrawn(NOT_INSTALLED, _install("policy"))
    if claim.way is AssignmentWay.NONE_WEBHOOK:
        return _withdrawn(NOT_INSTALLED, _install("webhook"))
    if claim.way is AssignmentWay.NO_SERVICE:
        return _withdrawn(NOT_INSTALLED, _install("webhook", "the Service of the webhook is gone"))
    if claim.way is None and not last:
        return _withdrawn(
            NOT_KNOWN, "what applies it to new Pods is not ready yet; the operator looks again"
        )
    served = frozenset(served)
    name = first if first in served else last if last in served else ""
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
    """Choose the schedulerName of a new pod; empty: it keeps its own.

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
    classes = pods.get(CLASSES)
    return (
        matches(pods.get(NAMESPACES), namespace_labels)
        and matches(pods.get(PODS), labels)
        and (not classes or priority_class in classes)
    )


def _withdrawn(reason: str, message: str) -> Assigned:
    return Assigned(None, Condition(names.ASSIGNED, "False", reason, message))


def _waiting(pods: Sequence[PendingPod]) -> str:
    """Name the pods that wait, and what can be done about them."""
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


def _install(way: str, why: str = "nothing applies it to new Pods") -> str:
    return (
        f"{why}; run kubectl apply --server-side -k deploy/assignment/{way} (Helm: "
        "assignment.enabled=true)"
    )


def _by(way: AssignmentWay | None) -> str:
    if way is AssignmentWay.POLICY:
        return f"; by MutatingAdmissionPolicy {names.ASSIGNMENT}"
    if way is AssignmentWay.WEBHOOK:
        return f"; by MutatingWebhookConfiguration {names.ASSIGNMENT}"
    if way is AssignmentWay.UNREADABLE:
        return (
            f", if a policy or a webhook {names.ASSIGNMENT} is installed: the operator may not look"
        )
    return ""
