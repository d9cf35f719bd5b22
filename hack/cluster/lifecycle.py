"""`up`: every step makes so what is not so yet, so a second `up` heals what a first one left."""

from __future__ import annotations

import os
import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cluster import (
    agnhost,
    binaries,
    controlplane,
    images,
    kubeadm,
    load_balancer,
    model,
    network,
    node_files,
    nodes,
    openshift,
    operator,
    operator_image,
    packages,
    paths,
    policy_enforcer,
    processes,
    providers,
    releases,
)
from cluster.api import Api, ApiError, condition, wait
from cluster.console import EXISTING_CLUSTER, SandboxError, say, step

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cluster.archive import Image
    from cluster.model import Node, Sandbox

_READY_TIMEOUT = 300.0
_NOT_YET = "server is not initialized yet"
"""What ends a kubelet whose containerd still reads its state; systemd would start it again."""


def lock(name: str) -> Path:
    """The lock for changes to a sandbox."""
    return paths.state_root() / f".{name}.lock"


def check_machine(node_count: int) -> None:
    """Say at once, and completely, why this machine cannot have such a sandbox.

    Raises:
        SandboxError: It cannot.
    """
    if sys.platform != "linux":
        raise SandboxError(
            "the sandbox runs Kubernetes' own programs on Linux; elsewhere use a Linux VM. "
            + EXISTING_CLUSTER
        )
    if node_count and os.geteuid() != 0:
        raise SandboxError(
            "nodes need root: they are network and mount namespaces with a containerd each. "
            "Run this with sudo, or make a control plane alone: --nodes 0. " + EXISTING_CLUSTER
        )
    if node_count == 0 and shutil.which("openssl") is None:
        raise SandboxError("missing: openssl; install it with your package manager")


_INOTIFY_INSTANCES = Path("/proc/sys/fs/inotify/max_user_instances")
_ENOUGH_INSTANCES = 1024
"""For several sandboxes of three nodes: a node's containerd and kubelet have some 20, and the usual
limit of 128 is for all processes of a user."""


def allow_inotify() -> None:
    """Raise the limit of inotify instances of this machine, without which kubelets end."""
    before = int(_INOTIFY_INSTANCES.read_text())
    if before < _ENOUGH_INSTANCES:
        _INOTIFY_INSTANCES.write_text(str(_ENOUGH_INSTANCES))
        say(f"  fs.inotify.max_user_instances is {_ENOUGH_INSTANCES} now, it was {before}")


def setup(*, with_nodes: bool, kubernetes: str | None = None) -> dict[str, Path]:
    """Prepare the machine: packages, binaries and images; quick when nothing is missing."""
    version = releases.choose(kubernetes)
    check_machine(int(with_nodes))
    if with_nodes:
        packages.ensure(packages.NODE_TOOLS)
        allow_inotify()
    wanted = binaries.CONTROL_PLANE + (binaries.NODE if with_nodes else ())
    return binaries.provide(wanted, version)


@dataclass(frozen=True, slots=True)
class ClusterKind:
    """The kind of cluster that a sandbox is."""

    platform: str = model.KUBEADM  # one of model.PLATFORMS
    like: str = ""  # the provider whose control plane a managed one is like
    kubeadm: bool = False  # whether kubeadm itself makes it


PLAIN: Final = ClusterKind()


def up(
    name: str,
    control_planes: int,
    workers: int,
    *,
    with_operator: bool,
    kind: ClusterKind = PLAIN,
    kubernetes: str | None = None,
) -> Sandbox:
    """Bring a sandbox up, or what is missing of it.

    Raises:
        SandboxError: It cannot be, or one of that name has other nodes, another platform or
            another Kubernetes.
    """
    start = time.monotonic()
    version = releases.choose(kubernetes)
    planned = model.make_nodes(model.check_name(name), control_planes, workers)
    check_machine(len(planned))
    found = setup(with_nodes=bool(planned), kubernetes=version)
    if kind.kubeadm:
        found["kubeadm"] = binaries.provide_kubeadm(version)
    new = model.Sandbox(name, 0, planned, kind.platform, version, kind.like, kind.kubeadm)
    with paths.locked(lock(name)):
        sandbox = model.load(name) or _allocate(new)
        if sandbox != replace(new, slot=sandbox.slot):
            raise SandboxError(
                f"sandbox {name} exists with Kubernetes {sandbox.kubernetes}, "
                f"platform {sandbox.platform}{' made by kubeadm' * sandbox.kubeadm} and the nodes "
                f"{', '.join(node.name for node in sandbox.nodes) or '(none)'}; "
                f"take it down first: hack/sandbox down --name {name}"
            )
        _link_binaries(sandbox, found)
        if _healthy(sandbox):
            say(f"sandbox {name} is up already")
        else:
            _start(sandbox, found, with_operator=with_operator)
        if sandbox.nodes and sandbox.platform == model.OPENSHIFT:
            policy_enforcer.start(sandbox)
        if with_operator and sandbox.nodes:
            operator.deploy(sandbox)
            if sandbox.platform == model.OPENSHIFT:
                openshift.end_bootstrap(sandbox)
    say(f"sandbox {name} is up ({time.monotonic() - start:.1f} s). To use it:")
    say(f'  eval "$(hack/sandbox env --name {name})"')
    return sandbox


