"""`spec.upgradeCheck` before an upgrade by kubeadm, and what is reported when it is followed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest

from cluster import kubeadm
from cluster.observe import KUBESCHEDULER, until

from ..conftest import OPERATOR_SETTINGS
from .conftest import V35, V36, Clusters, KubeadmCluster, image_of

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3600, func_only=True)]

GONE: Final = "CSIMigrationPortworx"
"""1.36 has no such feature gate."""
CONDITION: Final = "UpgradeCheckPassed"
JOBS: Final = "/apis/batch/v1/namespaces/kube-scheduler-operator/jobs"
EVENTS: Final = "/api/v1/namespaces/kube-scheduler-operator/events"


@contextmanager
def requested(cluster: KubeadmCluster, version: str, image: str) -> Iterator[None]:
    made = {
        "apiVersion": "kube-scheduler-operator.dev/v1alpha1",
        "kind": "OperatorSettings",
        "metadata": {"name": "cluster"},
        "spec": {"upgradeCheck": {"version": version, "image": image}},
    }
    cluster.api.request("POST", OPERATOR_SETTINGS, made)
    try:
        yield
    finally:
        cluster.api.request("DELETE", f"{OPERATOR_SETTINGS}/cluster")


def test_what_both_kube_schedulers_show_is_reported_before_and_when_the_upgrade_is_followed(
    clusters: Clusters,
) -> None:
    cluster = clusters.get(1, V35)
    kubeadm.provide_version(cluster.sandbox, V36)
    gates = {"arguments": {"feature-gates": [f"{GONE}=true"]}}
    assert cluster.override(gates).outcome == "installed"
    with requested(cluster, "1.36", image_of(V36)):
        message = cluster.message(CONDITION, f"compared with {V35}", 300)
        print(message)
        assert cluster.condition(CONDITION)[0] == "False"
        assert f"kube-scheduler 1.36 has no feature gate {GONE}" in message
        assert f"tried: kube-scheduler {V36} ends: unrecognized feature gate: {GONE}" in message
        until(lambda: not cluster.api.request("GET", JOBS)["items"], 30, "the Job is left")

        cluster.api.request("PATCH", KUBESCHEDULER, {"spec": {"unsupportedConfigOverrides": None}})
        cluster.upgrade(V36)
        cluster.follows(V36)
        reached = cluster.message(CONDITION, f"kube-scheduler {V36} is in use", 60)
        assert cluster.condition(CONDITION)[0] == "True"
        assert GONE in reached
        events = cluster.api.request("GET", EVENTS)["items"]
        sent = {event["reason"]: event.get("message") or event.get("note") for event in events}
        assert GONE in sent["UpgradeChecked"]
        assert f"kube-scheduler {V36} is in use" in sent["UpgradeReached"]
    until(lambda: cluster.condition(CONDITION)[0] == "", 60, "the condition is left")
