"""The ClusterOperator "kube-scheduler": health in one line, out of KubeScheduler's conditions."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ..base import names
from .condition_union import AGGREGATES, union
from .conditions import Condition, merge_conditions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from ..base.platform import Platform

API_VERSION: Final = "config.openshift.io/v1"

_FIELD: Final = "spec.managementState of KubeScheduler cluster is"
_UNMANAGED: Final = f"{_FIELD} Unmanaged: nothing is watched or changed until it is Managed again"


@dataclass(frozen=True, slots=True)
class ClusterOperatorPlan:
    """What to do about the ClusterOperator.

    Attributes:
        object: the whole object as it should be, with the existing metadata if there is one. None
            if it is as it should be. `spec` never differs: writing `status` is enough if it exists.
        requeue_after: seconds until the result may change without any other change; None if never.
    """

    object: dict[str, Any] | None
    requeue_after: float | None = None


def plan_cluster_operator(
    *,
    platform: Platform,
    management_state: str,
    removal: str = "",
    conditions: Sequence[Mapping[str, Any]],
    versions: Mapping[str, str],
    existing: Mapping[str, Any] | None,
    now: datetime,
) -> ClusterOperatorPlan:
    """The ClusterOperator as it should be.

    Args:
        platform: names the objects that help to find out more.
        management_state: `spec.managementState` of KubeScheduler; empty means Managed.
        removal: how far the way out is, when that is Removed.
        conditions: `status.conditions` of KubeScheduler, as this pass leaves them.
        versions: by part ("operator", "kube-scheduler"), only those that are certain. A part that
            is not mentioned keeps the version that it had.
        existing: the object as it is; None if there is none.
        now: time zone aware.
    """
    hands_off = {"Unmanaged": _UNMANAGED, "Removed": f"{_FIELD} Removed: {removal}"}
    requeue_after = None
    if message := hands_off.get(management_state):
        unions = [Condition(a.type, "Unknown", management_state, message) for a in AGGREGATES]
    else:
        unions, requeue_after = _conditions(conditions, now)
    status_now: Mapping[str, Any] = (existing or {}).get("status") or {}
    status = dict(status_now)
    status["conditions"] = merge_conditions(status_now.get("conditions") or [], unions, now)
    if merged := _versions(status_now.get("versions") or [], versions):
        status["versions"] = merged
    status["relatedObjects"] = related_objects(platform)
    if existing is not None and status == status_now:
        return ClusterOperatorPlan(None, requeue_after)
    base = {
        "apiVersion": API_VERSION,
        "kind": "ClusterOperator",
        "metadata": {"name": names.CLUSTEROPERATOR, "labels": dict(names.OWN_LABELS)},
        "spec": {},
    }
    return ClusterOperatorPlan(
        {**base, **deepcopy(dict(existing or {})), "status": deepcopy(status)}, requeue_after
    )


def related_objects(platform: Platform) -> list[dict[str, str]]:
    """Where to look next, and what must-gather collects."""
    namespaces = dict.fromkeys(
        (platform.operator_namespace, platform.target_namespace, platform.operand_namespace)
    )
    return [
        {"group": "operator.openshift.io", "name": names.CLUSTER, "resource": "kubeschedulers"},
        {"group": "config.openshift.io", "name": names.CLUSTER, "resource": "schedulers"},
        *({"group": "", "name": namespace, "resource": "namespaces"} for namespace in namespaces),
    ]


def _conditions(
    conditions: Sequence[Mapping[str, Any]], now: datetime
) -> tuple[list[Condition], float | None]:
    parsed = [Condition.from_raw(raw) for raw in conditions]
    results = [union(aggregate, parsed, now) for aggregate in AGGREGATES]
    waits = [r.requeue_after for r in results if r.requeue_after is not None]
    return [r.condition for r in results], min(waits, default=None)


def _versions(
    existing: Sequence[Mapping[str, Any]], certain: Mapping[str, str]
) -> list[dict[str, str]]:
    merged = {entry["name"]: entry["version"] for entry in existing} | dict(certain)
    return [{"name": name, "version": merged[name]} for name in sorted(merged)]
