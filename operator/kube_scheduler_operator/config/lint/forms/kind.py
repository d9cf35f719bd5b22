"""kind and k3d: clusters in containers, with patches for kubeadm and arguments of k3s.

Sources: kubernetes-sigs/kind 0.30, pkg/apis/config/v1alpha4/types.go; k3d-io/k3d 5.8,
pkg/config/v1alpha5/types.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ....base.findings import Path
from ....base.objects import entries
from ....base.source.reader import Document
from ...language.versions import Version
from .document_fields import at, objects, text, value_of, version_of_image
from .flags import of_pairs
from .form import CommandLine, CommandLineFlag, Contents, Mount, Text, host_mounts
from .rancher import GIVEN, SCHEDULER_ARG

_KIND: Final = "kind Cluster"


def read_kind(document: Document) -> Contents:
    """Read kubeadmConfigPatches, for the cluster and for nodes."""
    value = value_of(document)
    nodes = list(objects(value.get("nodes")))
    control = [
        (index, node) for index, node in nodes if node.get("role", "control-plane") != "worker"
    ]
    versions = (version_of_image(text(node.get("image"))) for _, node in control)
    version = next(filter(None, versions), None)
    mounts_of = {
        index: tuple(
            host_mounts(node.get("extraMounts"), ("nodes", index, "extraMounts"), "containerPath")
        )
        for index, node in control
    }
    mounts = tuple(mount for own in mounts_of.values() for mount in own)
    texts = list(_patches(value, (), mounts, version))
    for index, node in control:
        texts += _patches(node, ("nodes", index), mounts_of[index], version)
    return Contents(texts=tuple(texts))


def _patches(
    owner: Mapping[str, Any], path: Path, mounts: tuple[Mount, ...], version: Version | None
) -> Iterator[Text]:
    for index, content in enumerate(entries(owner.get("kubeadmConfigPatches"))):
        if isinstance(content, str):
            where = (*path, "kubeadmConfigPatches", index)
            yield Text(where, content, _KIND, node_mounts=mounts, version=version, for_kubeadm=True)


def read_k3d(document: Document) -> Contents:
    value = value_of(document)
    arguments: list[CommandLineFlag] = []
    path: Path = ("options", "k3s", "extraArgs")
    for index, entry in objects(at(value, *map(str, path))):
        name, _, flag = text(entry.get("arg")).lstrip("-").partition("=")
        if name == SCHEDULER_ARG:
            arguments += of_pairs(flag, (*path, index, "arg"))
    mounts = []
    for index, entry in objects(value.get("volumes")):
        host, _, target = text(entry.get("volume")).partition(":")
        target = target.partition(":")[0]
        mounts.append(Mount(target, "", host, at=("volumes", index)))
    image = text(value.get("image"))
    if not arguments:
        return Contents()
    command = CommandLine(
        label="k3d cluster",
        arguments=tuple(arguments),
        at=path,
        mounts=tuple(mounts),
        version=version_of_image(image),
        namespace="kube-system",
        given=GIVEN,
        mount_fix="add it: volumes: [{volume: 'PATH-ON-THIS-MACHINE:FILE', nodeFilters: "
        "['server:*']}]",
    )
    return Contents(commands=(command,))
