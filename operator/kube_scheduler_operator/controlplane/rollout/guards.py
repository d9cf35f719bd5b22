"""Guard pods: one for each node, Ready when its scheduler is, and a budget that counts them.

`kubectl drain` evicts a guard, and waits if that would leave fewer than all schedulers but one. A
guard also reports a change of its node's kubeconfig (programs/node/guard.py). A cordoned node gets
no new guard; otherwise its drain would never end.
"""

from __future__ import annotations

import json
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from ...base import names
from ...base.objects import annotation
from ...base.times import timestamp
from ...kube.resource import DISRUPTION_BUDGETS, PODS
from ...manifests.pods import canonical_json, guard_pod_name, render_guard_pod
from ...model.apply import apply
from ...model.plan import Action, Create, Delete
from ...programs.node.exit_codes import EXIT_CHANGED
from ..target_config_maps import guard_disruption_budget

if TYPE_CHECKING:
    from ...base.objects import Object
    from ...base.platform import Platform
    from ...model.operand_pods import Operand
    from ...model.snapshot import Snapshot
    from .result import Stepped


def guard(snapshot: Snapshot, stepped: Stepped) -> tuple[Action, ...]:
    """Writes that make guards and their budget what they should be."""
    return (*_budget(snapshot), *_gone(snapshot), *_pods(snapshot, stepped))


def changed_kubeconfig(snapshot: Snapshot, pod: Operand) -> bool:
    """Whether the scheduler `pod` was started with another kubeconfig than is on its node now."""
    found = snapshot.guard_pods.get(guard_pod_name(snapshot.platform, pod.node))
    for status in ((found or {}).get("status") or {}).get("containerStatuses") or ():
        for state in (status.get("state") or {}, status.get("lastState") or {}):
            ended = state.get("terminated") or {}
            if ended.get("exitCode") != EXIT_CHANGED:
                continue
            seen = timestamp(ended.get("finishedAt"))
            if seen is None or pod.started is None or seen <= pod.started:
                continue  # old news: it has been started since
            if ended.get("message") not in ("", pod.kubeconfig):
                return True
    return False


def _budget(snapshot: Snapshot) -> tuple[Action, ...]:
    wanted = guard_disruption_budget(snapshot.platform, len(snapshot.nodes))
    budgets = snapshot.disruption_budgets
    if len(snapshot.nodes) > 1:
        return apply(DISRUPTION_BUDGETS, budgets, wanted, ("spec",))
    found = budgets.get(wanted["metadata"]["name"])
    return (Delete(DISRUPTION_BUDGETS, found),) if found and not _leaving(found) else ()


def _gone(snapshot: Snapshot) -> list[Action]:
    """Guards of nodes that are control-plane nodes no more."""
    wanted = {guard_pod_name(snapshot.platform, node) for node in snapshot.nodes}
    return [
        Delete(PODS, pod)
        for name, pod in sorted(snapshot.guard_pods.items())
        if name not in wanted and not _leaving(pod)
    ]


def _pods(snapshot: Snapshot, stepped: Stepped) -> list[Action]:
    moving = {entry.node for entry in stepped.entries if entry.target}
    actions: list[Action] = []
    for name, node in sorted(snapshot.nodes.items()):
        pod = stepped.operands.get(name)
        if name in stepped.not_ready or name in moving or _cordoned(node):
            continue
        if pod is None or not pod.ours or not pod.probe:
            continue  # nothing to stand for
        wanted = _wanted(
            snapshot.platform,
            name,
            snapshot.settings.operator_image,
            json.dumps(pod.probe),
            pod.kubeconfig,
            str((snapshot.kubescheduler or {})["metadata"]["uid"]),
        )
        found = snapshot.guard_pods.get(wanted["metadata"]["name"])
        if found is None:
            actions.append(Create(PODS, wanted))
        elif not _leaving(found) and (_over(found) or not _same(found, wanted)):
            actions.append(Delete(PODS, found))
    return actions


# Every pass asks for the same pods again.
@lru_cache(maxsize=64)
def _wanted(
    platform: Platform, node: str, image: str, probe: str, known: str, owner_uid: str
) -> dict[str, Any]:
    wanted = render_guard_pod(
        platform, node, image, json.loads(probe), known=known, owner_uid=owner_uid
    )
    # The API adds defaults to a pod, so what was asked for must be written down.
    digest = sha256(canonical_json(wanted).encode()).hexdigest()[:16]
    annotations = {names.CONTENT_HASH_ANNOTATION: digest}
    return {**wanted, "metadata": {**wanted["metadata"], "annotations": annotations}}


def _same(found: Object, wanted: Object) -> bool:
    key = names.CONTENT_HASH_ANNOTATION
    return annotation(found, key) == annotation(wanted, key)


def _over(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def _leaving(obj: Object) -> bool:
    return "deletionTimestamp" in obj["metadata"]


def _cordoned(node: Object) -> bool:
    return bool((node.get("spec") or {}).get("unschedulable"))
