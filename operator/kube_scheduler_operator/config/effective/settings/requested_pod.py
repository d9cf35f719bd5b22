"""The request of OperatorSettings for the static Pods of schedulers, as one immutable value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ....base.objects import mapping
from ....base.quantities import amount

FILE: Final = "File"
GROUPS: Final = ("requests", "limits")

OWN_RESOURCES: Final[Mapping[str, Any]] = {"requests": {"cpu": "100m", "memory": "50Mi"}}
"""Resources of a scheduler for which nothing else was adopted or set."""


@dataclass(frozen=True, slots=True)
class HostFile:
    """A file or a directory of the node."""

    path: str  # on the node
    mount_path: str  # in the container
    type: str = FILE  # File or Directory, as in `hostPath`


@dataclass(frozen=True, slots=True)
class RequestedPod:
    """`spec.pods` of OperatorSettings; unset fields change nothing."""

    # `requests` and `limits` -> resource -> quantity
    resources: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    env: tuple[tuple[str, str], ...] = ()  # (name, value)
    annotations: Mapping[str, str] = field(default_factory=dict)
    priority_class_name: str = ""
    host_files: tuple[HostFile, ...] = ()  # mounted read-only
    remove_adopted: tuple[str, ...] = ()  # names of adopted settings, as in `PodSettings.names`

    @property
    def replaced(self) -> Iterator[str]:
        """The names of the adopted settings that this request replaces."""
        yield from (f"annotations.{key}" for key in self.annotations)
        yield from (f"env.{name}" for name, _ in self.env)
        yield from (f"volumeMounts.{file.mount_path}" for file in self.host_files)
        if self.resources:
            yield "resources"
        if self.priority_class_name:
            yield "pod.priorityClassName"

    def resources_over(self, base: Mapping[str, Any]) -> dict[str, Any]:
        """Merge the requested resources over those of a container."""
        merged = {**base}
        for group in GROUPS:
            if self.resources.get(group):
                merged[group] = {**mapping(base.get(group)), **self.resources[group]}
        return merged


NOTHING_REQUESTED: Final = RequestedPod()


def requested_pod(spec: Mapping[str, Any]) -> RequestedPod:
    """Read the request in a valid spec; a zero value counts as unset."""
    pods = mapping(spec.get("pods"))
    resources = mapping(pods.get("resources"))
    chosen = {
        group: {
            name: str(value)
            for name, value in sorted(mapping(resources.get(group)).items())
            if value is not None and amount(name, value)
        }
        for group in GROUPS
    }
    return RequestedPod(
        {group: values for group, values in chosen.items() if values},
        tuple(
            (str(variable["name"]), str(variable.get("value") or ""))
            for variable in pods.get("env") or ()
        ),
        {key: str(value) for key, value in sorted(mapping(pods.get("annotations")).items())},
        str(pods.get("priorityClassName") or ""),
        tuple(
            HostFile(
                str(file["path"]),
                str(file.get("mountPath") or file["path"]),
                str(file.get("type") or FILE),
            )
            for file in pods.get("hostFiles") or ()
        ),
        tuple(pods.get("removeAdopted") or ()),
    )
