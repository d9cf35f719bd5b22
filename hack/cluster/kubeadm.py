"""A control plane that the real kubeadm makes and upgrades, in the nodes themselves.

kubeadm writes certificates, kubeconfigs, the kubelet's configuration and the manifests of etcd,
kube-apiserver, kube-controller-manager and kube-scheduler, whose images are made of the binaries
that the sandbox has. The systemd unit of the kubelet is played by templates/kubelet-unit.sh.
"""

from __future__ import annotations

import base64
import re
import secrets
from typing import TYPE_CHECKING

from cluster import binaries, cgroups, images, load_balancer, node_files, nodes, paths
from cluster.console import SandboxError, run, step
from cluster.model import SERVICE_NETWORK, pod_network

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from cluster.archive import Image
    from cluster.model import Node, Sandbox

COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
"""What kubeadm runs as static Pods."""

IGNORED = (
    "CoreDNSMigration",
    "CoreDNSUnsupportedPlugins",
    "FileContent--proc-sys-net-bridge-bridge-nf-call-iptables",
    "FileExisting-conntrack",
    "Mem",
    "NumCPU",
    "SystemVerification",
)
"""The checks of kubeadm that this machine, or a cluster without addons, need not pass."""

_INIT_TIMEOUT = 600.0
_CONFIG = "/etc/kubernetes/kubeadm.yaml"


def component_images(version: str, found: Mapping[str, Path], kubeadm: Path) -> list[Image]:
    """The images of a control plane of some version, under the names that kubeadm expects."""
    listed = run(kubeadm, "config", "images", "list", "--kubernetes-version", version).split()
    names = {name.rpartition(":")[0].rpartition("/")[2]: name for name in listed}
    wanted = [images.component(one, found[one], version, names[one]) for one in COMPONENTS]
    return [*wanted, images.pause(names["pause"])]


def start(sandbox: Sandbox, kubelet: Path) -> None:
    """Start what does not run, and let kubeadm make what it has not made yet.

    Raises:
        SandboxError: A node does not come up.
    """
    load_balancer.start(sandbox)
    for node in sandbox.nodes:
        nodes.start_kubelet(sandbox, node, kubelet)
    first, *others = sandbox.nodes
    if not _note(sandbox, first).exists():
        with step(f"{first.name}: kubeadm init"):
            _init(sandbox, first)
    _write_access(sandbox, first)
    for node in others:
        if not _note(sandbox, node).exists():
            with step(f"{node.name}: kubeadm join"):
                _join(sandbox, node, first)


def run_on(sandbox: Sandbox, node: Node, *words: str, version: str = "") -> str:
    """Run a command of kubeadm on a node, of another version if `provide_version` has it.

    Returns:
        What kubeadm printed.

    Raises:
        SandboxError: The command fails.
    """
    program = sandbox.state / (f"kubeadm-{version}" if version else "bin/kubeadm")
    command = nodes.enter(sandbox, node, [str(program), *words])
    return run(*command, env=nodes.environment(sandbox), timeout=_INIT_TIMEOUT)


def reset(sandbox: Sandbox, node: Node) -> None:
    """Run `kubeadm reset`, and stop the kubelet, as systemd would.

    The member of etcd leaves; the Node stays in the API, as kubeadm leaves it.

    Raises:
        SandboxError: The command fails.
    """
    nodes.kill_kubelet(sandbox, node)
    config = node_files.render("kubeadm-reset.yaml", ignored=_listed(IGNORED))
    _write(sandbox, node, "kubeadm-reset.yaml", config)
    run_on(sandbox, node, "reset", "--config=/etc/kubernetes/kubeadm-reset.yaml")
    _note(sandbox, node).unlink()


def join(sandbox: Sandbox, node: Node, by: Node) -> None:
    """Let a running machine without a kubelet join, as a node of its kind; `by` is in the cluster.

    Raises:
        SandboxError: kubeadm fails.
    """
    nodes.start_kubelet(sandbox, node, sandbox.state / "bin/kubelet")
    _join(sandbox, node, by)


def upgrade(sandbox: Sandbox, node: Node, version: str, *, first: bool) -> str:
    """Run `kubeadm upgrade apply` on the first node, `kubeadm upgrade node` on another.

    Returns:
        What kubeadm printed.

    Raises:
        SandboxError: The upgrade fails.
    """
    command = [*upgrade_command(sandbox, node, version, first=first)]
    environment = nodes.environment(sandbox)
    return run(*nodes.enter(sandbox, node, command), env=environment, timeout=1800)


