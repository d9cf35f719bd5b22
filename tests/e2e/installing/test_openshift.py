"""On OpenShift the operator replaces OpenShift's own as documented, is used, and is removed.

The kinds are OpenShift's own definitions. What its operator leaves behind is there as well: the two
objects that people edit, a scheduler on the node, and accounts that are cluster-admin.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from cluster import lifecycle, model, openshift
from cluster.api import Api, ApiError
from cluster.observe import CLUSTEROPERATOR, KUBESCHEDULER, SCHEDULER, delete_pod, until
from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import OPENSHIFT

from ..conftest import NAME_TO_LEAVE, Cluster, up
from ..documented import commands
from .installation import Installation, Key, files, prepared, programs

BINDING = "system:openshift:operator:cluster-kube-scheduler-operator"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
STAYS = (
    "clusteroperator.config.openshift.io/kube-scheduler",
    "kubescheduler.operator.openshift.io/cluster",
    "namespace/openshift-kube-scheduler",
    "namespace/openshift-kube-scheduler-operator",
    "scheduler.config.openshift.io/cluster",
)


def left_by_openshifts_operator(api: Api, node: str) -> None:
    """What its release payload has, with the names of `deploy/openshift`, and its record."""
    namespace = OPENSHIFT.operator_namespace
    api.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
    operator, config = "operator.openshift.io/v1", "config.openshift.io/v1"
    cluster = {"name": names.CLUSTER}
    spec = {"managementState": "Managed"}
    name = {"name": names.CLUSTEROPERATOR}
    for path, version, kind, body in (
        (KUBESCHEDULER, operator, "KubeScheduler", {"metadata": cluster, "spec": spec}),
        (SCHEDULER, config, "Scheduler", {"metadata": cluster, "spec": {}}),
        (CLUSTEROPERATOR, config, "ClusterOperator", {"metadata": name, "spec": {}}),
    ):
        api.create(path.rpartition("/")[0], {"apiVersion": version, "kind": kind, **body})
    number = openshift.REVISION
    for reached in ({}, {"currentRevision": number}):  # the definition refuses it in a new element
        nodes = [{"nodeName": node, **reached}]
        status = {"latestAvailableRevision": number, "nodeStatuses": nodes}
        api.request("PATCH", f"{KUBESCHEDULER}/status", {"status": status})
    account = {"kind": "ServiceAccount", "name": OPENSHIFT.operator.deployment}
    api.create(
        BINDINGS,
        {
            "metadata": {"name": BINDING},
            "roleRef": {"kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{**account, "namespace": namespace}],
        },
    )


def compared(key: Key, content: Mapping[str, Any]) -> Mapping[str, Any]:
    """Each operator keeps its own spec.observedConfig, and writes managementState's default."""
    if key[0].endswith("/kubeschedulers"):
        spec = {k: v for k, v in content["spec"].items() if k != "observedConfig"}
        return {**content, "spec": spec}
    if key[0].endswith("/clusterversions"):
        return {**content, "spec": {**content["spec"], "overrides": []}}
    return content


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    kind = lifecycle.ClusterKind(model.OPENSHIFT)
    with up(NAME_TO_LEAVE, 1, 0, with_operator=False, kind=kind) as sandbox:
        left_by_openshifts_operator(Api(sandbox), sandbox.nodes[0].name)
        openshift.install_scheduler(sandbox, sandbox.nodes[0])
        until(lambda: Cluster(sandbox).scheduler()[0], 60, "no scheduler on the node")
        openshift.switch_off_bootstrap(sandbox)
        pod = f"bootstrap-kube-scheduler-{sandbox.bootstrap.name}"
        delete_pod(Api(sandbox), pod, "kube-system")  # the garbage collector would, minutes later
        with prepared(sandbox) as cluster:
            home = tmp_path_factory.mktemp("home")
            yield Installation(cluster, programs(sandbox), home, compared)


def files_of_others(cluster: Cluster) -> list[str]:
    """The node's files, without the certificates, which OpenShift's own scheduler reads as well."""
    return [line for line in files(cluster).splitlines() if "kube-scheduler-certs" not in line]


@pytest.fixture(scope="module")
def files_before(installation: Installation) -> list[str]:
    return files_of_others(installation.cluster)


def administrators(api: Api) -> list[str]:
    """Which accounts that Pods of the operator have may do everything."""
    accounts = (
        (OPENSHIFT.operator_namespace, OPENSHIFT.operator.account),
        (OPENSHIFT.target_namespace, "cert-syncer-sa"),
        (OPENSHIFT.target_namespace, names.INSTALLER_SERVICE_ACCOUNT),
    )
    everything = {"verb": "*", "group": "*", "resource": "*"}
    found = []
    for namespace, name in accounts:
        user = f"system:serviceaccount:{namespace}:{name}"
        spec = {"user": user, "resourceAttributes": everything}
        if api.request("POST", REVIEWS, {"spec": spec})["status"]["allowed"]:
            found.append(user)
    return found


def use(installation: Installation) -> None:
    cluster = installation.cluster
    installation.is_available()
    until(cluster.calm, 180, lambda: f"no rest: {cluster.status}")
    line = cluster.profile("HighNodeUtilization")
    assert line.outcome == "installed", line.message
    assert line.revision > openshift.REVISION
    cluster.edit(SCHEDULER, {"profile": None})
    cluster.schedules()
    assert administrators(cluster.api) == []


def is_as_it_was(installation: Installation, files_before: list[str]) -> None:
    cluster = installation.cluster
    assert files_of_others(cluster) == files_before
    installation.api_is_as_it_was(*STAYS)
    annotations = cluster.kubescheduler["metadata"].get("annotations", {})
    assert names.MANAGEMENT_ANNOTATION not in annotations
    cluster.schedules()


def test_openshifts_definition_refuses_the_states_in_the_field(installation: Installation) -> None:
    for state in ("Unmanaged", "Removed"):
        edit = {"spec": {"managementState": state}}
        with pytest.raises(ApiError, match="managementState"):
            installation.cluster.api.request("PATCH", KUBESCHEDULER, edit)


@pytest.mark.presubmit
@pytest.mark.timeout(900, func_only=True)
def test_the_commands_of_the_page_replace_and_uninstall(
    installation: Installation, files_before: list[str]
) -> None:
    cluster = installation.cluster
    installation.shell(commands("install openshift"))
    use(installation)
    annotation = f"{names.MANAGEMENT_ANNOTATION}=Unmanaged"
    cluster.kubectl("annotate", "kubescheduler", "cluster", annotation)
    until(lambda: cluster.cluster_operator("Available")[0] == "Unknown", 60, "it is not paused")
    print(installation.shell(commands("uninstall openshift")))
    is_as_it_was(installation, files_before)


@pytest.mark.timeout(900, func_only=True)
def test_the_program_uninstalls_and_keeps_what_is_the_clusters(
    installation: Installation, files_before: list[str], archive: Path
) -> None:
    installation.shell(commands("install openshift"))
    use(installation)
    installation.is_all_well(archive)
    printed = installation.shell("kube-scheduler-operator uninstall --platform openshift")
    print(printed)
    assert "kept KubeScheduler cluster" in printed
    lines = commands("uninstall openshift").splitlines()
    after = next(number for number, line in enumerate(lines) if "delete clusterroles" in line)
    print(installation.shell("\n".join(lines[after:-1])))
    is_as_it_was(installation, files_before)
