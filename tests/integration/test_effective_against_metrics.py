"""The effective plugins equal those in the metrics of a running kube-scheduler.

A profile's scheduler gets pods that give every plugin something to do, until its metrics show each
plugin that the table has, and none that the table does not have. Durations of plugins are measured
for one pod in ten only, hence the many pods; evaluations are counted for all.
"""

from __future__ import annotations

import json
import re
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cluster.scheduling import free_port
from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.merging.merge import merge_semantically
from kube_scheduler_operator.config.language.merging.presets import PRESETS, profile_fragment
from kube_scheduler_operator.config.language.plugins.plugin_origins import (
    Layer,
    ProfileTable,
    profile_tables,
)
from kube_scheduler_operator.config.language.schema import POINTS
from kube_scheduler_operator.config.language.versions import Version

from .conftest import ApiServer, RefusedError
from .played_nodes import make_node

NAMESPACE = "metrics-of-plugins"
CORE = f"/api/v1/namespaces/{NAMESPACE}"
DEVICES = "devices.example.com"
ZONE = "topology.kubernetes.io/zone"
NODES = ("measured-a", "measured-b")  # where only one node fits, nothing is scored
BATCH, MOST = 20, 200
"""Pods at a time, and at most: that none of 200 is measured happens once in 10^9 runs."""
PATIENCE = 20.0
"""Seconds after the last pod in which kube-scheduler may catch up."""

UNMEASURED = {
    "queueSort": "it is asked at every comparison of two pods",
    "placementGenerate": "it is for groups of pods",
    "placementScore": "likewise",
    "podGroupPostFilter": "likewise",
}
"""Points without metrics for these pods."""
BEFORE = {"filter": "preFilter", "score": "preScore", "preBind": "preBindPreFlight"}
"""Point -> the preparing point, at which a plugin may return Skip for a pod."""
IDLE = {
    ("score", "VolumeBinding"): "it scores with the gate StorageCapacityScoring only",
    ("preBind", "VolumeBinding"): "the volumes of these pods are bound already",
    ("filter", "NodeDeclaredFeatures"): "these pods need nothing that a node would declare",
}
EVALUATED = ("preFilter", "filter", "preScore", "score")

_NONE = {"disabled": [{"name": "*"}]}


def only(*names: str, **more: Any) -> dict[str, Any]:
    return {**_NONE, "enabled": [{"name": name, **more} for name in names]}


PLUGIN_LISTS: dict[str, dict[str, Any]] = {
    "of the demo": {
        **dict.fromkeys(("preEnqueue", "preFilter", "postFilter", "preScore"), _NONE),
        **dict.fromkeys(("reserve", "permit", "preBind", "postBind"), _NONE),
        "queueSort": only("PrioritySort"),
        "filter": only("TaintToleration"),
        "score": only("ImageLocality", weight=10),
        "bind": only("DefaultBinder"),
    },
    "by points": {
        "multiPoint": {"disabled": [{"name": "ImageLocality"}, {"name": "InterPodAffinity"}]},
        "filter": {"disabled": [{"name": "VolumeZone"}, {"name": "NodePorts"}]},
        "score": only("NodeResourcesFit", "TaintToleration"),
        "reserve": {"disabled": [{"name": "DynamicResources"}]},
        "preBind": {"disabled": [{"name": "DynamicResources"}]},
    },
    "by multiPoint": {
        "multiPoint": only(
            "PrioritySort", "DefaultBinder", "NodeAffinity", "NodeResourcesFit", "NodeUnschedulable"
        ),
        "score": only("ImageLocality"),
    },
}


def configurations() -> dict[str, dict[str, Any]]:
    """Every named profile, and the lists above."""
    found = {}
    for name in PRESETS:
        fragment = profile_fragment(name)
        merged = merge_semantically([{"profiles": [{"schedulerName": "x"}]}, fragment])
        found[name] = merged["profiles"][-1]
    return found | {name: {"plugins": lists} for name, lists in PLUGIN_LISTS.items()}


