"""Agents of the control plane's scheduler: they run before the first call and until the last."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.images import AllowedImages
from kube_scheduler_operator.base.platform import KUBEADM, OPENSHIFT
from kube_scheduler_operator.base.settings import Settings
from kube_scheduler_operator.config.effective.control_plane.scheduler import effective_control_plane
from kube_scheduler_operator.config.effective.extenders.agent import (
    ManagedAgent,
    container,
    sidecar,
)
from kube_scheduler_operator.kube.resource import (
    CONFIG_MAPS,
    DAEMON_SETS,
    KUBE_SCHEDULERS,
    PODS,
    SCHEDULER_EXTENDERS,
)
from kube_scheduler_operator.operator.controlplane.desired import facts_of, objects_of
from kube_scheduler_operator.operator.controlplane.revision.history import configurations_in_use
from kube_scheduler_operator.operator.engine.snapshots import take_snapshot
from kube_scheduler_operator.operator.extenders import agents as extender_agents
from kube_scheduler_operator.operator.model.snapshot import Snapshot

from ....expect import condition_of, expect_forgotten
from ....imitation.clock import BEGIN
from ...fake_cluster import FakeCluster

TARGET = KUBEADM.target_namespace
SAFE: dict[str, Any] = {"policies": [{"name": "safe-overload", "arguments": {"utilization": 80}}]}
URL = "http://127.0.0.1:5401/safe"


def planned_agents(world: Snapshot, results: Any) -> extender_agents.ControlPlaneAgents:
    in_use = partial(configurations_in_use, world)
    return extender_agents.control_plane_agents(world, results, in_use)


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster()


def called(cluster: FakeCluster) -> list[str]:
    """The extenders of the configuration that is about to run."""
    config = cluster.get(CONFIG_MAPS, names.CONFIG, TARGET)["data"][names.CONFIG_KEY]
    return [one["urlPrefix"] for one in json.loads(config).get("extenders", ())]


def observed(cluster: FakeCluster) -> list[str]:
    config = cluster.get(KUBE_SCHEDULERS, "cluster")["spec"].get("observedConfig") or {}
    return [one["urlPrefix"] for one in config.get("extenders", ())]


def condition(cluster: FakeCluster, type_: str, name: str = "safe") -> tuple[str, str, str]:
    return condition_of(cluster.get(SCHEDULER_EXTENDERS, name), type_)


def pod_spec(cluster: FakeCluster, name: str = "extender-safe") -> Any:
    return cluster.get(DAEMON_SETS, name, TARGET)["spec"]["template"]["spec"]


def exists(cluster: FakeCluster, *objects: str) -> list[str]:
    """Which of these objects, as `KIND NAME`, exist."""
    known = {
        f"{resource.kind} {obj['metadata']['name']}"
        for resource in (CONFIG_MAPS, DAEMON_SETS)
        for obj in cluster.list(resource)
    }
    return [one for one in objects if one in known]


def snapshot(cluster: FakeCluster) -> Snapshot:
    # The cluster's own method reconciles first.
    objects = take_snapshot(cluster.store, KUBEADM, Settings(), cluster.now)
    return replace(objects, server_version="v1.35.4", answered_since=BEGIN)


# --- creation ------------------------------------------------------------------------------------


def test_the_port_is_recorded_then_agents_run_then_they_are_called(
    cluster: FakeCluster,
) -> None:
    cluster.settle()
    cluster.extender("safe", agent=SAFE)
    writes = cluster.settle()
    status = cluster.get(SCHEDULER_EXTENDERS, "safe")["status"]
    assert status["agent"]["port"] == 5401
    assert status["endpoint"] == URL
    order = [
        writes.index(step)
        for step in (
            "replace status SchedulerExtender safe",
            "create DaemonSet extender-safe",
            "replace KubeScheduler cluster",
            "replace ConfigMap config",
        )
    ]
    assert order == sorted(order)
    assert called(cluster) == observed(cluster) == [URL]
    assert condition(cluster, names.AVAILABLE)[0] == "True"
    assert condition(cluster, names.DEGRADED)[0] == "False"


def test_a_settled_cluster_gets_no_writes(cluster: FakeCluster) -> None:
    cluster.extender("safe", agent=SAFE)
    cluster.extender("foreign", url="http://10.0.0.1", verbs={"filter": "f"})
    cluster.settle()
    cluster.now += timedelta(days=1)
    cluster.settle()  # ClusterOperator reports after a while that this cluster has no scheduler
    cluster.now += timedelta(days=1)
    plan = cluster.reconcile()
    assert (plan.actions, plan.reports, dict(plan.write_sets)) == ((), (), {})


def test_an_agent_that_was_never_ready_is_not_called(cluster: FakeCluster) -> None:
    cluster.agents_ready = False
    cluster.extender("safe", agent=SAFE)
    cluster.settle()
    assert called(cluster) == []
    status, reason, message = condition(cluster, names.AVAILABLE)
    assert (status, reason, message) == ("False", "AgentsNotReady", "0 of 1 agents are Ready")
    assert condition(cluster, names.ACCEPTED)[0] == "True"
    cluster.agents_ready = True
    cluster.settle()
    assert called(cluster) == [URL]


def test_an_agent_that_was_ready_once_is_still_called(cluster: FakeCluster) -> None:
    """It may be restarting, and kube-scheduler ignores failures of an ignorable extender."""
    cluster.extender("safe", agent=SAFE)
    cluster.settle()
    cluster.agents_ready = False
    cluster.settle()
    assert called(cluster) == [URL]
    assert condition(cluster, names.AVAILABLE)[1] == "AgentsNotReady"


# --- the objects ---------------------------------------------------------------------------------


def test_agents_run_on_the_host_network_without_dns_or_a_service(cluster: FakeCluster) -> None:
    cluster.extender("safe", agent=SAFE)
    cluster.settle()
    spec = pod_spec(cluster)
    assert spec["hostNetwork"] is True
    assert spec["dnsPolicy"] == "Default"
    assert spec["tolerations"] == [{"operator": "Exists"}]
    assert spec["priorityClassName"] == "system-node-critical"
    terms = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    keys = [term["matchExpressions"][0]["key"] for term in terms["nodeSelectorTerms"]]
    assert keys == list(KUBEADM.node_selectors)
    (agent,) = spec["containers"]
    assert agent["readinessProbe"]["httpGet"] == {
        "path": "/readyz", "host": "127.0.0.1", "port": 5401
    }  # fmt: skip
    assert spec["serviceAccountName"] == "scheduler-extender"
    assert spec["securityContext"]["runAsNonRoot"] is True


def test_an_agent_that_binds_has_its_own_service_account(cluster: FakeCluster) -> None:
    cluster.extender("safe", agent={**SAFE, "verbs": {"bind": True}})
    cluster.settle()
    assert pod_spec(cluster)["serviceAccountName"] == "scheduler-extender-binder"


def test_an_agent_binds_pods_of_its_own_schedulers_profiles(cluster: FakeCluster) -> None:
    cluster.extender("safe", agent={**SAFE, "verbs": {"bind": True}})
    cluster.extender("other", agent=SAFE)
    cluster.settle()

    def file(name: str) -> Any:
        data = cluster.get(CONFIG_MAPS, f"extender-{name}", TARGET)["data"]
        return json.loads(data["extender.json"])

    assert file("safe")["bind"] == {"schedulerNames": ["default-scheduler"]}
    assert "bind" not in file("other")
    cluster.profile("batch")
    cluster.settle()
    assert file("safe")["bind"] == {"schedulerNames": ["batch", "default-scheduler"]}


def test_every_field_of_an_agent(cluster: FakeCluster) -> None:
    cluster.allowed_images = AllowedImages(("registry.example.com/mine",))
    cluster.extender(
        "safe",
        agent={
            "policies": [
                {"name": "one", "policy": "safe-overload", "weight": 0, "arguments": {"x": 1}},
                {"name": "load-aware", "weight": 3},
            ],
            "image": "registry.example.com/mine:1",
            "logLevel": "TRACE",
            "resources": {"limits": {"memory": "1Gi"}},
            "port": 7000,
            "env": {"SAFEUTILIZATION": "80"},
            "loadPolicy": "web",
            "podSelector": {"matchLabels": {"app": "x"}},
            "schedulerNames": ["team-a"],
        },
    )
    cluster.settle()
    config = json.loads(cluster.get(CONFIG_MAPS, "extender-safe", TARGET)["data"]["extender.json"])
    assert config == {
        "listen": {"address": "127.0.0.1", "port": 7000},
        "agents": [
            {
                "name": "safe",
                "policies": [
                    {"name": "one", "policy": "safe-overload", "weight": 0, "arguments": {"x": 1}},
                    {
                        "name": "load-aware",
                        "policy": "load-aware",
                        "weight": 3,
                        "arguments": {
                            "policyFile": "/etc/kube-scheduler-operator/load/policy.json"
                        },
                    },
                ],
            }
        ],
        "podSelector": {"matchLabels": {"app": "x"}, "schedulerNames": ["team-a"]},
        "logLevel": "TRACE",
    }
    (agent,) = pod_spec(cluster)["containers"]
    assert agent["image"] == "registry.example.com/mine:1"
    assert agent["env"] == [{"name": "SAFEUTILIZATION", "value": "80"}]
    assert agent["resources"] == {"limits": {"memory": "1Gi"}}
    volumes = {v["name"]: v["configMap"] for v in pod_spec(cluster)["volumes"]}
    assert volumes["load-safe"] == {"name": "load-policy-web", "optional": True}
    assert volumes["config-safe"]["name"] == "extender-safe"


def test_changed_arguments_reach_a_running_agent_without_a_restart(cluster: FakeCluster) -> None:
    cluster.extender("safe", agent=SAFE)
    cluster.settle()
    other = {"policies": [{"name": "safe-overload", "arguments": {"utilization": 70}}]}
    cluster.extender("safe", agent=other)
    writes = cluster.settle()
    assert "replace ConfigMap extender-safe" in writes
    assert not [w for w in writes if "DaemonSet" in w or w == "replace ConfigMap config"]


def test_an_invalid_edit_does_not_change_the_agent(cluster: FakeCluster) -> None:
    cluster.extender("safe", agent=SAFE)
    cluster.settle()
    before = cluster.get(DAEMON_SETS, "extender-safe", TARGET)
    cluster.extender("safe", agent={"policies": [{"name": "nonsense"}]})
    cluster.settle()
    assert cluster.get(DAEMON_SETS, "extender-safe", TARGET) == before
    assert called(cluster) == [URL]
    assert condition(cluster, names.ACCEPTED)[1] == "LastAcceptedInUse"
    assert condition(cluster, names.AVAILABLE)[0] == "True"


def test_changed_or_deleted_objects_are_restored(cluster: FakeCluster) -> None:
    cluster.extender("safe", agent=SAFE)
    cluster.settle()
    found = cluster.get(DAEMON_SETS, "extender-safe", TARGET)
    template = found["spec"]["template"]
    spec = {**found["spec"], "template": {**template, "spec": {**template["spec"], "x": 1}}}
    spec["template"]["spec"]["hostNetwork"] = False
    cluster.change(DAEMON_SETS, "extender-safe", TARGET, spec=spec)
    assert "replace DaemonSet extender-safe" in cluster.settle()
    assert pod_spec(cluster)["hostNetwork"] is True
    cluster.remove(CONFIG_MAPS, "extender-safe", TARGET)
    assert "create ConfigMap extender-safe" in cluster.settle()


# --- removal -------------------------------------------------------------------------------------

OBJECTS = ("ConfigMap extender-safe", "DaemonSet extender-safe")


def test_agents_are_deleted_after_the_scheduler_stops_calling_them(cluster: FakeCluster) -> None:
    cluster.extender("safe", agent=SAFE)
    cluster.settle()
    cluster.remove(SCHEDULER_EXTENDERS, "safe")
    writes = cluster.settle()
    assert called(cluster) == []
    assert exists(cluster, *OBJECTS) == []
    assert writes.index("replace ConfigMap config") < writes.index("delete DaemonSet extender-safe")
    assert writes.index("delete DaemonSet extender-safe") < writes.index(
        "delete ConfigMap extender-safe"
    )


def test_agents_stay_while_a_node_runs_a_revision_that_calls_them(cluster: FakeCluster) -> None:
    cluster.extender("safe", agent=SAFE)
    cluster.settle()
    old = cluster.get(CONFIG_MAPS, names.CONFIG, TARGET)["data"]
    cluster.remove(SCHEDULER_EXTENDERS, "safe")
    cluster.settle()
    world = snapshot(cluster)
    copy = {"metadata": {"name": "config-7", "namespace": TARGET}, "data": old}
    status = {"metadata": {"name": "revision-status-7", "namespace": TARGET}}
    maps = {**world.config_maps, "config-7": copy, "revision-status-7": status}
    made = {"safe": {DAEMON_SETS: {"extender-safe": _daemon_set(5401)}}}
    kubescheduler = {
        **(world.kubescheduler or {}),
        "status": {"nodeStatuses": [{"nodeName": "a", "currentRevision": 7}]},
    }
    world = replace(world, config_maps=maps, agents=made, kubescheduler=kubescheduler)
    assert planned_agents(world, ()).write_sets == {}
    gone = {**kubescheduler, "status": {"nodeStatuses": [{"nodeName": "a", "currentRevision": 8}]}}
    withdrawn = {**status["metadata"], "annotations": {names.OUTCOME_ANNOTATION: "withdrawn"}}
    maps = {**maps, "revision-status-7": {"metadata": withdrawn}}
    world = replace(world, config_maps=maps, kubescheduler=gone)
    assert list(planned_agents(world, ()).write_sets) == [SCHEDULER_EXTENDERS.named("safe")]


def _daemon_set(port: int) -> Any:
    annotations = {names.EXTENDER_PORT_ANNOTATION: str(port)}
    return {"metadata": {"name": "extender-safe", "annotations": annotations, "uid": "u"}}


def test_an_agent_replaced_by_a_url_is_deleted(cluster: FakeCluster) -> None:
    cluster.extender("safe", agent=SAFE)
    cluster.settle()
    cluster.extender("safe", url="http://10.0.0.1/safe", verbs={"filter": "filter"})
    cluster.settle()
    assert called(cluster) == ["http://10.0.0.1/safe"]
    assert exists(cluster, *OBJECTS) == []
    assert "agent" not in cluster.get(SCHEDULER_EXTENDERS, "safe")["status"]


def test_an_agent_that_moves_to_a_secondary_scheduler_is_removed_from_the_nodes(
    cluster: FakeCluster,
) -> None:
    cluster.secondary("mine")
    cluster.extender("safe", agent=SAFE)
    cluster.settle()
    cluster.extender("safe", scheduler="mine", agent=SAFE)
    cluster.settle()
    assert called(cluster) == []
    assert exists(cluster, *OBJECTS) == []
    status = cluster.get(SCHEDULER_EXTENDERS, "safe")["status"]
    assert status["agent"]["workload"] == "Deployment/mine"
    assert "readySince" not in status["agent"]


def test_agents_stay_if_the_api_does_not_serve_the_kind(cluster: FakeCluster) -> None:
    cluster.extender("safe", agent=SAFE)
    cluster.settle()
    world = replace(snapshot(cluster), scheduler_extenders=None)
    assert planned_agents(world, ()).write_sets == {}


def test_without_a_scheduler_agents_stay(cluster: FakeCluster) -> None:
    """Nothing is validated then, so a missing result does not mean an unused agent."""
    cluster.extender("safe", agent=SAFE)
    cluster.settle()
    assert planned_agents(snapshot(cluster), ()).write_sets == {}


def test_removal_of_the_operator_deletes_all_agents(cluster: FakeCluster) -> None:
    cluster.extender("safe", agent=SAFE)
    cluster.settle()
    cluster.put(KUBE_SCHEDULERS, "cluster", managementState="Removed")
    cluster.settle()
    assert exists(cluster, *OBJECTS) == []
    expect_forgotten(cluster.get(SCHEDULER_EXTENDERS, "safe")["status"])


# --- health --------------------------------------------------------------------------------------


def agent_pod(name: str, born: int, **status: Any) -> dict[str, Any]:
    created = (BEGIN + timedelta(seconds=born)).strftime("%Y-%m-%dT%H:%M:%SZ")
    labels = {"app": names.EXTENDER, names.EXTENDER_LABEL: "safe"}
    metadata = {"name": name, "namespace": TARGET, "labels": labels, "creationTimestamp": created}
    return {"metadata": metadata, "spec": {"containers": []}, "status": status}


def test_a_crashing_agent_is_reported_with_its_termination_message(cluster: FakeCluster) -> None:
    cluster.agents_ready = False
    cluster.extender("safe", agent=SAFE)
    cluster.settle()
    ended = {"exitCode": 1, "message": "port 5401 is taken", "finishedAt": "2026-01-01T00:00:00Z"}
    crashing = {
        "name": "extender-safe",
        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": ended},
    }
    cluster.keep(PODS, agent_pod("extender-safe-x", 0, containerStatuses=[crashing]))
    cluster.settle()
    status, reason, message = condition(cluster, names.DEGRADED)
    assert (status, reason) == ("True", "AgentsFailing")
    assert message == 'pod extender-safe-x crashes: container "extender-safe": port 5401 is taken'
    conditions = cluster.get(KUBE_SCHEDULERS, "cluster")["status"]["conditions"]
    (reported,) = (c for c in conditions if c["type"] == names.SCHEDULER_EXTENDERS_DEGRADED)
    assert reported["message"] == f"SchedulerExtender/safe: {message}"


def test_a_waiting_agent_is_not_degraded_for_a_minute(cluster: FakeCluster) -> None:
    cluster.agents_ready = False
    cluster.extender("safe", agent=SAFE)
    cluster.settle()
    born = int((cluster.now - BEGIN).total_seconds())
    unscheduled = {"type": "PodScheduled", "status": "False", "message": "no room"}
    cluster.keep(PODS, agent_pod("extender-safe-x", born, conditions=[unscheduled]))
    cluster.settle()
    assert condition(cluster, names.DEGRADED)[0] == "False"
    wait = cluster.reconcile().requeue_after
    assert wait is not None
    assert wait <= 60
    cluster.now += timedelta(seconds=60)
    cluster.settle()
    assert "it is not scheduled: no room" in condition(cluster, names.DEGRADED)[2]


def test_agents_on_unreachable_nodes_do_not_count(
    cluster: FakeCluster,
) -> None:
    cluster.extender("safe", agent=SAFE)
    cluster.agents_ready = False
    cluster.settle()
    labels = {"node-role.kubernetes.io/control-plane": ""}
    away = {"conditions": [{"type": "Ready", "status": "Unknown"}]}
    nodes: dict[str, dict[str, Any]] = {
        "a": {"metadata": {"name": "a", "labels": labels}},
        "b": {"metadata": {"name": "b", "labels": labels}, "status": away},
    }
    found = cluster.get(DAEMON_SETS, "extender-safe", TARGET)
    counts = {"desiredNumberScheduled": 2, "updatedNumberScheduled": 2, "numberReady": 1}
    generation = found["metadata"]["generation"]
    made = {**found, "status": {**counts, "observedGeneration": generation}}
    world = snapshot(cluster)
    world = replace(
        world, nodes=nodes, agents={"safe": {**world.agents["safe"], DAEMON_SETS: {"x": made}}}
    )
    (result,) = _results(world)
    world = replace(
        world,
        agents={"safe": {**world.agents["safe"], DAEMON_SETS: {"extender-safe": made}}},
    )
    assert planned_agents(world, (result,)).health["safe"].complete
    both = replace(world, nodes={"a": nodes["a"], "b": nodes["a"]})
    assert not planned_agents(both, (result,)).health["safe"].complete


def _results(world: Snapshot) -> Any:
    facts = facts_of(world, "registry.k8s.io/kube-scheduler:v1.35.4")
    return effective_control_plane(objects_of(world), facts).composition.extenders


def test_a_refused_write_is_the_trouble_of_the_agents(cluster: FakeCluster) -> None:
    cluster.extender("safe", agent=SAFE)
    cluster.settle()
    world = snapshot(cluster)
    errors = {SCHEDULER_EXTENDERS.named("safe"): "403: may not create daemonsets"}
    world = replace(world, write_errors=errors)
    agents = planned_agents(world, _results(world))
    assert agents.health["safe"].trouble == "403: may not create daemonsets"


def test_agents_have_the_workload_annotations_of_openshift(cluster: FakeCluster) -> None:
    cluster.extender("safe", agent=SAFE)
    cluster.settle()
    world = replace(snapshot(cluster), platform=OPENSHIFT, agents={})
    (writes,) = planned_agents(world, _results(snapshot(cluster))).write_sets.values()
    daemon_set = writes[-1].obj
    assert daemon_set["metadata"]["namespace"] == OPENSHIFT.target_namespace
    assert daemon_set["spec"]["template"]["metadata"]["annotations"] == dict(
        OPENSHIFT.static_pod_annotations
    )


def test_agents_are_reported_as_not_observed_while_unmanaged(cluster: FakeCluster) -> None:
    cluster.extender("safe", agent=SAFE)
    cluster.settle()
    assert condition(cluster, names.AVAILABLE)[0] == "True"
    cluster.put(KUBE_SCHEDULERS, "cluster", managementState="Unmanaged")
    cluster.settle()
    for type_ in (names.AVAILABLE, names.DEGRADED):
        assert condition(cluster, type_)[:2] == ("Unknown", "Unmanaged")
    cluster.put(KUBE_SCHEDULERS, "cluster", managementState="Managed")
    cluster.settle()
    assert condition(cluster, names.AVAILABLE)[0] == "True"
    reported = [reason for _, reason, _ in cluster.recorder.events]
    assert "SchedulerExtenderRecovered" not in reported


# --- probes ---------------------------------------------------------------------------------------


def noticed(probe: Any) -> int:
    """Seconds until a probe that no process answers has failed often enough."""
    failures: int = probe.get("failureThreshold", 3)
    seconds: int = failures * probe["periodSeconds"] + probe["timeoutSeconds"]
    return seconds + int(probe.get("terminationGracePeriodSeconds", 0))


def test_that_an_agent_hangs_shows_by_readiness_or_by_a_restart() -> None:
    on_a_node = container(ManagedAgent("safe", SAFE, 5401), "image")
    assert noticed(on_a_node["readinessProbe"]) <= 20
    beside_a_scheduler = container(sidecar("safe", SAFE, 5401), "image")
    assert "readinessProbe" not in beside_a_scheduler
    assert noticed(beside_a_scheduler["livenessProbe"]) <= 21
