"""An edit that would leave running Pods without a place: held with Gate, reported with Warn."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from cluster.observe import KUBESCHEDULER, delete_pod, schedule_pod, until

from ...expect import condition_of
from ..conftest import OPERATOR_SETTINGS, PODS_IN_DEFAULT, SECONDARY_SCHEDULERS, Cluster
from ..workloads import apply, create, placed, wait_for
from ..workloads import pod as pod_of
from .test_simulation import all_gone

CONDITION = "PlacementCheckProgressing"
ANNOTATION = "kube-scheduler-operator.dev/placement-check"
SECONDARY = "held"


def only_in(pool: str, scheduler: str = "default-scheduler") -> dict[str, object]:
    """A profile with which Pods fit on nodes of a pool only, in a list of profiles."""
    term = {"matchExpressions": [{"key": f"example.com/{pool}", "operator": "Exists"}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    affinity = {"name": "NodeAffinity", "args": {"addedAffinity": required}}
    return {"profiles": [{"schedulerName": scheduler, "pluginConfig": [affinity]}]}


@pytest.fixture
def pod(cluster: Cluster) -> Iterator[str]:
    """A Pod that runs."""
    name, _, _ = schedule_pod(cluster.api)
    yield name
    delete_pod(cluster.api, name)


@pytest.fixture
def check(cluster: Cluster, pod: str) -> Iterator[Callable[[str], None]]:
    """Creates OperatorSettings with this mode; everything is as before in the end."""

    def create(mode: str) -> None:
        metadata = {"metadata": {"name": "cluster"}}
        kind = {"apiVersion": "kube-scheduler-operator.dev/v1alpha1", "kind": "OperatorSettings"}
        spec = {"placementCheck": {"mode": mode, "timeoutSeconds": 240}}
        cluster.api.request("POST", OPERATOR_SETTINGS, {**kind, **metadata, "spec": spec})
        until(lambda: cluster.condition(CONDITION)[0] == "False", 30, "the check is not on")

    yield create
    cluster.api.request("DELETE", f"{OPERATOR_SETTINGS}/cluster")
    cluster.rest()


def edit(cluster: Cluster, pool: str) -> None:
    overrides = {"unsupportedConfigOverrides": only_in(pool)}
    cluster.api.request("PATCH", KUBESCHEDULER, {"spec": overrides})


@pytest.mark.presubmit
def test_gate_holds_an_edit_until_it_is_approved(
    cluster: Cluster, check: Callable[[str], None], pod: str
) -> None:
    check("Gate")
    before, running = cluster.latest, cluster.scheduler()
    edit(cluster, "held")
    until(
        lambda: "the edit is held" in cluster.condition(CONDITION)[1],
        200,
        lambda: f"not held: {cluster.condition(CONDITION)}",
    )
    status, message = cluster.condition(CONDITION)
    assert status == "True"
    assert "running pods could no longer be placed: " in message
    assert "affinity" in message

    def progressing() -> tuple[str, str]:
        return cluster.cluster_operator("Progressing")

    until(
        lambda: progressing()[0] == "True" and "the edit is held" in progressing()[1],
        30,
        lambda: f"not in the ClusterOperator: {progressing()}",
    )
    assert (cluster.latest, cluster.scheduler()) == (before, running)
    all_gone(cluster, 30)

    shown = cluster.plugin("rollout", "approve", "--dry-run")
    assert shown.returncode == 0, shown.stderr
    assert "could no longer be placed" in shown.stdout
    assert "NodeAffinity" in shown.stdout
    assert cluster.latest == before
    approved = cluster.plugin("rollout", "approve", "--yes")
    assert approved.returncode == 0, approved.stderr
    until(lambda: cluster.current == before + 1, 120, "it is not rolled out")
    note = cluster.revision_status(before + 1)[ANNOTATION]
    assert note.startswith("approved: ")
    assert "could no longer be placed" in note


def test_warn_reports_the_same_edit_and_rolls_it_out(
    cluster: Cluster, check: Callable[[str], None], pod: str
) -> None:
    check("Warn")
    before = cluster.latest
    edit(cluster, "reported")
    until(
        lambda: cluster.current == before + 1,
        260,
        lambda: f"not rolled out: {cluster.condition(CONDITION)}",
    )
    note = cluster.revision_status(before + 1)[ANNOTATION]
    assert note.startswith("reported only (Warn): ")
    assert "could no longer be placed" in note


@pytest.fixture
def secondary(cluster: Cluster) -> Iterator[str]:
    """A SecondaryScheduler whose Pod runs; the path of the object."""
    path = f"{SECONDARY_SCHEDULERS}/{SECONDARY}"
    group = "kube-scheduler-operator.dev/v1alpha1"
    kind = {"apiVersion": group, "kind": "SecondaryScheduler"}
    spec = {"namespace": "kube-scheduler-operator", "replicas": 1}
    apply(cluster, {**kind, "metadata": {"name": SECONDARY}, "spec": spec})
    wait_for(cluster, path, timeout=120, Available="True", Progressing="False")
    create(cluster, pod_of("of-secondary", SECONDARY))
    placed(cluster, "of-secondary")
    yield path
    cluster.api.request("DELETE", f"{PODS_IN_DEFAULT}/of-secondary")
    cluster.api.request("DELETE", path)


def test_gate_holds_an_edit_of_a_secondary_scheduler_and_names_its_pods(
    cluster: Cluster, check: Callable[[str], None], secondary: str
) -> None:
    check("Gate")

    def condition() -> tuple[str, str]:
        status, _, message = condition_of(cluster.api.request("GET", secondary), CONDITION)
        return status, message

    def record() -> dict[str, object]:
        status = cluster.api.request("GET", secondary).get("status", {})
        return dict(status.get("placementCheck") or {})

    until(lambda: bool(record().get("ran")), 60, "what runs is not remembered")
    cluster.api.request("PATCH", secondary, {"spec": only_in("held", SECONDARY)})
    until(lambda: "the edit is held" in condition()[1], 240, lambda: f"not held: {condition()}")
    print(condition()[1])
    assert "1 running pod could no longer be placed: " in condition()[1]
    assert "default/of-secondary" in condition()[1]
    assert cluster.condition(CONDITION)[0] == "False", "the control plane's scheduler does not wait"
    shown = cluster.plugin("rollout", "approve", "--scheduler", SECONDARY, "--dry-run")
    assert shown.returncode == 0, shown.stderr
    assert "could no longer be placed" in shown.stdout
    cluster.api.request("PATCH", secondary, {"spec": {"profiles": None}})
    until(lambda: condition()[0] == "False", 60, lambda: f"still held: {condition()}")
