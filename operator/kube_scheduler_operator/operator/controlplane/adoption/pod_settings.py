"""Settings of a static Pod beyond its flags, in the shape of a Pod, and how they are applied.

They are canonical JSON, so that equal settings are equal text: they are part of a revision.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

from ....base import names
from ....base.json_text import parse_json
from ....base.objects import mapping
from ....base.priorities import BUILT_IN_PRIORITIES
from ....base.templates import canonical_json
from ....config.effective.settings.requested_pod import (
    NOTHING_REQUESTED,
    OWN_RESOURCES,
    HostFile,
    RequestedPod,
)

METADATA: Final = ("annotations", "labels")
CLASS: Final = "priorityClassName"
PROBES: Final = ("startupProbe", "readinessProbe", "livenessProbe")

_APPENDED: Final = ("volumes", "volumeMounts", "ports")
_MERGED: Final = ("securityContext", *PROBES)


@dataclass(frozen=True, slots=True)
class PodSettings:
    annotations: Mapping[str, str]
    labels: Mapping[str, str]
    spec: Mapping[str, Any]  # fields of the Pod's spec; `volumes` are added to the operator's
    # fields of the scheduler's container; `volumeMounts` and `ports` are added to the operator's,
    # probes and the security context are merged into them
    container: Mapping[str, Any]

    def __bool__(self) -> bool:
        return any((self.annotations, self.labels, self.spec, self.container))

    @property
    def document(self) -> dict[str, Any]:
        groups = {
            "annotations": self.annotations,
            "labels": self.labels,
            "spec": self.spec,
            "container": self.container,
        }
        return {name: group for name, group in groups.items() if group}

    def names(self) -> Iterator[tuple[str, Any]]:
        """(name, value) of every setting: `env.GOGC`, `annotations.team`, `pod.dnsPolicy`."""
        for group in METADATA:
            for key, value in sorted(getattr(self, group).items()):
                yield f"{group}.{key}", value
        for fields in (self.container, self.spec):
            for name, value in sorted(fields.items()):
                if name == "env":
                    yield from ((f"env.{item['name']}", item) for item in value)
                elif name in _APPENDED:
                    yield from ((f"{name}.{_identity(item)}", item) for item in value)
                else:
                    scope = "pod." if fields is self.spec else ""
                    yield f"{scope}{name}", value

    def without(self, left_out: frozenset[str]) -> PodSettings:
        """The settings without those of these names; volumes go with their last mount."""
        if not left_out:
            return self
        groups = {
            group: {k: v for k, v in getattr(self, group).items() if f"{group}.{k}" not in left_out}
            for group in METADATA
        }
        spec = {k: v for k, v in self.spec.items() if f"pod.{k}" not in left_out}
        if f"pod.{CLASS}" in left_out:
            spec.pop("priority", None)
        container = {k: v for k, v in self.container.items() if k not in left_out}
        for fields, name, key in (
            (container, "env", "name"),
            (container, "ports", "name"),
            (container, "volumeMounts", "mountPath"),
            (spec, "volumes", "name"),
        ):
            if name in fields:
                fields[name] = [
                    item for item in fields[name] if f"{name}.{item.get(key, '')}" not in left_out
                ]
        tidy_volumes(spec, container)
        full = {k: v for k, v in container.items() if v != []}
        return PodSettings(groups["annotations"], groups["labels"], spec, full)


NO_SETTINGS: Final = PodSettings({}, {}, {}, {})


def tidy_volumes(spec: dict[str, Any], container: dict[str, Any]) -> None:
    """Remove mounts without a volume, and volumes without a mount."""
    known = {item["name"] for item in spec.get("volumes") or ()}
    mounts = [item for item in container.get("volumeMounts") or () if item["name"] in known]
    used = {item["name"] for item in mounts}
    volumes = [item for item in spec.get("volumes") or () if item["name"] in used]
    for fields, name, value in ((spec, "volumes", volumes), (container, "volumeMounts", mounts)):
        fields.pop(name, None)
        if value:
            fields[name] = value


# --- with OperatorSettings ---------------------------------------------------------------------


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


# --- as text, and in a Pod ---------------------------------------------------------------------


def read_settings(document: Any) -> PodSettings:
    """Read a document of `PodSettings.document`; anything else counts as no settings."""
    fields = mapping(document)
    groups = [mapping(fields.get(name)) for name in (*METADATA, "spec", "container")]
    return PodSettings(*groups)


def parse_settings(text: str) -> PodSettings:
    """Read the settings from text; other text counts as no settings."""
    try:
        return read_settings(parse_json(text))
    except ValueError:
        return NO_SETTINGS


def settings_text(settings: PodSettings) -> str:
    """Canonical JSON; empty without settings."""
    return canonical_json(settings.document) if settings else ""


def apply_settings(pod: Mapping[str, Any], settings: PodSettings) -> dict[str, Any]:
    """A copy of the operator's static Pod with the settings; the operator's own labels win."""
    completed = deepcopy(dict(pod))
    metadata, spec = completed["metadata"], completed["spec"]
    for group in METADATA:
        metadata[group] = {**getattr(settings, group), **(metadata.get(group) or {})}
    _add(spec, settings.spec)
    _add(spec["containers"][0], settings.container)
    return completed


def _add(target: dict[str, Any], fields: Mapping[str, Any]) -> None:
    for name, value in fields.items():
        if name in _APPENDED:
            target[name] = [*target.get(name, ()), *deepcopy(list(value))]
        elif name in _MERGED:
            target[name] = {**target.get(name, {}), **deepcopy(dict(value))}
        else:
            target[name] = deepcopy(value)


def _identity(item: Mapping[str, Any]) -> str:
    return str(item.get("mountPath") or item.get("name") or item.get("containerPort") or "")
