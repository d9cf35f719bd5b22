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

from ...base.times import seconds_left
from ...kube.resource import PODS
from ...model.api_outage import aftermath
from ...model.plan import Delete
from ...model.snapshot import Snapshot
from ..node_pods import installer_pod_name
from ..operand_image import image_in
from ..revision.revise import RevisionResult
from . import upgrades
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
from .observe import Observation
from .outcome import acknowledge, conclude, fail_crashing, finished
from .result import RolloutResult


def roll_out(
    snapshot: Snapshot, revised: RevisionResult, observation: Observation
) -> RolloutResult:
    """Decide the next step of every node."""
    before = tuple(read_node_status(raw) for raw in snapshot.status.get("nodeStatuses") or ())
    statuses = match_nodes(before, snapshot.nodes)
    result = RolloutResult(statuses, afterwards=observation.cleanup)
    if [status.node for status in statuses] != [status.node for status in before]:
        # The API refuses revisions in an element that is being added; the write of this change
        # brings the next reconcile.
        return result.with_requeue(0)

    images = {revision.number: image_in(revision) for revision in revised.history}
    desired = revised.desired
    image = images.get(desired.number, "") if desired is not None else ""
    disks = observation.disks
    result = replace(
        result,
        holds=upgrades.holds(snapshot, disks, statuses, images, image),
        requests=upgrades.requests(snapshot, disks, statuses, images),
        refusals=upgrades.refusals(snapshot, disks, statuses, images),
    )
    for status in statuses:
        result = acknowledge(snapshot, revised, observation, result, status)
    moving = next((status for status in result.node_statuses if status.target), None)
    if moving is not None:
        left = _patience_left(snapshot, observation, result, moving)
        if left is not None and left <= 0:
            why = observation.not_ready[moving.node]
            message = f"{why}: the rollout continues on the other nodes"
            result = result.with_event("NodeTargetRevisionChanged", message, warning=True)
            result = result.with_status(replace(moving, target=0))
        else:
            result = result if left is None else result.with_requeue(left)
            result = _advance(snapshot, revised, observation, result, moving)
    result, needed = _move(snapshot, revised, observation, result)
    result = fail_crashing(snapshot, revised, observation, result)
    result = conclude(snapshot, revised, result)
    result = _look_again(snapshot, observation, result)
    return _delete_unneeded(snapshot, observation, result, needed)


def _move(
    snapshot: Snapshot, revised: RevisionResult, observation: Observation, result: RolloutResult
) -> tuple[RolloutResult, set[str]]:
    """Move the next node if none is moving, prepare the others, and name the pods that do it."""
    desired = revised.desired
    if desired is None or not desired.ready or desired.number in result.concluded:
        return result, set()
    number = desired.number
    result, drifted = find_drift(snapshot, observation, result)
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
        result, chosen = _choose(snapshot, observation, result, able, number, drifted)
    if chosen is not None:
        result = _announce(snapshot, revised, observation, result, chosen, number, drifted)
    for status in able:
        if status is not chosen and number not in result.concluded:
            result = prepare(snapshot, revised, observation, result, status, desired)
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
    snapshot: Snapshot,
    observation: Observation,
    result: RolloutResult,
    able: Sequence[NodeStatus],
    desired: int,
    drifted: Mapping[str, str],
) -> tuple[RolloutResult, NodeStatus | None]:
    """The node to move next: unhealthy ones first, the holder of the scheduler's Lease last."""
    if not able:
        return result, None
    unwell = _unwell(observation, result, desired, drifted)
    if unwell is not None:
        # Two unavailable schedulers are worse than one with an older revision.
        waiting = f"revision {desired} is not Ready on this node"
        return result.with_waiting(unwell.node, waiting), None
    other = _installer_that_may_swap(snapshot, observation)
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
    if len(able) > 1 and not all(_is_staged(observation, status, desired) for status in able):
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


def _installer_that_may_swap(snapshot: Snapshot, observation: Observation) -> Installer | None:
    """An installer pod that has permission and may still use it.

    On an unreachable node, permission cannot be withdrawn, but the pod can be deleted: the kubelet
    learns of both at once and never starts a pod that is being deleted.
    """
    for found in observation.installers:
        if not found.may_swap or found.node not in snapshot.nodes:
            continue
        if found.node not in observation.not_ready or not found.deleting:
            return found
    return None


def _is_staged(observation: Observation, status: NodeStatus, desired: int) -> bool:
    """Whether the revision passed its check on a node and is on its disk.

    A result from an earlier KubeScheduler counts: it is read when the node is next.
    """
    name = installer_pod_name(status.node, desired, status.attempts(desired))
    found = observation.installer(name)
    if found is None or (found.stage is Stage.DONE and status.current == desired):
        return False
    if found.overtaken:
        return False  # it runs again
    return found.stage in (Stage.STAGED, Stage.DONE)


