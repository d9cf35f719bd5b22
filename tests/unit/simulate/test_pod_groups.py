"""Groups of pods: which ones a kube-scheduler reads, their members, and those of workloads."""

from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.simulate.admission import admit_group
from kube_scheduler_operator.simulate.kinds import POD_GROUPS, PODS, WORKLOADS
from kube_scheduler_operator.simulate.pod_groups import (
    GroupName,
    changed_group,
    find_group,
    forbid_preemption,
    gates_hold_groups,
    group_name,
    groups_named,
    unenforced,
    unread,
)
from kube_scheduler_operator.simulate.probes import probe
from kube_scheduler_operator.simulate.workloads import read_workloads
from kube_scheduler_operator.simulate.world import World

Object = dict[str, Any]
GROUP = GroupName("default", "g")
IN_WORKLOAD = GroupName("default", "w", "g")
ON = {"GenericWorkload": True}


def gates(minor: int, **explicit: bool) -> Gates:
    return Gates(Version(1, minor), explicit)


def obj(kind: str, name: str, spec: Object, version: str = "v1beta1") -> Object:
    api_version = "v1" if kind == "Pod" else f"scheduling.k8s.io/{version}"
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


def pod(name: str, node: str = "", group: str = "g", **spec: Any) -> Object:
    own = {"schedulingGroup": {"podGroupName": group}, **({"nodeName": node} if node else {})}
    return obj("Pod", name, {"containers": [], **own, **spec})


def gang(count: int, name: str = "g", **spec: Any) -> Object:
    policy = {"gang": {"minCount": count}}
    return obj("PodGroup", name, {"schedulingPolicy": policy, **spec})


def world(*objects: Object) -> World:
    made = World()
    for each in objects:
        assert made.add(each)
    return made


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ({}, None),
        ({"schedulingGroup": {"podGroupName": "g"}}, GROUP),
        ({"schedulingGroup": "x"}, None),
        ({"workloadRef": {"name": "w", "podGroup": "g"}}, IN_WORKLOAD),
        (
            {"workloadRef": {"name": "w", "podGroup": "g", "podGroupReplicaKey": "1"}},
            GroupName("default", "w", "g", "1"),
        ),
        ({"workloadRef": {"name": "w"}}, None),
    ],
)
def test_a_pod_names_its_group(spec: Object, name: GroupName | None) -> None:
    assert group_name(obj("Pod", "p", spec)) == name


@pytest.mark.parametrize(
    ("known", "name", "why"),
    [
        (gates(37), GROUP, "its feature gate GenericWorkload is off by default"),
        (gates(37, GenericWorkload=False), GROUP, "its feature gate GenericWorkload is off"),
        (gates(37, **ON), GROUP, ""),
        (gates(36, **ON), GROUP, ""),
        (gates(36, **ON), IN_WORKLOAD, "spec.workloadRef is read by 1.35 alone"),
        (gates(35, **ON), GROUP, "spec.schedulingGroup is read from 1.36 on"),
        (gates(35, **ON), IN_WORKLOAD, ""),
        (gates(34), GROUP, "groups of Pods begin with 1.35"),
    ],
)
def test_whether_a_version_reads_a_group(known: Gates, name: GroupName, why: str) -> None:
    assert unread(known, name).endswith(why)
    assert bool(unread(known, name)) == bool(why)


@pytest.mark.parametrize(
    ("known", "plugins", "why"),
    [
        (gates(37, **ON), {}, ""),
        (gates(36, **ON, GangScheduling=True), {}, ""),
        (gates(36, **ON), {}, "the feature gate GangScheduling is off"),
        (
            gates(37, **ON),
            {"multiPoint": {"disabled": [{"name": "GangScheduling"}]}},
            "the plugin GangScheduling is not enabled in the profile",
        ),
    ],
)
def test_whether_min_count_counts(known: Gates, plugins: Object, why: str) -> None:
    assert unenforced(known, {"plugins": plugins}).endswith(why)
    assert bool(unenforced(known, {"plugins": plugins})) == bool(why)


