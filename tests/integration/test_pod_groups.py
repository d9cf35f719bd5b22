"""Groups of pods are explained as the real kube-scheduler of each version decides about them.

1.35 reads groups in Workloads, and decides about their pods one by one; from 1.36 on it reads
PodGroups, and decides about each as a whole.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from cluster import binaries, releases
from kube_scheduler_operator.__main__ import kubectl_plugin
from kube_scheduler_operator.simulate import pending_groups, why_group
from kube_scheduler_operator.simulate.pod_groups import GroupName, changed_group
from kube_scheduler_operator.simulate.world import World

from .pending_kinds.as_files import edited
from .test_freed_claims import device_class, slice_of
from .test_kinds_against_binary import VERSIONS
from .test_kinds_decide import of
from .test_why import ZONE, node, pod

pytestmark = [pytest.mark.core, pytest.mark.timeout(600, func_only=True)]

Object = dict[str, Any]
GROUPED: Final = [version for version in VERSIONS if releases.minor(version) >= 35]
WHOLE: Final = [version for version in VERSIONS if releases.minor(version) >= 36]
LATEST: Final = VERSIONS[-1]
Run = Callable[..., Any]


def gates(version: str, *more: str) -> str:
    gang = ["GangScheduling=true"] if releases.minor(version) < 37 else []
    return ",".join(["GenericWorkload=true", *gang, *more])


def gang(version: str, least: int, **spec: Any) -> Object:
    """A group of the form of a version."""
    policy: Object = {"gang": {"minCount": least}}
    if releases.minor(version) == 35:
        parts = [{"name": "g", "policy": policy}]
        return of("Workload", "g", {"podGroups": parts}, "scheduling.k8s.io/v1alpha1")
    form = "v1alpha2" if releases.minor(version) == 36 else "v1beta1"
    spec = {"schedulingPolicy": policy, **spec}
    return of("PodGroup", "g", spec, f"scheduling.k8s.io/{form}")


def members(version: str, count: int, cpu: str = "1300m", **spec: Any) -> list[Object]:
    reference: Object = {"schedulingGroup": {"podGroupName": "g"}}
    if releases.minor(version) == 35:
        reference = {"workloadRef": {"name": "g", "podGroup": "g"}}
    return [pod(f"p{number}", cpu, **reference, **spec) for number in range(count)]


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command over files with the kube-scheduler of a version: its document, or its text."""

    def command(
        version: str, objects: Sequence[Object], on: str, *words: str, code: int = 0
    ) -> Any:
        path = tmp_path / "cluster.json"
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
        binary = binaries.provide(["kube-scheduler"], version)["kube-scheduler"]
        output = () if "-o" in words else ("-o", "json")
        flags = [*output, "--from-files", str(path), "--kube-scheduler", str(binary)]
        flags += ["--feature-gates", on] if on else []
        assert kubectl_plugin([*words, *flags]) == code, capsys.readouterr().err
        text = capsys.readouterr().out
        return json.loads(text) if output else text

    return command


@pytest.mark.parametrize("version", GROUPED)
def test_a_group_waits_until_min_count_pods_exist(run: Run, version: str) -> None:
    objects = [node("a", "z"), gang(version, 4), *members(version, 3, "100m")]
    group = run(version, objects, gates(version), "why", "podgroup/g")["group"]
    assert (group["minCount"], group["missing"], len(group["waiting"])) == (4, 1, 3)
    assert group["now"] == {"placed": {}, "pending": {}, "preempted": []}
    assert set(group["together"]["placed"].values()) == {"a"}
    create, lower = group["fixes"]
    assert create["text"] == "create 1 more Pod of the group, like default/p0"
    assert lower["text"].endswith("minCount 3 instead of 4")
    assert lower["field"].endswith("gang.minCount")
    again = "create " if releases.minor(version) < 37 else "set "
    assert lower["text"].startswith(again)


