"""Objects for tests, as the API server returns them.

Arguments are what a test is about; the rest is fixed. Further keywords are fields of the spec.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.base.settings import Settings
from kube_scheduler_operator.base.times import rfc3339
from kube_scheduler_operator.kube.resource import (
    KUBE_SCHEDULERS,
    LOAD_POLICIES,
    OPERATOR_SETTINGS,
    SCHEDULER_EXTENDERS,
    SCHEDULER_PROFILES,
    SCHEDULERS,
    SECONDARY_SCHEDULERS,
    Resource,
)
from kube_scheduler_operator.operator.model.snapshot import Snapshot

Object = dict[str, Any]

CREATED = datetime(2026, 1, 1, tzinfo=UTC)
OPERAND_IMAGE = "registry.k8s.io/kube-scheduler:v1.35.4"


def condition(
    type_: str, status: str, reason: str = "", message: str = "", **fields: str
) -> Object:
    return {"type": type_, "status": status, "reason": reason, "message": message, **fields}


def ready_condition(status: bool | None = True, **fields: str) -> Object:
    """The condition Ready; None stands for Unknown, as of a node that does not respond."""
    return {
        "type": "Ready",
        "status": {True: "True", False: "False", None: "Unknown"}[status],
        **fields,
    }


RUNNING: Object = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
"""The state of a container that runs."""


def terminated(
    code: int, message: str = "", finished: str = "2026-01-01T00:00:09Z", **fields: Any
) -> Object:
    """The state of a container that ended."""
    ended = {"exitCode": code, "message": message, "finishedAt": finished, **fields}
    return {"terminated": ended}


# --- Pods and nodes -------------------------------------------------------------------------------


def pod(
    name: str = "p",
    *,
    node: str = "",
    namespace: str = "default",
    labels: Mapping[str, str] | None = None,
    containers: Sequence[Mapping[str, Any]] | None = None,
    metadata: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Object:
    """A Pod with one container."""
    made: Object = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{name}",
            **({"labels": dict(labels)} if labels else {}),
            **(metadata or {}),
        },
        "spec": {
            **({"nodeName": node} if node else {}),
            "containers": [container()] if containers is None else list(containers),
            **spec,
        },
    }
    return {**made, "status": dict(status)} if status else made


def container(
    requests: Mapping[str, str] | None = None, limits: Mapping[str, str] | None = None
) -> Object:
    """The container of a Pod."""
    resources = {
        **({"requests": dict(requests)} if requests is not None else {}),
        **({"limits": dict(limits)} if limits else {}),
    }
    return {"name": "main", "resources": resources}


def pod_status(phase: str = "", bound: float | datetime | None = None) -> Object:
    """The status of a Pod; `bound` is when it was bound, a time or seconds since 1970."""
    found: Object = {"phase": phase} if phase else {}
    if bound is not None:
        moment = bound if isinstance(bound, datetime) else datetime.fromtimestamp(bound, UTC)
        scheduled = {
            "type": "PodScheduled",
            "status": "True",
            "lastTransitionTime": rfc3339(moment),
        }
        found["conditions"] = [scheduled]
    return found


def controlled_by(kind: str, name: str = "owner") -> Object:
    """The metadata of an object that a controller of this kind made."""
    return {"ownerReferences": [{"kind": kind, "name": name, "controller": True}]}


def node(
    name: str = "a",
    *conditions: Mapping[str, Any],
    resources: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    uid: str = "",
    created: str = rfc3339(CREATED),
    **spec: Any,
) -> Object:
    """A Node; without conditions it is Ready."""
    metadata = {
        "name": name,
        "uid": uid or f"node-{name}",
        "resourceVersion": "1",
        "creationTimestamp": created,
        "annotations": dict(annotations or {}),
        **({"labels": dict(labels)} if labels else {}),
    }
    status: Object = {"conditions": [dict(one) for one in conditions or (ready_condition(),)]}
    if resources:
        status |= {"allocatable": dict(resources), "capacity": dict(resources)}
    head = {"apiVersion": "v1", "kind": "Node", "metadata": metadata}
    return {**head, "spec": spec, "status": status}


def operand_pod(
    node: str = "a",
    revision: int = 0,
    *,
    is_ready: bool | None = True,
    since: str = "",
    image: str = OPERAND_IMAGE,
    args: Sequence[str] = (),
    annotations: Mapping[str, str] | None = None,
    **container_status: Any,
) -> Object:
    """The mirror pod of a node's kube-scheduler.

    Args:
        revision: 0 for a scheduler that the operator did not install.
        since: when it became Ready or not Ready.
        container_status: fields of the container's status.
    """
    container = {"name": names.OPERAND, "image": image, "args": list(args)}
    of_pod = ready_condition(is_ready, **({"lastTransitionTime": since} if since else {}))
    return {
        "metadata": {
            "name": f"kube-scheduler-{node}",
            "labels": {names.REVISION_LABEL: str(revision)} if revision else {},
            "annotations": dict(annotations or {}),
            "creationTimestamp": rfc3339(CREATED),
        },
        "spec": {"nodeName": node, "containers": [container]},
        "status": {
            "conditions": [of_pod],
            "containerStatuses": [{"name": names.OPERAND, **container_status}],
        },
    }


def installer_pod(
    node: str = "a",
    revision: int = 2,
    status: Mapping[str, Any] | None = None,
    *,
    name: str = "",
    permission: str | None = names.PERMISSION_GRANTED,
    created: str = rfc3339(CREATED),
    **metadata: Any,
) -> Object:
    """The installer pod of a revision on a node.

    Args:
        permission: the value of the annotation that permits the swap; None if it is absent.
    """
    return {
        "metadata": {
            "name": name or f"installer-{revision}-{node}",
            "namespace": KUBEADM.target_namespace,
            "uid": "uid",
            "labels": {"app": "installer", names.INSTALLER_REVISION_LABEL: str(revision)},
            "annotations": {} if permission is None else {names.PERMISSION_ANNOTATION: permission},
            "creationTimestamp": created,
            "ownerReferences": [{"kind": "ConfigMap", "uid": f"uid-{revision}"}],
            **metadata,
        },
        "spec": {"nodeName": node},
        "status": dict(status or {}),
    }


def installer_status(
    phase: str = "Running",
    preflight: Object | None = None,
    installer: Object | None = None,
    *,
    last_preflight: Object | None = None,
    last_installer: Object | None = None,
    started: bool = False,
    others: Sequence[Object] = (),
) -> Object:
    """The status of an installer pod, from the states of its containers; None: not created yet.

    Args:
        started: whether the installer has staged the revision.
    """
    statuses = list(others)
    if preflight is not None:
        last = last_preflight or {}
        statuses.append({"name": names.PREFLIGHT, "state": preflight, "lastState": last})
    if installer is not None:
        found = {"name": names.INSTALLER, "state": installer, "lastState": last_installer or {}}
        statuses.append({**found, "started": started})
    return {"phase": phase, "containerStatuses": statuses}


def node_status(name: str, current: int = 0, target: int = 0, **fields: Any) -> Object:
    """An entry of KubeScheduler.status.nodeStatuses."""
    revisions = {"currentRevision": current, "targetRevision": target}
    return {"nodeName": name, **{k: v for k, v in revisions.items() if v}, **fields}


# --- Objects of users -----------------------------------------------------------------------------


def of_kind(
    resource: Resource,
    name: str,
    spec: Mapping[str, Any],
    *,
    age: int = 5,
    generation: int = 1,
    version: str = "",
    status: Mapping[str, Any] | None = None,
) -> Object:
    """An object of a resource.

    Args:
        age: in days; older objects take precedence.
        version: its resourceVersion; empty in manifests.
    """
    made = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "generation": generation,
            "creationTimestamp": rfc3339(CREATED - timedelta(days=age)),
            **({"resourceVersion": version} if version else {}),
        },
        "spec": dict(spec),
    }
    return made if status is None else {**made, "status": dict(status)}


def scheduler(**spec: Any) -> Object:
    """The Scheduler "cluster"."""
    return of_kind(SCHEDULERS, "cluster", spec, version="1")


def kubescheduler(status: Mapping[str, Any] | None = None, **spec: Any) -> Object:
    """The KubeScheduler "cluster"."""
    return of_kind(KUBE_SCHEDULERS, "cluster", spec, status=status, version="1")


def profile(name: str, *, accepted: Any = None, **fields: Any) -> Object:
    """A SchedulerProfile; `accepted` is the spec that was accepted last."""
    return _user_object(SCHEDULER_PROFILES, name, accepted, fields)


def extender(name: str, *, accepted: Any = None, **fields: Any) -> Object:
    """A SchedulerExtender."""
    return _user_object(SCHEDULER_EXTENDERS, name, accepted, fields)


def operator_settings(*, accepted: Any = None, status: Any = None, **pods: Any) -> Object:
    """OperatorSettings "cluster" with these fields of `spec.pods`."""
    given: Object = {"pods": pods, "status": dict(status or {})}
    return _user_object(OPERATOR_SETTINGS, "cluster", accepted, given)


def secondary(
    name: str = "mine", *, namespace: str = KUBEADM.target_namespace, **fields: Any
) -> Object:
    """A SecondaryScheduler."""
    return _user_object(SECONDARY_SCHEDULERS, name, None, {"namespace": namespace, **fields})


def load_policy(name: str = "default", **fields: Any) -> Object:
    """A LoadPolicy."""
    return _user_object(LOAD_POLICIES, name, None, fields)


def config_map(name: str, namespace: str = KUBEADM.target_namespace, **data: str) -> Object:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def _user_object(resource: Resource, name: str, accepted: Any, fields: Object) -> Object:
    own = ("age", "generation", "version", "status")
    given = {key: fields.pop(key) for key in own if key in fields}
    if accepted is not None:
        given["status"] = {**given.get("status", {}), "accepted": accepted}
    return of_kind(resource, name, fields, **given)


def by_name(objects: Iterable[Object]) -> dict[str, Object]:
    """Objects by name, as a Snapshot has them."""
    return {obj["metadata"]["name"]: obj for obj in objects}


def snapshot(**fields: Any) -> Snapshot:
    """A Snapshot of a kubeadm cluster at CREATED without objects, or with these fields."""
    return Snapshot(**{"now": CREATED, "platform": KUBEADM, "settings": Settings(), **fields})


# --- Files of crane-scheduler ---------------------------------------------------------------------


CRANE_POLICY: Object = {
    "apiVersion": "scheduler.policy.crane.io/v1alpha1",
    "kind": "DynamicSchedulerPolicy",
    "spec": {
        "syncPolicy": [{"name": "cpu_usage_avg_5m", "period": "3m"}],
        "predicate": [{"name": "cpu_usage_avg_5m", "maxLimitPecent": 0.65}],
        "priority": [{"name": "cpu_usage_avg_5m", "weight": 0.2}],
        "hotValue": [{"timeRange": "5m", "count": 5}],
    },
}


def crane_configuration(name: str = "default-scheduler", **fields: Any) -> Object:
    """A configuration with one profile that enables crane's plugin Dynamic."""
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1beta2",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "schedulerName": name,
                "plugins": {
                    "filter": {"enabled": [{"name": "Dynamic"}]},
                    "score": {"enabled": [{"name": "Dynamic", "weight": 3}]},
                },
                "pluginConfig": [
                    {"name": "Dynamic", "args": {"policyConfigPath": "/etc/kubernetes/policy.yaml"}}
                ],
            }
        ],
        **fields,
    }
