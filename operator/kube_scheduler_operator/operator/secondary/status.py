from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final

from ...base import names
from ...base.findings import Finding
from ...base.limits import LISTED_EXTENDERS, PLUGINS_BYTES
from ...base.objects import Object, mapping
from ...base.spec_limits import json_bytes
from ...base.times import ALWAYS, timestamp
from ...config.effective.secondary.request import SchedulerRequest
from ...config.language.command_line import parse
from ...config.language.feature_gates import FLAG as FEATURE_GATES
from ...config.language.feature_gates import Gates, parse_gates
from ...config.language.plugins.effective_plugins import effective_plugins
from ...config.language.versions import Version
from ...config.language.warnings.configuration import scheduler_names
from ...kube.resource import SECONDARY_SCHEDULERS
from ..model.plan import soonest
from ..model.snapshot import Snapshot
from ..status.conditions import (
    AS_EXPECTED,
    Condition,
    condition_in,
    merge_conditions,
    problem_condition,
    warnings_condition,
)
from ..status.object_status import Report, condition_events
from ..status.readiness import readiness
from ..status.running import list_running
from ..status.scheduler_lease import lease_duration, lease_health
from .assignment import Claim, assign, in_effect
from .content import SecondaryContent, running_hash
from .gate import SecondaryCheck
from .history import History, find, write
from .outcome import ContentOutcome, SchedulerPod

CHECK: Final = "placementCheck"
"""The field with the memory of the check of placements."""

REFUSED: Final = "ConfigurationRefused"
FAILED: Final = "ConfigurationFailed"
SYNC_ERROR: Final = "SyncError"
DEPLOYMENT_MISSING: Final = "DeploymentMissing"
PODS_FAILING: Final = "PodsFailing"
LEASE_SHARED: Final = "LeaseShared"
UNAVAILABLE: Final = "Unavailable"

LEASE_NOT_RENEWED: Final = "LeaseNotRenewed"

HANDOVER: Final = 5.0
"""Seconds for which a Lease may have no holder: in every rollout a leader releases it at its end,
and another replica takes it within its retry period, 2 s."""

RELEASED_SECONDS: Final = 15.0
"""Seconds without a holder after which no Pods are assigned: the default lease duration. The Lease
itself has another one: who releases it sets 1 s."""

STEADY_SECONDS: Final = 10.0
"""How long a restarted scheduler must be Available before it gets Pods again; the kubelet restarts
a container that crashes for the second time after 10 s."""


@dataclass(frozen=True, slots=True)
class SchedulerState:
    obj: Object  # the SecondaryScheduler
    request: SchedulerRequest
    findings: Sequence[Finding] = ()
    deployment: Object | None = None
    pods: tuple[SchedulerPod, ...] = ()
    history: History = ()  # including this reconcile
    # the outcome of the running content
    result: ContentOutcome = field(default_factory=ContentOutcome)
    # the desired content; None if it is invalid, or was not composed
    content: SecondaryContent | None = None
    target: SecondaryContent | None = None  # the content to run
    version: Version | None = None  # of its kube-scheduler; None if it was not composed
    readable: bool = True  # whether the operator can read its namespace
    served: frozenset[str] = frozenset()  # the schedulerNames that each of its Ready pods serves
    images: Mapping[str, str] = field(default_factory=dict)  # of the contents that exist, by hash
    claim: Claim | None = None  # the pods that it claims; None without `spec.assign`
    check: SecondaryCheck | None = None  # of its placements; None if it is not checked

    @property
    def name(self) -> str:
        return str(self.obj["metadata"]["name"])


