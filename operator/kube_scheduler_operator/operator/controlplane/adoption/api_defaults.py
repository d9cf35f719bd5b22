"""Completes a static Pod's manifest as the API server does, so that it compares with a mirror Pod.

The values are those of pkg/apis/core/v1/defaults.go in Kubernetes; only fields that the inventory
reads are completed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ....base import names
from ....base.objects import Object, mapping
from ....base.platform import Platform
from ....base.priorities import BUILT_IN_PRIORITIES
from .pod_settings import PROBES

_SPEC: Final = {
    "dnsPolicy": "ClusterFirst",
    "enableServiceLinks": True,
    "restartPolicy": "Always",
    "schedulerName": "default-scheduler",
    "terminationGracePeriodSeconds": 30,
}
_PROBE: Final = {
    "failureThreshold": 3,
    "periodSeconds": 10,
    "successThreshold": 1,
    "timeoutSeconds": 1,
}


def as_mirror_pod(manifest: Object, node: str, platform: Platform) -> dict[str, Any]:
    metadata, spec = mapping(manifest.get("metadata")), mapping(manifest.get("spec"))
    completed = {**_SPEC, **spec, "nodeName": node}
    priority = BUILT_IN_PRIORITIES.get(str(spec.get("priorityClassName")))
    if priority is not None:
        completed["priority"] = priority
    completed["volumes"] = [_volume(mapping(volume)) for volume in spec.get("volumes") or ()]
    containers = spec.get("containers") or ()
    completed["containers"] = [_container(mapping(container)) for container in containers]
    named = {**metadata, "name": platform.mirror_pod_name(node)}
    return {**manifest, "metadata": named, "spec": completed}


def _volume(volume: Mapping[str, Any]) -> dict[str, Any]:
    completed = dict(volume)
    if isinstance(volume.get("hostPath"), Mapping):
        completed["hostPath"] = {"type": "", **volume["hostPath"]}
    if isinstance(volume.get("downwardAPI"), Mapping):
        items = [_reference(mapping(item)) for item in volume["downwardAPI"].get("items") or ()]
        completed["downwardAPI"] = {"defaultMode": 420, **volume["downwardAPI"], "items": items}
    return completed


def _container(container: Mapping[str, Any]) -> dict[str, Any]:
    completed: dict[str, Any] = {
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        **container,
    }
    if not completed.get("imagePullPolicy"):
        tag = str(container.get("image")).partition("@")[0].rpartition("/")[2].partition(":")[2]
        pinned = "@" in str(container.get("image")) or tag not in ("", "latest")
        completed["imagePullPolicy"] = "IfNotPresent" if pinned else "Always"
    for name in PROBES:
        probe = container.get(name)
        if isinstance(probe, Mapping):
            # A value of 0 is unset for the API server.
            given = {key: value for key, value in probe.items() if value or key not in _PROBE}
            completed[name] = {**_PROBE, **given}
            if isinstance(probe.get("httpGet"), Mapping):
                completed[name]["httpGet"] = {"path": "/", "scheme": "HTTP", **probe["httpGet"]}
    resources = mapping(container.get("resources"))
    if resources.get("limits"):
        requests = {**mapping(resources["limits"]), **mapping(resources.get("requests"))}
        completed["resources"] = {**resources, "requests": requests}
    if container.get("env"):
        completed["env"] = [
            {**variable, "valueFrom": _reference(mapping(variable["valueFrom"]))}
            if mapping(variable).get("valueFrom")
            else variable
            for variable in container["env"]
        ]
    return completed


def _reference(source: Mapping[str, Any]) -> dict[str, Any]:
    completed = dict(source)
    if isinstance(source.get("fieldRef"), Mapping):
        completed["fieldRef"] = {"apiVersion": "v1", **source["fieldRef"]}
    if isinstance(source.get("resourceFieldRef"), Mapping):
        completed["resourceFieldRef"] = {"divisor": "0", **source["resourceFieldRef"]}
    return completed


def is_scheduler(document: Any) -> bool:
    spec = mapping(mapping(document).get("spec"))
    if mapping(document).get("kind") != "Pod" or not isinstance(spec.get("containers"), list):
        return False
    return any(mapping(item).get("name") == names.OPERAND for item in spec["containers"])