@pytest.mark.parametrize("version", GROUPED)
def test_the_pods_that_fit_together_and_the_one_that_does_not(run: Run, version: str) -> None:
    objects = [node("a", "z"), gang(version, 4), *members(version, 4)]
    found = run(version, objects, gates(version), "why", "podgroup/g")
    together = found["group"]["together"]
    assert len(together["placed"]) == 3
    ((name, reason),) = together["pending"].items()
    assert reason == "0/1 nodes are available: 1 Insufficient cpu"
    blocking = found["blocking"]
    assert blocking["pod"] == name
    cause = blocking["groups"][0]["causes"][0]["text"]
    assert cause.startswith("less than 1300m of cpu is free, requested by container c; ")
    assert blocking["fixes"][0]["text"] == "request 100m of cpu instead of 1300m"
    (lower,) = found["group"]["fixes"]
    assert lower["text"].endswith("minCount 3 instead of 4")
    assert not found["group"]["now"]["placed"]


def test_a_pod_of_the_group_whose_scheduler_does_not_exist_has_no_causes(run: Run) -> None:
    """It is the example only where no other pod of the group waits."""
    small, _, large = members(LATEST, 3, "100m")
    (*_, elsewhere) = members(LATEST, 3, "100m", schedulerName="other")
    objects = [node("a", "z"), gang(LATEST, 2), small, elsewhere]
    text = run(LATEST, objects, gates(LATEST), "why", "podgroup/g", "-o", "text")
    assert "It fits on none" not in text
    assert 'is not known: no scheduler serves spec.schedulerName "other".' in text
    large["metadata"] |= {"name": "p9", "uid": "p9"}
    large["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "9"
    found = run(LATEST, [*objects, large], gates(LATEST), "why", "podgroup/g")
    assert found["blocking"]["pod"] == "default/p9"


@pytest.mark.parametrize("version", GROUPED)
def test_the_running_pods_of_a_group_count(run: Run, version: str) -> None:
    running = members(version, 4, "1")[2:]
    for one in running:
        one["spec"]["nodeName"] = "a"
    waiting = members(version, 2, "1500m")
    objects = [node("a", "z"), gang(version, 4), *running, *waiting]
    group = run(version, objects, gates(version), "why", "podgroup/g")["group"]
    assert group["running"] == {"default/p2": "a", "default/p3": "a"}
    assert len(group["together"]["placed"]) == 1
    assert [fix["text"].split()[-4:] for fix in group["fixes"]] == [["3", "instead", "of", "4"]]


@pytest.mark.parametrize("version", GROUPED)
def test_a_group_that_fits_is_placed_at_once(run: Run, version: str) -> None:
    objects = [node("a", "z"), gang(version, 2), *members(version, 3, "1")]
    found = run(version, objects, gates(version), "why", "p0")
    assert found["group"]["now"]["placed"] == dict.fromkeys(found["group"]["waiting"], "a")
    assert found["now"]["node"] == "a"
    text = run(version, objects, gates(version), "why", "p0", "-o", "text")
    assert "kube-scheduler would place 3 of 3 now:" in text


@pytest.mark.parametrize("version", GROUPED)
def test_without_the_gate_a_group_is_not_looked_at(run: Run, version: str) -> None:
    """The one pod is placed although the group needs four."""
    objects = [node("a", "z"), gang(version, 4), *members(version, 1)]
    found = run(version, objects, "", "why", "p0")
    assert found["group"]["unread"].endswith("its feature gate GenericWorkload is off by default")
    assert found["now"]["node"] == "a"
    text = run(version, objects, "", "why", "podgroup/g", "-o", "text")
    assert "does not look at it" in text
    assert "Each of its Pods is scheduled alone." in text


@pytest.mark.parametrize("version", [one for one in WHOLE if releases.minor(one) == 36])
def test_without_the_gate_of_gangs_min_count_does_not_count(run: Run, version: str) -> None:
    objects = [node("a", "z"), gang(version, 4), *members(version, 1)]
    group = run(version, objects, "GenericWorkload=true", "why", "podgroup/g")["group"]
    assert group["unenforced"] == (
        "minCount does not count: the feature gate GangScheduling is off"
    )
    assert group["now"]["placed"] == {"default/p0": "a"}


@pytest.mark.parametrize("version", GROUPED)
def test_a_group_that_does_not_exist_is_waited_for(run: Run, version: str) -> None:
    objects = [node("a", "z"), *members(version, 2)]
    found = run(version, objects, gates(version), "why", "p0")
    assert (found["group"]["exists"], found["now"]["reason"]) == (False, "NotTried")
    text = run(version, objects, gates(version), "why", "p0", "-o", "text")
    assert "does not exist: kube-scheduler tries none of its Pods before it does." in text


@pytest.mark.parametrize("version", GROUPED)
def test_the_whole_group_costs_these_victims(run: Run, version: str) -> None:
    victims = [pod(f"v{number}", "1300m", nodeName="a") for number in range(3)]
    group = gang(version, 3, priority=10)
    objects = [node("a", "z"), group, *victims, *members(version, 3, priority=10)]
    more = ("WorkloadAwarePreemption=true",) if releases.minor(version) == 36 else ()
    now = run(version, objects, gates(version, *more), "why", "podgroup/g")["group"]["now"]
    assert sorted(now["preempted"]) == [f"default/v{number}" for number in range(3)]
    assert len(now["placed"]) == 3


@pytest.mark.parametrize("version", WHOLE)
def test_a_group_that_still_lacks_room_costs_no_victims(run: Run, version: str) -> None:
    victims = [pod(f"v{number}", "1300m", nodeName="a") for number in range(3)]
    group = gang(version, 4, priority=10)
    objects = [node("a", "z"), group, *victims, *members(version, 4, priority=10)]
    more = ("WorkloadAwarePreemption=true",) if releases.minor(version) == 36 else ()
    found = run(version, objects, gates(version, *more), "why", "podgroup/g")
    assert found["group"]["now"]["preempted"] == []
    assert found["group"]["now"]["placed"] == {}


@pytest.mark.parametrize("version", GROUPED)
def test_a_pod_with_scheduling_gates_holds_the_others_back_from_1_37_on(
    run: Run, version: str
) -> None:
    pods = members(version, 5, "100m")
    pods[1]["spec"]["schedulingGates"] = [{"name": "example.com/wait"}]
    objects = [node("a", "z"), gang(version, 4), *pods]
    group = run(version, objects, gates(version), "why", "podgroup/g")["group"]
    holds = releases.minor(version) >= 37
    assert len(group["now"]["placed"]) == (0 if holds else 4)
    text = run(version, objects, gates(version), "why", "podgroup/g", "-o", "text")
    sentence = "kube-scheduler tries none of them while one has scheduling gates: default/p1."
    assert (sentence in text) is holds


@pytest.mark.parametrize("version", WHOLE)
def test_a_group_in_one_domain(run: Run, version: str) -> None:
    constraints = {"topology": [{"key": ZONE}]}
    group = gang(version, 3, schedulingConstraints=constraints)
    objects = [node("a", "x"), node("b", "y"), group, *members(version, 3, "2")]
    on = gates(version, "TopologyAwareWorkloadScheduling=true")
    found = run(version, objects, on, "why", "podgroup/g")["group"]
    assert found["topologyKeys"] == [ZONE]
    assert not found["now"]["placed"]
    assert len(found["together"]["placed"]) == 2
    assert [fix["text"].split(":")[0] for fix in found["fixes"]][-1] == (
        "create PodGroup default/g again without schedulingConstraints"
    )
    # Without the gate, the constraint does not count.
    assert run(version, objects, gates(version), "why", "podgroup/g")["group"]["now"]["placed"]


def _of_replica_set(pods: list[Object]) -> Object:
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "r"}
    for one in pods:
        one["metadata"]["ownerReferences"] = [{**reference, "controller": True}]
    return of("ReplicaSet", "r", {"replicas": len(pods)}, "apps/v1")


