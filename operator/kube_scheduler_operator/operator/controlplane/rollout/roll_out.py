"""The rollout step: what each node does next.

Every node that is behind gets an installer pod at once. Each pod checks the configuration with the
kube-scheduler binary, stages the revision on its node, and waits. When all checks have passed, one
node after the other gets permission to roll out: its installer replaces the static pod and decides
whether the new scheduler is healthy; this step reads the result and records it. So at most one
scheduler is down at any time, and none is touched if the revision is refused or cannot be staged on
some node. A node's `currentRevision` is written when its installer reports the new scheduler
healthy and the mirror pod agrees.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace

from ....base.times import seconds_left
from ....kube.resource import PODS
from ...model.api_outage import aftermath
from ...model.plan import Delete
from ...model.snapshot import Snapshot
from ..node_pods import installer_pod_name
from ..revision.history import Revision
from ..revision.revise import RevisionResult
from . import kubeadm_upgrades as upgrades
from .drift import find_drift
from .installer_pods import Installer, Stage
from .installer_steps import forget_attempts, permit, prepare, proceed, start, wait
from .node_statuses import NodeStatus, match_nodes, not_ready_since, read_node_status
from .observe import Observation
from .outcome import acknowledge, conclude, fail_crashing, finished
from .repairs import Repair, find_repairs, is_repaired, next_repair
from .rollout_step import RolloutStep


def roll_out(snapshot: Snapshot, revised: RevisionResult, observation: Observation) -> RolloutStep:
    before = tuple(read_node_status(raw) for raw in snapshot.status.get("nodeStatuses") or ())
    statuses = match_nodes(before, snapshot.nodes)
    step = RolloutStep(snapshot, revised, observation, statuses, afterwards=observation.cleanup)
    if [status.node for status in statuses] != [status.node for status in before]:
        # The API refuses revisions in an element that is being added; the write of this change
        # brings the next reconcile.
        return step.with_requeue(0)

    disks = upgrades.with_images(observation.disks, statuses, revised.history)
    image = revised.desired.content.image if revised.desired is not None else ""
    step = replace(
        step,
        holds=upgrades.holds(snapshot, disks, image),
        requests=upgrades.requests(snapshot, disks),
        refusals=upgrades.refusals(snapshot, disks),
    )
    for status in statuses:
        step = acknowledge(step, status)
    moving = next((status for status in step.node_statuses if status.target), None)
    if moving is not None:
        left = _patience_left(step, moving)
        if left is not None and left <= 0:
            why = observation.not_ready[moving.node]
            message = f"{why}: the rollout continues on the other nodes"
            step = step.with_event("NodeTargetRevisionChanged", message, warning=True)
            step = step.with_status(replace(moving, target=0))
        else:
            step = step if left is None else step.with_requeue(left)
            step = _advance(step, moving)
    step, needed = _move(step)
    return _delete_unneeded(_look_again(conclude(fail_crashing(step))), needed)


def _move(step: RolloutStep) -> tuple[RolloutStep, set[str]]:
    """Move the next node if none is moving, prepare the others, and name the pods that do it."""
    desired = step.revised.desired
    if desired is None or not desired.ready or desired.number in step.concluded:
        return step, set()
    number = desired.number
    step, drifted = find_drift(step)
    repairs = find_repairs(step, number, drifted)
    behind = [status for status in step.node_statuses if status.current < number]
    step, able = _able(step, [status for status in behind if not status.target])
    chosen: NodeStatus | None = None
    target = desired
    if not step.moving and (able or repairs):
        step, chosen, target = _choose(step, able, repairs, desired)
    if chosen is not None:
        why = "" if target.number > chosen.current else drifted[chosen.node]
        step = _announce(step, chosen, target, why)
    step = _prepare(step, [one for one in able if one is not chosen], repairs, desired)
    if number in step.concluded:
        return step, set()
    return step, {
        installer_pod_name(status.node, revision, status.attempts(revision))
        for status, revision in (
            *((status, number) for status in behind),
            *((repair.status, repair.revision.number) for repair in repairs),
        )
    }


def _able(step: RolloutStep, behind: Sequence[NodeStatus]) -> tuple[RolloutStep, list[NodeStatus]]:
    """The nodes that may have the desired revision now, and what the others wait for."""
    for status in behind:
        if not step.is_ready(status.node):
            step = step.with_waiting(status.node, "the node is not Ready")
        elif hold := step.holds.get(status.node):
            step = step.with_waiting(status.node, hold.why)
    able = [
        status for status in behind if step.is_ready(status.node) and status.node not in step.holds
    ]
    return step, able


def _prepare(
    step: RolloutStep, able: Sequence[NodeStatus], repairs: Sequence[Repair], desired: Revision
) -> RolloutStep:
    """Check and stage, on nodes that are not next, the revision that each will get."""
    moving = step.moving
    for status in able:
        if status.node not in moving and desired.number not in step.concluded:
            step = prepare(step, status, desired)
    others = {status.node for status in able} | moving
    for repair in repairs:
        if repair.node not in others and repair.revision.number not in step.concluded:
            step = prepare(step, repair.status, repair.revision)
    return step


# --- choosing ---------------------------------------------------------------------------------


def _choose(
    step: RolloutStep, able: Sequence[NodeStatus], repairs: Sequence[Repair], desired: Revision
) -> tuple[RolloutStep, NodeStatus | None, Revision]:
    """The node to change next, and the revision that it gets.

    A repair that stops no scheduler comes first, one that restarts a scheduler last.
    """
    step, free = _is_free(step, [*able, *(repair.status for repair in repairs)])
    if not free:
        return step, None, desired
    step, repair = next_repair(step, repairs, running=False)
    if repair is None:
        step, chosen = _next_behind(step, able, repairs, desired.number)
        if chosen is not None:
            return step, chosen, desired
        step, repair = next_repair(step, repairs, running=True)
    return (step, repair.status, repair.revision) if repair else (step, None, desired)


def _is_free(step: RolloutStep, waiting: Sequence[NodeStatus]) -> tuple[RolloutStep, bool]:
    """Whether no scheduler is being replaced, and none may still exit because of an outage."""
    other = _installer_that_may_swap(step)
    if other is not None and not step.is_ready(other.node):
        return step.with_actions(Delete(PODS, other.pod)), False
    if other is not None:
        return step.with_waiting(other.node, f"{other.name} has not ended yet"), False
    left, why = aftermath(step.snapshot)
    if left > 0:
        return _all_wait(step, waiting, why).with_requeue(left), False
    return step, True


def _next_behind(
    step: RolloutStep, able: Sequence[NodeStatus], repairs: Sequence[Repair], desired: int
) -> tuple[RolloutStep, NodeStatus | None]:
    """The next node for the desired revision: unhealthy ones first, the Lease's holder last."""
    if not able:
        return step, None
    unwell = _unwell(step, desired, {repair.node for repair in repairs})
    if unwell is not None:
        # Two unavailable schedulers are worse than one with an older revision.
        waiting = f"revision {desired} is not Ready on this node"
        return step.with_waiting(unwell.node, waiting), None
    if step.busy:
        # kubeadm waits until the schedulers of all nodes run, and fails if one does not.
        why = f"`kubeadm upgrade` may be running on {', '.join(step.busy)}"
        return _all_wait(step, able, why), None
    if len(able) > 1 and not all(_is_staged(step, status, desired) for status in able):
        return step, None  # a single node checks and swaps in one go
    return step, min(able, key=step.order)


