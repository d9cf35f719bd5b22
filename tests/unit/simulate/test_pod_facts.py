"""What about a node keeps a pod from it: the sentences, with the figures of a world."""

from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.simulate.affinity_constraints import affinities_without_effect
from kube_scheduler_operator.simulate.constraint import Constraint, Rank
from kube_scheduler_operator.simulate.constraints import constraints_of, number_of_pods, together
from kube_scheduler_operator.simulate.owners import edited_object
from kube_scheduler_operator.simulate.profile_rules import demanded_labels, profile_rules
from kube_scheduler_operator.simulate.spread_constraints import spreads_without_effect
from kube_scheduler_operator.simulate.taint_constraints import FARGATE
from kube_scheduler_operator.simulate.why import _facts
from kube_scheduler_operator.simulate.world import World

from ...new_nodes import node_pool

ZONE = "topology.kubernetes.io/zone"
HASH = "pod-template-hash"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"

Object = dict[str, Any]


def node(name: str, zone: str, *taints: Object, **status: Any) -> Object:
    labels = {ZONE: zone, "disk": "ssd"} if zone else {}
    return {
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels},
        "spec": {"taints": list(taints)}, "status": status,
    }  # fmt: skip


def pod(name: str, on: str = "", namespace: str = "shop", **spec: Any) -> Object:
    labels = {"app": "web", **spec.pop("labels", {})}
    place = {"nodeName": on} if on else {}
    return {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": labels,
                     **spec.pop("metadata", {})},
        "spec": {"containers": [{"name": "c"}], **place, **spec}, "status": {},
    }  # fmt: skip


def world(*objects: Object) -> World:
    made = World()
    for each in objects:
        assert made.add(each)
    made.complete()
    return made


def spread(**fields: Any) -> Object:
    rule = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    chosen = {"labelSelector": {"matchLabels": {"app": "web"}}}
    return {"topologySpreadConstraints": [{**rule, **chosen, **fields}]}


def only(family: str, waiting: Object, *objects: Object, gates: Gates | None = None) -> Constraint:
    every = constraints_of(waiting, world(*objects), gates)
    (found,) = (each for each in every if each.family == family)
    return found


def fact(constraint: Constraint, name: str) -> str:
    assert constraint.on is not None
    return constraint.on(name)


NODES = (node("a", "x"), node("b", "y"), node("c", "z", {"key": "k", "effect": "NoSchedule"}))
RUNNING = (pod("1", "a"), pod("2", "a"), pod("3", "b"), pod("other", "b", "dev"))
BREAKS = f"one more pod in {ZONE} x would break maxSkew 1 (topologySpreadConstraints)"
ANY = f"{BREAKS}; pods with any labels"
BEYOND = f"{BREAKS}; pods with app=web: 2 in x"


@pytest.mark.parametrize(
    ("rule", "labels", "text"),
    [
        ({}, {}, f"{BEYOND}, 0 in z, 1 in y; z counts (nodeTaintsPolicy Ignore) although its nodes "
         "have the taint k:NoSchedule, which the pod does not tolerate"),
        ({"nodeTaintsPolicy": "Honor"}, {}, f"{BEYOND}, 1 in y"),
        ({"nodeTaintsPolicy": "Honor", "minDomains": 3}, {}, f"{BEYOND}, 1 in y; minDomains is 3 "
         "and 2 values count, so the minimum is 0"),
        ({"nodeTaintsPolicy": "Honor", "minDomains": 2}, {"app": "db"}, ""),
        ({"maxSkew": 3}, {}, ""),
        ({"labelSelector": {}}, {}, ""),
        ({"topologyKey": "rack"}, {}, "the node has no label rack, the topologyKey of a "
         "topologySpreadConstraint of the pod"),
    ],
)  # fmt: skip
def test_a_spread_has_the_counts_that_decide(rule: Object, labels: Object, text: str) -> None:
    waiting = pod("new", labels=labels, **spread(**rule))
    assert fact(only("spread", waiting, *NODES, *RUNNING), "a") == text


