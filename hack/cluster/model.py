"""A sandbox as plain data: names, addresses and ports all follow from its name and its slot.

A slot is a small number that no other sandbox has; subnets and ports are computed from it, so two
sandboxes never collide and nothing has to be remembered but the number.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from ipaddress import IPv4Address, IPv4Network
from typing import TYPE_CHECKING

from cluster import paths, releases
from cluster.console import SandboxError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

KUBEADM, OPENSHIFT, MANAGED = PLATFORMS = ("kubeadm", "openshift", "managed")
"""What a sandbox can look like: whose files are on its nodes, and whose objects in its API."""

SERVICE_NETWORK = IPv4Network("10.96.0.0/16")
API_SERVICE_ADDRESS = SERVICE_NETWORK[1]
SLOTS = 32
MAX_NODES = 16

_FIRST_PORT = 21000  # below the kernel's ephemeral ports
_PORTS_PER_SLOT = 10
_NAME = re.compile(r"[a-z]([a-z0-9-]{0,18}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Node:
    """One node: ``number`` counts from 1 over all nodes of the sandbox."""

    name: str
    number: int
    control_plane: bool

    @property
    def namespace(self) -> str:
        """The network namespace; the prefix marks it as a sandbox's."""
        return f"kso-{self.name}"


@dataclass(frozen=True, slots=True)
class Sandbox:
    """One sandbox: everything else about it is derived."""

    name: str
    slot: int
    nodes: tuple[Node, ...]
    platform: str = KUBEADM
    kubernetes: str = releases.DEFAULT
    like: str = ""
    kubeadm: bool = False

    @property
    def state(self) -> Path:
        """The folder with all that belongs to this sandbox."""
        return paths.state_root() / self.name

    @property
    def kubeconfig(self) -> Path:
        """Administrator's access from the host."""
        return self.state / "kubeconfig"

    @property
    def network(self) -> IPv4Network:
        """The nodes' network."""
        return node_network(self.slot)

    @property
    def gateway(self) -> IPv4Address:
        """The host's address in the nodes' network, where the API server is."""
        return self.network[1]

    @property
    def bridge(self) -> str:
        """The bridge between the nodes."""
        return f"kso{self.slot}"

    @property
    def api_port(self) -> int:
        """Where kube-apiserver listens on the host."""
        return slot_ports(self.slot)[0]

    @property
    def etcd_ports(self) -> tuple[int, int]:
        """Etcd's client and peer ports."""
        _, client, peer, _ = slot_ports(self.slot)
        return client, peer

    @property
    def controller_manager_port(self) -> int:
        """Where kube-controller-manager serves /healthz and /metrics."""
        return slot_ports(self.slot)[3]

    @property
    def server(self) -> str:
        """The API server's URL on the host."""
        return f"https://127.0.0.1:{self.api_port}"

    @property
    def node_server(self) -> str:
        """The API server's URL on the nodes."""
        return f"https://{self.gateway}:{self.api_port}"

    def address(self, node: Node) -> IPv4Address:
        """A node's address."""
        return self.network[node.number + 1]

    def pod_network(self, node: Node) -> IPv4Network:
        """The addresses that a node gives to its pods."""
        return IPv4Network((int(pod_network(self.slot)[0]) + node.number * 256, 24))

    def veth(self, node: Node) -> str:
        """The host's end of a node's network cable."""
        return f"{self.bridge}n{node.number}"

    def node(self, name: str) -> Node:
        """Find a node by its name.

        Raises:
            SandboxError: It does not exist.
        """
        for node in self.nodes:
            if node.name == name:
                return node
        known = ", ".join(node.name for node in self.nodes) or "none"
        raise SandboxError(f"sandbox {self.name} has no node {name}; it has: {known}")

    @property
    def operator_namespace(self) -> str:
        """Where the operator runs."""
        return f"{self._prefix}kube-scheduler-operator"

    @property
    def operator_deployment(self) -> str:
        """The operator's Deployment."""
        return self.operator_namespace

    def scheduler_pod(self, node: Node) -> tuple[str, str]:
        """Namespace and name of the mirror pod of a control-plane node's scheduler."""
        namespace = "openshift-kube-scheduler" if self.platform == OPENSHIFT else "kube-system"
        return namespace, f"{self._prefix}kube-scheduler-{node.name}"

    @property
    def _prefix(self) -> str:
        """The beginning of OpenShift's names."""
        return "openshift-" if self.platform == OPENSHIFT else ""

    @property
    def bootstrap(self) -> Node:
        """The machine whose scheduler places the first pods of an OpenShift; it goes then."""
        return Node(f"{self.name}-bootstrap", len(self.nodes) + 1, control_plane=False)

    def save(self) -> None:
        """Write down what is not derived."""
        paths.write_atomically(self.state / "sandbox.json", json.dumps(asdict(self), indent=2))


