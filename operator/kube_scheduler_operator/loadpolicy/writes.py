"""The writes for one LoadPolicy: its objects and its status."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..base import names
from ..base.objects import Object, label, mapping
from ..kube.resource import CONFIG_MAPS, DAEMON_SETS, LOAD_POLICIES
from ..load.policy import FAMILIES, FILE
from ..model.apply import apply, keep
from ..model.plan import Action, Delete, Event
from ..model.snapshot import Snapshot
from ..model.workloads import keep_workload
from ..status.object_status import ObjectPlan, with_status
from .load_state import policy_digest, read_report, read_written
from .objects import config_map, state_config_map, workload_settings, workloads
from .request import LoadPolicyRequest, effective_request
from .status import StatusInput, report


def policy_writes(snapshot: Snapshot, obj: Object, first: str) -> ObjectPlan:
    """Reconcile one LoadPolicy; `first` is the name of the oldest one, the only one in use."""
    effective = effective_request(obj, snapshot.loads.secrets, snapshot.platform.target_namespace)
    if obj["metadata"]["name"] != first:
        status = report(snapshot, StatusInput(obj, effective, another=first))
        return with_status(snapshot, LOAD_POLICIES, obj, status, ())
    work: list[Action] = []
    if effective.request is not None:
        remove = _to_remove(snapshot, effective.request)
        desired = config_map(snapshot, obj, effective.request, remove)
        work += _keep_state(snapshot, effective.request, _current(snapshot, desired))
        work += keep(CONFIG_MAPS, _existing(snapshot, CONFIG_MAPS), desired, ("data",))
        work += _keep_workloads(snapshot, obj, effective.spec)
    status = report(snapshot, StatusInput(obj, effective))
    return with_status(snapshot, LOAD_POLICIES, obj, status, work)


def _existing(snapshot: Snapshot, resource: Any) -> Mapping[str, Object]:
    return snapshot.loads.objects.get(resource, {})


def _state(snapshot: Snapshot) -> Object | None:
    return _existing(snapshot, CONFIG_MAPS).get(names.LOAD_STATE)


def _to_remove(snapshot: Snapshot, request: LoadPolicyRequest) -> tuple[str, ...]:
    """Annotation families that nodes may have and that are no longer written."""
    desired = request.policy.families
    return tuple(f for f in read_written(_state(snapshot)) if f not in desired)


def _current(snapshot: Snapshot, desired: Mapping[str, Any]) -> str:
    """Digest of the policy.json in the cluster if it is the desired one, else empty."""
    existing = _existing(snapshot, CONFIG_MAPS).get(desired["metadata"]["name"]) or {}
    text = mapping(existing.get("data")).get(FILE)
    return policy_digest(text) if text == desired["data"][FILE] else ""


def _keep_state(snapshot: Snapshot, request: LoadPolicyRequest, current: str) -> tuple[Action, ...]:
    """Record annotation families before nodes get them, and drop them after their removal."""
    state = _state(snapshot)
    report = read_report(state)
    gone = report.removed if current and report.policy == current else ()
    written = {*read_written(state), *request.policy.families}
    written -= {*gone} - {*request.policy.families}
    desired = state_config_map(snapshot, [family for family in FAMILIES if family in written])
    # The annotator's report in the same ConfigMap stays.
    desired["data"] = {**mapping((state or {}).get("data")), **desired["data"]}
    return apply(CONFIG_MAPS, _existing(snapshot, CONFIG_MAPS), desired, ("data",))


def _keep_workloads(snapshot: Snapshot, obj: Object, spec: Mapping[str, Any]) -> tuple[Action, ...]:
    actions: list[Action] = []
    desired = workloads(obj, spec, workload_settings(snapshot))
    for resource, workload, spec_hash in desired:
        existing = _existing(snapshot, resource).get(workload["metadata"]["name"])
        why = "the spec of the LoadPolicy or the operator's image changed"
        actions += keep_workload(
            resource, existing, workload, spec_hash, what=f"specification {spec_hash}", why=why
        )
    kept = {workload["metadata"]["name"] for _, workload, _ in desired}
    name = obj["metadata"]["name"]
    for other, daemon_set in sorted(_existing(snapshot, DAEMON_SETS).items()):
        leaving = "deletionTimestamp" in daemon_set["metadata"]
        if other not in kept and label(daemon_set, names.LOAD_LABEL) == name and not leaving:
            event = Event("DaemonSetDeleted", f"Deleted DaemonSet/{other}: the source changed")
            actions.append(Delete(DAEMON_SETS, daemon_set, (event,)))
    return tuple(actions)
