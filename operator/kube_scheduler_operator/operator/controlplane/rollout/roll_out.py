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

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ....base.times import seconds_left
from ....kube.resource import PODS
from ...model.api_outage import aftermath
from ...model.plan import Delete
from ...model.snapshot import Snapshot
from ..node_pods import installer_pod_name
from ..operand_image import image_in
from ..revision.history import Revision
from ..revision.revise import RevisionResult
from . import kubeadm_upgrades as upgrades
from .drift import find_drift
from .installer_pods import Installer, Stage
from .installer_steps import forget_attempts, permit, prepare, proceed, start, wait
from .node_statuses import (
    NodeStatus,
    match_nodes,
    not_ready_since,
    read_node_status,
    rollout_order,
)
from .observe import Observation, Situation
from .outcome import acknowledge, conclude, fail_crashing, finished
from .rollout_result import RolloutResult


def roll_out(
    snapshot: Snapshot, revised: RevisionResult, observation: Observation
) -> RolloutResult:
    situation = Situation(snapshot, revised, observation)
    before = tuple(read_node_status(raw) for raw in snapshot.status.get("nodeStatuses") or ())
    statuses = match_nodes(before, snapshot.nodes)
    result = RolloutResult(statuses, afterwards=observation.cleanup)
    if [status.node for status in statuses] != [status.node for status in before]:
        # The API refuses revisions in an element that is being added; the write of this change
        # brings the next reconcile.
        return result.with_requeue(0)

    images = {revision.number: image_in(revision) for revision in revised.history}
    image = images.get(revised.desired.number, "") if revised.desired is not None else ""
    disks = observation.disks
    result = replace(
        result,
        holds=upgrades.holds(snapshot, disks, statuses, images, image),
        requests=upgrades.requests(snapshot, disks, statuses, images),
        refusals=upgrades.refusals(snapshot, disks, statuses, images),
    )
    for status in statuses:
        result = acknowledge(situation, result, status)
    moving = next((status for status in result.node_statuses if status.target), None)
    if moving is not None:
        left = _patience_left(situation, result, moving)
        if left is not None and left <= 0:
            why = observation.not_ready[moving.node]
            message = f"{why}: the rollout continues on the other nodes"
            result = result.with_event("NodeTargetRevisionChanged", message, warning=True)
            result = result.with_status(replace(moving, target=0))
        else:
            result = result if left is None else result.with_requeue(left)
            result = _advance(situation, result, moving)
    result, needed = _move(situation, result)
    result = fail_crashing(situation, result)
    result = conclude(situation, result)
    result = _look_again(situation, result)
    return _delete_unneeded(situation, result, needed)


def _move(situation: Situation, result: RolloutResult) -> tuple[RolloutResult, set[str]]:
    """Move the next node if none is moving, prepare the others, and name the pods that do it."""
    desired, observation = situation.revised.desired, situation.observation
    if desired is None or not desired.ready or desired.number in result.concluded:
        return result, set()
    number = desired.number
    result, drifted = find_drift(situation, result)
    behind = [status for status in _behind(result, number, drifted) if not status.target]
    for status in behind:
        if status.node in observation.not_ready:
            result = result.with_waiting(status.node, "the node is not Ready")
        elif hold := result.holds.get(status.node):
            result = result.with_waiting(status.node, hold.why)
    able = [
        status
        for status in behind
        if status.node not in observation.not_ready and status.node not in result.holds
    ]
    chosen = None
    if not any(status.target for status in result.node_statuses):
        result, chosen = _choose(situation, result, able, number, drifted)
    if chosen is not None:
        result = _announce(situation, result, chosen, desired, drifted)
    for status in able:
        if status is not chosen and number not in result.concluded:
            result = prepare(situation, result, status, desired)
    if number in result.concluded:
        return result, set()
    return result, {
        installer_pod_name(status.node, number, status.attempts(number))
        for status in _behind(result, number, drifted)
    }


def _behind(result: RolloutResult, desired: int, drifted: Mapping[str, str]) -> list[NodeStatus]:
    """The nodes to move to the desired revision, or back to it."""
    return [
        status
        for status in result.node_statuses
        if status.current < desired or (status.current == desired and status.node in drifted)
    ]


# --- choosing ---------------------------------------------------------------------------------


def _choose(
    situation: Situation,
    result: RolloutResult,
    able: Sequence[NodeStatus],
    desired: int,
    drifted: Mapping[str, str],
) -> tuple[RolloutResult, NodeStatus | None]:
    """The node to move next: unhealthy ones first, the holder of the scheduler's Lease last."""
    if not able:
        return result, None
    snapshot, observation = situation.snapshot, situation.observation
    unwell = _unwell(observation, result, desired, drifted)
    if unwell is not None:
        # Two unavailable schedulers are worse than one with an older revision.
        waiting = f"revision {desired} is not Ready on this node"
        return result.with_waiting(unwell.node, waiting), None
    other = _installer_that_may_swap(situation)
    if other is not None and other.node in observation.not_ready:
        return result.with_actions(Delete(PODS, other.pod)), None
    if other is not None:
        return result.with_waiting(other.node, f"{other.name} has not ended yet"), None
    busy = sorted(node for node, hold in result.holds.items() if hold.work)
    if busy:
        # kubeadm waits until the schedulers of all nodes run, and fails if one does not.
        return _all_wait(result, able, f"`kubeadm upgrade` is running on {', '.join(busy)}"), None
    left, why = aftermath(snapshot)
    if left > 0:
        return _all_wait(result, able, why).with_requeue(left), None
    if len(able) > 1 and not all(_is_staged(situation, status, desired) for status in able):
        return result, None  # a single node checks and swaps in one go
    return result, min(able, key=lambda s: rollout_order(snapshot, observation.operands, s))


