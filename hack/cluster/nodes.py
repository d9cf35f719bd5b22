"""Nodes: each its own network, mount and UTS namespaces, containerd, kubelet and /etc/kubernetes.

The three daemons of a node are recorded as NODE-init (keeps the namespaces), NODE-containerd and
NODE-kubelet. Everything that a kubelet or containerd keeps at a fixed place is the node's own,
bound over the host's in the mount namespace, so hostPath volumes with real paths resolve per node.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from cluster import cgroups, image_store, network, node_files, paths, processes
from cluster.api import wait
from cluster.console import SandboxError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cluster.archive import Image
    from cluster.model import Node, Sandbox

_KUBELET_PORT = 10250


def daemons(node: Node) -> tuple[str, str, str]:
    """The names that a node's daemons are recorded under, in the order of starting."""
    return f"{node.name}-init", f"{node.name}-containerd", f"{node.name}-kubelet"


def boot(sandbox: Sandbox, node: Node, wanted: Sequence[Image] = ()) -> None:
    """Start a node up to containerd, with some images, unless it runs.

    Raises:
        SandboxError: It does not come up.
    """
    init, containerd, kubelet = daemons(node)
    if not processes.alive(sandbox, init):
        power_off(sandbox, node)  # what is left is in namespaces that cannot be entered any more
        network.create_node(sandbox, node)
        node_files.write(sandbox, node)
        _start_init(sandbox, node)
    if not processes.alive(sandbox, containerd):
        processes.kill_one(sandbox, kubelet)
        store = node_files.root(sandbox, node) / "var/lib/containerd"
        if wanted and not any(store.iterdir()) and not image_store.restore(store, wanted):
            _make_store(sandbox, node, store, wanted)
        _start_containerd(sandbox, node)
    load_images(sandbox, node, wanted)


def _make_store(sandbox: Sandbox, node: Node, store: Path, wanted: Sequence[Image]) -> None:
    """Fill a node's store the slow way, and keep a copy for the nodes to come."""
    with image_store.locked(wanted):
        if image_store.restore(store, wanted):  # another node has been quicker
            return
        _start_containerd(sandbox, node)
        load_images(sandbox, node, wanted)
        processes.kill_one(sandbox, daemons(node)[1])
        image_store.save(store, wanted)


def _start_containerd(sandbox: Sandbox, node: Node) -> None:
    name = daemons(node)[1]
    folder = node_files.root(sandbox, node) / "run/containerd"
    (folder / "containerd.sock").unlink(missing_ok=True)
    command = ["containerd", "--config", str(node_files.containerd_config_path(sandbox, node))]
    _spawn(sandbox, node, name, command)
    wait(
        lambda: _listens(folder, "containerd.sock"),
        60,
        lambda: f"{name} did not come up:\n{processes.log_tail(sandbox, name)}",
    )


def runs(sandbox: Sandbox, node: Node) -> bool:
    """Whether a node is up as far as containerd."""
    return all(processes.alive(sandbox, name) for name in daemons(node)[:2])


def start_kubelet(sandbox: Sandbox, node: Node, kubelet: Path) -> None:
    """Start a node's kubelet, unless it runs."""
    if sandbox.kubeadm:
        command = ["sh", str(paths.TEMPLATES / "kubelet-unit.sh"), str(kubelet)]
        _spawn(sandbox, node, daemons(node)[2], command)
        return
    command = [
        str(kubelet),
        "--config=/var/lib/kubelet/config.yaml",
        "--kubeconfig=/etc/kubernetes/kubelet.conf",
        f"--hostname-override={node.name}",
        f"--node-ip={sandbox.address(node)}",
    ]
    _spawn(sandbox, node, daemons(node)[2], command)


def kubelet_serves(sandbox: Sandbox, node: Node) -> bool:
    """Whether a node's kubelet has come so far that it serves, which it does once it has a CRI."""
    try:
        with socket.create_connection((str(sandbox.address(node)), _KUBELET_PORT), 1.0):
            return True
    except OSError:
        return False


def load_images(sandbox: Sandbox, node: Node, wanted: Sequence[Image]) -> None:
    """Give a running node the images that it does not have.

    Raises:
        SandboxError: It does not take one.
    """
    image_store.load(lambda command: enter(sandbox, node, command), wanted)


def enter(sandbox: Sandbox, node: Node, command: Sequence[str]) -> list[str]:
    """Wrap a command so that it runs on a node: in its namespaces, not in its cgroup.

    Raises:
        SandboxError: The node is not running.
    """
    init = processes.find(sandbox, daemons(node)[0])
    if init is None:
        raise SandboxError(
            f"node {node.name} is not running; start it: "
            f"hack/sandbox node start --name {sandbox.name} --node {node.name}"
        )
    return ["nsenter", f"--target={init.pid}", "--mount", "--uts", "--net", "--", *command]


def power_off(sandbox: Sandbox, node: Node) -> None:
    """Kill everything on a node at once, as pulling its plug would."""
    names = daemons(node)

    def running() -> set[int]:
        found = cgroups.processes(sandbox.name, node.name)
        found.update(one.pid for one in (processes.find(sandbox, n) for n in names) if one)
        return found

    processes.kill(running)
    cgroups.remove(sandbox.name, node.name)


def kill_kubelet(sandbox: Sandbox, node: Node) -> bool:
    """Kill a node's kubelet alone; its containers go on."""
    return processes.kill_one(sandbox, daemons(node)[2])


def _start_init(sandbox: Sandbox, node: Node) -> None:
    name, base = daemons(node)[0], node_files.root(sandbox, node)
    ready = base / "ready"
    ready.unlink(missing_ok=True)
    command = cgroups.enter(
        cgroups.create(sandbox.name, node.name),
        ["nsenter", f"--net={network.namespace_path(node)}", "unshare", "--mount", "--uts", "--",
         "sh", str(paths.TEMPLATES / "node-init.sh")],
    )  # fmt: skip
    own = " ".join(os.path.realpath(path) for path in node_files.OWN_PATHS)
    processes.spawn(
        sandbox, name, command, env={"NODE": node.name, "ROOT": str(base), "PATHS": own}
    )
    wait(
        lambda: ready.exists() or not processes.alive(sandbox, name),
        20,
        lambda: f"{name} did not come up",
    )
    if not processes.alive(sandbox, name):
        raise SandboxError(f"{name} failed:\n{processes.log_tail(sandbox, name)}")


def _spawn(sandbox: Sandbox, node: Node, name: str, command: Sequence[str]) -> None:
    groups = cgroups.create(sandbox.name, node.name)
    processes.spawn(sandbox, name, cgroups.enter(groups, enter(sandbox, node, command)))


def _listens(folder: Path, name: str) -> bool:
    """Whether a socket accepts connections; its folder's path may be too long for an address."""
    try:
        descriptor = os.open(folder, os.O_PATH)
    except FileNotFoundError:
        return False
    try:
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(f"/proc/self/fd/{descriptor}/{name}")
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def environment(sandbox: Sandbox) -> Mapping[str, str]:
    """The variables of a command that is run on a node."""
    return {
        **os.environ,
        "KUBECONFIG": "/etc/kubernetes/admin.conf",
        "PATH": f"{sandbox.state / 'bin'}:{os.environ.get('PATH', '')}:/usr/sbin:/sbin",
    }
