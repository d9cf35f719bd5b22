"""Applies changes to a world, and collects the pods that have to be placed then."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from ..base.field_types import named
from ..base.objects import controller_of
from ..kube.label_selector import matches
from ..kube.resource import KUBE_SCHEDULERS, Resource
from ..kube.store import MIRROR_ANNOTATION
from .kinds import (
    BUDGETS,
    CSI_NODES,
    HOSTNAME,
    NODES,
    PODS,
    RESOURCE_SLICES,
    STATEFUL_SETS,
    Object,
    names_its_node,
    pod_name,
)
from .nominations import nominated
from .taint_constraints import UNSCHEDULABLE_TAINT
from .workloads import DAEMON_SET, SimulatedWorkload, pinned
from .world import World

_PASSING: Final = frozenset(
    {
        UNSCHEDULABLE_TAINT,
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
        "node.kubernetes.io/memory-pressure",
        "node.kubernetes.io/disk-pressure",
        "node.kubernetes.io/pid-pressure",
        "node.kubernetes.io/network-unavailable",
    }
)
"""Taints of conditions that a new node does not have."""


class ScenarioError(Exception):
    """The scenario does not fit the cluster; the message names the flag and the fix."""


@dataclass(frozen=True, slots=True)
class Scenario:
    without: tuple[str, ...] = ()  # nodes that are gone, with their pods
    drain: tuple[str, ...] = ()
    # (number, node) of nodes that are added, each like an existing one
    add: tuple[tuple[int, str], ...] = ()
    replay: bool = False  # all running pods are placed again


@dataclass(slots=True)
class Drain:
    """What a drain or the loss of a node does to the pods there."""

    node: str
    moved: list[str] = field(default_factory=list)  # pods that get a replacement elsewhere
    # number of pods by the reason why they stay, or go without a replacement
    stay: dict[str, int] = field(default_factory=dict)
    # PodDisruptionBudget -> pods whose eviction it does not allow
    blocked: dict[str, list[str]] = named("blockedByBudgets", default_factory=dict)
    # pods of several budgets, which the API server does not evict -> these budgets
    several: dict[str, list[str]] = named("coveredBySeveralBudgets", default_factory=dict)
    # pods that terminate already, so that whatever creates others has done so
    ending: list[str] = named("terminating", default_factory=list)
    # pods without a controller, which nothing recreates
    lost: list[str] = named("withoutController", default_factory=list)
    # PodDisruptionBudget -> evictions that it allows at the same time
    one_by_one: dict[str, int] = named("evictionsAllowed", default_factory=dict)
    # PodDisruptionBudget -> the moved pods that it covers
    budgets: dict[str, list[str]] = named("coveredByBudgets", default_factory=dict)
    # those of these budgets that let the drain stop, because the replacements find no node
    stops: list[str] = named("stoppedByBudgets", default_factory=list)


@dataclass(slots=True)
class Prepared:
    """A changed world and the pods to place."""

    world: World  # bound pods and everything else
    pods: list[Object] = field(default_factory=list)  # to place, in this order
    # namespace/name of the pods that the question is about
    subject: set[str] = field(default_factory=set)
    groups: dict[str, list[str]] = field(default_factory=dict)  # title -> its pods, of `subject`
    drains: list[Drain] = field(default_factory=list)  # one for each drained node
    removed: list[Drain] = field(default_factory=list)  # one for each node that is gone
    added: list[str] = field(default_factory=list)
    in_order: bool = False  # every pod is decided before one of another priority comes
    # schedulerName -> number of running pods that `replay` leaves, as it is not one of `served`
    kept: dict[str, int] = field(default_factory=dict)
    # the same for running pods that no scheduler placed, by how they came to their node
    unplaced: dict[str, int] = field(default_factory=dict)

    def ask(self, title: str, pods: Iterable[Object]) -> None:
        for pod in pods:
            name = pod_name(pod)
            self.pods.append(pod)
            self.subject.add(name)
            self.groups.setdefault(title, []).append(name)


def is_daemon(pod: Mapping[str, Any]) -> bool:
    """Return whether a pod belongs to its node: of a DaemonSet, or a mirror of a static pod."""
    return _is_mirror(pod) or (controller_of(pod) or {}).get("kind") == DAEMON_SET


def placed_without_scheduler(pod: Mapping[str, Any]) -> str:
    """Return how a pod came to its node without a scheduler; empty if one placed it.

    Files often lack managedFields; there, only the owner shows the operator's own guard pods.
    """
    if _is_mirror(pod):
        return "mirror pods"
    owner = (controller_of(pod) or {}).get("kind")
    if owner == KUBE_SCHEDULERS.kind or names_its_node(pod["metadata"]):
        return "created with spec.nodeName"
    return ""


def belongs_to_node(pod: Mapping[str, Any]) -> bool:
    """Return whether no scheduler could move a pod: it is of a DaemonSet, or none placed it."""
    return is_daemon(pod) or bool(placed_without_scheduler(pod))


def _is_mirror(pod: Mapping[str, Any]) -> bool:
    return MIRROR_ANNOTATION in (pod["metadata"].get("annotations") or {})


def prepare(world: World, scenario: Scenario, served: Collection[str]) -> Prepared:
    """Apply the changes to a copy of the world.

    The pods to place are those that wait, oldest first, and those that the changes displace; with
    `replay`, also those that run and whose spec.schedulerName is one of `served`.

    Raises:
        ScenarioError: a node does not exist.
    """
    for flag, nodes in (
        ("--without-node", scenario.without),
        ("--drain", scenario.drain),
        ("--add-nodes", [like for _, like in scenario.add]),
    ):
        for node in nodes:
            if world.get(NODES, node) is None:
                raise ScenarioError(f"{flag} {node}: no node has this name{_names(world)}")
    prepared = Prepared(world.copy(), in_order=scenario.replay)
    changed = prepared.world
    for count, like in scenario.add:
        prepared.added += _add_nodes(changed, count, like)
    waiting = [pod for pod in world.pending() if "deletionTimestamp" not in pod["metadata"]]
    displaced: list[Object] = []
    for change, nodes, done in (
        (_drain, scenario.drain, prepared.drains),
        (_remove, scenario.without, prepared.removed),
    ):
        for node in dict.fromkeys(nodes):
            drain, pods = change(changed, node)
            done.append(drain)
            displaced += pods
    if scenario.replay:
        # The displaced ones are among those that run.
        running = [*_take_running(prepared, served), *displaced]
        prepared.ask("that run now", [_fresh(pod) for pod in running])
        prepared.pods += waiting
        prepared.pods.sort(key=lambda pod: (pod["metadata"]["creationTimestamp"], pod_name(pod)))
        # kube-scheduler keeps their room while it tries the others.
        prepared.pods.sort(key=lambda pod: not nominated(pod))
        return prepared
    prepared.pods += waiting
    for verb, done in (("drained", prepared.drains), ("lost", prepared.removed)):
        for drain in done:
            own = set(drain.moved)
            chosen = [_fresh(pod) for pod in displaced if pod_name(pod) in own]
            prepared.ask(f"of the {verb} node {drain.node}", chosen)
    return prepared


def ask_waiting(prepared: Prepared) -> None:
    """Make the waiting pods those that the question is about, except gated ones."""
    names = [
        pod_name(pod)
        for pod in prepared.pods
        if pod_name(pod) not in prepared.subject and not pod["spec"].get("schedulingGates")
    ]
    prepared.subject.update(names)
    if names:
        prepared.groups[f"that {'waits' if len(names) == 1 else 'wait'} now"] = names


def add_workload(prepared: Prepared, workload: SimulatedWorkload, count: int) -> None:
    """Add pods of a workload, and what belongs to them."""
    world = prepared.world
    names = list(islice(workload.names(world), count))
    add_objects(world, workload, names)
    prepared.ask(workload.title, workload.pods(names))


def add_objects(world: World, workload: SimulatedWorkload, names: Sequence[str]) -> None:
    """Add to the world what belongs to pods of these names: their controller and their claims."""
    for obj in workload.objects:
        world.add(obj)
    for name in names:
        for claim in workload.claims_of(name, world):
            world.add(claim)
    world.complete()


def add_daemon_set(prepared: Prepared, workload: SimulatedWorkload, nodes: Sequence[str]) -> None:
    """Add the pods of a DaemonSet for these nodes."""
    pods = workload.pods(islice(workload.names(prepared.world), len(nodes)))
    prepared.ask(workload.title, [pinned(pod, node) for pod, node in zip(pods, nodes, strict=True)])


def _names(world: World) -> str:
    names = [name for _, name in world.objects[NODES]]
    listed = ", ".join(sorted(names)[:5]) + (", …" if len(names) > 5 else "")
    return f"; nodes are {listed}" if names else "; there are no nodes"


def _fresh(pod: Object) -> Object:
    """Return the pod as its controller creates it again."""
    copied = copy.deepcopy(pod)
    copied["spec"].pop("nodeName", None)
    copied["metadata"].pop("deletionTimestamp", None)
    copied["status"] = {"phase": "Pending"}
    return copied


def recreated(pod: Object, number: int) -> Object:
    """Return the pod that a controller creates for one that was preempted."""
    copied = _fresh(pod)
    name = f"{pod['metadata']['name']}_again-{number}"  # no other pod can have an underscore
    copied["metadata"].update(name=name, uid=f"simulated-{name}")
    return copied


def _on(world: World, node: str) -> list[Object]:
    return [entry.object() for entry in world.objects[PODS].values() if entry.node == node]


def _take_running(prepared: Prepared, served: Collection[str]) -> Iterator[Object]:
    """Take the pods that do not belong to their nodes off them; count those that are kept."""
    for entry in list(prepared.world.objects[PODS].values()):
        if not entry.node:
            continue
        pod = entry.object()
        if "deletionTimestamp" in pod["metadata"]:
            continue
        if how := placed_without_scheduler(pod):
            prepared.unplaced[how] = prepared.unplaced.get(how, 0) + 1
            continue
        if is_daemon(pod):
            continue
        name = pod["spec"]["schedulerName"]
        if name in served:
            prepared.world.remove_pod(pod)
            yield pod
        else:
            prepared.kept[name] = prepared.kept.get(name, 0) + 1


def _drain(world: World, name: str) -> tuple[Drain, list[Object]]:
    node = world.get(NODES, name) or {}
    taints = [
        taint for taint in node["spec"].get("taints") or () if taint["key"] != UNSCHEDULABLE_TAINT
    ]
    taints.append({"key": UNSCHEDULABLE_TAINT, "effect": "NoSchedule"})
    node["spec"].update(unschedulable=True, taints=taints)
    world.add(node)
    drain, displaced = Drain(name), []
    budgets = list(world.all(BUDGETS))
    for pod in _on(world, name):
        own = pod_name(pod)
        if is_daemon(pod):
            what = "mirror pods" if _is_mirror(pod) else "of DaemonSets"
            drain.stay[what] = drain.stay.get(what, 0) + 1
            continue
        if _is_replaced(pod):
            drain.ending.append(own)
            continue
        covering = [budget for budget in budgets if _covers(budget, pod)]
        if _is_forbidden(drain, own, covering):
            continue
        if controller_of(pod) and (how := placed_without_scheduler(pod)):
            # Its controller creates it again there: a cordon concerns schedulers alone.
            drain.stay[how] = drain.stay.get(how, 0) + 1
            continue
        world.remove_pod(pod)
        if controller_of(pod) is None:
            drain.lost.append(own)
            continue
        drain.moved.append(own)
        displaced.append(pod)
        for budget in covering:
            drain.budgets.setdefault(pod_name(budget), []).append(own)
            drain.one_by_one[pod_name(budget)] = _allowed(budget)
    return drain, displaced


def _is_forbidden(drain: Drain, pod: str, covering: Sequence[Object]) -> bool:
    """Return whether the budgets of a pod forbid its eviction; note why."""
    forbidding = [budget for budget in covering if _allowed(budget) <= 0]
    for budget in forbidding:
        drain.blocked.setdefault(pod_name(budget), []).append(pod)
    if len(covering) > 1:  # "which the eviction subresource does not support"
        drain.several[pod] = [pod_name(budget) for budget in covering]
    return bool(forbidding) or len(covering) > 1


def _remove(world: World, name: str) -> tuple[Drain, list[Object]]:
    gone, displaced = Drain(name), []
    for pod in _on(world, name):
        world.remove_pod(pod)
        if is_daemon(pod) or (controller_of(pod) and placed_without_scheduler(pod)):
            gone.stay["gone with it"] = gone.stay.get("gone with it", 0) + 1
        elif _is_replaced(pod):
            gone.ending.append(pod_name(pod))
        elif controller_of(pod) is None:
            gone.lost.append(pod_name(pod))
        else:
            gone.moved.append(pod_name(pod))
            displaced.append(pod)
    world.remove(NODES, name)
    world.remove(CSI_NODES, name)
    for obj in list(world.all(RESOURCE_SLICES)):
        if (obj.get("spec") or {}).get("nodeName") == name:
            world.remove(RESOURCE_SLICES, obj["metadata"]["name"])
    return gone, displaced


def _is_replaced(pod: Mapping[str, Any]) -> bool:
    """Return whether nothing creates a pod again: it terminates, and counts no more.

    A StatefulSet alone waits until it is gone.
    """
    owner = controller_of(pod) or {}
    return "deletionTimestamp" in pod["metadata"] and owner.get("kind") != STATEFUL_SETS.kind


def _allowed(budget: Mapping[str, Any]) -> int:
    """Return how many evictions are allowed; without a known status, none."""
    return int((budget.get("status") or {}).get("disruptionsAllowed") or 0)


def _covers(budget: Mapping[str, Any], pod: Mapping[str, Any]) -> bool:
    if budget["metadata"]["namespace"] != pod["metadata"]["namespace"]:
        return False
    selector = (budget.get("spec") or {}).get("selector")
    return selector is not None and matches(selector, pod["metadata"].get("labels") or {})


def _add_nodes(world: World, count: int, like: str) -> list[str]:
    """Add nodes like another one, with its DaemonSets' and static pods and its devices."""
    node = world.get(NODES, like) or {}
    # Copies of copies would have pods that the others do not have.
    daemons = [pod for pod in _on(world, like) if is_daemon(pod)]
    added: list[str] = []
    number = 0
    while len(added) < count:
        number += 1
        name = f"{like}-new-{number}"
        if world.get(NODES, name) is not None:
            continue
        added.append(name)
        world.add(_node_like(node, like, name))
        for pod in daemons:
            copied = pinned(pod, name) if not _is_mirror(pod) else copy.deepcopy(pod)
            own = f"{pod['metadata']['name']}_new-{number}"  # no other pod can have an underscore
            copied["metadata"].update(name=own, uid=own)
            copied["spec"]["nodeName"] = name
            world.add(copied)
        _copy_of_node(world, CSI_NODES, like, name)
        for obj in list(world.all(RESOURCE_SLICES)):
            if (obj.get("spec") or {}).get("nodeName") == like:
                own = f"{obj['metadata']['name']}-new-{number}"
                obj["metadata"].update(name=own, uid=own)
                obj["spec"]["nodeName"] = name
                obj["spec"]["pool"] = {**(obj["spec"].get("pool") or {}), "name": name}
                world.add(obj)
    return added


def _node_like(node: Mapping[str, Any], like: str, name: str) -> Object:
    made = copy.deepcopy(dict(node))
    labels = {
        key: name if key == HOSTNAME or value == like else value
        for key, value in (made["metadata"].get("labels") or {}).items()
    }
    made["metadata"].update(name=name, uid=name, labels=labels)
    spec = made["spec"]
    spec.pop("unschedulable", None)
    spec.pop("providerID", None)
    taints = [taint for taint in spec.get("taints") or () if taint.get("key") not in _PASSING]
    spec["taints"] = taints
    made["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    return made


def _copy_of_node(world: World, resource: Resource, like: str, name: str) -> None:
    obj = world.get(resource, like)
    if obj is not None:
        obj["metadata"].update(name=name, uid=f"{resource.plural}-{name}")
        world.add(obj)
