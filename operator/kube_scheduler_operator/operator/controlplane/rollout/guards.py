"""Guard pods: one for each node, Ready when its scheduler is, counted by a PodDisruptionBudget.

`kubectl drain` evicts a guard pod, and waits if more than one scheduler would then be missing. A
guard also reports what its node's disk has, and changes of the kubeconfig, the manifest or the
revision's files (node/static_pod/guard.py). A cordoned node gets no new guard, or its drain would
never end.
"""

from __future__ import annotations

import json
from functools import lru_cache
from hashlib import sha256
from typing import Any

from ....base import names
from ....base.objects import Object, annotation, is_being_deleted
from ....base.platform import Platform
from ....base.templates import canonical_json
from ....kube.resource import DISRUPTION_BUDGETS, PODS
from ...model.apply import annotated, apply, deletions
from ...model.operand_pods import NodeDisk
from ...model.plan import Action, Create, Delete, Replace
from ...model.snapshot import Snapshot
from ..node_pods import guard_pod_name, render_guard_pod
from ..target_config_maps import guard_disruption_budget
from .drift import keeps_hand_edits
from .node_statuses import NodeStatus, is_cordoned
from .observe import guard_report
from .rollout_step import RolloutStep


def plan_guards(step: RolloutStep) -> tuple[Action, ...]:
    """Correct the guard pods and their budget.

    A node whose mirror pod shows a revision number above all that the API knows gets a new guard,
    which looks at its disk.
    """
    snapshot = step.snapshot
    return (*_budget(snapshot), *_obsolete(snapshot), *_pods(step))


def _budget(snapshot: Snapshot) -> tuple[Action, ...]:
    desired = guard_disruption_budget(snapshot.platform, len(snapshot.nodes))
    budgets = snapshot.disruption_budgets
    if len(snapshot.nodes) > 1:
        return apply(DISRUPTION_BUDGETS, budgets, desired, ("spec",))
    name = desired["metadata"]["name"]
    return deletions(DISRUPTION_BUDGETS, {name: budgets[name]} if name in budgets else {})


def _obsolete(snapshot: Snapshot) -> tuple[Action, ...]:
    """Delete guard pods whose node is no longer a control-plane node."""
    desired = {guard_pod_name(snapshot.platform, node) for node in snapshot.nodes}
    pods = snapshot.guard_pods.items()
    return deletions(PODS, {name: pod for name, pod in pods if name not in desired})


def _pods(step: RolloutStep) -> list[Action]:
    snapshot, observation = step.snapshot, step.observation
    statuses = {status.node: status for status in step.node_statuses}
    moving = step.moving
    actions: list[Action] = []
    for name, node in sorted(snapshot.nodes.items()):
        pod = observation.operands.get(name)
        if not step.is_ready(name) or name in moving or is_cordoned(node):
            continue
        status = statuses.get(name)
        if pod is None or not pod.probe or not (pod.ours or (status and status.current)):
            continue  # no scheduler to guard
        disk = observation.disks.get(name)
        desired = _desired_pod(
            snapshot.platform,
            name,
            snapshot.settings.operator_image,
            json.dumps(pod.probe),
            pod.kubeconfig,
            str((snapshot.kubescheduler or {})["metadata"]["uid"]),
            str(pod.revision) if pod.revision > step.revised.known else "",
        )
        current = snapshot.guard_pods.get(desired["metadata"]["name"])
        if current is None:
            actions.append(Create(PODS, desired))
        elif is_being_deleted(current):
            continue
        elif _has_ended(current) or (
            # Until a new one has looked, what kubeadm wrote would be unknown.
            not step.is_kubeadms(name)
            and (not _same(current, desired) or _is_done(snapshot, name, disk))
        ):
            actions.append(Delete(PODS, current))
        elif status is not None:
            known_edit = _known_edit(step, status)
            if annotation(current, names.KNOWN_EDIT_ANNOTATION) != known_edit:
                noted = annotated(current, {names.KNOWN_EDIT_ANNOTATION: known_edit})
                actions.append(Replace(PODS, noted))
    return actions


def _known_edit(step: RolloutStep, status: NodeStatus) -> str:
    """The state of a disk that stays: its guard does not report it again; empty without one."""
    report, hold = guard_report(step.snapshot, status.node), step.holds.get(status.node)
    if report is None:
        return ""
    held = hold is not None and hold.keeps_files
    return report.edit if held or keeps_hand_edits(step.snapshot, status, report) else ""


# Every reconcile renders the same pods again.
@lru_cache(maxsize=64)
def _desired_pod(
    platform: Platform,
    node: str,
    image: str,
    probe: str,
    known: str,
    owner_uid: str,
    hint: str,
) -> dict[str, Any]:
    desired = render_guard_pod(
        platform, node, image, json.loads(probe), known=known, owner_uid=owner_uid
    )
    # The API adds defaults to a pod, so an annotation records what was requested.
    digest = sha256(f"{canonical_json(desired)}{hint}".encode()).hexdigest()[:16]
    return annotated(desired, {names.CONTENT_HASH_ANNOTATION: digest})


def _same(current: Object, desired: Object) -> bool:
    key = names.CONTENT_HASH_ANNOTATION
    return annotation(current, key) == annotation(desired, key)


def _is_done(snapshot: Snapshot, node: str, disk: NodeDisk | None) -> bool:
    """Whether an installer has acted on the guard's report, so that a new guard must look again."""
    own = guard_report(snapshot, node)
    if own is None or disk is None:
        return False
    return (own.reported or bool(own.edits)) and not disk.by_guard


def _has_ended(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