def test_a_domain_that_the_pod_excludes_and_that_counts_is_named() -> None:
    rule = spread(nodeAffinityPolicy="Ignore")
    waiting = pod("new", nodeSelector={ZONE: "x"}, **rule)
    assert fact(only("spread", waiting, *NODES[:2], *RUNNING[:2]), "a") == (
        f"{BEYOND}, 0 in y; y counts (nodeAffinityPolicy Ignore) although the pod's nodeSelector "
        "or node affinity excludes its nodes"
    )


@pytest.mark.parametrize(
    ("version", "text"), [(Version(1, 37), ""), (Version(1, 38), f"{ANY}: 3 in x, 0 in z, 1 in y")]
)
def test_an_empty_selector_of_a_spread_counts_all_pods_since_1_38(
    version: Version, text: str
) -> None:
    waiting = pod("new", **spread(labelSelector={}))
    found = only("spread", waiting, *NODES, *RUNNING, pod("4", "a"), gates=Gates(version))
    assert fact(found, "a").startswith(text)
    assert bool(fact(found, "a")) == bool(text)


@pytest.mark.parametrize(
    ("rule", "spec", "text"),
    [
        ({}, {}, ""),
        ({"labelSelector": None}, {}, "has no labelSelector: it counts no pods"),
        ({"labelSelector": {}}, {}, "has no labelSelector: it counts no pods"),
        ({"labelSelector": {"matchLabels": {"app": "db"}}}, {},
         "counts pods with app=db, and this pod has other labels"),
        ({}, {"nodeSelector": {ZONE: "x"}}, "has one domain, x: the pod's nodeSelector and"),
        ({"minDomains": 2}, {"nodeSelector": {ZONE: "x"}}, ""),
        ({"topologyKey": "disk"}, {}, "has one domain, ssd: no node has another value of this "
         "label, and so it does not spread any pods; with minDomains 2, more than 1 would wait"),
        ({"topologyKey": "disk", "whenUnsatisfiable": "ScheduleAnyway"}, {}, ""),
        ({"nodeAffinityPolicy": "Ignore"}, {"nodeSelector": {ZONE: "x"}}, ""),
        ({"whenUnsatisfiable": "ScheduleAnyway", "labelSelector": None}, {},
         "has no labelSelector"),
    ],
)  # fmt: skip
def test_a_spread_that_does_not_spread_is_named(rule: Object, spec: Object, text: str) -> None:
    every = list(spreads_without_effect(pod("new", **spread(**rule), **spec), world(*NODES)))
    assert len(every) == bool(text)
    assert text in "".join(every)


def test_what_keeps_a_spread_is_tried_before_it_is_dropped() -> None:
    old = [pod(str(at), "a", labels={HASH: "old"}) for at in range(2)]
    rule = spread(minDomains=5, nodeAffinityPolicy="Ignore")
    waiting = pod("new", labels={HASH: "new"}, **rule)
    found = only("spread", waiting, *NODES, *old)
    fields = [repair.field.rpartition(".")[2] for repair in found.repairs()]
    assert fields == [
        "minDomains", "nodeTaintsPolicy", "nodeAffinityPolicy", "matchLabelKeys", "maxSkew",
    ]  # fmt: skip
    assert found.rank > max(repair.rank for repair in found.repairs())
    for repair in found.repairs():
        changed = pod("new", **spread(minDomains=5, nodeAffinityPolicy="Ignore"))
        repair.change(changed)
        assert changed["spec"] != waiting["spec"], repair.text


def _demands(*expressions: Object, field: str = "matchExpressions") -> Object:
    terms = [{field: [each]} for each in expressions]
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}}


_SSD = {"key": "disk", "operator": "NotIn", "values": ["ssd"]}
_GONE = {"key": "metadata.name", "operator": "In", "values": ["gone"]}


