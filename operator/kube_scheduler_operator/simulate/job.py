"""The Job that runs a simulation in the cluster, and the node for it.

One Pod with two containers: `operand`, the image of the kube-scheduler that decides, and
`simulation`, the operator's image (`service.py`). It has no token, no rights, no volume of the node
and opens no connection, and it meets Pod Security `restricted`. Its node is set, because it has to
run when nothing is scheduled.

Users may choose the image of `operand`, and `simulation` has a copy of the cluster. So the two
share the network of the Pod and nothing else: no processes, no user and no volume. `operand` runs
`launcher.py`, which the container `launcher` copies for it, and the kube-schedulers that it starts.
The check of an upgrade has another one, `next-operand`, for the kube-scheduler of its version.

A command reaches it on its loopback, by port-forwarding. The operator has no right to that: it
connects to the Pod's address, over TLS. The container `certificate` makes the Pod's key, which
never leaves it, and its termination message is the certificate's hash: only the kubelet writes it.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ..base import names
from ..base.quantities import amounts
from ..base.templates import render_object
from ..kube.label_selector import matches
from .kinds import NODES, PODS, Object
from .launcher_files import launcher_command
from .process import ADDRESS, FOLDERS, NEXT_ADDRESS
from .utilization import utilization_of
from .world import World

APP: Final = "kube-scheduler-simulation"
LABELS: Final = {"app": APP, names.PART_OF_LABEL: names.PROGRAM}
"""Of the Job and its Pod; without the label of objects that the operator manages."""

PORT: Final = 8080
"""The port of the Pod, on its loopback."""
PATH: Final = "/ask"

LAUNCHER_FILES: Final = "/launcher"
"""The directory of the launcher and the interpreter that runs it."""

LAUNCHER: Final = "launcher"
CERTIFICATE: Final = "certificate"
OPERAND: Final = "operand"
NEXT_OPERAND: Final = "next-operand"
SIMULATION: Final = "simulation"

START_SECONDS: Final = 180
"""Time for pulling and starting two images; a part of the Job's deadline."""
KEPT_SECONDS: Final = 60
"""Time from its end until the cluster deletes the Job."""

PREPARING: Final = (CERTIFICATE, LAUNCHER)
"""The containers that end before the others start."""

_MEBIBYTE: Final = 2**20
_REQUESTS: Final = {
    LAUNCHER: {"cpu": "10m", "memory": "32Mi"},
    CERTIFICATE: {"cpu": "10m", "memory": "32Mi"},
    OPERAND: {"cpu": "50m", "memory": "32Mi"},
    NEXT_OPERAND: {"cpu": "50m", "memory": "32Mi"},
    SIMULATION: {"cpu": "60m", "memory": "64Mi"},
}
_CPU_LIMIT: Final = "2"
_MEMORY: Final = {LAUNCHER: 128, CERTIFICATE: 128, OPERAND: 512, NEXT_OPERAND: 512, SIMULATION: 768}
"""MiB for a small cluster, at most."""
_MEMORY_OF_A_NODE: Final = {OPERAND: 0.125, NEXT_OPERAND: 0.125, SIMULATION: 0.125}
"""MiB more for each node and its pods; with 5,000 nodes and 30,000 pods, kube-scheduler needed 470
MiB and the simulation 450 MiB (docs/benchmarks.md)."""


def _together(*containers: str) -> Mapping[str, float]:
    """Return what containers request together: CPU in millicores, memory in bytes."""
    items = [amounts(_REQUESTS[name]) for name in containers]
    return {
        **{resource: sum(item[resource] for item in items) for resource in ("cpu", "memory")},
        "pods": 1.0,
    }


ONE: Final = _together(OPERAND, SIMULATION)
"""What the Pod needs of a node."""
TWO: Final = _together(OPERAND, NEXT_OPERAND, SIMULATION)
"""The same with the kube-schedulers of two versions."""


def no_node(needed: Mapping[str, float] = ONE) -> str:
    """Say why there is no Job if `choose_node` has no node."""
    return (
        f"no node is Ready and has {needed['cpu']:.0f}m of CPU and "
        f"{needed['memory'] / _MEBIBYTE:.0f}Mi of memory for the simulation"
    )


NO_NODE: Final = no_node()
_VIRTUAL: Final = (
    ("type", "virtual-kubelet"),
    ("kubernetes.io/role", "agent-virtual-kubelet"),
    ("eks.amazonaws.com/compute-type", "fargate"),
)
_CONTROL_PLANE: Final = (
    "node-role.kubernetes.io/control-plane",
    "node-role.kubernetes.io/master",
)


