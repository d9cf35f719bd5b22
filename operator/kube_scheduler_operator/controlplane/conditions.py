"""What the pass found, as the conditions of KubeScheduler (names.py has their types).

Every condition is written in every pass, so that one that no longer holds is taken back at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..base import names
from ..base.objects import annotation
from ..base.times import timestamp
from ..status.conditions import AS_EXPECTED, Condition, aggregate
from ..status.scheduler_lease import LEASE_GRACE, lease_holder, lease_problem
from ..status.warnings import warnings_condition
from .rollout.drift import is_astray
from .rollout.installer_pods import Stage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from ..base.findings import Finding
    from ..model.operand_pods import Operand
    from ..model.snapshot import Snapshot
    from .revision.history import Revision
    from .rollout.installer_pods import Installer
    from .rollout.node_statuses import Entry
    from .rollout.removal import Removal
    from .rollout.result import Stepped

REVISION_FAILED: Final = "RevisionFailed"
"""Reason of NodeInstallerDegraded: what is asked for did not stay healthy and is held back."""


def from_findings(findings: Sequence[Finding]) -> list[Condition]:
    """Conditions of the observe, compose and check steps."""
    types = (
        names.CONFIG_OBSERVATION_DEGRADED,
        names.TARGET_CONFIG_DEGRADED,
        names.OVERRIDES_DEGRADED,
        names.SCHEDULER_PROFILES_DEGRADED,
        names.SCHEDULER_EXTENDERS_DEGRADED,
        names.INEFFECTIVE_SETTINGS,
    )
    conditions = [_found(type_, [f for f in findings if f.condition == type_]) for type_ in types]
    warnings = names.CONFIGURATION_WARNINGS
    conditions.append(
        warnings_condition(warnings, (f for f in findings if f.condition == warnings))
    )
    overrides = [f for f in findings if f.condition == names.OVERRIDES_UPGRADEABLE]
    if overrides:
        text = aggregate(f.message for f in overrides)
        conditions.append(
            Condition(names.OVERRIDES_UPGRADEABLE, "False", overrides[0].reason, text)
        )
    else:
        conditions.append(
            Condition(names.OVERRIDES_UPGRADEABLE, "True", "NoUnsupportedConfigOverrides")
        )
    return conditions


def _found(type_: str, findings: Sequence[Finding]) -> Condition:
    if not findings:
        return Condition(type_, "False", AS_EXPECTED)
    return Condition(type_, "True", findings[0].reason, aggregate(f.text for f in findings))


def revision_conditions(error: str, note: str) -> list[Condition]:
    """Conditions of the revise step."""
    if error:
        return [Condition(names.REVISION_DEGRADED, "True", "SyncError", error)]
    return [Condition(names.REVISION_DEGRADED, "False", AS_EXPECTED, note)]


def rollout_conditions(
    snapshot: Snapshot,
    stepped: Stepped,
    *,
    wanted: Revision | None,
    rejected: Revision | None,
    description: str,
) -> list[Condition]:
    """Conditions of the rollout step.

    Args:
        snapshot: what was seen.
        stepped: what the step decided.
        wanted: the revision that nodes move to.
        rejected: a revision that is asked for but was refused or failed.
        description: which nodes are where.
    """
    return [
        _progressing(snapshot, stepped, wanted, rejected, description),
        _preflight(rejected),
        _node_installer(stepped, wanted, rejected),
        _collected(
            names.INSTALLER_DEGRADED, "SyncError", [snapshot.trouble] if snapshot.trouble else []
        ),
        *_installer_pods(snapshot, stepped, wanted),
        _available(snapshot, stepped, description),
        lease_holder(snapshot),
        _static_pods(snapshot, stepped),
        _nodes(stepped, snapshot.nodes),
    ]


def removal_conditions(snapshot: Snapshot, removal: Removal) -> list[Condition]:
    """Conditions of the way out: how far it is, what failed, and whether pods get scheduled."""
    progressing, failing = names.NODE_INSTALLER_PROGRESSING, names.NODE_INSTALLER_DEGRADED
    failures = [f'node "{node}": {why}' for node, why in sorted(removal.failures.items())]
    return [
        Condition(progressing, "False", "Removed", removal.progress)
        if removal.done
        else Condition(progressing, "True", "Removing", removal.progress),
        _collected(failing, "RestoreFailed", failures),
        _collected(
            names.INSTALLER_DEGRADED, "SyncError", [snapshot.trouble] if snapshot.trouble else []
        ),
        _available(snapshot, removal.stepped, "the operator is on its way out"),
        _nodes(removal.stepped, snapshot.nodes),
    ]


def _progressing(
    snapshot: Snapshot,
    stepped: Stepped,
    wanted: Revision | None,
    rejected: Revision | None,
    description: str,
) -> Condition:
    type_ = names.NODE_INSTALLER_PROGRESSING
    behind = [
        entry
        for entry in stepped.entries
        if wanted is not None and (entry.current < wanted.number or entry.target)
    ]
    if behind and wanted is not None:
        waits = [f"{node}: {what}" for node, what in sorted(stepped.waiting.items())]
        message = "; ".join([f"moving to revision {wanted.number}", description, *waits])
        if all(_joined_later(snapshot, entry, wanted) for entry in behind):
            # The API asks operators not to call it progress when nodes join.
            return Condition(type_, "False", "NodesJoining", message)
        return Condition(type_, "True", "RollingOut", message)
    if rejected is not None:
        message = f"{description}; revision {rejected.number} was {rejected.outcome}"
        return Condition(type_, "False", "RevisionRejected", message)
    return Condition(type_, "False", "AllNodesAtLatestRevision", description)


def _joined_later(snapshot: Snapshot, entry: Entry, wanted: Revision) -> bool:
    """Whether the revision was installed already when this node came."""
    if entry.current or not wanted.status or entry.node not in snapshot.nodes:
        return False
    installed = timestamp(annotation(wanted.status, names.OUTCOME_TIME_ANNOTATION))
    born = timestamp(snapshot.nodes[entry.node]["metadata"].get("creationTimestamp"))
    return installed is not None and born is not None and born > installed


def _preflight(rejected: Revision | None) -> Condition:
    if rejected is None or rejected.outcome != names.OUTCOME_REFUSED:
        return Condition(names.PREFLIGHT_DEGRADED, "False", AS_EXPECTED)
    message = (
        f"kube-scheduler refused revision {rejected.number}, no node was touched: "
        f"{rejected.message}"
    )
    return Condition(names.PREFLIGHT_DEGRADED, "True", "ConfigurationRefused", message)


def _node_installer(
    stepped: Stepped, wanted: Revision | None, rejected: Revision | None
) -> Condition:
    type_ = names.NODE_INSTALLER_DEGRADED
    if rejected is not None and rejected.outcome == names.OUTCOME_FAILED:
        return Condition(type_, "True", REVISION_FAILED, rejected.message)
    number = wanted.number if wanted is not None else 0
    retrying = [
        entry
        for entry in stepped.entries
        if entry.failed_revision and entry.failed_revision == (entry.target or number)
    ]
    if retrying:
        lines = [f'node "{e.node}": {error}' for e in retrying for error in e.failed_errors]
        return Condition(type_, "True", retrying[0].failed_reason, aggregate(lines))
    stuck = [
        f'node "{found.node}" cannot take revision {found.revision}: {found.problem}'
        for found in _awaited(stepped, wanted)
        if found.stuck
    ]
    return _collected(type_, names.REASON_INSTALLER_FAILED, stuck)


def _installer_pods(
    snapshot: Snapshot, stepped: Stepped, wanted: Revision | None
) -> list[Condition]:
    """An installer pod that cannot start is no failure at once, but soon."""
    pending, waiting = [], []
    reasons: dict[str, str] = {}
    for found in _awaited(stepped, wanted):
        age = (snapshot.now - found.created).total_seconds() if found.created else 0.0
        late = age > snapshot.settings.rollout.pending_tolerance
        if found.waiting and (late or found.waiting[0] in _CANNOT_START):
            reasons["waiting"] = found.waiting[0]
            waiting.append(
                f'Pod "{found.name}" on node "{found.node}" container is waiting: '
                f"{found.waiting[0]}: {found.waiting[1]}"
            )
        elif late and found.stage in (Stage.PENDING, Stage.PREFLIGHT, Stage.STAGING):
            reasons["pending"] = "Pending"
            pending.append(
                f'Pod "{found.name}" on node "{found.node}" is {found.stage.value} since '
                f"{found.pod['metadata'].get('creationTimestamp')}: {found.message or 'no message'}"
            )
    return [
        _collected(names.INSTALLER_POD_PENDING_DEGRADED, reasons.get("pending", ""), pending),
        _collected(names.INSTALLER_POD_WAITING_DEGRADED, reasons.get("waiting", ""), waiting),
    ]


def _awaited(stepped: Stepped, wanted: Revision | None) -> list[Installer]:
    """Installers of whom something is still to come."""
    number = wanted.number if wanted is not None else 0
    targets = {
        (entry.node, entry.target or number)
        for entry in stepped.entries
        if entry.target or entry.current < number
    }
    return [
        found
        for found in stepped.installers
        if (found.node, found.revision) in targets and not found.over and not found.leaving
    ]


# These do not go away by waiting a little longer for the container to be created.
_CANNOT_START = frozenset(
    {
        "ErrImagePull",
        "ImagePullBackOff",
        "InvalidImageName",
        "ErrImageNeverPull",
        "CreateContainerConfigError",
        "CreateContainerError",
        "RunContainerError",
    }
)


def _collected(type_: str, reason: str, messages: Sequence[str]) -> Condition:
    if not messages:
        return Condition(type_, "False", AS_EXPECTED)
    return Condition(type_, "True", reason, aggregate(messages))


def _available(snapshot: Snapshot, stepped: Stepped, description: str) -> Condition:
    type_ = names.STATIC_PODS_AVAILABLE
    ready = [pod for pod in stepped.operands.values() if pod.ready]
    if not ready:
        return Condition(type_, "False", "NoReadyScheduler", "no scheduler pod is Ready")
    problem = lease_problem(snapshot)
    if problem:
        return Condition(type_, "False", "LeaseNotRenewed", problem)
    nodes = "1 node is active" if len(ready) == 1 else f"{len(ready)} nodes are active"
    return Condition(type_, "True", AS_EXPECTED, f"{nodes}; {description}")


def _static_pods(snapshot: Snapshot, stepped: Stepped) -> Condition:
    moving = {entry.node for entry in stepped.entries if entry.target}
    calm = [
        node for node in sorted(snapshot.nodes) if node not in moving | stepped.not_ready.keys()
    ]
    entries = {entry.node: entry for entry in stepped.entries}
    problems = []
    for node in calm:
        pod = stepped.operands.get(node)
        if pod is None:
            problems.append(f'no scheduler pod on node "{node}"')
        elif not pod.ready:
            problems.append((pod.trouble or f"pod/{pod.name} is not Ready") + _last_words(pod))
        elif is_astray(entries.get(node), pod):
            runs = (
                f"revision {pod.revision}" if pod.ours else "a manifest that is not the operator's"
            )
            wanted = f"instead of revision {entries[node].current}, which will be put back"
            problems.append(f'node "{node}" runs {runs} {wanted}; who changed its manifest?')
    return _collected(names.STATIC_PODS_DEGRADED, "Error", problems)


def _last_words(pod: Operand) -> str:
    line = pod.last_words.splitlines()[-1] if pod.last_words else ""
    return f" ({line})" if line and line not in pod.trouble else ""


def _nodes(stepped: Stepped, nodes: Mapping[str, object]) -> Condition:
    type_ = names.NODES_DEGRADED
    if not nodes:
        message = "there is no control-plane node: no node has a control-plane role label"
        return Condition(type_, "True", "NoControlPlaneNodes", message)
    if stepped.not_ready:
        listed = ", ".join(why for _, why in sorted(stepped.not_ready.items()))
        message = f"The master nodes not ready: {listed}"
        return Condition(type_, "True", "MasterNodesNotReady", message)
    return Condition(type_, "False", "MasterNodesReady", "All master nodes are ready")


def requeue_for_lease(snapshot: Snapshot, now: datetime) -> float | None:
    """Seconds until the Lease would count as not renewed; None if it already does."""
    if snapshot.lease_seen is None or lease_problem(snapshot):
        return None
    spec = (snapshot.operand_lease or {}).get("spec") or {}
    allowed = float(spec.get("leaseDurationSeconds") or 15) + LEASE_GRACE
    return max(allowed - (now - snapshot.lease_seen).total_seconds() + 0.5, 0.5)
