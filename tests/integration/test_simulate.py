"""`kubectl scheduler simulate` answers with the real kube-scheduler over clusters in files."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from kube_scheduler_operator.__main__ import kubectl_plugin
from kube_scheduler_operator.base import names
from kube_scheduler_operator.operator.engine import placement_run
from kube_scheduler_operator.operator.model.plan import PlacementQuestion, PlacementRules
from kube_scheduler_operator.operator.model.snapshot import CheckIdentity
from kube_scheduler_operator.simulate.configuration import default_configuration
from kube_scheduler_operator.simulate.edit_effect import EditEffect, edit_effect
from kube_scheduler_operator.simulate.extenders import measured_at
from kube_scheduler_operator.simulate.kinds import NAMES_ITS_NODE
from kube_scheduler_operator.simulate.placements import placements
from kube_scheduler_operator.simulate.probes import acceptances
from kube_scheduler_operator.simulate.questions import read_answer, read_request, request
from kube_scheduler_operator.simulate.run_options import OtherScheduler, RunOptions
from kube_scheduler_operator.simulate.world import World

from .test_why import ZONE, Files, node, pod

pytestmark = pytest.mark.presubmit

Object = dict[str, Any]
Simulate = Callable[..., Any]
OWNER = {
    "apiVersion": "apps/v1",
    "kind": "ReplicaSet",
    "name": "rs",
    "uid": "r",
    "controller": True,
}


def owned(
    name: str, cpu: str = "1", where: str = "", owner: str = "ReplicaSet", **spec: Any
) -> Object:
    made = pod(name, cpu, **({"nodeName": where} if where else {}), **spec)
    made["metadata"]["ownerReferences"] = [{**OWNER, "kind": owner}]
    return made


def deployment(cpu: str = "1", replicas: int = 3, kind: str = "Deployment", **spec: Any) -> Object:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    template = {"metadata": {"labels": {"app": "new"}}, "spec": {"containers": [container], **spec}}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": "new"},
        "spec": {"replicas": replicas, "template": template},
    }


@pytest.fixture
def simulate(
    kube_scheduler_binary: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Simulate:
    """Runs the command over files, once unless it has --repeat; its document, or its text."""

    def run(
        objects: list[Object], *flags: str, workloads: Object | None = None, code: int = 0
    ) -> Any:
        path = tmp_path / "cluster.json"
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
        command = ["simulate", "--from-files", str(path), *flags]
        command += ["--kube-scheduler", str(kube_scheduler_binary)]
        if workloads is not None:
            file = tmp_path / "workload.yaml"
            file.write_text(yaml.safe_dump(workloads))
            command += ["-f", str(file)]
        if "--repeat" not in flags:
            command += ["--repeat", "1"]
        output = () if "-o" in flags else ("-o", "json")
        found = kubectl_plugin([*command, *output])
        printed = capsys.readouterr()
        assert found == code, printed
        if code == 2:
            return printed.err
        return json.loads(printed.out) if output else printed.out

    return run


def cluster(*objects: Object) -> list[Object]:
    """Three nodes with four CPUs: a and b in zone x, c in zone y."""
    files = Files()
    del files.objects["Pod", "waiting"]
    for obj in objects:
        files.add(obj)
    return list(files.objects.values())


def figures(found: Any, at: int = 0) -> dict[str, float]:
    return {key: each["median"] for key, each in found["configurations"][at]["figures"].items()}


@pytest.mark.presubmit
def test_a_workload_that_fits_is_placed_and_its_nodes_are_named(simulate: Simulate) -> None:
    text = simulate(cluster(), "-o", "text", "--repeat", "2", workloads=deployment("2", 3))
    assert text.startswith("3 pods of Deployment default/new fit, in 2 of 2 runs.\n")
    assert "cpu requested     0 %  50 %" in text
    assert "Where they are:" in text


def test_a_workload_that_does_not_fit_has_the_reasons_of_kube_scheduler(simulate: Simulate) -> None:
    found = simulate(cluster(), workloads=deployment("3", 5), code=1)
    assert figures(found)["placed"] == 3
    (reasons,) = found["configurations"][0]["reasons"]
    assert reasons == {
        "0/3 nodes are available: 3 Insufficient cpu. no new claims to deallocate, preemption: "
        "0/3 nodes are available: 3 No preemption victims found for incoming pod.": 2
    }


HIGH: Object = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "high"},
    "value": 1000,
}


def test_the_largest_number_of_pods_is_found_without_preemption(simulate: Simulate) -> None:
    running = owned("there", "3", "a", priority=0)
    workload = deployment("2", 3, priorityClassName="high")
    found = simulate(cluster(running, HIGH), "--max", workloads=workload)
    assert figures(found)["largest"] == 4  # two each on b and c
    assert found["configurations"][0]["preempted"] == [[]]
    assert figures(simulate(cluster(running), "--max", workloads=deployment("5", 1), code=1))[
        "largest"
    ] == 0  # fmt: skip


def test_a_preempted_pod_is_created_again_and_reported(simulate: Simulate) -> None:
    running = [owned(f"on-{name}", "3", name, priority=0) for name in "abc"]
    workload = deployment("3", 1, priorityClassName="high")
    found = simulate(cluster(*running, HIGH), workloads=workload)
    (result,) = found["configurations"]
    (victim,) = result["preempted"][0]
    assert victim in {"default/on-a", "default/on-b", "default/on-c"}
    assert result["homeless"] == [[victim]]
    assert figures(found)["pending"] == 1


def test_a_drain_moves_what_it_may_and_reports_the_rest(simulate: Simulate) -> None:
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
              "metadata": {"name": "db", "namespace": "default"},
              "spec": {"selector": {"matchLabels": {"app": "db"}}},
              "status": {"disruptionsAllowed": 0}}  # fmt: skip
    objects = cluster(
        owned("web", "3", "a"), owned("daemon", "100m", "a", "DaemonSet"), owned("full-b", "3", "b")
    )
    assert simulate(objects, "--drain", "a")["drains"][0]["moved"] == ["default/web"]
    blocked = [*objects, owned("db", "100m", "a", app="db"), budget]
    text = simulate(blocked, "--drain", "a", "-o", "text", code=1)
    assert "Drain of a: 1 pod would be evicted; 1 of DaemonSets stay." in text
    fits = "1 pod of the drained node a fits, in 1 of 1 run"
    assert f"{fits}, but PodDisruptionBudget default/db blocks the drain of a.\n" in text
    assert "PodDisruptionBudget default/db allows no eviction now: default/db stays" in text
    full = [*objects, owned("full-c", "3", "c")]
    assert simulate(full, "--drain", "a", code=1)["configurations"][0]["runsThatFit"] == 0


def test_a_drain_fails_at_a_pod_of_several_budgets_and_passes_what_terminates(
    simulate: Simulate,
) -> None:
    budgets = [
        {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
         "metadata": {"name": name, "namespace": "default"},
         "spec": {"selector": {"matchLabels": {"app": "db"}}},
         "status": {"disruptionsAllowed": 1}}
        for name in ("one", "two")
    ]  # fmt: skip
    leaving = owned("leaving", "100m", "a")
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    objects = cluster(owned("web", "3", "a"), leaving, owned("db", "100m", "a", app="db"), *budgets)
    text = simulate(objects, "--drain", "a", "-o", "text", code=1)
    assert (
        "but several PodDisruptionBudgets cover one pod of a, so that the drain fails.\n"
    ) in text
    assert (
        "  default/db is covered by 2 PodDisruptionBudgets (default/one, default/two), and the API "
        "server evicts no such pod: the drain fails.\n"
        "  default/leaving: terminates already, so nothing is created instead.\n"
    ) in text
    found = simulate(objects, "--drain", "a", code=1)
    assert [drain["moved"] for drain in found["drains"]] == [["default/web"]]


def test_a_drain_that_deletes_a_pod_for_good_is_not_reported_as_fitting(
    simulate: Simulate,
) -> None:
    bare = owned("bare", "100m", "a")
    del bare["metadata"]["ownerReferences"]
    objects = cluster(owned("web", "3", "a"), bare)
    flags = ("--drain", "a", "--add-nodes", "1xb")
    lost = "nothing creates 1 pod without a controller again after the drain of a"
    found = simulate(objects, *flags, code=1)
    assert (found["fits"], found["prevented"]) == (False, [lost])
    assert found["configurations"][0]["runsThatFit"] == found["repeat"]
    text = simulate(objects, *flags, "-o", "text", code=1)
    assert f"1 pod of the drained node a fits, in 1 of 1 run, but {lost}.\n" in text
    assert "  default/bare: without a controller, so `kubectl drain` needs --force" in text
    without = simulate(objects, "--without-node", "a")
    assert (without["fits"], without["prevented"]) == (True, [])
    assert simulate(cluster(bare), "--drain", "a", "-o", "text", code=1).splitlines()[2] == (
        f"No pod has to be placed, but {lost}."
    )


def test_new_nodes_take_waiting_pods_and_several_changes_are_combined(simulate: Simulate) -> None:
    objects = cluster(*(owned(f"on-{name}", "3", name) for name in "abc"), owned("waiting", "2"))
    assert figures(simulate(objects, code=1))["pending"] == 1
    added = simulate(objects, "--add-nodes", "1xa")
    assert added["addedNodes"] == ["a-new-1"]
    assert added["configurations"][0]["nodes"] == {"a-new-1": {"least": 1, "median": 1, "most": 1}}
    both = simulate(objects, "--add-nodes", "1xa", "--without-node", "c", code=1)
    assert both["lostNodes"][0]["moved"] == ["default/on-c"]
    assert figures(both)["pending"] == 1
    assert figures(simulate(objects, "--add-nodes", "2xa", "--without-node", "c"))["pending"] == 0


def test_a_daemon_set_gets_a_pod_on_each_node_that_its_controller_chooses(
    simulate: Simulate,
) -> None:
    tainted = node("tainted", "y", taints=[{"key": "gpu", "effect": "NoSchedule"}])
    taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    cordoned = node("cordoned", "y", unschedulable=True, taints=[taint])
    other = node("other", "y", labels={"disk": "hdd"})
    objects = cluster(tainted, cordoned, other, owned("full", "4", "a"))
    workload = deployment("1", kind="DaemonSet", nodeSelector={"disk": "ssd"})
    found = simulate(objects, workloads=workload, code=1)
    assert set(found["configurations"][0]["nodes"]) == {"b", "c", "cordoned"}
    assert figures(found)["pending"] == 1  # a is full


def test_stateful_sets_get_claims_and_volumes_that_are_provisioned(simulate: Simulate) -> None:
    storage = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
               "metadata": {"name": "disk"}, "provisioner": "disk.example.com",
               "volumeBindingMode": "WaitForFirstConsumer"}  # fmt: skip
    workload = deployment("1", 2, kind="StatefulSet")
    claim = {"accessModes": ["ReadWriteOnce"], "storageClassName": "disk",
             "resources": {"requests": {"storage": "1Gi"}}}  # fmt: skip
    workload["spec"]["volumeClaimTemplates"] = [{"metadata": {"name": "data"}, "spec": claim}]
    assert figures(simulate(cluster(storage), workloads=workload))["placed"] == 2
    without = simulate(cluster(), workloads=workload, code=1)
    (reasons,) = without["configurations"][0]["reasons"]
    assert "unbound immediate PersistentVolumeClaims" in next(iter(reasons))


def test_profiles_are_compared_over_a_replay_as_table_and_picture(
    simulate: Simulate, tmp_path: Path
) -> None:
    nodes = [node(f"n{number}", "xyz"[number % 3]) for number in range(3)]
    pods = [owned(f"p{number}", "500m", f"n{number % 3}") for number in range(6)]
    picture = tmp_path / "nodes.svg"
    flags = ("--replay", "--svg", str(picture), "--repeat", "2")
    profiles = ("--profile", "LowNodeUtilization", "--profile", "HighNodeUtilization")
    objects = cluster(*nodes, *pods)
    found = simulate(objects, *flags, *profiles)
    low, high = (figures(found, at) for at in range(2))
    assert (low["nodesUsed"], high["nodesUsed"]) == (6, 1)
    assert high["fullestNodePercent"] == 75
    assert [each["name"] for each in found["configurations"]] == [
        "LowNodeUtilization", "HighNodeUtilization",
    ]  # fmt: skip
    texts = [each.text for each in ElementTree.parse(picture).getroot().iter()]
    assert "HighNodeUtilization" in texts
    text = simulate(objects, "--replay", "--profile", "HighNodeUtilization", "-o", "text")
    assert re.search("now +today +HighNodeUtilization", text)


def test_a_profile_is_that_of_the_scheduler_that_the_operator_makes(simulate: Simulate) -> None:
    name = "managed-scheduler"
    made = {
        "apiVersion": "kube-scheduler-operator.dev/v1alpha1",
        "kind": "SecondaryScheduler",
        "metadata": {"name": name, "labels": {names.MANAGED_BY_LABEL: names.PROGRAM}},
        "spec": {"namespace": "kube-scheduler-operator"},
        "status": {"profiles": [{"schedulerName": name}]},
    }
    config = {**default_configuration(), "profiles": [{"schedulerName": name}]}
    used = {}
    for scheduler in (name, "default-scheduler"):
        workload = deployment(schedulerName=scheduler)
        flags = ("--profile", "HighNodeUtilization")
        found = simulate([*cluster(), made, config], *flags, workloads=workload)
        used[scheduler] = [figures(found, at)["nodesUsed"] for at in (0, 1)]
    assert used == {name: [3, 1], "default-scheduler": [3, 3]}


def test_a_replay_leaves_pods_that_no_scheduler_placed(simulate: Simulate) -> None:
    """Beside the guard, b has no room for a second pod of this size."""
    guard = owned("guard", "2", "b", "KubeScheduler")
    named = owned("named", "3", "c")
    named["metadata"]["managedFields"] = NAMES_ITS_NODE
    objects = cluster(guard, named, owned("web", "3", "a"))
    found = simulate(objects, "--replay")
    assert found["pods"] == {"that run now": 1}
    assert list(found["configurations"][0]["nodes"]) == ["a"]
    assert found["notes"][-1] == (
        "2 pods stay in place, because no scheduler placed them: created with spec.nodeName (2)"
    )
    assert found["now"]["nodesUsed"] == 1
    assert "--replay: no pod runs that could be placed" in simulate(
        objects[:-1], "--replay", code=2
    )


def test_zones_show_the_spread(simulate: Simulate) -> None:
    rule = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "new"}}}  # fmt: skip
    found = simulate(cluster(), workloads=deployment("1", 4, topologySpreadConstraints=[rule]))
    assert (figures(found)["zone.x"], figures(found)["zone.y"]) == (2, 2)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ((), "there is no pod to place, because none waits"),
        (("--replay",), "--replay: no pod runs"),
        (("--drain", "z"), "--drain z: no node has this name; nodes are a, b, c"),
        (("--add-nodes", "a"), "--add-nodes a: use NUMBERxNODE"),
        (("--max",), "--max needs exactly one workload in -f, and there are 0"),
        (("--repeat", "0"), "--repeat 0: at least one run"),
        (("-f", "missing.yaml"), "missing.yaml: No such file"),
        (("--drain", "a", "--without-node", "a"), "a cannot be drained"),
        (
            ("--drain", "a", "--svg", "/no/such/folder.svg"),
            "--svg /no/such/folder.svg: No such file",
        ),
    ],
)
def test_wrong_usage_is_code_2_with_the_flag(
    flags: tuple[str, ...], message: str, simulate: Simulate
) -> None:
    assert message in simulate(cluster(), *flags, code=2)


USAGE = "load.kube-scheduler-operator.dev/usage"


def _measured(name: str, mean: float) -> Object:
    """A node whose load was measured long ago, as in a file."""
    made = node(name, "x")
    usage = {"at": "2026-01-01T00:00:00Z", "source": "node-metrics", "cpu_usage_avg_5m": mean,
             "mem_usage_avg_5m": 0.1}  # fmt: skip
    made["metadata"]["annotations"] = {USAGE: json.dumps(usage), "secret": "x"}
    return made


def _extender(name: str, **agent: Any) -> Object:
    group = "kube-scheduler-operator.dev/v1alpha1"
    spec = {
        "weight": 100,
        **(
            {"agent": agent}
            if agent
            else {"url": "http://192.0.2.1/", "verbs": {"filter": "filter"}}
        ),
    }
    return {
        "apiVersion": group,
        "kind": "SchedulerExtender",
        "metadata": {"name": name},
        "spec": spec,
    }


def _load_policy(limit: float) -> Object:
    limits = [{"name": "cpu_usage_avg_5m", "maxLimit": f"{limit:.0%}"}]
    return {"apiVersion": "kube-scheduler-operator.dev/v1alpha1", "kind": "LoadPolicy",
            "metadata": {"name": "cluster"}, "spec": {"predicates": limits}}  # fmt: skip


def test_own_extenders_and_load_policies_take_part_and_foreign_ones_are_named(
    simulate: Simulate,
) -> None:
    """The load is as old as the file, and pods that are placed count as load at once."""
    objects = [
        _measured("busy", 0.9), _measured("calm", 0.1), _measured("calm2", 0.1),
        _load_policy(0.6),
        _extender(
            "calm", policies=[{"name": "load-aware"}], loadPolicy="cluster", verbs={"bind": True}
        ),
        _extender("foreign"),
    ]  # fmt: skip
    found = simulate(objects, workloads=deployment("100m", 2))
    assert set(found["configurations"][0]["nodes"]) <= {"calm", "calm2"}
    assert "SchedulerExtender calm is not called for bind, which would be real" in found["notes"]
    alone = [_measured("busy", 0.9), *objects[3:]]
    found = simulate(alone, workloads=deployment("100m", 1), code=1)
    (reasons,) = found["configurations"][0]["reasons"]
    assert "load-aware: " in next(iter(reasons))
    foreign: Object = {"urlPrefix": "http://192.0.2.1/", "filterVerb": "filter"}
    config = {**default_configuration(), "extenders": [foreign]}
    found = simulate([*objects[:3], config], workloads=deployment("100m", 2))
    assert any("the extender http://192.0.2.1 is left out" in note for note in found["notes"])
    # kube-scheduler does not count resources that an extender manages, even if it is left out.
    asking = deployment("100m", 1)
    template: Object = asking["spec"]["template"]
    resources = template["spec"]["containers"][0]["resources"]
    resources["requests"]["example.com/gpu"] = "1"
    resources["limits"] = {"example.com/gpu": "1"}
    simulate([*objects[:3], config], workloads=asking, code=1)
    foreign["managedResources"] = [{"name": "example.com/gpu", "ignoredByScheduler": True}]
    simulate([*objects[:3], config], workloads=asking)


def _options(binary: Path, profile: Object) -> RunOptions:
    return RunOptions(binary, {**default_configuration(), "profiles": [profile]})


async def _effect(world: World, before: RunOptions, after: RunOptions) -> EditEffect:
    """As another process answers it, through JSON."""
    arguments = {"config": after.config, "flags": after.flags, "extenders": after.extenders}
    asked = read_request((request(edit_effect, world, before, arguments),))
    content = b'{"answer":%b}' % await asked.answer(before.binary)
    return read_answer(edit_effect, content)


@pytest.mark.presubmit
def test_the_effect_of_an_edit_on_running_and_waiting_pods(kube_scheduler_binary: Path) -> None:
    """Today taints are ignored, and other labels are demanded; the edit changes both."""
    taints = [{"key": "dedicated", "value": "team", "effect": "NoSchedule"}]
    nodes = [node("t1", "x", taints=taints), node("t2", "x", taints=taints), node("free", "y")]
    pinned: dict[str, Any] = {"nodeSelector": {ZONE: "x"}}
    world = World()
    objects = [
        *nodes,
        *(owned(f"held-{at}", "1", "t1", **pinned) for at in range(3)),
        owned("moving", "1", "t2"),
        owned("daemon", "1", "t2", "DaemonSet", **pinned),
        owned("waiting", "1", **pinned),
        owned("gated", "1", schedulingGates=[{"name": "x"}], **pinned),
        owned("helped", "1", nodeSelector={ZONE: "y"}),
        owned("foreign", "1", "t1", schedulerName="other"),
    ]
    for obj in objects:
        world.add(obj)
    world.complete()
    added = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["x"]}]}]}}  # fmt: skip
    today = {
        "plugins": {"filter": {"disabled": [{"name": "TaintToleration"}]}},
        "pluginConfig": [{"name": "NodeAffinity", "args": {"addedAffinity": added}}],
    }
    before, after = (_options(kube_scheduler_binary, each) for each in (today, {}))
    effect = asyncio.run(_effect(world, before, after))
    taint = "node(s) had untolerated taint(s)"
    affinity = "node(s) didn't match Pod's node affinity/selector"
    assert {loss.reason: sorted(loss.pods) for loss in effect.lost} == {
        f"{affinity}; {taint}": ["default/held-0", "default/held-1", "default/held-2"]
    }
    assert [loss.pods for loss in effect.newly_waiting] == [["default/waiting"]]
    assert effect.newly_fitting == ["default/helped"]
    assert (len(effect.elsewhere), effect.tried) == (1, 6)
    other = replace(after, config={**default_configuration(), "profiles": [
        {"schedulerName": "renamed"}]})  # fmt: skip
    renamed = asyncio.run(_effect(world, after, other))
    assert [loss.reason for loss in renamed.lost] == [
        'no scheduler serves spec.schedulerName "default-scheduler"'
    ]
    same = asyncio.run(_effect(world, after, after))
    assert list(same.sentences()) == ["each of 6 pods can be placed, or cannot, as today"]


@pytest.mark.presubmit
@pytest.mark.parametrize("first", ["a", "b"])
def test_each_replica_is_tried_in_its_own_place(kube_scheduler_binary: Path, first: str) -> None:
    """All nodes are full, so each replica fits on its own node alone, in any order of the files."""
    world = World()
    pods = [owned("on-a", "4", "a"), owned("on-b", "4", "b"), owned("on-c", "3", "c")]
    pods.sort(key=lambda pod: pod["spec"]["nodeName"] != first)
    for obj in (node("a", "x"), node("b", "y"), node("c", "y"), *pods):
        world.add(obj)
    world.complete()
    added = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["x"]}]}]}}  # fmt: skip
    edit: Object = {"pluginConfig": [{"name": "NodeAffinity", "args": {"addedAffinity": added}}]}
    before, after = (_options(kube_scheduler_binary, each) for each in ({}, edit))
    effect = asyncio.run(_effect(world, before, after))
    (loss,) = effect.lost
    assert sorted(loss.pods) == ["default/on-b", "default/on-c"]
    assert (effect.tried, effect.elsewhere, effect.unplaced) == (3, [], [])


def test_an_obstacle_of_today_hides_none_that_the_edit_adds(kube_scheduler_binary: Path) -> None:
    """The effect on a Pod that fits nowhere is known only if its filters accept as before."""
    world = World()
    full = node("full", "x", unschedulable=True)
    for obj in (full, owned("web", "1", "full"), owned("other", "2", "full")):
        world.add(obj)
    world.complete()
    plain: Object = {}
    scores = {"plugins": {"score": {"disabled": [{"name": "ImageLocality"}]}}}
    term = {"matchExpressions": [{"key": "example.com/none", "operator": "Exists"}]}
    added = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    affinity = {"pluginConfig": [{"name": "NodeAffinity", "args": {"addedAffinity": added}}]}
    before = _options(kube_scheduler_binary, plain)
    harmless, hidden = (
        asyncio.run(_effect(world, before, _options(kube_scheduler_binary, after)))
        for after in (scores, affinity)
    )
    assert (harmless.worse, harmless.unplaced, harmless.is_known) == (False, [], True)
    assert (hidden.worse, hidden.is_known) == (False, False)
    assert sorted(hidden.unplaced) == ["default/other", "default/web"]


@pytest.mark.parametrize(
    ("before", "after"),
    [((0.95, ["web"]), (0.6, ["web"])), ((0.6, ["none"]), (0.6, ["web"]))],
    ids=["a limit of the LoadPolicy", "the Pods of the agent"],
)
def test_an_edit_of_what_an_agent_decides_by_is_tried_at_the_load_of_the_moment(
    before: tuple[float, list[str]],
    after: tuple[float, list[str]],
    kube_scheduler_binary: Path,
) -> None:
    """Both nodes are at 90 %: with a limit of 60 % for Pods of profile web, those fit nowhere."""
    world = World(annotations=True)
    web = {"schedulerName": "web"}
    pods = (
        owned("web-1", "1m", "a", **web),
        owned("web-2", "1m", **web),
        owned("other", "1m", "b"),
    )
    for obj in (_measured("a", 0.9), _measured("b", 0.9), *pods):
        world.add(obj)
    world.complete()
    entry = {"urlPrefix": "http://127.0.0.1:5401/load", "filterVerb": "filter",
             "nodeCacheCapable": True}  # fmt: skip

    def rules(limit: float, schedulers: list[str]) -> RunOptions:
        config = {"profiles": [{"schedulerName": "web"}, {}], "extenders": [entry]}
        agent = {"policies": [{"name": "load-aware"}], "loadPolicy": "cluster"}
        decides = PlacementRules(
            {**default_configuration(), **config},
            agents={"load": {**agent, "schedulerNames": schedulers}},
            load_policies={"cluster": _load_policy(limit)["spec"]},
        )
        identity = CheckIdentity("after", "before", "")
        question = PlacementQuestion(identity, decides, decides, "", (), 60)
        made = placement_run._options(decides, question, "v1.35.4", [])
        return replace(made, binary=kube_scheduler_binary, now=measured_at(world))

    old, new = rules(*before), rules(*after)
    effect = asyncio.run(_effect(world, old, new))
    (loss,) = effect.lost
    assert (loss.reason.startswith("load-aware: "), loss.pods) == (True, ["default/web-1"])
    assert [each.pods for each in effect.newly_waiting] == [["default/web-2"]]
    (unknown,) = placement_run.at_another_load(old.extenders, new.extenders)
    assert "SchedulerExtender load rejects at another load" in unknown


def test_plugins_that_no_probe_reaches_are_not_known(kube_scheduler_binary: Path) -> None:
    world = World()
    world.add(node("free", "x"))
    world.complete()
    before = _options(kube_scheduler_binary, {})
    after = {"plugins": {"preBind": {"disabled": [{"name": "VolumeBinding"}]}}}
    effect = asyncio.run(_effect(world, before, _options(kube_scheduler_binary, after)))
    assert effect.changed == ["the plugins of profile default-scheduler at preBind"]


def test_a_probe_takes_the_place_of_no_pod(kube_scheduler_binary: Path) -> None:
    """A Pod that fills its node was replaced by the probe with the same name."""
    world = World()
    names = [f"simulation-{number:05d}" for number in range(3)]
    for obj in (node("small", "x"), *(pod(name, "1", nodeName="small") for name in names)):
        world.add(obj)
    world.add(pod("waits", "2"))
    world.complete()
    waiting = world.pending()
    (found,) = asyncio.run(acceptances(world, _options(kube_scheduler_binary, {}), waiting))
    assert found.nodes == frozenset()
    assert "Insufficient cpu" in found.reasons


def test_the_reasons_of_own_extenders_are_causes_of_their_own(
    kube_scheduler_binary: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`why` names the extender for the nodes that it rejects, and only for those."""
    objects = [
        _measured("busy", 0.9), _measured("calm", 0.1), _load_policy(0.6),
        _extender("load", policies=[{"name": "load-aware"}], loadPolicy="cluster",
                  schedulerNames=["default-scheduler"]),
        owned("web", "9"),
    ]  # fmt: skip
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    command = ["why", "web", "--from-files", str(path), "-o", "json"]
    assert kubectl_plugin([*command, "--kube-scheduler", str(kube_scheduler_binary)]) == 0
    found = json.loads(capsys.readouterr().out)
    causes = {
        group["nodes"][0]: [cause["text"] for cause in group["causes"]] for group in found["groups"]
    }
    (cpu,) = causes["calm"]
    assert cpu.startswith("less than 9 of cpu is free, requested by container ")
    assert causes["busy"][0] == cpu
    _, extender = causes["busy"]
    assert extender.startswith("extender load: load-aware: ")


