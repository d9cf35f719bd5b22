"""Groups of pods that kube-scheduler places together: their members, and whether it reads them.

A Pod names a PodGroup (`spec.schedulingGroup`, from 1.36 on) or a group in a Workload
(`spec.workloadRef`, 1.35). Both count only with feature gates, which are off by default to 1.37.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ..base.foreign_text import foreign
from ..base.limits import FOREIGN_NAME
from ..base.objects import entries, mapping
from ..config.language.feature_gates import Gates
from ..config.language.plugins.effective_plugins import effective_plugins
from ..kube.resource import Resource
from .kinds import COMPOSITE_POD_GROUPS, POD_GROUPS, PODS, WORKLOADS, Object, pod_name
from .world import World

GROUP_FIELDS: Final = ("schedulingGroup", "workloadRef")
"""Fields of a pod's spec that name its group."""

NEVER: Final = "Never"
_GATE: Final = "GenericWorkload"
_GANGS: Final = "GangScheduling"
"""A plugin, and to 1.36 the gate that enables it."""
_TOPOLOGY_GATE: Final = "TopologyAwareWorkloadScheduling"
_COMPOSITE_GATE: Final = "CompositePodGroup"
_FIRST_MINOR: Final = 35
_POD_GROUPS_FROM: Final = 36
_GATES_HOLD_GROUPS_FROM: Final = 37
_MOST_DEPTH: Final = 10
"""CompositePodGroups above each other; the API has fewer."""


@dataclass(frozen=True, slots=True)
class GroupName:
    """What a pod names as its group."""

    namespace: str
    name: str  # of the PodGroup, or of the Workload
    part: str = ""  # of a Workload, the group in its spec.podGroups; otherwise empty
    replica: str = ""  # of a Workload, spec.workloadRef.podGroupReplicaKey

    @property
    def title(self) -> str:
        name = foreign(f"{self.namespace}/{self.name}", FOREIGN_NAME)
        if not self.part:
            return f"{POD_GROUPS.kind} {name}"
        replica = f", replica {foreign(self.replica, FOREIGN_NAME)}" if self.replica else ""
        return f"group {foreign(self.part, FOREIGN_NAME)} of {WORKLOADS.kind} {name}{replica}"

    @property
    def kind(self) -> Resource:
        """The kind of the object that has its policy."""
        return WORKLOADS if self.part else POD_GROUPS

    @property
    def object(self) -> str:
        """The object that has its policy, as Kind namespace/name."""
        return f"{self.kind.kind} {foreign(f'{self.namespace}/{self.name}', FOREIGN_NAME)}"

    @property
    def min_count_field(self) -> str:
        """The path of minCount there."""
        policy = "policy" if self.part else "schedulingPolicy"
        return f"{self._path}.{policy}.gang.minCount"

    @property
    def topology_field(self) -> str:
        """The path of the constraints by which its pods have to be in one domain."""
        return f"{self._path}.schedulingConstraints"

    @property
    def _path(self) -> str:
        return f"spec.podGroups[{foreign(self.part, FOREIGN_NAME)}]" if self.part else "spec"


@dataclass(slots=True)
class PodGroup:
    """A group with its pods, as a version of kube-scheduler reads it."""

    name: GroupName
    exists: bool  # whether the object is there that the pods name
    min_count: int = 0  # 0: each pod is placed alone (policy basic)
    topology: list[str] = field(default_factory=list)  # keys of domains, one of which has all pods
    root: str = ""  # the CompositePodGroup on top of it; empty without one
    running: list[Object] = field(default_factory=list)
    waiting: list[Object] = field(default_factory=list)  # those with scheduling gates included
    # waiting pods of the other groups below the same CompositePodGroup, which are placed with it
    others: list[Object] = field(default_factory=list)

    @property
    def gated(self) -> list[Object]:
        return [pod for pod in self.waiting if pod["spec"].get("schedulingGates")]

    @property
    def count(self) -> int:
        return len(self.running) + len(self.waiting)

    @property
    def lacks(self) -> int:
        """How many pods are missing up to minCount."""
        return max(self.min_count - self.count, 0)


