"""Generated clusters with groups of waiting pods, for the simulator and a real API server.

The pods of a group are alike, because their order in the group is not known, and their nodes have
different scores, because ties are broken by chance.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from .simulated_worlds import HOST, NAMESPACES, PREFERRED, PRIORITIES, draw_node, draw_pod

Object = dict[str, Any]
PROFILE: Final[Object] = {
    "schedulerName": "simulated",
    "plugins": {"score": {"disabled": [{"name": "*"}], "enabled": [{"name": "NodeAffinity"}]}},
}
"""Only the weights of the nodes decide which one of those that fit a pod gets."""


@dataclass
class GeneratedGroup:
    name: str
    spec: Object  # of the PodGroup, as a user writes it
    pods: list[Object] = field(default_factory=list)

    @property
    def is_complete(self) -> bool:
        """Whether there are as many pods as have to be placed at the same time."""
        gang = self.spec["schedulingPolicy"].get("gang")
        return gang is None or len(self.pods) >= gang["minCount"]

    def objects(self) -> Iterator[tuple[str, Object]]:
        """Yield the objects that its pods need, each with the name of its collection."""
        yield "podgroups", {"metadata": {"name": self.name}, "spec": self.spec}


@dataclass
class GeneratedComposite(GeneratedGroup):
    """A CompositePodGroup, whose PodGroups are alike: their order is not known either."""

    children: int = 1
    child: Object = field(default_factory=dict)  # the spec of each PodGroup

    @property
    def is_complete(self) -> bool:
        least: int = self.spec["schedulingPolicy"]["gang"]["minGroupCount"]
        each: int = self.child["schedulingPolicy"]["gang"]["minCount"]
        return self.children >= least and len(self.pods) >= each * self.children

    def objects(self) -> Iterator[tuple[str, Object]]:
        reference = {"workloadRef": {"workloadName": self.name, "templateName": "t"}}
        metadata = {"name": self.name}
        yield "compositepodgroups", {"metadata": metadata, "spec": {**self.spec, **reference}}
        below = {"parentCompositePodGroupName": self.name, **reference}
        for number in range(self.children):
            metadata = {"name": f"{self.name}-{number}"}
            yield "podgroups", {"metadata": metadata, "spec": {**self.child, **below}}


@dataclass
class GroupedWorld:
    nodes: list[Object] = field(default_factory=list)  # with status
    running: list[Object] = field(default_factory=list)  # pods with spec.nodeName
    groups: list[GeneratedGroup] = field(default_factory=list)


def generate_groups(seed: int) -> GroupedWorld:
    """The world of this seed; names contain it."""
    chance = random.Random(f"grouped world {seed}")
    world = _without_groups(chance, prefix := f"g{seed}")
    names = [node["metadata"]["name"] for node in world.nodes]
    world.groups = [_group(chance, f"{prefix}-{at}", names) for at in range(3)]
    return world


def generate_composites(seed: int) -> GroupedWorld:
    """The world of this seed with CompositePodGroups; names contain it."""
    chance = random.Random(f"world with composites {seed}")
    world = _without_groups(chance, prefix := f"c{seed}")
    names = [node["metadata"]["name"] for node in world.nodes]
    world.groups = [_composite(chance, f"{prefix}-{at}", names) for at in range(2)]
    return world


def _without_groups(chance: random.Random, prefix: str) -> GroupedWorld:
    world = GroupedWorld(
        [draw_node(chance, f"{prefix}-n{at}") for at in range(chance.randint(2, 5))]
    )
    names = [node["metadata"]["name"] for node in world.nodes]
    for number in range(chance.randint(0, 8)):
        pod = draw_pod(chance, f"{prefix}-r{number}", running=True)
        pod["metadata"]["namespace"] = NAMESPACES[0]
        pod["spec"]["nodeName"] = chance.choice(names)
        world.running.append(pod)
    return world


def _composite(chance: random.Random, name: str, nodes: list[str]) -> GeneratedComposite:
    """A group of pods, as often as the composite has children.

    All of them have to be placed at the same time, or one more than there are: kube-scheduler tries
    what is there as soon as it is enough, and what is created later waits for its back-off.
    """
    group = _group(chance, name, nodes)
    alike = group.pods[:3]
    children = chance.randint(1, 3)
    policy = {"gang": {"minGroupCount": children + (chance.random() < 0.15)}}
    spec: Object = {**group.spec, "schedulingPolicy": policy}
    each = {"gang": {"minCount": len(alike) + (chance.random() < 0.15)}}
    child: Object = {**group.spec, "schedulingPolicy": each}
    pods = []
    for number in range(children):
        for pod in alike:
            reference = {"schedulingGroup": {"podGroupName": f"{name}-{number}"}}
            metadata = {**pod["metadata"], "name": f"{pod['metadata']['name']}-{number}"}
            pods.append({"metadata": metadata, "spec": {**pod["spec"], **reference}})
    return GeneratedComposite(name, spec, pods, children, child)


def _group(chance: random.Random, name: str, nodes: list[str]) -> GeneratedGroup:
    template = draw_pod(chance, name)["spec"]
    template.pop("schedulingGates", None)
    template["schedulingGroup"] = {"podGroupName": name}
    template["schedulerName"] = PROFILE["schedulerName"]
    affinity = template.setdefault("affinity", {}).setdefault("nodeAffinity", {})
    affinity[PREFERRED] = [
        {
            "weight": 100 - 9 * at,
            "preference": {"matchExpressions": [{"key": HOST, "operator": "In", "values": [node]}]},
        }
        for at, node in enumerate(nodes)
    ]
    count = chance.randint(1, 5)
    gang = {"gang": {"minCount": max(count + chance.choice((-2, -1, 0, 0, 0, 1)), 1)}}
    spec: Object = {"schedulingPolicy": {"basic": {}} if chance.random() < 0.15 else gang}
    template.pop("priorityClassName", None)
    if chance.random() < 0.4:
        chosen = chance.choice(sorted(PRIORITIES))
        spec["priorityClassName"] = template["priorityClassName"] = chosen
    labels = {"app": chance.choice(("web", "db")), "group": name}
    pods = [
        {
            "metadata": {"name": f"{name}-{at}", "namespace": NAMESPACES[0], "labels": labels},
            "spec": template,
        }
        for at in range(count)
    ]
    return GeneratedGroup(name, spec, pods)