def report(snapshot: Snapshot, state: SchedulerState) -> Report:
    before: Mapping[str, Any] = state.obj.get("status") or {}
    lease, lease_wait = _lease(snapshot, state)
    available = _available(state, lease)
    outage, outage_wait = _outage(snapshot, state, available)
    degraded = _degraded(snapshot, state, outage)
    withheld, assigned_wait = (
        _withheld(snapshot, state, available) if state.claim is not None else ("", None)
    )
    assigned = assign(
        state.claim,
        () if state.target is None else scheduler_names(state.target.config),
        state.served,
        str(in_effect(state.obj).get("schedulerName") or ""),
        withheld=withheld,
    )
    check = state.check
    own = [
        *((check.condition,) if check is not None and check.condition is not None else ()),
        available,
        _progressing(state, check),
        degraded,
    ]
    conditions = [
        *((assigned.condition,) if assigned.condition else ()),
        *own,
        *readiness(own),
        warnings_condition(
            names.WARNINGS, (f for f in state.findings if not f.blocking), unused=_unused(state)
        ),
    ]
    ready = sum(pod.serves for pod in state.pods)
    old = [
        raw
        for raw in before.get("conditions") or ()
        if raw["type"] != names.ASSIGNED or assigned.condition
    ]
    status: dict[str, Any] = {
        "observedGeneration": state.obj["metadata"].get("generation", 0),
        "conditions": merge_conditions(old, conditions, snapshot.now),
        "replicas": sum(not pod.leaving for pod in state.pods),
        "readyReplicas": ready,
        "selector": ",".join(f"{k}={v}" for k, v in state.request.selector.items()),
    }
    if state.target is not None:
        status["configHash"] = state.target.hash
        status["image"] = state.target.image
        status["profiles"] = (
            _profiles(state.target.items, state.version)
            if state.version is not None
            else before.get("profiles") or []
        )
    holder = _holder(snapshot, state)
    serving = {pod.name: pod.hash for pod in state.pods if pod.serves}
    status["running"] = list_running(serving, holder, state.images)
    if assigned.assignment is not None:
        status["assignment"] = assigned.assignment
    if called := _called(state, before):
        status["extenders"] = called
    if state.history:
        status["history"] = write(state.history)
    recorded = before.get(CHECK) if check is None else check.record
    if recorded and not (check is not None and check.elsewhere):
        status[CHECK] = dict(recorded)
    if holder:
        status["leaseHolder"] = holder
    message = degraded.message if degraded.status == "True" else ""
    shown = frozenset((names.ASSIGNED, names.AVAILABLE, names.DEGRADED)).__contains__
    whose, reason = f'SecondaryScheduler "{state.name}": ', "SecondarySchedulerStatusChanged"
    checked = () if check is None or check.elsewhere else check.events
    return Report(
        status,
        (*condition_events(before, status, reason, shown, whose), *checked),
        message,
        soonest(
            state.result.requeue_after,
            lease_wait,
            assigned_wait,
            outage_wait,
            check.requeue_after if check is not None else None,
        ),
    )


def _called(state: SchedulerState, before: Mapping[str, Any]) -> list[str]:
    if state.content is None or (state.check is not None and state.check.waits):
        return list(before.get("extenders") or ())
    called = state.request.called[:LISTED_EXTENDERS]
    return [str(entry.get("urlPrefix", "")) for entry in called]


# --- conditions -------------------------------------------------------------------------------


def _available(state: SchedulerState, lease: str) -> Condition:
    if not state.readable:
        message = "the operator has no access to the namespace"
        return Condition(names.AVAILABLE, "Unknown", "NamespaceNotAllowed", message)
    if not any(pod.serves for pod in state.pods):
        return Condition(names.AVAILABLE, "False", "NoReadyScheduler", "no scheduler pod is Ready")
    if lease:
        return Condition(names.AVAILABLE, "False", LEASE_NOT_RENEWED, lease)
    return Condition(names.AVAILABLE, "True", AS_EXPECTED)


def _outage(
    snapshot: Snapshot, state: SchedulerState, available: Condition
) -> tuple[str, float | None]:
    """Return (why it has been unavailable for too long, seconds until it will have been).

    A rollout has its own timeouts. An outage of the API server hides what the schedulers do.
    """
    if available.status != "False" or _is_progressing(state):
        return "", None
    before = condition_in(mapping(state.obj.get("status")), names.AVAILABLE)
    since = timestamp(before.get("lastTransitionTime")) if before.get("status") == "False" else None
    since = max(since or snapshot.now, snapshot.answered_since or snapshot.now)
    tolerance = snapshot.settings.rollout.pending_tolerance
    left = tolerance - (snapshot.now - since).total_seconds()
    if left > 0:
        return "", left
    return f"unavailable for more than {tolerance:g} s: {available.message}", None


