"""The status of a SecondaryScheduler: conditions, what runs, and which plugins that has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from ..base import names
from ..base.findings import Finding
from ..base.objects import Object
from ..model.plan import Event, soonest
from ..model.snapshot import Snapshot
from ..schedulerconfig.command_line import parse
from ..schedulerconfig.effective_plugins import effective_plugins
from ..schedulerconfig.feature_gates import FLAG as FEATURE_GATES
from ..schedulerconfig.feature_gates import Gates, parse_gates
from ..schedulerconfig.versions import Version
from ..status.conditions import AS_EXPECTED, Condition, aggregate, merge_conditions
from ..status.object_status import Report
from ..status.scheduler_lease import LEASE_GRACE
from ..status.warnings import warnings_condition
from .content import Content
from .desired import Wanted
from .history import History, find, write
from .objects import running_hash
from .outcome import Verdict
from .pods import Pod

REFUSED: Final = "ConfigurationRefused"
FAILED: Final = "ConfigurationFailed"
SYNC_ERROR: Final = "SyncError"
PODS_FAILING: Final = "PodsFailing"
LEASE_SHARED: Final = "LeaseShared"


@dataclass(frozen=True, slots=True)
class Said:
    """What a status is made of.

    Attributes:
        obj: the SecondaryScheduler.
        wanted: what it comes to.
        findings: what is wrong with that.
        deployment: as it is; None if there is none.
        pods: of this scheduler.
        history: with what this pass found.
        verdict: about what runs.
        content: what would be rolled out if nothing spoke against it; None if it is wrong.
        target: what is to run.
        version: of kube-scheduler.
        readable: whether anything is known of its namespace.
    """

    obj: Object
    wanted: Wanted
    findings: Sequence[Finding] = ()
    deployment: Object | None = None
    pods: tuple[Pod, ...] = ()
    history: History = ()
    verdict: Verdict = field(default_factory=Verdict)
    content: Content | None = None
    target: Content | None = None
    version: Version = field(default_factory=lambda: Version(1, 35))
    readable: bool = True

    @property
    def name(self) -> str:
        """Of the object."""
        return str(self.obj["metadata"]["name"])


def report(snapshot: Snapshot, said: Said) -> Report:
    """The status as it should be."""
    before: Mapping[str, Any] = said.obj.get("status") or {}
    lease, lease_wait = _lease(snapshot, said)
    degraded = _degraded(snapshot, said)
    conditions = [
        _available(said, lease),
        _progressing(said),
        degraded,
        warnings_condition(names.WARNINGS, (f for f in said.findings if not f.blocking)),
    ]
    ready = sum(pod.ready for pod in said.pods)
    status: dict[str, Any] = {
        "observedGeneration": said.obj["metadata"].get("generation", 0),
        "conditions": merge_conditions(before.get("conditions") or (), conditions, snapshot.now),
        "replicas": sum(not pod.leaving for pod in said.pods),
        "readyReplicas": ready,
        "selector": ",".join(f"{k}={v}" for k, v in said.wanted.request.selector.items()),
    }
    if said.target is not None:
        status["configHash"] = said.target.hash
        status["image"] = said.target.image
        status["profiles"] = _profiles(said.target, said.version)
    if called := _called(said, before):
        status["extenders"] = called
    if said.history:
        status["history"] = write(said.history)
    holder = _holder(snapshot, said)
    if holder:
        status["leaseHolder"] = holder
    message = degraded.message if degraded.status == "True" else ""
    return Report(
        status,
        _events(said.name, before, status),
        message,
        soonest(said.verdict.requeue_after, lease_wait),
    )


def _called(said: Said, before: Mapping[str, Any]) -> list[str]:
    """Where the extenders are that come from SchedulerExtenders."""
    if said.content is None:
        return list(before.get("extenders") or ())
    return [str(entry.get("urlPrefix", "")) for entry in said.wanted.request.called]


# --- conditions -------------------------------------------------------------------------------


def _available(said: Said, lease: str) -> Condition:
    if not said.readable:
        message = "the operator does not see that namespace"
        return Condition(names.AVAILABLE, "Unknown", "NamespaceNotAllowed", message)
    if not any(pod.ready for pod in said.pods):
        return Condition(names.AVAILABLE, "False", "NoReadyScheduler", "no scheduler pod is Ready")
    if lease:
        return Condition(names.AVAILABLE, "False", "LeaseNotRenewed", lease)
    return Condition(names.AVAILABLE, "True", AS_EXPECTED)


def _progressing(said: Said) -> Condition:
    target = said.target
    if target is None:
        return Condition(names.PROGRESSING, "False", AS_EXPECTED)
    entry = find(said.history, target.hash)
    moving = entry is not None and entry.outcome == names.OUTCOME_PROGRESSING
    if not moving and _settled(said, target):
        return Condition(names.PROGRESSING, "False", AS_EXPECTED)
    waiting = f": {said.verdict.trouble}" if said.verdict.trouble else ""
    message = f"pods are moving to configuration {target.hash}{waiting}"
    return Condition(names.PROGRESSING, "True", "RollingOut", message)


def _settled(said: Said, target: Content) -> bool:
    """Whether all pods are there and run what they should."""
    own = [pod for pod in said.pods if not pod.leaving]
    return (
        running_hash(said.deployment) == target.hash
        and len(own) == said.wanted.request.replicas
        and all(pod.hash == target.hash for pod in own)
    )


def _degraded(snapshot: Snapshot, said: Said) -> Condition:
    found: list[tuple[str, str]] = []
    trouble = snapshot.secondaries.troubles.get(said.name)
    found += [(finding.reason, finding.text) for finding in said.findings if finding.blocking]
    asked = find(said.history, said.content.hash) if said.content is not None else None
    if asked is not None and asked.bad:
        found.append(_rejected(said, asked.outcome, asked.message))
    if trouble:
        found.append((SYNC_ERROR, trouble))
    shared = _shared(snapshot, said)
    if shared:
        found.append((LEASE_SHARED, shared))
    late = any(_is_late(snapshot, pod) for pod in said.pods)
    if said.verdict.trouble and (late or not _is_progressing(said)):
        found.append((PODS_FAILING, said.verdict.trouble))
    if not found:
        return Condition(names.DEGRADED, "False", AS_EXPECTED)
    return Condition(names.DEGRADED, "True", found[0][0], aggregate(text for _, text in found))


def _rejected(said: Said, outcome: str, message: str) -> tuple[str, str]:
    assert said.content is not None  # noqa: S101 - the caller looked it up
    refused = outcome == names.OUTCOME_REFUSED
    did = "kube-scheduler refused it" if refused else "it did not stay healthy"
    instead = "nothing else was there to run"
    if said.target is not None and said.target.hash != said.content.hash:
        instead = f"{said.target.hash} runs on"
    text = f"configuration {said.content.hash} is not used, because {did}; {instead}: {message}"
    return (REFUSED if refused else FAILED), text


def _is_progressing(said: Said) -> bool:
    entry = find(said.history, running_hash(said.deployment))
    return entry is not None and entry.outcome == names.OUTCOME_PROGRESSING


def _is_late(snapshot: Snapshot, pod: Pod) -> bool:
    """Whether a pod waits for longer than is normal."""
    if pod.ready or pod.leaving or pod.created is None:
        return False
    age = (snapshot.now - pod.created).total_seconds()
    return age > snapshot.settings.rollout.pending_tolerance


# --- the Lease --------------------------------------------------------------------------------


def _holder(snapshot: Snapshot, said: Said) -> str:
    lease = snapshot.secondaries.leases.get((said.wanted.request.namespace, said.name)) or {}
    return str((lease.get("spec") or {}).get("holderIdentity") or "")


def _lease(snapshot: Snapshot, said: Said) -> tuple[str, float | None]:
    """Why the Lease says that none of them schedules, and in how many seconds it would say so."""
    place = (said.wanted.request.namespace, said.name)
    lease = snapshot.secondaries.leases.get(place) or {}
    spec = lease.get("spec") or {}
    where = "/".join(place)
    if not spec.get("holderIdentity"):
        return f"nobody holds the Lease {where}", None
    allowed = float(spec.get("leaseDurationSeconds") or 15) + LEASE_GRACE
    seen = snapshot.secondaries.leases_seen.get(place)
    left = allowed - (snapshot.now - seen).total_seconds() if seen is not None else -1.0
    if left < 0:
        return f"{spec['holderIdentity']} holds the Lease {where} but does not renew it", None
    return "", left + 0.5


def _shared(snapshot: Snapshot, said: Said) -> str:
    """Who else elects by this Lease; empty if nobody does.

    A holder calls itself by its pod's name. One of ours whose pod has just gone was known as ours
    before, so it is in the status already.
    """
    holder = _holder(snapshot, said)
    problem, _ = _lease(snapshot, said)
    before: Mapping[str, Any] = said.obj.get("status") or {}
    if not holder or problem or holder.rpartition("_")[0] in {pod.name for pod in said.pods}:
        return ""
    reasons = {c.get("reason") for c in before.get("conditions") or ()}
    if before.get("leaseHolder") == holder and LEASE_SHARED not in reasons:
        return ""
    where = f"{said.wanted.request.namespace}/{said.name}"
    return (
        f"{holder} holds the Lease {where} and is none of these pods: another scheduler elects by "
        "it, and of those that share a Lease only one works; give that one a Lease of its own"
    )


# --- plugins ----------------------------------------------------------------------------------


def _profiles(content: Content, version: Version) -> list[dict[str, Any]]:
    return _effective(content.items, version)


@lru_cache(maxsize=512)
def _effective(items: tuple[tuple[str, str], ...], version: Version) -> list[dict[str, Any]]:
    """For each profile which plugins run where, in order; those that score have weights."""
    content = Content(dict(items))
    profiles = content.config.get("profiles") or []
    gates = Gates(version, parse_gates(parse(content.arguments).get(FEATURE_GATES, ())))
    return [
        {
            "schedulerName": str(profile.get("schedulerName") or "default-scheduler"),
            "plugins": {
                point: [
                    {"name": entry.name, "weight": entry.weight or 1}
                    if point == "score"
                    else {"name": entry.name}
                    for entry in entries
                ]
                for point, entries in effective_plugins(profile, gates).points.items()
                if entries
            },
        }
        for profile in profiles
    ]


# --- events -----------------------------------------------------------------------------------


def _events(name: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[Event, ...]:
    """One line for each condition that turned bad or good again."""
    old = {c["type"]: c for c in before.get("conditions") or ()}
    events = []
    for condition in after["conditions"]:
        kind, status = condition["type"], condition["status"]
        if kind not in (names.AVAILABLE, names.DEGRADED):
            continue
        was = old.get(kind, {})
        bad = (status == "True") == (kind == names.DEGRADED)
        # What was never good and is not is no news: nothing has begun yet.
        same = was.get("status", "False") == status and (
            not bad or kind == names.AVAILABLE or was.get("message") == condition.get("message")
        )
        if same:
            continue
        text = condition.get("message") or condition.get("reason", "")
        message = f'SecondaryScheduler "{name}": {kind} is {status}: {text}'
        events.append(
            Event("SecondarySchedulerStatusChanged", message, "Warning" if bad else "Normal")
        )
    return tuple(events)
