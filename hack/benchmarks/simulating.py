"""`why` and `pending`, from a world in files: duration from start to answer, and memory."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.table import REPOSITORY, Row
from cluster import lifecycle, teardown
from cluster.api import Api

LARGE: Final = (5_000, 30_000)
SMALL: Final = (100, 600)
MOST_SECONDS: Final = {LARGE: 30.0, SMALL: 3.0}
MOST_SECONDS_IN_CLUSTER: Final = 10.0
MOST_MEBIBYTES: Final = 1024.0
NAME: Final = "bench-simulate"
_ZONE: Final = "topology.kubernetes.io/zone"
_TYPE: Final = "node.kubernetes.io/instance-type"
_TYPES: Final = (("small", "8", "32Gi"), ("large", "32", "128Gi"), ("gpu", "16", "64Gi"))
_APPS: Final = 300
_VARIABLES: Final = 15

_PROGRAM: Final = """
import json, resource, sys, time
begun = time.monotonic()
import asyncio
from pathlib import Path
from kube_scheduler_operator.simulate.configuration import default_configuration
from kube_scheduler_operator.simulate.kinds import PODS
from kube_scheduler_operator.simulate.pending import waiting_groups
from kube_scheduler_operator.simulate.read_files import read_files
from kube_scheduler_operator.simulate.run_options import RunOptions
from kube_scheduler_operator.simulate.why import explain
imported = time.monotonic()
world = read_files([Path(sys.argv[1])]).world
read = time.monotonic()
options = RunOptions(Path(sys.argv[2]), default_configuration(), seconds=600)
if sys.argv[3] == "why":
    pod = world.get(PODS, "waiting", "team-0")
    found = asyncio.run(explain(world, pod, options))
    assert found.fixes, found
else:
    groups = asyncio.run(waiting_groups(world, options, None, 5))
    assert sum(len(group.pods) for group in groups) == 1000, groups
