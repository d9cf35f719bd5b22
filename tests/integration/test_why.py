"""`kubectl scheduler why` names the cause and the smallest fix, and the fixed pod is placed.

The cluster is in files and the kube-scheduler is real. Each case changes a pod that fits, or the
cluster around it, so that one thing keeps it from all nodes.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from kube_scheduler_operator.__main__ import kubectl_plugin
from kube_scheduler_operator.simulate.configuration import default_configuration
from kube_scheduler_operator.simulate.process import SimulationError
from kube_scheduler_operator.simulate.run import Run, RunOptions
from kube_scheduler_operator.simulate.world import World

Object = dict[str, Any]
HOST: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


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


Case = tuple[Callable[[Files], None], str, str, Callable[[Files], None] | None]
"""What keeps the pod from all nodes; parts of the cause and of the first fix; applies the fix."""

CASES: dict[str, Case] = {}


def case(cause: str, fix: str, apply: Callable[[Files], None] | None = None) -> Any:
    def register(function: Callable[[Files], None]) -> Callable[[Files], None]:
        CASES[function.__name__.replace("_", " ").strip()] = (function, cause, fix, apply)
        return function

    return register


def _cpu(amount: str) -> Callable[[Files], None]:
    return lambda files: files.requests().update(cpu=amount)


def _spec(**fields: Any) -> Callable[[Files], None]:
    return lambda files: files.waiting["spec"].update(fields)


def _tolerating(**toleration: str) -> Callable[[Files], None]:
    return _spec(tolerations=[toleration])


@case("less than 3 of cpu is free", "request 2 of cpu instead of 3", _cpu("2"))
def too_much_cpu_beside_others(files: Files) -> None:
    files.running("2")
    files.requests()["cpu"] = "3"


@case("less than 9 of cpu is free", "request 4 of cpu instead of 9", _cpu("4"))
def more_cpu_than_any_node_has(files: Files) -> None:
    files.requests()["cpu"] = "9"


@case("less than 9Gi of memory", "request 8Gi of memory instead of 9Gi",
      lambda files: files.requests().update(memory="8Gi"))  # fmt: skip
def too_much_memory(files: Files) -> None:
    files.requests()["memory"] = "9Gi"


@case("of example.com/gpu is free", "request no example.com/gpu",
      lambda files: files.requests().pop("example.com/gpu") and None)  # fmt: skip
def a_resource_that_no_node_has(files: Files) -> None:
    files.requests()["example.com/gpu"] = "1"


@case("Too many pods", "add a node like")
def no_room_for_another_pod(files: Files) -> None:
    for one in files.nodes:
        one["status"]["allocatable"]["pods"] = "1"
    files.running()


@case("nodeSelector demands the label disk=tape", "remove disk=tape", _spec(nodeSelector={}))
def a_label_that_no_node_has(files: Files) -> None:
    files.waiting["spec"]["nodeSelector"] = {"disk": "tape"}


@case("the pod's node affinity demands topology.kubernetes.io/zone in z",
      "remove topology.kubernetes.io/zone in z",
      _spec(affinity={}))  # fmt: skip
def a_zone_without_nodes(files: Files) -> None:
    wanted = {"key": ZONE, "operator": "In", "values": ["z"]}
    terms = {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [wanted]}]}}
    files.waiting["spec"]["affinity"] = {"nodeAffinity": terms}


@case("demands disk in tape or ", "remove the required node affinity", _spec(affinity={}))
def two_terms_that_match_nothing(files: Files) -> None:
    terms = [
        {"matchExpressions": [{"key": key, "operator": "In", "values": ["tape"]}]}
        for key in ("disk", "other")
    ]
    required = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}
    files.waiting["spec"]["affinity"] = required


@case("the taint dedicated=team:NoSchedule", "tolerate dedicated=team:NoSchedule",
      _tolerating(key="dedicated", operator="Exists"))  # fmt: skip
def a_taint(files: Files) -> None:
    for one in files.nodes:
        one["spec"]["taints"] = [{"key": "dedicated", "value": "team", "effect": "NoSchedule"}]


@case("the taint broken:NoExecute", "tolerate broken:NoExecute",
      _tolerating(key="broken", operator="Exists"))  # fmt: skip
def a_taint_that_evicts(files: Files) -> None:
    for one in files.nodes:
        one["spec"]["taints"] = [{"key": "broken", "effect": "NoExecute"}]


@case("the taint a:NoSchedule", "tolerate a:NoSchedule, and tolerate b:NoSchedule",
      _spec(tolerations=[{"operator": "Exists"}]))  # fmt: skip
def two_taints(files: Files) -> None:
    for one in files.nodes:
        one["spec"]["taints"] = [{"key": key, "effect": "NoSchedule"} for key in "ab"]


@case("the node is cordoned", "uncordon the node",
      lambda files: files.nodes[0]["spec"].clear())  # fmt: skip
def cordoned_nodes(files: Files) -> None:
    taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    for one in files.nodes:
        one["spec"].update(unschedulable=True, taints=[taint])


@case("uses the host port 8080/TCP", "remove the hostPort 8080/TCP",
      lambda files: files.waiting["spec"]["containers"][0].pop("ports") and None)  # fmt: skip
def a_host_port_that_is_used(files: Files) -> None:
    files.running()
    for (kind, _), obj in files.objects.items():
        if kind == "Pod":
            obj["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 8080}]


def _term(app: str, key: str) -> Object:
    return {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}


@case("a pod with app=web runs in the node's kubernetes.io/hostname",
      "remove the pod anti-affinity to pods with app=web", _spec(affinity={}))  # fmt: skip
def an_anti_affinity(files: Files) -> None:
    files.running()
    rule = {"podAntiAffinity": {REQUIRED: [_term("web", HOST)]}}
    files.waiting["spec"]["affinity"] = rule


@case("no pod with app=db runs in the node's topology.kubernetes.io/zone",
      "remove the pod affinity to pods with app=db", _spec(affinity={}))  # fmt: skip
def an_affinity_to_pods_that_do_not_run(files: Files) -> None:
    files.waiting["spec"]["affinity"] = {"podAffinity": {REQUIRED: [_term("db", ZONE)]}}


@case("satisfy existing pods anti-affinity rules", "",
      lambda files: files.waiting["metadata"]["labels"].update(app="new"))  # fmt: skip
def an_anti_affinity_of_running_pods(files: Files) -> None:
    files.running(affinity={"podAntiAffinity": {REQUIRED: [_term("web", HOST)]}})


@case("pods would differ by more than 1 between values of topology.kubernetes.io/zone",
      "use ScheduleAnyway for the spread over topology.kubernetes.io/zone",
      _spec(topologySpreadConstraints=[]))  # fmt: skip
def a_spread_whose_other_zone_is_full(files: Files) -> None:
    for one in files.nodes[:2]:
        files.add(pod(f"on-{one['metadata']['name']}", nodeName=one["metadata"]["name"]))
    files.add(pod("big", "4", app="other", nodeName="c"))
    rule = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    files.waiting["spec"]["topologySpreadConstraints"] = [rule]


@case("between values of rack", "use ScheduleAnyway for the spread over rack",
      _spec(topologySpreadConstraints=[]))  # fmt: skip
def a_spread_over_a_label_that_no_node_has(files: Files) -> None:
    rule = {"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule"}
    files.waiting["spec"]["topologySpreadConstraints"] = [rule]


def _claim(files: Files, claim: Object, *more: Object) -> None:
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    files.waiting["spec"]["volumes"] = [volume]
    for obj in (claim, *more):
        files.add(obj)


def _object(kind: str, version: str, name: str, **fields: Any) -> Object:
    metadata = {"name": name, "uid": f"{kind}-{name}"}
    if kind.endswith("Claim"):
        metadata["namespace"] = "default"
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **fields}


def _storage_class(provisioner: str, mode: str) -> Object:
    version = "storage.k8s.io/v1"
    found = _object("StorageClass", version, "disk", provisioner=provisioner)
    return found | {"volumeBindingMode": mode}


def _unbound() -> Object:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "disk",
        "resources": {"requests": {"storage": "1Gi"}},
    }
    return _object("PersistentVolumeClaim", "v1", "data", spec=spec, status={"phase": "Pending"})


@case('persistentvolumeclaim "data" not found', "remove the volume data", _spec(volumes=[]))
def a_claim_that_does_not_exist(files: Files) -> None:
    _claim(files, node("d", "y"))


@case("unbound immediate PersistentVolumeClaims", "remove the volume data", _spec(volumes=[]))
def a_claim_that_waits_for_its_volume(files: Files) -> None:
    _claim(files, _unbound(), _storage_class("disk.example.com", "Immediate"))


@case("find available persistent volumes to bind", "remove the volume data", _spec(volumes=[]))
def a_claim_without_a_volume_and_a_provisioner(files: Files) -> None:
    mode = "WaitForFirstConsumer"
    _claim(files, _unbound(), _storage_class("kubernetes.io/no-provisioner", mode))


def _volume(where: str) -> Object:
    reach = {"key": HOST, "operator": "In", "values": [where]}
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "disk",
        "capacity": {"storage": "1Gi"},
        "local": {"path": "/nowhere"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [reach]}]}},
        "claimRef": {
            "namespace": "default", "name": "data", "uid": "PersistentVolumeClaim-data",
        },
    }  # fmt: skip
    return _object("PersistentVolume", "v1", "volume", spec=spec, status={"phase": "Bound"})


def _bound() -> Object:
    claim = _unbound()
    claim["spec"]["volumeName"] = "volume"
    claim["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    return claim | {"status": {"phase": "Bound"}}


@case("the volume data (data) cannot be used there", "request 1 of cpu instead of 2", _cpu("1"))
def a_volume_on_a_full_node(files: Files) -> None:
    _claim(files, _bound(), _volume("a"))
    files.add(pod("big", "3", app="other", nodeName="a"))
    files.requests()["cpu"] = "2"


@case("the volume data (data) cannot be used there", "remove the volume data", _spec(volumes=[]))
def a_volume_on_a_node_that_is_gone(files: Files) -> None:
    _claim(files, _bound(), _volume("gone"))


def _device(files: Files, count: int, *devices: str) -> None:
    version = "resource.k8s.io/v1"
    selector = {"cel": {"expression": "device.driver == 'gpu.example.com'"}}
    files.add(_object("DeviceClass", version, "gpu", spec={"selectors": [selector]}))
    request = {
        "name": "r",
        "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count},
    }
    spec = {"devices": {"requests": [request]}}
    files.add(_object("ResourceClaim", version, "gpu", spec=spec))
    for name in devices:
        content = {
            "driver": "gpu.example.com",
            "nodeName": name,
            "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "d"}],
        }
        files.add(_object("ResourceSlice", version, name, spec=content))
    files.waiting["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "gpu"}]


@case("the devices of the resource claim gpu are not available", "remove the resource claim gpu",
      _spec(resourceClaims=[]))  # fmt: skip
def more_devices_than_any_node_has(files: Files) -> None:
    _device(files, 2, "a", "b")


@case("the node is cordoned", "uncordon the node",
      lambda files: files.nodes[0]["spec"].clear())  # fmt: skip
def devices_on_a_cordoned_node(files: Files) -> None:
    _device(files, 1, "a")
    files.nodes[0]["spec"]["unschedulable"] = True


@case("disk=tape", "tolerate k:NoSchedule, and remove disk=tape from the nodeSelector",
      _spec(tolerations=[{"operator": "Exists"}], nodeSelector={}))  # fmt: skip
def two_constraints_of_every_node(files: Files) -> None:
    files.waiting["spec"]["nodeSelector"] = {"disk": "tape"}
    for one in files.nodes:
        one["spec"]["taints"] = [{"key": "k", "effect": "NoSchedule"}]


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


@pytest.mark.parametrize("name", CASES)
def test_the_cause_and_the_smallest_fix_are_named(name: str, why: Callable[..., Any]) -> None:
    change, cause, fix, apply = CASES[name]
    files = Files()
    assert why(files)["candidates"], "the pod fits before"
    change(files)
    found = why(files)
    assert found["candidates"] == []
    causes = [each for group in found["groups"] for each in group["causes"]]
    texts = [" ".join((each["text"], *each["scheduler"])) for each in causes]
    assert any(cause in text for text in texts), texts
    assert {name for group in found["groups"] for name in group["nodes"]} == {
        one["metadata"]["name"] for one in files.nodes
    }
    if fix:
        assert fix in found["fixes"][0]["text"], found["fixes"]
    if apply is not None:
        apply(files)
        fixed = why(files)
        assert fixed["now"]["node"], fixed
        if fix:
            assert fixed["now"]["node"] in fixed["candidates"]


def test_a_gated_pod_names_its_gates(why: Callable[..., Any]) -> None:
    files = Files()
    files.waiting["spec"]["schedulingGates"] = [{"name": "example.com/wait"}]
    text = why(files, "waiting", "-o", "text")
    assert '"example.com/wait"' in text
    assert "It fits on 3 of 3 nodes" in text


def test_a_pod_that_no_scheduler_serves_is_recognized(why: Callable[..., Any]) -> None:
    files = Files()
    files.waiting["spec"]["schedulerName"] = "unknown"
    text = why(files, "waiting", "-o", "text")
    assert 'No scheduler serves its spec.schedulerName "unknown"' in text


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
    assert "a still has the highest score (2 nodes tie, and chance decides)." in text
    assert "1 node (b): less than 1 of cpu is free" in text


def test_a_configuration_in_the_files_is_used(why: Callable[..., Any], tmp_path: Path) -> None:
    files = Files()
    a_taint(files)
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
    config = tmp_path / "config.yaml"
    wrong = {"profiles": [{"plugins": {"score": {"enabled": [{"name": "Unknown"}]}}}]}
    config.write_text(json.dumps({**default_configuration(), **wrong}))
    options = ["--config", str(config), "--kube-scheduler", binary]
    assert kubectl_plugin([*command, *options]) == 1
    assert "Unknown" in capsys.readouterr().err


def _world() -> World:
    world = World()
    for obj in Files().objects.values():
        world.add(obj)
    world.complete()
    return world


def _schedulers() -> set[str]:
    listed = subprocess.run(["ps", "-ewwo", "pid,args"], capture_output=True, text=True, check=True)
    return {line for line in listed.stdout.splitlines() if "kube-scheduler-simulation-" in line}


def test_no_process_is_left_whatever_happens(kube_scheduler_binary: Path) -> None:
    async def fail() -> None:
        async with Run(_world(), RunOptions(kube_scheduler_binary, default_configuration())):
            raise KeyError("test")

    async def cancel() -> None:
        async with Run(_world(), RunOptions(kube_scheduler_binary, default_configuration())) as run:
            asyncio.get_running_loop().call_later(0.2, asyncio.current_task().cancel)  # type: ignore[union-attr]
            await run.schedule([pod("p", schedulerName="default-scheduler"), _impossible()])
            await asyncio.sleep(60)

    before = _schedulers()
    with pytest.raises(KeyError):
        asyncio.run(fail())
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancel())
    assert _schedulers() <= before


def _impossible() -> Object:
    return pod("q", "99")


def test_no_process_survives_a_killed_command(kube_scheduler_binary: Path, tmp_path: Path) -> None:
    path = tmp_path / "cluster.json"
    Files().write(path)
    before = _schedulers()
    code = (
        "import asyncio, json, sys, time\n"
        "from pathlib import Path\n"
        "from kube_scheduler_operator.simulate.run import Run, RunOptions\n"
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
        started = _schedulers() - before
        command.kill()
    assert len(started) == 1
    end = time.monotonic() + 10
    while _schedulers() - before:
        assert time.monotonic() < end
        time.sleep(0.05)


def test_the_time_is_bounded(kube_scheduler_binary: Path) -> None:
    options = RunOptions(kube_scheduler_binary, default_configuration(), seconds=0.0)

    async def run() -> None:
        async with Run(_world(), options) as one:
            await one.schedule([pod("p")])

    with pytest.raises(SimulationError, match="has not decided about 1 pods within 0 s"):
        asyncio.run(run())
