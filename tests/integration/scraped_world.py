"""A cluster under load with all programs that serve metrics, and Prometheus that scrapes them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster import scheduling
from cluster.api import Api
from monitoring.prometheus import Prometheus, running, target
from monitoring.scheduler_load import PROFILES, Load, loaded

from .harness import NAMESPACE
from .operator_world import REPOSITORY, World, operator_world

_RULES = {
    "syncPolicy": [
        {"name": f"{resource}_usage_{window}", "periodSeconds": 20}
        for resource in ("cpu", "mem")
        for window in ("avg_5m", "max_avg_1h", "max_avg_1d")
    ],
    "graceSeconds": 10,
    "cycleSeconds": 1,
    "refreshSeconds": 8,
}
_EXTENDER = {
    "agents": [{"name": "packed", "policies": [{"policy": "pigeon-holing"}]}],
}


@dataclass
class Scraped:
    world: World
    load: Load
    scheduler: scheduling.Scheduler
    prometheus: Prometheus
    folder: Path
    arguments: tuple[str, ...]  # of the operator
    extenders: Sequence[Mapping[str, Any]]

    def start_scheduler(self) -> None:
        self.scheduler.start(extenders=[dict(one) for one in self.extenders], profiles=PROFILES)


def operator_target(world: World) -> dict[str, Any]:
    """The operator's port, with a token that may read its metrics."""
    token = _token(world.api)
    labels = {"namespace": NAMESPACE, "pod": "operator"}
    job = "kube-scheduler-operator"
    return target(job, world.operator.port, https=True, token=token, labels=labels)


@contextmanager
def scraped(name: str, folder: Path, rules: Mapping[str, Any] | None = None) -> Iterator[Scraped]:
    """Start everything; `rules` are evaluated by Prometheus."""
    with ExitStack() as stack:
        enter = stack.enter_context
        # A port that outlives a restart, for Prometheus.
        flags = "--pending-pods-interval=1", f"--listen=127.0.0.1:{scheduling.free_port()}"
        world = enter(operator_world(name, folder, *flags))
        load = enter(loaded(world.api))
        ports = {one: scheduling.free_port() for one in ("extender", "annotator", "node-metrics")}
        for command in _programs(world, folder, ports):
            enter(_process(command, folder))
        scheduler = scheduling.Scheduler(world.sandbox)
        stack.callback(scheduler.stop)
        of_scheduler: dict[str, Any] = {"https": True, "labels": {"namespace": "kube-system"}}
        targets = [
            target("scheduler", scheduler.port, **of_scheduler),
            target("scheduler", scheduler.port, "/metrics/resources", **of_scheduler),
            operator_target(world),
            *(target(job, port) for job, port in ports.items()),
        ]
        prometheus = enter(running(folder, targets, rules))
        extender = {
            "urlPrefix": f"http://127.0.0.1:{ports['extender']}/packed",
            "filterVerb": "filter",
            "prioritizeVerb": "prioritize",
            "weight": 1,
            "nodeCacheCapable": True,
            "ignorable": True,
        }
        found = Scraped(world, load, scheduler, prometheus, folder, flags, [extender])
        found.start_scheduler()
        yield found


def _programs(world: World, folder: Path, ports: Mapping[str, int]) -> Iterator[list[str]]:
    kubeconfig = f"--kubeconfig={world.sandbox.kubeconfig}"
    extender, policy = folder / "extender.json", folder / "policy.json"
    document = {**_EXTENDER, "listen": {"port": ports["extender"]}}
    extender.write_text(json.dumps(document))
    source = {"type": "NodeMetrics", "port": ports["node-metrics"], "timeoutSeconds": 5}
    policy.write_text(json.dumps({**_RULES, "source": source}))
    state = {"metadata": {"name": "load-state", "namespace": NAMESPACE}}
    world.api.create(f"/api/v1/namespaces/{NAMESPACE}/configmaps", state)
    yield ["extender", "--config", str(extender), kubeconfig]
    yield [
        "annotator", kubeconfig, f"--namespace={NAMESPACE}", f"--config={policy}",
        f"--listen-address=127.0.0.1:{ports['annotator']}",
    ]  # fmt: skip
    # On all addresses, so that it is the exporter of every hollow node.
    yield ["node-metrics", f"--listen-address=0.0.0.0:{ports['node-metrics']}", "--interval=1"]


@contextmanager
def _process(words: Sequence[str], folder: Path) -> Iterator[None]:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "operator")}
    command = [sys.executable, "-m", "kube_scheduler_operator", *words]
    with (folder / f"{words[0]}.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)


def _token(api: Api) -> str:
    name = "prometheus"
    accounts = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts"
    roles = "/apis/rbac.authorization.k8s.io/v1"
    rule = {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}
    subject = {"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    metadata = {"metadata": {"name": name}}
    api.create(accounts, metadata)
    api.create(f"{roles}/clusterroles", {**metadata, "rules": [rule]})
    binding = {**metadata, "roleRef": role, "subjects": [subject]}
    api.create(f"{roles}/clusterrolebindings", binding)
    request = {"spec": {"expirationSeconds": 36000}}
    answer = api.request("POST", f"{accounts}/{name}/token", request)
    return str(answer["status"]["token"])
