"""The taints of nodes. That of a condition is not tolerated but ended: what sets it is named."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from ..base.foreign_text import foreign
from ..base.limits import FOREIGN_MESSAGE, FOREIGN_NAME
from ..base.objects import entries, mapping
from .autoscaling_kinds import NODE_CLAIMS, NODE_POOLS
from .constraint import Change, Constraint, Rank, RuleRepair
from .edits import Edit
from .kinds import Object
from .node_rules import BLOCKING, REQUIRED, written_taint
from .world import World

UNSCHEDULABLE_TAINT: Final = "node.kubernetes.io/unschedulable"
CORDON: Final = "cordon"
_CORDONED: Final = (UNSCHEDULABLE_TAINT, "", "NoSchedule")
"""The taint that kube-controller-manager adds to a cordoned node: key, value and effect."""
_MOST_TAINTS: Final = 20
"""Taints that are tried one by one; clusters rarely have more than five."""
_TOLERATIONS: Final = "spec.tolerations"


class _Condition(NamedTuple):
    """What a taint means that is the condition of a node, and what ends it."""

    meaning: str
    fix: str


_PODS: Final = "kubectl get pods -A --field-selector spec.nodeName=NODE"
_READY: Final = "make the kubelet Ready: kubectl describe node NODE shows its conditions"
_ENDS: Final = "kubectl describe node NODE; the kubelet removes the taint"
_REMOVED: Final = "add a node, or let the pod wait for another one"
_CONDITIONS: Final[Mapping[str, _Condition]] = {
    "node.kubernetes.io/not-ready": _Condition("the node is not Ready", _READY),
    "node.kubernetes.io/unreachable": _Condition("the kubelet of the node does not report", _READY),
    "node.kubernetes.io/memory-pressure": _Condition(
        "the node has too little free memory (MemoryPressure)",
        f"free memory on the node: {_ENDS}",
    ),
    "node.kubernetes.io/disk-pressure": _Condition(
        "the node has too little free disk space (DiskPressure)",
        f"free disk space on the node: {_ENDS}",
    ),
    "node.kubernetes.io/pid-pressure": _Condition(
        "the node has too few free process IDs (PIDPressure)",
        f"end processes on the node: {_ENDS}",
    ),
    "node.kubernetes.io/network-unavailable": _Condition(
        "the network of the node is not configured",
        f"make the network plugin of the node run, which removes the taint: {_PODS}",
    ),
    "node.kubernetes.io/out-of-service": _Condition(
        "an administrator has marked the node as out of service",
        "remove the taint once the node runs again: kubectl taint node NODE "
        "node.kubernetes.io/out-of-service-",
    ),
    "node.cloudprovider.kubernetes.io/uninitialized": _Condition(
        "the cloud controller manager has not initialized the node",
        "make the cloud-controller-manager run, which removes the taint: kubectl get pods -A",
    ),
    "node.cloudprovider.kubernetes.io/shutdown": _Condition(
        "the cloud provider reports that the machine of the node is shut down",
        "start the machine: kubectl get node NODE -o jsonpath={.spec.providerID} names it",
    ),
    "node.cluster.x-k8s.io/uninitialized": _Condition(
        "Cluster API has not initialized the node",
        "make Cluster API's controllers finish the Machine of the node: kubectl describe machine, "
        "in the management cluster",
    ),
    "karpenter.sh/unregistered": _Condition(
        "Karpenter has not registered the node",
        "see why Karpenter does not register the node: kubectl describe nodeclaims",
    ),
    "karpenter.sh/disrupted": _Condition("Karpenter is about to remove the node", _REMOVED),
    "karpenter.sh/disruption": _Condition("Karpenter is about to remove the node", _REMOVED),
    "ToBeDeletedByClusterAutoscaler": _Condition(
        "cluster-autoscaler is about to remove the node", _REMOVED
    ),
    "node.cilium.io/agent-not-ready": _Condition(
        "Cilium's agent is not ready on the node",
        f"make the Pod of Cilium on the node Ready, which removes the taint: {_PODS}",
    ),
}
"""By key. Sources: Kubernetes' list of well-known taints, and the pages of the projects."""

_BEYOND: Final = {"Gt": "greater than", "Lt": "less than"}
"""Operators of tolerations with the gate TaintTolerationComparisonOperators."""
_CONTROL_PLANE: Final = (
    "node-role.kubernetes.io/control-plane",
    "node-role.kubernetes.io/master",
)
_ARCH: Final = "kubernetes.io/arch"
"""The taint of nodes whose architecture not all images have, as on GKE."""
_ADD_ONS: Final = "CriticalAddonsOnly"
"""The taint of nodes that AKS and others keep for what the cluster itself needs."""
_FARGATE_FIX: Final = (
    "create the pod again where a Fargate profile selects its namespace and labels, so that it "
    "gets a node of its own"
)
_KEPT: Final = 8
"""How much a pod loses on a node that is kept for others: more than by any other change."""
FARGATE: Final = ("eks.amazonaws.com/compute-type", "fargate")
"""Label and taint of a node of EKS Fargate, which is made for one Pod and ends with it."""
_AGENT: Final = "/agent-not-ready"
"""The end of the key of a taint that CSI drivers and network plugins remove once they run."""


