"""kubeadm: ClusterConfiguration, patches of the static Pod's manifest, and products that have both.

Sources, in k8s.io/kubernetes 1.36.3, cmd/kubeadm/app: apis/kubeadm/v1beta4/types.go (extraArgs is a
list), v1beta3/types.go (a map); phases/controlplane/manifests.go (flags and volumes of the Pod);
util/patches/patches.go (patches). Cluster API repeats ClusterConfiguration in KubeadmControlPlane:
kubernetes-sigs/cluster-api 1.11, api/bootstrap/kubeadm/v1beta2. kind has patches of all of them:
kubernetes-sigs/kind 0.30, pkg/apis/config/v1alpha4/types.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from ....base.decoding import INVALID_TYPE
from ....base.findings import Path, Problem
from ....base.objects import entries, mapping
from ....base.source.reader import Document
from ...language.versions import Version
from .document_fields import (
    at,
    group_kind,
    label_of,
    objects,
    text,
    value_of,
    version_of,
    version_of_image,
)
from .flags import of_map, of_names, of_words
from .form import CommandLine, Contents, Mount, Text, host_mounts
from .workload import container_mounts, scheduler_container, volumes_of

GROUP: Final = "kubeadm.k8s.io"
KINDS: Final = ("ClusterConfiguration", "InitConfiguration", "JoinConfiguration")
KUBECONFIG: Final = "/etc/kubernetes/scheduler.conf"
GIVEN: Final[Mapping[str, str]] = {
    "authentication-kubeconfig": KUBECONFIG,
    "authorization-kubeconfig": KUBECONFIG,
    "bind-address": "127.0.0.1",
    "kubeconfig": KUBECONFIG,
    "leader-elect": "true",
}
"""The flags that kubeadm sets (getSchedulerCommand)."""
OWN_MOUNT: Final = Mount(KUBECONFIG, "", KUBECONFIG)


def read(document: Document) -> Contents | None:
    value = value_of(document)
    group, kind = group_kind(value)
    if kind not in KINDS or (group != GROUP and "apiVersion" in value):
        return None
    version = str(value.get("apiVersion") or "").rpartition("/")[2]
    # A patch, for example of kind, has no version.
    lists = version not in ("v1beta1", "v1beta2", "v1beta3") if version else None
    return _scheduler(value, (), kind, lists=lists)


def _scheduler(
    value: Mapping[str, Any],
    path: Path,
    label: str,
    *,
    lists: bool | None = None,
    kubernetes: Version | None = None,
) -> Contents:
    """Read the scheduler of the ClusterConfiguration at a path.

    `lists` is whether its version writes extraArgs as a list; None: unknown.
    """
    scheduler = at(value, "scheduler")
    if not isinstance(scheduler, Mapping):
        return Contents()
    where = (*path, "scheduler")
    extra, path = scheduler.get("extraArgs"), (*where, "extraArgs")
    flags = of_names(extra, path) if isinstance(extra, list) else of_map(extra, path)
    mounts = (OWN_MOUNT, *host_mounts(scheduler.get("extraVolumes"), (*where, "extraVolumes")))
    command = CommandLine(
        label=label,
        arguments=tuple(flags),
        at=path,
        mounts=mounts,
        version=kubernetes or version_of(value.get("kubernetesVersion")),
        namespace="kube-system",
        given=GIVEN,
        mount_fix="add it: extraVolumes: [{name: scheduler-config, hostPath: FILE, mountPath: "
        "FILE, readOnly: true, pathType: File}]",
    )
    lists = isinstance(extra, list) if lists is None else lists
    problems = tuple(_extra_args_problems(extra, path, lists=lists))
    return Contents(commands=(command,), problems=problems)


def _extra_args_problems(value: Any, path: Path, *, lists: bool) -> Iterator[Problem]:
    if isinstance(value, list) and not lists:
        message = "extraArgs is a map in kubeadm.k8s.io/v1beta3, not a list of name and value"
        fix = "write it as NAME: VALUE, or set apiVersion: kubeadm.k8s.io/v1beta4"
        yield Problem(INVALID_TYPE, path, message, fix)
    elif isinstance(value, Mapping) and lists:
        message = "extraArgs is a list in kubeadm.k8s.io/v1beta4, not a map"
        fix = "write each flag as {name: NAME, value: VALUE}"
        yield Problem(INVALID_TYPE, path, message, fix)
    elif isinstance(value, Mapping):
        for key, argument in value.items():
            if argument is not None and not isinstance(argument, str):
                written = str(argument).lower() if isinstance(argument, bool) else repr(argument)
                message = f"kubeadm accepts only strings as values of extraArgs, not {written}"
                yield Problem(INVALID_TYPE, (*path, key), message, "quote the value")


def read_patch(document: Document) -> Contents | None:
    """Read a patch of kube-scheduler's manifest: JSON patch operations, or a part of a Pod."""
    patch = document.root.data
    if isinstance(patch, list):
        return _operations(patch)
    if not isinstance(patch, Mapping) or patch.get("kind") not in (None, "Pod"):
        return None
    if patch.get("apiVersion") is not None and at(patch, "metadata", "name") is not None:
        return None  # a whole Pod
    for index, container in objects(at(patch, "spec", "containers")):
        if container.get("name") == "kube-scheduler":
            where = ("spec", "containers", index)
            scheduler = scheduler_container(container, where)
            mounts = container_mounts(container, volumes_of(patch.get("spec")), where)
            command = CommandLine(
                "patch of kube-scheduler",
                scheduler.flags if scheduler else (),
                where,
                (OWN_MOUNT, *mounts),
                namespace="kube-system",
                given=GIVEN,
            )
            problems = tuple(scheduler.problems()) if scheduler else ()
            return Contents(commands=(command,), problems=problems)
    return None