def group_name(pod: Mapping[str, Any]) -> GroupName | None:
    """Return the group that a pod names, in the form of any version."""
    spec, namespace = mapping(pod.get("spec")), str(pod["metadata"].get("namespace") or "default")
    if name := mapping(spec.get("schedulingGroup")).get("podGroupName"):
        return GroupName(namespace, str(name))
    reference = mapping(spec.get("workloadRef"))
    if reference.get("name") and reference.get("podGroup"):
        replica = str(reference.get("podGroupReplicaKey") or "")
        return GroupName(namespace, str(reference["name"]), str(reference["podGroup"]), replica)
    return None


def unread(gates: Gates, name: GroupName) -> str:
    """Return why kube-scheduler does not look at a group, as a sentence; empty: it does."""
    version = f"kube-scheduler {gates.version.short}"
    if gates.version.minor < _FIRST_MINOR:
        return f"{version} does not look at it: groups of Pods begin with 1.{_FIRST_MINOR}"
    if not gates.enabled(_GATE):
        default = "" if _GATE in gates.explicit else " by default"
        return f"{version} does not look at it: its feature gate {_GATE} is off{default}"
    if name.part and gates.version.minor >= _POD_GROUPS_FROM:
        return f"{version} does not look at it: spec.workloadRef is read by 1.35 alone"
    if not name.part and gates.version.minor < _POD_GROUPS_FROM:
        return f"{version} does not look at it: spec.schedulingGroup is read from 1.36 on"
    return ""


def unenforced(gates: Gates, profile: Mapping[str, Any]) -> str:
    """Return why minCount does not count, as a sentence; empty: it does."""
    points = effective_plugins(profile, gates).points
    if any(plugin.name == _GANGS for plugin in points.get("preEnqueue", ())):
        return ""
    if gates.enabled(_GANGS) is False:
        return f"minCount does not count: the feature gate {_GANGS} is off"
    return f"minCount does not count: the plugin {_GANGS} is not enabled in the profile"


def gates_hold_groups(gates: Gates) -> bool:
    """Return whether one pod with scheduling gates holds all waiting pods of its group back."""
    return gates.version.minor >= _GATES_HOLD_GROUPS_FROM


def find_group(world: World, name: GroupName, gates: Gates) -> PodGroup:
    """Return a group with its members; pods that end and wait are left out."""
    spec = _spec_of(world, name)
    group = PodGroup(name, spec is not None, _min_count(spec))
    if gates.enabled(_TOPOLOGY_GATE):
        topology = entries(mapping(mapping(spec).get("schedulingConstraints")).get("topology"))
        keys = (str(mapping(item).get("key")) for item in topology)
        group.topology = [foreign(key, FOREIGN_NAME) for key in keys]
    roots = _roots(world, name.namespace) if gates.enabled(_COMPOSITE_GATE) else {}
    group.root = roots.get(name.name, "")
    for pod in _members(world, name.namespace):
        other = group_name(pod)
        if other == name and pod["spec"].get("nodeName"):
            group.running.append(pod)
        elif "deletionTimestamp" in pod["metadata"] or pod["spec"].get("nodeName"):
            continue
        elif other == name:
            group.waiting.append(pod)
        elif group.root and other and roots.get(other.name) == group.root:
            group.others.append(pod)
    for pods in (group.running, group.waiting, group.others):
        pods.sort(key=lambda pod: (str(pod["metadata"]["creationTimestamp"]), pod_name(pod)))
    return group