def _announce(
    snapshot: Snapshot,
    revised: RevisionResult,
    observation: Observation,
    result: RolloutResult,
    chosen: NodeStatus,
    desired: int,
    drifted: Mapping[str, str],
) -> RolloutResult:
    """Record the node's target, and after that permit its installer pod to roll out."""
    target = replace(chosen, target=desired)
    message = f'node "{chosen.node}": {chosen.current or "no revision"} -> revision {desired}'
    if chosen.current == desired:
        message = f'node "{chosen.node}": {drifted[chosen.node]}'
    result = result.with_status(target).with_event("NodeTargetRevisionChanged", message)
    found = observation.installer(
        installer_pod_name(chosen.node, desired, chosen.attempts(desired))
    )
    revision = revised.revision(desired)
    if found is None and revision is not None:
        return start(snapshot, revised, observation, result, target, revision, after_status=True)
    if found is not None and found.has_ended and (chosen.current == desired or found.overtaken):
        return forget_attempts(observation, result, chosen, desired)
    if found is not None and not found.permitted:
        return permit(result, found, after_status=True)
    return result


# --- a moving node ----------------------------------------------------------------------------


def _patience_left(
    snapshot: Snapshot, observation: Observation, result: RolloutResult, moving: NodeStatus
) -> float | None:
    """Seconds that the others wait for a moving node that is not Ready; None: no limit applies.

    Its installer pod is deleted before another node moves. The next pod finds on the disk where the
    swap stopped, and continues there when this node is next again.
    """
    if moving.node not in observation.not_ready:
        return None
    unreachable = {moving.node, *observation.not_ready}
    others = any(
        other.current < moving.target and other.node not in unreachable
        for other in result.node_statuses
    )
    since = not_ready_since(snapshot.nodes[moving.node])
    if not others or since is None:
        return None
    # The controller manager, which writes this time, may have another clock.
    return seconds_left(snapshot.now, since, snapshot.settings.rollout.pending_tolerance)


def _advance(
    snapshot: Snapshot,
    revised: RevisionResult,
    observation: Observation,
    result: RolloutResult,
    status: NodeStatus,
) -> RolloutResult:
    """Bring the moving node one step further, or end its move."""
    found = observation.installer(installer_pod_name(status.node, status.target, status.attempt))
    revision = revised.revision(status.target)
    if found is not None and found.stage is Stage.DONE:
        return finished(snapshot, revised, observation, result, status, found, revision)
    if found is not None and found.swapping:
        # An interrupted swap could leave an unproven scheduler behind.
        return wait(snapshot, result, status, found)
    desired = revised.desired
    stopped = result.with_status(replace(status, target=0))
    if desired is not None and desired.number != status.target:
        message = (
            f'node "{status.node}": revision {desired.number} instead of {status.target}, which it '
            "had not reached"
        )
        return stopped.with_event("NodeTargetRevisionChanged", message)
    if revision is None or revision.bad or desired is None:
        return stopped
    if aftermath(snapshot)[0] > 0 and not (found is not None and found.permitted):
        return stopped  # choose again once the outage is over
    return proceed(snapshot, revised, observation, result, status, revision, found)


def _look_again(
    snapshot: Snapshot, observation: Observation, result: RolloutResult
) -> RolloutResult:
    """Delete installer pods that found a running upgrade, where no guard reports its end."""
    for found in observation.installers:
        if not found.overtaken or not found.result or not found.result.work or found.deleting:
            continue
        disk = observation.disks.get(found.node)
        if found.ended_at is None or disk is None or disk.by_guard:
            continue
        left = seconds_left(snapshot.now, found.ended_at, upgrades.LOOK_AGAIN)
        if left:
            result = result.with_requeue(left)
            continue
        result = result.with_actions(Delete(PODS, found.pod))
    return result


def _delete_unneeded(
    snapshot: Snapshot, observation: Observation, result: RolloutResult, needed: set[str]
) -> RolloutResult:
    """Delete installer pods that no node needs; those that have ended stay for their logs.

    Pods that another client has labeled stay as well.
    """
    needed = needed | {
        installer_pod_name(status.node, status.target, status.attempt)
        for status in result.node_statuses
        if status.target
    }
    for found in observation.installers:
        if found.deleting or found.name in needed or (found.has_ended and found.revision):
            continue  # a restore pod that has ended must not be read as a new result later
        if not found.has_own_name or (found.swapping and found.node in snapshot.nodes):
            continue
        result = result.with_actions(Delete(PODS, found.pod), after_status=True)
    return result
