"""The operator is installed in a cluster that kubeadm created."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.kube.resource import (
    CONFIG_MAPS,
    KUBE_SCHEDULERS,
    PODS,
    SCHEDULERS,
    ObjectRef,
)

from .invariants import configuration, revisions_are_complete_and_in_order
from .scheduler import STOCK, STOCK_ARGUMENTS, Manifest
from .world import World

pytestmark = pytest.mark.presubmit_first


@pytest.mark.parametrize("nodes", [1, 3])
def test_stock_schedulers_are_adopted_with_a_single_revision(nodes: int) -> None:
    world = World(nodes=nodes)
    world.settle(60)
    assert set(world.current().values()) == {1}
    revisions_are_complete_and_in_order(world.revisions)
    assert len(world.revisions) == 1
    assert configuration(world, 1)["kind"] == "KubeSchedulerConfiguration"
    assert world.condition(names.STATIC_PODS_DEGRADED) == "False"
    world.run(150)
    assert world.operator_condition("Available")["status"] == "True"
    assert world.operator_condition("Degraded")["status"] == "False"
    assert world.operator_condition("Progressing")["status"] == "False"


def test_flags_of_the_stock_scheduler_survive_its_adoption() -> None:
    world = World(start=False)
    machine = world.machines["node-a"]
    arguments = (*STOCK_ARGUMENTS, "--kube-api-qps=70", "--tls-min-version=VersionTLS13")
    machine.overwrite(Manifest(0, "", STOCK.image, arguments, STOCK.behavior))
    world.run(5)
    world.operator.start()
    world.settle(60)
    assert machine.manifest is not None
    assert "--tls-min-version=VersionTLS13" in machine.manifest.arguments
    assert len(world.revisions) == 1
    observed = world.kubescheduler["spec"]["observedConfig"]
    assert observed["arguments"] == {"tls-min-version": ["VersionTLS13"]}


@pytest.mark.parametrize("stopped", [False, True], ids=["running", "stopped"])
@pytest.mark.parametrize("left", ["nothing", "null"])
def test_a_client_that_replaces_kubescheduler_loses_no_flag(stopped: bool, left: str) -> None:
    """Git has no observedConfig, so `kubectl replace` removes it; no revision follows."""
    world = World(start=False)
    machine = world.machines["node-a"]
    arguments = (*STOCK_ARGUMENTS, "--kube-api-qps=70", "--tls-min-version=VersionTLS13", "--v=4")
    machine.overwrite(Manifest(0, "", STOCK.image, arguments, STOCK.behavior))
    world.run(5)
    world.operator.start()
    world.settle(60)
    observed = world.kubescheduler["spec"]["observedConfig"]
    assert observed["arguments"] == {"tls-min-version": ["VersionTLS13"], "v": ["4"]}
    if stopped:
        world.operator.kill()

    def replace_spec(obj: dict[str, Any]) -> None:
        spec = {key: value for key, value in obj["spec"].items() if key != "observedConfig"}
        obj["spec"] = spec if left == "nothing" else {**spec, "observedConfig": None}

    world.server.edit("user", KUBE_SCHEDULERS, "cluster", replace_spec)
    if stopped:
        world.operator.start()
    world.run(150)
    assert world.kubescheduler["spec"]["observedConfig"] == observed
    assert len(world.revisions) == 1
    assert set(world.current().values()) == {1}


def test_a_flag_that_a_user_removes_from_the_observed_configuration_is_dropped() -> None:
    world = World(start=False)
    arguments = (*STOCK_ARGUMENTS, "--tls-min-version=VersionTLS13")
    manifest = Manifest(0, "", STOCK.image, arguments, STOCK.behavior)
    world.machines["node-a"].overwrite(manifest)
    world.run(5)
    world.operator.start()
    world.settle(60)
    world.spec(observedConfig={})
    world.run(1)
    world.settle(60)
    assert "arguments" not in world.kubescheduler["spec"]["observedConfig"]
    assert set(world.current().values()) == {2}


CUSTOMISED = {
    "env": [{"name": "GOGC", "value": "50"}],
    "resources": {"requests": {"cpu": "250m", "memory": "300Mi"}, "limits": {"memory": "1Gi"}},
}


def customised(world: World, *nodes: str, **changes: Any) -> None:
    """Give the stock schedulers of nodes other settings."""
    for name in nodes or tuple(world.machines):
        container = json.dumps({**CUSTOMISED, **changes})
        world.machines[name].overwrite(replace(STOCK, container=container))
    world.run(5)


def test_pod_settings_of_the_stock_scheduler_survive_adoption_edits_and_restarts() -> None:
    world = World(start=False, nodes=3)
    customised(world)
    world.operator.start()
    world.settle(150)
    assert set(world.current().values()) == {1}
    assert world.full_condition(names.ADOPTED_SETTINGS)["status"] == "True"
    world.operator.kill()
    world.operator.start()
    world.spec(logLevel="Debug")
    world.run(1)
    world.settle(150)
    assert set(world.current().values()) == {2}
    for machine in world.machines.values():
        assert machine.manifest is not None
        assert json.loads(machine.manifest.container) == CUSTOMISED


def test_stock_schedulers_that_differ_block_adoption_until_they_are_equal() -> None:
    world = World(start=False, nodes=3)
    customised(world, "node-a", "node-b")
    world.operator.start()
    world.run(60)
    assert world.revisions == ()
    assert {machine.shown for machine in world.machines.values()} == {0}
    condition = world.full_condition(names.ADOPTION_DEGRADED)
    assert (condition["status"], condition["reason"]) == ("True", "NodesDiffer")
    assert 'node "node-c" and node "node-a" differ in env.GOGC, resources;' in condition["message"]
    assert world.operator_condition("Degraded")["status"] == "True"
    customised(world, "node-c")
    world.settle(150)
    assert set(world.current().values()) == {1}
    assert world.condition(names.ADOPTION_DEGRADED) == "False"


def test_what_cannot_be_kept_blocks_and_names_no_value() -> None:
    world = World(start=False)
    customised(world, env=[{"name": "HTTPS_PROXY", "value": "http://me:hunter2@proxy:3128"}])
    world.operator.start()
    world.run(60)
    assert world.machines["node-a"].shown == 0
    assert world.machines["node-a"].healthy
    message = world.full_condition(names.ADOPTION_DEGRADED)["message"]
    assert "env.HTTPS_PROXY: has credentials in the manifest" in message
    written = [o for ref, o in world.server.objects.items() if ref.resource.kind != "Pod"]
    assert "hunter2" not in str(written)


def test_a_manifest_that_is_rewritten_later_changes_nothing_that_was_adopted() -> None:
    world = World(start=False, nodes=3)
    customised(world)
    world.operator.start()
    world.settle(150)
    world.machines["node-b"].overwrite(STOCK)
    world.run(60)
    world.settle(150)
    assert set(world.current().values()) == {1}
    manifest = world.machines["node-b"].manifest
    assert manifest is not None
    assert json.loads(manifest.container) == CUSTOMISED


def test_what_was_adopted_outlives_the_loss_of_all_revisions() -> None:
    world = World(start=False, nodes=3)
    customised(world)
    world.operator.start()
    world.settle(150)
    for ref in [ref for ref in world.server.objects if ref.resource == CONFIG_MAPS]:
        world.server.finalize("admin", ref)
    world.run(60)
    world.settle(300)
    for machine in world.machines.values():
        assert machine.manifest is not None
        assert json.loads(machine.manifest.container) == CUSTOMISED
        assert machine.shown == 1, "the content is the same, so no scheduler restarts"
    (record,) = {
        world.config_map(f"{names.POD}-{number}")["data"][names.ADOPTED_KEY]
        for number in set(world.current().values())
    }
    assert json.loads(record)["pod"] == {"container": CUSTOMISED}


CONFIG_FILE = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "clientConnection": {"kubeconfig": "/etc/kubernetes/scheduler.conf", "qps": 120},
    "leaderElection": {"leaderElect": True, "leaseDuration": "30s"},
    "parallelism": 8,
    "profiles": [
        {
            "schedulerName": "default-scheduler",
            "plugins": {"score": {"disabled": [{"name": "ImageLocality"}]}},
        },
        {"schedulerName": "second"},
    ],
}


def with_file(world: World, *nodes: str, **changes: Any) -> None:
    """Let the stock schedulers of nodes read a file."""
    arguments = (*STOCK_ARGUMENTS, "--config=/etc/kubernetes/scheduler/config.yaml")
    for name in nodes or tuple(world.machines):
        machine = world.machines[name]
        machine.config_file = json.dumps({**CONFIG_FILE, **changes})
        machine.overwrite(replace(STOCK, arguments=arguments))
    world.run(5)


@pytest.mark.parametrize("nodes", [1, 3])
def test_the_file_of_the_stock_scheduler_is_read_on_the_node_and_kept(nodes: int) -> None:
    world = World(start=False, nodes=nodes)
    with_file(world)
    world.operator.start()
    world.settle(150)
    assert set(world.current().values()) == {1}
    config = configuration(world, 1)
    assert config["parallelism"] == 8
    assert config["clientConnection"]["qps"] == 120
    assert config["leaderElection"]["leaseDuration"] == "30s"
    assert config["leaderElection"]["resourceName"] == "kube-scheduler"
    assert [one["schedulerName"] for one in config["profiles"]] == ["default-scheduler", "second"]
    assert config["profiles"][0]["plugins"]["score"]["disabled"] == [{"name": "ImageLocality"}]
    pods = [pod["metadata"]["name"] for pod in world.server.list(PODS)]
    assert not [name for name in pods if name.startswith("config-reader")]
    world.operator.kill()
    world.operator.start()
    world.spec(logLevel="Debug")
    world.run(1)
    world.settle(150)
    assert configuration(world, 2) == config


def test_files_that_differ_block_with_the_field_and_are_read_again() -> None:
    world = World(start=False, nodes=3)
    with_file(world)
    with_file(world, "node-b", parallelism=9)
    world.operator.start()
    world.run(60)
    assert world.revisions == ()
    message = world.full_condition(names.ADOPTION_DEGRADED)["message"]
    assert 'node "node-b" and node "node-a" differ in config.parallelism;' in message
    with_file(world, "node-b")
    world.settle(150)
    assert set(world.current().values()) == {1}


def test_a_file_that_names_another_lease_blocks() -> None:
    world = World(start=False)
    with_file(world, leaderElection={"resourceName": "mine"})
    world.operator.start()
    world.run(60)
    assert world.revisions == ()
    message = world.full_condition(names.ADOPTION_DEGRADED)["message"]
    assert "config.leaderElection.resourceName: /etc/kubernetes/scheduler/config.yaml: " in message


def test_a_removal_while_a_file_is_read_leaves_no_pod() -> None:
    world = World(start=False)
    with_file(world, leaderElection={"resourceName": "mine"})
    world.operator.start()
    world.run(30)
    world.spec(managementState="Removed")
    world.run(30)
    pods = [pod["metadata"]["name"] for pod in world.server.list(PODS)]
    assert not [name for name in pods if name.startswith("config-reader")]


def test_settings_with_an_error_are_left_out_of_the_adoption_and_no_flag_is_lost() -> None:
    world = World(start=False, nodes=3)
    arguments = (
        *STOCK_ARGUMENTS,
        "--tls-min-version=VersionTLS13",
        "--feature-gates=AllBeta=false",
    )
    for machine in world.machines.values():
        machine.overwrite(Manifest(0, "", STOCK.image, arguments, STOCK.behavior))
    world.spec(
        featureGates={"NoSuchGate": True},
        tlsSecurityProfile={"type": "Moderne"},
        unsupportedConfigOverrides={"parallelism": 0},
    )
    world.run(5)
    world.operator.start()
    world.settle(150)
    assert set(world.current().values()) == {1}
    for machine in world.machines.values():
        assert machine.manifest is not None
        assert {"--tls-min-version=VersionTLS13", "--feature-gates=AllBeta=false"} <= set(
            machine.manifest.arguments
        )
    degraded = world.full_condition(names.TARGET_CONFIG_DEGRADED)["message"]
    assert "spec.featureGates.NoSuchGate: " in degraded
    assert "spec.tlsSecurityProfile.type: " in degraded
    assert world.condition(names.OVERRIDES_DEGRADED) == "True"
    assert world.operator_condition("Degraded")["status"] == "True"
    world.spec(
        featureGates={"AllBeta": True},
        tlsSecurityProfile={"type": "Intermediate"},
        unsupportedConfigOverrides={"parallelism": 7},
    )
    world.run(1)
    world.settle(150)
    assert set(world.current().values()) == {2}
    assert configuration(world, 2)["parallelism"] == 7
    assert world.operator_condition("Degraded")["status"] == "False"


def test_an_adopted_image_is_the_one_that_runs() -> None:
    world = World(start=False)
    machine = world.machines["node-a"]
    machine.overwrite(
        Manifest(0, "", "mirror.local/kube-scheduler:v1.34.2", STOCK_ARGUMENTS, STOCK.behavior)
    )
    world.run(5)
    world.operator.start()
    world.settle(60)
    assert machine.manifest is not None
    assert machine.manifest.image == "mirror.local/kube-scheduler:v1.34.2"


def test_without_a_scheduler_object_the_stock_scheduler_is_not_touched() -> None:
    world = World(start=False)
    world.server.delete("user", ObjectRef(SCHEDULERS, None, "cluster"))
    world.operator.start()
    world.run(30)
    assert world.machines["node-a"].shown == 0
    assert world.machines["node-a"].healthy
    assert world.revisions == ()
    degraded = world.full_condition(names.TARGET_CONFIG_DEGRADED)
    assert degraded["status"] == "True"
    assert degraded["reason"] == "SchedulerNotFound"
    body = {"apiVersion": "config.openshift.io/v1", "kind": "Scheduler"}
    world.server.create("user", SCHEDULERS, {**body, "metadata": {"name": "cluster"}, "spec": {}})
    world.settle(60)
    assert world.condition(names.TARGET_CONFIG_DEGRADED) == "False"


def test_without_a_kubescheduler_nothing_is_touched_and_the_cluster_operator_reports_it() -> None:
    world = World(start=False)
    world.server.delete("user", ObjectRef(KUBE_SCHEDULERS, None, "cluster"))
    world.operator.start()
    world.run(30)
    assert world.machines["node-a"].shown == 0
    assert world.operator_condition("Degraded")["status"] == "True"
    assert world.operator_condition("Degraded")["reason"] == "KubeScheduler_NotFound"
    assert world.operator_condition("Available")["status"] == "True"


def test_a_restart_of_the_operator_during_adoption_leads_to_the_same_result() -> None:
    world = World()
    for _ in range(6):
        world.run(0.9)
        world.operator.kill()
        world.run(0.5)
        world.operator.start()
    world.settle(60)
    assert len(world.revisions) == 1
