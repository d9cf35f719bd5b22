"""On a managed control plane the operator is installed as documented, used, and removed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster import images, lifecycle, model
from cluster.observe import until
from kube_scheduler_operator.base import names

from ..conftest import NAME_TO_LEAVE, PODS_IN_DEFAULT, SECONDARY_SCHEDULERS, Cluster, up
from ..documented import commands, has_no_policies
from .installation import Installation, prepared, programs

MANAGED = "managed-scheduler"


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    kind = lifecycle.ClusterKind(model.MANAGED, "eks")
    with (
        up(NAME_TO_LEAVE, 0, 2, with_operator=False, kind=kind) as sandbox,
        prepared(sandbox) as cluster,
    ):
        yield Installation(cluster, programs(sandbox), tmp_path_factory.mktemp("home"))


def assigns(installation: Installation) -> bool:
    path = f"{SECONDARY_SCHEDULERS}/{MANAGED}"
    status: dict[str, Any] = installation.cluster.api.request("GET", path).get("status", {})
    conditions = {c["type"]: c["status"] for c in status.get("conditions", ())}
    return conditions.get(names.ASSIGNED) == "True"


def is_assigned(cluster: Cluster) -> bool:
    """Create a Pod; one that is not assigned is deleted again."""
    pod = {
        "metadata": {"name": "used"},
        "spec": {"containers": [{"name": "c", "image": images.PAUSE}]},
    }
    created = cluster.api.request("POST", PODS_IN_DEFAULT, pod)
    if created["spec"]["schedulerName"] == MANAGED:
        return True
    cluster.without_pods()
    return False


def use(installation: Installation) -> None:
    """Have a Pod that names no scheduler assigned to the managed scheduler, and placed by it."""
    cluster = installation.cluster
    installation.is_available()
    until(lambda: assigns(installation), 120, lambda: f"not assigning: {cluster.status}")
    # The second replica of the operator may serve the webhook some seconds later.
    until(lambda: is_assigned(cluster), 30, "a new Pod is not assigned")
    path = f"{PODS_IN_DEFAULT}/used"
    until(lambda: "nodeName" in cluster.api.request("GET", path)["spec"], 60, "it has no node")
    cluster.without_pods()


def is_as_it_was(installation: Installation) -> None:
    installation.api_is_as_it_was()
    installation.cluster.schedules()


def test_the_line_for_kubeadm_is_refused_with_the_value_to_set(installation: Installation) -> None:
    """Without the check the operator's Pods, and the hook that removes it, would stay Pending."""
    error = installation.is_refused(commands("install helm kubeadm"))
    assert "no node has the label node-role.kubernetes.io/control-plane" in error
    assert "--set platform=managed" in error
    elsewhere = f"{commands('install helm managed').rstrip()} --set nodeSelector.zone=none"
    assert 'no node has the label zone="none"' in installation.is_refused(elsewhere)


@pytest.mark.timeout(900, func_only=True)
def test_helm_uninstalls_without_remains(installation: Installation) -> None:
    notes = installation.shell(commands("install helm managed"))
    assert "node" not in notes.partition("NOTES:")[2], "the operator changes nothing on nodes"
    assign = next(line for line in notes.splitlines() if "kubectl patch" in line)
    until(lambda: MANAGED in installation.shell("kubectl get secondaryschedulers"), 120, "none")
    installation.shell(assign)
    use(installation)
    print(installation.shell(commands("uninstall helm")))
    is_as_it_was(installation)


@pytest.mark.presubmit
@pytest.mark.timeout(900, func_only=True)
def test_kubectl_uninstalls_without_remains(installation: Installation) -> None:
    older = has_no_policies(installation.cluster.sandbox.kubernetes)
    installation.shell(commands("install kustomize managed and assign", older=older))
    use(installation)
    print(installation.shell(commands("uninstall kustomize managed", older=older)))
    is_as_it_was(installation)


@pytest.mark.timeout(900, func_only=True)
def test_the_commands_of_the_readme_and_the_program_uninstall(
    installation: Installation, archive: Path
) -> None:
    older = has_no_policies(installation.cluster.sandbox.kubernetes)
    installation.shell(commands("install kustomize managed", older=older))
    installation.is_available()
    installation.is_all_well(archive)
    lines = commands("uninstall kustomize managed", older=older).splitlines()
    after = next(number for number, line in enumerate(lines) if "deploy/admission" in line)
    program = "kube-scheduler-operator uninstall --keep-crds"
    print(installation.shell("\n".join([program, *lines[after:]])))
    is_as_it_was(installation)