@pytest.mark.parametrize(
    ("affinity", "text"),
    [
        (_demands(_SSD), "demands disk not in ssd, and the node has disk=ssd"),
        (_demands({"key": "disk", "operator": "DoesNotExist"}),
         "demands no label disk, and the node has disk=ssd"),
        (_demands({"key": "gpu", "operator": "Exists"}),
         "demands the label gpu, and no node has the label gpu"),
        (_demands({"key": "rack", "operator": "Gt", "values": ["5"]}),
         "demands rack greater than 5, and the node has no label rack"),
        (_demands(_GONE, field="matchFields"),
         "demands metadata.name in gone, and no node has this name"),
        (_demands(_SSD, _SSD),
         "demands disk not in ssd or disk not in ssd, and the node meets none of these terms"),
    ],
)  # fmt: skip
def test_a_node_affinity_has_what_the_node_has_instead(affinity: Object, text: str) -> None:
    racked = node("d", "x")
    racked["metadata"]["labels"]["rack"] = "3"
    found = only("node affinity", pod("new", **affinity), *NODES, racked)
    assert (fact(found, "a") if found.on else found.text) == f"the pod's node affinity {text}"


def test_a_pod_whose_anti_affinity_keeps_the_pod_away_is_named_for_each_domain() -> None:
    lonely = [pod(str(at), on, **anti()) for at, on in enumerate("aab")]
    found = only("pod affinity", pod("new"), *NODES, *lonely)
    hates = "has anti-affinity to pods with app=web"
    assert found.text == f"a pod in the node's {ZONE} {hates}, such as pod shop/0"
    facts = [fact(found, name) for name in "abc"]
    assert facts == [
        f"pod shop/0 runs in {ZONE} x and {hates}", f"pod shop/2 runs in {ZONE} y and {hates}", "",
    ]  # fmt: skip


def anti(kind: str = "podAntiAffinity", **fields: Any) -> Object:
    term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "web"}}, **fields}
    return {"affinity": {kind: {REQUIRED: [term]}}}


@pytest.mark.parametrize(
    ("affinity", "on", "text"),
    [
        (anti(), "a", f"pod shop/1 and 1 more with app=web run in {ZONE} x, which the pod's "
         "anti-affinity forbids"),
        (anti(), "b", f"pod shop/3 with app=web runs in {ZONE} y, which the pod's anti-affinity "
         "forbids"),
        (anti(), "c", ""),
        (anti("podAffinity"), "c", f"no pod with app=web in namespace shop runs in {ZONE} z, "
         "which the pod's affinity demands; some run in x, y"),
        (anti("podAffinity"), "a", ""),
        (anti("podAffinity", namespaces=["ops"]), "a", "no pod with app=web in namespace ops runs "
         f"in {ZONE} x, which the pod's affinity demands; pods with these labels run in "
         "namespace dev, shop"),
        (anti("podAffinity", namespaceSelector={}), "c", "no pod with app=web in any namespace "
         f"runs in {ZONE} z, which the pod's affinity demands; some run in x, y"),
        (anti("podAffinity", topologyKey="rack"), "a", "the node has no label rack, the "
         "topologyKey of the pod affinity to pods with app=web"),
    ],
)  # fmt: skip
def test_an_affinity_names_pods_domains_and_namespaces(
    affinity: Object, on: str, text: str
) -> None:
    assert fact(only("pod affinity", pod("new", **affinity), *NODES, *RUNNING), on) == text