def _unwell(step: RolloutStep, desired: int, repaired: Container[str]) -> NodeStatus | None:
    """A node that has the desired revision and is Ready, but whose scheduler is not."""
    for status in step.node_statuses:
        unwell = step.is_ready(status.node) and step.is_down(status.node)
        if status.current == desired and unwell and status.node not in repaired:
            return status
    return None


def _all_wait(step: RolloutStep, able: Sequence[NodeStatus], why: str) -> RolloutStep:
    for status in able:
        step = step.with_waiting(status.node, why)
    return step


def _installer_that_may_swap(step: RolloutStep) -> Installer | None:
    """An installer pod that has permission and may still use it.

    On an unreachable node, permission cannot be withdrawn, but the pod can be deleted: the kubelet
    learns of both at once and never starts a pod that is being deleted.
    """
    for pod in step.observation.installers:
        if not pod.may_swap or pod.node not in step.snapshot.nodes:
            continue
        if step.is_ready(pod.node) or not pod.deleting:
            return pod
    return None


def _is_staged(step: RolloutStep, status: NodeStatus, desired: int) -> bool:
    """Whether the revision passed its check on a node and is on its disk.

    A result from an earlier KubeScheduler counts: it is read when the node is next.
    """
    installer = step.installer(status, desired)
    if installer is None or installer.overtaken:  # an overtaken one runs again
        return False
    return installer.stage in (Stage.DONE, Stage.STAGED)


