"""The settings of the static Pods: adopted ones, with those of OperatorSettings in their place."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any

from ...base import names
from ...base.objects import mapping
from ...base.priorities import BUILT_IN_PRIORITIES
from ...config.effective.control_plane.recorded_inputs import RecordedInputs
from ...config.effective.settings.requested_pod import (
    NOTHING_REQUESTED,
    OWN_RESOURCES,
    HostFile,
    RequestedPod,
)
from .adoption.pod_settings import CLASS, PodSettings, tidy_volumes


def recorded_object(inputs: RecordedInputs | None) -> Mapping[str, Mapping[str, Any]]:
    """OperatorSettings "cluster" as it was recorded, by name; empty if there was none."""
    if inputs is None or inputs.operator_settings is None:
        return {}
    return {names.CLUSTER: {"spec": inputs.operator_settings}}


def merged_settings(adopted: PodSettings, requested: RequestedPod) -> PodSettings:
    if requested == NOTHING_REQUESTED:
        return adopted
    kept = adopted.without(frozenset(requested.remove_adopted))
    spec, container = dict(kept.spec), dict(kept.container)
    if requested.resources:
        base = mapping(container.get("resources")) or OWN_RESOURCES
        container["resources"] = requested.resources_over(base)
    if requested.env:
        container["env"] = _environment(container.get("env") or (), requested.env)
    if requested.priority_class_name:
        spec[CLASS] = requested.priority_class_name
        # A static Pod starts before admission resolves its class.
        spec["priority"] = BUILT_IN_PRIORITIES[requested.priority_class_name]
    if requested.host_files:
        _mount(spec, container, requested.host_files)
    annotations = {**kept.annotations, **requested.annotations}
    return PodSettings(annotations, kept.labels, spec, container)


def _environment(adopted: Any, requested: tuple[tuple[str, str], ...]) -> list[Mapping[str, Any]]:
    """Adopted variables, replaced in their place, then the others in the order of the request."""
    values = dict(requested)
    merged = [
        {"name": variable["name"], "value": values.pop(variable["name"])}
        if variable["name"] in values
        else variable
        for variable in adopted
    ]
    return [*merged, *({"name": name, "value": value} for name, value in values.items())]


def _mount(spec: dict[str, Any], container: dict[str, Any], files: tuple[HostFile, ...]) -> None:
    """Add the files; a file replaces an adopted volume at the same path."""
    paths = {file.mount_path for file in files}
    container["volumeMounts"] = [
        mount
        for mount in container.get("volumeMounts") or ()
        if mount.get("mountPath") not in paths
    ]
    tidy_volumes(spec, container)
    volumes, mounts = [], []
    taken = {volume["name"] for volume in spec.get("volumes") or ()}
    free = (name for index in count() if (name := f"{names.HOST_FILE}-{index}") not in taken)
    for file, name in zip(files, free, strict=False):
        volumes.append({"name": name, "hostPath": {"path": file.path, "type": file.type}})
        mounts.append({"name": name, "mountPath": file.mount_path, "readOnly": True})
    spec["volumes"] = [*spec.get("volumes", ()), *volumes]
    container["volumeMounts"] = [*container.get("volumeMounts", ()), *mounts]
