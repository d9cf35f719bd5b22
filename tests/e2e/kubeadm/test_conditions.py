"""Every condition, sampled through an upgrade of three nodes and compared with what was true."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from cluster import node_files
from cluster.api import ApiError
from cluster.load import Load
from cluster.model import Node
from cluster.observe import CLUSTEROPERATOR, KUBESCHEDULER
from kube_scheduler_operator.base.names import OPERAND
from kube_scheduler_operator.node.protocol.upgrade_request import version_of
from kube_scheduler_operator.node.static_pod import manifest
from kube_scheduler_operator.node.static_pod.kubeadm import API_SERVER, WORK, image_in

from .conftest import V35, V36, Clusters, KubeadmCluster, reported

pytestmark = [pytest.mark.soak, pytest.mark.timeout(7200, func_only=True)]

LATE = 20.0
"""Seconds by which a condition may lag behind: a guard reads twice, and an API server restarts."""

SILENT = 15.0
"""Age in seconds of a node's Lease, which its kubelet renews each 10 s, from which on it reaches no
API server: while kubeadm replaces etcd, the API server of the node does not answer."""

Conditions = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class NodeTruth:
    """What a node's files and processes are."""

    scheduler: str  # the image in the scheduler's manifest; empty while it has none
    api_server: str
    process: int  # the scheduler's pid; 0 if none runs
    works: bool  # whether the directory of `kubeadm upgrade` exists
    connected: bool  # whether its kubelet reaches an API server

    @property
    def is_newer(self) -> bool:
        own, server = version_of(self.scheduler), version_of(self.api_server)
        return own is not None and server is not None and own[:2] > server[:2]


@dataclass(frozen=True)
class Sample:
    at: float
    truth: dict[str, NodeTruth]
    conditions: Conditions  # of KubeScheduler
    operator: Conditions  # of the ClusterOperator

    def reports(self, type_: str, text: str) -> bool:
        return text in self.conditions.get(type_, {}).get("message", "")


def is_connected(cluster: KubeadmCluster, node: Node) -> bool:
    path = f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{node.name}"
    renewed = datetime.fromisoformat(cluster.api.request("GET", path)["spec"]["renewTime"])
    return (datetime.now(UTC) - renewed).total_seconds() < SILENT


def look(cluster: KubeadmCluster, node: Node) -> NodeTruth:
    connected = is_connected(cluster, node)
    folder = node_files.root(cluster.sandbox, node) / "etc/kubernetes"
    path = folder / "manifests/kube-scheduler.yaml"
    data = path.read_bytes() if path.exists() else b""
    own = manifest.parse(data, "kube-scheduler").image or image_in(data, OPERAND)
    server = folder / "manifests/kube-apiserver.yaml"
    api_server = image_in(server.read_bytes() if server.exists() else b"", API_SERVER)
    works = any(path.name.startswith(WORK) for path in (folder / "tmp").glob("*"))
    return NodeTruth(own, api_server, cluster.scheduler(node)[0], works, connected)


def conditions(cluster: KubeadmCluster, path: str) -> Conditions:
    found = cluster.api.request("GET", path).get("status", {}).get("conditions") or ()
    return {one["type"]: one for one in found}


@contextmanager
def sampled(cluster: KubeadmCluster) -> Iterator[list[Sample]]:
    """Take a sample each second; the API is asked first, so that the truth is not older."""
    samples, over = list[Sample](), threading.Event()

    def sample() -> None:
        while not over.wait(1.0):
            try:
                own = conditions(cluster, KUBESCHEDULER)
                operator = conditions(cluster, CLUSTEROPERATOR)
                truth = {node.name: look(cluster, node) for node in cluster.sandbox.nodes}
            except (ApiError, OSError, AssertionError):
                continue  # an API server is replaced, or a file just now
            samples.append(Sample(time.monotonic(), truth, own, operator))

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield samples
    finally:
        over.set()
        thread.join()