@pytest.mark.parametrize("version", GROUPED)
@pytest.mark.parametrize(
    ("least", "count", "cpu", "kinds"),
    [(4, 2, "100m", ["mend", "rule"]), (4, 4, "1300m", ["rule"])],
    ids=["a Pod more", "a smaller minCount"],
)
def test_the_patch_of_a_fix_makes_the_group_fit_on_its_nodes(
    run: Run, version: str, least: int, count: int, cpu: str, kinds: list[str]
) -> None:
    objects = [node("a", "x"), gang(version, least), *members(version, count, cpu)]
    _check_patches(run, version, objects, gates(version), kinds)


@pytest.mark.parametrize("version", WHOLE)
def test_the_patch_that_drops_a_domain_makes_the_group_fit(run: Run, version: str) -> None:
    group = gang(version, 3, schedulingConstraints={"topology": [{"key": ZONE}]})
    objects = [node("a", "x"), node("b", "y"), group, *members(version, 3, "2")]
    on = gates(version, "TopologyAwareWorkloadScheduling=true")
    _check_patches(run, version, objects, on, ["rule", "drop"])


def _check_patches(
    run: Run, version: str, objects: list[Object], on: str, kinds: list[str]
) -> None:
    """Apply each patch, and compare where the group is placed with the nodes of its fix."""
    group = run(version, objects, on, "why", "podgroup/g")["group"]
    assert [fix["kind"] for fix in group["fixes"]] == kinds
    for fix in group["fixes"]:
        after = edited(objects, fix["patch"])
        changed = run(version, after, on, "why", "podgroup/g")["group"]
        placed = changed["now"]["placed"]
        assert len(placed) >= changed["minCount"], fix
        # Of two nodes that are alike, chance decides which one it is.
        assert len({*placed.values()}) == len(fix["nodes"]), fix
        assert {*fix["nodes"]} <= {
            one["metadata"]["name"] for one in after if one["kind"] == "Node"
        }


