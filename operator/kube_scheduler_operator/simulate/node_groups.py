"""Node groups of cluster-autoscaler, of Cluster API and of clouds: which nodes they could make.

A group is what its existing nodes have in common. Without nodes it is what the annotations of a
MachineDeployment or MachineSet say; else what a node of it is like is known to the cloud alone.
Rules: cluster-autoscaler's core (a template is made from a ready node of the group) and its
clusterapi provider (clusterapi_nodegroup.go, clusterapi_unstructured.go).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ..base.foreign_text import foreign
from ..base.limits import FOREIGN_NAME
from ..base.objects import controller_of, entries, mapping
from ..base.quantities import CPU, MEMORY, amounts
from .autoscaler_status import AutoscalerStatus, GroupStatus, autoscaler_status
from .autoscaling_kinds import (
    CAPACITY,
    GROUP_BOUNDS,
    MACHINE,
    MACHINE_DEPLOYMENTS,
    MACHINE_SETS,
    OPENSHIFT,
    OPENSHIFT_MACHINE_SETS,
    STATUS_KEY,
    machine_owner,
)
from .kinds import HOSTNAME, Object
from .new_nodes import (
    MOST_SOURCES,
    PODS_OF_A_NODE,
    Coming,
    NodeMaker,
    NodeTemplate,
    lasting,
    template_node,
)
from .node_pools import POOL_LABEL
from .requirements import ARCH, OS
from .world import World

GROUP_LABELS: Final = (
    "eks.amazonaws.com/nodegroup",
    "alpha.eksctl.io/nodegroup-name",
    "cloud.google.com/gke-nodepool",
    "kubernetes.azure.com/agentpool",
    "kops.k8s.io/instancegroup",
    "doks.digitalocean.com/node-pool",
    "k8s.scaleway.com/pool-name",
    "lke.linode.com/pool-id",
    "worker.gardener.cloud/pool",
)
_STATUS: Final = f"ConfigMap {'/'.join(STATUS_KEY)}"
_SHOW_STATUS: Final = f"kubectl -n {STATUS_KEY[0]} get configmap {STATUS_KEY[1]} -o yaml"
_EXPENDABLE: Final = -10
_MOST_KINDS: Final = 6
_UID: Final = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_AWS_NAME: Final = re.compile(rf"eks-.+-{_UID}$|eksctl-")
_TAGS: Final = (
    "cluster-autoscaler reads its labels, taints and resources from tags of the Auto Scaling "
    "group, such as k8s.io/cluster-autoscaler/node-template/label/NAME"
)
"""Source: cloudprovider/aws of cluster-autoscaler 1.30 and later."""
_MANAGED: Final = re.compile(
    r"(?:[^/]*\.)?(?:node-role\.kubernetes\.io|node-restriction\.kubernetes\.io|"
    r"node\.cluster\.x-k8s\.io)(?:/|$)"
)
"""Labels of a Machine's template that Cluster API copies to its Node."""
_TAINT: Final = re.compile(r"([^=:]+)(?:=([^:]*))?:(\w+)")

_Group = tuple[str, str]
"""Label and value, or kind and namespace/name of what makes machines."""


@dataclass(slots=True)
class _NodeGroup:
    """A node group as far as it is known."""

    title: str
    command: str
    members: list[Mapping[str, Any]] = field(default_factory=list)
    status: GroupStatus | None = None
    machines: Object | None = None  # the MachineDeployment or MachineSet


def node_groups(world: World, pod: Mapping[str, Any]) -> Iterator[NodeMaker]:
    """Yield the node groups."""
    status = autoscaler_status(world)
    priority = pod["spec"].get("priority")
    for at, group in enumerate(_groups(world, status)[:MOST_SOURCES]):
        templates = tuple(_templates(group, at))
        obstacles = list(_obstacles(group, status))
        if group.status is not None and isinstance(priority, int) and priority < _EXPENDABLE:
            obstacles.append(
                f"the Pod has the priority {priority}, and cluster-autoscaler makes no node for "
                f"one below {_EXPENDABLE} (the default of --expendable-pods-priority-cutoff)"
            )
        yield NodeMaker(
            group.title,
            group.command,
            templates,
            tuple(obstacles),
            unknown=_unknown(group, status, bool(templates)),
            expects_its_like=group.status is not None and bool(group.members),
            partial=len(templates) == _MOST_KINDS,
        )


