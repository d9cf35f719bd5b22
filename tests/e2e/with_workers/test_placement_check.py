"""An edit that would leave running Pods without a place: held with Gate, reported with Warn."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from cluster.observe import KUBESCHEDULER, delete_pod, schedule_pod, until

from ..conftest import OPERATOR_SETTINGS, Cluster
from .test_simulation import all_gone

CONDITION = "PlacementCheckProgressing"
ANNOTATION = "kube-scheduler-operator.dev/placement-check"


def only_in(pool: str) -> dict[str, object]:
    """Overrides with which Pods fit on nodes of a pool only."""
    term = {"matchExpressions": [{"key": f"example.com/{pool}", "operator": "Exists"}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    affinity = {"name": "NodeAffinity", "args": {"addedAffinity": required}}
    return {"profiles": [{"schedulerName": "default-scheduler", "pluginConfig": [affinity]}]}


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