def test_the_anti_affinity_of_others_names_the_pod_of_each_domain() -> None:
    away: Object = {"affinity": {"podAntiAffinity": {REQUIRED: [
        {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": ZONE}]}}}  # fmt: skip
    holders = [pod("first", "a", **away), pod("second", "b", **away)]
    found = only("pod affinity", pod("new"), *NODES, *holders)
    ends = "and has anti-affinity to pods with app=web"
    assert fact(found, "a") == f"pod shop/first runs in {ZONE} x {ends}"
    assert fact(found, "b") == f"pod shop/second runs in {ZONE} y {ends}"
    assert fact(found, "c") == ""


def test_new_pods_of_a_rollout_may_run_beside_old_ones() -> None:
    old = pod("old", "a", labels={HASH: "old"})
    found = only("pod affinity", pod("new", labels={HASH: "new"}, **anti()), *NODES, old)
    repair, other = found.repairs()
    assert other.text == f"add a node with another value of {ZONE}"
    assert repair.field.endswith("[0].matchLabelKeys")
    changed = pod("new", labels={HASH: "new"}, **anti())
    repair.change(changed)
    (term,) = changed["spec"]["affinity"]["podAntiAffinity"][REQUIRED]
    assert term["labelSelector"]["matchExpressions"] == [
        {"key": HASH, "operator": "In", "values": ["new"]}
    ]
    same = pod("same", "a", labels={HASH: "new"})
    assert (
        list(only("pod affinity", pod("new", labels={HASH: "new"}, **anti()), same).repairs()) == []
    )


@pytest.mark.parametrize(
    ("key", "text", "fix"),
    [
        ("node.kubernetes.io/disk-pressure", "the node has too little free disk space",
         "free disk space on the node"),
        ("node.cloudprovider.kubernetes.io/uninitialized", "the cloud controller manager has not",
         "make the cloud-controller-manager run"),
        ("efs.csi.aws.com/agent-not-ready", "the agent of efs.csi.aws.com is not ready",
         "make the Pod of efs.csi.aws.com on the node Ready"),
        ("ToBeDeletedByClusterAutoscaler", "cluster-autoscaler is about to remove", "add a node"),
    ],
)  # fmt: skip
def test_the_taint_of_a_condition_is_ended_not_tolerated(key: str, text: str, fix: str) -> None:
    taint = {"key": key, "effect": "NoSchedule"}
    found = only("taints", pod("new"), node("a", "x", taint))
    assert (found.text.startswith(text), found.fix.startswith(fix)) == (True, True)
    assert f"taint {key}:NoSchedule" in found.text
    assert (found.rank, found.field) == (Rank.MEND, "")


def test_why_a_kubelet_is_not_ready_is_what_it_reports() -> None:
    taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    message = "container runtime network not ready:\ncni plugin not initialized"
    ready = {"type": "Ready", "status": "False", "message": message}
    found = only("taints", pod("new"), node("a", "x", taint, conditions=[ready]))
    assert fact(found, "a").endswith(
        "; the kubelet reports: container runtime network not ready:\\ncni plugin not initialized"
    )
    assert found.fix.startswith("make the kubelet Ready")


def test_both_taints_of_a_silent_kubelet_are_one_condition() -> None:
    key = "node.kubernetes.io/unreachable"
    taints = ({"key": key, "effect": effect} for effect in ("NoSchedule", "NoExecute"))
    ready = {"type": "Ready", "status": "Unknown", "message": "Kubelet stopped posting status."}
    found = only("taints", pod("new"), node("a", "x", *taints, conditions=[ready]))
    assert fact(found, "a") == (
        f"the kubelet of the node does not report: taints {key}:NoExecute and {key}:NoSchedule; "
        "its condition Ready is Unknown: Kubelet stopped posting status."
    )
    changed: Object = {"spec": {}}
    found.remove(changed)
    assert changed["spec"]["tolerations"] == [{"key": key, "operator": "Exists"}]


@pytest.mark.parametrize(
    ("selector", "text", "on_a", "repairs"),
    [
        ({"disk": "tape"}, "disk=tape, which no node has; nodes have ssd", "",
         ["label a node: kubectl label node NODE disk=tape --overwrite"]),
        ({"disks": "ssd"}, "disks=ssd, and no node has the label disks; nodes have the label disk",
         "", ["label a node: kubectl label node NODE disks=ssd"]),
        ({ZONE: "y"}, f"{ZONE}=y", f"the pod's nodeSelector demands {ZONE}=y, and the node has "
         f"{ZONE}=x", []),
        ({ZONE: "q"}, f"{ZONE}=q, which no node has; nodes have x, y, z", "",
         [f"demand {ZONE}={zone} instead of q" for zone in "xyz"]
         + [f"add a node with the label {ZONE}=q"]),
    ],
)  # fmt: skip
def test_a_selector_names_what_nodes_have_instead(
    selector: Object, text: str, on_a: str, repairs: list[str]
) -> None:
    found = only("node affinity", pod("new", nodeSelector=selector), *NODES)
    assert found.text == f"the pod's nodeSelector demands the label {text}"
    assert fact(found, "a") == on_a
    assert [repair.text for repair in found.repairs()] == repairs


@pytest.mark.parametrize(
    ("wanted", "similar"),
    [("rfds-no", ""), ("stip", "; nodes have the label cpu.example/stibp")],
)
def test_the_many_labels_of_one_prefix_are_similar_by_nature(wanted: str, similar: str) -> None:
    machine = node("m", "x")
    for feature in ("mds-no", "gds-no", "stibp", "ssbd", "ibpb"):
        machine["metadata"]["labels"][f"cpu.example/{feature}"] = "true"
    found = only("node affinity", pod("new", nodeSelector={f"cpu.example/{wanted}": "1"}), machine)
    label = f"cpu.example/{wanted}"
    expected = f"demands the label {label}=1, and no node has the label {label}{similar}"
    assert found.text.endswith(expected)


@pytest.mark.parametrize(
    ("wanted", "has", "similar"),
    [
        ("topology.kubernetes.io/zone", "beta.kubernetes.io/os", False),
        ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone", True),
        ("node-type", "nodetype", True),
        ("example.com/gpu", "example.com/gpus", True),
    ],
)
def test_labels_with_other_names_are_not_similar(wanted: str, has: str, similar: bool) -> None:
    machine = node("m", "x")
    machine["metadata"]["labels"] = {has: "a"}
    found = only("node affinity", pod("new", nodeSelector={wanted: "1"}), machine)
    assert found.text.endswith(f"; nodes have the label {has}") is similar


def test_the_node_of_a_daemon_is_not_to_be_dropped() -> None:
    field = {"key": "metadata.name", "operator": "In", "values": ["a"]}
    affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchFields": [field]}]}}}
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "controller": True}
    made = pod("agent-1", affinity=affinity, metadata={"ownerReferences": [owner]})
    found = only("node affinity", made, *NODES)
    assert found.text == "the pod is for node a alone: DaemonSet agent has one for each node"
    assert found.fix == ""
    alone = only("node affinity", pod("own", affinity=affinity), *NODES)
    assert alone.fix == "remove metadata.name in a from the node affinity"


def test_the_number_of_pods_of_a_full_node_is_named() -> None:
    full = node("a", "x", allocatable={"pods": "2"})
    text = number_of_pods(world(full, node("b", "y", allocatable={"pods": "2"}), *RUNNING[:3]))
    assert text("a") == "2 of 2 pods run on the node (allocatable pods)"
    assert text("b") == ""


def test_rules_of_a_profile_have_its_name() -> None:
    term = {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["batch"]}]}
    added = {"addedAffinity": {REQUIRED: {"nodeSelectorTerms": [term]}}}
    strict = {"maxSkew": 2, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    default = {"defaultingType": "List", "defaultConstraints": [strict]}
    profile = {
        "schedulerName": "batch",
        "pluginConfig": [
            {"name": "NodeAffinity", "args": added},
            {"name": "PodTopologySpread", "args": default},
        ],
    }
    assert demanded_labels(profile) == {"pool": "batch"}
    assert profile_rules(profile) == {
        "node affinity": "the profile batch demands pool in batch of each pod (addedAffinity of "
        "NodeAffinity)",
        "spread": f"the profile batch spreads the pods of a workload: maxSkew 2 over {ZONE} "
        "(defaultConstraints of PodTopologySpread)",
    }
    assert profile_rules({"schedulerName": "plain"}) == {}
    assert demanded_labels({"schedulerName": "plain"}) == {}
    term["matchExpressions"][0]["operator"] = "Exists"
    assert demanded_labels(profile) == {}, "any value would do"


@pytest.mark.parametrize(
    ("owners", "title", "prefix"),
    [
        ([("ReplicaSet", "web-1")], "Deployment shop/web", "spec.template."),
        ([("ReplicaSet", "lost")], "ReplicaSet shop/lost", "spec.template."),
        ([("StatefulSet", "db")], "StatefulSet shop/db", "spec.template."),
        ([("Workflow", "w")], "Pod shop/new", ""),
        ([], "Pod shop/new", ""),
    ],
)
def test_the_object_that_a_user_edits(
    owners: list[tuple[str, str]], title: str, prefix: str
) -> None:
    references = [
        {"apiVersion": "apps/v1", "kind": kind, "name": name, "controller": True}
        for kind, name in owners
    ]
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "controller": True}
    replica_set = {
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {"name": "web-1", "namespace": "shop", "ownerReferences": [deployment]},
    }  # fmt: skip
    made = pod("new", metadata={"ownerReferences": references})
    assert edited_object(world(replica_set, made), made) == (title, prefix)


def test_many_facts_are_one_cause_with_an_example() -> None:
    names = [f"n{at}" for at in range(50)]
    assert set(_facts("full", lambda name: f"{name} is full", names[:3]).values()) == {
        "n0 is full", "n1 is full", "n2 is full",
    }  # fmt: skip
    assert set(_facts("full", lambda name: f"{name} is full", names).values()) == {
        "full; for example, n0 is full (n0)"
    }
    assert set(_facts("full", None, names).values()) == {"full"}


# --- tolerations ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("toleration", "near"),
    [
        ({"key": "k", "operator": "Exists", "effect": "NoExecute"},
         "; its toleration of k is for the effect NoExecute"),
        ({"key": "k", "value": "other"}, '; its toleration of k is for the value "other"'),
        ({"key": "k", "operator": "Gt", "value": "9"},
         '; its toleration of k is for values greater than "9"'),
        ({"key": "l", "operator": "Exists"}, ""),
    ],
)  # fmt: skip
def test_a_toleration_that_nearly_matches_is_named_and_is_a_rule_to_repair(
    toleration: Object, near: str
) -> None:
    found = only("taints", pod("new", tolerations=[toleration]), NODES[2])
    text = "the node has the taint k:NoSchedule, which the pod does not tolerate"
    assert found.text == f"{text}{near}"
    assert found.rank == (Rank.RULE if near else Rank.DROP)


CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
RESERVED = node("m", "x", {"key": CONTROL_PLANE, "effect": "NoSchedule"})


def test_nodes_of_the_control_plane_are_not_to_be_tolerated_first() -> None:
    found = only("taints", pod("new"), RESERVED)
    assert f"the taint {CONTROL_PLANE}:NoSchedule of the control plane" in found.text
    first, second = found.repairs()
    assert first.text == "add a node without this taint, a worker"
    assert second.text.endswith(f"kubectl taint node NODE {CONTROL_PLANE}:NoSchedule-")
    assert first.rank < found.rank


@pytest.mark.parametrize(
    ("spec", "others", "rank"),
    [
        ({}, (node("worker", "x"),), Rank.DROP),  # a node like it is tried
        ({"nodeSelector": {CONTROL_PLANE: ""}}, (), Rank.RULE),
        ({"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": CONTROL_PLANE, "operator": "Exists"}]}]}}}},
         (node("worker", "x"),), Rank.RULE),
    ],
)  # fmt: skip
def test_a_worker_does_not_help_beside_workers_or_for_a_pod_of_the_control_plane(
    spec: Object, others: tuple[Object, ...], rank: Rank
) -> None:
    found = only("taints", pod("new", **spec), RESERVED, *others)
    assert (list(found.repairs()), found.rank) == ([], rank)