def _unwell(
    observation: Observation, result: RolloutResult, desired: int, drifted: Mapping[str, str]
) -> NodeStatus | None:
    """A node that has the desired revision and is Ready, but whose scheduler is not."""
    for status in result.node_statuses:
        pod = observation.operands.get(status.node)
        unwell = status.node not in observation.not_ready and (pod is None or not pod.ready)
        if status.current == desired and unwell and status.node not in drifted:
            return status
    return None


def _all_wait(result: RolloutResult, able: Sequence[NodeStatus], why: str) -> RolloutResult:
    for status in able:
        result = result.with_waiting(status.node, why)
    return result


def _installer_that_may_swap(situation: Situation) -> Installer | None:
    """An installer pod that has permission and may still use it.

    On an unreachable node, permission cannot be withdrawn, but the pod can be deleted: the kubelet
    learns of both at once and never starts a pod that is being deleted.
    """
    for pod in situation.observation.installers:
        if not pod.may_swap or pod.node not in situation.snapshot.nodes:
            continue
        if pod.node not in situation.not_ready or not pod.deleting:
            return pod
    return None


def _is_staged(situation: Situation, status: NodeStatus, desired: int) -> bool:
    """Whether the revision passed its check on a node and is on its disk.

    A result from an earlier KubeScheduler counts: it is read when the node is next.
    """
    installer = situation.installer(status, desired)
    if installer is None or installer.overtaken:  # an overtaken one runs again
        return False
    if installer.stage is Stage.DONE:
        return status.current != desired
    return installer.stage is Stage.STAGED


def _announce(
    situation: Situation,
    result: RolloutResult,
    chosen: NodeStatus,
    desired: Revision,
    drifted: Mapping[str, str],
) -> RolloutResult:
    """Record the node's target, and after that permit its installer pod to roll out."""
    number = desired.number
    target = replace(chosen, target=number)
    message = f'node "{chosen.node}": {chosen.current or "no revision"} -> revision {number}'
    if chosen.current == number:
        message = f'node "{chosen.node}": {drifted[chosen.node]}'
    result = result.with_status(target).with_event("NodeTargetRevisionChanged", message)
    installer = situation.installer(chosen, number)
    if installer is None:
        return start(situation, result, target, desired, after_status=True)
    if installer.has_ended and (chosen.current == number or installer.overtaken):
        return forget_attempts(situation, result, chosen, number)
    if not installer.permitted:
        return permit(result, installer, after_status=True)
    return result


# --- a moving node ----------------------------------------------------------------------------


def _patience_left(situation: Situation, result: RolloutResult, moving: NodeStatus) -> float | None:
    """Seconds that the others wait for a moving node that is not Ready; None: no limit applies.

    Its installer pod is deleted before another node moves. The next pod finds on the disk where the
    swap stopped, and continues there when this node is next again.
    """
    snapshot, not_ready = situation.snapshot, situation.not_ready
    if moving.node not in not_ready:
        return None
    others = any(
        other.current < moving.target and other.node not in not_ready
        for other in result.node_statuses
    )
    since = not_ready_since(snapshot.nodes[moving.node])
    if not others or since is None:
        return None
    # The controller manager, which writes this time, may have another clock.
    return seconds_left(snapshot.now, since, snapshot.settings.rollout.pending_tolerance)


def _advance(situation: Situation, result: RolloutResult, status: NodeStatus) -> RolloutResult:
    """Bring the moving node one step further, or end its move."""
    snapshot, desired = situation.snapshot, situation.revised.desired
    installer = situation.installer(status, status.target)
    if installer is not None and installer.stage is Stage.DONE:
        return finished(situation, result, status, installer)
    if installer is not None and installer.swapping:
        # An interrupted swap could leave an unproven scheduler behind.
        return wait(snapshot, result, status, installer)
    stopped = result.with_status(replace(status, target=0))
    if desired is not None and desired.number != status.target:
        message = (
            f'node "{status.node}": revision {desired.number} instead of {status.target}, which it '
            "had not reached"
        )
        return stopped.with_event("NodeTargetRevisionChanged", message)
    revision = situation.revised.revision(status.target)
    if revision is None or revision.bad or desired is None:
        return stopped
    if aftermath(snapshot)[0] > 0 and not (installer is not None and installer.permitted):
        return stopped  # choose again once the outage is over
    return proceed(situation, result, status, revision)


def _look_again(situation: Situation, result: RolloutResult) -> RolloutResult:
    """Delete installer pods that found a running upgrade, where no guard reports its end."""
    for pod in situation.observation.installers:
        if not pod.overtaken or not pod.result or not pod.result.work or pod.deleting:
            continue
        disk = situation.observation.disks.get(pod.node)
        if pod.ended_at is None or disk is None or disk.by_guard:
            continue
        left = seconds_left(situation.snapshot.now, pod.ended_at, upgrades.LOOK_AGAIN)
        result = result.with_requeue(left) if left else result.with_actions(Delete(PODS, pod.pod))
    return result


def _delete_unneeded(
    situation: Situation, result: RolloutResult, needed: set[str]
) -> RolloutResult:
    """Delete installer pods that no node needs; those that have ended stay for their logs.

    Pods that another client has labeled stay as well.
    """
    needed = needed | {
        installer_pod_name(status.node, status.target, status.attempts(status.target))
        for status in result.node_statuses
        if status.target
    }
    for pod in situation.observation.installers:
        if pod.deleting or pod.name in needed or (pod.has_ended and pod.revision):
            continue  # a restore pod that has ended must not be read as a new result later
        if not pod.has_own_name or (pod.swapping and pod.node in situation.snapshot.nodes):
            continue
        result = result.with_actions(Delete(PODS, pod.pod), after_status=True)
    return result
