"""One snapshot in, one plan out: the wiring of the pass."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.base.settings import Settings
from kube_scheduler_operator.controlplane.desired import wanted
from kube_scheduler_operator.controlplane.operand_image import operand_image, operand_version
from kube_scheduler_operator.controlplane.revision.inputs import RecordedInputs, read_inputs
from kube_scheduler_operator.engine.reconcile import reconcile
from kube_scheduler_operator.kube.resource import (
    CLUSTER_OPERATORS,
    CONFIG_MAPS,
    KUBE_SCHEDULERS,
    SERVICE_ACCOUNTS,
)
from kube_scheduler_operator.model.plan import Action, Create, Delete, Plan, Replace
from kube_scheduler_operator.model.snapshot import Snapshot
from kube_scheduler_operator.schedulerconfig.versions import Version

NOW = datetime(2026, 1, 1, tzinfo=UTC)
IMAGE = "registry.k8s.io/kube-scheduler:v1.35.4"
TARGET = KUBEADM.target_namespace


def pod(node: str, image: str = IMAGE, revision: int = 0, args: tuple[str, ...] = ()) -> Any:
    labels = {names.REVISION_LABEL: str(revision)} if revision else {}
    container = {"name": names.OPERAND, "image": image, "args": list(args)}
    return {
        "metadata": {"name": f"kube-scheduler-{node}", "labels": labels},
        "spec": {"nodeName": node, "containers": [container]},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }


def start(**fields: Any) -> Snapshot:
    """A cluster with one node that the operator has just been let into."""
    metadata = {"name": "cluster", "uid": "u", "resourceVersion": "1", "generation": 1}
    node = {"metadata": {"name": "a", "uid": "x"}, "status": {}}
    given: dict[str, Any] = {
        "server_version": "v1.35.4",
        "scheduler": {"metadata": {"name": "cluster"}, "spec": {}},
        "kubescheduler": {"metadata": metadata, "spec": {}},
        "nodes": {"a": node},
        "operand_pods": {"a": pod("a")},
    }
    return Snapshot(now=NOW, platform=KUBEADM, settings=Settings(), **{**given, **fields})


def spec(**fields: Any) -> dict[str, Any]:
    metadata = {"name": "cluster", "uid": "u", "resourceVersion": "1", "generation": 1}
    return {"metadata": metadata, "spec": fields}


def lines(actions: tuple[Action, ...]) -> list[str]:
    return [
        f"{type(a).__name__.lower()} {a.resource.kind} {a.obj['metadata']['name']}" for a in actions
    ]


def status(plan: Plan) -> Mapping[str, Any]:
    for action in plan.actions:
        if action.resource == KUBE_SCHEDULERS and isinstance(action, Replace):
            assert action.subresource == "status"
            found: Mapping[str, Any] = action.obj["status"]
            return found
    raise AssertionError("no status is written")


def condition(plan: Plan, type_: str) -> Mapping[str, Any]:
    return next(c for c in status(plan)["conditions"] if c["type"] == type_)


# --- the whole ------------------------------------------------------------------------------------


def test_the_first_pass_makes_what_is_missing_and_reports_last() -> None:
    plan = reconcile(start())
    assert lines(plan.actions) == [
        "create ServiceAccount installer-sa",
        "create ConfigMap config",
        "create ConfigMap kube-scheduler-pod",
        "create ConfigMap revision-status-1",
        "replace KubeScheduler cluster",
    ]
    assert lines(plan.reports) == ["create ClusterOperator kube-scheduler"]
    assert "status" not in plan.reports[0].obj, "the API ignores it at creation"
    assert plan.requeue_after == 0.0


def test_a_revision_has_its_inputs_and_others_can_ask_what_comes_of_them() -> None:
    snapshot = start(
        scheduler={"metadata": {"name": "cluster"}, "spec": {"profile": "NoScoring"}},
        kubescheduler=spec(logLevel="Debug"),
    )
    actions = reconcile(snapshot).actions
    (data,) = (a.obj["data"] for a in actions if a.obj["metadata"]["name"] == "revision-status-1")
    assert read_inputs(data["inputs"]) == RecordedInputs(
        {"profile": "NoScoring"}, {"logLevel": "Debug"}
    )
    content, findings = wanted(snapshot)
    assert content is not None
    assert (content.hash, content.inputs) == (data["hash"], data["inputs"])
    assert not any(finding.blocking for finding in findings)


def test_what_would_make_no_revision_is_told_to_those_who_ask() -> None:
    content, findings = wanted(start(kubescheduler=spec(logLevel="Loud")))
    assert content is None
    assert [finding.path for finding in findings if finding.blocking] == ["spec.logLevel"]


def test_the_same_snapshot_gives_the_same_plan() -> None:
    assert reconcile(start()) == reconcile(start())


def test_a_plan_never_changes_the_snapshot() -> None:
    snapshot = start()
    before = repr(snapshot)
    reconcile(snapshot)
    assert repr(snapshot) == before


def test_what_is_written_is_not_advertised_in_the_same_pass() -> None:
    assert "latestAvailableRevision" not in status(reconcile(start()))


def test_the_status_says_what_was_looked_at() -> None:
    written = status(reconcile(start()))
    assert written["observedGeneration"] == 1
    assert written["readyReplicas"] == 1
    assert written["nodeStatuses"] == [{"nodeName": "a", "nodeUID": "x"}]
    types = [c["type"] for c in written["conditions"]]
    assert types == sorted(types)


def test_every_condition_is_written_in_every_pass() -> None:
    types = {c["type"] for c in status(reconcile(start()))["conditions"]}
    broken = start(scheduler={"metadata": {"name": "cluster"}, "spec": {"profile": "Nope"}})
    assert {c["type"] for c in status(reconcile(broken))["conditions"]} == types


def test_hands_off_writes_only_the_report() -> None:
    plan = reconcile(start(kubescheduler=spec(managementState="Unmanaged")))
    assert plan.actions == ()
    assert lines(plan.reports) == ["create ClusterOperator kube-scheduler"]


def test_removed_before_anything_was_adopted_touches_no_node() -> None:
    plan = reconcile(start(kubescheduler=spec(managementState="Removed")))
    assert lines(plan.actions) == ["replace KubeScheduler cluster"]
    assert lines(plan.reports) == ["create ClusterOperator kube-scheduler"]


@pytest.mark.parametrize("state", ["", "Managed", "Force"])
def test_managed_is_managed(state: str) -> None:
    assert reconcile(start(kubescheduler=spec(managementState=state))).actions


def test_without_a_kubescheduler_only_the_report_is_written() -> None:
    plan = reconcile(start(kubescheduler=None))
    assert plan.actions == ()
    assert lines(plan.reports) == ["create ClusterOperator kube-scheduler"]


def test_without_a_kubescheduler_the_report_says_whether_anybody_schedules() -> None:
    existing = {"metadata": {"name": "kube-scheduler", "resourceVersion": "1"}, "spec": {}}

    def available(pods: dict[str, Any]) -> str:
        plan = reconcile(start(kubescheduler=None, cluster_operator=existing, operand_pods=pods))
        conditions = plan.reports[0].obj["status"]["conditions"]
        return str(next(c["status"] for c in conditions if c["type"] == "Available"))

    assert available({"a": pod("a")}) == "True"
    assert available({}) == "False"


# --- mistakes and trouble -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "type_", "reason"),
    [
        ({"scheduler": None}, names.TARGET_CONFIG_DEGRADED, "SchedulerNotFound"),
        (
            {"scheduler": {"metadata": {"name": "cluster"}, "spec": {"profile": "Nope"}}},
            names.TARGET_CONFIG_DEGRADED,
            "UnknownProfile",
        ),
        ({"operand_pods": {}}, names.TARGET_CONFIG_DEGRADED, "NoOperandImage"),
    ],
    ids=["no Scheduler", "unknown profile", "no image"],
)
def test_a_mistake_stops_before_the_target_objects(
    fields: dict[str, Any], type_: str, reason: str
) -> None:
    plan = reconcile(start(**fields))
    assert lines(plan.actions) == [
        "create ServiceAccount installer-sa",
        "replace KubeScheduler cluster",
    ]
    assert condition(plan, type_)["status"] == "True"
    assert condition(plan, type_)["reason"] == reason


def test_trouble_is_told_before_it_is_tried_again_and_promises_nothing() -> None:
    snapshot = start(trouble="create configmaps: 403")
    plan = reconcile(snapshot)
    assert lines(plan.actions)[0] == "replace KubeScheduler cluster"
    assert condition(plan, names.INSTALLER_DEGRADED)["message"] == "create configmaps: 403"
    assert "nodeStatuses" not in status(plan)
    assert len(lines(plan.actions)) == 5


def test_trouble_that_was_told_does_not_hold_up_the_work() -> None:
    snapshot = start(trouble="create configmaps: 403")
    told = {**(snapshot.kubescheduler or {}), "status": status(reconcile(snapshot))}
    plan = reconcile(replace(snapshot, kubescheduler=told))
    assert lines(plan.actions)[0] == "create ServiceAccount installer-sa"
    assert lines(plan.actions)[-1] == "replace KubeScheduler cluster"
    assert "nodeStatuses" in status(plan)


def test_a_condition_that_turns_is_an_event_once() -> None:
    broken = start(scheduler={"metadata": {"name": "cluster"}, "spec": {"profile": "Nope"}})
    plan = reconcile(broken)
    action = next(a for a in plan.actions if a.resource == KUBE_SCHEDULERS)
    warnings = [event for event in action.events if event.type == "Warning"]
    assert any("TargetConfigControllerDegraded is True" in event.message for event in warnings)
    again = replace(broken, kubescheduler={**(broken.kubescheduler or {}), "status": status(plan)})
    assert not any(a.resource == KUBE_SCHEDULERS for a in reconcile(again).actions)


# --- observed configuration -----------------------------------------------------------------------


def test_what_is_observed_is_written_down_before_anything_else() -> None:
    arguments = ("--bind-address=0.0.0.0",)
    plan = reconcile(start(operand_pods={"a": pod("a", args=arguments)}))
    (action,) = plan.actions
    assert (action.resource, action.obj["metadata"]["name"]) == (KUBE_SCHEDULERS, "cluster")
    assert action.obj["spec"]["observedConfig"]["arguments"] == {"bind-address": ["0.0.0.0"]}


def test_what_cannot_be_written_down_does_not_stop_the_rest() -> None:
    snapshot = start(kubescheduler=spec(observedConfig={"x": 1}), trouble="update: 403")
    told = {**(snapshot.kubescheduler or {}), "status": status(reconcile(snapshot))}
    plan = reconcile(replace(snapshot, kubescheduler=told))
    assert "create ConfigMap revision-status-1" in lines(plan.actions)
    last = plan.actions[-1]
    assert last.obj["spec"]["observedConfig"] == {}


WITH_CLUSTER_CONFIG = replace(KUBEADM, cluster_config=True)


def with_cluster_config(**fields: Any) -> Snapshot:
    """A cluster whose gates and TLS profile are in objects of their own."""
    observed = {"servingInfo": {"minTLSVersion": "VersionTLS13"}}
    profile = {"type": "Custom", "custom": {"ciphers": [], "minTLSVersion": "VersionTLS13"}}
    entries = [
        {"version": version, "enabled": [{"name": gate}]}
        for version, gate in (("1.2.3", "AllBeta"), ("1.2.4", "AllAlpha"))
    ]
    given: dict[str, Any] = {
        "apiserver": {"spec": {"tlsSecurityProfile": profile}},
        "feature_gate": {"status": {"featureGates": entries}},
        "infrastructure": {"status": {"apiServerInternalURI": "https://api-int:6443"}},
        "kubescheduler": spec(observedConfig=observed),
    }
    snapshot = start(**{**given, **fields})
    settings = Settings(release_version="1.2.3")
    return replace(snapshot, platform=WITH_CLUSTER_CONFIG, settings=settings)


def composed_flags(plan: Plan) -> list[str]:
    """What the target's pod has after --bind-address."""
    (action,) = first(plan, names.POD)
    args = json.loads(action.obj["data"][names.POD_KEY])["spec"]["containers"][0]["args"]
    return list(args[4:])