def groups_named(world: World, namespace: str, name: str) -> list[GroupName]:
    """Return the groups of a namespace with this name, those with waiting pods first."""
    found: dict[GroupName, bool] = {}
    if world.get(POD_GROUPS, name, namespace) is not None:
        found[GroupName(namespace, name)] = False
    for pod in _members(world, namespace):
        group = group_name(pod)
        if group is not None and name in (group.name, group.part):
            waits = not pod["spec"].get("nodeName")
            found[group] = found.get(group, False) or waits
    workload = world.get(WORKLOADS, name, namespace)
    if workload is not None and not any(group.part for group in found):
        for part in entries(workload["spec"].get("podGroups")):
            found[GroupName(namespace, name, str(mapping(part).get("name")))] = False
    return sorted(found, key=lambda group: not found[group])


def ungrouped(pod: Object) -> Object:
    """Return a copy of a pod that names no group, and is decided about alone."""
    copied = copy.deepcopy(pod)
    for name in GROUP_FIELDS:
        copied["spec"].pop(name, None)
    return copied


def changed_group(
    world: World, name: GroupName, *, min_count: int | None = None, topology: bool = True
) -> World:
    """Return a copy of a world with another minCount of a group, or without its topology."""
    changed = world.copy()
    obj = world.get(name.kind, name.name, name.namespace)
    if obj is None:
        return changed
    for policy, spec in _policies(obj, name):
        if min_count is not None and "gang" in policy:
            policy["gang"] = {"minCount": min_count}
        if not topology:
            spec.pop("schedulingConstraints", None)
    changed.add(obj)
    return changed


def forbid_preemption(world: World, group: PodGroup) -> None:
    """Let a group of a world preempt no others: kube-scheduler wants all its parts to agree."""
    for kind in (POD_GROUPS, COMPOSITE_POD_GROUPS):
        for obj in list(world.all(kind)):
            if obj["metadata"]["namespace"] == group.name.namespace:
                obj["spec"]["preemptionPolicy"] = NEVER
                world.add(obj)
    for pod in _members(world, group.name.namespace):
        pod["spec"]["preemptionPolicy"] = NEVER
        world.add(pod)


def _policies(obj: Object, name: GroupName) -> Iterator[tuple[Object, Object]]:
    """Yield the policy of a group in its object, and what has it."""
    key = "policy" if name.part else "schedulingPolicy"
    specs = entries(obj["spec"].get("podGroups")) if name.part else [obj["spec"]]
    for spec in specs:
        if isinstance(spec, dict) and spec.get("name") in (None, name.part):
            policy = spec.setdefault(key, {})
            yield policy if isinstance(policy, dict) else {}, spec


def _spec_of(world: World, name: GroupName) -> Mapping[str, Any] | None:
    """Return the spec of a PodGroup, or that of a group in a Workload."""
    obj = world.get(name.kind, name.name, name.namespace)
    if obj is None:
        return None
    return next((spec for _, spec in _policies(obj, name)), None)


def _min_count(spec: Mapping[str, Any] | None) -> int:
    policy = mapping(spec).get("schedulingPolicy") or mapping(spec).get("policy")
    count = mapping(mapping(policy).get("gang")).get("minCount")
    return count if isinstance(count, int) else 0


def _roots(world: World, namespace: str) -> dict[str, str]:
    """Return the CompositePodGroup on top of each PodGroup that has one."""
    above = {name: _parent(entry.object())
             for (where, name), entry in world.objects[COMPOSITE_POD_GROUPS].items()
             if where == namespace}  # fmt: skip
    roots = {}
    for (where, name), entry in world.objects[POD_GROUPS].items():
        root = _parent(entry.object()) if where == namespace else ""
        for _ in range(_MOST_DEPTH):
            root = above.get(root) or root
        if root:
            roots[name] = root
    return roots


def _parent(obj: Mapping[str, Any]) -> str:
    return str(mapping(obj.get("spec")).get("parentCompositePodGroupName") or "")


def _members(world: World, namespace: str) -> Iterator[Object]:
    """Yield the pods of a namespace that name a group."""
    names = tuple(f'"{name}"'.encode() for name in GROUP_FIELDS)
    for (where, _), entry in world.objects[PODS].items():
        if where == namespace and any(name in entry.content for name in names):
            yield entry.object()
