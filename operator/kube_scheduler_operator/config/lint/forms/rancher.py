"""Rancher's products: config.yaml of k3s and RKE2, Rancher's clusters, cluster.yml of RKE1, k3d.

Sources: k3s-io/docs at 147c369, docs/installation/configuration.md; rancher/rke2-docs at 9477b7b,
docs/reference/server_config.md; rancher/rancher 2.12, provisioning.cattle.io/v1; rancher/rke 1.7,
types/rke_types.go (SchedulerService); k3d-io/k3d 5.8, pkg/config/v1alpha5/types.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ....base.findings import Path
from ....base.objects import mapping
from ....base.source.reader import Document
from .document_fields import (
    at,
    label_of,
    objects,
    text,
    value_of,
    version_of,
    version_of_image,
)
from .flags import of_map, of_pairs
from .form import CommandLine, CommandLineFlag, Contents, Mount
from .workload import stock_version

_SCHEDULER_ARG: Final = "kube-scheduler-arg"
_DATA_OF_K3S: Final = "/var/lib/rancher/k3s"
_OWN_KEYS: Final = ("disable-scheduler", "kube-scheduler-image", _SCHEDULER_ARG)


def kubeconfig_of(product: str) -> str:
    """Return the kubeconfig that k3s or RKE2 writes for its scheduler."""
    return f"/var/lib/rancher/{product}/server/cred/scheduler.kubeconfig"


def _given(product: str) -> dict[str, str]:
    return {"kubeconfig": kubeconfig_of(product), "leader-elect": "true"}


def read_config(document: Document) -> Contents | None:
    """Read `kube-scheduler-arg` in config.yaml of k3s or RKE2."""
    value = value_of(document)
    if "kind" in value and "apiVersion" in value:
        return None
    if not any(str(key).rstrip("+") in _OWN_KEYS for key in value):
        return None
    command = _server(value, (), "config.yaml of k3s or RKE2")
    return Contents(commands=(command,) if command else ())


def _server(
    value: Mapping[str, Any], path: Path, label: str, release: str = ""
) -> CommandLine | None:
    arguments: list[CommandLineFlag] = []
    where: Path = path
    for key, setting in value.items():
        if str(key).rstrip("+") == _SCHEDULER_ARG:
            where = where if arguments else (*path, key)
            arguments += of_pairs(setting, (*path, key))
    if not arguments:
        return None
    image = text(value.get("kube-scheduler-image"))
    is_rke2 = any("rke2" in word for word in (release, *(flag.value for flag in arguments)))
    return CommandLine(
        label=label,
        arguments=tuple(arguments),
        at=where,
        mounts=None,  # k3s runs it on the node; RKE2 mounts each file that a flag names
        image=image,
        version=version_of(release) or stock_version(image),
        namespace="kube-system",
        given=_given("rke2" if is_rke2 else "k3s"),
    )


def _binds(value: Any, path: Path) -> Iterator[Mount]:
    for index, bind in enumerate(value if isinstance(value, list) else [value]):
        host, _, rest = text(bind).partition(":")
        where = (*path, index) if isinstance(value, list) else path
        yield Mount(rest.partition(":")[0] or host, "", host, at=where)


def read_cluster(document: Document) -> Contents | None:
    """Read machineGlobalConfig and machineSelectorConfig of Rancher's RKE2 and k3s clusters."""
    value = value_of(document)
    release = text(at(value, "spec", "kubernetesVersion"))
    base: Path = ("spec", "rkeConfig")
    selected = at(value, *base, "machineSelectorConfig")
    paths: list[Path] = [(*base, "machineGlobalConfig")]
    paths += ((*base, "machineSelectorConfig", index, "config") for index, _ in objects(selected))
    nodes = ((path, document.data(path)) for path in paths)
    servers = (_server(mapping(node), path, label_of(value), release) for path, node in nodes)
    return Contents(commands=tuple(filter(None, servers)))


def read_rke1(document: Document) -> Contents | None:
    """Read `services.scheduler` in cluster.yml, also below `rancher_kubernetes_engine_config`."""
    value = value_of(document)
    for path in ((), ("rancher_kubernetes_engine_config",)):
        owner = at(value, *path)
        service = at(owner, "services", "scheduler")
        if isinstance(service, Mapping) and ("nodes" in owner or path or "network" in owner):
            where = (*path, "services", "scheduler")
            arguments = [
                *of_map(service.get("extra_args"), (*where, "extra_args")),
                *of_map(service.get("extra_args_array"), (*where, "extra_args_array")),
            ]
            if not arguments:
                return Contents()
            binds = service.get("extra_binds")
            mounts = (
                Mount("/etc/kubernetes", "", "/etc/kubernetes"),
                *(_binds(binds, (*where, "extra_binds")) if binds else ()),
            )
            kubernetes = str(owner.get("kubernetes_version") or "").partition("-rancher")[0]
            command = CommandLine(
                label="cluster.yml of RKE1",
                arguments=tuple(arguments),
                at=where,
                mounts=mounts,
                version=version_of(kubernetes),
                namespace="kube-system",
                given={"kubeconfig": "/etc/kubernetes/ssl/kubecfg-kube-scheduler.yaml"},
                mount_fix="add it: extra_binds: ['FILE:FILE:ro']",
            )
            return Contents(commands=(command,))
    return None


def read_k3d(document: Document) -> Contents:
    value = value_of(document)
    arguments: list[CommandLineFlag] = []
    path: Path = ("options", "k3s", "extraArgs")
    for index, entry in objects(at(value, *path)):
        name, _, flag = text(entry.get("arg")).lstrip("-").partition("=")
        if name == _SCHEDULER_ARG:
            arguments += of_pairs(flag, (*path, index, "arg"))
    mounts = [Mount(_DATA_OF_K3S, "", _DATA_OF_K3S)]
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
        given=_given("k3s"),
        mount_fix="add it: volumes: [{volume: 'PATH-ON-THIS-MACHINE:FILE', nodeFilters: "
        "['server:*']}]",
    )
    return Contents(commands=(command,))