def _operations(operations: list[Any]) -> Contents | None:
    words: list[tuple[str, Path]] = []
    volumes: dict[str, Mapping[str, Any]] = {}
    mounts: list[tuple[int, Any]] = []
    for index, operation in objects(operations):
        target = text(operation.get("path"))
        if "op" not in operation or not target.startswith("/spec/"):
            return None
        value = operation.get("value")
        values = value if isinstance(value, list) else [value]
        if target.startswith("/spec/containers/0/command"):
            words += [(str(word), (index, "value")) for word in values]
        elif "/volumeMounts" in target:
            mounts += [(index, mount) for mount in values]
        elif target.startswith("/spec/volumes"):
            volumes |= {text(volume.get("name")): volume for _, volume in objects(values)}
    if not words:
        return None
    mounted: list[Mount] = [OWN_MOUNT]
    for index, mount in mounts:
        mounted += container_mounts({"volumeMounts": [mount]}, volumes, (index,))
    command = CommandLine(
        "patch of kube-scheduler",
        tuple(of_words(words)),
        (),
        tuple(mounted),
        namespace="kube-system",
        given=GIVEN,
        mount_fix="add operations for /spec/volumes/- and /spec/containers/0/volumeMounts/- with "
        "the file",
    )
    return Contents(commands=(command,))


def read_cluster_api(document: Document) -> Contents | None:
    """Read Cluster API's KubeadmControlPlane, its template, and KubeadmConfig."""
    value = value_of(document)
    group, kind = group_kind(value)
    if not group.endswith("cluster.x-k8s.io"):
        return None
    path: Path = {
        "KubeadmControlPlane": ("spec", "kubeadmConfigSpec"),
        "KubeadmControlPlaneTemplate": ("spec", "template", "spec", "kubeadmConfigSpec"),
        "KubeadmConfig": ("spec",),
        "KubeadmConfigTemplate": ("spec", "template", "spec"),
    }.get(kind, ())
    if not path:
        return None
    config = at(value, *path)
    cluster = mapping(at(config, "clusterConfiguration"))
    version = version_of(at(value, "spec", "version"))
    where = (*path, "clusterConfiguration")
    contents = _scheduler(cluster, where, label_of(value), kubernetes=version)
    texts = tuple(_files(config, (*path, "files"), label_of(value)))
    return replace(contents, texts=texts)


def _files(config: Any, path: Path, owner: str) -> Iterator[Text]:
    for index, file in objects(at(config, "files")):
        content = text(file.get("content"))
        if content and file.get("encoding") in (None, ""):
            where = (*path, index, "content")
            node_path = text(file.get("path"))
            yield Text(where, content, owner, node_path=node_path, has_credentials=False)


def read_kind(document: Document) -> Contents:
    """Read kubeadmConfigPatches, for the cluster and for nodes."""
    value = value_of(document)
    nodes: list[tuple[Path, Mapping[str, Any]]] = [
        (("nodes", index), node)
        for index, node in objects(value.get("nodes"))
        if node.get("role", "control-plane") != "worker"
    ]
    versions = (version_of_image(text(node.get("image"))) for _, node in nodes)
    version = next(filter(None, versions), None)
    mounts_of = [
        tuple(host_mounts(node.get("extraMounts"), (*path, "extraMounts"), "containerPath"))
        for path, node in nodes
    ]
    mounts_of_all = tuple(mount for mounts in mounts_of for mount in mounts)
    patched: list[tuple[Path, Mapping[str, Any]]] = [((), value), *nodes]
    texts = [
        Text(
            (*path, "kubeadmConfigPatches", index),
            content,
            "kind Cluster",
            node_mounts=mounts,
            version=version,
            for_kubeadm=True,
        )
        for (path, owner), mounts in zip(patched, (mounts_of_all, *mounts_of), strict=True)
        for index, content in enumerate(entries(owner.get("kubeadmConfigPatches")))
        if isinstance(content, str)
    ]
    return Contents(texts=tuple(texts))