def _withheld(
    snapshot: Snapshot, state: SchedulerState, available: Condition
) -> tuple[str, float | None]:
    """Return (why it may get no Pods, empty if it may; seconds until that may change by itself).

    A Ready Pod does not prove that one schedules: its process may hang, or wait for a Lease that
    its last holder did not release. A scheduler that crashes again and again is Ready for moments;
    Pods that it gets then wait for it.
    """
    if not any(pod.serves for pod in state.pods):
        return available.message, None
    expired, left = _expired(snapshot, state)
    if expired or in_effect(state.obj):
        return expired, left
    if available.status != "True":
        return available.message, None
    unsteady = _unsteady(snapshot, state)
    why = "" if unsteady is None else f"it was restarted less than {STEADY_SECONDS:g} s ago"
    return why, soonest(left, unsteady)


def _expired(snapshot: Snapshot, state: SchedulerState) -> tuple[str, float | None]:
    """Return (why the Lease may have no leader, empty if it has; seconds until it may have none).

    An outage of the API server hides renewals, and no Pod is created meanwhile.
    """
    place = (state.request.namespace, state.name)
    lease = snapshot.secondaries.leases.get(place) or {}
    seen = snapshot.secondaries.leases_seen.get(place, ALWAYS)
    since = max(seen, snapshot.answered_since or snapshot.now)
    duration = lease_duration(lease.get("spec") or {})
    if not _holder(snapshot, state):
        duration = max(duration, RELEASED_SECONDS)
    left = duration - (snapshot.now - since).total_seconds()
    if left > 0:
        return "", left
    return f"no renewal of the Lease {'/'.join(place)} was observed for {duration:g} s", None


def _unsteady(snapshot: Snapshot, state: SchedulerState) -> float | None:
    """Return the seconds until a restarted scheduler gets Pods again; None: it may have them."""
    if any(pod.serves and not pod.restarts for pod in state.pods):
        return None
    before = condition_in(mapping(state.obj.get("status")), names.AVAILABLE)
    since = timestamp(before.get("lastTransitionTime")) if before.get("status") == "True" else None
    left = STEADY_SECONDS - (snapshot.now - (since or snapshot.now)).total_seconds()
    return left if left > 0 else None


def _progressing(state: SchedulerState, check: SecondaryCheck | None) -> Condition:
    target = state.target
    if target is not None:
        entry = find(state.history, target.hash)
        moving = entry is not None and entry.outcome == names.OUTCOME_PROGRESSING
        if moving or not _settled(state, target):
            waiting = f": {state.result.trouble}" if state.result.trouble else ""
            message = f"rolling out configuration {target.hash}{waiting}"
            return Condition(names.PROGRESSING, "True", "RollingOut", message)
    if check is not None and check.condition is not None and check.waits:
        return replace(check.condition, type=names.PROGRESSING)
    return Condition(names.PROGRESSING, "False", AS_EXPECTED)


def _settled(state: SchedulerState, target: SecondaryContent) -> bool:
    """Return whether all pods exist and run the target content."""
    own = [pod for pod in state.pods if not pod.leaving]
    return (
        running_hash(state.deployment) == target.hash
        and len(own) == state.request.replicas
        and all(pod.hash == target.hash for pod in own)
    )


def _degraded(snapshot: Snapshot, state: SchedulerState, outage: str) -> Condition:
    problems = [(finding.reason, finding.text) for finding in state.findings if finding.blocking]
    entry = find(state.history, state.content.hash) if state.content is not None else None
    if entry is not None and entry.bad:
        problems.append(_rejected(state, entry.outcome, entry.message))
    if trouble := snapshot.write_errors.get(SECONDARY_SCHEDULERS.named(state.name)):
        problems.append((SYNC_ERROR, trouble))
    if state.deployment is None and state.target is None and state.history:
        where = f"{state.request.namespace}/{state.name}"
        gone = f"Deployment {where} does not exist, so no Pod of this scheduler is replaced"
        problems.append((DEPLOYMENT_MISSING, gone))
    if shared := _shared(snapshot, state):
        problems.append((LEASE_SHARED, shared))
    late = any(_is_late(snapshot, pod) for pod in state.pods)
    if state.result.trouble and (late or not _is_progressing(state)):
        problems.append((PODS_FAILING, state.result.trouble))
    if outage and not problems:
        problems.append((UNAVAILABLE, outage))
    return problem_condition(names.DEGRADED, problems)


def _unused(state: SchedulerState) -> str:
    """Why the desired content does not run; empty if it does, or will."""
    content = state.content
    entry = find(state.history, content.hash) if content is not None else None
    runs = state.target is None or content is None or state.target.hash == content.hash
    if entry is None or not entry.bad or runs:
        return ""
    did = "refused" if entry.outcome == names.OUTCOME_REFUSED else "did not stay healthy with"
    return f"kube-scheduler {did} configuration {entry.hash}, which has this"