def test_objects_of_the_cluster_are_inputs() -> None:
    plan = reconcile(with_cluster_config())
    assert composed_flags(plan) == [
        "--feature-gates=AllBeta=true",
        "-v=2",
        "--tls-min-version=VersionTLS13",
    ]
    blocked = reconcile(with_cluster_config(infrastructure={"status": {}}))
    assert first(blocked, names.POD) == []


def test_a_release_without_its_gates_changes_nothing_that_runs() -> None:
    before = with_cluster_config()
    maps = {name: first(reconcile(before), name)[0].obj for name in (names.CONFIG, names.POD)}
    snapshot = replace(before, config_maps=maps, settings=Settings(release_version="1.2.5"))
    plan = reconcile(snapshot)
    assert first(plan, names.POD) == []
    degraded = condition(plan, names.CONFIG_OBSERVATION_DEGRADED)
    assert degraded["reason"] == "FeatureGatesNotFound"
    assert "no entry for version 1.2.5, only 1.2.3 or 1.2.4" in degraded["message"]

    for somebody_elses in ({}, {names.POD_KEY: "{"}, {names.POD_KEY: "[]"}):
        odd = {**maps[names.POD], "data": somebody_elses}
        plan = reconcile(replace(snapshot, config_maps={**maps, names.POD: odd}))
        assert composed_flags(plan)[0] == "-v=2"