def test_nodes_that_are_kept_for_add_ons_are_tolerated_last() -> None:
    kept = node("m", "x", {"key": "CriticalAddonsOnly", "value": "true", "effect": "NoSchedule"})
    spot = node("s", "x", {"key": "spot", "effect": "NoSchedule"})
    found = [
        each for each in constraints_of(pod("new"), world(kept, spot)) if each.family == "taints"
    ]
    sizes = {each.fix: each.size for each in found}
    assert sizes["tolerate CriticalAddonsOnly=true:NoSchedule"] > sizes["tolerate spot:NoSchedule"]
    assert "of nodes that are kept for add-ons of the cluster" in found[0].text
    alone = only("taints", pod("new"), kept)
    assert [each.text for each in alone.repairs()] == ["add a node without this taint, a worker"]


@pytest.mark.parametrize("lasts", [False, True])
def test_a_startup_taint_is_ended_by_what_removes_it(lasts: bool) -> None:
    taint = {"key": "app", "value": "kong", "effect": "NoSchedule"}
    template = {"startupTaints": [taint]} | ({"taints": [taint]} if lasts else {})
    pool = node_pool("pool", **{f"template_{key}": value for key, value in template.items()})
    found = only("taints", pod("new"), node("a", "x", taint), pool)
    if lasts:
        assert found.fix == "tolerate app=kong:NoSchedule"
        return
    assert found.text == (
        "the node has not finished starting: it still has app=kong:NoSchedule, a startup taint of "
        "NodePool pool"
    )
    assert found.fix.startswith("make what removes the startup taint app=kong:NoSchedule run on")
    assert found.rank == Rank.MEND