@pytest.mark.presubmit
def test_two_schedulers_place_their_pods_beside_each_other(kube_scheduler_binary: Path) -> None:
    """Each with a process of its own: the second fills up what the first has left."""
    packing = {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}]}
    arguments = {"name": "NodeResourcesFit", "args": {"scoringStrategy": packing}}
    profile = {"schedulerName": "packed", "pluginConfig": [arguments]}
    other = OtherScheduler(
        "SecondaryScheduler packed", ("packed",), {**default_configuration(), "profiles": [profile]}
    )
    unknown = OtherScheduler("SecondaryScheduler special", ("special",), problem="another image")
    options = RunOptions(kube_scheduler_binary, default_configuration(), others=(other, unknown))
    world = World()
    for obj in (node("a", "x"), node("b", "y")):
        world.add(obj)
    names = ("default-scheduler", "packed", "special", "nowhere")
    pods = [
        pod(f"{name}-{at}", "1", schedulerName=name) for name in names[:2] for at in range(4)
    ] + [pod(name, "1", schedulerName=name) for name in names[2:]]
    for made in pods:
        made["metadata"].setdefault("namespace", "default")
        made["metadata"].pop("creationTimestamp", None)
    question: dict[str, Any] = {
        "pods": pods,
        "subject": {f"default/{made['metadata']['name']}" for made in pods},
        "repeat": 2,
    }
    asked = read_request((request(placements, world, options, question),))
    content = b'{"answer":%b}' % asyncio.run(asked.answer(kube_scheduler_binary))
    for outcome in read_answer(placements, content):
        counts = Counter(outcome.placed.values())
        assert counts == {"a": 4, "b": 4}, "neither overcommits what the other has taken"
        assert list(outcome.pending) == ["default/nowhere"]
        assert list(outcome.unknown) == ["default/special"]
        assert not outcome.fits
