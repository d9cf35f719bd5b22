"""The request of OperatorSettings for the Pods of schedulers, and the files that it may mount."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ....base.findings import NOT_ALLOWED, Path, Problem, listing
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


# --- hostFiles -----------------------------------------------------------------------------------
# The CRD repeats these rules. A directory is listed only if its owners keep neither keys nor
# kubeconfigs there. The directories of CA certificates are those that kubeadm mounts into the
# control plane (volumes.go of its phase control-plane), but only one file of /etc/pki/tls/certs:
# scripts of its owner write keys there.

PUBLIC_DIRECTORY: Final = "/etc/kube-scheduler-operator/public"
"""The directory for files of users, who create it."""

ALLOWED: Final = (
    "/etc/ca-certificates",
    "/etc/crypto-policies",
    PUBLIC_DIRECTORY,
    "/etc/localtime",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/certs",
    "/usr/local/share/ca-certificates",
    "/usr/share/ca-certificates",
    "/usr/share/zoneinfo",
    "/var/lib/ca-certificates",
)
"""Files, and directories with everything below them."""

RESERVED: Final = (
    "/bin", "/dev", "/etc/kubernetes", "/go-runner", "/preflight", "/proc", "/run", "/sbin",
    "/sys", "/usr/bin", "/usr/local/bin", "/var/lib/rancher", "/var/run",
)  # fmt: skip
"""Mounts here would hide the scheduler, its kubeconfig, its configuration or its certificates."""

_PATH: Final = re.compile(r"(/[A-Za-z0-9._+@:-]+)+")
_SENSITIVE: Final = re.compile(r"\.(key|kubeconfig|p12|pfx|jks)$|/private(/|$)", re.IGNORECASE)


def host_file_problems(files: tuple[HostFile, ...], path: Path) -> Iterator[Problem]:
    """Find the errors in `spec.pods.hostFiles`, which is at `path`."""
    mounted: set[str] = set()
    for index, file in enumerate(files):
        here = (*path, index)
        problems = tuple(_source_problems(file.path, (*here, "path")))
        yield from problems
        at = file.mount_path
        if problems and at == file.path:
            continue
        where = (*here, "mountPath" if at != file.path else "path")
        if at != file.path and not _is_plain(at):
            message = f'"{at}" is not an absolute path without .. and without a / at its end'
            yield Problem(NOT_ALLOWED, where, message, "correct it")
        elif any(_is_within(at, directory) or _is_within(directory, at) for directory in RESERVED):
            message = f"a mount at {at} would hide files of the scheduler or of the operator"
            yield Problem(NOT_ALLOWED, where, message, "use another path, such as that of the node")
        for other in mounted:
            if at == other:
                message = f"another entry is mounted at {at}"
                yield Problem(NOT_ALLOWED, where, message, "remove one of them")
            elif _is_within(at, other) or _is_within(other, at):
                message = f"the mounts at {at} and {other} overlap"
                yield Problem(NOT_ALLOWED, where, message, "mount one of them elsewhere")
        mounted.add(at)


def _source_problems(source: str, path: Path) -> Iterator[Problem]:
    if not _is_plain(source):
        message = f'"{source}" is not an absolute path without .. and without a / at its end'
        yield Problem(NOT_ALLOWED, path, message, "correct it")
    elif not any(_is_within(source, directory) for directory in ALLOWED):
        message = (
            f"{source} cannot be mounted: only {listing(ALLOWED)}".replace(" or ", " and ")
            + " are known to hold no keys or kubeconfigs"
        )
        fix = f"copy the file to {PUBLIC_DIRECTORY} on every control-plane node"
        yield Problem(NOT_ALLOWED, path, message, fix)
    elif _SENSITIVE.search(source):
        message = f"{source} is the path of a key or a kubeconfig, which cannot be mounted"
        yield Problem(NOT_ALLOWED, path, message, "remove it")


def _is_plain(path: str) -> bool:
    return bool(_PATH.fullmatch(path)) and not {".", ".."} & set(path.split("/"))


def _is_within(path: str, directory: str) -> bool:
    return path == directory or path.startswith(f"{directory}/")
