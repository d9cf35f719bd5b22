"""The console and the report about a cluster with three control-plane nodes, well and ill."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from cluster import cgroups
from cluster.observe import KUBESCHEDULER, until

from .conftest import LOAD_POLICIES, NAME_OF_CONSOLE, SCHEDULER_EXTENDERS, Cluster, up
from .console_pages import NOWHERE, Looks, shop, waiting
from .workloads import apply, wait_for

pytestmark = pytest.mark.timeout(1500, func_only=True)

GROUP = "kube-scheduler-operator.dev/v1alpha1"
LATE = 300.0


def _object(kind: str, name: str, **spec: object) -> dict[str, object]:
    return {"apiVersion": GROUP, "kind": kind, "metadata": {"name": name}, "spec": spec}


@pytest.fixture(scope="module")
def three() -> Iterator[Cluster]:
    with up(NAME_OF_CONSOLE, 3, 2, with_operator=True) as sandbox:
        cluster = Cluster(sandbox)
        cluster.rest(400)
        yield cluster


@pytest.fixture(scope="module")
def well(three: Cluster) -> Cluster:
    """Three revisions, a profile, an extender with agents, and measured load."""
    cluster = three
    shop(cluster, 6)
    group = cgroups.node_path(cluster.sandbox.name, "$(NODE_NAME)")
    metrics = {"mountHost": True, "args": [f"--cgroup={group}", "--interval=1"]}
    source = {"type": "NodeMetrics", "nodeMetrics": metrics}
    apply(
        cluster,
        _object("LoadPolicy", "default", source=source, cycle="2s", refresh="5s", grace="10s"),
        _object("SchedulerProfile", "batch", pluginConfig=[]),
        _object("SchedulerExtender", "pack-batch", agent={
            "policies": [{"name": "pigeon-holing", "arguments": {"objective": "CONSOLIDATE"}}],
            "schedulerNames": ["batch"]}),
    )  # fmt: skip
    wait_for(cluster, f"{LOAD_POLICIES}/default", timeout=LATE, Available="True")
    wait_for(cluster, f"{SCHEDULER_EXTENDERS}/pack-batch", timeout=LATE, Available="True")
    until(cluster.calm, LATE, lambda: f"not settled: {cluster.status}")
    return cluster


@pytest.fixture(scope="module")
def ill(well: Cluster) -> Cluster:
    """A revision that cannot run, refused objects, an extender and a source that do not respond."""
    cluster = well
    cluster.kubectl("cordon", cluster.sandbox.nodes[-1].name)
    source = {"type": "Prometheus", "prometheus": {"url": f"http://{NOWHERE}:9090"}}
    cluster.api.request("PATCH", f"{LOAD_POLICIES}/default", {
        "spec": {"source": {**source, "nodeMetrics": None}}})  # fmt: skip
    latest = cluster.latest
    url = f"http://{NOWHERE}:8080/scheduler"
    apply(cluster, _object("SchedulerExtender", "gpu-share", url=url, verbs={"filter": "filter"},
                           ignorable=True, timeout="500ms"))  # fmt: skip
    until(lambda: cluster.latest > latest and cluster.calm(), LATE, "no revision with it")
    apply(cluster, *waiting(), _object("SchedulerProfile", "bad", plugins={
        "score": {"enabled": [{"name": "Nope"}]}}))  # fmt: skip
    overrides = {"arguments": {"bind-address": NOWHERE}}
    spec = {"unsupportedConfigOverrides": overrides}
    cluster.api.request("PATCH", KUBESCHEDULER, {"spec": spec})
    until(lambda: cluster.condition("NodeInstallerDegraded")[0] == "True", LATE, "not Degraded")
    agent = {"image": "localhost/none-of-these:v1", "policies": [{"name": "safe-overload"}]}
    apply(cluster, _object("SchedulerExtender", "no-image", agent=agent))
    kind = "SchedulerExtendersDegraded"
    until(lambda: cluster.condition(kind)[0] == "True", LATE, "its agents run")
    kind = "LoadPoliciesDegraded"
    until(lambda: cluster.condition(kind)[0] == "True", LATE, "its load is known")
    return cluster


def test_every_page_of_a_cluster_that_is_well(
    well: Cluster, browser: Browser, axe: str, tmp_path: Path
) -> None:
    Looks(well, browser, axe, "three-nodes-healthy").expect_well(tmp_path / "scheduler.html")


def test_every_page_of_a_cluster_that_is_ill(
    ill: Cluster, browser: Browser, axe: str, tmp_path: Path
) -> None:
    Looks(ill, browser, axe, "three-nodes-broken").expect_ill(tmp_path / "scheduler.html")