def check_name(name: str) -> str:
    """Refuse names that would not fit host names, or could be taken for another sandbox's node.

    Raises:
        SandboxError: The name cannot be used.
    """
    if not _NAME.fullmatch(name):
        raise SandboxError(
            f"{name!r} cannot name a sandbox: use up to 20 lower-case letters, digits and hyphens"
        )
    return name


def make_nodes(sandbox: str, control_planes: int, workers: int) -> tuple[Node, ...]:
    """Name nodes as kind does: dev-control-plane, dev-control-plane2, dev-worker, ...

    Raises:
        SandboxError: There are too many.
    """
    if not 0 <= control_planes + workers <= MAX_NODES or min(control_planes, workers) < 0:
        raise SandboxError(f"a sandbox has 0 to {MAX_NODES} nodes")
    names = [
        *(f"{sandbox}-control-plane{n if n > 1 else ''}" for n in range(1, control_planes + 1)),
        *(f"{sandbox}-worker{n if n > 1 else ''}" for n in range(1, workers + 1)),
    ]
    return tuple(Node(name, n, n <= control_planes) for n, name in enumerate(names, 1))


def load(name: str) -> Sandbox | None:
    """Read a sandbox; None if it does not exist or its record is damaged."""
    try:
        data = json.loads((paths.state_root() / name / "sandbox.json").read_text())
        nodes = tuple(Node(**node) for node in data["nodes"])
        return Sandbox(
            data["name"],
            data["slot"],
            nodes,
            data.get("platform", KUBEADM),
            data.get("kubernetes", releases.DEFAULT),
            data.get("like", ""),
            data.get("kubeadm", False),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def require(name: str) -> Sandbox:
    """Read a sandbox that must exist.

    Raises:
        SandboxError: It does not.
    """
    sandbox = load(check_name(name))
    if sandbox is None:
        raise SandboxError(f"there is no sandbox {name}; make one: hack/sandbox up --name {name}")
    return sandbox


def node_network(slot: int) -> IPv4Network:
    """The nodes' network of a slot: 10.20.SLOT.0/24."""
    return IPv4Network(f"10.20.{slot}.0/24")


def pod_network(slot: int) -> IPv4Network:
    """The pods' network of a slot, from which every node has a /24: 10.(32+SLOT).0.0/16."""
    return IPv4Network(f"10.{32 + slot}.0.0/16")


def slot_ports(slot: int) -> tuple[int, int, int, int]:
    """kube-apiserver, etcd clients, etcd peers, kube-controller-manager."""
    first = _FIRST_PORT + slot * _PORTS_PER_SLOT
    return first, first + 1, first + 2, first + 3


def choose_slot(
    reserved: Collection[int],
    taken: Collection[IPv4Network],
    port_is_free: Callable[[int], bool],
    *,
    needs_network: bool,
) -> int:
    """Find the lowest slot whose subnets and ports are free on this machine.

    Raises:
        SandboxError: All are taken.
    """
    for slot in range(SLOTS):
        subnets = (node_network(slot), pod_network(slot)) if needs_network else ()
        if slot in reserved or any(mine.overlaps(other) for mine in subnets for other in taken):
            continue
        if all(port_is_free(port) for port in slot_ports(slot)):
            return slot
    last = _FIRST_PORT + SLOTS * _PORTS_PER_SLOT - 1
    raise SandboxError(
        f"no free place for a sandbox: it needs four free ports from {_FIRST_PORT}-{last} "
        "and the networks 10.20.N.0/24 and 10.(32+N).0.0/16 for one N; "
        "see `ip route` and `hack/sandbox status`, and take down what is not needed"
    )
