"""How an attempt to install a revision ended, and whether a running revision proves bad.

The installer's result counts for what happened on its node. A node has reached a revision only when
the API agrees, and the API can prove the revision wrong later.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ....base import names
from ....base.objects import annotation
from ....base.times import rfc3339, timestamp
from ....node.protocol.result import InstallerOutcome, Result
from ...model.api_outage import accountable_since, is_excused
from ...model.operand_pods import NodeDisk, OperandPod
from ...model.plan import Event
from ...model.snapshot import Snapshot
from ..revision.history import Revision, record_outcome
from .installer_pods import Installer
from .node_statuses import NodeStatus, on_node
from .rollout_step import RolloutStep

READY_UNCERTAINTY: Final = 3.0
"""Seconds by which a scheduler may have been Ready for less long than the API shows it.

One because the API's times are whole seconds; two because the API may lag behind: an installer that
was stopped may be restoring the last good manifest.
"""


def finished(step: RolloutStep, status: NodeStatus, installer: Installer) -> RolloutStep:
    ended = installer.result
    assert ended is not None  # noqa: S101 - Stage.DONE
    target = status.target
    revision = step.revised.revision(target)
    if ended.result is InstallerOutcome.INSTALLED:
        return _installed(step, status, installer, ended)
    if ended.result is InstallerOutcome.OVERTAKEN:
        message = f'node "{status.node}": {ended.reason}; nothing was changed'
        return step.with_event("KubeadmUpgrade", message).with_status(replace(status, target=0))
    if ended.result is InstallerOutcome.SUPERSEDED:
        # The next revision's number exceeds what is on the node; until then do not try again.
        return attempt_failed(step, status, target, ended.reason)
    error = f": {ended.last_error}" if ended.last_error else ""
    message = f'revision {target} failed on node "{status.node}": {ended.reason}{error}'
    fallback = step.revised.revision(ended.last_good_revision)
    if ended.result is InstallerOutcome.ROLLED_BACK:
        runs = (
            f"revision {ended.last_good_revision}"
            if ended.last_good_revision
            else "the scheduler that it replaced"
        )
        return _failed(step, status, revision, f"{message}; {runs} runs again")
    reason = names.REASON_OPERAND_FAILED
    if fallback is not None and fallback.bad:
        # The node fell back to a revision that had failed as well: only a new one helps.
        return _failed(step, status, revision, message, reason)
    # Neither scheduler becomes healthy: the cause is the node, the revision may work elsewhere.
    return attempt_failed(step, status, target, message, reason)


def _installed(
    step: RolloutStep, status: NodeStatus, installer: Installer, ended: Result
) -> RolloutStep:
    """The installer saw a healthy scheduler; the API has to agree within the health timeout."""
    snapshot, node, target = step.snapshot, status.node, status.target
    pod = step.observation.operands.get(node)
    disk = step.observation.disks.get(node)
    shown = pod is not None and _shows(pod, disk, target, ended)
    if pod is not None and shown and pod.ready:
        took = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in ended.steps.items())
        message = f'node "{node}" is at revision {target} ({took})'
        step = step.with_event("NodeCurrentRevisionChanged", message)
        if ended.strangers:
            unknown = ", ".join(ended.strangers)
            message = f'node "{node}": directories that belong to no revision are kept: {unknown}'
            step = step.with_event("UnknownDirectories", message, warning=True)
        current = max(status.current, target)
        return step.with_status(replace(status.without_failures(), current=current, target=0))
    late = step.is_ready(node) and _is_late(snapshot, installer, pod if shown else None)
    reason = names.REASON_OPERAND_FAILED
    if pod is not None and shown and (late or _crash_loops(snapshot, pod)):
        message = f'revision {target} became healthy on node "{node}" but did not stay healthy'
        message += _last_error(pod)
        revision = step.revised.revision(target)
        return _failed(step, status, revision, message, reason)
    if late:
        message = f"revision {target} was installed, but the API does not show it running"
        return attempt_failed(step, status, target, message, reason)
    step = step.with_waiting(node, f"the API does not yet show revision {target} as Ready")
    return step.with_requeue(2.0)


def _shows(pod: OperandPod, disk: NodeDisk | None, target: int, ended: Result) -> bool:
    """Whether the node's mirror Pod is that of the installed scheduler."""
    # Restarted with another kubeconfig, a revision looks unchanged until the mirror pod is new.
    if pod.revision == target and ended.kubeconfig in ("", pod.kubeconfig):
        return True
    # The installer found everything in place and restarted nothing: the label was edited.
    if ended.restarted or disk is None or not disk.is_current(pod):
        return False
    return disk.revision == target and not disk.edits


def _is_late(snapshot: Snapshot, installer: Installer, pod: OperandPod | None) -> bool:
    """Whether the API should already show the installed scheduler, `pod`, as Ready."""
    since = accountable_since(snapshot)
    if since is None or (pod is not None and pod.crash_looping and is_excused(snapshot, pod)):
        return False
    # An excused exit may have made the kubelet back off for minutes.
    moments = (since, installer.ended_at, pod.started if pod is not None else None)
    begin = max(moment for moment in moments if moment is not None)
    return (snapshot.now - begin).total_seconds() >= snapshot.settings.rollout.health_timeout