def has_groups(world: World) -> bool:
    """Return whether there is a node of which a group is known."""
    return any(_group_of(node, {}) for node in world.nodes())


def members(world: World) -> Iterator[str]:
    """Yield the names of the nodes of groups."""
    for group in _groups(world, autoscaler_status(world))[:MOST_SOURCES]:
        yield from (str(node["metadata"]["name"]) for node in group.members)


def _groups(world: World, status: AutoscalerStatus | None) -> list[_NodeGroup]:
    machines, owners = _machine_groups(world), _owners(world)
    members: dict[_Group, list[Mapping[str, Any]]] = {}
    named: dict[str, Mapping[str, Any]] = {}
    for node in world.nodes():
        if POOL_LABEL in mapping(node["metadata"].get("labels")):
            continue
        named[str(node["metadata"]["name"])] = node
        if (group := _group_of(node, owners)) is not None:
            members.setdefault(group, []).append(node)
    groups = []
    for one in status.groups if status is not None else ():
        found = _NodeGroup(f"node group {one.name}", _SHOW_STATUS, status=one)
        key = _key_of(one.name, (*machines, *members))
        found.machines = machines.pop(key, None) if key else None
        # Groups of several zones share their label, so names of nodes come first.
        found.members = _of_name(one.name, named) or (list(members.get(key, ())) if key else [])
        groups.append(found)
    taken = {node["metadata"]["name"] for group in groups for node in group.members}
    for (kind, name), obj in machines.items():
        namespace, _, own = name.partition("/")
        plural = f"{kind.lower()}.{obj['apiVersion'].partition('/')[0]}"
        made = _NodeGroup(f"{kind} {name}", f"kubectl -n {namespace} describe {plural} {own}")
        made.members, made.machines = members.get((kind, name), []), obj
        groups.append(made)
    for (label, value), nodes in members.items():
        rest = [node for node in nodes if node["metadata"]["name"] not in taken]
        if rest and label in GROUP_LABELS:
            command = f"kubectl get nodes -l {label}={value}"
            groups.append(_NodeGroup(f"node group {value} ({label})", command, rest))
    return groups


def _group_of(node: Mapping[str, Any], owners: Mapping[str, _Group]) -> _Group | None:
    metadata = node["metadata"]
    labels, annotations = mapping(metadata.get("labels")), mapping(metadata.get("annotations"))
    machine_set = machine_owner(annotations)
    if machine_set in owners:
        return owners[machine_set]
    machine = str(annotations.get(MACHINE) or "")
    if machine:  # its name begins with that of its MachineSet
        return (MACHINE_SETS.kind, foreign(machine.rpartition("-")[0], FOREIGN_NAME))
    for label in GROUP_LABELS:
        if labels.get(label):
            return (label, foreign(str(labels[label]), FOREIGN_NAME))
    return None


def _machine_groups(world: World) -> dict[_Group, Object]:
    """Return what cluster-autoscaler scales, by kind and namespace/name: annotations bound it."""
    found: dict[_Group, Object] = {}
    for resource in (MACHINE_DEPLOYMENTS, MACHINE_SETS, OPENSHIFT_MACHINE_SETS):
        for obj in world.all(resource):
            if any(GROUP_BOUNDS in key for key in mapping(obj.get("nodeGroup"))):
                name = f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"
                found[resource.kind, name] = obj
    return found


def _owners(world: World) -> dict[str, _Group]:
    """Return the node group of each MachineSet of Cluster API: its MachineDeployment, or itself."""
    found = {}
    for obj in world.all(MACHINE_SETS):
        owner = controller_of(obj) or {}
        is_deployed = owner.get("kind") == MACHINE_DEPLOYMENTS.kind
        own = owner.get("name") if is_deployed else obj["metadata"]["name"]
        name = foreign(f"{obj['metadata']['namespace']}/{own}", FOREIGN_NAME)
        kind = MACHINE_DEPLOYMENTS.kind if is_deployed else MACHINE_SETS.kind
        found[str(obj["metadata"]["name"])] = (kind, name)
    return found


