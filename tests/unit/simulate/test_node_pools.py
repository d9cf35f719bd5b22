"""What NodePools and NodeClaims say: obstacles, limits, templates, and nodes being made."""

from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.simulate.new_nodes import Coming, NodeMaker
from kube_scheduler_operator.simulate.node_pools import node_claims, node_pools
from kube_scheduler_operator.simulate.world import World

from ...new_nodes import (
    DEDICATED,
    POOL,
    READY,
    SINCE,
    STARTING,
    TYPE,
    ZONE,
    Object,
    node,
    node_claim,
    node_pool,
    pod,
    requirement,
)

EBS = "topology.ebs.csi.aws.com/zone"


def world_of(*objects: Object) -> World:
    world = World()
    for obj in objects:
        assert world.add(obj), obj["kind"]
    return world


def source(*objects: Object, waiting: Object | None = None) -> NodeMaker:
    (found,) = node_pools(world_of(*objects), waiting or pod("waiting"))
    return found


def labels_of(found: NodeMaker) -> list[dict[str, str]]:
    return [template.node["metadata"]["labels"] for template in found.templates]


def test_a_world_without_the_kinds_has_none() -> None:
    assert list(node_pools(world_of(node("a")), pod("p"))) == []
    assert list(node_claims(world_of(node("a")))) == []


def test_pools_are_in_karpenters_order() -> None:
    pools = [node_pool("b"), node_pool("a"), node_pool("z", weight=10)]
    found = [one.title for one in node_pools(world_of(*pools), pod("p"))]
    assert found == ["NodePool z", "NodePool a", "NodePool b"]


def test_the_next_command_names_the_pool() -> None:
    assert source(node_pool()).command == "kubectl describe nodepool general"