def _rejected(state: SchedulerState, outcome: str, message: str) -> tuple[str, str]:
    assert state.content is not None  # noqa: S101 - the caller looked it up
    refused = outcome == names.OUTCOME_REFUSED
    why = "kube-scheduler refused it" if refused else "it did not stay healthy"
    instead = "there is no earlier configuration to run"
    if state.target is not None and state.target.hash != state.content.hash:
        instead = f"{state.target.hash} stays in use"
    text = f"configuration {state.content.hash} is not used, because {why}; {instead}: {message}"
    return (REFUSED if refused else FAILED), text


def _is_progressing(state: SchedulerState) -> bool:
    entry = find(state.history, running_hash(state.deployment))
    return entry is not None and entry.outcome == names.OUTCOME_PROGRESSING


def _is_late(snapshot: Snapshot, pod: SchedulerPod) -> bool:
    """Return whether a pod has waited longer than the tolerance."""
    if pod.ready or pod.leaving or pod.created is None:
        return False
    age = (snapshot.now - pod.created).total_seconds()
    return age > snapshot.settings.rollout.pending_tolerance


# --- the Lease --------------------------------------------------------------------------------


def _holder(snapshot: Snapshot, state: SchedulerState) -> str:
    lease = snapshot.secondaries.leases.get((state.request.namespace, state.name)) or {}
    return str((lease.get("spec") or {}).get("holderIdentity") or "")


def _lease(snapshot: Snapshot, state: SchedulerState) -> tuple[str, float | None]:
    """Return (why the Lease shows that no replica leads, seconds until it would show that)."""
    place = (state.request.namespace, state.name)
    lease = snapshot.secondaries.leases.get(place)
    seen = snapshot.secondaries.leases_seen.get(place)
    if (
        lease is not None
        and seen is not None
        and not (lease.get("spec") or {}).get("holderIdentity")
    ):
        left = HANDOVER - (snapshot.now - seen).total_seconds()
        if left > 0:
            return "", left
    return lease_health(lease, seen, snapshot.now, "/".join(place))


def _shared(snapshot: Snapshot, state: SchedulerState) -> str:
    """Name another process that uses this Lease; empty if no other process does.

    A holder identifies itself by its pod's name. The status already has the name of a replica whose
    pod has just been deleted.
    """
    holder = _holder(snapshot, state)
    problem, _ = _lease(snapshot, state)
    before: Mapping[str, Any] = state.obj.get("status") or {}
    if not holder or problem or holder.rpartition("_")[0] in {pod.name for pod in state.pods}:
        return ""
    reasons = {c.get("reason") for c in before.get("conditions") or ()}
    if before.get("leaseHolder") == holder and LEASE_SHARED not in reasons:
        return ""
    where = f"{state.request.namespace}/{state.name}"
    return (
        f"{holder} holds the Lease {where} and is not a Pod of this scheduler: another scheduler "
        "shares the Lease, and only one of those that share it schedules; give that scheduler a "
        "Lease of its own"
    )


# --- plugins ----------------------------------------------------------------------------------


@lru_cache(maxsize=512)
def _profiles(items: tuple[tuple[str, str], ...], version: Version) -> list[dict[str, Any]]:
    """List the plugins of each profile by extension point, in order; score plugins with weights.

    Beyond PLUGINS_BYTES, list only the names of profiles.
    """
    content = SecondaryContent(dict(items))
    profiles = content.config.get("profiles") or []
    gates = Gates(version, parse_gates(parse(content.arguments).get(FEATURE_GATES, ())))
    listed: list[dict[str, Any]] = []
    size = 0
    for profile in profiles:
        name = str(profile.get("schedulerName") or "default-scheduler")
        plugins = {
            point: [
                {"name": entry.name, "weight": entry.weight or 1}
                if point == "score"
                else {"name": entry.name}
                for entry in entries
            ]
            for point, entries in effective_plugins(profile, gates).points.items()
            if entries
        }
        size += json_bytes(plugins)
        fits = size <= PLUGINS_BYTES
        listed.append({"schedulerName": name, **({"plugins": plugins} if fits else {})})
    return listed