def _failed(
    step: RolloutStep,
    status: NodeStatus,
    revision: Revision | None,
    message: str,
    reason: str = names.REASON_OPERAND_FALLBACK,
) -> RolloutStep:
    """Record a failure whose cause is the revision: no node is moved to it any more."""
    if revision is not None:
        event = Event("NodeInstallerFailed", message, "Warning")
        step = step.with_outcome(revision, names.OUTCOME_FAILED, message, event)
    fallback, time = reason == names.REASON_OPERAND_FALLBACK, rfc3339(step.snapshot.now)
    failed = status.failed(status.target, reason, message, time, fallback=fallback)
    return step.with_status(replace(failed, target=0))


def refused(
    step: RolloutStep, status: NodeStatus, installer: Installer, revision: Revision
) -> RolloutStep:
    """End a revision whose configuration the preflight rejected; no node is touched."""
    number = revision.number
    if revision.outcome == names.OUTCOME_INSTALLED:
        error = installer.message
        message = f"kube-scheduler refuses on this node what it accepted on another: {error}"
        return attempt_failed(step, status, number, message)
    message = f"kube-scheduler refused revision {number}: {installer.message}"
    event = Event("RevisionRefused", message, "Warning")
    step = step.with_outcome(revision, names.OUTCOME_REFUSED, installer.message, event)
    return step.with_status(replace(status, target=0))


def attempt_failed(
    step: RolloutStep,
    status: NodeStatus,
    revision: int,
    message: str,
    reason: str = names.REASON_INSTALLER_FAILED,
) -> RolloutStep:
    """Record a failure whose cause is not the revision: it is tried again."""
    time = rfc3339(step.snapshot.now)
    failed = status.failed(revision, reason, message, time, fallback=False)
    event = on_node(status.node, message)
    return step.with_event("NodeInstallerFailed", event, warning=True).with_status(failed)


# --- what already runs ------------------------------------------------------------------------


def acknowledge(step: RolloutStep, status: NodeStatus) -> RolloutStep:
    """Record a revision that a node runs although no installer pod is awaited.

    This happens after KubeScheduler was deleted and recreated, and after an installer was stopped
    when it had already replaced the scheduler. A program on the node must have found the revision
    on the disk; without such a report an installer of the revision looks, and restarts nothing.
    """
    snapshot, observation = step.snapshot, step.observation
    pod, disk = observation.operands.get(status.node), observation.disks.get(status.node)
    if status.target or not step.is_ready(status.node) or pod is None or not pod.ready:
        return step
    revision = step.revised.revision(pod.revision)
    if revision is None or not revision.ready or revision.bad:
        return step
    number = revision.number
    if revision.hash != pod.content_hash or number <= status.current:
        return step
    if disk is None or not disk.is_current(pod) or disk.revision != number or disk.edits:
        return step
    settling = snapshot.settings.rollout.settling_time + READY_UNCERTAINTY
    age = (snapshot.now - pod.ready_since).total_seconds() if pod.ready_since else settling
    left = settling - age
    if left > 0:
        return step.with_requeue(left)
    message = f'node "{status.node}" already runs revision {number}'
    step = step.with_event("NodeCurrentRevisionChanged", message)
    return step.with_status(replace(status.without_failures(), current=number))


def _crash_loops(snapshot: Snapshot, pod: OperandPod) -> bool:
    """Whether a scheduler keeps crashing, and only its revision explains it."""
    often = pod.restarts >= snapshot.settings.rollout.crash_restarts
    return pod.crash_looping and often and not is_excused(snapshot, pod)


def _last_error(pod: OperandPod) -> str:
    return f": {pod.last_error}" if pod.last_error else ""


def fail_crashing(step: RolloutStep) -> RolloutStep:
    """Fail a revision whose scheduler began to crash soon after it was healthy.

    A revision that no node status has yet (see acknowledge) fails whenever it crashes.
    """
    snapshot = step.snapshot
    for status in step.node_statuses:
        pod = step.observation.operands.get(status.node)
        if status.target or not step.is_ready(status.node) or pod is None or pod.ready:
            continue
        revision = step.revised.revision(pod.revision)
        if revision is None or revision.bad or not _crash_loops(snapshot, pod):
            continue
        since = timestamp(annotation(revision.status, names.OUTCOME_TIME_ANNOTATION))
        probation = snapshot.settings.rollout.probation
        # In the future: by the clock of an earlier process, or in a restored API.
        young = since is not None and abs((snapshot.now - since).total_seconds()) <= probation
        if young or revision.number > status.current:
            message = (
                f'revision {revision.number} was installed on node "{status.node}" and then '
                f"crashed repeatedly{_last_error(pod)}"
            )
            event = Event("RevisionFailed", message, "Warning")
            step = step.with_outcome(revision, names.OUTCOME_FAILED, message, event)
    return step


def conclude(step: RolloutStep) -> RolloutStep:
    """Record which revisions are installed, i.e. healthy on a first node, and which superseded."""
    snapshot, revised = step.snapshot, step.revised
    busy = {status.target for status in step.node_statuses}
    current = {status.current for status in step.node_statuses}
    for revision in revised.history:
        gone = (names.OUTCOME_SUPERSEDED, names.OUTCOME_WITHDRAWN)
        number = revision.number
        done = revision.outcome not in ("", *gone)
        if done or not revision.ready or number in step.concluded:
            continue
        if number in current:
            outcome, message = names.OUTCOME_INSTALLED, ""
        elif revision.outcome in gone:
            continue
        elif number < revised.desired_number and number not in busy:
            outcome, message = names.OUTCOME_SUPERSEDED, "a newer revision replaced it"
        else:
            continue
        writes = record_outcome(revision, outcome, message, rfc3339(snapshot.now))
        step = step.with_actions(*writes, after_status=True)
    return step