@dataclass(frozen=True, slots=True)
class JobPlan:
    namespace: str
    node: str
    image: str
    operand_image: str
    operand_command: Sequence[str]  # runs kube-scheduler in `operand_image`
    key_hash: str  # SHA-256 of the key of requests, in hex
    seconds: float  # for the simulation, without the start
    nodes: int = 0  # in the cluster, for the memory limit
    pull_secrets: Sequence[str] = ()  # names of image pull Secrets
    serves_address: bool = False  # answer on the Pod's address with TLS instead of on its loopback
    next_image: str = ""  # of another version's kube-scheduler; empty: the Pod has none

    @property
    def deadline(self) -> int:
        """Seconds after which the cluster ends the Job, whatever its client does."""
        return START_SECONDS + int(self.seconds)


def job_of(plan: JobPlan) -> Object:
    return render_object(
        "simulation-job.yaml.j2",
        name=f"{APP}-{secrets.token_hex(4)}",
        labels=LABELS,
        names=names,
        plan=plan,
        port=PORT,
        kept_seconds=KEPT_SECONDS,
        resources={name: _resources(name, plan.nodes) for name in _REQUESTS},
        launcher_files=LAUNCHER_FILES,
        launchers={
            name: launcher_command(Path(LAUNCHER_FILES), address, plan.operand_command)
            for name, address in ((OPERAND, ADDRESS), (NEXT_OPERAND, NEXT_ADDRESS))
        },
        folders=FOLDERS,
    )


def _resources(container: str, nodes: int) -> Object:
    memory = _MEMORY[container] + int(nodes * _MEMORY_OF_A_NODE.get(container, 0))
    return {
        "requests": _REQUESTS[container],
        "limits": {"cpu": _CPU_LIMIT, "memory": f"{memory}Mi"},
    }


# --- the node -------------------------------------------------------------------------------------


def choose_node(
    world: World, images: Sequence[str], needed: Mapping[str, float] = ONE
) -> str | None:
    """Return the node for the Pod; None: no node is Ready and has room.

    A node of the control plane is preferred, then one that is not cordoned and has the images, then
    the one with most free memory.
    """
    usage = utilization_of(world)
    pods = Counter(entry.node for entry in world.objects[PODS].values())
    ranked: list[tuple[tuple[bool, bool, int, float], str]] = []
    for node in filter(_usable, world.all(NODES)):
        name = node["metadata"]["name"]
        left = usage.free(name)
        left["pods"] = left.get("pods", 0.0) - pods[name]
        if any(left.get(resource, 0.0) < least for resource, least in needed.items()):
            continue
        labels = node["metadata"].get("labels") or {}
        has = {tag for image in node["status"].get("images") or () for tag in image["names"] or ()}
        rank = (
            any(label in labels for label in _CONTROL_PLANE),
            not node["spec"].get("unschedulable"),
            len(has.intersection(images)),
            left["memory"],
        )
        ranked.append((rank, name))
    return max(ranked)[1] if ranked else None


def _usable(node: Mapping[str, Any]) -> bool:
    metadata = node["metadata"]
    labels = metadata.get("labels") or {}
    conditions = node["status"].get("conditions") or ()
    ready = any(
        condition.get("type") == "Ready" and condition.get("status") == "True"
        for condition in conditions
    )
    return (
        ready
        and "deletionTimestamp" not in metadata
        and labels.get("kubernetes.io/os", "linux") == "linux"
        and not any(labels.get(key) == value for key, value in _VIRTUAL)
    )


# --- isolation ------------------------------------------------------------------------------------


def missing_isolation(policies: Sequence[Mapping[str, Any]]) -> str:
    """Return why these NetworkPolicies do not isolate the Pod; empty if they do."""
    isolating = [policy for policy in policies if _isolates(policy["spec"])]
    if not isolating:
        return "no NetworkPolicy there denies its egress"
    for policy in isolating:
        if policy["spec"].get("egress"):
            return f"NetworkPolicy {policy['metadata']['name']} allows egress"
    return ""


def certificate_hash(pod: Mapping[str, Any]) -> str:
    """Return the SHA-256 (hex) of the Pod's certificate; empty: it has none yet."""
    for status in (pod.get("status") or {}).get("initContainerStatuses") or ():
        if status.get("name") == CERTIFICATE:
            ended = (status.get("state") or {}).get("terminated") or {}
            return str(ended.get("message") or "").strip() if ended.get("exitCode") == 0 else ""
    return ""


def _isolates(spec: Mapping[str, Any]) -> bool:
    types = spec.get("policyTypes") or (["Egress"] if spec.get("egress") else [])
    return "Egress" in types and matches(spec.get("podSelector"), LABELS)
