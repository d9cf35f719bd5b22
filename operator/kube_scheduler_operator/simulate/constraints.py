"""The constraints of a pod, each of which can be removed from it.

A constraint is the smallest part that a user can change: the request of one resource, one entry of
the nodeSelector, one affinity term, one volume. Removing it and trying the pod again shows whether
it is what keeps the pod from a node.
"""

from __future__ import annotations

import copy
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any, Final, NamedTuple

from ..base.objects import controller_of, mapping
from ..base.quantities import amounts
from ..config.language.feature_gates import Gates
from .affinity_constraints import affinity_constraints
from .constraint import Constraint, containers, no_edits, unknown_edits
from .device_constraints import device_constraints
from .kinds import DAEMON_SETS, PODS, Object, pod_name
from .request_constraints import Usage, request_constraints
from .selector_constraints import selector_constraints
from .spread_constraints import spread_constraints
from .taint_constraints import CORDON, taint_constraints
from .utilization import FreeAmounts
from .volume_constraints import volume_constraints
from .world import World


class Family(NamedTuple):
    plugins: tuple[str, ...]  # the filter plugins that look at them
    size: int  # how much a pod loses without one of them; 0: nothing


FAMILIES: Final = {
    "requests": Family(("NodeResourcesFit",), 1),
    "node affinity": Family(("NodeAffinity",), 4),
    CORDON: Family(("NodeUnschedulable",), 0),
    "taints": Family(("TaintToleration",), 3),
    "ports": Family(("NodePorts",), 6),
    "pod affinity": Family(("InterPodAffinity",), 5),
    "spread": Family(("PodTopologySpread",), 2),
    "volumes": Family(("VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone"), 7),
    "devices": Family(("DynamicResources",), 7),
}
FAMILY_OF: Final = {plugin: name for name, family in FAMILIES.items() for plugin in family.plugins}

_PORTS: Final = "ports"
_PORT: Final = re.compile(r"\d+/\w+")
MOST_TRIED: Final = 50
"""Constraints of a family that are tried one by one, each without all others: a pod may have
thousands of its own, and in the anti-affinity of others."""


def constraints_of(
    pod: Mapping[str, Any], world: World, gates: Gates | None = None, usage: Usage | None = None
) -> list[Constraint]:
    """Return all constraints of a pod, in the order in which kube-scheduler's filters run.

    The world is without the pod, and so is `usage`.
    """
    spec, usage = pod["spec"], usage or cache(partial(FreeAmounts, world))
    return [
        *taint_constraints(spec, world),
        *selector_constraints(pod, world),
        *_ports(pod, world),
        *request_constraints(spec, world, usage, gates),
        *volume_constraints(pod, world),
        *device_constraints(pod, world, gates),
        *spread_constraints(pod, world, gates),
        *affinity_constraints(pod, world),
    ]


def tried(constraints: Iterable[Constraint]) -> tuple[list[Constraint], int]:
    """Return the first MOST_TRIED constraints of each family, and how many others there are."""
    chosen: list[Constraint] = []
    of_family: Counter[str] = Counter()
    for constraint in constraints:
        of_family[constraint.family] += 1
        if of_family[constraint.family] <= MOST_TRIED:
            chosen.append(constraint)
    return chosen, of_family.total() - len(chosen)


def without(pod: Object, constraints: Iterable[Constraint]) -> Object:
    changed = copy.deepcopy(pod)
    for constraint in constraints:
        constraint.remove(changed)
    return changed


def _ports(pod: Mapping[str, Any], world: World) -> Iterator[Constraint]:
    used = cache(partial(_ports_in_use, world))
    of_host = bool(pod["spec"].get("hostNetwork"))
    for host_port in dict.fromkeys(host_ports(pod["spec"])):
        yield Constraint(
            _PORTS,
            f"another pod on the node uses the host port {host_port}",
            # The API server makes each containerPort of a Pod with hostNetwork a hostPort.
            f"use another port than {host_port}, or no hostNetwork"
            if of_host
            else f"remove the hostPort {host_port}",
            partial(_remove_port, host_port=host_port),
            on=partial(_user_of_port, used, host_port),
            # Which port the containers can use is not known.
            others=unknown_edits if of_host else no_edits,
        )


def together(constraints: Sequence[Constraint], fixes: Sequence[str]) -> list[str]:
    """Return how several constraints end, each with its own text: those of host ports as one."""
    texts = [text for one, text in zip(constraints, fixes, strict=True) if one.family != _PORTS]
    own = [one.fix for one in constraints if one.family == _PORTS]
    if len(own) < 2:
        return list(fixes)
    ports = " and ".join(found[0] for text in own if (found := _PORT.search(text)))
    word = "use other ports than" if own[0].startswith("use ") else "remove the hostPorts"
    after = ", or no hostNetwork" if own[0].startswith("use ") else ""
    return [*texts, f"{word} {ports}{after}"]


def host_ports(spec: Mapping[str, Any]) -> Iterator[str]:
    """Yield the host ports of a pod, such as 80/TCP."""
    ports = (_host_port(port) for holder in containers(spec) for port in holder.get("ports") or ())
    return filter(None, ports)


def _ports_in_use(world: World) -> Mapping[tuple[str, str], str]:
    """Return the pods with a host port: (node, port) -> namespace/name."""
    used: dict[tuple[str, str], str] = {}
    for entry in world.objects[PODS].values():
        if entry.node and b"hostPort" in entry.content:
            found = entry.object()
            for host_port in host_ports(found["spec"]):
                used.setdefault((entry.node, host_port), _user(found))
    return used


def _user(pod: Mapping[str, Any]) -> str:
    """Name a pod; of one that each node has, its DaemonSet as well."""
    owner = controller_of(pod) or {}
    of = f" of DaemonSet {owner.get('name')}" if owner.get("kind") == DAEMON_SETS.kind else ""
    return f"{pod_name(pod)}{of}"


def _user_of_port(
    used: Callable[[], Mapping[tuple[str, str], str]], host_port: str, node: str
) -> str:
    user = used().get((node, host_port))
    return f"pod {user} uses the host port {host_port} of the node" if user else ""


def _host_port(port: Mapping[str, Any]) -> str:
    number = port.get("hostPort")
    return f"{number}/{port.get('protocol') or 'TCP'}" if number else ""


def _remove_port(pod: Object, host_port: str) -> None:
    for holder in containers(pod["spec"]):
        ports = holder.get("ports") or ()
        holder["ports"] = [port for port in ports if _host_port(port) != host_port]


def number_of_pods(world: World) -> Callable[[str], str]:
    """Return what counts the pods of a node that has no place for another; empty: it has one."""
    running = Counter(entry.node for entry in world.objects[PODS].values() if entry.node)

    def full(name: str) -> str:
        status = mapping((world.node(name) or {}).get("status"))
        most = amounts(mapping(status.get("allocatable"))).get("pods", 0.0)
        if running[name] < most:
            return ""
        return f"{running[name]} of {most:g} pods run on the node (allocatable pods)"

    return full