def test_settings_without_effect_are_told_and_alarm_nobody() -> None:
    scheduler = {"metadata": {"name": "cluster"}, "spec": {"mastersSchedulable": True}}
    plan = reconcile(start(scheduler=scheduler))
    told = condition(plan, names.INEFFECTIVE_SETTINGS)
    assert (told["status"], told["reason"]) == ("True", "DecidedByTaints")
    calm = condition(reconcile(start()), names.INEFFECTIVE_SETTINGS)
    assert (calm["status"], calm["reason"]) == ("False", "AsExpected")

    operator = {"metadata": {"name": "kube-scheduler"}, "status": {}}
    results = {
        spec_name: reconcile(start(scheduler=given, cluster_operator=operator)).reports
        for spec_name, given in (("with", scheduler), ("without", start().scheduler))
    }
    assert results["with"] == results["without"]


# --- objects --------------------------------------------------------------------------------------


def made(name: str) -> dict[str, Any]:
    """An object as the first pass makes it, with what the API adds."""
    for action in reconcile(start()).actions:
        if action.obj["metadata"]["name"] == name:
            obj = dict(action.obj)
            metadata = {**obj["metadata"], "uid": "u", "resourceVersion": "1"}
            return {**obj, "metadata": metadata}
    raise AssertionError(name)