def taint_constraints(spec: Mapping[str, Any], world: World) -> Iterator[Constraint]:
    """Yield the cordon, then the taints of nodes, the most frequent first."""
    yield Constraint(
        CORDON,
        "the node is cordoned (spec.unschedulable)",
        "uncordon the node: kubectl uncordon NODE",
        _tolerating({"key": UNSCHEDULABLE_TAINT, "effect": "NoSchedule", "operator": "Exists"}),
        rank=Rank.MEND,
        others=partial(_uncordoned, world),
    )
    nodes_by_taint: Counter[tuple[str, str, str]] = Counter()
    for node in world.nodes():
        for taint in node["spec"].get("taints") or ():
            if taint.get("effect") in BLOCKING:
                key = (taint["key"], taint.get("value") or "", taint["effect"])
                nodes_by_taint[key] += 1
    often = sorted(nodes_by_taint, key=lambda key: (key != _CORDONED, -nodes_by_taint[key], key))
    conditions: dict[str, list[Mapping[str, str]]] = {}
    starting = dict(_startup_taints(world))
    for name, value, effect in often[:_MOST_TAINTS]:
        taint = {"key": name, "value": value, "effect": effect}
        if (name, effect) in starting and not is_condition(name):
            yield _of_start(taint, starting[name, effect])
        elif is_condition(name):
            # A node often has a taint of it for each effect, which end together.
            conditions.setdefault(name, []).append(taint)
        else:
            yield _of_taint(taint, spec, world)
    for of_condition, taints in conditions.items():
        yield _of_condition(of_condition, taints, world)