def upgrade_command(
    sandbox: Sandbox, node: Node, version: str, *, first: bool, renew: bool = True
) -> list[str]:
    """What upgrades a node to a version, once its images are there; see `provide_version`."""
    config = node_files.render(
        "kubeadm-upgrade.yaml", version=version, renew=str(renew).lower(), ignored=_listed(IGNORED)
    )
    _write(sandbox, node, "kubeadm-upgrade.yaml", config)
    program = str(sandbox.state / f"kubeadm-{version}")
    words = ("apply", "--yes") if first else ("node",)
    return [program, "upgrade", *words, "--config=/etc/kubernetes/kubeadm-upgrade.yaml"]


def provide_version(sandbox: Sandbox, version: str) -> None:
    """Give the running nodes the images of another version, and the sandbox its kubeadm.

    Raises:
        SandboxError: They cannot be had on this machine.
    """
    found = binaries.provide(COMPONENTS, version)
    kubeadm = binaries.provide_kubeadm(version)
    link = sandbox.state / f"kubeadm-{version}"
    link.unlink(missing_ok=True)
    link.symlink_to(kubeadm)
    wanted = component_images(version, found, kubeadm)
    with step(f"images of Kubernetes {version} on all nodes"):
        for node in sandbox.nodes:
            nodes.load_images(sandbox, node, wanted)


def _note(sandbox: Sandbox, node: Node) -> Path:
    """The file that shows that kubeadm has ended on a node."""
    return node_files.root(sandbox, node) / "made-by-kubeadm"


def _init(sandbox: Sandbox, node: Node) -> None:
    config = node_files.render(
        "kubeadm-init.yaml",
        token=_token(),
        certificate_key=secrets.token_hex(32),
        address=sandbox.address(node),
        endpoint=sandbox.node_server.removeprefix("https://"),
        registration=_registration(sandbox, node),
        version=sandbox.kubernetes,
        pods=pod_network(sandbox.slot),
        services=SERVICE_NETWORK,
    )
    _write(sandbox, node, "kubeadm.yaml", config)
    run_on(sandbox, node, "init", f"--config={_CONFIG}")
    _note(sandbox, node).touch()


def _join(sandbox: Sandbox, node: Node, first: Node) -> None:
    token, key = _token(), secrets.token_hex(32)
    run_on(sandbox, first, "token", "create", token, "--ttl=1h")
    control_plane = ""
    if node.control_plane:
        run_on(sandbox, first, "init", "phase", "upload-certs", "--upload-certs",
               f"--certificate-key={key}")  # fmt: skip
        address = sandbox.address(node)
        control_plane = (
            f"controlPlane:\n  certificateKey: {key}\n"
            f"  localAPIEndpoint:\n    advertiseAddress: {address}\n"
        )
    config = node_files.render(
        "kubeadm-join.yaml",
        control_plane=control_plane,
        endpoint=sandbox.node_server.removeprefix("https://"),
        token=token,
        registration=_registration(sandbox, node),
    )
    _write(sandbox, node, "kubeadm.yaml", config)
    run_on(sandbox, node, "join", f"--config={_CONFIG}")
    _note(sandbox, node).touch()


def _registration(sandbox: Sandbox, node: Node) -> str:
    return node_files.render(
        "kubeadm-registration.yaml",
        ignored=_listed(IGNORED),
        cgroup_root=cgroups.node_path(sandbox.name, node.name),
        name=node.name,
        address=sandbox.address(node),
    ).rstrip()


def _listed(words: Sequence[str]) -> str:
    return "\n".join(f"  - {word}" for word in words)


def _token() -> str:
    return f"{secrets.token_hex(3)}.{secrets.token_hex(8)}"


def _write(sandbox: Sandbox, node: Node, name: str, content: str) -> None:
    folder = node_files.root(sandbox, node) / "etc/kubernetes"
    paths.write_atomically(folder / name, content, 0o600)


def _write_access(sandbox: Sandbox, first: Node) -> None:
    """Take the administrator's credentials over to the host."""
    content = (node_files.root(sandbox, first) / "etc/kubernetes/admin.conf").read_text()
    for key, name in (
        ("certificate-authority-data", "ca.crt"),
        ("client-certificate-data", "admin.crt"),
        ("client-key-data", "admin.key"),
    ):
        found = re.search(rf"{key}: (\S+)", content)
        if found is None:
            raise SandboxError(f"kubeadm's admin.conf of {first.name} has no {key}")
        paths.write_atomically(sandbox.state / "pki" / name, base64.b64decode(found[1]), 0o600)
    own = content.replace(sandbox.node_server, sandbox.server)
    paths.write_atomically(sandbox.kubeconfig, own, 0o600)