def first(plan: Plan, name: str) -> list[Action]:
    return [a for a in plan.actions if a.obj["metadata"]["name"] == name]


def test_objects_that_are_right_are_left_alone() -> None:
    plan = reconcile(
        start(
            config_maps={name: made(name) for name in ("config", "kube-scheduler-pod")},
            service_accounts={"installer-sa": made("installer-sa")},
        )
    )
    assert lines(plan.actions)[0] == "create ConfigMap revision-status-1"


def test_labels_and_keys_of_others_are_kept_and_ours_come_back() -> None:
    config = made("config")
    config["metadata"] |= {"labels": {"theirs": "x"}, "annotations": {"a": "b"}}
    (action,) = first(reconcile(start(config_maps={"config": config})), "config")
    assert isinstance(action, Replace)
    labels = action.obj["metadata"]["labels"]
    assert labels == {"theirs": "x", **names.OWN_LABELS}
    assert action.obj["metadata"]["annotations"] == {"a": "b"}
    assert action.obj["metadata"]["resourceVersion"] == "1"


def test_pull_secrets_are_the_installers_too() -> None:
    account = made("installer-sa")
    account |= {"imagePullSecrets": [{"name": "theirs"}]}
    accounts = {"installer-sa": account}
    assert first(reconcile(start(service_accounts=accounts)), "installer-sa") == []
    settings = Settings(image_pull_secrets=("ours", "too"))
    plan = reconcile(replace(start(service_accounts=accounts), settings=settings))
    (action,) = first(plan, "installer-sa")
    assert action.obj["imagePullSecrets"] == [{"name": "ours"}, {"name": "too"}]


def test_edited_data_comes_back_whole() -> None:
    config = {**made("config"), "data": {"config.yaml": "x", "more": "y"}}
    (action,) = first(reconcile(start(config_maps={"config": config})), "config")
    assert action.obj["data"] == made("config")["data"]
    assert action.events[0].reason == "ConfigMapUpdated"


def test_a_sealed_target_is_made_again() -> None:
    config = {**made("config"), "data": {}, "immutable": True}
    actions = first(reconcile(start(config_maps={"config": config})), "config")
    assert [type(action) for action in actions] == [Delete, Create]
    assert "immutable" not in actions[1].obj


def test_a_token_for_the_installer_is_taken_away_again() -> None:
    account = {**made("installer-sa"), "automountServiceAccountToken": True}
    (action,) = first(reconcile(start(service_accounts={"installer-sa": account})), "installer-sa")
    assert action.resource == SERVICE_ACCOUNTS
    assert action.obj["automountServiceAccountToken"] is False


def test_a_force_redeployment_reason_is_part_of_the_revision() -> None:
    plan = reconcile(start(kubescheduler=spec(forceRedeploymentReason="ticket 7")))
    (action,) = first(plan, "kube-scheduler-pod")
    assert action.obj["data"][names.FORCE_REDEPLOYMENT_KEY] == "ticket 7"


