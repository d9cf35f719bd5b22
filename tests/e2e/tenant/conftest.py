"""A cluster with enforced NetworkPolicies, a tenant with `edit` in one namespace, and others."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from cluster import policy_enforcer
from cluster.observe import until

from ..conftest import (
    DEPLOYMENT,
    NAME_OF_TENANT,
    REPOSITORY,
    SCHEDULER_EXTENDERS,
    SECONDARY_SCHEDULERS,
    Cluster,
    up,
)
from ..workloads import apply, patient, wait_for
from .world import OF_OTHERS, SCHEDULER, TENANT, Others, Tenant

POLL_SECONDS = 2
"""Instead of a minute, so that what the tenant does is seen at once."""

EXAMPLE = REPOSITORY / "docs/examples/safe.yaml"


@pytest.fixture(scope="session")
def shared_cluster() -> Iterator[Cluster]:
    with up(NAME_OF_TENANT, 1, 2, with_operator=True) as sandbox:
        policy_enforcer.start(sandbox)
        yield Cluster(sandbox)


@pytest.fixture(scope="module")  # before the next cluster of the process takes this one down
def others(shared_cluster: Cluster) -> Iterator[Others]:
    """A scheduler with an agent that binds, and a namespace whose Pods are placed by it."""
    cluster = shared_cluster
    _poll_often(cluster)
    objects = patient(EXAMPLE.read_text())
    for obj in objects:
        if obj["kind"] == "SchedulerExtender":
            obj["spec"]["agent"]["verbs"] = {"bind": True}
    apply(cluster, *objects)
    well = {"Available": "True", "Progressing": "False", "Degraded": "False"}
    wait_for(cluster, f"{SECONDARY_SCHEDULERS}/{SCHEDULER}", timeout=180, **well)
    wait_for(cluster, f"{SCHEDULER_EXTENDERS}/safe", Accepted="True", Available="True")
    for namespace, level in ((OF_OTHERS, "restricted"), (TENANT, "baseline")):
        labels = {"pod-security.kubernetes.io/enforce": level}
        metadata = {"name": namespace, "labels": labels}
        cluster.api.create("/api/v1/namespaces", {"metadata": metadata})
        accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
        cluster.api.create(accounts, {"metadata": {"name": "default"}})
    world = Others(cluster)
    world.settle()
    yield world
    for namespace in (OF_OTHERS, TENANT):
        cluster.kubectl("delete", "namespace", namespace, "--now", "--wait=false")
    for path in (SECONDARY_SCHEDULERS, SCHEDULER_EXTENDERS):
        cluster.api.request("DELETE", path)


@pytest.fixture
def tenant(others: Others) -> Iterator[Tenant]:
    """The tenant, who leaves nothing behind."""
    tenant = Tenant(others.cluster)
    yield tenant
    tenant.leave()


def _poll_often(cluster: Cluster) -> None:
    deployment = cluster.api.request("GET", DEPLOYMENT)
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    container["command"].append(f"--pending-pods-interval={POLL_SECONDS}")
    del deployment["metadata"]["resourceVersion"]
    generation = cluster.api.request("PUT", DEPLOYMENT, deployment)["metadata"]["generation"]

    def replaced() -> bool:
        found = cluster.api.request("GET", DEPLOYMENT)
        status, replicas = found["status"], found["spec"]["replicas"]
        return status.get("observedGeneration", 0) >= generation and all(
            status.get(key, 0) == replicas
            for key in ("replicas", "updatedReplicas", "readyReplicas")
        )

    until(replaced, 180, lambda: f"{cluster.api.request('GET', DEPLOYMENT)['status']}")
    time.sleep(POLL_SECONDS)
