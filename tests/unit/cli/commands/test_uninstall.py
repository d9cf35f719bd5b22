"""`kube-scheduler-operator uninstall`: first what was there comes back, then the rest goes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from kube_scheduler_operator.__main__ import main
from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.management import annotated_state
from kube_scheduler_operator.base.platform import KUBEADM, OPENSHIFT
from kube_scheduler_operator.cli.commands import uninstall
from kube_scheduler_operator.kube.resource import (
    CLUSTER_OPERATORS,
    CLUSTER_ROLE_BINDINGS,
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    DAEMON_SETS,
    DEPLOYMENTS,
    DISRUPTION_BUDGETS,
    KUBE_SCHEDULERS,
    LEASES,
    LOAD_POLICIES,
    NETWORK_POLICIES,
    PODS,
    ROLE_BINDINGS,
    SCHEDULER_EXTENDERS,
    SCHEDULER_PROFILES,
    SCHEDULERS,
    SECONDARY_SCHEDULERS,
    SECRETS,
    SERVICE_ACCOUNTS,
    Resource,
)

from ..conftest import Cluster, Done

NAMESPACE = KUBEADM.operator_namespace
KINDS = (KUBE_SCHEDULERS, SCHEDULERS, CLUSTER_OPERATORS)
MANAGED = {names.MANAGED_BY_LABEL: names.PROGRAM}


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uninstall, "INTERVAL", 0.01)


@pytest.fixture
def installed(cluster: Cluster) -> Iterator[Cluster]:
    """The operator in a cluster, as its API shows it."""
    api = cluster.api
    api.served |= {
        *KINDS, CUSTOM_RESOURCE_DEFINITIONS, DEPLOYMENTS, LEASES, CONFIG_MAPS, PODS,
        SERVICE_ACCOUNTS, DISRUPTION_BUDGETS, CLUSTER_ROLE_BINDINGS, ROLE_BINDINGS, DAEMON_SETS,
        SECONDARY_SCHEDULERS, LOAD_POLICIES,
    }  # fmt: skip
    for kind in KINDS:
        api.put(CUSTOM_RESOURCE_DEFINITIONS, kind.name, labels={names.PART_OF_LABEL: names.PROGRAM})
    api.put(KUBE_SCHEDULERS, names.CLUSTER, spec={}, status={})
    api.put(SCHEDULERS, names.CLUSTER)
    api.put(CLUSTER_OPERATORS, names.CLUSTEROPERATOR)
    api.put(DEPLOYMENTS, names.PROGRAM, NAMESPACE, labels={names.PART_OF_LABEL: names.PROGRAM})
    api.put(LEASES, names.LEASE, NAMESPACE, spec={})
    api.put(CONFIG_MAPS, "revision-status-1", NAMESPACE, labels=MANAGED)
    api.put(CONFIG_MAPS, "kube-root-ca.crt", NAMESPACE)
    yield cluster
    # Whatever happened, this is not ours.
    assert (NAMESPACE, "kube-root-ca.crt") in api.objects[CONFIG_MAPS]


def report(
    cluster: Cluster,
    reason: str,
    message: str,
    generation: int = 2,
    type_: str = names.NODE_INSTALLER_PROGRESSING,
) -> None:
    """The status that the operator writes."""
    condition = {
        "type": type_,
        "status": "False" if reason == "Removed" else "True",
        "reason": reason,
        "message": message,
    }
    found = cluster.api.objects[KUBE_SCHEDULERS][None, names.CLUSTER]
    cluster.api.put(
        KUBE_SCHEDULERS,
        names.CLUSTER,
        metadata={**found["metadata"], "generation": 2},
        status={"observedGeneration": generation, "conditions": [condition]},
    )


def removed(cluster: Cluster) -> bool:
    found = cluster.api.objects[KUBE_SCHEDULERS].get((None, names.CLUSTER), {})
    return bool(found.get("spec", {}).get("managementState") == "Removed")


def forget(cluster: Cluster) -> None:
    cluster.api.remove(CONFIG_MAPS, "revision-status-1", NAMESPACE)


@asynccontextmanager
async def operator(cluster: Cluster, *steps: Callable[[], None]) -> AsyncIterator[None]:
    """Takes one step after the other once it is to be removed."""

    async def work() -> None:
        while not removed(cluster):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        for step in steps:
            step()
            await asyncio.sleep(0.1)

    task = asyncio.create_task(work())
    try:
        yield
    finally:
        task.cancel()


async def run(cluster: Cluster, *arguments: str) -> Done:
    argv = ["uninstall", "--kubeconfig", str(cluster.kubeconfig), *arguments]
    code = await asyncio.to_thread(main, argv)
    printed = cluster.capsys.readouterr()
    return Done(code, printed.out, printed.err)


def left(cluster: Cluster, *kinds: Resource) -> list[str]:
    return [
        f"{kind.kind} {name}"
        for kind in kinds or (*KINDS, CUSTOM_RESOURCE_DEFINITIONS, DEPLOYMENTS, LEASES)
        for _, name in cluster.api.objects.get(kind, {})
    ]


async def test_everything_in_its_order(installed: Cluster) -> None:
    nodes = "on 1 node what ran before the operator is still to be brought back: a: …"
    steps = (
        lambda: report(installed, "Removing", nodes),
        lambda: report(installed, "Removed", "done"),
        lambda: forget(installed),
    )
    async with operator(installed, *steps):
        done = await run(installed)
    assert (done.code, done.err) == (0, "")
    assert left(installed) == []
    reported = [line.partition(" ")[2] for line in done.out.splitlines()]
    assert nodes in reported
    assert (
        "waiting for the operator to delete ConfigMap kube-scheduler-operator/revision-status-1"
        in (reported)
    )
    deletions = [seen.path.rpartition("/")[2] for seen in installed.api.requests("DELETE")]
    assert deletions == [
        names.PROGRAM, names.LEASE,
        names.CLUSTER, names.KUBESCHEDULERS,
        names.CLUSTER, names.SCHEDULERS,
        names.CLUSTEROPERATOR, names.CLUSTEROPERATORS,
    ]  # fmt: skip
    deployment = installed.api.requests("DELETE", "deployments")[0]
    assert deployment.body["propagationPolicy"] == "Foreground", "its pods have to go first"


async def test_where_the_provider_runs_the_scheduler_the_operator_deletes_its_own_first(
    installed: Cluster,
) -> None:
    """As long as it is Managed, the operator makes a deleted SecondaryScheduler again."""
    api = installed.api
    forget(installed)
    api.put(SECONDARY_SCHEDULERS, "managed-scheduler", spec={"namespace": NAMESPACE})
    api.put(SECONDARY_SCHEDULERS, "mine", spec={"namespace": NAMESPACE})

    def deletes_its_own() -> None:
        assert len(api.objects[SECONDARY_SCHEDULERS]) == 2, "the command has deleted none yet"
        api.remove(SECONDARY_SCHEDULERS, "managed-scheduler")
        report(installed, "Removed", "done", type_=names.SCHEDULERS_PROGRESSING)

    async with operator(installed, deletes_its_own):
        done = await run(installed, "--platform", "managed")
    assert (done.code, done.err) == (0, "")
    assert "the operator has deleted its scheduler" in done.out
    assert left(installed, *KINDS, SECONDARY_SCHEDULERS) == []


async def test_a_state_from_before_is_not_taken_for_the_end(installed: Cluster) -> None:
    """Removed, then Managed, and now Removed again: the status may still be of the first time."""
    report(installed, "Removed", "long ago", generation=1)
    forget(installed)
    done = await run(installed, "--timeout", "2")
    assert done.code == 1
    assert "waiting for the operator to observe the change" in done.err
    assert installed.api.requests("DELETE") == []


async def test_timeout_reports_the_pending_step_and_can_be_repeated(installed: Cluster) -> None:
    async with operator(installed, lambda: report(installed, "Removing", "b: is not Ready")):
        done = await run(installed, "--timeout", "2")
    assert done.code == 1
    assert (
        "not finished after 2 s: b: is not Ready; resolve this and run the command again"
        in done.err
    )
    assert installed.api.requests("DELETE") == []
    report(installed, "Removed", "done")
    forget(installed)
    assert (await run(installed)).code == 0
    assert left(installed) == []
    assert len(installed.api.requests("PATCH")) == 1


async def test_an_operator_that_does_not_run_is_named(installed: Cluster) -> None:
    done = await run(installed, "--timeout", "2")
    assert done.code == 1
    assert (
        "no operator is running (Lease kube-scheduler-operator/kube-scheduler-operator-lock)"
        in (done.err)
    )


async def test_without_a_kubescheduler_no_node_is_restored(
    installed: Cluster,
) -> None:
    forget(installed)
    installed.api.remove(KUBE_SCHEDULERS, names.CLUSTER)
    done = await run(installed)
    assert done.code == 0
    assert "no node has to be restored" in done.out
    assert left(installed) == []
    assert (await run(installed)).code == 0, "and once more"


async def test_an_operator_that_never_ran_is_removed_at_once(installed: Cluster) -> None:
    """Its Pods are Pending: there is no Lease, no status and no object of its own."""
    forget(installed)
    installed.api.remove(LEASES, names.LEASE, NAMESPACE)
    done = await run(installed, "--timeout", "2")
    assert (done.code, done.err) == (0, "")
    assert "no node has to be restored" in done.out
    (patch,) = installed.api.requests("PATCH")
    assert patch.body == {"spec": {"managementState": "Removed"}}, (
        "one that starts now does nothing"
    )
    assert left(installed) == []


@pytest.mark.parametrize("refused", [True, False], ids=["refused", "no operator runs"])
async def test_nothing_is_deleted_before_the_nodes_are_restored(
    installed: Cluster, refused: bool
) -> None:
    installed.api.put(LOAD_POLICIES, "default", spec={})
    installed.api.put(SECONDARY_SCHEDULERS, "mine", spec={"namespace": NAMESPACE})
    if refused:
        installed.api.fail(422, method="PATCH", reason="Invalid", message="spec.managementState")
    done = await run(installed, "--timeout", "2")
    assert done.code == 1
    assert ("spec.managementState" if refused else "no operator is running") in done.err
    assert installed.api.requests("DELETE") == []


async def test_the_deployment_of_another_operator_is_refused(installed: Cluster) -> None:
    installed.api.put(DEPLOYMENTS, names.PROGRAM, NAMESPACE, labels={"app": "another"})
    done = await run(installed)
    assert done.code == 1
    assert "belongs to another operator" in done.err
    assert installed.api.requests("PATCH") == installed.api.requests("DELETE") == []


async def test_on_openshift_an_annotation_requests_the_removal(installed: Cluster) -> None:
    """OpenShift's definition of KubeScheduler refuses managementState Removed."""
    api, platform = installed.api, OPENSHIFT
    for kind in KINDS:
        api.put(CUSTOM_RESOURCE_DEFINITIONS, kind.name, labels={})
    spaces = (platform.operator_namespace, platform.target_namespace)
    labels = {names.PART_OF_LABEL: names.PROGRAM}
    api.served |= {NETWORK_POLICIES, SECRETS}
    api.put(DEPLOYMENTS, platform.operator.deployment, spaces[0], labels=labels)
    api.put(LEASES, platform.operator.lease, spaces[0], spec={})
    api.put(CONFIG_MAPS, "revision-status-1", spaces[1], labels=MANAGED)
    condition = {"type": names.NODE_INSTALLER_PROGRESSING, "reason": "Removed", "status": "False"}

    async def operate() -> None:
        while not (patches := api.requests("PATCH")):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        assert patches[0].body == {
            "metadata": {"annotations": {names.MANAGEMENT_ANNOTATION: "Removed"}}
        }
        found = api.objects[KUBE_SCHEDULERS][None, names.CLUSTER]
        metadata = {**found["metadata"], "generation": 1}
        status = {"observedGeneration": 1, "conditions": [condition]}
        api.put(KUBE_SCHEDULERS, names.CLUSTER, metadata=metadata, status=status)
        api.remove(CONFIG_MAPS, "revision-status-1", spaces[1])

    task = asyncio.create_task(operate())
    done = await run(installed, "--platform", "openshift")
    await task
    assert (done.code, done.err) == (0, "")
    assert f"[{names.MANAGEMENT_ANNOTATION}] of KubeScheduler cluster is Removed" in done.out
    assert "kept KubeScheduler cluster" in done.out
    kept = api.objects[KUBE_SCHEDULERS][None, names.CLUSTER]
    assert annotated_state(kept) == "", "an operator that is installed again is Managed"
    assert (spaces[0], platform.operator.deployment) not in api.objects[DEPLOYMENTS]