# --- image and version ----------------------------------------------------------------------------


def with_revision(
    number: int, data: Any, *, ready: bool = True, outcome: str = names.OUTCOME_INSTALLED
) -> dict[str, Any]:
    annotations = {
        names.REVISION_READY_ANNOTATION: "true" if ready else "false",
        names.OUTCOME_ANNOTATION: outcome,
    }
    return {
        f"revision-status-{number}": {
            "metadata": {"name": f"revision-status-{number}", "annotations": annotations}
        },
        f"kube-scheduler-pod-{number}": {"metadata": {"name": "x"}, "data": data},
    }


def copy_of(image: str) -> dict[str, str]:
    return {names.POD_KEY: f'{{"spec": {{"containers": [{{"image": "{image}"}}]}}}}'}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({"settings": Settings(operand_image="set:v1")}, "set:v1", id="as configured"),
        pytest.param({}, IMAGE, id="as found running"),
        pytest.param(
            {"config_maps": with_revision(3, copy_of("r:v3"))}, "r:v3", id="as last installed"
        ),
        pytest.param(
            {
                "config_maps": with_revision(3, copy_of("r:v3"))
                | with_revision(4, copy_of("nowhere:v4"), outcome="")
            },
            "r:v3",
            id="not one that never ran",
        ),
        pytest.param(
            {
                "config_maps": with_revision(1, copy_of("r:v1"), outcome=""),
                "operand_pods": {},
            },
            "r:v1",
            id="as wanted, if nothing else is known",
        ),
        pytest.param(
            {
                "config_maps": with_revision(3, copy_of("r:v3"))
                | with_revision(10, copy_of("r:v10"))
            },
            "r:v10",
            id="the latest, not the first by name",
        ),
        pytest.param(
            {"config_maps": with_revision(3, copy_of("r:v3"), ready=False)},
            IMAGE,
            id="not one that is not complete",
        ),
        pytest.param(
            {"config_maps": with_revision(3, {names.POD_KEY: "no JSON"})}, IMAGE, id="broken copy"
        ),
        pytest.param({"config_maps": with_revision(3, None)}, IMAGE, id="empty copy"),
        pytest.param({"operand_pods": {}}, "", id="unknown"),
    ],
)
def test_operand_image(fields: dict[str, Any], expected: str) -> None:
    settings = fields.pop("settings", Settings())
    assert operand_image(replace(start(**fields), settings=settings)) == expected


@pytest.mark.parametrize(
    ("image", "server", "expected"),
    [
        ("r.io/kube-scheduler:v1.34.2", "v1.35.4", Version(1, 34, 2)),
        ("r.io:5000/kube-scheduler:v1.34.2", "v1.35.4", Version(1, 34, 2)),
        ("r.io:5000/kube-scheduler", "v1.35.4", Version(1, 35, 4)),
        ("r.io/kube-scheduler:v1.34.2@sha256:00", "v1.35.4", Version(1, 34, 2)),
        ("r.io/kube-scheduler@sha256:00", "v1.35.4", Version(1, 35, 4)),
        ("mine:latest", "v1.33.1-gke.5", Version(1, 33, 1)),
        ("mine:latest", "", Version(1, 35, 0)),
    ],
)
def test_operand_version(image: str, server: str, expected: Version) -> None:
    assert operand_version(start(server_version=server), image) == expected


def test_versions_are_reported_only_when_they_are_certain() -> None:
    existing = {"metadata": {"name": "kube-scheduler", "resourceVersion": "1"}, "spec": {}}

    def versions(pods: dict[str, Any]) -> dict[str, str]:
        plan = reconcile(start(cluster_operator=existing, operand_pods=pods))
        (report,) = [a for a in plan.reports if a.resource == CLUSTER_OPERATORS]
        return {v["name"]: v["version"] for v in report.obj["status"]["versions"]}

    assert versions({"a": pod("a")})["kube-scheduler"] == "v1.35.4"
    mixed = {"a": pod("a"), "b": pod("b", "registry.k8s.io/kube-scheduler:v1.36.0")}
    assert set(versions(mixed)) == {"operator"}


def test_config_maps_are_ours_and_in_the_target_namespace() -> None:
    for action in reconcile(start()).actions:
        if action.resource == CONFIG_MAPS:
            assert action.obj["metadata"]["namespace"] == TARGET
            assert action.obj["metadata"]["labels"] == names.OWN_LABELS