@pytest.mark.parametrize(("of_host", "text"), [
    (True, "use other ports than 80/TCP and 443/TCP, or no hostNetwork"),
    (False, "remove the hostPorts 80/TCP and 443/TCP"),
])  # fmt: skip
def test_several_ports_end_together(of_host: bool, text: str) -> None:
    ports = {"name": "c", "ports": [{"hostPort": 80}, {"hostPort": 443}]}
    waiting = pod("new", containers=[ports], hostNetwork=of_host)
    found = [one for one in constraints_of(waiting, world(*NODES)) if one.family == "ports"]
    assert together(found, [one.fix for one in found]) == [text]
    assert together(found[:1], [found[0].fix]) == [found[0].fix]


def test_an_architecture_is_tolerated_only_if_images_have_it() -> None:
    taint = {"key": "kubernetes.io/arch", "value": "arm64", "effect": "NoSchedule"}
    found = only("taints", pod("new"), node("a", "x", taint))
    assert found.fix == (
        "tolerate kubernetes.io/arch=arm64:NoSchedule, if the images of the pod are built for arm64"
    )


def test_a_node_of_fargate_is_for_one_pod() -> None:
    taint = {"key": FARGATE[0], "value": FARGATE[1], "effect": "NoSchedule"}
    found = only("taints", pod("new"), node("a", "x", taint))
    assert found.text.startswith("the node is of EKS Fargate, which made it for one pod: taint")
    assert found.fix.startswith("create the pod again where a Fargate profile selects")