def _key_of(name: str, groups: Iterable[_Group]) -> _Group | None:
    """Return which group a name of cluster-autoscaler is of."""
    last = name.rpartition("/")[2]
    for kind, own in groups:
        value = re.escape(own)
        if name == f"{kind}/{own}":
            return (kind, own)
        if kind in GROUP_LABELS and re.fullmatch(
            rf"{value}|eks-{value}-{_UID}|eksctl-.+-nodegroup-{value}-NodeGroup-\w+|{value}\..+",
            last,
        ):
            return (kind, own)
    return None


def _of_name(name: str, nodes: Mapping[str, Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the nodes whose names begin with that of their group: on GKE, AKS and Gardener."""
    last = re.escape(name.rpartition("/")[2].removesuffix("-grp"))
    # Gardener's MachineDeployment has its namespace before it.
    own_part = last.rpartition(r"\.")[2]
    machines = rf"{own_part}-[0-9a-z]{{5,10}}-[0-9a-z]{{5}}"
    pattern = re.compile(rf"{last}(?:-[0-9a-z]{{4}}|[0-9a-z]{{6}})|{machines}")
    return [node for own, node in nodes.items() if pattern.fullmatch(own)]


# --- what is known about a group ------------------------------------------------------------------


def _obstacles(group: _NodeGroup, whole: AutoscalerStatus | None) -> Iterator[str]:
    status = group.status
    if whole is not None and status is not None and whole.idle:
        yield whole.idle
    if status is not None and not status.healthy:
        yield "cluster-autoscaler reports it as Unhealthy, and makes no node of it until it is not"
    if status is not None and status.is_full:
        yield f"it has {status.target} of at most {status.most} nodes (maxSize)"
    if status is not None and status.backs_off:
        since = f" since {status.since}" if status.since else ""
        error = f": {status.error}" if status.error else ""
        yield f"cluster-autoscaler backs off{since} after an attempt that failed{error}"
    if status is None and group.machines is not None:
        most = _annotation(group.machines, f"{GROUP_BOUNDS}max-size")
        replicas = mapping(group.machines.get("spec")).get("replicas")
        if most.isdecimal() and isinstance(replicas, int) and replicas >= int(most):
            yield f"it has {replicas} of at most {most} nodes ({GROUP_BOUNDS}max-size)"


def _unknown(group: _NodeGroup, whole: AutoscalerStatus | None, templates: bool) -> str:
    if not templates:
        tags = f"; {_TAGS}" if _AWS_NAME.match(group.status.name if group.status else "") else ""
        return (
            "it has no node, and what a node of it would be like is not in the cluster but in "
            f"the cloud's template{tags}"
        )
    if group.status is not None and whole is not None:
        written = f"cluster-autoscaler wrote its status at {whole.time}"
        return f"{written}: if that is long ago, it does not run" if whole.time else ""
    if whole is None:
        return f"whether it can grow is not known: {_STATUS} is not there, or may not be read"
    if whole.unreadable:
        return f"whether it can grow is not known: {whole.unreadable}"
    return f"whether it can grow is not known: {_STATUS} names no such node group"


def _annotation(obj: Mapping[str, Any], suffix: str) -> str:
    found = mapping(obj.get("nodeGroup"))
    return next((str(value) for key, value in found.items() if key.endswith(suffix)), "")


def _templates(group: _NodeGroup, number: int) -> Iterator[NodeTemplate]:
    if group.members:
        kinds: dict[str, list[Mapping[str, Any]]] = {}
        for node in group.members:
            kinds.setdefault(_kind(node), []).append(node)
        often = sorted(kinds.values(), key=lambda nodes: -len(nodes))[:_MOST_KINDS]
        for at, (node, *_) in enumerate(often):
            yield _like(node, f"g{number}-{at}")
    elif group.machines is not None:
        yield from _of_annotations(group.machines, number)


def _kind(node: Mapping[str, Any]) -> str:
    taints = lasting(mapping(node.get("spec")).get("taints"))
    allocatable = mapping(mapping(node.get("status")).get("allocatable"))
    return repr((_own_labels(node), taints, sorted(allocatable.items())))


def _own_labels(node: Mapping[str, Any]) -> dict[str, str]:
    """Return the labels that another node of the group has as well."""
    name = node["metadata"]["name"]
    labels = sorted(mapping(node["metadata"].get("labels")).items())
    return {key: str(value) for key, value in labels if key != HOSTNAME and value != name}


def _like(node: Mapping[str, Any], number: str) -> NodeTemplate:
    status, name = dict(mapping(node.get("status"))), str(node["metadata"]["name"])
    allocatable = mapping(status.pop("allocatable", None))
    status.pop("conditions", None)
    capacity = mapping(status.pop("capacity", None)) or allocatable
    taints = mapping(node.get("spec")).get("taints")
    made = template_node(number, _own_labels(node), taints, allocatable, **status)
    return NodeTemplate(made, f"node {name}", amounts(capacity), copied=name)


def _of_annotations(machines: Mapping[str, Any], number: int) -> Iterator[NodeTemplate]:
    """Yield what the annotations for scaling from zero say, if they have a size."""
    given = {
        resource: _annotation(machines, f"{CAPACITY}{name}")
        for resource, name in ((CPU, "cpu"), (MEMORY, "memory"),
                               ("ephemeral-storage", "ephemeral-disk"), ("pods", "maxPods"))
    }  # fmt: skip
    given[CPU] = given[CPU] or _annotation(machines, f"{OPENSHIFT}vCPU")
    megabytes = _annotation(machines, f"{OPENSHIFT}memoryMb")
    given[MEMORY] = given[MEMORY] or (f"{megabytes}Mi" if megabytes else "")
    given["pods"] = given["pods"] or PODS_OF_A_NODE
    gpu = _annotation(machines, f"{CAPACITY}gpu-type") or "nvidia.com/gpu"
    given[gpu] = _annotation(machines, f"{CAPACITY}gpu-count") or _annotation(
        machines, f"{OPENSHIFT}GPU"
    )
    sizes = amounts({resource: text for resource, text in given.items() if text})
    if CPU not in sizes or MEMORY not in sizes:
        return
    template = mapping(mapping(machines.get("spec")).get("template"))
    of_machine = mapping(template.get("spec"))
    own = mapping(mapping(template.get("metadata")).get("labels"))
    labels = {OS: "linux", ARCH: "amd64"}
    labels |= {key: str(value) for key, value in own.items() if _MANAGED.match(key)}
    labels |= {
        key: str(value)
        for key, value in mapping(mapping(of_machine.get("metadata")).get("labels")).items()
    }
    for pair in filter(None, _annotation(machines, f"{CAPACITY}labels").split(",")):
        key, _, value = pair.partition("=")
        labels[key.strip()] = value.strip()
    taints = [*entries(of_machine.get("taints")), *_taints(machines)]
    allocatable = {resource: given[resource] for resource in sizes}
    node = template_node(f"m{number}", labels, taints, allocatable)
    yield NodeTemplate(node, "its annotations for scaling from zero", sizes)


def _taints(machines: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    for text in filter(None, _annotation(machines, f"{CAPACITY}taints").split(",")):
        if match := _TAINT.fullmatch(text.strip()):
            yield {"key": match[1], "value": match[2] or "", "effect": match[3]}


# --- nodes that are being made --------------------------------------------------------------------


def coming_nodes(world: World) -> Iterator[Coming]:
    """Yield the nodes that groups are to get, and those of groups that are not Ready."""
    status = autoscaler_status(world)
    for at, group in enumerate(_groups(world, status)[:MOST_SOURCES]):
        template = next(iter(_templates(group, 1000 + at)), None)
        if group.status is not None and group.status.upcoming:
            count = group.status.upcoming
            yield Coming(
                f"{count} {'node' if count == 1 else 'nodes'} of {group.title}",
                group.command,
                group.status.since,
                "asked for (cloudProviderTarget) and not registered",
                template,
            )
        for number, node in enumerate(filter(_is_not_ready, group.members)):
            if number == _MOST_KINDS:
                break
            name = str(node["metadata"]["name"])
            yield Coming(
                f"node {name} of {group.title}",
                f"kubectl describe node {name}",
                str(node["metadata"]["creationTimestamp"]),
                "not Ready",
                _like(node, f"r{at}-{number}"),
                name,
            )


def _is_not_ready(node: Mapping[str, Any]) -> bool:
    conditions: Sequence[Any] = entries(mapping(node.get("status")).get("conditions"))
    ready = (one.get("status") for one in conditions if mapping(one).get("type") == "Ready")
    return any(status != "True" for status in ready)