async def test_a_cluster_that_never_had_the_operator(cluster: Cluster) -> None:
    cluster.api.served |= {
        CUSTOM_RESOURCE_DEFINITIONS, DEPLOYMENTS, LEASES, CONFIG_MAPS, SERVICE_ACCOUNTS,
        DISRUPTION_BUDGETS, CLUSTER_ROLE_BINDINGS, ROLE_BINDINGS, DAEMON_SETS,
    }  # fmt: skip
    cluster.api.served -= set(KINDS)
    assert (await run(cluster)).code == 0


async def test_deleted_kubescheduler_is_created_again(installed: Cluster) -> None:
    """Its revisions are there, so nodes may run them."""
    installed.api.remove(KUBE_SCHEDULERS, names.CLUSTER)
    steps = (lambda: report(installed, "Removed", "done"), lambda: forget(installed))
    async with operator(installed, *steps):
        done = await run(installed)
    assert done.code == 0
    assert "with the management state Removed" in done.out
    assert left(installed) == []


async def test_an_operator_that_runs_elsewhere_has_to_end(installed: Cluster) -> None:
    report(installed, "Removed", "done")
    forget(installed)
    installed.api.put(
        LEASES,
        names.LEASE,
        NAMESPACE,
        spec={"holderIdentity": "laptop", "leaseDurationSeconds": 15},
    )
    done = await run(installed, "--timeout", "2")
    assert done.code == 1
    assert "another operator is running as laptop; stop it" in done.err
    assert "KubeScheduler cluster" in left(installed)


