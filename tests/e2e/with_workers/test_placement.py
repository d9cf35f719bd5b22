"""Profiles change where pods go: two workers, one of them loaded first.

Then what people did by hand on a control-plane node in 2021, for the talk "Using kube-scheduler" at
KubeCon NA: affinity by a label of their own, and a plugin set in which only the image decides.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster import images, nodes
from cluster.console import run
from cluster.observe import delete_pod, follow, schedule_pod, until

from ...unit.config.migrate.conversions import DEMO
from ..conftest import PODS_IN_DEFAULT, REPOSITORY, Cluster
from ..workloads import why_pending

ON_WORKERS = {"placement": "here"}
EXAMPLES = REPOSITORY / "docs/examples"
SIZES = {"docker.io/library/nginx:1.10": 181, "docker.io/library/nginx:1.20": 133}
"""MiB of what the talk pulled; ImageLocality sees nothing below 23 MiB and a third of the nodes."""
MEAL = "meal"


@pytest.fixture
def loaded(cluster: Cluster, workers: tuple[str, str]) -> Iterator[str]:
    """The worker on which 60 % of the CPU is requested; nothing is on the other one."""
    busy, _ = workers
    for name in workers:
        labels = {"metadata": {"labels": ON_WORKERS}}
        cluster.api.request("PATCH", f"/api/v1/nodes/{name}", labels)
    node = cluster.api.request("GET", f"/api/v1/nodes/{busy}")
    millicores = int(node["status"]["allocatable"]["cpu"]) * 600
    schedule_pod(
        cluster.api,
        name="load",
        cpu=f"{millicores}m",
        selector={"kubernetes.io/hostname": busy},
    )
    yield busy
    delete_pod(cluster.api, "load")
    until(lambda: not cluster.pods(), 30, "the load did not go away")


def _place(cluster: Cluster, count: int, cpu: str) -> Counter[str]:
    """Where `count` pods, one after the other, are put."""
    placed: Counter[str] = Counter()
    names = []
    for _ in range(count):
        name, node, _ = schedule_pod(cluster.api, cpu=cpu, selector=ON_WORKERS)
        names.append(name)
        placed[node] += 1
    for name in names:
        delete_pod(cluster.api, name)
    until(lambda: cluster.pods() <= {"load"}, 60, "the pods did not go away")
    return placed


@pytest.mark.presubmit
def test_high_node_utilization_prefers_the_fuller_node(cluster: Cluster, loaded: str) -> None:
    """Pods without an owner; those of a ReplicaSet are spread (test_packing.py of one_node)."""
    cluster.profile("HighNodeUtilization")
    assert _place(cluster, 8, "50m") == {loaded: 8}


@pytest.mark.presubmit
def test_low_node_utilization_spreads(cluster: Cluster, loaded: str) -> None:
    cluster.profile("LowNodeUtilization")
    placed = _place(cluster, 8, "50m")
    assert loaded not in placed
    assert placed.total() == 8


@pytest.mark.presubmit
def test_no_scoring_ignores_load(cluster: Cluster, loaded: str) -> None:
    cluster.profile("NoScoring")
    placed = _place(cluster, 30, "5m")
    # A fair coin gives fewer than 5 of 30 once in 30,000 runs.
    assert len(placed) == 2
    assert min(placed.values()) >= 5, placed


# --- by hand no more: affinity, and a plugin set of one's own ---------------------------------


def _apply(cluster: Cluster, *manifests: dict[str, Any]) -> None:
    cluster.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(manifests))


def _pod(name: str, image: str = images.PAUSE, **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": image, "imagePullPolicy": "Never"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": spec.pop("labels", {})},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0, **spec},
    }


def _affinity(kind: str) -> dict[str, Any]:
    selector = {"matchExpressions": [{"key": "security", "operator": "In", "values": ["S1"]}]}
    term = {"labelSelector": selector, "topologyKey": MEAL}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def _nodes_of(cluster: Cluster, *names: str) -> dict[str, str]:
    items = cluster.api.request("GET", PODS_IN_DEFAULT)["items"]
    found = {item["metadata"]["name"]: item["spec"].get("nodeName", "") for item in items}
    return {name: found.get(name, "") for name in names}


def _gone(cluster: Cluster, *names: str) -> None:
    for name in names:
        delete_pod(cluster.api, name)
    until(lambda: not cluster.pods(), 60, "the pods did not go away")


def test_affinity_waits_for_a_node_with_the_topology_key(
    cluster: Cluster, workers: tuple[str, str]
) -> None:
    liked, other = "like-minded-pod", "with-pod-affinity"
    _apply(
        cluster,
        _pod(liked, labels={"security": "S1"}),
        _pod(other, affinity=_affinity("podAffinity")),
    )
    until(lambda: bool(_nodes_of(cluster, liked)[liked]), 30, "the first pod was not scheduled")
    until(
        lambda: "didn't match pod affinity rules" in why_pending(cluster, other),
        30,
        lambda: f"no reason: {why_pending(cluster, other)!r}",
    )
    assert _nodes_of(cluster, other)[other] == ""
    home = _nodes_of(cluster, liked)[liked]
    away = next(name for name in workers if name != home)
    cluster.kubectl("label", "node", home, f"{MEAL}=breakfast")
    until(lambda: _nodes_of(cluster, other)[other] == home, 30, "it did not follow the label")
    apart = "with-pod-antiaffinity"
    _apply(cluster, _pod(apart, affinity=_affinity("podAntiAffinity")))
    # A node without the label is in no domain, so nothing there can be near.
    until(lambda: _nodes_of(cluster, apart)[apart] == away, 30, "it was not kept apart")
    _gone(cluster, liked, other, apart)
    cluster.kubectl("label", "node", home, f"{MEAL}-")


@pytest.fixture
def pulled(cluster: Cluster, workers: tuple[str, str]) -> dict[str, str]:
    """Image -> the worker that has it."""
    by_name = {node.name: node for node in cluster.sandbox.nodes}
    homes = dict(zip(SIZES, workers, strict=True))
    for image, home in homes.items():
        wanted = images.of_size(image, SIZES[image])
        nodes.load_images(cluster.sandbox, by_name[home], [wanted])

    def known(image: str, home: str) -> bool:
        found = cluster.api.request("GET", f"/api/v1/nodes/{home}")["status"]["images"]
        return any(image in (entry.get("names") or ()) for entry in found)

    for image, home in homes.items():
        until(
            partial(known, image, home),
            90,
            f"{home} does not say that it has {image}",
        )
    return homes


def _changed(cluster: Cluster, *command: str, stdin: str | None = None) -> None:
    """Do something and wait until every node has the revision that it leads to."""
    before = {"status": cluster.status}
    cluster.kubectl(*command, stdin=stdin)
    line = follow(cluster.api, before, time.monotonic())
    assert line.outcome == "installed", line.message


def _placed_by_image(cluster: Cluster, count: int, *of: str) -> dict[str, Counter[str]]:
    """Where `count` pods of each image go, in turns."""
    pods = {
        f"nx{image.rpartition(':')[2].replace('.', '-')}-{number}": image
        for number in range(count)
        for image in of
    }
    _apply(cluster, *(_pod(name, image) for name, image in pods.items()))
    until(lambda: all(_nodes_of(cluster, *pods).values()), 90, "not all pods were scheduled")
    placed: dict[str, Counter[str]] = {image: Counter() for image in of}
    for name, node in _nodes_of(cluster, *pods).items():
        placed[pods[name]][node] += 1
    _gone(cluster, *pods)
    return placed


@pytest.mark.timeout(420, func_only=True)
def test_pods_go_where_their_image_is_while_the_profile_is_set(
    cluster: Cluster, pulled: dict[str, str], tmp_path: Path
) -> None:
    cluster.rest_with_default_profile()
    old = tmp_path / "myscheduler.conf"
    old.write_text(yaml.safe_dump(DEMO))
    program = (sys.executable, "-m", "kube_scheduler_operator", "convert")
    converted = yaml.safe_load(run(*program, "-f", old, "--profiles", "--quiet"))
    example = yaml.safe_load((EXAMPLES / "image-locality-only.yaml").read_text())
    assert converted["spec"]["plugins"]["score"] == example["spec"]["plugins"]["score"]
    assert converted["metadata"]["name"] == "default-scheduler", "as in the talk: for all pods"

    _changed(cluster, "apply", "-f", "-", stdin=yaml.safe_dump(converted))
    expected = {image: Counter({home: 20}) for image, home in pulled.items()}
    assert _placed_by_image(cluster, 20, *SIZES) == expected
    table = cluster.kubectl("get", "sprof", "default-scheduler", "-o", "jsonpath={.status.plugins}")
    assert "ImageLocality" in table
    assert "NodeResourcesFit" not in table
    _changed(cluster, "delete", "sprof", "default-scheduler")
    assert "profiles" not in cluster.kubescheduler["spec"]["observedConfig"]
    # The image counts a little in the default as well, but the load counts more.
    first = next(iter(SIZES))
    placed = _placed_by_image(cluster, 20, first)[first]
    assert min(placed[worker] for worker in pulled.values()) >= 5, placed


def test_a_profile_that_cannot_run_delays_nothing(cluster: Cluster) -> None:
    example = (EXAMPLES / "image-locality-only.yaml").read_text()
    _changed(cluster, "apply", "-f", "-", stdin=example)
    wrong = example.replace("name: ImageLocality,", "name: ImageLocalty,")
    cluster.kubectl("apply", "-f", "-", stdin=wrong)
    until(
        lambda: (
            'did you mean "ImageLocality"?' in cluster.condition("SchedulerProfilesDegraded")[1]
        ),
        30,
        lambda: f"not reported: {cluster.condition('SchedulerProfilesDegraded')}",
    )
    name, path = "image-locality-only", "jsonpath={.status.conditions[0].reason}"
    until(
        lambda: cluster.kubectl("get", "sprof", name, "-o", path) == "LastAcceptedInUse",
        30,
        "the SchedulerProfile does not report it",
    )
    line = cluster.profile(cluster.another_profile())
    assert line.outcome == "installed", line.message
    _apply(cluster, _pod("of-the-held-one", schedulerName="image-locality-only"))
    until(
        lambda: bool(_nodes_of(cluster, "of-the-held-one")["of-the-held-one"]),
        30,
        "the profile that was accepted before does not run",
    )
    _gone(cluster, "of-the-held-one")
    _changed(cluster, "delete", "sprof", "image-locality-only")
