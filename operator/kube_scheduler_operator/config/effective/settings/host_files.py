"""The files of a node that OperatorSettings may mount, and where; the CRD repeats these rules.

A directory is listed only if its owners keep neither keys nor kubeconfigs there. The directories of
CA certificates are those that kubeadm mounts into the control plane (volumes.go of its phase
control-plane), but only one file of /etc/pki/tls/certs: scripts of its owner write keys there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from ....base.findings import NOT_ALLOWED, Path, Problem, listing
from .requested_pod import HostFile

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