async def test_expired_lease_has_no_holder(installed: Cluster) -> None:
    report(installed, "Removed", "done")
    forget(installed)
    spec: dict[str, Any] = {"holderIdentity": "dead", "leaseDurationSeconds": 1}
    installed.api.put(LEASES, names.LEASE, NAMESPACE, spec=spec)
    assert (await run(installed, "--timeout", "20")).code == 0
    assert left(installed) == []


@pytest.mark.parametrize("renewed", ["2000-01-01T00:00:00Z", "2999-01-01T00:00:00Z"])
async def test_whether_an_operator_runs_does_not_depend_on_clocks(
    installed: Cluster, renewed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It runs until its Lease has been the same for its duration, here on a fast clock."""
    fast = SimpleNamespace(monotonic=lambda: 10 * time.monotonic())
    monkeypatch.setattr(uninstall, "time", fast)
    for duration, expired in ((60, False), (1, True)):
        lease = {"holderIdentity": "it", "leaseDurationSeconds": duration, "renewTime": renewed}
        installed.api.put(LEASES, names.LEASE, NAMESPACE, spec=lease)
        done = await run(installed, "--timeout", "1.5")
        assert "waiting for the operator to observe the change" in done.err
        assert ("no operator is running" in done.err) is expired


async def test_kinds_of_other_owners_are_kept_with_their_objects(installed: Cluster) -> None:
    report(installed, "Removed", "done")
    forget(installed)
    installed.api.put(CUSTOM_RESOURCE_DEFINITIONS, names.SCHEDULERS, labels={})
    installed.api.put(CLUSTER_OPERATORS, "dns")
    done = await run(installed)
    assert done.code == 0
    assert "kept Scheduler cluster: its kind was not installed with the operator" in done.out
    assert "other objects of this kind exist: dns" in done.out
    assert sorted(left(installed)) == [
        "ClusterOperator dns",
        f"CustomResourceDefinition {names.CLUSTEROPERATORS}",
        f"CustomResourceDefinition {names.SCHEDULERS}",
        "Scheduler cluster",
    ]


@pytest.mark.parametrize("kind", [SCHEDULER_EXTENDERS, SCHEDULER_PROFILES], ids=lambda k: k.kind)
@pytest.mark.parametrize("used", [True, False])
async def test_unused_kinds_of_users_are_deleted(
    cluster: Cluster, kind: Resource, used: bool
) -> None:
    api = cluster.api
    api.served |= {CUSTOM_RESOURCE_DEFINITIONS, DEPLOYMENTS, LEASES, CONFIG_MAPS, SERVICE_ACCOUNTS,
                   DISRUPTION_BUDGETS, kind, SECONDARY_SCHEDULERS,
                   CLUSTER_ROLE_BINDINGS, ROLE_BINDINGS, DAEMON_SETS}  # fmt: skip
    labels = {names.PART_OF_LABEL: names.PROGRAM}
    api.put(CUSTOM_RESOURCE_DEFINITIONS, kind.name, labels=labels)
    if used:
        cluster.put(kind, {"metadata": {"name": "team"}, "spec": {}})
    done = await run(cluster)
    assert done.code == 0
    kinds = [name for _, name in api.objects[CUSTOM_RESOURCE_DEFINITIONS]]
    assert kinds == ([kind.name] if used else [])
    assert ("other objects of this kind exist: team" in done.out) == used
    assert len(api.objects.get(kind, {})) == used, "users' own objects stay"


async def test_kinds_can_be_left_to_kubectl(installed: Cluster) -> None:
    report(installed, "Removed", "done")
    forget(installed)
    assert (await run(installed, "--keep-crds")).code == 0
    assert left(installed, *KINDS) == []
    assert len(left(installed, CUSTOM_RESOURCE_DEFINITIONS)) == len(KINDS)


async def test_secondary_schedulers_are_deleted_first_with_their_objects(
    installed: Cluster,
) -> None:
    """Their kind must be there for as long as the garbage collector needs it."""
    report(installed, "Removed", "done")
    forget(installed)
    api = installed.api
    kind, labels = names.SECONDARYSCHEDULERS, {**MANAGED, names.SECONDARY_LABEL: "mine"}
    api.put(CUSTOM_RESOURCE_DEFINITIONS, kind, labels={names.PART_OF_LABEL: names.PROGRAM})
    api.put(SECONDARY_SCHEDULERS, "mine", spec={"namespace": NAMESPACE})
    api.put(CLUSTER_ROLE_BINDINGS, "mine-as-kube-scheduler", labels=labels)
    api.put(ROLE_BINDINGS, "mine-authentication-reader", "kube-system", labels=labels)
    api.put(DEPLOYMENTS, "mine", NAMESPACE, labels=labels)
    api.put(CONFIG_MAPS, "mine-config-abc", NAMESPACE, labels=labels)
    done = await run(installed, "--timeout", "2")
    assert done.code == 1
    assert (
        "waiting for the garbage collector to delete ClusterRoleBinding mine-as-kube-scheduler, "
        "RoleBinding kube-system/mine-authentication-reader, "
        "Deployment kube-scheduler-operator/mine" in done.err
    )
    assert [seen.path.rpartition("/")[2] for seen in api.requests("DELETE")] == ["mine"]
    for resource, name, place in (
        (CLUSTER_ROLE_BINDINGS, "mine-as-kube-scheduler", None),
        (ROLE_BINDINGS, "mine-authentication-reader", "kube-system"),
        (DEPLOYMENTS, "mine", NAMESPACE),
    ):
        api.remove(resource, name, place)
    done = await run(installed)
    assert done.code == 0, "and its ConfigMap is not waited for as one of the operator's own"
    assert f"deleted CustomResourceDefinition {kind}" in done.out
    assert left(installed, CUSTOM_RESOURCE_DEFINITIONS) == []


async def test_annotations_are_taken_from_nodes_while_there_is_still_an_operator(
    installed: Cluster,
) -> None:
    report(installed, "Removed", "done")
    forget(installed)
    api = installed.api
    kind, labels = names.LOADPOLICIES, {**MANAGED, names.LOAD_LABEL: ""}
    api.put(CUSTOM_RESOURCE_DEFINITIONS, kind, labels={names.PART_OF_LABEL: names.PROGRAM})
    api.put(LOAD_POLICIES, "default", spec={})
    api.put(CONFIG_MAPS, names.LOAD_STATE, NAMESPACE, labels=labels)
    done = await run(installed, "--timeout", "2")
    assert done.code == 1
    assert (
        "waiting for the operator to remove annotations from nodes (Job "
        "kube-scheduler-operator/load-cleanup): no operator is running" in done.err
    )
    assert left(installed, DEPLOYMENTS) == [f"Deployment {names.PROGRAM}"]
    assert left(installed, LOAD_POLICIES) == []
    api.remove(CONFIG_MAPS, names.LOAD_STATE, NAMESPACE)
    done = await run(installed)
    assert done.code == 0
    assert f"deleted CustomResourceDefinition {kind}" in done.out


async def test_an_api_server_that_is_away_for_a_moment(installed: Cluster) -> None:
    report(installed, "Removed", "done")
    forget(installed)
    installed.api.fail(503, path="kubeschedulers", method="GET", times=6)
    assert (await run(installed)).code == 0


async def test_a_missing_right_is_named(installed: Cluster) -> None:
    installed.api.fail(403, method="PATCH", reason="Forbidden", message='user "x" cannot patch')
    done = await run(installed)
    assert done.code == 1
    assert "no permission to patch kubeschedulers.operator.openshift.io" in done.err
