"""Creates a node's installer pod, permits it to roll out, and reads its progress."""

from __future__ import annotations

from typing import Final

from ...base import names
from ...base.json_text import parse_json
from ...kube.resource import PODS
from ...model.plan import Create, Delete, Event, Replace
from ...model.snapshot import Snapshot
from ..node_pods import (
    Attempt,
    InstalledScheduler,
    InstallerSettings,
    SchedulerSurroundings,
    installer_pod_name,
    render_installer_pod,
)
from ..revision.history import Revision
from ..revision.revise import RevisionResult
from .installer_pods import Installer, Stage
from .node_statuses import NodeStatus
from .observe import Observation
from .outcome import attempt_failed, refused
from .prune import protected
from .result import RolloutResult

USUAL_START: Final = 15.0
"""Seconds within which a Pod starts whose image and files are on the node."""


def prepare(
    snapshot: Snapshot,
    revised: RevisionResult,
    observation: Observation,
    result: RolloutResult,
    status: NodeStatus,
    desired: Revision,
) -> RolloutResult:
    """Check and stage the desired revision on a node that is not next yet."""
    number = desired.number
    found = observation.installer(installer_pod_name(status.node, number, status.attempts(number)))
    done = found is not None and found.stage is Stage.DONE
    if found is not None and done and (status.current == number or found.overtaken):
        return forget_attempts(observation, result, status, number)
    return proceed(snapshot, revised, observation, result, status, desired, found)


def proceed(
    snapshot: Snapshot,
    revised: RevisionResult,
    observation: Observation,
    result: RolloutResult,
    status: NodeStatus,
    revision: Revision,
    found: Installer | None,
) -> RolloutResult:
    """Bring a node closer to a revision; it is replaced only if it is the node's target.

    `found` is the installer pod of this attempt, if it exists.
    """
    if found is None:
        return start(snapshot, revised, observation, result, status, revision)
    if found.stage is Stage.REFUSED:
        return refused(snapshot, result, status, found, revision)
    if found.stage is Stage.LOST:
        return attempt_failed(snapshot, result, status, revision.number, found.message)
    if status.target == revision.number and not found.permitted:
        result = permit(result, found)
    return wait(snapshot, result, status, found)


def start(
    snapshot: Snapshot,
    revised: RevisionResult,
    observation: Observation,
    result: RolloutResult,
    status: NodeStatus,
    revision: Revision,
    *,
    after_status: bool = False,
) -> RolloutResult:
    """Create the installer pod of the next attempt, or wait for what prevents it.

    The pod may swap at once if `revision` is the node's target. With `after_status`, it is created
    only after the status is written.
    """
    node, number = status.node, revision.number
    attempt = status.attempts(number)
    name = installer_pod_name(node, number, attempt)
    failed_at = status.failed_at if attempt else None
    if failed_at and (backing_off := result.backing_off(snapshot, node, attempt, failed_at)):
        return backing_off
    before = [i.name for i in observation.installers if i.node == node and i.may_swap]
    if before or name in snapshot.installer_pods:
        return result.with_waiting(node, f"{(*before, name)[0]} is being stopped")
    if node in observation.not_ready:
        return result.with_waiting(node, "the node is not Ready")
    if not revision.complete:
        missing = ", ".join(revision.missing)
        return result.with_waiting(node, f"ConfigMaps of revision {number} are missing: {missing}")
    try:
        pod = parse_json((revision.copies[names.POD].get("data") or {})[names.POD_KEY])
        container = pod["spec"]["containers"][0]
        image, arguments = container["image"], container["args"]
        surroundings = SchedulerSurroundings.of(pod)
    except (ValueError, KeyError, IndexError, TypeError):
        missing = f"ConfigMap {names.POD}-{number} was changed by another client; delete it"
        return result.with_waiting(node, missing)
    rollout = snapshot.settings.rollout
    rendered = render_installer_pod(
        snapshot.platform,
        Attempt(node, number, attempt),
        InstalledScheduler(image, arguments, revision.hash, surroundings),
        operator_image=snapshot.settings.operator_image,
        owner_uid=str(revision.status["metadata"]["uid"]),
        settings=InstallerSettings(
            rollout.health_timeout,
            rollout.settling_time,
            permitted=status.target == number,
            follow_kubeadm=not snapshot.settings.operand_image,
            keep=tuple(sorted(protected(snapshot, revised.history, observation, result))),
        ),
    )
    event = Event("InstallerPodCreated", f'installing revision {number} on "{node}"')
    create = Create(PODS, rendered, events=(event,))
    result = result.with_waiting(node, "the installer pod is starting")
    return result.with_actions(create, after_status=after_status)


def permit(result: RolloutResult, found: Installer, *, after_status: bool = False) -> RolloutResult:
    """Give an installer pod the permission to roll out."""
    metadata = found.pod["metadata"]
    annotations = {
        **(metadata.get("annotations") or {}),
        names.PERMISSION_ANNOTATION: names.PERMISSION_GRANTED,
    }
    pod = {**found.pod, "metadata": {**metadata, "annotations": annotations}}
    result = result.with_waiting(found.node, "the installer pod gets permission to roll out")
    return result.with_actions(Replace(PODS, pod), after_status=after_status)


def wait(
    snapshot: Snapshot, result: RolloutResult, status: NodeStatus, found: Installer
) -> RolloutResult:
    """Wait for an installer pod, and record what it does."""
    age = (snapshot.now - found.created).total_seconds() if found.created else 0.0
    if status.node not in result.waiting:
        awaited = found.awaited_files if age >= USUAL_START else ""
        text = _progress(found)
        result = result.with_waiting(status.node, f"{text}: {awaited}" if awaited else text)
    if found.created and found.stage is not Stage.STAGED:
        # A pod that is pending for too long becomes a condition, and no watch event announces that.
        limits = (USUAL_START, snapshot.settings.rollout.pending_tolerance)
        left = min((limit - age for limit in limits if age < limit), default=0.0)
        result = result.with_requeue(max(left, 5.0))
    return result


def _progress(found: Installer) -> str:
    if found.waiting:
        why = found.problem or f"{found.waiting[0]}: {found.waiting[1]}"
        return f"the installer pod waits: {why}"
    text = _PROGRESS.get(found.stage, found.stage.value)
    return f"{text}: {found.message}" if found.message else text


_PROGRESS = {
    Stage.PENDING: "the installer pod is starting",
    Stage.PREFLIGHT: "kube-scheduler checks the configuration",
    Stage.STAGING: "staging the revision on the node",
    Stage.STAGED: "checked and staged, waiting for permission to roll out",
    Stage.INSTALLING: "replacing the scheduler",
}


def forget_attempts(
    observation: Observation, result: RolloutResult, status: NodeStatus, revision: int
) -> RolloutResult:
    """Delete the node's installer pods that ended earlier: their results would be read as new."""
    for found in observation.installers:
        ended = found.node == status.node and found.revision == revision and found.has_ended
        if ended and not found.deleting:
            result = result.with_actions(Delete(PODS, found.pod))
    return result