def _allocate(new: Sandbox) -> Sandbox:
    """Give a new sandbox a slot of its own."""
    root = paths.state_root()
    with paths.locked(root / ".slots.lock"):
        others = (model.load(path.name) for path in root.iterdir() if path.is_dir())
        slot = model.choose_slot(
            reserved={other.slot for other in others if other},
            taken=network.taken_networks(),
            port_is_free=network.port_is_free,
            needs_network=bool(new.nodes),
        )
        sandbox = replace(new, slot=slot)
        sandbox.save()
    return sandbox


def _link_binaries(sandbox: Sandbox, found: Mapping[str, Path]) -> None:
    """Collect the binaries in one folder for PATH, under the names that they must be started as."""
    folder = sandbox.state / "bin"
    folder.mkdir(exist_ok=True)
    for component, path in found.items():
        link = folder / component
        link.unlink(missing_ok=True)
        link.symlink_to(path)


def daemons(sandbox: Sandbox) -> list[str]:
    """All daemons that a running sandbox has."""
    of_nodes = (name for node in sandbox.nodes for name in nodes.daemons(node))
    if sandbox.kubeadm:
        return [load_balancer.DAEMON, *of_nodes]
    provided = (providers.SCHEDULER,) if sandbox.platform == model.MANAGED else ()
    return [*controlplane.DAEMONS, *provided, *of_nodes]


def _healthy(sandbox: Sandbox) -> bool:
    if not all(processes.alive(sandbox, name) for name in daemons(sandbox)):
        return False
    try:
        known = Api(sandbox).nodes()
    except (ApiError, OSError):
        return False
    return all(condition(known.get(node.name, {}), "Ready") == "True" for node in sandbox.nodes)


def _start(sandbox: Sandbox, found: Mapping[str, Path], *, with_operator: bool) -> None:
    wanted = _images(sandbox, found, with_operator=with_operator) if sandbox.nodes else []
    starting = (*sandbox.nodes, *_bootstrap(sandbox))
    if not sandbox.kubeadm:
        with step("certificates"):
            controlplane.make_certificates(sandbox)
    if sandbox.nodes:
        with step("network"):
            node_files.create_mount_points()
            network.create_bridge(sandbox)
    with ThreadPoolExecutor(max_workers=len(starting) + 1) as pool:
        booting = [pool.submit(_boot, sandbox, node, wanted) for node in starting]
        if sandbox.kubeadm:
            for one in booting:
                one.result()
            kubeadm.start(sandbox, found["kubelet"])
            api = Api(sandbox)
        else:
            api = _start_control_plane(sandbox, found)
        for one in booting:
            one.result()
    if starting:
        _start_kubelets(sandbox, api, starting, found["kubelet"])
    # Until the controller manager has made it, the API server refuses every pod.
    wait_for_accounts(sandbox, api)


def _start_control_plane(sandbox: Sandbox, found: Mapping[str, Path]) -> Api:
    with step("control plane"):
        api = controlplane.start(sandbox, found)
        if sandbox.platform == model.OPENSHIFT:
            openshift.create_objects(sandbox, api)
        if sandbox.platform == model.MANAGED:
            providers.create_objects(sandbox, api)
            providers.start_scheduler(sandbox)
    return api


def _start_kubelets(sandbox: Sandbox, api: Api, starting: Sequence[Node], kubelet: Path) -> None:
    with step(f"{len(starting)} node(s) Ready, schedulers running"):
        if sandbox.bootstrap in starting:
            openshift.write_bootstrap(sandbox)
        for node in starting:
            nodes.start_kubelet(sandbox, node, kubelet)
        for node in starting:
            wait_ready(sandbox, api, node)