def timeline(samples: list[Sample]) -> Iterator[str]:
    """When a node's truth or KubeadmUpgrade changed."""
    before: dict[str, str] = {}
    for now in samples:
        shown_now = {name: str(truth) for name, truth in now.truth.items()}
        upgrade = now.conditions.get("KubeadmUpgrade", {})
        shown_now["KubeadmUpgrade"] = f"{upgrade.get('status')}: {upgrade.get('message', '')}"
        for name, text in shown_now.items():
            if before.get(name) != text:
                yield f"after {now.at - samples[0].at:.0f} s: {name}: {text}"
        before = shown_now


def recent(samples: list[Sample], now: Sample) -> list[Sample]:
    """The samples that a condition may be about."""
    return [one for one in samples if now.at - LATE <= one.at <= now.at]


def wrong(samples: list[Sample]) -> Iterator[str]:
    """What a condition claimed although it had not been true for LATE, or did not claim."""
    begin = samples[0].at
    for now in samples:
        for claim in _wrong_claims(samples, now):
            yield f"after {now.at - begin:.0f} s: {claim}"


def _wrong_claims(samples: list[Sample], now: Sample) -> Iterator[str]:
    skew = now.conditions["VersionSkew"]
    newer = any(node.is_newer for one in recent(samples, now) for node in one.truth.values())
    if skew["status"] == "True" and not newer:
        yield f"VersionSkew: {skew['message']}"
    for node in now.truth:
        claimed = now.reports("KubeadmUpgrade", f'node "{node}": `kubeadm upgrade` uses')
        states = [one.truth[node] for one in recent(samples, now)]
        if claimed and not any(state.works for state in states):
            yield f"KubeadmUpgrade: no kubeadm works on {node}"
        shown = all(state.works and state.connected for state in states)
        if not claimed and shown and now.at - samples[0].at > LATE:
            yield f"KubeadmUpgrade: kubeadm works on {node}, unreported"
        missing = now.reports("StaticPodsDegraded", f'no scheduler pod on node "{node}"')
        gone = any(not one.truth[node].process for one in recent(samples, now))
        if missing and not gone:
            yield f"StaticPodsDegraded: {node} has a scheduler"
    yield from _wrong_availability(samples, now)


def _wrong_availability(samples: list[Sample], now: Sample) -> Iterator[str]:
    running = all(any(node.process for node in one.truth.values()) for one in recent(samples, now))
    available = now.conditions["StaticPodsAvailable"]
    if available["status"] != "True" and running:
        yield f"StaticPodsAvailable={available['status']}: {available.get('message')}"
    shown = now.operator.get("Available", {})
    bad = {
        line
        for line in shown.get("message", "").splitlines()
        if line == "no scheduler pod is Ready"
    }
    if shown.get("status") == "True" and bad:
        yield f"Available=True: {shown['message']}"
    invalid = "is not valid for it"
    if any(invalid in one.get("message", "") for one in now.conditions.values()):
        yield "the configuration is valid for both versions"
    if now.conditions["NodeInstallerDegraded"]["status"] == "True":
        yield f"NodeInstallerDegraded: {now.conditions['NodeInstallerDegraded']['message']}"


def test_conditions_are_true_through_an_upgrade(clusters: Clusters) -> None:
    cluster = clusters.get(3, V35)
    with sampled(cluster) as samples, Load(cluster.api, 0.5) as load:
        time.sleep(LATE)
        for number, node in enumerate(cluster.sandbox.nodes):
            cluster.upgrade(V36, node)
            ended = time.monotonic()
            if number == 0:
                cluster.follows(V36, (node,))
            print(f"{node.name}: {time.monotonic() - ended:.0f} s after kubeadm")
        cluster.follows(V36)
        time.sleep(LATE)
    print(f"{len(samples)} samples", *timeline(samples), sep="\n")
    assert reported(load) == 0
    assert len(samples) > 100
    problems = list(wrong(samples))
    assert not problems, "\n".join(problems[:50])