def test_the_members_of_a_group() -> None:
    ending = pod("ending")
    ending["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    gated = pod("gated", schedulingGates=[{"name": "x/y"}])
    others = [pod("other", group="h"), obj("Pod", "alone", {"containers": []})]
    made = world(gang(5), pod("a", "n"), pod("b"), gated, ending, *others)
    group = find_group(made, GROUP, gates(37, **ON))
    assert [one["metadata"]["name"] for one in group.running] == ["a"]
    assert [one["metadata"]["name"] for one in group.waiting] == ["b", "gated"]
    assert [one["metadata"]["name"] for one in group.gated] == ["gated"]
    assert (group.exists, group.min_count, group.count, group.lacks) == (True, 5, 3, 2)
    assert not find_group(made, GroupName("default", "h"), gates(37, **ON)).exists
    assert [gates_hold_groups(gates(minor)) for minor in (36, 37)] == [False, True]


def test_the_groups_below_a_composite_group_are_placed_together() -> None:
    above = [
        obj("CompositePodGroup", "root", {}, "v1alpha3"),
        obj("CompositePodGroup", "middle", {"parentCompositePodGroupName": "root"}, "v1alpha3"),
    ]
    made = world(
        *above,
        gang(1, parentCompositePodGroupName="middle"),
        gang(1, "h", parentCompositePodGroupName="root"),
        gang(1, "apart"),
        pod("p"),
        pod("q", group="h"),
        pod("r", group="apart"),
    )
    on = gates(37, **ON, TopologyAwareWorkloadScheduling=True, CompositePodGroup=True)
    group = find_group(made, GROUP, on)
    assert group.root == "root"
    assert [one["metadata"]["name"] for one in group.others] == ["q"]
    assert not find_group(made, GROUP, gates(37, **ON)).root


def test_a_group_in_a_workload() -> None:
    parts = [{"name": name, "policy": {"gang": {"minCount": 3}}} for name in ("g", "h")]
    member = obj("Pod", "p", {"containers": [], "workloadRef": {"name": "w", "podGroup": "g"}})
    made = world(obj("Workload", "w", {"podGroups": parts}, "v1alpha1"), member)
    assert find_group(made, IN_WORKLOAD, gates(35, **ON)).lacks == 2
    assert groups_named(made, "default", "w") == [IN_WORKLOAD]
    assert groups_named(made, "default", "g") == [IN_WORKLOAD]
    changed = changed_group(made, IN_WORKLOAD, min_count=1).get(WORKLOADS, "w", "default")
    assert changed is not None
    counts = [part["policy"]["gang"]["minCount"] for part in changed["spec"]["podGroups"]]
    assert counts == [1, 3]
    assert find_group(made, IN_WORKLOAD, gates(35, **ON)).min_count == 3


def test_a_changed_group_is_that_of_a_copy() -> None:
    made = world(gang(3, schedulingConstraints={"topology": [{"key": "zone"}]}), pod("p", "n"))
    on = gates(37, **ON, TopologyAwareWorkloadScheduling=True)
    assert find_group(made, GROUP, on).topology == ["zone"]
    changed = changed_group(made, GROUP, min_count=2, topology=False)
    forbid_preemption(changed, find_group(changed, GROUP, on))
    group = changed.get(POD_GROUPS, "g", "default")
    member = changed.get(PODS, "p", "default")
    assert group is not None
    assert member is not None
    assert group["spec"] == {
        "schedulingPolicy": {"gang": {"minCount": 2}},
        "preemptionPolicy": "Never",
    }
    assert member["spec"]["preemptionPolicy"] == "Never"
    assert find_group(made, GROUP, on).min_count == 3


@pytest.mark.parametrize("policy", [None, [], "x", {"gang": "x"}, {"gang": {"minCount": "x"}}])
def test_a_policy_of_another_type_is_none(policy: Any) -> None:
    made = world(obj("PodGroup", "g", {"schedulingPolicy": policy}), pod("p"))
    assert find_group(made, GROUP, gates(37, **ON)).min_count == 0
    changed_group(made, GROUP, min_count=1)


def test_titles_are_bounded_and_escaped() -> None:
    title = GroupName("default", "\x1b[31m" + "x" * 1000, "\n").title
    assert "\x1b" not in title
    assert "\n" not in title
    assert len(title) < 600


def test_a_probe_is_of_no_group() -> None:
    """kube-scheduler refuses a group whose pods have several spec.schedulerName."""
    spec = probe({**pod("p"), "status": {}}, 1, "simulation-all")["spec"]
    assert "schedulingGroup" not in spec


def test_a_new_group_has_the_priority_of_its_class() -> None:
    made = World()
    assert made.add({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"},
        "value": 7,
    })  # fmt: skip
    group = gang(1, priorityClassName="high")
    assert admit_group(group, made).refused == []
    assert group["spec"]["priority"] == 7


# --- of workloads ---------------------------------------------------------------------------------

CONTAINERS: Object = {"containers": [{"name": "c", "image": "i"}]}


def job(scheduling: Any = None, **fields: Any) -> Object:
    spec = {"parallelism": 3, "template": {"spec": dict(CONTAINERS)}, "scheduling": scheduling}
    metadata = {"name": "train", "namespace": "ml", **fields}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


@pytest.mark.parametrize(
    ("scheduling", "policy"),
    [
        ({}, {"basic": {}}),
        ({"schedulingPolicy": {"basic": {}}}, {"basic": {}}),
        ({"schedulingPolicy": {"gang": {}}}, {"gang": {"minCount": 3}}),
        ({"schedulingPolicy": {"gang": {"minCount": 2}}}, {"gang": {"minCount": 2}}),
    ],
)
def test_a_job_with_scheduling_has_a_group(scheduling: Object, policy: Object) -> None:
    ((workload,), _) = read_workloads([job(scheduling)], "file")
    (group,) = workload.objects
    assert group["spec"]["schedulingPolicy"] == policy
    name = {"podGroupName": group["metadata"]["name"]}
    assert [one["spec"]["schedulingGroup"] for one in workload.pods(["a", "b"])] == [name] * 2
    assert group["metadata"]["namespace"] == "ml"


def test_a_job_without_scheduling_or_of_another_object_has_none() -> None:
    owner = {"kind": "JobSet", "name": "x", "controller": True}
    for one in (job(), job({}, ownerReferences=[owner])):
        ((workload,), _) = read_workloads([one], "file")
        assert workload.objects == ()
        assert "schedulingGroup" not in workload.template["spec"]


def leader_worker_set(**spec: Any) -> Object:
    parts = {"size": 3, "workerTemplate": {"metadata": {"labels": {"a": "b"}}, "spec": CONTAINERS}}
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "vllm"},
        "spec": {"replicas": 2, "leaderWorkerTemplate": parts, **spec},
    }


def test_a_leader_worker_set_is_a_leader_and_workers_for_each_replica() -> None:
    workloads, others = read_workloads([leader_worker_set()], "file")
    assert [(one.name, one.kind, one.replicas) for one in workloads] == [
        ("vllm-0", "Pod", 1),
        ("vllm-0", "StatefulSet", 2),
        ("vllm-1", "Pod", 1),
        ("vllm-1", "StatefulSet", 2),
    ]
    assert {one.title for one in workloads} == {"LeaderWorkerSet default/vllm"}
    assert others == []
    assert all("schedulingGroup" not in one.template["spec"] for one in workloads)


def test_each_replica_of_a_leader_worker_set_with_scheduling_is_a_group() -> None:
    workloads, groups = read_workloads([leader_worker_set(scheduling={})], "file")
    assert [group["metadata"]["name"] for group in groups] == ["vllm-0", "vllm-1"]
    assert [group["spec"]["schedulingPolicy"] for group in groups] == [
        {"gang": {"minCount": 3}}
    ] * 2
    named = [one.template["spec"]["schedulingGroup"]["podGroupName"] for one in workloads]
    assert named == ["vllm-0", "vllm-0", "vllm-1", "vllm-1"]
