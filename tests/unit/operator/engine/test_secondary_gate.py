"""The check of placements of SecondarySchedulers, in whole reconciles."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.images import EVERY_IMAGE
from kube_scheduler_operator.base.platform import KUBEADM, MANAGED
from kube_scheduler_operator.base.recognition import PlatformDecision, Recognition
from kube_scheduler_operator.base.settings import Settings
from kube_scheduler_operator.kube.resource import (
    CLUSTER_OPERATORS,
    CONFIG_MAPS,
    DEPLOYMENTS,
    KUBE_SCHEDULERS,
    LOAD_POLICIES,
    OPERATOR_SETTINGS,
    SCHEDULER_PROFILES,
    SECONDARY_SCHEDULERS,
)
from kube_scheduler_operator.operator.engine import secondary_gate
from kube_scheduler_operator.operator.engine.secondary_gate import kept_content
from kube_scheduler_operator.operator.model.plan import PlacementQuestion
from kube_scheduler_operator.operator.model.snapshot import PlacementAnswer
from kube_scheduler_operator.operator.secondary.content import SecondaryContent, content_of

from ....expect import condition_of
from ...fake_cluster import FakeCluster

NAMESPACE = KUBEADM.target_namespace
LOST = "2 running pods could no longer be placed: node(s) didn't match (shop/a, shop/b)"
MANAGED_NAME = "managed-scheduler"
EKS = PlatformDecision(Recognition(MANAGED, "EKS", "so it is"), remember=True)
OTHER_IMAGE = "registry.k8s.io/kube-scheduler:v1.36.1"
AGENT = {"policies": [{"name": "load-aware"}], "loadPolicy": "default"}


def worse(question: PlacementQuestion) -> PlacementAnswer:
    return PlacementAnswer(question.identity, worse=True, effect=LOST)


def harmless(question: PlacementQuestion) -> PlacementAnswer:
    return PlacementAnswer(question.identity, effect="each of 4 pods can be placed as today")


def gated(
    mode: str = "Gate", simulate: Callable[[PlacementQuestion], PlacementAnswer] | None = worse
) -> FakeCluster:
    """A cluster with the SecondaryScheduler batch, which runs, that checks edits."""
    cluster = FakeCluster()
    cluster.secondary("batch", config={"percentageOfNodesToScore": 50})
    cluster.settle()
    cluster.put(OPERATOR_SETTINGS, "cluster", placementCheck={"mode": mode})
    cluster.settle()
    cluster.simulate = simulate
    return cluster


def edit(cluster: FakeCluster, name: str = "batch", percentage: int = 7, **spec: Any) -> None:
    cluster.secondary(name, **{"config": {"percentageOfNodesToScore": percentage}, **spec})
    cluster.settle()


def status(cluster: FakeCluster, name: str = "batch") -> dict[str, Any]:
    return dict(cluster.get(SECONDARY_SCHEDULERS, name)["status"])


def record(cluster: FakeCluster, name: str = "batch") -> dict[str, Any]:
    return dict(status(cluster, name).get("placementCheck") or {})


def condition(cluster: FakeCluster, name: str = "batch") -> tuple[str, str, str]:
    obj = cluster.get(SECONDARY_SCHEDULERS, name)
    return condition_of(obj, names.PLACEMENT_CHECK_PROGRESSING)


def running(cluster: FakeCluster, name: str = "batch", namespace: str = NAMESPACE) -> Any:
    """The content that the Deployment has."""
    template = cluster.get(DEPLOYMENTS, name, namespace)["spec"]["template"]
    content_hash = template["metadata"]["labels"][names.CONFIG_HASH_LABEL]
    return content_of(cluster.get(CONFIG_MAPS, f"{name}-config-{content_hash}", namespace))


def percentage(cluster: FakeCluster, name: str = "batch", namespace: str = NAMESPACE) -> Any:
    return running(cluster, name, namespace).config.get("percentageOfNodesToScore")


def approve(cluster: FakeCluster, name: str = "batch") -> None:
    approvals = {name: record(cluster, name)["configuration"]}
    check = {"mode": "Gate", "approvedSchedulers": approvals}
    cluster.put(OPERATOR_SETTINGS, "cluster", placementCheck=check)
    cluster.settle()


def test_an_edit_that_costs_pods_their_place_is_held_until_it_is_approved() -> None:
    cluster = gated()
    edit(cluster)
    assert percentage(cluster) == 50
    held, reason, message = condition(cluster)
    assert (held, reason) == ("True", "Held")
    assert LOST in message
    assert "`kubectl scheduler rollout approve --scheduler batch`" in message
    assert record(cluster)["result"] == "Worse"
    (asked,) = cluster.simulations
    assert (asked.before.config["percentageOfNodesToScore"], asked.turn) == (50, NAMESPACE)
    assert asked.after.config["percentageOfNodesToScore"] == 7
    assert asked.command == ("kube-scheduler",)
    events = [m for _, why, m in cluster.recorder.events if why == "PlacementCheckHeld"]
    assert len(events) == 1
    assert events[0].startswith('SecondaryScheduler "batch": the edit is held')
    approve(cluster)
    assert percentage(cluster) == 7
    assert condition(cluster)[1] == "Approved"
    edit(cluster, percentage=8)
    assert (percentage(cluster), condition(cluster)[1]) == (7, "Held")
    assert "approvedSchedulers.batch of OperatorSettings names another" in condition(cluster)[2]


def test_kubescheduler_and_the_cluster_operator_name_each_edit_that_waits() -> None:
    cluster = gated()
    type_ = names.SECONDARY_CHECK_PROGRESSING

    def own() -> tuple[str, str, str]:
        return condition_of(cluster.get(KUBE_SCHEDULERS, "cluster"), type_)

    def overall() -> tuple[str, str, str]:
        obj = cluster.get(CLUSTER_OPERATORS, names.CLUSTEROPERATOR)
        return condition_of(obj, names.PROGRESSING)

    def progressing() -> tuple[str, str, str]:
        return condition_of(cluster.get(SECONDARY_SCHEDULERS, "batch"), names.PROGRESSING)

    edit(cluster)
    assert progressing() == condition(cluster)
    assert own() == ("True", "Held", f"batch: {condition(cluster)[2]}")
    assert overall()[0] == "True"
    assert f"{type_}: batch: the edit is held: {LOST}" in overall()[2]
    approve(cluster)
    assert [found()[0] for found in (own, overall, progressing)] == ["False"] * 3


def test_warn_reports_an_edit_and_rolls_it_out() -> None:
    cluster = gated("Warn")
    edit(cluster)
    assert (percentage(cluster), condition(cluster)[1]) == (7, "Worse")
    assert LOST in condition(cluster)[2]


def test_an_edit_that_costs_no_pod_its_place_is_rolled_out() -> None:
    cluster = gated(simulate=harmless)
    edit(cluster)
    assert (percentage(cluster), condition(cluster)[1]) == (7, "NothingWorse")


def test_a_profile_of_it_waits_and_is_reported_as_such() -> None:
    cluster = gated()
    cluster.profile("team", scheduler="batch", percentageOfNodesToScore=9)
    cluster.settle()
    assert "team" not in str(running(cluster).config)
    assert condition(cluster)[1] == "Held"
    state, reason, message = condition_of(cluster.get(SCHEDULER_PROFILES, "team"), names.ACCEPTED)
    assert (state, reason) == ("True", "Accepted")
    assert "of SecondaryScheduler batch has the reason" in message


def test_off_is_off_and_is_reported_nowhere() -> None:
    cluster = gated("Off")
    edit(cluster)
    assert (percentage(cluster), cluster.simulations) == (7, [])
    assert "placementCheck" not in status(cluster)
    assert condition(cluster)[0] == ""


def test_a_new_one_has_nothing_to_compare_with_and_a_reverted_edit_leaves_nothing() -> None:
    cluster = gated()
    edit(cluster, "web")
    assert (percentage(cluster, "web"), condition(cluster, "web")[1]) == (7, "Unchanged")
    edit(cluster, "web", 8)
    assert (percentage(cluster, "web"), condition(cluster, "web")[1]) == (7, "Held")
    edit(cluster, "web", 7)
    assert condition(cluster, "web")[1] == "Unchanged"
    assert record(cluster, "web").keys() == {"ran", "settings"}


def test_what_ran_returns_at_once() -> None:
    cluster = gated("Warn")
    edit(cluster)
    cluster.put(OPERATOR_SETTINGS, "cluster", placementCheck={"mode": "Gate"})
    cluster.settle()
    (asked,) = cluster.simulations
    edit(cluster, percentage=50)
    assert (percentage(cluster), condition(cluster)[1]) == (50, "Unchanged")
    assert cluster.simulations == [asked]


def test_what_ran_before_the_check_was_on_returns_at_once() -> None:
    cluster = FakeCluster()
    edit(cluster, percentage=50)
    edit(cluster, percentage=7)
    cluster.put(OPERATOR_SETTINGS, "cluster", placementCheck={"mode": "Gate"})
    cluster.settle()
    edit(cluster, percentage=50)
    assert (percentage(cluster), condition(cluster)[1]) == (50, "Unchanged")
    assert cluster.simulations == []


def test_one_that_waits_delays_no_other_one_and_not_the_control_plane() -> None:
    cluster = gated(simulate=None)
    edit(cluster, "web")
    edit(cluster)
    assert condition(cluster)[1] == "Simulating"
    cluster.simulate = lambda asked: (
        worse(asked) if asked.after.config.get("percentageOfNodesToScore") == 7 else harmless(asked)
    )
    edit(cluster, "web", 9)
    assert (percentage(cluster, "web"), condition(cluster)[1]) == (9, "Held")
    cluster.put(KUBE_SCHEDULERS, "cluster", unsupportedConfigOverrides={"parallelism": 5})
    cluster.settle()
    config = cluster.get(CONFIG_MAPS, names.CONFIG, NAMESPACE)["data"][names.CONFIG_KEY]
    assert json.loads(config)["parallelism"] == 5


def test_a_defect_of_the_check_stops_one_scheduler_only(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = gated(simulate=harmless)
    edit(cluster, "web")
    real = secondary_gate.secondary_rules

    def fail(content: SecondaryContent, *args: Any) -> Any:
        if content.config.get("percentageOfNodesToScore") == 13:
            raise RuntimeError("defect")
        return real(content, *args)

    monkeypatch.setattr(secondary_gate, "secondary_rules", fail)
    edit(cluster, percentage=13)
    edit(cluster, "web", 9)
    assert (percentage(cluster), percentage(cluster, "web")) == (50, 9)
    assert condition_of(cluster.get(SECONDARY_SCHEDULERS, "batch"), names.DEGRADED)[0] == "True"


def test_what_of_it_decides_no_placements_is_rolled_out_meanwhile() -> None:
    cluster = gated()
    spec: dict[str, Any] = {"logLevel": "Debug", "resources": {"requests": {"cpu": "200m"}}}
    edit(cluster, replicas=3, **spec)
    assert (percentage(cluster), condition(cluster)[1]) == (50, "Held")
    operand = running(cluster).operand
    assert "-v=4" in operand["args"]
    assert operand["resources"] == {"requests": {"cpu": "200m"}}
    assert cluster.get(DEPLOYMENTS, "batch", NAMESPACE)["spec"]["replicas"] == 3
    name = f"batch-config-{running(cluster).hash}"
    notes = cluster.get(CONFIG_MAPS, name, NAMESPACE)["metadata"]["annotations"]
    assert '"percentageOfNodesToScore":50' in notes[names.ACCEPTED_SETTINGS_ANNOTATION]
    approve(cluster)
    assert (percentage(cluster), running(cluster).operand) == (7, operand)


def test_the_control_planes_version_does_not_wait() -> None:
    cluster = gated()
    cluster.image = OTHER_IMAGE
    cluster.settle()
    assert running(cluster).image == OTHER_IMAGE
    edit(cluster)
    cluster.image = OTHER_IMAGE.replace("36.1", "36.2")
    cluster.settle()
    assert (running(cluster).image, percentage(cluster)) == (cluster.image, 50)
    assert condition(cluster)[1] == "Held"


def test_another_image_is_not_known_and_waits_with_its_pull_secrets() -> None:
    cluster = gated(simulate=harmless)
    before = running(cluster)
    config = {"percentageOfNodesToScore": 50}
    edit(cluster, config=config, image=OTHER_IMAGE, imagePullSecrets=[{"name": "other"}])
    assert (running(cluster).hash, condition(cluster)[1]) == (before.hash, "Held")
    assert "no simulation compares two images" in condition(cluster)[2]
    assert cluster.simulations == []
    approve(cluster)
    assert running(cluster).image == OTHER_IMAGE


def test_agents_and_sidecars_wait_with_it() -> None:
    cluster = gated(simulate=harmless)
    cluster.extender("load", scheduler="batch", agent=AGENT)
    cluster.put(LOAD_POLICIES, "default")
    cluster.settle()
    (asked,) = cluster.simulations
    assert asked.before.agents == {}
    assert asked.after.agents["load"]["loadPolicy"] == "default"
    assert "extender-load.json" in running(cluster).data
    cluster.simulate = worse
    cluster.extender("load", scheduler="batch", agent={"policies": [{"name": "safe-overload"}]})
    cluster.settle()
    assert '"load-aware"' in running(cluster).data["extender-load.json"]
    assert condition(cluster)[1] == "Held"
    edit(cluster, config={"percentageOfNodesToScore": 50}, logLevel="Debug")
    content = running(cluster)
    assert '"load-aware"' in content.data["extender-load.json"]
    assert [c["name"] for c in content.pod["containers"]] == ["kube-scheduler", "extender-load"]
    approve(cluster)
    assert '"safe-overload"' in running(cluster).data["extender-load.json"]


def test_a_load_policy_that_a_secondary_scheduler_reads_waits_with_the_control_plane() -> None:
    cluster = FakeCluster()
    cluster.secondary("batch")
    cluster.extender("load", scheduler="batch", agent=AGENT)
    cluster.put(LOAD_POLICIES, "default")
    cluster.settle()
    cluster.put(OPERATOR_SETTINGS, "cluster", placementCheck={"mode": "Gate"})
    cluster.settle()
    before = cluster.get(CONFIG_MAPS, "load-policy-default", NAMESPACE)["data"]
    predicates = [{"name": "cpu_usage_avg_5m", "maxLimit": "1%"}]
    cluster.put(LOAD_POLICIES, "default", predicates=predicates)
    cluster.settle()
    assert cluster.get(CONFIG_MAPS, "load-policy-default", NAMESPACE)["data"] == before
    kubescheduler = cluster.get(KUBE_SCHEDULERS, "cluster")
    _, reason, message = condition_of(kubescheduler, names.PLACEMENT_CHECK_PROGRESSING)
    assert reason == "Held"
    assert "SecondarySchedulers that read it: batch" in message
    assert condition(cluster)[1] == "Unchanged"
    recorded = cluster.get(OPERATOR_SETTINGS, "cluster")["status"]["placementCheck"]
    check = {"mode": "Gate", "approved": recorded["configuration"]}
    cluster.put(OPERATOR_SETTINGS, "cluster", placementCheck=check)
    cluster.settle()
    assert cluster.get(CONFIG_MAPS, "load-policy-default", NAMESPACE)["data"] != before


def test_nothing_is_left_out_of_a_content_that_stays() -> None:
    """Without another change, the content that stays is the one in use, byte by byte."""
    cluster = gated("Off")
    cluster.allowed_images = EVERY_IMAGE
    mounts = [{"name": "scratch", "mountPath": "/scratch"}]
    helper = {"name": "helper", "image": "example.com/helper:1", "volumeMounts": mounts}
    volumes = [{"name": "scratch", "emptyDir": {}}]
    cluster.extender("load", scheduler="batch", agent=AGENT)
    gates = {"SchedulerQueueingHints": True}
    edit(cluster, percentage=50, sidecars=[helper], volumes=volumes, featureGates=gates)
    before = running(cluster)
    assert [c["name"] for c in before.pod["containers"][1:]] == ["helper", "extender-load"]
    edit(cluster, percentage=3)
    after = running(cluster)
    assert before.hash != after.hash
    image = Settings().operator_image
    for same_program in (True, False):
        assert kept_content(after, before, image, same_program=same_program) == before


# --- in the place of the control plane's scheduler -----------------------------------------------


def managed(simulate: Callable[[PlacementQuestion], PlacementAnswer] | None = worse) -> FakeCluster:
    cluster = FakeCluster(MANAGED, EKS)
    cluster.put(OPERATOR_SETTINGS, "cluster", placementCheck={"mode": "Gate"})
    cluster.settle()
    cluster.simulate = simulate
    return cluster


def tune(cluster: FakeCluster, value: int) -> None:
    overrides = {"percentageOfNodesToScore": value}
    cluster.put(KUBE_SCHEDULERS, "cluster", unsupportedConfigOverrides=overrides)
    cluster.settle()


def managed_percentage(cluster: FakeCluster) -> Any:
    return percentage(cluster, MANAGED_NAME, MANAGED.target_namespace)


def managed_record(cluster: FakeCluster) -> Any:
    return cluster.get(OPERATOR_SETTINGS, "cluster")["status"].get("placementCheck") or {}


def test_an_edit_of_the_managed_scheduler_is_held_as_that_of_the_control_plane() -> None:
    cluster = managed()
    tune(cluster, 7)
    assert managed_percentage(cluster) is None
    kubescheduler = cluster.get(KUBE_SCHEDULERS, "cluster")
    held, reason, message = condition_of(kubescheduler, names.PLACEMENT_CHECK_PROGRESSING)
    assert (held, reason) == ("True", "Held")
    assert LOST in message
    assert "approve it with `kubectl scheduler rollout approve`" in message
    assert "placementCheck" not in status(cluster, MANAGED_NAME)
    check = {"mode": "Gate", "approved": managed_record(cluster)["configuration"]}
    cluster.put(OPERATOR_SETTINGS, "cluster", placementCheck=check)
    cluster.settle()
    assert managed_percentage(cluster) == 7
    assert managed_record(cluster)["state"] == "Approved"
    tune(cluster, 8)
    assert managed_percentage(cluster) == 7


def test_what_ran_outlives_the_removal_of_the_managed_scheduler() -> None:
    cluster = managed()
    ran = managed_record(cluster)["ran"]
    cluster.put(KUBE_SCHEDULERS, "cluster", managementState="Removed")
    cluster.settle()
    assert cluster.find(SECONDARY_SCHEDULERS, MANAGED_NAME) is None
    assert managed_record(cluster) == {"ran": ran}
