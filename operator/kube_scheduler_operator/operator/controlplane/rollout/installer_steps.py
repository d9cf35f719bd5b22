"""Creates a node's installer pod, permits it to roll out, and reads its progress."""

from __future__ import annotations

from typing import Final

from ....base import names
from ....kube.resource import PODS
from ...model.apply import annotated
from ...model.plan import Create, Delete, Event, Replace
from ..node_pods import (
    Attempt,
    InstalledScheduler,
    InstallerSettings,
    installer_pod_name,
    render_installer_pod,
)
from ..revision.history import Revision
from .installer_pods import Installer, Stage
from .node_statuses import NodeStatus
from .outcome import attempt_failed, refused
from .prune import protected
from .rollout_step import RolloutStep

USUAL_START: Final = 15.0
"""Seconds within which a Pod starts whose image and files are on the node."""


def prepare(step: RolloutStep, status: NodeStatus, desired: Revision) -> RolloutStep:
    """Check and stage the desired revision on a node that is not next yet."""
    installer = step.installer(status, desired.number)
    if (
        installer is not None
        and installer.stage is Stage.DONE
        and (status.current == desired.number or installer.overtaken)
    ):
        return forget_attempts(step, status, desired.number)
    return proceed(step, status, desired)


def proceed(step: RolloutStep, status: NodeStatus, revision: Revision) -> RolloutStep:
    """Bring a node closer to a revision; its scheduler is replaced only on the target node."""
    installer = step.installer(status, revision.number)
    if installer is None:
        return start(step, status, revision)
    if installer.stage is Stage.REFUSED:
        return refused(step, status, installer, revision)
    if installer.stage is Stage.LOST:
        return attempt_failed(step, status, revision.number, installer.message)
    if status.target == revision.number and not installer.permitted:
        step = permit(step, installer)
    return wait(step, status, installer)


def start(
    step: RolloutStep, status: NodeStatus, revision: Revision, *, after_status: bool = False
) -> RolloutStep:
    """Create the installer pod of the next attempt, or wait for what prevents it.

    The pod may swap at once if `revision` is the node's target. With `after_status`, it is created
    only after the status is written.
    """
    snapshot, node, number = step.snapshot, status.node, revision.number
    attempt = status.attempts(number)
    name = installer_pod_name(node, number, attempt)
    failed_at = status.failed_at if attempt else None
    if failed_at and (backing_off := step.backing_off(node, attempt, failed_at)):
        return backing_off
    installers = step.observation.installers
    swapping = [pod.name for pod in installers if pod.node == node and pod.may_swap]
    if swapping or name in snapshot.installer_pods:
        return step.with_waiting(node, f"{(*swapping, name)[0]} is being stopped")
    if not step.is_ready(node):
        return step.with_waiting(node, "the node is not Ready")
    if not revision.complete:
        missing = ", ".join(revision.missing)
        return step.with_waiting(node, f"ConfigMaps of revision {number} are missing: {missing}")
    try:
        scheduler = InstalledScheduler.of(revision.content.pod, revision.hash)
    except (KeyError, IndexError, TypeError):
        edited = f"ConfigMap {names.POD}-{number} was changed by another client; delete it"
        return step.with_waiting(node, edited)
    rollout = snapshot.settings.rollout
    rendered = render_installer_pod(
        snapshot.platform,
        Attempt(node, number, attempt),
        scheduler,
        operator_image=snapshot.settings.operator_image,
        owner_uid=str(revision.status["metadata"]["uid"]),
        settings=InstallerSettings(
            rollout.health_timeout,
            rollout.settling_time,
            permitted=status.target == number,
            follow_kubeadm=not snapshot.settings.operand_image,
            keep=tuple(sorted(protected(step))),
        ),
    )
    event = Event("InstallerPodCreated", f'installing revision {number} on "{node}"')
    create = Create(PODS, rendered, events=(event,))
    step = step.with_waiting(node, "the installer pod is starting")
    return step.with_actions(create, after_status=after_status)


def permit(step: RolloutStep, installer: Installer, *, after_status: bool = False) -> RolloutStep:
    pod = annotated(installer.pod, {names.PERMISSION_ANNOTATION: names.PERMISSION_GRANTED})
    step = step.with_waiting(installer.node, "the installer pod gets permission to roll out")
    return step.with_actions(Replace(PODS, pod), after_status=after_status)


def wait(step: RolloutStep, status: NodeStatus, installer: Installer) -> RolloutStep:
    snapshot = step.snapshot
    age = (snapshot.now - installer.created).total_seconds() if installer.created else 0.0
    if status.node not in step.waiting:
        awaited = installer.awaited_files if age >= USUAL_START else ""
        text = _progress(installer)
        step = step.with_waiting(status.node, f"{text}: {awaited}" if awaited else text)
    if installer.created and installer.stage is not Stage.STAGED:
        # A pod that is pending for too long becomes a condition, and no watch event announces that.
        limits = (USUAL_START, snapshot.settings.rollout.pending_tolerance)
        left = min((limit - age for limit in limits if age < limit), default=0.0)
        step = step.with_requeue(max(left, 5.0))
    return step


def _progress(installer: Installer) -> str:
    if installer.waiting:
        why = installer.problem or f"{installer.waiting[0]}: {installer.waiting[1]}"
        return f"the installer pod waits: {why}"
    text = _PROGRESS.get(installer.stage, installer.stage.value)
    return f"{text}: {installer.message}" if installer.message else text


_PROGRESS = {
    Stage.PENDING: "the installer pod is starting",
    Stage.PREFLIGHT: "kube-scheduler checks the configuration",
    Stage.STAGING: "staging the revision on the node",
    Stage.STAGED: "checked and staged, waiting for permission to roll out",
    Stage.INSTALLING: "replacing the scheduler",
}


def forget_attempts(step: RolloutStep, status: NodeStatus, revision: int) -> RolloutStep:
    """Delete the node's installer pods that ended earlier: their results would be read as new."""
    for pod in step.observation.installers:
        ended = pod.node == status.node and pod.revision == revision and pod.has_ended
        if ended and not pod.deleting:
            step = step.with_actions(Delete(PODS, pod.pod))
    return step