def _startup_taints(world: World) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield key and effect of what nodes of Karpenter have only until they have started.

    A NodePool whose nodes keep such a taint makes it an ordinary one.
    """
    sources = [(f"NodePool {_name(pool)}", _template(pool)) for pool in world.all(NODE_POOLS)]
    sources += [
        (f"NodeClaim {_name(claim)}", mapping(claim.get("spec")))
        for claim in world.all(NODE_CLAIMS)
    ]
    lasting = {
        (str(mapping(taint).get("key")), str(mapping(taint).get("effect")))
        for _, spec in sources
        for taint in entries(spec.get("taints"))
    }
    for title, spec in reversed(sources):  # a NodePool is what a user edits
        for taint in map(mapping, entries(spec.get("startupTaints"))):
            key = (str(taint.get("key")), str(taint.get("effect")))
            if key not in lasting:
                yield key, title


def _name(obj: Mapping[str, Any]) -> str:
    return foreign(str(obj["metadata"]["name"]), FOREIGN_NAME)


def _template(pool: Mapping[str, Any]) -> Mapping[str, Any]:
    return mapping(mapping(mapping(pool.get("spec")).get("template")).get("spec"))


def _of_start(taint: Mapping[str, str], source: str) -> Constraint:
    written = written_taint(taint)
    return Constraint(
        "taints",
        f"the node has not finished starting: it still has {written}, a startup taint of {source}",
        f"make what removes the startup taint {written} run on the node; Karpenter only waits for "
        f"it: {_PODS}",
        _tolerating({**taint, "operator": "Equal"}),
        rank=Rank.MEND,
        words=f"{{{taint['key']}:",
    )


def _uncordoned(world: World, nodes: Sequence[str]) -> Iterator[Edit]:
    for name in nodes:
        if mapping((world.node(name) or {}).get("spec")).get("unschedulable"):
            yield Edit(f"Node {name}", "spec.unschedulable", True)


def _of_taint(taint: Mapping[str, str], spec: Mapping[str, Any], world: World) -> Constraint:
    written = written_taint(taint)
    known = {field: value for field, value in taint.items() if value}
    change = _tolerating({**known, "operator": "Equal"})
    near = _near(taint, spec)
    of_control_plane = taint["key"] in _CONTROL_PLANE
    of_add_ons = taint["key"] == _ADD_ONS
    whose = " of the control plane" if of_control_plane else ""
    whose = " of nodes that are kept for add-ons of the cluster" if of_add_ons else whose
    belongs = of_control_plane and _demands_control_plane(spec)
    alone = (of_control_plane or of_add_ons) and not belongs and _all_have(taint["key"], world)
    of_fargate = (taint["key"], taint["value"]) == FARGATE
    text = f"the node has the taint {written}{whose}, which the pod does not tolerate{near}"
    return Constraint(
        "taints",
        f"the node is of EKS Fargate, which made it for one pod: taint {written}"
        if of_fargate
        else text,
        _FARGATE_FIX if of_fargate else f"tolerate {written}{_only_if(taint)}",
        change,
        rank=Rank.RULE if near or belongs else Rank.DROP,
        size=_KEPT if (of_control_plane or of_add_ons) and not near and not belongs else 0,
        repairs=partial(_workers, written, change, of_control_plane) if alone else tuple,
        field=_TOLERATIONS,
        named_by=CORDON if tuple(taint.values()) == _CORDONED else "",
        words=f"{{{taint['key']}:",
    )


def _of_condition(key: str, taints: Sequence[Mapping[str, str]], world: World) -> Constraint:
    condition = _condition(key) or _Condition("", "")
    written = " and ".join(sorted({written_taint(taint) for taint in taints}))
    text = f"{condition.meaning}: taint{'s' * (len(taints) > 1)} {written}"
    return Constraint(
        "taints",
        text,
        condition.fix,
        _tolerating({"key": key, "operator": "Exists"}),
        on=partial(_reported, world, text),
        rank=Rank.MEND,
        words=f"{{{key}:",
    )


def _only_if(taint: Mapping[str, str]) -> str:
    """Return what has to hold before a taint is tolerated; empty: nothing that is known."""
    if taint["key"] != _ARCH:
        return ""
    return f", if the images of the pod are built for {foreign(taint['value'], FOREIGN_NAME)}"


def _demands_control_plane(spec: Mapping[str, Any]) -> bool:
    """Whether a pod can run on nodes of the control plane alone, by a label that they have."""
    affinity = mapping(mapping(mapping(spec.get("affinity")).get("nodeAffinity")).get(REQUIRED))
    terms = affinity.get("nodeSelectorTerms") or ()
    demanded = {str(key) for key in mapping(spec.get("nodeSelector"))}
    demanded |= {
        str(rule.get("key"))
        for term in terms
        for rule in term.get("matchExpressions") or ()
        if rule.get("operator") in ("In", "Exists")
    }
    return not demanded.isdisjoint(_CONTROL_PLANE)


def _all_have(key: str, world: World) -> bool:
    """Whether each node has a taint with this key: no node is a worker."""
    return all(
        any(taint.get("key") == key for taint in node["spec"].get("taints") or ())
        for node in world.nodes()
    )


def _near(taint: Mapping[str, str], spec: Mapping[str, Any]) -> str:
    """Return how a toleration of the same key differs from a taint; empty: the pod has none."""
    key = taint["key"]
    for toleration in spec.get("tolerations") or ():
        if toleration.get("key") != key:
            continue
        effect, value = str(toleration.get("effect") or ""), str(toleration.get("value") or "")
        if effect not in ("", taint["effect"]):
            return f"; its toleration of {key} is for the effect {foreign(effect, FOREIGN_NAME)}"
        beyond = _BEYOND.get(str(toleration.get("operator")))
        which = f"values {beyond}" if beyond else "the value"
        return f'; its toleration of {key} is for {which} "{foreign(value, FOREIGN_NAME)}"'
    return ""


def _workers(taint: str, tolerate: Change, of_control_plane: bool) -> Iterator[RuleRepair]:
    """Yield what gives a pod a place beside nodes that are kept for others."""
    yield RuleRepair("add a node without this taint, a worker", tolerate, rank=Rank.NODE)
    if of_control_plane:  # AKS sets the taint of its own pools again
        text = f"let all pods run on the node: kubectl taint node NODE {taint}-"
        yield RuleRepair(text, tolerate, rank=Rank.NODE)


def is_condition(key: str) -> bool:
    """Return whether a taint ends with a condition of its node."""
    return _condition(key) is not None


def _condition(key: str) -> _Condition | None:
    if key in _CONDITIONS or not key.endswith(_AGENT):
        return _CONDITIONS.get(key)
    agent = key.removesuffix(_AGENT)
    return _Condition(
        f"the agent of {agent} is not ready on the node",
        f"make the Pod of {agent} on the node Ready, which removes the taint: {_PODS}",
    )


def _reported(world: World, text: str, name: str) -> str:
    """Add the message of the condition Ready of a node for which it is not true."""
    status = mapping((world.node(name) or {}).get("status"))
    for condition in status.get("conditions") or ():
        message = foreign(str(condition.get("message") or ""), FOREIGN_MESSAGE)
        if condition.get("type") == "Ready" and condition.get("status") != "True" and message:
            # Of a silent kubelet, kube-controller-manager makes it Unknown.
            silent = condition.get("status") == "Unknown"
            who = "its condition Ready is Unknown" if silent else "the kubelet reports"
            return f"{text}; {who}: {message}"
    return text


def _tolerating(toleration: Object) -> Change:
    def change(pod: Object) -> None:
        pod["spec"].setdefault("tolerations", []).append(toleration)

    return change
