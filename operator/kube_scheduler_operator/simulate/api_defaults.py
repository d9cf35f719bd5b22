"""The defaults of Kubernetes' API that scheduling reads; objects of an API server have them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ..base.objects import entries, mapping
from ..kube.resource import Resource
from .constraint import containers
from .kinds import (
    CLAIM_TEMPLATES,
    CLAIMS,
    CONTROLLERS,
    CSI_DRIVERS,
    NAMESPACES,
    PODS,
    PRIORITY_CLASSES,
    REPLICA_SETS,
    RESOURCE_CLAIMS,
    STORAGE_CLASSES,
    VOLUMES,
    Object,
)


def set_api_defaults(resource: Resource, obj: Object) -> None:
    """Complete an object of a world in place."""
    if (complete := _DEFAULTS.get(resource)) is not None:
        complete(obj)


def complete_pod(spec: Object) -> None:
    """Complete the spec of a Pod in place, before any admission plugin."""
    spec.setdefault("schedulerName", "default-scheduler")
    for container in containers(spec):
        resources = mapping(container.get("resources"))
        if limits := mapping(resources.get("limits")):
            requests = mapping(resources.get("requests"))
            if not limits.keys() <= requests.keys():
                container["resources"] = {**resources, "requests": {**limits, **requests}}
        for port in container.get("ports") or () if spec.get("hostNetwork") else ():
            if not port.get("hostPort"):
                port["hostPort"] = port.get("containerPort")
            port.setdefault("protocol", "TCP")


def _namespace(namespace: Object) -> None:
    metadata = namespace["metadata"]
    metadata["labels"] = {
        **mapping(metadata.get("labels")), "kubernetes.io/metadata.name": metadata["name"],
    }  # fmt: skip


def _of_spec(**defaults: Any) -> Callable[[Object], None]:
    def complete(obj: Object) -> None:
        obj["spec"] = {**defaults, **obj["spec"]}

    return complete


def _of_whole(**defaults: Any) -> Callable[[Object], None]:
    def complete(obj: Object) -> None:
        obj.update({**defaults, **obj})

    return complete


def _resource_claim(claim: Object) -> None:
    claim["spec"] = _claim_spec(mapping(claim["spec"]))


def _template(template: Object) -> None:
    inner = mapping(mapping(template.get("spec")).get("spec"))
    template["spec"] = {
        "metadata": {}, **mapping(template.get("spec")), "spec": _claim_spec(inner),
    }  # fmt: skip


def _claim_spec(spec: Mapping[str, Any]) -> Object:
    devices = mapping(spec.get("devices"))
    if not devices.get("requests"):
        return dict(spec)
    requests = []
    for request in map(mapping, entries(devices["requests"])):
        whole = dict(request)
        if "exactly" in request:
            whole["exactly"] = _device_request(mapping(request["exactly"]))
        if "firstAvailable" in request:
            listed = map(mapping, entries(request["firstAvailable"]))
            whole["firstAvailable"] = [_device_request(each) for each in listed]
        requests.append(whole)
    return {**spec, "devices": {**devices, "requests": requests}}


def _device_request(request: Mapping[str, Any]) -> Object:
    whole = {"allocationMode": _EXACT_COUNT, **request}
    if whole["allocationMode"] == _EXACT_COUNT:
        whole.setdefault("count", 1)
    if tolerations := request.get("tolerations"):
        whole["tolerations"] = [
            {"operator": "Equal", **mapping(each)} for each in entries(tolerations)
        ]
    return whole


_EXACT_COUNT: Final = "ExactCount"
_DEFAULTS: Final[Mapping[Resource, Callable[[Object], None]]] = {
    CLAIMS: _of_spec(volumeMode="Filesystem"),
    CLAIM_TEMPLATES: _template,
    CONTROLLERS: _of_spec(replicas=1),
    CSI_DRIVERS: _of_spec(
        attachRequired=True, storageCapacity=False, volumeLifecycleModes=["Persistent"]
    ),
    NAMESPACES: _namespace,
    PODS: lambda pod: complete_pod(pod["spec"]),
    PRIORITY_CLASSES: _of_whole(preemptionPolicy="PreemptLowerPriority"),
    REPLICA_SETS: _of_spec(replicas=1),
    RESOURCE_CLAIMS: _resource_claim,
    STORAGE_CLASSES: _of_whole(reclaimPolicy="Delete", volumeBindingMode="Immediate"),
    VOLUMES: _of_spec(persistentVolumeReclaimPolicy="Retain", volumeMode="Filesystem"),
}