@pytest.mark.parametrize("version", GROUPED)
def test_the_pods_that_a_group_lacks_are_created_by_their_workload(run: Run, version: str) -> None:
    pods = members(version, 2, "100m")
    objects = [node("a", "z"), gang(version, 4), _of_replica_set(pods), *pods]
    create = run(version, objects, gates(version), "why", "podgroup/g")["group"]["fixes"][0]
    assert create["patch"] == [
        {"object": "ReplicaSet default/r", "field": "spec.replicas", "from": 2, "to": 4}
    ]


@pytest.mark.parametrize("version", WHOLE)
def test_a_pod_with_another_priority_than_its_group(run: Run, version: str) -> None:
    """kube-scheduler 1.37 refuses the group; before, it is placed."""
    objects = [node("a", "z"), gang(version, 2), *members(version, 2, "1", priority=5)]
    now = run(version, objects, gates(version), "why", "podgroup/g")["group"]["now"]
    refused = any("same priority as the pod group's" in text for text in now["pending"].values())
    assert refused is (releases.minor(version) >= 37)


@pytest.mark.parametrize("version", GROUPED)
def test_waiting_groups_by_cause(run: Run, version: str) -> None:
    objects = [node("a", "z"), gang(version, 4), *members(version, 4), pod("single", "9")]
    (group, single) = run(version, objects, gates(version), "pending")["groups"]
    assert (group["kind"], single["kind"]) == ("group", "unschedulable")
    title = "group g of Workload default/g" if releases.minor(version) == 35 else (
        "PodGroup default/g"
    )  # fmt: skip
    assert group["cause"] == (
        f"3 of 4 Pods of {title} can be placed at the same time, and 4 have to: "
        "0/1 nodes are available: 1 Insufficient cpu"
    )
    assert group["fix"].endswith("minCount 3 instead of 4")
    few = [node("a", "z"), gang(version, 4), *members(version, 2)]
    (group,) = run(version, few, gates(version), "pending", "--fixes", "0")["groups"]
    assert group["cause"] == f"{title} has 2 of at least 4 Pods (minCount)"
    assert group["unreadGroups"] == []
    (group,) = run(version, few, "", "pending", "--fixes", "0")["groups"]
    assert group["kind"] == "queued"
    unread = (
        f"{title}: kube-scheduler {version.removeprefix('v').rpartition('.')[0]} does not look at "
        "it: its feature gate GenericWorkload is off by default"
    )
    assert group["unreadGroups"] == [unread]
    text = run(version, few, "", "pending", "--fixes", "0", "-o", "text")
    assert f"  groups  {unread}\n" in text