def _bootstrap(sandbox: Sandbox) -> tuple[Node, ...]:
    """The machine that an OpenShift starts with, until it has been switched off."""
    if sandbox.platform != model.OPENSHIFT or not sandbox.nodes:
        return ()
    began = node_files.root(sandbox, sandbox.bootstrap).exists()
    return () if began and not nodes.runs(sandbox, sandbox.bootstrap) else (sandbox.bootstrap,)


def wait_for_accounts(sandbox: Sandbox, api: Api) -> None:
    """Wait until the controller manager has made the default service accounts.

    Raises:
        SandboxError: It has not, with the end of its log; at once if it ended.
    """
    manager = "kube-controller-manager"

    def failure() -> str:
        return f"no default service account:\n{processes.log_tail(sandbox, manager)}"

    def ready() -> bool:
        if _takes_pods(api):
            return True
        if not sandbox.kubeadm and not processes.alive(sandbox, manager):
            raise SandboxError(failure())
        return False

    wait(ready, _READY_TIMEOUT, failure, every=0.1)


def _takes_pods(api: Api) -> bool:
    try:
        for namespace in ("default", "kube-system"):
            api.request("GET", f"/api/v1/namespaces/{namespace}/serviceaccounts/default")
    except ApiError:
        return False
    return True


def start_node(sandbox: Sandbox, node: Node) -> None:
    """Start what does not run of a node, and wait until it is Ready.

    Raises:
        SandboxError: It does not come up.
    """
    with paths.locked(lock(sandbox.name)), step(f"{node.name} is Ready"):
        nodes.boot(sandbox, node)
        nodes.start_kubelet(sandbox, node, sandbox.state / "bin" / "kubelet")
        wait_ready(sandbox, Api(sandbox), node)


def _boot(sandbox: Sandbox, node: Node, wanted: Sequence[Image]) -> None:
    with step(f"{node.name}: containerd and images"):
        nodes.boot(sandbox, node, wanted)


def _images(sandbox: Sandbox, found: Mapping[str, Path], *, with_operator: bool) -> list[Image]:
    """What every node has, as it cannot pull anything.

    Workers are given the same: a scheduler may run anywhere as a Deployment, and one set of images
    is prepared once.
    """
    hyperkube = sandbox.platform == model.OPENSHIFT
    make = images.hyperkube if hyperkube else images.scheduler
    wanted = [images.pause(), make(found["kube-scheduler"], sandbox.kubernetes)]
    if sandbox.kubeadm:
        wanted = [
            images.pause(),
            *kubeadm.component_images(sandbox.kubernetes, found, found["kubeadm"]),
        ]
    if sandbox.platform == model.OPENSHIFT and (image := agnhost.build_with_go()):
        wanted.append(image)
    own = operator_image.build() if with_operator else operator_image.built()
    return [*wanted, own] if own else wanted


def wait_ready(sandbox: Sandbox, api: Api, node: Node) -> None:
    """Wait until a node is there, mark it, and wait until it is Ready and its scheduler runs.

    Raises:
        SandboxError: It does not become so.
    """
    kubelet = nodes.daemons(node)[2]
    path = f"/api/v1/nodes/{node.name}"

    def registered() -> bool:
        if not processes.alive(sandbox, kubelet):
            log = processes.log_tail(sandbox, kubelet)
            if _NOT_YET not in log:
                raise SandboxError(f"the kubelet of {node.name} ended:\n{log}")
            nodes.start_kubelet(sandbox, node, sandbox.state / "bin" / "kubelet")
        return nodes.kubelet_serves(sandbox, node) and node.name in api.nodes()

    def ready() -> bool:
        if not registered() or condition(api.request("GET", path), "Ready") != "True":
            return False
        return not node.control_plane or scheduler_runs(sandbox, api, node)

    wait(registered, _READY_TIMEOUT, lambda: f"{kubelet} did not register", every=0.2)
    if sandbox.platform == model.MANAGED:
        api.request("PATCH", path, providers.node_patch(node, sandbox.like))
    elif not sandbox.kubeadm:
        api.request("PATCH", path, controlplane.marks(node, sandbox.platform))
    wait(ready, _READY_TIMEOUT, lambda: f"node {node.name} did not become Ready", every=0.2)


def scheduler_runs(sandbox: Sandbox, api: Api, node: Node) -> bool:
    """Whether a node's scheduler runs, or its manifest was taken away on purpose."""
    if not list((node_files.root(sandbox, node) / "etc/kubernetes/manifests").glob("*")):
        return True
    namespace, name = sandbox.scheduler_pod(node)
    try:
        pod = api.request("GET", f"/api/v1/namespaces/{namespace}/pods/{name}")
    except ApiError:
        return False
    return bool(pod.get("status", {}).get("phase") == "Running")
