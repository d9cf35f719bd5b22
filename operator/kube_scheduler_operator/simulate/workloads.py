"""The pods that the controllers of workloads would create."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Final

from ..base.objects import mapping
from ..base.quantities import quantity
from .grouped_workloads import LEADER_WORKER_SET, group_of_job, objects_of, title_of
from .kinds import CLAIMS, POD_GROUPS, PODS, STORAGE_CLASSES, TEMPLATE_HASH, Object, new_object
from .node_rules import REQUIRED
from .owners import pods_of
from .world import World

DAEMON_SET: Final = "DaemonSet"
_POD, _POD_TEMPLATE, _CRON_JOB = "Pod", "PodTemplate", "CronJob"
_STATEFUL_SET, _DEPLOYMENT = "StatefulSet", "Deployment"
_JOB: Final = "Job"
_SIMULATED: Final = "simulated"
_IS_DEFAULT: Final = "storageclass.kubernetes.io/is-default-class"
_TOLERATIONS_OF_DAEMONS: Final = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    *(
        (f"node.kubernetes.io/{name}", "NoSchedule")
        for name in ("disk-pressure", "memory-pressure", "pid-pressure", "unschedulable")
    ),
)
"""The tolerations that the DaemonSet controller adds to its pods."""


class WorkloadError(Exception):
    """An object cannot be created as it is; the message names the field and the fix."""


@dataclass(frozen=True, slots=True)
class SimulatedWorkload:
    """A workload that does not exist yet."""

    kind: str
    namespace: str
    name: str
    template: Object  # a pod as its controller creates it, without a name and a node
    # the number of pods that the object requests; 0 for a DaemonSet, because nodes decide it
    replicas: int = 1
    claims: tuple[Object, ...] = ()
    ordinals: bool = False  # pods are numbered from 0 up
    objects: tuple[Object, ...] = ()  # objects that belong to it and influence scheduling
    made_by: str = ""  # the title of the object whose controller creates it; empty: a user does

    @property
    def title(self) -> str:
        return self.made_by or f"{self.kind} {self.namespace}/{self.name}"

    def pods(self, names: Iterable[str]) -> Iterator[Object]:
        for name in names:
            pod = copy.deepcopy(self.template)
            pod["metadata"].update(name=name, uid=f"{_SIMULATED}-{self.namespace}-{name}")
            volumes = pod["spec"].setdefault("volumes", []) if self.claims else []
            for claim in self.claims:
                volume = claim["metadata"]["name"]
                source = {"claimName": f"{volume}-{name}"}
                volumes[:] = [other for other in volumes if other.get("name") != volume]
                volumes.append({"name": volume, "persistentVolumeClaim": source})
            yield pod

    def names(self, world: World) -> Iterator[str]:
        """Yield names that no pod of the world has, without end."""
        taken = {name for namespace, name in world.objects[PODS] if namespace == self.namespace}
        for number in count():
            name = f"{self.name}-{number}" if self.ordinals else f"{self.name}-simulated-{number}"
            if name not in taken:
                yield name

    def claims_of(self, name: str, world: World) -> Iterator[Object]:
        """Yield the claims of the pod of this name that do not exist in the world."""
        for claim in self.claims:
            own = f"{claim['metadata']['name']}-{name}"
            if world.get(CLAIMS, own, self.namespace) is None:
                spec = dict(claim.get("spec") or {})
                if "storageClassName" not in spec and (default := _default_class(world)):
                    spec["storageClassName"] = default
                made = new_object(CLAIMS, own, self.namespace)
                yield {**made, "spec": spec, "status": {"phase": "Pending"}}


def read_workloads(
    objects: Iterable[Any], file: str
) -> tuple[list[SimulatedWorkload], list[Object]]:
    """Return (workloads, all other objects) of a file.

    Raises:
        WorkloadError: an object is malformed.
    """
    workloads: list[SimulatedWorkload] = []
    others: list[Object] = []
    for obj in objects:
        if not isinstance(obj, Mapping) or not isinstance(obj.get("kind"), str):
            raise WorkloadError(f"{file}: a document is not an object with apiVersion and kind")
        if obj["kind"] == LEADER_WORKER_SET:
            for made in objects_of(obj):
                workloads += filter(None, [_workload(made, file, title_of(obj))])
                others += [made] if made["kind"] == POD_GROUPS.kind else []
            continue
        workload = _workload(obj, file)
        if workload is None:
            others.append(dict(obj))
        else:
            workloads.append(workload)
    return workloads, others


def _workload(obj: Mapping[str, Any], file: str, made_by: str = "") -> SimulatedWorkload | None:
    kind = obj["kind"]
    metadata, spec = mapping(obj.get("metadata")), mapping(obj.get("spec"))
    name = metadata.get("name") or metadata.get("generateName")
    where = f"{file}: {kind} {name or 'without a name'}"
    path, source = "spec.template", spec.get("template")
    replicas: Any = spec.get("replicas", 1)
    if kind == _POD:
        path, source, replicas = "", obj, 1
    elif kind == _POD_TEMPLATE:
        path, source, replicas = "template", obj.get("template"), 1
    elif kind == _CRON_JOB:
        job = mapping(mapping(spec.get("jobTemplate")).get("spec"))
        path, source, replicas = "spec.jobTemplate.spec.template", job.get("template"), _width(job)
    elif kind == _JOB:
        replicas = _width(spec)
    elif not mapping(mapping(source).get("spec")).get("containers"):
        if kind in (_DEPLOYMENT, _STATEFUL_SET, DAEMON_SET, "ReplicaSet", "ReplicationController"):
            raise WorkloadError(f"{where}: {path}.spec.containers is missing")
        return None
    if not isinstance(name, str) or not name:
        raise WorkloadError(f"{where}: metadata.name is missing")
    if not isinstance(replicas, int) or isinstance(replicas, bool) or replicas < 0:
        raise WorkloadError(f"{where}: spec.replicas {replicas!r} is not a number of pods")
    namespace = metadata.get("namespace") or "default"
    name = name.rstrip("-.")
    workload = SimulatedWorkload(
        kind,
        namespace,
        name,
        _template(source, namespace, where, path),
        replicas,
        claims=tuple(spec.get("volumeClaimTemplates") or ()) if kind == _STATEFUL_SET else (),
        ordinals=kind == _STATEFUL_SET,
        made_by=made_by,
    )
    group = group_of_job(obj, workload.template) if kind == _JOB else None
    owned = _owned(workload, obj)
    return replace(owned, objects=(*owned.objects, group)) if group is not None else owned


def _width(job: Mapping[str, Any]) -> Any:
    """Return the number of pods of a Job that run at the same time."""
    width, whole = job.get("parallelism", 1), job.get("completions")
    return min(width, whole) if isinstance(width, int) and isinstance(whole, int) else width


def _template(source: Any, namespace: str, where: str, path: str) -> Object:
    prefix = f"{path}." if path else ""
    if not isinstance(source, Mapping) or not isinstance(source.get("spec"), Mapping):
        raise WorkloadError(f"{where}: {prefix}spec is missing")
    containers = source["spec"].get("containers")
    if not isinstance(containers, list) or not containers:
        raise WorkloadError(f"{where}: {prefix}spec.containers is missing")
    for field in ("containers", "initContainers"):
        for at, container in enumerate(source["spec"].get(field) or ()):
            _check_resources(container, f"{where}: {prefix}spec.{field}[{at}]")
    _check_resources(source["spec"], f"{where}: {prefix}spec")
    metadata = mapping(source.get("metadata"))
    kept = {key: metadata[key] for key in ("labels", "annotations") if metadata.get(key)}
    spec = copy.deepcopy(dict(source["spec"]))
    node = spec.pop("nodeName", None)
    if node and path:  # that of a Pod is the node that it had
        raise WorkloadError(
            f"{where}: {prefix}spec.nodeName is {node!r}: its pods are created on that node, and "
            "no scheduler places them"
        )
    return {**new_object(PODS, _SIMULATED, namespace, **kept), "spec": spec}


def _check_resources(holder: Any, where: str) -> None:
    if not isinstance(holder, Mapping):
        raise WorkloadError(f"{where}: this is not an object")
    for field in ("requests", "limits"):
        for resource, amount in mapping(mapping(holder.get("resources")).get(field)).items():
            if amount is None:  # which the API server reads as 0
                continue
            try:
                quantity(str(amount))
            except ValueError as error:
                raise WorkloadError(f"{where}.resources.{field}.{resource}: {error}") from None


def _owned(workload: SimulatedWorkload, obj: Mapping[str, Any]) -> SimulatedWorkload:
    """Return the workload with the owner of its pods, by which default constraints spread them."""
    kind, api_version = workload.kind, str(obj.get("apiVersion") or "v1")
    if kind in (_POD, _POD_TEMPLATE):
        return workload
    if kind == DAEMON_SET:
        _tolerate_as_daemon(workload.template["spec"])
    name, template = workload.name, workload.template
    metadata = template["metadata"]
    selector = mapping(obj.get("spec")).get("selector")
    if kind == _DEPLOYMENT:
        name, kind = f"{name}-{_SIMULATED}", "ReplicaSet"
        labels = {**metadata.get("labels", {}), TEMPLATE_HASH: _SIMULATED}
        metadata["labels"] = labels
        selector = {"matchLabels": labels}
    objects: tuple[Object, ...] = ()
    if kind in ("ReplicaSet", _STATEFUL_SET, "ReplicationController"):
        owner = {
            "apiVersion": api_version,
            "kind": kind,
            "metadata": {"name": name, "namespace": workload.namespace},
            "spec": {"selector": selector or metadata.get("labels") or {}},
        }
        objects = (owner,)
    reference = {
        "apiVersion": api_version,
        "kind": kind,
        "name": name,
        "uid": f"{_SIMULATED}-{kind}-{name}",
        "controller": True,
    }
    metadata["ownerReferences"] = [reference]
    return replace(workload, objects=objects)


def _tolerate_as_daemon(spec: Object) -> None:
    added = list(_TOLERATIONS_OF_DAEMONS)
    if spec.get("hostNetwork"):
        added.append(("node.kubernetes.io/network-unavailable", "NoSchedule"))
    spec["tolerations"] = [
        *(spec.get("tolerations") or ()),
        *({"key": key, "operator": "Exists", "effect": effect} for key, effect in added),
    ]


def _default_class(world: World) -> str:
    for storage_class in world.all(STORAGE_CLASSES):
        if (storage_class["metadata"].get("annotations") or {}).get(_IS_DEFAULT) == "true":
            return str(storage_class["metadata"]["name"])
    return ""


def pinned(pod: Object, node: str) -> Object:
    """Return the pod of a DaemonSet for one node, as its controller creates it."""
    copied = copy.deepcopy(pod)
    affinity = copied["spec"].setdefault("affinity", {})
    required = affinity.setdefault("nodeAffinity", {})
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    required[REQUIRED] = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    return copied


def existing(workload: SimulatedWorkload, world: World) -> int:
    return len(pods_of(world, workload.kind, workload.namespace, workload.name))
