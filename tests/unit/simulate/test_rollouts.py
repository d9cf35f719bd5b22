"""Whose old pods keep a new pod away, who removes a gate, and which plugin decides."""

from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.simulate.decisions import PodDecision
from kube_scheduler_operator.simulate.lead import lead_of
from kube_scheduler_operator.simulate.rollouts import rollout_of
from kube_scheduler_operator.simulate.scheduling_gates import removers

from .test_owners import owned, world

Object = dict[str, Any]


def pod(name: str, owner: str, node: str = "") -> Object:
    return owned("Pod", name, owner, spec={"nodeName": node} if node else {})


OLD, NEW = "ReplicaSet/web-1", "ReplicaSet/web-2"
SETS = (
    owned("ReplicaSet", "web-1", "Deployment/web"),
    owned("ReplicaSet", "web-2", "Deployment/web"),
    owned("ReplicaSet", "db-1", "Deployment/db"),
    owned("ReplicaSet", "alone"),
)


def test_the_old_pods_of_a_rollout_are_those_of_other_templates_that_have_a_node() -> None:
    cluster = world(
        *SETS, pod("old", OLD, "a"), pod("waits", OLD), pod("new", NEW, "b"),
        pod("other", "ReplicaSet/db-1", "a"),
    )  # fmt: skip
    found = rollout_of(cluster, pod("waiting", NEW))
    assert found is not None
    assert found.owner == "Deployment shop/web"
    assert [each["metadata"]["name"] for each in found.old] == ["old"]


@pytest.mark.parametrize("owner", ["", "ReplicaSet/gone", "ReplicaSet/alone", "ReplicaSet/db-1",
                                   "StatefulSet/web-2"])  # fmt: skip
def test_other_pods_are_of_no_rollout(owner: str) -> None:
    assert rollout_of(world(*SETS, pod("old", OLD, "a")), pod("waiting", owner)) is None


@pytest.mark.parametrize(("revision", "node", "is_old"), [
    ("1", "a", True), ("1", "b", False), ("2", "a", False),
])  # fmt: skip
def test_the_old_pod_of_a_daemon_set_is_the_one_on_the_same_node(
    revision: str, node: str, is_old: bool
) -> None:
    def of_set(name: str, revision: str, **spec: Any) -> Object:
        labels = {"controller-revision-hash": revision}
        return owned("Pod", name, "DaemonSet/agent", metadata={"labels": labels}, spec=spec)

    field = {"key": "metadata.name", "operator": "In", "values": ["a"]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    cluster = world(of_set("old", revision, nodeName=node))
    found = rollout_of(cluster, of_set("new", "2", affinity=affinity))
    assert (found is not None) is is_old
    if found is not None:
        assert (found.owner, found.field) == (
            "DaemonSet shop/agent",
            "spec.updateStrategy.rollingUpdate",
        )


def test_the_controller_of_a_gate_is_named_where_it_is_known() -> None:
    waiting = pod("p", "")
    assert removers(waiting, ["kueue.x-k8s.io/admission", "a.example/b", "c"]) == [
        "Kueue removes the gate kueue.x-k8s.io/admission: kubectl describe "
        "workloads.kueue.x-k8s.io -n shop",
        "the gate a.example/b is to be removed by a controller of a.example, by its name; see "
        "whether it runs, and its log",
        "the gate c is to be removed by the client that has set it; see whether it runs, and its "
        "log",
    ]
    assert removers(waiting, ["keptn-prechecks-gate"]) == [
        "Keptn removes the gate keptn-prechecks-gate: kubectl describe "
        "keptnworkloadversions.lifecycle.keptn.sh -n shop",
    ]
    assert len(removers(waiting, [f"a.example/{number}" for number in range(1000)])) == 5


def decision(**scores: dict[str, int]) -> PodDecision:
    totals = {node: sum(points.values()) for node, points in scores.items()}
    return PodDecision("shop/p", scores=scores, totals=totals)


def test_the_plugins_that_decide_are_named_with_what_they_score_by() -> None:
    found = decision(a={"Fit": 10, "ImageLocality": 60}, b={"Fit": 30}, c={"Fit": 20})
    assert lead_of(found, "a") == (
        "a has 40 points more than b: ImageLocality gives it 60 more, while Fit gives b 20 more; "
        "ImageLocality scores by the images that nodes report."
    )
    tied = decision(a={"Own": 2}, b={"Own": 2}, c={"Own": 1}, d={})
    assert lead_of(tied, "a") == "a has 1 point more than c: Own gives it 1 more."
    assert lead_of(found, "b") == lead_of(found, "a")
    assert lead_of(decision(a={"Fit": 1}, b={"Fit": 1}), "a") == ""
    assert lead_of(decision(a={"Fit": 1}), "a") == ""
    assert lead_of(decision(a={"Own": 2}, b={"Own": 1}), "gone") == ""
    assert lead_of(decision(a={"Own": 2}, b={"Own": 1}), "a") == (
        "a has 1 point more than b: Own gives it 1 more."
    )
