"""Removal: restores the earlier scheduler of each node, then deletes the operator's objects.

Progress is stored in the API only: a node status means that the node is not restored yet, and a
restore pod that has ended is an attempt and has its result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ....base import names
from ....base.objects import Object, label
from ....base.times import seconds_left
from ....kube.resource import (
    CONFIG_MAPS,
    DISRUPTION_BUDGETS,
    KUBE_SCHEDULERS,
    NETWORK_POLICIES,
    PODS,
    SECRETS,
    SERVICE_ACCOUNTS,
    Resource,
)
from ....node.protocol.result import InstallerOutcome
from ...model.apply import deletions
from ...model.plan import Action, Create, Delete, Event, Replace
from ...model.snapshot import Snapshot
from ..node_pods import InstallerSettings, render_restore_pod, restore_pod_name
from ..revision.revise import RevisionResult
from .installer_pods import Installer
from .node_statuses import NodeStatus, read_node_status
from .observe import Observation, observe
from .rollout_step import RolloutStep


@dataclass(frozen=True, slots=True)
class Removal:
    step: RolloutStep  # the node statuses that are left, and the writes
    failures: Mapping[str, str] = field(default_factory=dict)  # node -> why the last attempt failed

    @property
    def done(self) -> bool:
        """Whether nothing of the operator is left on any node."""
        return not self.step.node_statuses

    @property
    def progress(self) -> str:
        if self.done:
            return (
                "every node runs a scheduler that is not the operator's, and nothing of the "
                "operator is left on the nodes or in the API; it can be uninstalled"
            )
        left = [status.node for status in self.step.node_statuses]
        waits = {node: self.step.waiting.get(node, "waits for the other nodes") for node in left}
        details = "; ".join(
            f"{node}: {self.failures[node]}; {wait}" if node in self.failures else f"{node}: {wait}"
            for node, wait in waits.items()
        )
        nodes = "1 node" if len(left) == 1 else f"{len(left)} nodes"
        return f"restoring the adopted scheduler on {nodes}: {details}"


def remove(snapshot: Snapshot) -> Removal:
    observation = observe(snapshot)
    statuses = _left(snapshot, observation)
    step = RolloutStep(
        snapshot, RevisionResult(), observation, statuses, afterwards=observation.cleanup
    )
    failures = {
        status.node: failure
        for status in statuses
        if (failure := _failure(_last(observation, status.node)))
    }
    step, quiet = _stop_installers(step)
    if quiet:
        for status in statuses:
            step = _conclude(step, status)
        if step.node_statuses:
            step = _try_next(step)
        else:
            step = step.with_actions(*_delete_objects(snapshot), after_status=True)
    return Removal(step, failures)


def _left(snapshot: Snapshot, observation: Observation) -> tuple[NodeStatus, ...]:
    """Nodes with remains of the operator: they have a status or run a revision."""
    known = [read_node_status(raw) for raw in snapshot.status.get("nodeStatuses") or ()]
    uids = {name: str(node["metadata"].get("uid", "")) for name, node in snapshot.nodes.items()}
    existing = [
        replace(status, target=0)
        for status in known
        if status.node in uids and status.uid in ("", uids[status.node])
    ]
    listed = {status.node for status in existing}
    running = [
        node for node, pod in sorted(observation.operands.items()) if pod.ours and node in uids
    ]
    return (*existing, *(NodeStatus(node, uids[node]) for node in running if node not in listed))


def _stop_installers(step: RolloutStep) -> tuple[RolloutStep, bool]:
    """Delete installer pods that have not begun; also whether no pod works on a node."""
    quiet = True
    for pod in step.observation.installers:
        if pod.has_ended or pod.node not in step.snapshot.nodes:
            continue
        if pod.revision and not pod.swapping and not pod.deleting:
            step = step.with_actions(Delete(PODS, pod.pod), after_status=True)
        if not pod.revision and not step.is_ready(pod.node):
            continue  # the node may never come back
        step = step.with_waiting(pod.node, f"{pod.name} has not ended yet")
        quiet = False
    return step, quiet


def _last(observation: Observation, node: str) -> Installer | None:
    """The newest attempt on a node, including one that is still running."""
    attempts = [pod for pod in observation.installers if pod.node == node and not pod.revision]
    return max(attempts, key=_retry) if attempts else None


def _retry(installer: Installer) -> int:
    arguments = installer.pod["spec"]["containers"][0].get("args", ())
    return next((int(a.partition("=")[2]) for a in arguments if a.startswith("--retry=")), 0)


def _failure(last: Installer | None) -> str:
    if last is None or not last.has_ended:
        return ""
    if last.result is None:
        return last.message
    if last.result.result is InstallerOutcome.RESTORED:
        return ""
    error = f": {last.result.last_error}" if last.result.last_error else ""
    return f"{last.result.reason}{error}"


def _conclude(step: RolloutStep, status: NodeStatus) -> RolloutStep:
    """Drop a node that is restored: its pod reports so, and the API shows another scheduler."""
    snapshot, observation = step.snapshot, step.observation
    last, pod = _last(observation, status.node), observation.operands.get(status.node)
    if last is None or last.result is None:
        return step
    if last.result.result is not InstallerOutcome.RESTORED:
        return step
    if pod is None or pod.ours or not pod.ready:
        patience = snapshot.settings.rollout.health_timeout
        if last.ended_at is not None and seconds_left(snapshot.now, last.ended_at, patience):
            waiting = "the API does not yet show the scheduler as Ready"
            return step.with_waiting(status.node, waiting).with_requeue(2.0)
        return step
    message = f'node "{status.node}" runs a scheduler that is not the operator\'s'
    if last.result.strangers:
        unknown = ", ".join(last.result.strangers)
        message += f"; directories that belong to no revision are kept: {unknown}"
    left = tuple(other for other in step.node_statuses if other.node != status.node)
    return replace(step.with_event("NodeSchedulerRestored", message), node_statuses=left)


def _try_next(step: RolloutStep) -> RolloutStep:
    for status in step.node_statuses:
        if not step.is_ready(status.node):
            step = step.with_waiting(status.node, "the node is not Ready")
    able = [status for status in step.node_statuses if step.is_ready(status.node)]
    # A scheduler that failed on one node will probably fail on the next.
    failing = [
        status
        for status in able
        if (last := _last(step.observation, status.node)) and last.result and last.result.failed
    ]
    for status in sorted(failing or able, key=step.order):
        node = status.node
        if node in step.waiting:
            return step  # restored, but the API does not show it yet
        last = _last(step.observation, node)
        retry = 0 if last is None else _retry(last) + 1
        if last is not None:
            backing_off = _backing_off(step, last, retry)
            if backing_off is not None:
                step = backing_off
                continue
        if restore_pod_name(node, retry) in step.snapshot.installer_pods:
            continue
        return _start(step, node, retry)
    return step


def _backing_off(step: RolloutStep, last: Installer, retry: int) -> RolloutStep | None:
    """The step with the back-off after the last attempt; None if it need not wait."""
    pod = step.observation.operands.get(last.node)
    if last.result is not None and pod is not None and not pod.ours and pod.ready:
        return None  # another scheduler was installed meanwhile, as requested
    # A pod that was lost as a whole, for example by eviction, does not record when.
    since = last.ended_at or last.created
    return step.backing_off(last.node, retry, since) if since is not None else None


def _start(step: RolloutStep, node: str, retry: int) -> RolloutStep:
    platform, settings = step.snapshot.platform, step.snapshot.settings
    timing = InstallerSettings(settings.rollout.health_timeout, settings.rollout.settling_time)
    pod = render_restore_pod(platform, node, retry, settings.operator_image, timing)
    message = f'restoring the adopted scheduler on "{node}"'
    create = Create(PODS, pod, events=(Event("RestorePodCreated", message),))
    return step.with_waiting(node, "the restore pod is starting").with_actions(create)


def _delete_objects(snapshot: Snapshot) -> list[Action]:
    objects: tuple[tuple[Resource, Mapping[str, Object]], ...] = (
        (CONFIG_MAPS, snapshot.config_maps),
        (SECRETS, _ours(snapshot.secrets)),
        (SERVICE_ACCOUNTS, snapshot.service_accounts),
        (PODS, snapshot.installer_pods),
        (PODS, snapshot.guard_pods),
        (NETWORK_POLICIES, _ours(snapshot.network_policies)),
        (DISRUPTION_BUDGETS, snapshot.disruption_budgets),
    )
    actions: list[Action] = []
    for resource, by_name in objects:
        actions += deletions(resource, by_name)
    if "observedConfig" in snapshot.spec:
        spec = {key: value for key, value in snapshot.spec.items() if key != "observedConfig"}
        actions.append(Replace(KUBE_SCHEDULERS, {**(snapshot.kubescheduler or {}), "spec": spec}))
    return actions


def _ours(objects: Mapping[str, Object]) -> dict[str, Object]:
    return {
        name: obj
        for name, obj in objects.items()
        if label(obj, names.MANAGED_BY_LABEL) == names.PROGRAM
    }