def test_pending_tries_a_group_with_min_count_1_once(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was tried to find its cause is not tried again to find what helps."""
    tried: list[Any] = []

    def changed(world: World, name: GroupName, **change: Any) -> World:
        tried.append(change)
        return changed_group(world, name, **change)

    for module in (pending_groups, why_group):
        monkeypatch.setattr(module, "changed_group", changed)
    objects = [node("a", "z"), gang(LATEST, 4), *members(LATEST, 4)]
    (group,) = run(LATEST, objects, gates(LATEST), "pending")["groups"]
    assert [fix["text"] for fix in group["groupFixes"]] == ["set minCount 3 instead of 4"]
    assert tried == [{"min_count": 1}, {"min_count": 3}]


@pytest.mark.parametrize("version", WHOLE)
@pytest.mark.parametrize("way", ["template", "extended resource", "volume"])
def test_each_waiting_group_is_tried_alone_with_all_devices_and_volumes(
    run: Run, version: str, way: str
) -> None:
    """What a group took before it was forgotten is free for the next group."""
    objects = [node("a", "z"), *_only_one_of(way)]
    for name in ("g", "h"):
        group, pods = gang(version, 2), members(version, 2, "100m")
        group["metadata"]["name"] = name
        for one in pods:
            own = f"{name}-{one['metadata']['name']}"
            one["metadata"] |= {"name": own, "uid": own}
            one["spec"]["schedulingGroup"] = {"podGroupName": name}
            objects += _needing_one(one, way)
        objects.append(group)
    on = gates(version, "DRAExtendedResource=true")
    groups = run(version, objects, on, "pending", "--fixes", "0")["groups"]
    assert sorted(group["cause"].partition(" can be placed")[0] for group in groups) == [
        "1 of 2 Pods of PodGroup default/g",
        "1 of 2 Pods of PodGroup default/h",
    ]


def _only_one_of(way: str) -> list[Object]:
    if way == "volume":
        terms = [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "Exists"}]}]
        spec = {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"},
            "storageClassName": "local",
            "local": {"path": "/v"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
        }
        class_: Object = {
            **of("StorageClass", "local", {}, "storage.k8s.io/v1"),
            "provisioner": "kubernetes.io/no-provisioner",
            "volumeBindingMode": "WaitForFirstConsumer",
        }
        volume = of("PersistentVolume", "v", spec, "v1")
        return [class_, {**volume, "status": {"phase": "Available"}}]
    known = device_class()
    if way == "extended resource":
        known["spec"]["extendedResourceName"] = "example.com/gpu"
    exactly = {"deviceClassName": known["metadata"]["name"]}
    spec = {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}}
    return [known, slice_of("a"), of("ResourceClaimTemplate", "gpu", spec, "resource.k8s.io/v1")]


def _needing_one(one: Object, way: str) -> list[Object]:
    """The pod, with what it needs of the only device or volume."""
    if way == "template":
        one["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
        return [one]
    if way == "extended resource":
        resources = one["spec"]["containers"][0]["resources"]
        for kind in ("requests", "limits"):
            resources.setdefault(kind, {})["example.com/gpu"] = "1"
        return [one]
    name = one["metadata"]["name"]
    one["spec"]["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "local",
    }
    claim = of("PersistentVolumeClaim", name, spec, "v1")
    return [one, {**claim, "status": {"phase": "Pending"}}]


def outcome(found: Object) -> tuple[int, set[str]]:
    """The number of placed pods, and why the others have no node."""
    (column,) = found["configurations"]
    return column["figures"].get("placed", {"median": 0})["median"], set(column["reasons"][0])


def workload(kind: str, api_version: str, spec: Object) -> Object:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "new"}, "spec": spec}


def template(cpu: str, **spec: Any) -> Object:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    return {"spec": {"containers": [container], **spec}}


@pytest.mark.parametrize("version", WHOLE)
def test_new_pods_of_a_group_are_placed_together_or_not_at_all(
    run: Run, tmp_path: Path, version: str
) -> None:
    def simulate(least: int, replicas: int, *, on: str, code: int) -> Any:
        file = tmp_path / "new.json"
        name: Object = {"schedulingGroup": {"podGroupName": "g"}}
        spec = {"replicas": replicas, "template": template("1300m", **name)}
        items = [gang(version, least), workload("ReplicaSet", "apps/v1", spec)]
        file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
        command = ("simulate", "-f", str(file), "--repeat", "1")
        return run(version, [node("a", "z")], on, *command, code=code)

    assert outcome(simulate(3, 3, on=gates(version), code=0)) == (3, set())
    placed, reasons = outcome(simulate(4, 4, on=gates(version), code=1))
    assert placed == 0
    assert any("Insufficient cpu" in reason for reason in reasons)
    lacking = {"PodGroup default/g has 2 of at least 3 Pods (minCount)"}
    assert outcome(simulate(3, 2, on=gates(version), code=1)) == (0, lacking)
    assert outcome(simulate(4, 4, on="", code=1))[0] == 3


@pytest.mark.parametrize(
    ("new", "placed"),
    [
        ({"parallelism": 4, "scheduling": {"schedulingPolicy": {"gang": {}}}}, 0),
        ({"parallelism": 4, "scheduling": {"schedulingPolicy": {"gang": {"minCount": 3}}}}, 3),
        ({"parallelism": 4, "scheduling": {}}, 3),
        ({"parallelism": 4}, 3),
    ],
)
def test_a_new_job_with_scheduling_is_a_group(
    run: Run, tmp_path: Path, new: Object, placed: int
) -> None:
    file = tmp_path / "new.json"
    file.write_text(json.dumps(workload("Job", "batch/v1", {**new, "template": template("1300m")})))
    command = ("simulate", "-f", str(file), "--repeat", "1")
    found = run(LATEST, [node("a", "z")], gates(LATEST), *command, code=1)
    assert outcome(found)[0] == placed
    assert any("WorkloadWithJob" in note for note in found["notes"]) is ("scheduling" in new)


def test_a_replica_of_a_new_leader_worker_set_is_placed_as_a_whole(
    run: Run, tmp_path: Path
) -> None:
    parts = {"size": 3, "workerTemplate": template("2")}
    spec = {"replicas": 2, "scheduling": {}, "leaderWorkerTemplate": parts}
    new = workload("LeaderWorkerSet", "leaderworkerset.x-k8s.io/v1", spec)
    file = tmp_path / "new.json"
    file.write_text(json.dumps(new))
    objects = [node("a", "z"), node("b", "z")]
    command = ("simulate", "-f", str(file), "--repeat", "1")
    found = run(LATEST, objects, gates(LATEST), *command, code=1)
    assert outcome(found)[0] == 3  # of 4 Pods for which there is room