def test_the_daemon_set_of_a_pod_with_the_host_port_is_named() -> None:
    port = {"name": "c", "ports": [{"hostPort": 80}]}
    owner = {"kind": "DaemonSet", "name": "lb", "controller": True}
    holder = pod("lb-1", "a", containers=[port], metadata={"ownerReferences": [owner]})
    found = only("ports", pod("new", containers=[port]), node("a", "x"), holder)
    assert fact(found, "a") == (
        "pod shop/lb-1 of DaemonSet lb uses the host port 80/TCP of the node"
    )


def test_rules_about_other_pods_over_a_label_of_no_node_have_no_effect() -> None:
    key = "topology.kubernetes.io/hostname"
    term = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": key}
    good = {**term, "topologyKey": ZONE}
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    affinity = {
        "podAntiAffinity": {REQUIRED: [term, good]},
        "podAffinity": {REQUIRED: [term], preferred: [{"weight": 1, "podAffinityTerm": term}]},
    }
    end = f"per {key} has no effect: no node has the label {key}"
    waiting = pod("new", affinity=affinity)
    assert list(affinities_without_effect(waiting, world(*NODES))) == [
        f"the pod's required pod anti-affinity {end}",
        f"the pod's preferred pod affinity {end}",
    ]
    assert list(affinities_without_effect(waiting, world(pod("no-nodes")))) == []


