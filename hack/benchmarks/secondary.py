"""Fifty SecondarySchedulers in one pass: the real store, snapshot, pass and executor, no network.

Run by the virtual environment's Python, because the operator's libraries are there; prints the rows
that `hack/bench secondary` shows.
"""

from __future__ import annotations

import asyncio
import copy
import json
import resource as process
import subprocess
import sys
import time
from datetime import UTC, datetime
from typing import Any

from benchmarks.table import REPOSITORY, Row

SCHEDULERS = 50
PASSES = 40
TARGET = 100.0
MEMORY = 120.0
IMAGE = "registry.k8s.io/kube-scheduler:v1.35.4"


def measure() -> list[Row]:
    """The rows, from a process of its own."""
    python = REPOSITORY / ".venv/bin/python"
    command = [str(python) if python.exists() else sys.executable, "-m", "benchmarks.secondary"]
    environment = {"PYTHONPATH": f"{REPOSITORY / 'hack'}:{REPOSITORY / 'operator'}"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return [Row(*values) for values in json.loads(done.stdout)]


class _Memory:
    """An API server that takes everything."""

    def __init__(self) -> None:
        self.version = 0
        self.writes: list[str] = []

    async def create(self, resource: Any, obj: Any, **_: Any) -> Any:
        return self._write("create", resource, obj)

    async def replace(self, resource: Any, obj: Any, *, subresource: Any = None, **_: Any) -> Any:
        return self._write(f"replace {subresource or ''}".strip(), resource, obj)

    def _write(self, verb: str, resource: Any, obj: Any) -> Any:
        self.writes.append(f"{verb} {resource.kind}")
        self.version += 1
        made = copy.deepcopy(dict(obj))
        made["metadata"] |= {"resourceVersion": str(self.version)}
        made["metadata"].setdefault("uid", f"uid-{self.version}")
        made["metadata"].setdefault("generation", 1)
        return made


class _Silent:
    def event(self, *_: Any) -> None:
        """Nobody listens."""


class _Bench:
    """A cluster with so many SecondarySchedulers, all of which run."""

    def __init__(self, number: int) -> None:
        from kube_scheduler_operator.executor import Executor
        from kube_scheduler_operator.kube.store import Store

        self.api = _Memory()
        self.store = Store()
        self.executor = Executor(self.api, self.store, _Silent())  # type: ignore[arg-type]
        for index in range(number):
            self.put(index)

    def put(self, index: int, **spec: Any) -> None:
        """Create or edit one; no two have the same configuration."""
        from kube_scheduler_operator.kube.resource import SECONDARY_SCHEDULERS

        name = f"scheduler-{index}"
        before = self.store.view().get(SECONDARY_SCHEDULERS, name)
        metadata = {"name": name, "uid": f"uid-{index}", "generation": 1 + (before is not None)}
        profiles = [
            {"schedulerName": f"{name}-{k}", "plugins": {"score": {"disabled": [{"name": "*"}]}}}
            for k in range(2)
        ]
        obj = {
            **(before or {}),
            "metadata": metadata,
            "spec": {
                "namespace": "kube-scheduler-operator",
                "profiles": [{}, *profiles],
                "config": {"parallelism": index + 1},
                **spec,
            },
        }
        self.store.put(SECONDARY_SCHEDULERS, self.api._write("put", SECONDARY_SCHEDULERS, obj))
        self.api.writes.clear()

    def one_pass(self) -> tuple[Any, float]:
        """The plan of a pass, and how many milliseconds of CPU it took."""
        from kube_scheduler_operator.handlers import take_snapshot
        from kube_scheduler_operator.platform import KUBEADM
        from kube_scheduler_operator.reconcile import reconcile
        from kube_scheduler_operator.settings import Settings

        begun = time.process_time()
        snapshot = take_snapshot(
            self.store,
            KUBEADM,
            Settings(operand_image=IMAGE),
            server_version="v1.35.4",
            lease_seen=None,
            answered_since=datetime.now(UTC),
            recovered_at=None,
            trouble="",
            now=datetime.now(UTC),
        )
        plan = reconcile(snapshot)
        return plan, 1000 * (time.process_time() - begun)

    async def settle(self) -> None:
        """Passes until nothing is left; every rollout comes to a good end at once."""
        from kube_scheduler_operator.kube.resource import DEPLOYMENTS

        while (plan := self.one_pass()[0]).chains:
            await self.executor.execute(plan)
            for deployment in self.store.view().list(DEPLOYMENTS):
                if not deployment.get("status"):
                    self._roll_out(deployment)

    def _roll_out(self, deployment: Any) -> None:
        from kube_scheduler_operator.kube.resource import DEPLOYMENTS, PODS

        replicas = deployment["spec"]["replicas"]
        counts = dict.fromkeys(("replicas", "updatedReplicas", "availableReplicas"), replicas)
        status = {**counts, "observedGeneration": deployment["metadata"]["generation"]}
        made = self.api._write("put", DEPLOYMENTS, {**deployment, "status": status})
        self.store.put(DEPLOYMENTS, made)
        template = deployment["spec"]["template"]
        for index in range(replicas):
            metadata = {
                "name": f"{deployment['metadata']['name']}-{index}",
                "namespace": deployment["metadata"]["namespace"],
                "labels": template["metadata"]["labels"],
            }
            ready = {"conditions": [{"type": "Ready", "status": "True"}]}
            pod = {"metadata": metadata, "spec": template["spec"], "status": ready}
            self.store.put(PODS, self.api._write("put", PODS, pod))


async def _measure() -> list[tuple[str, list[float], str, float | None]]:
    bench = _Bench(SCHEDULERS)
    cold = bench.one_pass()[1]
    await bench.settle()
    calm = [bench.one_pass() for _ in range(PASSES)]
    assert not any(plan.chains for plan, _ in calm), "there is something left to do"
    edits, writes = [], []
    for index in range(PASSES // 2):
        bench.put(index, logLevel="Debug")
        plan, took = bench.one_pass()
        edits.append(took)
        await bench.executor.execute(plan)
        writes.append(float(len(bench.api.writes)))
        await bench.settle()
    peak = process.getrusage(process.RUSAGE_SELF).ru_maxrss / 1024
    return [
        (f"{SCHEDULERS} SecondarySchedulers, first pass of a process", [cold], "ms of CPU", None),
        (
            f"{SCHEDULERS}, a pass with nothing to do",
            [took for _, took in calm],
            "ms of CPU",
            TARGET,
        ),
        (f"{SCHEDULERS}, the pass after one edit", edits, "ms of CPU", TARGET),
        ("writes of that pass", writes, "", 3.0),
        ("memory of the process, at most", [peak], "MiB", MEMORY),
    ]


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_measure())))