def _avoids(kind: str, *, weight: int = 1, other: int = 0) -> Object:
    rule = {"matchExpressions": [{"key": "karpenter.sh/nodepool", "operator": "DoesNotExist"}]}
    spot = {"matchExpressions": [{"key": "x", "operator": "Exists"}]}
    if kind == "required":
        terms = {"nodeSelectorTerms": [rule] if not other else [spot, rule]}
        return {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    preferred = [{"weight": weight, "preference": rule}, {"weight": other, "preference": spot}]
    return {"preferredDuringSchedulingIgnoredDuringExecution": preferred}


@pytest.mark.parametrize(
    ("affinity", "verb"),
    [
        (_avoids("preferred"), "prefers"),
        (_avoids("preferred", other=2), ""),  # the greatest weight decides
        (_avoids("required"), "demands"),
        (_avoids("required", other=1), ""),  # the first term decides
        ({}, ""),
    ],
)
def test_a_pod_that_avoids_nodes_of_karpenter_is_ignored_even_if_it_only_prefers_others(
    affinity: Object, verb: str
) -> None:
    waiting = pod("waiting")
    waiting["spec"]["affinity"] = {"nodeAffinity": affinity}
    text = f"Karpenter ignores the Pod, because its node affinity {verb} nodes without the label"
    assert source(node_pool(), waiting=waiting).obstacles == (
        (f"{text} karpenter.sh/nodepool",) if verb else ()
    )


def test_a_pool_that_is_deleted_or_static_or_not_ready_makes_none() -> None:
    not_ready = {
        "type": "Ready", "status": "Unknown", "reason": "NodeClassReady", "message": "x\ny",
    }  # fmt: skip
    pool = node_pool(replicas=2, status={"conditions": [not_ready]})
    pool["metadata"]["deletionTimestamp"] = SINCE
    assert source(pool).obstacles == (
        "it is being deleted",
        "it keeps spec.replicas 2 nodes, and makes none for Pods that wait",
        "it is not Ready (NodeClassReady: x\\ny)",
    )


def test_limits_are_compared_with_what_the_status_counts() -> None:
    status = {"resources": {"cpu": "98500m", "memory": "40Gi"}, "conditions": [READY]}
    pool = node_pool(limits={"cpu": "100", "memory": "100Gi", "nodes": "5"}, status=status)
    texts = [limit.text for limit in source(pool).limits]
    assert texts == [
        "spec.limits.cpu is 100, of which 98.5 is used (status.resources)",
        "spec.limits.memory is 100Gi, of which 40Gi is used (status.resources)",
        "spec.limits.nodes is 5, of which 0 is used (status.resources)",
    ]


def test_without_a_status_the_nodes_of_the_pool_count() -> None:
    pool = node_pool(limits={"cpu": "10", "nodes": "5"})
    nodes = [node(name, cpu="4", **{POOL: "general"}) for name in ("a", "b")]
    cpu, count = source(pool, *nodes, node("other", cpu="4")).limits
    assert (cpu.used, count.used) == (8000, 2)
    assert cpu.text == "spec.limits.cpu is 10, of which 8 is used (its nodes)"


def test_a_template_has_labels_taints_and_size_of_a_node_of_the_pool() -> None:
    pool = node_pool(
        template_labels={"team": "ml"},
        template_taints=[DEDICATED],
        template_startupTaints=[STARTING],
        template_requirements=[requirement(TYPE, "In", "m5.large"), requirement(ZONE, "In", "a")],
    )
    known = node("n1", cpu="1900m", **{POOL: "general", TYPE: "m5.large"})
    known["spec"]["taints"] = [STARTING]
    (template,) = source(pool, known).templates
    labels = template.node["metadata"]["labels"]
    assert labels.items() >= {"team": "ml", ZONE: "a", TYPE: "m5.large", POOL: "general"}.items()
    assert labels["karpenter.k8s.aws/ec2nodeclass"] == "default"
    assert template.node["spec"]["taints"] == [DEDICATED]
    assert template.node["status"]["allocatable"]["cpu"] == "1900m"
    assert (template.like, template.copied) == ("node n1 (m5.large)", "n1")


def test_types_that_no_node_has_leave_the_size_unknown() -> None:
    pool = node_pool(template_requirements=[requirement(TYPE, "In", "m5.large", "m5.xlarge")])
    known = node("n1", **{POOL: "general", TYPE: "m5.large"})
    assert [template.like for template in source(pool, known).templates] == [
        "node n1 (m5.large)",
        "",
    ]


def test_a_listed_type_is_known_from_nodes_of_others() -> None:
    pool = node_pool(template_requirements=[requirement(TYPE, "In", "m5.large")])
    other = node("n1", team="web", **{TYPE: "m5.large"})
    (template,) = source(pool, other).templates
    assert template.like == "node n1 (m5.large)"
    assert "team" not in template.node["metadata"]["labels"]


def test_a_type_that_the_requirements_exclude_gives_no_template() -> None:
    pool = node_pool(template_requirements=[requirement("kubernetes.io/arch", "In", "arm64")])
    (template,) = source(pool, node("n1", **{POOL: "general", TYPE: "m5.large"})).templates
    assert template.like == ""
    assert template.node["metadata"]["labels"]["kubernetes.io/arch"] == "arm64"


def test_requirements_are_resolved_for_the_pod() -> None:
    pool = node_pool(template_requirements=[requirement(ZONE, "In", "a", "b", "c")])
    (labels,) = labels_of(source(pool, waiting=pod("p", nodeSelector={ZONE: "b"})))
    assert labels[ZONE] == "b"


def test_a_conflict_keeps_the_value_of_the_pool() -> None:
    (labels,) = labels_of(source(node_pool(), waiting=pod("p", nodeSelector={ZONE: "c"})))
    assert labels[ZONE] == "a"


def test_spread_tries_each_zone() -> None:
    rule = {"topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "maxSkew": 1}
    waiting = pod("p", topologySpreadConstraints=[rule])
    found = labels_of(source(node_pool(), waiting=waiting))
    assert [labels[ZONE] for labels in found] == ["a", "b"]


def test_the_label_of_a_driver_has_the_zone() -> None:
    known = node("n1", **{EBS: "a", TYPE: "m5.large"})
    (labels,) = labels_of(source(node_pool(), known, waiting=pod("p", nodeSelector={ZONE: "b"})))
    assert (labels[ZONE], labels[EBS]) == ("b", "b")


def test_what_only_the_cloud_can_promise_is_assumed() -> None:
    pool = node_pool(template_requirements=[])
    waiting = pod("p", nodeSelector={ZONE: "c", "team": "ml", "kubernetes.io/os": "linux"})
    (template,) = source(pool, waiting=waiting).templates
    assert template.assumed == (f"{ZONE}=c",)
    assert "team" not in template.node["metadata"]["labels"]
    known = node("n1", "c", **{POOL: "general"})
    assert all(not one.assumed for one in source(pool, known, waiting=waiting).templates)


@pytest.mark.parametrize(
    ("key", "values", "most"),
    [
        ("karpenter.k8s.aws/instance-cpu", ("Lt", "9"), ("cpu", 8000)),
        ("karpenter.k8s.aws/instance-cpu", ("In", "4", "16"), ("cpu", 16000)),
        ("eks.amazonaws.com/instance-memory", ("Lte", "4096"), ("memory", 2**32)),
        ("karpenter.azure.com/sku-cpu", ("Lt", "5"), ("cpu", 4000)),
    ],
)
def test_requirements_bound_the_size(
    key: str, values: tuple[str, ...], most: tuple[str, float]
) -> None:
    (template,) = source(node_pool(template_requirements=[requirement(key, *values)])).templates
    ((resource, (size, _)),) = template.bounds.items()
    assert (resource, size) == most


@pytest.mark.parametrize(
    ("values", "least"),
    [(("Gt", "3"), ("cpu", 4000)), (("In", "4", "16"), ("cpu", 4000)), (("Lt", "9"), None)],
)
def test_requirements_bound_the_smallest_node(
    values: tuple[str, ...], least: tuple[str, float] | None
) -> None:
    key = "karpenter.k8s.aws/instance-cpu"
    (template,) = source(node_pool(template_requirements=[requirement(key, *values)])).templates
    found = [(resource, size) for resource, (size, _) in template.least.items()]
    assert found == ([] if least is None else [least])


def test_hostile_pools_are_bounded() -> None:
    requirements = [requirement(f"k{at}", "In", *map(str, range(100))) for at in range(1000)]
    pools = [node_pool(f"p{at}", template_requirements=requirements) for at in range(60)]
    rules = [{"topologyKey": f"k{at}", "whenUnsatisfiable": "DoNotSchedule"} for at in range(3)]
    found = list(node_pools(world_of(*pools), pod("p", topologySpreadConstraints=rules)))
    assert len(found) == 40
    assert all(len(one.templates) <= 12 and one.partial for one in found)


def test_eks_auto_mode_labels_its_nodes() -> None:
    reference = {"group": "eks.amazonaws.com", "kind": "NodeClass", "name": "default"}
    pool = node_pool(template_nodeClassRef=reference)
    (labels,) = labels_of(source(pool))
    assert labels["eks.amazonaws.com/compute-type"] == "auto"
    assert labels["eks.amazonaws.com/nodeclass"] == "default"


@pytest.mark.parametrize("damaged", [[], "text", {"template": 3}, {"template": {"spec": []}}])
def test_damaged_pools_are_read(damaged: Any) -> None:
    pool = node_pool()
    pool["spec"] = damaged
    assert source(pool).title == "NodePool general"


# --- nodes that are being made --------------------------------------------------------------------


def coming(*objects: Object) -> list[Coming]:
    return list(node_claims(world_of(*objects)))


def conditions(**statuses: str) -> list[Object]:
    return [
        {"type": key, "status": value, "reason": "R", "message": "why", "lastTransitionTime": SINCE}
        for key, value in statuses.items()
    ]


def test_a_claim_names_the_step_that_is_not_done() -> None:
    claim = node_claim("c1", conditions=conditions(Launched="True", Registered="Unknown"))
    (one,) = coming(claim)
    assert one.title == "NodeClaim c1 of NodePool general"
    assert one.command == "kubectl describe nodeclaim c1"
    assert (one.since, one.state) == (SINCE, f"not Registered since {SINCE} (R: why)")


def test_a_claim_without_conditions_is_not_launched() -> None:
    (one,) = coming(node_claim("c1"))
    assert one.state == "not Launched"
    assert one.template is not None
    assert not one.template.like


def test_claims_that_are_ready_or_deleted_are_not_being_made() -> None:
    ready = node_claim("c1", conditions=conditions(Initialized="True"))
    deleted = node_claim("c2")
    deleted["metadata"]["deletionTimestamp"] = SINCE
    assert coming(ready, deleted) == []


def test_the_node_of_a_claim_is_taken_as_it_is_without_startup_taints() -> None:
    claim = node_claim(
        "c1", nodeName="n1", conditions=conditions(Registered="True", Launched="True")
    )
    existing = node("n1", cpu="4", team="ml")
    passing = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    existing["spec"]["taints"] = [STARTING, DEDICATED, passing]
    (one,) = coming(claim, existing)
    assert one.template is not None
    assert one.node == "n1"
    assert one.state == "not Initialized (node n1)"
    assert one.template.node["spec"]["taints"] == [DEDICATED]
    assert one.template.node["metadata"]["labels"]["team"] == "ml"
