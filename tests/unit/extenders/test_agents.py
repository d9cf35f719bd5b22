"""Agents of the control plane's scheduler: before the first call they are there, and after the
last one they go.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM, OPENSHIFT
from kube_scheduler_operator.base.settings import Settings
from kube_scheduler_operator.engine.handlers import take_snapshot
from kube_scheduler_operator.extenders.agents import control_plane_agents
from kube_scheduler_operator.kube.resource import (
    CONFIG_MAPS,
    DAEMON_SETS,
    KUBE_SCHEDULERS,
    PODS,
    SCHEDULER_EXTENDERS,
)
from kube_scheduler_operator.model.snapshot import Snapshot

from ..desk import BEGIN, Desk

TARGET = KUBEADM.target_namespace
SAFE: dict[str, Any] = {"policies": [{"name": "safe-overload", "arguments": {"utilization": 80}}]}
URL = "http://127.0.0.1:5401/safe"


@pytest.fixture
def desk() -> Desk:
    return Desk()


def called(desk: Desk) -> list[str]:
    """What the configuration says that is about to run."""
    config = desk.get(CONFIG_MAPS, names.CONFIG, TARGET)["data"][names.CONFIG_KEY]
    return [one["urlPrefix"] for one in json.loads(config).get("extenders", ())]


def observed(desk: Desk) -> list[str]:
    config = desk.get(KUBE_SCHEDULERS, "cluster")["spec"].get("observedConfig") or {}
    return [one["urlPrefix"] for one in config.get("extenders", ())]


def condition(desk: Desk, type_: str, name: str = "safe") -> tuple[str, str, str]:
    status = desk.get(SCHEDULER_EXTENDERS, name)["status"]
    found = next(c for c in status["conditions"] if c["type"] == type_)
    return found["status"], found.get("reason", ""), found.get("message", "")


def pod_spec(desk: Desk, name: str = "extender-safe") -> Any:
    return desk.get(DAEMON_SETS, name, TARGET)["spec"]["template"]["spec"]


def exists(desk: Desk, *objects: str) -> list[str]:
    """Which of these are there, as `KIND NAME`."""
    known = {
        f"{resource.kind} {obj['metadata']['name']}"
        for resource in (CONFIG_MAPS, DAEMON_SETS)
        for obj in desk.list(resource)
    }
    return [one for one in objects if one in known]


def snapshot(desk: Desk) -> Snapshot:
    return take_snapshot(
        desk._store,  # the desk's own way to it runs a whole pass
        KUBEADM,
        Settings(),
        server_version="v1.35.4",
        lease_seen=None,
        answered_since=BEGIN,
        recovered_at=None,
        trouble="",
        now=desk.now,
    )


# --- coming --------------------------------------------------------------------------------------


def test_first_the_port_is_written_down_then_agents_run_then_they_are_called(desk: Desk) -> None:
    desk.rest()
    desk.extender("safe", agent=SAFE)
    writes = desk.rest()
    status = desk.get(SCHEDULER_EXTENDERS, "safe")["status"]
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
    assert called(desk) == observed(desk) == [URL]
    assert condition(desk, names.AVAILABLE)[0] == "True"
    assert condition(desk, names.DEGRADED)[0] == "False"


def test_when_nothing_changes_nothing_is_written(desk: Desk) -> None:
    desk.extender("safe", agent=SAFE)
    desk.extender("foreign", url="http://10.0.0.1", verbs={"filter": "f"})
    desk.rest()
    desk.now += timedelta(days=1)
    desk.rest()  # ClusterOperator says after a while that this cluster has no scheduler
    desk.now += timedelta(days=1)
    plan = desk.one_pass()
    assert (plan.actions, plan.reports, dict(plan.chains)) == ((), (), {})


def test_what_was_never_ready_is_not_called(desk: Desk) -> None:
    desk.agents_ready = False
    desk.extender("safe", agent=SAFE)
    desk.rest()
    assert called(desk) == []
    status, reason, message = condition(desk, names.AVAILABLE)
    assert (status, reason, message) == ("False", "AgentsNotReady", "0 of 1 agents are Ready")
    assert condition(desk, names.ACCEPTED)[0] == "True"
    desk.agents_ready = True
    desk.rest()
    assert called(desk) == [URL]


def test_what_was_ready_once_is_called_on_while_it_is_not(desk: Desk) -> None:
    """It may be restarting; that it is ignorable is for that."""
    desk.extender("safe", agent=SAFE)
    desk.rest()
    desk.agents_ready = False
    desk.rest()
    assert called(desk) == [URL]
    assert condition(desk, names.AVAILABLE)[1] == "AgentsNotReady"


# --- what runs -----------------------------------------------------------------------------------


def test_it_needs_neither_dns_nor_a_service_nor_room_in_the_cluster(desk: Desk) -> None:
    desk.extender("safe", agent=SAFE)
    desk.rest()
    spec = pod_spec(desk)
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


def test_an_agent_that_binds_has_another_account(desk: Desk) -> None:
    desk.extender("safe", agent={**SAFE, "verbs": {"bind": True}})
    desk.rest()
    assert pod_spec(desk)["serviceAccountName"] == "scheduler-extender-binder"


def test_everything_that_can_be_said_of_an_agent(desk: Desk) -> None:
    desk.extender(
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
    desk.rest()
    config = json.loads(desk.get(CONFIG_MAPS, "extender-safe", TARGET)["data"]["extender.json"])
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
    (agent,) = pod_spec(desk)["containers"]
    assert agent["image"] == "registry.example.com/mine:1"
    assert agent["env"] == [{"name": "SAFEUTILIZATION", "value": "80"}]
    assert agent["resources"] == {"limits": {"memory": "1Gi"}}
    volumes = {v["name"]: v["configMap"] for v in pod_spec(desk)["volumes"]}
    assert volumes["load-safe"] == {"name": "load-policy-web", "optional": True}
    assert volumes["config-safe"]["name"] == "extender-safe"


def test_other_arguments_reach_a_running_agent_without_a_restart(desk: Desk) -> None:
    desk.extender("safe", agent=SAFE)
    desk.rest()
    other = {"policies": [{"name": "safe-overload", "arguments": {"utilization": 70}}]}
    desk.extender("safe", agent=other)
    writes = desk.rest()
    assert "replace ConfigMap extender-safe" in writes
    assert not [w for w in writes if "DaemonSet" in w or w == "replace ConfigMap config"]


def test_a_bad_edit_leaves_the_agent_as_it_is(desk: Desk) -> None:
    desk.extender("safe", agent=SAFE)
    desk.rest()
    before = desk.get(DAEMON_SETS, "extender-safe", TARGET)
    desk.extender("safe", agent={"policies": [{"name": "nonsense"}]})
    desk.rest()
    assert desk.get(DAEMON_SETS, "extender-safe", TARGET) == before
    assert called(desk) == [URL]
    assert condition(desk, names.ACCEPTED)[1] == "Held"
    assert condition(desk, names.AVAILABLE)[0] == "True"


def test_what_somebody_changes_or_deletes_comes_back(desk: Desk) -> None:
    desk.extender("safe", agent=SAFE)
    desk.rest()
    found = desk.get(DAEMON_SETS, "extender-safe", TARGET)
    template = found["spec"]["template"]
    spec = {**found["spec"], "template": {**template, "spec": {**template["spec"], "x": 1}}}
    spec["template"]["spec"]["hostNetwork"] = False
    metadata = {**found["metadata"], "generation": found["metadata"]["generation"] + 1}
    desk._keep(DAEMON_SETS, {**found, "metadata": metadata, "spec": spec})
    assert "replace DaemonSet extender-safe" in desk.rest()
    assert pod_spec(desk)["hostNetwork"] is True
    desk._forget(CONFIG_MAPS, desk.get(CONFIG_MAPS, "extender-safe", TARGET))
    assert "create ConfigMap extender-safe" in desk.rest()


# --- going ---------------------------------------------------------------------------------------

MADE = ("ConfigMap extender-safe", "DaemonSet extender-safe")


def test_first_the_scheduler_stops_calling_then_the_agents_go(desk: Desk) -> None:
    desk.extender("safe", agent=SAFE)
    desk.rest()
    desk.remove(SCHEDULER_EXTENDERS, "safe")
    writes = desk.rest()
    assert called(desk) == []
    assert exists(desk, *MADE) == []
    assert writes.index("replace ConfigMap config") < writes.index("delete DaemonSet extender-safe")
    assert writes.index("delete DaemonSet extender-safe") < writes.index(
        "delete ConfigMap extender-safe"
    )


def test_agents_stay_while_a_node_runs_a_revision_that_calls_them(desk: Desk) -> None:
    desk.extender("safe", agent=SAFE)
    desk.rest()
    old = desk.get(CONFIG_MAPS, names.CONFIG, TARGET)["data"]
    desk.remove(SCHEDULER_EXTENDERS, "safe")
    desk.rest()
    world = snapshot(desk)
    copy = {"metadata": {"name": "config-7", "namespace": TARGET}, "data": old}
    status = {"metadata": {"name": "revision-status-7", "namespace": TARGET}}
    maps = {**world.config_maps, "config-7": copy, "revision-status-7": status}
    made = {"safe": {DAEMON_SETS: {"extender-safe": _daemon_set(5401)}}}
    kubescheduler = {
        **(world.kubescheduler or {}),
        "status": {"nodeStatuses": [{"nodeName": "a", "currentRevision": 7}]},
    }
    world = replace(world, config_maps=maps, agents=made, kubescheduler=kubescheduler)
    assert control_plane_agents(world, ()).chains == {}
    gone = {**kubescheduler, "status": {"nodeStatuses": [{"nodeName": "a", "currentRevision": 8}]}}
    withdrawn = {**status["metadata"], "annotations": {names.OUTCOME_ANNOTATION: "withdrawn"}}
    maps = {**maps, "revision-status-7": {"metadata": withdrawn}}
    world = replace(world, config_maps=maps, kubescheduler=gone)
    assert list(control_plane_agents(world, ()).chains) == ["SchedulerExtender safe"]


def _daemon_set(port: int) -> Any:
    annotations = {names.EXTENDER_PORT_ANNOTATION: str(port)}
    return {"metadata": {"name": "extender-safe", "annotations": annotations, "uid": "u"}}


def test_an_agent_that_becomes_a_url_goes(desk: Desk) -> None:
    desk.extender("safe", agent=SAFE)
    desk.rest()
    desk.extender("safe", url="http://10.0.0.1/safe", verbs={"filter": "filter"})
    desk.rest()
    assert called(desk) == ["http://10.0.0.1/safe"]
    assert exists(desk, *MADE) == []
    assert "agent" not in desk.get(SCHEDULER_EXTENDERS, "safe")["status"]


def test_one_that_moves_to_a_further_scheduler_goes_from_the_nodes(desk: Desk) -> None:
    desk.secondary("mine")
    desk.extender("safe", agent=SAFE)
    desk.rest()
    desk.extender("safe", scheduler="mine", agent=SAFE)
    desk.rest()
    assert called(desk) == []
    assert exists(desk, *MADE) == []
    status = desk.get(SCHEDULER_EXTENDERS, "safe")["status"]
    assert status["agent"]["workload"] == "Deployment/mine"
    assert "readySince" not in status["agent"]


def test_a_kind_that_is_not_served_takes_no_agent_away(desk: Desk) -> None:
    desk.extender("safe", agent=SAFE)
    desk.rest()
    world = replace(snapshot(desk), scheduler_extenders=None)
    assert control_plane_agents(world, ()).chains == {}


def test_without_a_scheduler_agents_stay(desk: Desk) -> None:
    """Then nothing is judged, and no verdict does not mean that nothing is wanted."""
    desk.extender("safe", agent=SAFE)
    desk.rest()
    assert control_plane_agents(snapshot(desk), ()).chains == {}


def test_nothing_is_left_when_the_operator_is_removed(desk: Desk) -> None:
    desk.extender("safe", agent=SAFE)
    desk.rest()
    desk.put(KUBE_SCHEDULERS, "cluster", managementState="Removed")
    desk.rest()
    assert exists(desk, *MADE) == []
    assert desk.get(SCHEDULER_EXTENDERS, "safe")["status"] == {}


# --- how they are --------------------------------------------------------------------------------


def agent_pod(name: str, born: int, **status: Any) -> dict[str, Any]:
    created = (BEGIN + timedelta(seconds=born)).strftime("%Y-%m-%dT%H:%M:%SZ")
    labels = {"app": names.EXTENDER, names.EXTENDER_LABEL: "safe"}
    metadata = {"name": name, "namespace": TARGET, "labels": labels, "creationTimestamp": created}
    return {"metadata": metadata, "spec": {"containers": []}, "status": status}


def test_an_agent_that_crashes_is_named_with_its_last_words(desk: Desk) -> None:
    desk.agents_ready = False
    desk.extender("safe", agent=SAFE)
    desk.rest()
    ended = {"exitCode": 1, "message": "port 5401 is taken", "finishedAt": "2026-01-01T00:00:00Z"}
    crashing = {
        "name": "extender-safe",
        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": ended},
    }
    desk._keep(PODS, agent_pod("extender-safe-x", 0, containerStatuses=[crashing]))
    desk.rest()
    status, reason, message = condition(desk, names.DEGRADED)
    assert (status, reason) == ("True", "AgentsFailing")
    assert message == 'pod extender-safe-x crashes: container "extender-safe": port 5401 is taken'
    conditions = desk.get(KUBE_SCHEDULERS, "cluster")["status"]["conditions"]
    (told,) = (c for c in conditions if c["type"] == names.SCHEDULER_EXTENDERS_DEGRADED)
    assert told["message"] == f"SchedulerExtender/safe: {message}"


def test_an_agent_that_waits_is_no_trouble_for_a_while(desk: Desk) -> None:
    desk.agents_ready = False
    desk.extender("safe", agent=SAFE)
    desk.rest()
    born = int((desk.now - BEGIN).total_seconds())
    unscheduled = {"type": "PodScheduled", "status": "False", "message": "no room"}
    desk._keep(PODS, agent_pod("extender-safe-x", born, conditions=[unscheduled]))
    desk.rest()
    assert condition(desk, names.DEGRADED)[0] == "False"
    wait = desk.one_pass().requeue_after
    assert wait is not None
    assert wait <= 60
    desk.now += timedelta(seconds=60)
    desk.rest()
    assert "it is not scheduled: no room" in condition(desk, names.DEGRADED)[2]


def test_a_node_that_is_away_does_not_keep_the_others_from_being_called(desk: Desk) -> None:
    desk.extender("safe", agent=SAFE)
    desk.agents_ready = False
    desk.rest()
    labels = {"node-role.kubernetes.io/control-plane": ""}
    away = {"conditions": [{"type": "Ready", "status": "Unknown"}]}
    nodes = {
        "a": {"metadata": {"name": "a", "labels": labels}},
        "b": {"metadata": {"name": "b", "labels": labels}, "status": away},
    }
    found = desk.get(DAEMON_SETS, "extender-safe", TARGET)
    counts = {"desiredNumberScheduled": 2, "updatedNumberScheduled": 2, "numberReady": 1}
    generation = found["metadata"]["generation"]
    made = {**found, "status": {**counts, "observedGeneration": generation}}
    world = snapshot(desk)
    world = replace(
        world, nodes=nodes, agents={"safe": {**world.agents["safe"], DAEMON_SETS: {"x": made}}}
    )
    (verdict,) = _verdicts(world)
    world = replace(
        world,
        agents={"safe": {**world.agents["safe"], DAEMON_SETS: {"extender-safe": made}}},
    )
    assert control_plane_agents(world, (verdict,)).health["safe"].complete
    both = replace(world, nodes={"a": nodes["a"], "b": nodes["a"]})
    assert not control_plane_agents(both, (verdict,)).health["safe"].complete


def _verdicts(world: Snapshot) -> Any:
    from kube_scheduler_operator.controlplane.desired import composed

    return composed(world, "registry.k8s.io/kube-scheduler:v1.35.4").extenders


def test_a_write_that_the_api_refuses_is_told(desk: Desk) -> None:
    desk.extender("safe", agent=SAFE)
    desk.rest()
    world = snapshot(desk)
    troubles = {"SchedulerExtender safe": "403: may not create daemonsets"}
    world = replace(world, secondaries=replace(world.secondaries, troubles=troubles))
    agents = control_plane_agents(world, _verdicts(world))
    assert agents.health["safe"].trouble == "403: may not create daemonsets"


def test_openshift_confines_what_is_there_for_management(desk: Desk) -> None:
    desk.extender("safe", agent=SAFE)
    desk.rest()
    world = replace(snapshot(desk), platform=OPENSHIFT, agents={})
    (chain,) = control_plane_agents(world, _verdicts(snapshot(desk))).chains.values()
    daemon_set = chain[-1].obj
    assert daemon_set["metadata"]["namespace"] == OPENSHIFT.target_namespace
    assert daemon_set["spec"]["template"]["metadata"]["annotations"] == dict(
        OPENSHIFT.static_pod_annotations
    )
