"""The ClusterOperator "kube-scheduler": KubeScheduler's conditions, summarised."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from ...base import names
from ...base.platform import Platform
from ...kube.resource import (
    LOAD_POLICIES,
    OPERATOR_SETTINGS,
    SCHEDULER_EXTENDERS,
    SCHEDULER_PROFILES,
    SECONDARY_SCHEDULERS,
)
from ..model.plan import soonest
from .condition_union import AGGREGATES, union
from .conditions import ALWAYS_FALSE, Condition, merge_conditions

API_VERSION: Final = "config.openshift.io/v1"

_OWN_KINDS: Final = (
    SCHEDULER_PROFILES,
    SCHEDULER_EXTENDERS,
    SECONDARY_SCHEDULERS,
    LOAD_POLICIES,
    OPERATOR_SETTINGS,
)
_FIELD: Final = "spec.managementState of KubeScheduler cluster is"
_UNMANAGED: Final = f"{_FIELD} Unmanaged: the operator changes nothing until it is Managed again"


@dataclass(frozen=True, slots=True)
class ClusterOperatorPlan:
    # the complete desired object, with the existing metadata; None if it is up to date. `spec`
    # never differs, so writing `status` is enough if the object exists.
    object: dict[str, Any] | None
    # seconds until the conditions may change by themselves; None: never
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
    """The desired ClusterOperator; `conditions` are KubeScheduler's new ones.

    An empty `management_state` means Managed; `removal` is the progress of a removal. `versions`
    has the versions that are certain, by part; other parts keep theirs.
    """
    hands_off = {"Unmanaged": _UNMANAGED, "Removed": f"{_FIELD} Removed: {removal}"}
    requeue_after = None
    if message := hands_off.get(management_state):
        unions = [Condition(a.type, "Unknown", management_state, message) for a in AGGREGATES]
    else:
        unions, requeue_after = _conditions(platform, conditions, now)
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
    """The objects to inspect next; must-gather collects them."""
    namespaces = dict.fromkeys(
        (
            *platform.source_namespaces,
            platform.operator_namespace,
            platform.target_namespace,
            platform.operand_namespace,
        )
    )
    return [
        {"group": "operator.openshift.io", "name": names.CLUSTER, "resource": "kubeschedulers"},
        {"group": "config.openshift.io", "name": names.CLUSTER, "resource": "schedulers"},
        *({"group": kind.group, "name": "", "resource": kind.plural} for kind in _OWN_KINDS),
        *({"group": "", "name": namespace, "resource": "namespaces"} for namespace in namespaces),
    ]


def _conditions(
    platform: Platform, conditions: Sequence[Mapping[str, Any]], now: datetime
) -> tuple[list[Condition], float | None]:
    parsed = [Condition.from_raw(raw) for raw in conditions]
    # Conditions that are always False have nothing to add to a healthy message.
    parsed = [replace(c, message="") if c.message.startswith(ALWAYS_FALSE) else c for c in parsed]
    # OpenShift's tools expect the types; elsewhere, a healthy ClusterOperator reads as a sentence.
    prefix = platform.cluster_config
    unions = [union(aggregate, parsed, now, prefix_healthy=prefix) for aggregate in AGGREGATES]
    summaries = [summary.condition for summary in unions]
    healthy = all(c.status == "False" for c in parsed if c.type.endswith(names.DEGRADED))
    if healthy and not platform.cluster_config:
        # kubectl shows the message of Degraded; without an error, what runs is more useful.
        runs = next((c.message for c in summaries if c.type == names.AVAILABLE), "")
        summaries = [replace(c, message=runs) if c.type == names.DEGRADED else c for c in summaries]
    return summaries, soonest(*(summary.requeue_after for summary in unions))


def _versions(
    existing: Sequence[Mapping[str, Any]], certain: Mapping[str, str]
) -> list[dict[str, str]]:
    merged = {entry["name"]: entry["version"] for entry in existing} | dict(certain)
    return [{"name": name, "version": merged[name]} for name in sorted(merged)]
