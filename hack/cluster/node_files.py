"""A node's own files: what kubeadm, the kubelet and containerd would have at fixed places.

They are bound over the host's in the node's mount namespace, so hostPath volumes with real paths
like /etc/kubernetes resolve per node, and the host's own are never touched.
"""

from __future__ import annotations

import json
import shutil
import string
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from cluster import cgroups, controlplane, images, model, packages, paths, pki
from cluster.console import run

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cluster.model import Node, Sandbox

OWN_PATHS = (
    "/etc/cni/net.d",
    "/etc/kubernetes",
    "/run/containerd",
    "/run/lock",
    "/run/netns",
    "/var/lib/cni",
    "/var/lib/containerd",
    "/var/lib/etcd",
    "/var/lib/kube-scheduler-operator",
    "/var/lib/kubelet",
    "/var/log/containers",
    "/var/log/pods",
)
"""What is the node's own.

/var/log/pods too, because a kubelet removes the logs of pods that it does not know, and /run/lock
because programs on different nodes would otherwise exclude each other.
"""

_VOLATILE_PATHS = ("/run/containerd", "/run/lock", "/run/netns")
"""What a machine that is switched on finds empty."""


def root(sandbox: Sandbox, node: Node) -> Path:
    """The folder that has a node's own files, as seen from the host: root/etc/kubernetes, ..."""
    return sandbox.state / "nodes" / node.name


def create_mount_points() -> None:
    """Make the host's side of the nodes' own paths, and remember which were not there.

    They stay empty: a node's files are bound over them in its own mount namespace.
    """
    note = _mount_points_note()
    made = _absent_folders(Path(path) for path in OWN_PATHS)
    if made:
        known = json.loads(note.read_text()) if note.exists() else []
        paths.write_atomically(note, json.dumps([*known, *(str(path) for path in made)]))
    for path in made:
        path.mkdir(exist_ok=True)


def _absent_folders(wanted: Iterable[Path]) -> list[Path]:
    """What has to be made for some folders to exist, parents first."""
    chain = (folder for path in wanted for folder in (*reversed(path.parents), path))
    return [folder for folder in dict.fromkeys(chain) if not folder.exists()]


def remove_mount_points() -> None:
    """Remove what ``create_mount_points`` made; only when no sandbox is left.

    Removing a folder detaches what other mount namespaces have mounted on it.
    """
    note = _mount_points_note()
    try:
        made = json.loads(note.read_text())
    except FileNotFoundError:  # never made, or another sandbox that went at this moment removed it
        return
    for path in reversed(made):
        with suppress(OSError):
            Path(path).rmdir()
    note.unlink(missing_ok=True)


def _mount_points_note() -> Path:
    return paths.state_root() / ".mount-points.json"


def write(sandbox: Sandbox, node: Node) -> None:
    """Lay out a node's own files; what tests changed there, and what kubeadm wrote, is kept."""
    base = root(sandbox, node)
    for path in _VOLATILE_PATHS:
        shutil.rmtree(base / path[1:], ignore_errors=True)
    for path in OWN_PATHS:
        (base / path[1:]).mkdir(parents=True, exist_ok=True)
    if containerd_config_path(sandbox, node).exists():  # which is written last
        return
    if not sandbox.kubeadm:
        _play_kubeadm(sandbox, node)
    cni = render("cni.json", pod_network=sandbox.pod_network(node))
    paths.write_atomically(base / "etc/cni/net.d/10-sandbox.conflist", cni)
    config = containerd_config(_snapshotter(base))
    paths.write_atomically(containerd_config_path(sandbox, node), config)


def _play_kubeadm(sandbox: Sandbox, node: Node) -> None:
    """Write what kubeadm would, where the control plane is made of processes of the host."""
    base = root(sandbox, node)
    kubernetes = base / "etc/kubernetes"
    authority = pki.Authority(sandbox.state / "pki", "ca")
    address = str(sandbox.address(node))
    client = authority.issue(
        f"{node.name}-kubelet-client", f"system:node:{node.name}", organization="system:nodes"
    )
    serving = authority.issue(f"{node.name}-kubelet", node.name, hosts=[address, node.name])
    _write_kubeconfig(sandbox, kubernetes / "kubelet.conf", f"system:node:{node.name}", client)
    if node.control_plane:
        for name, user in (
            ("scheduler", "system:kube-scheduler"),
            ("admin", "kubernetes-admin"),
        ):
            made = authority.issue(name, user)  # with the cluster's certificates
            _write_kubeconfig(sandbox, kubernetes / f"{name}.conf", user, made)

    kubelet = base / "var/lib/kubelet"
    for source, target in (
        (authority.certificate, kubernetes / "pki/ca.crt"),
        (serving[0], kubelet / "pki/kubelet.crt"),
        (serving[1], kubelet / "pki/kubelet.key"),
    ):
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
    manifests = kubernetes / "manifests"
    manifests.mkdir(mode=0o700, exist_ok=True)
    if node.control_plane and sandbox.platform == model.KUBEADM:
        manifest = scheduler_manifest(sandbox)
        paths.write_atomically(manifests / "kube-scheduler.yaml", manifest, 0o600)

    paths.write_atomically(kubelet / "config.yaml", kubelet_config(sandbox, node))


def containerd_config_path(sandbox: Sandbox, node: Node) -> Path:
    return root(sandbox, node) / "containerd.toml"


def _write_kubeconfig(
    sandbox: Sandbox, path: Path, user: str, credentials: tuple[Path, Path]
) -> None:
    authority = sandbox.state / "pki" / "ca.crt"
    content = pki.kubeconfig(sandbox.node_server, authority, user, credentials)
    paths.write_atomically(path, content, 0o600)


def render(template: str, **values: object) -> str:
    """Fill in one of the templates."""
    return string.Template((paths.TEMPLATES / template).read_text()).substitute(values)


def scheduler_manifest(sandbox: Sandbox) -> str:
    """The static pod that kubeadm 1.34 to 1.37 writes."""
    return render("kube-scheduler.yaml", image=images.scheduler_name(sandbox.kubernetes))


def kubelet_config(sandbox: Sandbox, node: Node) -> str:
    """A node's KubeletConfiguration."""
    return render(
        "kubelet.yaml",
        cgroup_root=cgroups.node_path(sandbox.name, node.name),
        taints=json.dumps(controlplane.taints(sandbox, node)),
    )


def containerd_config(snapshotter: str) -> str:
    """A node's containerd configuration."""
    plugins = packages.cni_plugins() or packages.CNI_FOLDERS[0]
    return render(
        "containerd.toml",
        pause_image=images.PAUSE,
        snapshotter=snapshotter,
        cni_plugins=plugins,
    )


def _snapshotter(folder: Path) -> str:
    """Overlayfs cannot lie on overlayfs, which is what a container's root usually is."""
    below = run("stat", "--file-system", "--format=%T", folder).strip()
    return "native" if below == "overlayfs" else "overlayfs"
