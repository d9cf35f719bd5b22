"""`kubectl scheduler why` over a cluster in files: what it shows, and how its processes end.

The cluster is in files and the kube-scheduler is real; test_why_against_cluster.py has the kinds of
Pending in a real cluster.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest

from kube_scheduler_operator.__main__ import kubectl_plugin
from kube_scheduler_operator.simulate.configuration import default_configuration
from kube_scheduler_operator.simulate.process import SimulationError
from kube_scheduler_operator.simulate.run import Run
from kube_scheduler_operator.simulate.run_options import RunOptions
from kube_scheduler_operator.simulate.world import World

pytestmark = pytest.mark.presubmit

Object = dict[str, Any]
HOST: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"


def node(name: str, zone: str, **fields: Any) -> Object:
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "10", **fields.pop("amounts", {})}
    labels = {HOST: name, ZONE: zone, "disk": "ssd", **fields.pop("labels", {})}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": fields,
        "status": {"allocatable": amounts, "capacity": amounts},
    }


def pod(name: str, cpu: str = "100m", app: str = "web", **spec: Any) -> Object:
    container: Object = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": name,
            "labels": {"app": app},
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {
            "containers": [container],
            "schedulerName": "default-scheduler",
            "priority": 0,
            **spec,
        },
        "status": {"phase": "Pending"},
    }


class Files:
    """A cluster that fits `waiting`; cases change it.

    Attributes:
        objects: all of them by (kind, name).
    """

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], Object] = {}
        for name, zone in (("a", "x"), ("b", "x"), ("c", "y")):
            self.add(node(name, zone))
        self.add(pod("waiting"))

    def add(self, obj: Object) -> None:
        self.objects[obj["kind"], obj["metadata"]["name"]] = obj

    @property
    def waiting(self) -> Object:
        return self.objects["Pod", "waiting"]

    @property
    def nodes(self) -> list[Object]:
        return [obj for (kind, _), obj in self.objects.items() if kind == "Node"]

    def running(self, cpu: str = "100m", **spec: Any) -> None:
        """A pod like this on every node."""
        for one in self.nodes:
            name = one["metadata"]["name"]
            self.add(pod(f"on-{name}", cpu, nodeName=name, **spec))

    def requests(self) -> Object:
        requests: Object = self.waiting["spec"]["containers"][0]["resources"]["requests"]
        return requests

    def write(self, path: Path) -> None:
        path.write_text(
            json.dumps({"apiVersion": "v1", "kind": "List", "items": list(self.objects.values())})
        )


@pytest.fixture
def why(
    kube_scheduler_binary: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Any]:
    """Runs the command over files; returns its document, or its text."""

    def run(files: Files, name: str = "waiting", *flags: str, code: int = 0) -> Any:
        path = tmp_path / "cluster.json"
        files.write(path)
        output = () if "-o" in flags else ("-o", "json")
        command = ["why", name, "--from-files", str(path), *output, *flags]
        command += ["--kube-scheduler", str(kube_scheduler_binary)]
        assert kubectl_plugin(command) == code, capsys.readouterr().err
        text = capsys.readouterr().out
        return json.loads(text) if output else text

    return run


def test_a_gated_pod_names_its_gates(why: Callable[..., Any]) -> None:
    files = Files()
    files.waiting["spec"]["schedulingGates"] = [{"name": "example.com/wait"}]
    text = why(files, "waiting", "-o", "text")
    assert '"example.com/wait"' in text
    assert "It fits on 3 of 3 nodes" in text


def test_a_pod_that_terminates_is_not_tried(why: Callable[..., Any]) -> None:
    files = Files()
    files.waiting["metadata"] |= {
        "deletionTimestamp": "2026-01-01T01:00:00Z",
        "finalizers": ["example.com/cleanup"],
    }
    files.waiting["spec"]["schedulingGates"] = [{"name": "example.com/wait"}]
    document = why(files)
    assert document["outcome"] == "terminating"
    assert document["ending"]["finalizers"] == ["example.com/cleanup"]
    assert (document["groups"], document["fixes"], document["decidedBy"]) == ([], [], None)
    assert why(files, "waiting", "-o", "text").splitlines() == [
        "Pod default/waiting has no node.",
        "kube-scheduler does not try a pod that terminates: default/waiting terminates since "
        "2026-01-01T01:00:00Z and stays until its finalizer example.com/cleanup is removed.",
    ]


def test_a_workload_stands_for_its_pod_that_kube_scheduler_tries(why: Callable[..., Any]) -> None:
    files = Files()
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "j", "controller": True}
    for name in ("old", "new"):
        files.add(pod(name))
        files.objects["Pod", name]["metadata"]["ownerReferences"] = [owner]
    files.objects["Pod", "old"]["metadata"]["deletionTimestamp"] = "2026-01-01T01:00:00Z"
    files.objects["Pod", "old"]["metadata"]["creationTimestamp"] = "2025-01-01T01:00:00Z"
    assert why(files, "job/j")["pod"] == "default/new"


def test_what_a_container_is_limited_to_it_requests(why: Callable[..., Any]) -> None:
    """A manifest that no API server has completed."""
    files = Files()
    files.waiting["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "9", "memory": None}}
    assert why(files)["fixes"][0]["text"] == "request 4 of cpu instead of 9"


def test_a_running_pod_may_be_on_a_node_that_is_gone(why: Callable[..., Any]) -> None:
    files = Files()
    files.waiting["spec"]["nodeName"] = "gone"
    text = why(files, "waiting", "-o", "text")
    assert "has node gone, and its containers do not run yet (phase Pending).\n" in text
    assert "\nNode gone does not exist.\n" in text
    files.waiting["status"] = {"phase": "Running"}
    text = why(files, "waiting", "-o", "text")
    assert "runs on node gone.\nNode gone does not exist.\n" in text


def test_a_pod_that_no_scheduler_serves_is_recognized(why: Callable[..., Any]) -> None:
    files = Files()
    files.waiting["spec"]["schedulerName"] = "unknown"
    text = why(files, "waiting", "-o", "text")
    assert 'No scheduler serves its spec.schedulerName "unknown"' in text


@pytest.mark.parametrize("disabled", ["", "NodeUnschedulable"])
def test_a_cordoned_node_has_one_cause(
    why: Callable[..., Any], tmp_path: Path, disabled: str
) -> None:
    """kubectl cordon sets a field, for which kube-controller-manager adds a taint."""
    files = Files()
    taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    for one in files.nodes:
        one["spec"] |= {"unschedulable": True, "taints": [taint]}
    files.nodes[1]["spec"].pop("unschedulable")  # the taint was left
    files.nodes[2]["spec"]["taints"] = [{**taint, "effect": "NoExecute"}]
    cordoned = ["the node is cordoned (spec.unschedulable)"]
    tainted = f"the node has the taint {taint['key']}:%s, which the pod does not tolerate"
    no_schedule, no_execute = [tainted % "NoSchedule"], [tainted % "NoExecute"]
    expected = {"a": cordoned, "b": no_schedule, "c": [*cordoned, *no_execute]}
    if disabled:
        expected = {"a": no_schedule, "b": no_schedule, "c": no_execute}
    config = tmp_path / "config.yaml"
    profile = {"plugins": {"filter": {"disabled": [{"name": disabled}] if disabled else []}}}
    config.write_text(json.dumps({**default_configuration(), "profiles": [profile]}))
    found = why(files, "waiting", "--config", str(config))
    causes = {
        name: [cause["text"] for cause in group["causes"]]
        for group in found["groups"]
        for name in group["nodes"]
    }
    assert causes == expected
    assert found["fixes"]


def test_preemption_names_the_pods_that_would_go(why: Callable[..., Any]) -> None:
    files = Files()
    files.running("3", priority=0)
    files.waiting["spec"]["priority"] = 100
    files.requests()["cpu"] = "3"
    found = why(files)
    (victim,) = found["now"]["preempted"]
    assert victim == f"default/on-{found['now']['node']}"


def test_a_running_pod_has_the_scores_of_all_nodes(why: Callable[..., Any]) -> None:
    files = Files()
    files.add(pod("there", "1", nodeName="a"))
    files.add(pod("full", "4", app="other", nodeName="b"))
    found = why(files, "there")
    assert set(found["scores"]) == {"a", "c"}
    assert set(found["now"]["best"]) == {"a", "c"}  # both are empty without it
    for node_scores in found["scores"].values():
        assert sum(node_scores["plugins"].values()) == node_scores["total"]
    text = why(files, "there", "-o", "text")
    assert "a still has the highest score (2 nodes tie)." in text
    assert "1 node (b): less than 1 of cpu is free" in text


def test_an_image_that_nodes_report_under_its_whole_name_is_named(
    why: Callable[..., Any],
) -> None:
    """kube-scheduler compares names as text (kubernetes/kubernetes#112699)."""
    files = Files()
    whole = "docker.io/library/nginx:1.10"
    files.nodes[0]["status"]["images"] = [{"names": [whole], "sizeBytes": 600 * 10**6}]
    files.add(pod("there", nodeName="a"))
    container = files.objects["Pod", "there"]["spec"]["containers"][0]
    scores = {}
    for image in ("nginx:1.10", whole):
        container["image"] = image
        found = why(files, "there")
        scores[image] = found["scores"]["a"]["plugins"].get("ImageLocality", 0)
        assert any(f'image "{image}"' in note for note in found["notes"]) is (image != whole)
    assert scores["nginx:1.10"] == 0
    assert scores[whole] > 0


def test_an_image_that_no_node_reports_is_named_where_scores_decide(
    why: Callable[..., Any], tmp_path: Path
) -> None:
    files = Files()
    files.nodes[0]["status"]["images"] = [{"names": ["web:1"], "sizeBytes": 600 * 10**6}]
    files.add(pod("there", nodeName="a"))
    files.objects["Pod", "there"]["spec"]["containers"][0]["image"] = "localhost/app:1"
    note = (
        'no node reports image "localhost/app:1" under this name, so ImageLocality gives it 0 '
        "points on every node"
    )
    assert note in why(files, "there")["notes"]
    config = tmp_path / "config.yaml"
    profile = {"plugins": {"score": {"disabled": [{"name": "ImageLocality"}]}}}
    config.write_text(json.dumps({**default_configuration(), "profiles": [profile]}))
    assert note not in why(files, "there", "--config", str(config))["notes"]
    for one in files.nodes[1:]:
        one["spec"]["unschedulable"] = True
    assert note not in why(files, "there")["notes"], "one node is left, and none is scored"


@pytest.mark.parametrize(("mebibytes", "points"), [(98, 0), (99, 1)])
def test_an_image_that_is_too_small_for_a_point_is_named(
    why: Callable[..., Any], tmp_path: Path, mebibytes: int, points: int
) -> None:
    """One of three nodes has the image, so a third of its size counts."""
    files = Files()
    image = "docker.io/library/nginx:1.20"
    files.nodes[0]["status"]["images"] = [{"names": [image], "sizeBytes": mebibytes * 2**20}]
    files.add(pod("there", nodeName="a"))
    files.objects["Pod", "there"]["spec"]["containers"][0]["image"] = image
    alone = {"disabled": [{"name": "*"}], "enabled": [{"name": "ImageLocality"}]}
    config = tmp_path / "config.yaml"
    profile = {"plugins": {"preScore": {"disabled": [{"name": "*"}]}, "score": alone}}
    config.write_text(json.dumps({**default_configuration(), "profiles": [profile]}))
    explained = why(files, "there", "--config", str(config))
    assert explained["scores"]["a"]["plugins"].get("ImageLocality", 0) == points
    assert any("distinguishes no nodes" in note for note in explained["notes"]) is (points == 0)


def test_a_configuration_in_the_files_is_used(why: Callable[..., Any], tmp_path: Path) -> None:
    files = Files()
    for one in files.nodes:
        one["spec"]["taints"] = [{"key": "dedicated", "value": "team", "effect": "NoSchedule"}]
    config = tmp_path / "config.yaml"
    profile = {"plugins": {"filter": {"disabled": [{"name": "TaintToleration"}]}}}
    config.write_text(json.dumps({**default_configuration(), "profiles": [profile]}))
    assert not why(files)["candidates"]
    assert len(why(files, "waiting", "--config", str(config))["candidates"]) == 3


def test_what_cannot_be_run_is_an_error(
    kube_scheduler_binary: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "cluster.json"
    Files().write(path)
    command, binary = ["why", "waiting", "--from-files", str(path)], str(kube_scheduler_binary)
    assert kubectl_plugin([*command, "--kube-scheduler", str(tmp_path / "nothing")]) == 2
    assert "this is not an executable file" in capsys.readouterr().err
    assert (
        kubectl_plugin(["why", "other", "--from-files", str(path), "--kube-scheduler", binary]) == 1
    )
    assert "pod default/other is not among" in capsys.readouterr().err
    assert kubectl_plugin([*command, "-n", "shop", "--kube-scheduler", binary]) == 1
    assert "in namespace default: use -n" in capsys.readouterr().err
    config = tmp_path / "config.yaml"
    wrong = {"profiles": [{"plugins": {"score": {"enabled": [{"name": "Unknown"}]}}}]}
    config.write_text(json.dumps({**default_configuration(), **wrong}))
    options = ["--config", str(config), "--kube-scheduler", binary]
    assert kubectl_plugin([*command, *options]) == 1
    assert "Unknown" in capsys.readouterr().err


def test_an_object_that_kube_scheduler_cannot_decode_is_named_at_once(
    kube_scheduler_binary: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, binary = tmp_path / "cluster.json", str(kube_scheduler_binary)
    files = Files()
    files.add(pod("odd", nodeSelector={"gpu": True}))
    files.write(path)
    began = time.monotonic()
    command = ["why", "odd", "--from-files", str(path), "--kube-scheduler", binary]
    assert kubectl_plugin(command) == 1
    assert time.monotonic() - began < 60
    assert "cannot decode a Pod: json: cannot unmarshal bool" in capsys.readouterr().err


def test_files_without_a_node_are_wrong_usage(
    kube_scheduler_binary: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "pod.json"
    path.write_text(json.dumps(pod("waiting")))
    options = ["--from-files", str(path), "--kube-scheduler", str(kube_scheduler_binary)]
    for command in (["why", "waiting"], ["pending"], ["simulate"]):
        assert kubectl_plugin([*command, *options]) == 2
        assert "there is no Node; add the output of kubectl get" in capsys.readouterr().err


def test_the_overhead_of_a_runtime_class_is_a_part_of_what_to_reduce(
    why: Callable[..., Any],
) -> None:
    files = Files()
    files.add(pod("waiting", cpu="1", overhead={"cpu": "5"}))
    texts = [each["text"] for each in why(files)["fixes"]]
    assert any("no RuntimeClass with an overhead" in text for text in texts)
    assert "request no cpu" not in texts


def _world() -> World:
    world = World()
    for obj in Files().objects.values():
        world.add(obj)
    world.complete()
    return world


def _schedulers(parent: int) -> set[int]:
    """The simulated schedulers of a process: other tests have some at the same time."""
    listed = subprocess.run(
        ["ps", "-ewwo", "pid=,ppid=,args="], capture_output=True, text=True, check=True
    )
    found = set()
    for line in listed.stdout.splitlines():
        pid, ppid, args = line.split(maxsplit=2)
        if int(ppid) == parent and "kube-scheduler-simulation-" in args:
            found.add(int(pid))
    return found


def test_no_process_is_left_whatever_happens(kube_scheduler_binary: Path) -> None:
    async def fail() -> None:
        async with Run(_world(), RunOptions(kube_scheduler_binary, default_configuration())):
            raise KeyError("test")

    async def cancel() -> None:
        async with Run(_world(), RunOptions(kube_scheduler_binary, default_configuration())) as run:
            asyncio.get_running_loop().call_later(0.2, asyncio.current_task().cancel)  # type: ignore[union-attr]
            await run.schedule([pod("p", schedulerName="default-scheduler"), _impossible()])
            await asyncio.sleep(60)

    with pytest.raises(KeyError):
        asyncio.run(fail())
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancel())
    assert _schedulers(os.getpid()) == set()


def _impossible() -> Object:
    return pod("q", "99")


def test_no_process_survives_a_killed_command(kube_scheduler_binary: Path, tmp_path: Path) -> None:
    path = tmp_path / "cluster.json"
    Files().write(path)
    code = (
        "import asyncio, json, sys, time\n"
        "from pathlib import Path\n"
        "from kube_scheduler_operator.simulate.run import Run\n"
        "from kube_scheduler_operator.simulate.run_options import RunOptions\n"
        "from kube_scheduler_operator.simulate.world import World\n"
        "async def main():\n"
        "    async with Run(World(), RunOptions(Path(sys.argv[1]), {})):\n"
        "        print('started', flush=True)\n"
        "        await asyncio.sleep(60)\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(kube_scheduler_binary)], stdout=subprocess.PIPE
    ) as command:
        assert command.stdout is not None
        assert command.stdout.readline() == b"started\n"
        (started,) = _schedulers(command.pid)
        command.kill()
    end = time.monotonic() + 10
    while b"kube-scheduler-simulation-" in _arguments(started):
        assert time.monotonic() < end
        time.sleep(0.05)


def _arguments(pid: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def test_the_time_is_bounded(kube_scheduler_binary: Path) -> None:
    options = RunOptions(kube_scheduler_binary, default_configuration(), seconds=0.0)

    async def run() -> None:
        async with Run(_world(), options) as one:
            await one.schedule([pod("p")])

    with pytest.raises(SimulationError, match="has not decided about 1 pod within 0 s"):
        asyncio.run(run())


def _of_daemon_set(where: str, *requests: str, **spec: Any) -> Object:
    """The waiting pod that a DaemonSet has made for a node."""
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "controller": True}
    field = {"key": "metadata.name", "operator": "In", "values": [where]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    waiting = pod("waiting", *requests, affinity={"nodeAffinity": required}, **spec)
    waiting["metadata"]["ownerReferences"] = [{**owner, "uid": "u"}]
    return waiting


def test_what_makes_room_for_the_pod_of_a_daemon_set_is_named(why: Callable[..., Any]) -> None:
    """It can run on one node alone, whose places others have."""
    files = Files()
    waiting = _of_daemon_set("a", app="agent")
    files.add(waiting)
    files.add(node("a", "x", amounts={"pods": "2"}))
    files.add(pod("important", nodeName="a", priority=10))
    files.add(pod("other", nodeName="a"))
    found = why(files)
    texts = [fix["text"] for fix in found["fixes"]]
    assert texts == [
        "delete pod default/other of node a, or move it to another node",
        "delete pod default/important of node a, or move it to another node",
        "use a PriorityClass with a value of at least 1: it preempts default/other",
    ]
    assert all(fix["nodes"] == ["a"] for fix in found["fixes"])
    assert found["fixes"][2]["object"] == "DaemonSet default/agent"
    assert found["fixes"][2]["field"] == "spec.template.spec.priorityClassName"
    causes = {cause["text"] for group in found["groups"] for cause in group["causes"]}
    assert causes == {
        "2 of 2 pods run on the node (allocatable pods)",
        "the pod is for node a alone: DaemonSet agent has one for each node",
    }


def test_what_makes_room_is_not_asked_where_the_pod_preempts_others(
    why: Callable[..., Any],
) -> None:
    """The room of those that it preempts would be free in each further trial."""
    files = Files()
    waiting = _of_daemon_set("a", "3", priority=5)
    files.add(waiting)
    files.add(node("a", "x"))
    files.add(pod("large", "3", nodeName="a"))
    files.add(pod("small", "100m", nodeName="a", priority=-1))
    found = why(files)
    assert found["now"]["preempted"] == ["default/large"]
    assert not any("small" in fix["text"] for fix in found["fixes"])


def test_a_pod_of_a_daemon_set_need_not_ask_for_less_if_others_can_move(
    why: Callable[..., Any],
) -> None:
    files = Files()
    waiting = _of_daemon_set("a", "2", app="agent")
    files.add(waiting)
    files.add(node("a", "x"))
    files.add(pod("other", "3", nodeName="a"))
    assert [fix["text"] for fix in why(files)["fixes"]] == [
        "delete pod default/other of node a, or move it to another node",
        "use a PriorityClass with a value of at least 1: it preempts default/other",
        "request 1 of cpu instead of 2",
    ]