# --- neighbours -----------------------------------------------------------------------------------


def neighbours(*objects: Object, **fields: Any) -> list[tuple[str, Rank]]:
    waiting = pod("new", **anti("podAffinity", **fields))
    found = only("pod affinity", waiting, *NODES, *objects)
    return [(repair.text, repair.rank) for repair in found.repairs()]


def test_what_gives_a_pod_its_neighbours_depends_on_where_they_are() -> None:
    assert neighbours(pod("there", "a")) == []
    assert neighbours(pod("waits")) == [
        ("give pod shop/waits a node first: kubectl scheduler why shop/waits", Rank.MEND)
    ]
    assert neighbours() == [("run a pod with app=web in namespace shop", Rank.MEND)]
    assert neighbours(pod("there", "a", "dev")) == [
        ("add dev to the namespaces of the pod affinity", Rank.RULE)
    ]
    assert neighbours(topologyKey="rack") == [
        ("label the nodes: kubectl label node NODE rack=VALUE", Rank.RULE)
    ]


def test_a_namespace_is_added_to_those_that_an_affinity_has() -> None:
    for fields, names in (
        ({}, ["shop", "dev"]),
        ({"namespaces": ["ops"]}, ["ops", "dev"]),
        ({"namespaceSelector": {"matchLabels": {"team": "a"}}}, ["dev"]),
    ):
        waiting = pod("new", **anti("podAffinity", **fields))
        found = only("pod affinity", waiting, *NODES, pod("there", "a", "dev"))
        next(iter(found.repairs())).change(waiting)
        (term,) = waiting["spec"]["affinity"]["podAffinity"][REQUIRED]
        assert term["namespaces"] == names


def test_another_value_is_demanded_of_labels_of_places_alone() -> None:
    selector = {ZONE: "q"}
    waiting = pod("new", nodeSelector=selector)
    next(iter(only("node affinity", waiting, *NODES).repairs())).change(waiting)
    assert waiting["spec"]["nodeSelector"] == {ZONE: "x"}
    expression = {"key": ZONE, "operator": "In", "values": ["q"]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    waiting = pod("new", affinity={"nodeAffinity": {REQUIRED: terms}})
    next(iter(only("node affinity", waiting, *NODES).repairs())).change(waiting)
    assert waiting["spec"]["affinity"]["nodeAffinity"][REQUIRED] == {
        "nodeSelectorTerms": [{"matchExpressions": [{**expression, "values": ["x"]}]}]
    }
    arch = {"kubernetes.io/arch": "arm64"}
    (repair,) = only("node affinity", pod("new", nodeSelector=arch), *NODES).repairs()
    assert (repair.text, repair.rank) == (
        "add a node with the label kubernetes.io/arch=arm64", Rank.NODE
    )  # fmt: skip