end = time.monotonic()
mebibytes = [resource.getrusage(who).ru_maxrss / 1024
             for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
memory = [*mebibytes, sum(mebibytes)]
print(json.dumps([end - begun, imported - begun, read - imported, end - read, *memory]))
"""
_PARTS: Final = (
    ("whole", "s"),
    ("imports", "s"),
    ("reading the files", "s"),
    ("kube-scheduler", "s"),
    ("memory of Python", "MiB"),
    ("memory of kube-scheduler", "MiB"),
    ("memory of both", "MiB"),
)


def measure(repeat: int, binary: Path) -> Iterator[Row]:
    """All figures, as they come."""
    for size in (SMALL, LARGE):
        for question, waiting in (("why", (_waiting(),)), ("pending", many_waiting())):
            with tempfile.TemporaryDirectory(prefix="bench-simulate-") as folder:
                write_world(Path(folder), *size, waiting)
                runs = [_run(Path(folder), binary, question) for _ in range(repeat)]
            targets = {"memory of both": MOST_MEBIBYTES}
            if question == "why":
                targets["whole"] = MOST_SECONDS[size]
            for at, (name, unit) in enumerate(_PARTS):
                values = [run[at] for run in runs]
                title = f"{question}, {size[0]} nodes: {name}"
                yield Row(title, values, unit, targets.get(name))


def measure_in_cluster(repeat: int) -> Iterator[Row]:
    """`why --in-cluster` as a user types it, in a sandbox with 100 more Nodes and their pods.

    The containers start on a real node; the images are there.
    """
    try:
        sandbox = lifecycle.up(NAME, 1, 0, with_operator=True)
        api = Api(sandbox)
        nodes, pods = SMALL
        for number in range(nodes):
            api.request("POST", "/api/v1/nodes", node_object(number))
        running = [pod_object(number, f"node-{number % nodes:05d}") for number in range(pods)]
        for pod in (*running, _waiting()):
            pod["metadata"] = {key: pod["metadata"][key] for key in ("name", "labels")}
            api.request("POST", "/api/v1/namespaces/default/pods", pod)
        seconds = [_ask_cluster(sandbox.kubeconfig) for _ in range(repeat)]
        yield Row(f"why, {nodes} nodes: in the cluster", seconds, "s", MOST_SECONDS_IN_CLUSTER)
    finally:
        teardown.down(NAME)


def _ask_cluster(kubeconfig: Path) -> float:
    program = "import sys; from kube_scheduler_operator.__main__ import kubectl_plugin; "
    command = [sys.executable, "-c", f"{program}sys.exit(kubectl_plugin())", "why", "waiting"]
    begun = time.monotonic()
    subprocess.run(
        [*command, "--in-cluster"],
        stdout=subprocess.DEVNULL,
        check=True,
        env={
            "KUBECONFIG": str(kubeconfig),
            "PYTHONPATH": str(REPOSITORY / "operator"),
            "PATH": "/usr/bin:/bin",
        },
    )
    return time.monotonic() - begun


def _run(folder: Path, binary: Path, question: str) -> list[float]:
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, folder, binary, question],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env={"PYTHONPATH": str(REPOSITORY / "operator"), "PATH": "/usr/bin:/bin"},
    )
    figures: list[float] = json.loads(done.stdout)
    return figures


def write_world(
    folder: Path, nodes: int, pods: int, waiting: Sequence[dict[str, Any]] = ()
) -> None:
    """nodes.json and pods.json, with all that kubectl prints: 10 KiB for each object."""
    chance = random.Random(nodes)
    _write(folder / "nodes.json", (node_object(number) for number in range(nodes)))
    running = (pod_object(number, f"node-{chance.randrange(nodes):05d}") for number in range(pods))
    _write(folder / "pods.json", (*running, *waiting))


def _write(path: Path, objects: Any) -> None:
    with path.open("w") as file:
        file.write('{\n    "apiVersion": "v1",\n    "items": [\n')
        for number, obj in enumerate(objects):
            file.write(",\n" if number else "")
            file.write(json.dumps(obj, indent=4))
        file.write('\n    ],\n    "kind": "List",\n    "metadata": {}\n}\n')


def node_object(number: int) -> dict[str, Any]:
    name = f"node-{number:05d}"
    kind, cpu, memory = _TYPES[number % len(_TYPES)]
    amounts = {"cpu": cpu, "memory": memory, "pods": "110", "ephemeral-storage": "100Gi"}
    labels = {"kubernetes.io/hostname": name, _ZONE: "abc"[number // 3 % 3], _TYPE: kind}
    taints = [{"key": "gpu", "value": "true", "effect": "NoSchedule"}] if kind == "gpu" else []
    conditions = [
        {"type": each, "status": "False", "message": "kubelet has sufficient memory available"}
        for each in ("MemoryPressure", "DiskPressure", "PIDPressure")
    ]
    images = [
        {
            "names": [f"registry.example.com/app-{(number + at) % _APPS}:v1"],
            "sizeBytes": 100_000_000,
        }
        for at in range(20)
    ]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": taints},
        "status": {
            "allocatable": amounts,
            "capacity": amounts,
            "conditions": [*conditions, {"type": "Ready", "status": "True"}],
            "images": images,
        },
    }


def pod_object(number: int, node: str) -> dict[str, Any]:
    """Every third pod spreads over zones, every tenth one has an anti-affinity."""
    app = f"app-{number % _APPS}"
    selector = {"matchLabels": {"app": app}}
    spec: dict[str, Any] = {
        "nodeName": node,
        "schedulerName": "default-scheduler",
        "priority": 0,
        "containers": [
            {
                "name": "app",
                "image": f"registry.example.com/{app}:v1",
                "env": [
                    {"name": f"VARIABLE_{at}", "value": f"value {at}"} for at in range(_VARIABLES)
                ],
                "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}},
            }
        ],
    }
    if number % 3 == 0:
        rule = {"maxSkew": 1, "topologyKey": _ZONE, "whenUnsatisfiable": "ScheduleAnyway"}
        spec["topologySpreadConstraints"] = [{**rule, "labelSelector": selector}]
    if number % 10 == 0:
        term = {"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        spec["affinity"] = {"podAntiAffinity": required}
    statuses = ("PodReadyToStartContainers", "Initialized", "Ready", "PodScheduled")
    conditions = [{"type": each, "status": "True"} for each in statuses]
    metadata = {
        "name": f"{app}-{number:05d}",
        "namespace": f"team-{number % 40}",
        "uid": f"pod-{number}",
        "creationTimestamp": "2026-02-01T00:00:00Z",
        "labels": {"app": app},
    }
    status = {"phase": "Running", "conditions": conditions}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def _waiting() -> dict[str, Any]:
    """More CPU than its kind of node has, an anti-affinity and a spread."""
    pod = pod_object(0, "")
    pod["metadata"].update(name="waiting", namespace="team-0", uid="waiting")
    spec = pod["spec"]
    del spec["nodeName"]
    spec["nodeSelector"] = {_TYPE: "small"}
    spec["containers"][0]["resources"]["requests"]["cpu"] = "9"
    spec["topologySpreadConstraints"][0]["whenUnsatisfiable"] = "DoNotSchedule"
    pod["status"] = {"phase": "Pending"}
    return pod


def many_waiting() -> list[dict[str, Any]]:
    """1,000 pods of 50 workloads, which wait for several causes; a fifth of them fits."""
    pods = []
    for number in range(1000):
        workload = number % 50
        pod = pod_object(workload, "")
        pod["metadata"].update(name=f"waiting-{number}", namespace=f"team-{workload % 40}")
        pod["metadata"]["uid"] = f"waiting-{number}"
        spec = pod["spec"]
        del spec["nodeName"]
        requests = spec["containers"][0]["resources"]["requests"]
        match workload % 5:
            case 0:
                requests["cpu"] = "33"
            case 1:
                spec["nodeSelector"] = {_ZONE: "d"}
            case 2:
                spec["nodeSelector"] = {_TYPE: "gpu"}
            case 3:
                requests["memory"] = "200Gi"
        pod["status"] = {"phase": "Pending"}
        pods.append(pod)
    return pods
