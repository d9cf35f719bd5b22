"""What a person does to a node is undone while the operator manages it, and it can be left."""

from __future__ import annotations

import pytest

from cluster.observe import KUBESCHEDULER, OPERATOR_NAMESPACE, SCHEDULER, until

from ..conftest import CONFIG_MAPS, PODS, Cluster

# Removal must leave nothing of all that the other tests did.
pytestmark = [pytest.mark.core, pytest.mark.runs_last]

MANIFEST = "/etc/kubernetes/manifests/kube-scheduler.yaml"
RESOURCES = "/etc/kubernetes/static-pod-resources"
STOCK = f"{RESOURCES}/kube-scheduler-stock/kube-scheduler.yaml"
LABEL = "labelSelector=app.kubernetes.io%2Fmanaged-by%3Dkube-scheduler-operator"


def test_an_overwritten_manifest_is_restored(cluster: Cluster) -> None:
    _, command = cluster.scheduler()
    current, latest = cluster.current, cluster.latest
    cluster.on_node("cp", STOCK, MANIFEST)
    # The kubelet takes longer to start the other one than the operator to put its own back.
    until(lambda: cluster.condition("StaticPodsDegraded")[0] == "True", 90, "unsaid")
    until(lambda: cluster.calm() and cluster.scheduler()[1] == command, 120, "it is not back")
    assert (cluster.current, cluster.latest) == (current, latest), "the same revision"
    assert any("putting" in event and " back" in event for event in cluster.events())
    cluster.schedules()


@pytest.mark.presubmit
@pytest.mark.timeout(420, func_only=True)
def test_removed_leaves_nothing_and_managed_adopts_again(cluster: Cluster) -> None:
    stock = cluster.on_node("cat", STOCK)
    latest = cluster.latest
    cluster.api.request("PATCH", KUBESCHEDULER, {"spec": {"managementState": "Removed"}})

    def owned() -> list[str]:
        service_accounts = f"/api/v1/namespaces/{OPERATOR_NAMESPACE}/serviceaccounts"
        paths = [f"{CONFIG_MAPS}?{LABEL}", f"{PODS}?{LABEL}", f"{service_accounts}?{LABEL}"]
        found = [item for path in paths for item in cluster.api.request("GET", path)["items"]]
        operator = "kube-scheduler-operator"
        names = [item["metadata"]["name"] for item in found]
        return [name for name in names if not name.startswith(operator)]

    until(
        lambda: (
            not owned()
            and "observedConfig" not in cluster.kubescheduler["spec"]
            and "nothing of the operator is left" in cluster.cluster_operator("Available")[1]
        ),
        180,
        lambda: f"still there: {owned()} {cluster.kubescheduler['spec']}",
    )
    assert cluster.on_node("cat", MANIFEST) == stock
    assert "static-pod-resources" not in cluster.on_node("ls", "/etc/kubernetes").split()
    _, command = cluster.scheduler()
    assert "--config=" not in command, "the stock scheduler runs"
    cluster.schedules()
    assert cluster.cluster_operator("Available")[0] == "Unknown"

    cluster.api.request("PATCH", SCHEDULER, {"spec": {"profile": "LowNodeUtilization"}})
    cluster.api.request("PATCH", KUBESCHEDULER, {"spec": {"managementState": "Managed"}})
    until(
        lambda: cluster.calm() and cluster.current > latest, 180, "no new revision was rolled out"
    )
    assert "--config=" in cluster.scheduler()[1]
    assert cluster.on_node("cat", STOCK) == stock