def _announce(
    step: RolloutStep, chosen: NodeStatus, revision: Revision, repair: str
) -> RolloutStep:
    """Record the node's target, and after that permit its installer pod to roll out."""
    number = revision.number
    target = replace(chosen, target=number)
    what = repair or f"{chosen.current or 'no revision'} -> revision {number}"
    message = f'node "{chosen.node}": {what}'
    step = step.with_status(target).with_event("NodeTargetRevisionChanged", message)
    installer = step.installer(chosen, number)
    if installer is None:
        return start(step, target, revision, after_status=True)
    if installer.has_ended and (chosen.current == number or installer.overtaken):
        return forget_attempts(step, chosen, number)
    if not installer.permitted:
        return permit(step, installer, after_status=True)
    return step


# --- a moving node ----------------------------------------------------------------------------


def _patience_left(step: RolloutStep, moving: NodeStatus) -> float | None:
    """Seconds that the others wait for a moving node that is not Ready; None: no limit applies.

    Its installer pod is deleted before another node moves. The next pod finds on the disk where the
    swap stopped, and continues there when this node is next again.
    """
    snapshot = step.snapshot
    if step.is_ready(moving.node):
        return None
    number = max(moving.target, step.revised.desired_number)
    others = any(
        step.is_ready(other.node) and (other.current < number or step.is_down(other.node))
        for other in step.node_statuses
    )
    since = not_ready_since(snapshot.nodes[moving.node])
    if not others or since is None:
        return None
    # The controller manager, which writes this time, may have another clock.
    return seconds_left(snapshot.now, since, snapshot.settings.rollout.pending_tolerance)


def _advance(step: RolloutStep, status: NodeStatus) -> RolloutStep:
    """Bring the moving node one step further, or end its move."""
    desired, installer = step.revised.desired, step.installer(status, status.target)
    if installer is not None and installer.stage is Stage.DONE:
        return finished(step, status, installer)
    if installer is not None and installer.swapping:
        # An interrupted swap could leave an unproven scheduler behind.
        return wait(step, status, installer)
    stopped = step.with_status(replace(status, target=0))
    if desired is not None and desired.number != status.target and not _repairs(step, status):
        message = (
            f'node "{status.node}": revision {desired.number} instead of {status.target}, which it '
            "had not reached"
        )
        return stopped.with_event("NodeTargetRevisionChanged", message)
    revision = step.revised.revision(status.target)
    if revision is None or revision.bad or desired is None:
        return stopped
    if aftermath(step.snapshot)[0] > 0 and not (installer is not None and installer.permitted):
        return stopped  # choose again once the outage is over
    return proceed(step, status, revision)


def _repairs(step: RolloutStep, status: NodeStatus) -> bool:
    """Whether a moving node still gets its current revision before the desired one."""
    desired = step.revised.desired_number
    return status.target == status.current and is_repaired(step, status, desired)


def _look_again(step: RolloutStep) -> RolloutStep:
    """Delete installer pods that found a running upgrade, where no guard reports its end."""
    for pod in step.observation.installers:
        disk = step.observation.disks.get(pod.node)
        if disk is None or disk.by_guard or not disk.work or pod.deleting:
            continue
        if pod.ended_at is None or not pod.result or not pod.result.work:
            continue
        left = seconds_left(step.snapshot.now, pod.ended_at, upgrades.LOOK_AGAIN)
        step = step.with_requeue(left) if left else step.with_actions(Delete(PODS, pod.pod))
    return step


def _delete_unneeded(step: RolloutStep, needed: set[str]) -> RolloutStep:
    """Delete installer pods that no node needs; those that have ended stay for their logs.

    Pods that another client has labeled stay as well.
    """
    needed = needed | {
        installer_pod_name(status.node, status.target, status.attempts(status.target))
        for status in step.node_statuses
        if status.target
    }
    for pod in step.observation.installers:
        if pod.deleting or pod.name in needed or (pod.has_ended and pod.revision):
            continue  # a restore pod that has ended must not be read as a new result later
        if not pod.has_own_name or (pod.swapping and pod.node in step.snapshot.nodes):
            continue
        step = step.with_actions(Delete(PODS, pod.pod), after_status=True)
    return step