@dataclass
class Measured:
    """Metrics of a kube-scheduler."""

    statuses: dict[str, dict[str, set[str]]]  # point -> plugin -> status codes of the measured pods
    evaluated: dict[str, set[str]]  # point -> plugins, of all pods

    @classmethod
    def read(cls, text: str, scheduler_name: str) -> Measured:
        statuses: dict[str, dict[str, set[str]]] = {}
        evaluated: dict[str, set[str]] = {}
        for metric, inner in re.findall(r"^scheduler_plugin_(\w+)\{(.*)\} \S+$", text, re.M):
            labels = dict(re.findall(r'(\w+)="([^"]*)"', inner))
            point = labels["extension_point"]
            point = point[0].lower() + point[1:]
            if metric == "execution_duration_seconds_count":
                plugins = statuses.setdefault(point, {})
                plugins.setdefault(labels["plugin"], set()).add(labels["status"])
            elif metric == "evaluation_total":
                assert labels["profile"] == scheduler_name
                evaluated.setdefault(point, set()).add(labels["plugin"])
        return cls(statuses, evaluated)

    def idle(self, point: str, name: str) -> bool:
        """Whether a plugin returned Skip for a known reason."""
        found = self.statuses.get(BEFORE.get(point, ""), {}).get(name)
        return (point, name) in IDLE and found == {"Skip"}

    def missing(self, table: ProfileTable) -> set[tuple[str, str]]:
        """Entries of the table that no pod has reached yet."""
        return {
            (point, row.name)
            for point, rows in table.points.items()
            if point not in UNMEASURED
            for row in rows
            if row.name not in self.statuses.get(point, {}) and not self.idle(point, row.name)
        }


class Running:
    """A kube-scheduler with a single profile, and the pods that it is given."""

    def __init__(self, api: ApiServer, name: str, port: int) -> None:
        self._api = api
        self._name = name
        self._url = f"https://127.0.0.1:{port}/metrics"
        self._tls = ssl.create_default_context()
        self._tls.check_hostname, self._tls.verify_mode = False, ssl.CERT_NONE
        self.made = 0

    def measured(self) -> Measured:
        with urllib.request.urlopen(self._url, timeout=10, context=self._tls) as answer:
            return Measured.read(answer.read().decode(), self._name)

    def batch(self) -> None:
        """Pods that use every plugin, and the same number that fit on no node."""
        for _ in range(BATCH):
            self.made += 1
            names = {"generateName": f"{self._name}-", "labels": {"app": self._name}}
            for spec in (self._busy(), self._homeless()):
                body = {"metadata": names, "spec": {**self._common(), **spec}}
                self._api.request("POST", f"{CORE}/pods", body)

    def _common(self) -> dict[str, Any]:
        return {
            "schedulerName": self._name,
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 0,
        }

    def _homeless(self) -> dict[str, Any]:
        container = {"name": "c", "image": "none", "resources": {"requests": {"cpu": "64"}}}
        return {"containers": [container], "nodeSelector": {"no-node": "has-this"}}

    def _busy(self) -> dict[str, Any]:
        container = {
            "name": "c",
            "image": "none",
            "resources": {"requests": {"cpu": "1m", "memory": "1Mi"}},
            "ports": [{"containerPort": 80, "hostPort": 20000 + self.made}],
        }
        here = {"matchExpressions": [{"key": ZONE, "operator": "Exists"}]}
        together = {"labelSelector": {"matchLabels": {"app": self._name}}, "topologyKey": ZONE}
        spread = {
            "topologyKey": "kubernetes.io/hostname",
            "labelSelector": together["labelSelector"],
        }
        return {
            "containers": [container],
            "tolerations": [
                {"operator": "Exists", "effect": effect} for effect in ("NoSchedule", "NoExecute")
            ],
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [here]},
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 1, "preference": here}
                    ],
                },
                "podAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [together],
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 1, "podAffinityTerm": together}
                    ],
                },
            },
            "topologySpreadConstraints": [
                {**spread, "maxSkew": 50, "whenUnsatisfiable": "DoNotSchedule"},
                {**spread, "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"},
            ],
            "volumes": [
                {"name": "claim", "persistentVolumeClaim": {"claimName": "shared"}},
                {
                    "name": "disk",
                    "iscsi": {
                        "targetPortal": "192.0.2.1", "iqn": "iqn.2001-04.com.example:x",
                        "lun": 1, "readOnly": True,
                    },
                },
            ],
            "resourceClaims": [{"name": "device", "resourceClaimName": self._name}],
        }  # fmt: skip


