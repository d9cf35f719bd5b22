"""The PodGroups that controllers of workloads would create, and the pods of LeaderWorkerSets.

A Job has one with `spec.scheduling` (1.37, gate WorkloadWithJob); a LeaderWorkerSet has one for
each replica with `spec.scheduling` (its gate WorkloadAwareScheduling).
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ..base.objects import mapping
from .kinds import POD_GROUPS, PODS, Object, new_object

LEADER_WORKER_SET: Final = "LeaderWorkerSet"
NEEDS_GATE: Final = (
    "spec.scheduling counts if the feature gate WorkloadWithJob is on in kube-apiserver and "
    "kube-controller-manager"
)
_MOST: Final = 1000
"""Replicas of a LeaderWorkerSet that are placed; each is two workloads and a group."""
_GROUP: Final = "schedulingGroup"
_LABEL: Final = "leaderworkerset.sigs.k8s.io/"


def group_of_job(job: Mapping[str, Any], template: Object) -> Object | None:
    """Return the PodGroup of a Job, and let its pods name it; None: its pods need none.

    The Job controller makes none for pods that name one already, or for a Job of another object.
    """
    spec, metadata = mapping(job.get("spec")), mapping(job.get("metadata"))
    scheduling = spec.get("scheduling")
    owned = any(mapping(owner).get("controller") for owner in metadata.get("ownerReferences") or ())
    if not isinstance(scheduling, Mapping) or template["spec"].get(_GROUP) or owned:
        return None
    parallelism = spec.get("parallelism", 1)
    least = max(parallelism, 1) if isinstance(parallelism, int) else 1
    policy = mapping(scheduling.get("schedulingPolicy")) or {"basic": {}}
    group = _group(f"{metadata.get('name')}-simulated", template, least, scheduling, policy)
    template["spec"][_GROUP] = {"podGroupName": group["metadata"]["name"]}
    return group


def title_of(obj: Mapping[str, Any]) -> str:
    metadata = mapping(obj.get("metadata"))
    return f"{obj['kind']} {metadata.get('namespace') or 'default'}/{metadata.get('name')}"


def objects_of(leader_worker_set: Mapping[str, Any]) -> Iterator[Object]:
    """Yield what its controller creates: for each replica a leader, a StatefulSet, a PodGroup."""
    metadata, spec = mapping(leader_worker_set.get("metadata")), leader_worker_set.get("spec")
    parts = mapping(mapping(spec).get("leaderWorkerTemplate"))
    workers = mapping(parts.get("workerTemplate"))
    leader = mapping(parts.get("leaderTemplate")) or workers
    replicas, size = _count(mapping(spec).get("replicas")), _count(parts.get("size"))
    scheduling = mapping(spec).get("scheduling")
    namespace = metadata.get("namespace") or "default"
    for index in range(min(replicas, _MOST)):
        name = f"{metadata.get('name')}-{index}"
        labels = {f"{_LABEL}name": metadata.get("name"), f"{_LABEL}group-index": str(index)}
        own = [_labelled(template, labels) for template in (leader, workers)]
        if isinstance(scheduling, Mapping):
            policy = mapping(scheduling.get("schedulingPolicy")) or {"gang": {}}
            placed = {**own[0], "metadata": {"namespace": namespace}}
            yield _group(name, placed, size, scheduling, policy)
            for template in own:
                template["spec"].setdefault(_GROUP, {"podGroupName": name})
        yield {**new_object(PODS, name, namespace, **own[0]["metadata"]), "spec": own[0]["spec"]}
        if size > 1:
            yield {
                "apiVersion": "apps/v1",
                "kind": "StatefulSet",
                "metadata": {"name": name, "namespace": namespace},
                "spec": {
                    "replicas": size - 1,
                    "selector": {"matchLabels": own[1]["metadata"].get("labels")},
                    "template": own[1],
                },
            }


def _count(value: Any) -> int:
    return value if isinstance(value, int) and value >= 0 else 1


def _labelled(template: Mapping[str, Any], labels: Mapping[str, Any]) -> Object:
    """Return a copy of a pod template with more labels."""
    copied = copy.deepcopy(dict(template))
    metadata = mapping(copied.get("metadata"))
    copied["metadata"] = {
        "labels": {**mapping(metadata.get("labels")), **labels},
        "annotations": dict(mapping(metadata.get("annotations"))),
    }
    copied["spec"] = dict(mapping(copied.get("spec")))
    return copied


def _group(
    name: str,
    template: Object,
    size: int,
    scheduling: Mapping[str, Any],
    policy: Mapping[str, Any],
) -> Object:
    """Return a PodGroup as a workload describes it; minCount is `size` if the policy has none."""
    kept = ("schedulingConstraints", "disruptionMode", "resourceClaims")
    spec: Object = {key: scheduling[key] for key in kept if scheduling.get(key)}
    gang = {"minCount": size, **mapping(policy.get("gang"))}
    spec["schedulingPolicy"] = {"gang": gang} if "gang" in policy else {"basic": {}}
    if priority := mapping(template.get("spec")).get("priorityClassName"):
        spec["priorityClassName"] = priority
    return {**new_object(POD_GROUPS, name, template["metadata"]["namespace"]), "spec": spec}