@pytest.fixture(scope="module")
def cluster(api_server: ApiServer, nodes_of_ones_own: None) -> Iterator[ApiServer]:
    """Nodes in one zone, a volume that is bound there, and devices that every node can reach."""
    resources = "/apis/resource.k8s.io/v1"
    driver = {"cel": {"expression": f"device.driver == '{DEVICES}'"}}
    slice_ = {
        "driver": DEVICES,
        "allNodes": True,
        "pool": {"name": "all", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": f"device-{number}"} for number in range(20)],
    }
    storage = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany"]}
    volume = {
        **storage,
        "storageClassName": "none",
        "persistentVolumeReclaimPolicy": "Retain",
        "hostPath": {"path": "/nowhere"},
        "claimRef": {"namespace": NAMESPACE, "name": "shared"},
    }
    claim = {
        "storageClassName": "none",
        "volumeName": NAMESPACE,
        "accessModes": storage["accessModes"],
        "resources": {"requests": storage["capacity"]},
    }
    request = api_server.request
    made = []
    try:
        api_server.create_namespace(NAMESPACE)
        made.append(f"/api/v1/namespaces/{NAMESPACE}")
        for path, body in (
            (f"{resources}/deviceclasses", {"spec": {"selectors": [driver]}}),
            (f"{resources}/resourceslices", {"spec": slice_}),
            ("/api/v1/persistentvolumes", {"spec": volume}),
        ):
            metadata = {"name": NAMESPACE, "labels": {ZONE: "here"}}
            request("POST", path, {"metadata": metadata, **body})
            made.append(f"{path}/{NAMESPACE}")
        claims = f"{CORE}/persistentvolumeclaims"
        request("POST", claims, {"metadata": {"name": "shared"}, "spec": claim})
        end = time.monotonic() + 30
        while request("GET", f"{claims}/shared")["status"]["phase"] != "Bound":
            assert time.monotonic() < end, "the volume is not bound"
            time.sleep(0.1)
        for name in NODES:
            taints = [{"key": "measured", "effect": "PreferNoSchedule"}]
            make_node(api_server, name, {"taints": taints}, {ZONE: "here"})
            made.append(f"/api/v1/nodes/{name}")
        yield api_server
    finally:
        for path in reversed(made):
            with suppress(RefusedError):
                api_server.request("DELETE", path)


@pytest.fixture
def version(cluster: ApiServer) -> Version:
    return Version.parse(cluster.request("GET", "/version")["gitVersion"])


@pytest.fixture
def start(cluster: ApiServer, kube_scheduler_binary: Path, tmp_path: Path) -> Iterator[Any]:
    """Starts a kube-scheduler with a profile; it ends with the test, and its pods do."""
    processes: list[subprocess.Popen[bytes]] = []

    def run(profile: Mapping[str, Any]) -> Running:
        name = str(profile["schedulerName"])
        request = {"name": "device", "exactly": {"deviceClassName": NAMESPACE}}
        claims = f"/apis/resource.k8s.io/v1/namespaces/{NAMESPACE}/resourceclaims"
        claim = {"metadata": {"name": name}, "spec": {"devices": {"requests": [request]}}}
        cluster.request("POST", claims, claim)
        config = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "clientConnection": {"kubeconfig": str(cluster.kubeconfig), "qps": 1000, "burst": 1000},
            "leaderElection": {"leaderElect": False},
            "profiles": [profile],
        }
        file, log = tmp_path / "config.json", tmp_path / "log"
        file.write_text(json.dumps(config))
        port = free_port()
        with log.open("wb") as output:
            process = subprocess.Popen(
                [
                    kube_scheduler_binary, f"--config={file}", "--bind-address=127.0.0.1",
                    f"--secure-port={port}", f"--cert-dir={tmp_path}",
                    "--authorization-always-allow-paths=/metrics",
                ],
                stdout=output, stderr=output,
            )  # fmt: skip
        processes.append(process)
        running = Running(cluster, name, port)
        end = time.monotonic() + 30
        while True:
            try:
                running.measured()
            except (urllib.error.URLError, ConnectionError):
                assert process.poll() is None, log.read_text()[-3000:]
                assert time.monotonic() < end, log.read_text()[-3000:]
                time.sleep(0.1)
            else:
                return running

    yield run
    for process in processes:
        process.kill()
        process.wait(20)
    cluster.request("DELETE", f"{CORE}/pods", {"gracePeriodSeconds": 0})


@pytest.mark.timeout(180, func_only=True)
@pytest.mark.parametrize("name", configurations())
def test_the_running_schedulers_metrics_show_the_plugins_of_the_table(
    name: str, start: Any, version: Version
) -> None:
    scheduler_name = re.sub(r"\W", "-", name).lower()
    profile = {**configurations()[name], "schedulerName": scheduler_name}
    config = {"profiles": [profile]}
    (table,) = profile_tables(config, [Layer("profile", config)], Gates(version))
    running = start(profile)
    seen, end = running.measured(), 0.0
    while seen.missing(table):
        if running.made < MOST:
            running.batch()
            end = time.monotonic() + PATIENCE
        assert time.monotonic() < end, f"after {MOST} pods: {seen.missing(table)} of {seen}"
        time.sleep(1.5)  # durations are collected once a second
        seen = running.measured()
    for point in POINTS:
        if point in UNMEASURED:
            continue
        names = {row.name for row in table.points.get(point, ())}
        assert set(seen.statuses.get(point, {})) <= names, point
        if point in EVALUATED:
            idle = {each for each in names if seen.idle(point, each)}
            assert seen.evaluated.get(point, set()) | idle == names, point
