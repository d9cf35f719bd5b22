"""One snapshot in, one plan out: how the steps of a reconcile work together."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM, OPENSHIFT
from kube_scheduler_operator.base.settings import Settings
from kube_scheduler_operator.config.effective.control_plane.recorded_inputs import (
    RecordedInputs,
    read_inputs,
)
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.kube.resource import (
    CLUSTER_OPERATORS,
    CONFIG_MAPS,
    KUBE_SCHEDULERS,
    NETWORK_POLICIES,
    SERVICE_ACCOUNTS,
)
from kube_scheduler_operator.operator.controlplane.desired import desired_content
from kube_scheduler_operator.operator.controlplane.operand_image import (
    operand_image,
    operand_version,
)
from kube_scheduler_operator.operator.controlplane.rollout.node_statuses import NodeStatus
from kube_scheduler_operator.operator.controlplane.status import write_node_statuses
from kube_scheduler_operator.operator.engine.reconcile import reconcile
from kube_scheduler_operator.operator.model.plan import Action, Create, Delete, Plan, Replace
from kube_scheduler_operator.operator.model.snapshot import Snapshot

from .... import builders
from ....builders import OPERAND_IMAGE, kubescheduler, node, operand_pod, ready_condition, scheduler
from ....expect import (
    condition_in,
    condition_of,
    expect_condition,
    expect_writes,
    status_of_kubescheduler,
    writes,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TARGET = KUBEADM.target_namespace


def start(**fields: Any) -> Snapshot:
    """A cluster with one node, in which the operator has just been installed."""
    given: dict[str, Any] = {
        "server_version": "v1.35.4",
        "scheduler": scheduler(),
        "kubescheduler": kubescheduler(),
        "nodes": {"a": node("a", ready_condition(None))},
        "operand_pods": {"a": operand_pod("a")},
    }
    return builders.snapshot(now=NOW, **{**given, **fields})


def conditions(plan: Plan) -> Any:
    return status_of_kubescheduler(plan)["conditions"]


# --- the whole ------------------------------------------------------------------------------------


def test_the_first_reconcile_creates_missing_objects_and_reports_last() -> None:
    plan = reconcile(start())
    expect_writes(
        plan.actions,
        "create ServiceAccount installer-sa",
        "create ConfigMap config",
        "create ConfigMap kube-scheduler-pod",
        "create ConfigMap revision-status-1",
        "replace KubeScheduler cluster",
    )
    expect_writes(plan.reports, "create ClusterOperator kube-scheduler")
    assert "status" not in plan.reports[0].obj, "the API ignores it at creation"
    assert plan.requeue_after == 0.0


def test_a_revision_records_its_inputs_and_they_compose_to_the_same_content() -> None:
    snapshot = start(
        scheduler=scheduler(profile="NoScoring"),
        kubescheduler=kubescheduler(logLevel="Debug"),
    )
    actions = reconcile(snapshot).actions
    (data,) = (a.obj["data"] for a in actions if a.obj["metadata"]["name"] == "revision-status-1")
    assert read_inputs(data["inputs"]) == RecordedInputs(
        {"profile": "NoScoring"}, {"logLevel": "Debug"}
    )
    content, findings = desired_content(snapshot)
    assert content is not None
    assert (content.hash, content.inputs) == (data["hash"], data["inputs"])
    assert not any(finding.blocking for finding in findings)


def test_an_invalid_setting_yields_findings_instead_of_content() -> None:
    content, findings = desired_content(start(kubescheduler=kubescheduler(logLevel="Loud")))
    assert content is None
    assert [finding.path for finding in findings if finding.blocking] == ["spec.logLevel"]


def test_the_same_snapshot_gives_the_same_plan() -> None:
    assert reconcile(start()) == reconcile(start())


def test_a_plan_never_changes_the_snapshot() -> None:
    snapshot = start()
    before = repr(snapshot)
    reconcile(snapshot)
    assert repr(snapshot) == before


def test_a_new_revision_is_not_reported_in_the_reconcile_that_writes_it() -> None:
    assert "latestAvailableRevision" not in status_of_kubescheduler(reconcile(start()))


def test_the_status_reports_what_was_observed() -> None:
    written = status_of_kubescheduler(reconcile(start()))
    assert written["observedGeneration"] == 1
    assert written["readyReplicas"] == 1
    assert written["nodeStatuses"] == [{"nodeName": "a", "nodeUID": "node-a"}]
    types = [c["type"] for c in written["conditions"]]
    assert types == sorted(types)


@pytest.mark.parametrize("stored", [False, True])
def test_on_openshift_the_uid_of_a_node_is_written_where_it_is_stored(stored: bool) -> None:
    """The definition of 4.20 does not have nodeUID: the write would be reported as not lasting."""
    uid = {"nodeUID": "node-a"} if stored else {}
    entry = {"nodeName": "a", "currentRevision": 1}
    snapshot = start(
        platform=OPENSHIFT, kubescheduler=kubescheduler({"nodeStatuses": [{**entry, **uid}]})
    )
    written = write_node_statuses(snapshot, [NodeStatus("a", "node-a", current=1)])
    assert written == [{**entry, **uid}]
    assert write_node_statuses(start(), [NodeStatus("a", "node-a")])[0]["nodeUID"] == "node-a"


def test_every_reconcile_writes_every_condition() -> None:
    types = {c["type"] for c in status_of_kubescheduler(reconcile(start()))["conditions"]}
    broken = start(scheduler=scheduler(profile="Nope"))
    assert {c["type"] for c in status_of_kubescheduler(reconcile(broken))["conditions"]} == types


def test_unmanaged_writes_only_statuses() -> None:
    plan = reconcile(start(kubescheduler=kubescheduler(managementState="Unmanaged")))
    expect_writes(plan.actions, "replace KubeScheduler cluster")
    expect_writes(plan.reports, "create ClusterOperator kube-scheduler")
    assert plan.write_sets == {}


def test_unmanaged_reports_what_is_observed_and_what_is_not() -> None:
    nodes = {"a": node("a")}
    managed = status_of_kubescheduler(reconcile(start(nodes=nodes)))
    known = {condition["type"] for condition in managed["conditions"]}
    unmanaged = kubescheduler(status=managed, managementState="Unmanaged")
    observed = start(nodes=nodes, kubescheduler=unmanaged, operand_pods={})
    status = status_of_kubescheduler(reconcile(observed))
    found = status["conditions"]
    assert {condition["type"] for condition in found} == known
    assert status["readyReplicas"] == 0
    expect_condition(found, names.STATIC_PODS_AVAILABLE, "False", "NoReadyScheduler")
    expect_condition(found, names.NODES_DEGRADED, "False")
    expect_condition(found, names.NODE_INSTALLER_PROGRESSING, "Unknown", "Unmanaged")
    expect_condition(found, names.STATIC_PODS_DEGRADED, "Unknown", "Unmanaged", "not observed")


@pytest.mark.parametrize("state", ["Unmanaged", "Removed", "Managed"])
def test_a_condition_that_is_not_observed_or_observed_again_causes_no_event(state: str) -> None:
    snapshot = start(nodes={"a": node("a")})
    status = status_of_kubescheduler(reconcile(snapshot))
    if state == "Managed":
        unmanaged = kubescheduler(status=status, managementState="Unmanaged")
        status = status_of_kubescheduler(reconcile(replace(snapshot, kubescheduler=unmanaged)))
    changed = kubescheduler(status=status, managementState=state)
    actions = reconcile(replace(snapshot, kubescheduler=changed)).actions
    reported = [event for action in actions for event in action.events]
    assert not [event for event in reported if event.reason == "OperatorStatusChanged"]


def test_the_annotation_counts_before_the_field() -> None:
    paused = kubescheduler(managementState="Managed")
    paused["metadata"]["annotations"] = {names.MANAGEMENT_ANNOTATION: "Unmanaged"}
    plan = reconcile(start(kubescheduler=paused))
    expect_writes(plan.actions, "replace KubeScheduler cluster")
    expect_writes(plan.reports, "create ClusterOperator kube-scheduler")


def test_removal_before_adoption_touches_no_node() -> None:
    plan = reconcile(start(kubescheduler=kubescheduler(managementState="Removed")))
    expect_writes(plan.actions, "replace KubeScheduler cluster")
    expect_writes(plan.reports, "create ClusterOperator kube-scheduler")


@pytest.mark.parametrize("state", ["", "Managed", "Force"])
def test_other_management_states_count_as_managed(state: str) -> None:
    assert reconcile(start(kubescheduler=kubescheduler(managementState=state))).actions


def test_without_a_kubescheduler_only_the_report_is_written() -> None:
    plan = reconcile(start(kubescheduler=None))
    assert plan.actions == ()
    expect_writes(plan.reports, "create ClusterOperator kube-scheduler")


def test_without_a_kubescheduler_the_report_shows_whether_a_scheduler_runs() -> None:
    existing = {"metadata": {"name": "kube-scheduler", "resourceVersion": "1"}, "spec": {}}

    def available(pods: dict[str, Any], **fields: Any) -> str:
        observed = start(kubescheduler=None, cluster_operator=existing, operand_pods=pods, **fields)
        return condition_of(reconcile(observed).reports[0].obj, "Available")[0]

    lease = {"spec": {"holderIdentity": "a_1", "leaseDurationSeconds": 15}}
    renewed = {"operand_lease": lease, "lease_seen": NOW}
    assert available({"a": operand_pod("a")}, **renewed) == "True"
    assert available({"a": operand_pod("a")}) == "False", "none renews its Lease"
    assert available({}, **renewed) == "False"


# --- mistakes and errors --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "type_", "reason"),
    [
        ({"scheduler": None}, names.TARGET_CONFIG_DEGRADED, "SchedulerNotFound"),
        ({"operand_pods": {}}, names.TARGET_CONFIG_DEGRADED, "NoOperandImage"),
        (
            {
                "operand_pods": {"a": operand_pod("a", args=("--permit-address-sharin=true",))},
                "kubescheduler": kubescheduler(
                    observedConfig={"arguments": {"permit-address-sharin": ["true"]}}
                ),
            },
            names.CONFIG_OBSERVATION_DEGRADED,
            "UnknownArgument",
        ),
    ],
    ids=["no Scheduler", "no image", "adopted flag"],
)
def test_an_invalid_configuration_writes_no_target_objects(
    fields: dict[str, Any], type_: str, reason: str
) -> None:
    plan = reconcile(start(**fields))
    expect_writes(
        plan.actions, "create ServiceAccount installer-sa", "replace KubeScheduler cluster"
    )
    expect_condition(conditions(plan), type_, "True", reason)


def test_the_file_of_an_adopted_scheduler_is_read_before_anything_is_composed() -> None:
    pods = {"a": operand_pod("a", args=("--config=/etc/own.yaml",))}
    plan = reconcile(start(operand_pods=pods))
    expect_writes(
        plan.actions,
        "create ServiceAccount installer-sa",
        "create Pod config-reader-a",
        "replace KubeScheduler cluster",
    )
    expect_condition(conditions(plan), names.ADOPTED_SETTINGS, "True", "ReadingConfiguration")
    expect_condition(conditions(plan), names.ADOPTION_DEGRADED, "False", "AsExpected")


def test_an_error_is_reported_before_the_retry_and_without_node_statuses() -> None:
    snapshot = start(last_error="create configmaps: 403")
    plan = reconcile(snapshot)
    assert writes(plan.actions)[0] == "replace KubeScheduler cluster"
    assert condition_in(conditions(plan), names.INSTALLER_DEGRADED)[2] == "create configmaps: 403"
    assert "nodeStatuses" not in status_of_kubescheduler(plan)
    assert len(writes(plan.actions)) == 5


def test_a_reported_error_does_not_delay_the_work() -> None:
    snapshot = start(last_error="create configmaps: 403")
    reported = {
        **(snapshot.kubescheduler or {}),
        "status": status_of_kubescheduler(reconcile(snapshot)),
    }
    plan = reconcile(replace(snapshot, kubescheduler=reported))
    assert writes(plan.actions)[0] == "create ServiceAccount installer-sa"
    assert writes(plan.actions)[-1] == "replace KubeScheduler cluster"
    assert "nodeStatuses" in status_of_kubescheduler(plan)


def test_a_changed_condition_is_one_event() -> None:
    broken = start(scheduler=scheduler(profile="Nope"))
    plan = reconcile(broken)
    action = next(a for a in plan.actions if a.resource == KUBE_SCHEDULERS)
    warnings = [event for event in action.events if event.type == "Warning"]
    assert any("TargetConfigControllerDegraded is True" in event.message for event in warnings)
    again = replace(
        broken,
        kubescheduler={**(broken.kubescheduler or {}), "status": status_of_kubescheduler(plan)},
    )
    assert not any(a.resource == KUBE_SCHEDULERS for a in reconcile(again).actions)


# --- observed configuration -----------------------------------------------------------------------


def test_the_observed_configuration_is_written_first() -> None:
    arguments = ("--bind-address=0.0.0.0",)
    plan = reconcile(start(operand_pods={"a": operand_pod("a", args=arguments)}))
    (action,) = plan.actions
    assert (action.resource, action.obj["metadata"]["name"]) == (KUBE_SCHEDULERS, "cluster")
    assert action.obj["spec"]["observedConfig"]["arguments"] == {"bind-address": ["0.0.0.0"]}


def test_a_failed_write_of_the_observed_configuration_does_not_stop_the_rest() -> None:
    snapshot = start(kubescheduler=kubescheduler(observedConfig={"x": 1}), last_error="update: 403")
    reported = {
        **(snapshot.kubescheduler or {}),
        "status": status_of_kubescheduler(reconcile(snapshot)),
    }
    plan = reconcile(replace(snapshot, kubescheduler=reported))
    assert "create ConfigMap revision-status-1" in writes(plan.actions)
    last = plan.actions[-1]
    assert last.obj["spec"]["observedConfig"] == {}


WITH_CLUSTER_CONFIG = replace(KUBEADM, cluster_config=True)


def with_cluster_config(**fields: Any) -> Snapshot:
    """A cluster that keeps feature gates and the TLS profile in its own objects."""
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
        "kubescheduler": kubescheduler(observedConfig=observed),
    }
    snapshot = start(**{**given, **fields})
    settings = Settings(release_version="1.2.3")
    return replace(snapshot, platform=WITH_CLUSTER_CONFIG, settings=settings)


def composed_flags(plan: Plan) -> list[str]:
    """The arguments of the target's pod after --bind-address."""
    (action,) = first(plan, names.POD)
    args = json.loads(action.obj["data"][names.POD_KEY])["spec"]["containers"][0]["args"]
    return list(args[4:])


def test_cluster_configuration_objects_are_inputs() -> None:
    plan = reconcile(with_cluster_config())
    assert composed_flags(plan) == [
        "--feature-gates=AllBeta=true",
        "-v=2",
        "--tls-min-version=VersionTLS13",
    ]
    blocked = reconcile(with_cluster_config(infrastructure={"status": {}}))
    assert first(blocked, names.POD) == []


def test_a_release_without_feature_gates_changes_no_running_configuration() -> None:
    before = with_cluster_config()
    maps = {name: first(reconcile(before), name)[0].obj for name in (names.CONFIG, names.POD)}
    snapshot = replace(before, config_maps=maps, settings=Settings(release_version="1.2.5"))
    plan = reconcile(snapshot)
    assert first(plan, names.POD) == []
    _, reason, message = condition_in(conditions(plan), names.CONFIG_OBSERVATION_DEGRADED)
    assert reason == "FeatureGatesNotFound"
    assert "no entry for version 1.2.5, only for 1.2.3 or 1.2.4" in message

    for foreign in ({}, {names.POD_KEY: "{"}, {names.POD_KEY: "[]"}):
        odd = {**maps[names.POD], "data": foreign}
        plan = reconcile(replace(snapshot, config_maps={**maps, names.POD: odd}))
        assert composed_flags(plan)[0] == "-v=2"


def test_ineffective_settings_are_reported_without_an_alarm() -> None:
    given_scheduler = scheduler(mastersSchedulable=True)
    plan = reconcile(start(scheduler=given_scheduler))
    type_ = names.INEFFECTIVE_SETTINGS
    expect_condition(conditions(plan), type_, "True", "DecidedByTaints")
    expect_condition(conditions(reconcile(start())), type_, "False", "AsExpected")

    operator = {"metadata": {"name": "kube-scheduler"}, "status": {}}
    results = {
        spec_name: reconcile(start(scheduler=given, cluster_operator=operator)).reports
        for spec_name, given in (("with", given_scheduler), ("without", start().scheduler))
    }
    assert results["with"] == results["without"]


# --- objects --------------------------------------------------------------------------------------


def made(name: str) -> dict[str, Any]:
    """An object as the first reconcile creates it, with the fields that the API adds."""
    for action in reconcile(start()).actions:
        if action.obj["metadata"]["name"] == name:
            obj = dict(action.obj)
            metadata = {**obj["metadata"], "uid": "u", "resourceVersion": "1"}
            return {**obj, "metadata": metadata}
    raise AssertionError(name)


def first(plan: Plan, name: str) -> list[Action]:
    return [a for a in plan.actions if a.obj["metadata"]["name"] == name]


def test_correct_objects_are_not_written() -> None:
    plan = reconcile(
        start(
            config_maps={name: made(name) for name in ("config", "kube-scheduler-pod")},
            service_accounts={"installer-sa": made("installer-sa")},
        )
    )
    assert writes(plan.actions)[0] == "create ConfigMap revision-status-1"


def test_foreign_labels_and_keys_are_kept_and_own_ones_restored() -> None:
    config = made("config")
    config["metadata"] |= {"labels": {"theirs": "x"}, "annotations": {"a": "b"}}
    (action,) = first(reconcile(start(config_maps={"config": config})), "config")
    assert isinstance(action, Replace)
    labels = action.obj["metadata"]["labels"]
    assert labels == {"theirs": "x", **names.OWN_LABELS}
    assert action.obj["metadata"]["annotations"] == {"a": "b"}
    assert action.obj["metadata"]["resourceVersion"] == "1"


def test_the_installer_account_gets_the_pull_secrets() -> None:
    account = made("installer-sa")
    account |= {"imagePullSecrets": [{"name": "theirs"}]}
    accounts = {"installer-sa": account}
    assert first(reconcile(start(service_accounts=accounts)), "installer-sa") == []
    settings = Settings(image_pull_secrets=("ours", "too"))
    plan = reconcile(replace(start(service_accounts=accounts), settings=settings))
    (action,) = first(plan, "installer-sa")
    assert action.obj["imagePullSecrets"] == [{"name": "ours"}, {"name": "too"}]


def test_edited_data_is_restored() -> None:
    config = {**made("config"), "data": {"config.yaml": "x", "more": "y"}}
    (action,) = first(reconcile(start(config_maps={"config": config})), "config")
    assert action.obj["data"] == made("config")["data"]
    assert action.events[0].reason == "ConfigMapUpdated"


def test_an_immutable_target_is_recreated() -> None:
    config = {**made("config"), "data": {}, "immutable": True}
    actions = first(reconcile(start(config_maps={"config": config})), "config")
    assert [type(action) for action in actions] == [Delete, Create]
    assert "immutable" not in actions[1].obj


def test_the_token_of_the_installer_account_is_disabled_again() -> None:
    account = {**made("installer-sa"), "automountServiceAccountToken": True}
    (action,) = first(reconcile(start(service_accounts={"installer-sa": account})), "installer-sa")
    assert action.resource == SERVICE_ACCOUNTS
    assert action.obj["automountServiceAccountToken"] is False


def policies_written(found: dict[str, dict[str, Any]]) -> list[Action]:
    snapshot = replace(start(), platform=OPENSHIFT, network_policies=found)
    (observing,) = reconcile(snapshot).actions  # observedConfig is written first
    snapshot = replace(snapshot, kubescheduler=observing.obj)
    return [a for a in reconcile(snapshot).actions if a.resource == NETWORK_POLICIES]


def test_network_policies_of_the_target_namespace_are_put_back_on_openshift() -> None:
    missing = policies_written({})
    names_of = [action.obj["metadata"]["name"] for action in missing]
    assert names_of == ["default-deny-all", "installer-pruner"]
    assert all(isinstance(action, Create) for action in missing)
    kept = {
        action.obj["metadata"]["name"]: {
            **action.obj, "metadata": {**action.obj["metadata"], "resourceVersion": "1", "uid": "u"}
        }
        for action in missing
    }  # fmt: skip
    assert policies_written(kept) == []
    for name, policy in kept.items():
        selector = {"matchLabels": {"np": "mutated"}}
        mutated = {**policy, "spec": {**policy["spec"], "podSelector": selector}}
        (action,) = policies_written({**kept, name: mutated})
        assert isinstance(action, Replace)
        assert action.obj["spec"] == policy["spec"]
    assert not [a for a in reconcile(start()).actions if a.resource == NETWORK_POLICIES]


def test_a_network_policy_that_an_earlier_release_applied_becomes_the_operators() -> None:
    labels = {names.MANAGED_BY_LABEL: "kustomize"}
    metadata = {"name": "default-deny-all", "labels": labels, "resourceVersion": "1"}
    spec = {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    action, _ = policies_written({"default-deny-all": {"metadata": metadata, "spec": spec}})
    assert isinstance(action, Replace)
    assert action.obj["metadata"]["labels"] == dict(names.OWN_LABELS)


def test_removed_deletes_the_network_policies_of_the_operator_only() -> None:
    kept = {
        action.obj["metadata"]["name"]: {
            **action.obj, "metadata": {**action.obj["metadata"], "resourceVersion": "1", "uid": "u"}
        }
        for action in policies_written({})
    }  # fmt: skip
    theirs = {"metadata": {"name": "theirs", "namespace": "x", "resourceVersion": "1", "uid": "v"}}
    removed = start(kubescheduler=kubescheduler(managementState="Removed"))
    deleted = [
        action.obj["metadata"]["name"]
        for action in reconcile(
            replace(removed, network_policies={**kept, "theirs": theirs})
        ).actions
        if isinstance(action, Delete) and action.resource == NETWORK_POLICIES
    ]
    assert deleted == ["default-deny-all", "installer-pruner"]


def test_a_force_redeployment_reason_is_part_of_the_revision() -> None:
    plan = reconcile(start(kubescheduler=kubescheduler(forceRedeploymentReason="ticket 7")))
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
        pytest.param({}, OPERAND_IMAGE, id="as found running"),
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
            id="as configured, if nothing else is known",
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
            OPERAND_IMAGE,
            id="not one that is not complete",
        ),
        pytest.param(
            {"config_maps": with_revision(3, {names.POD_KEY: "no JSON"})},
            OPERAND_IMAGE,
            id="broken copy",
        ),
        pytest.param({"config_maps": with_revision(3, None)}, OPERAND_IMAGE, id="empty copy"),
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


def test_versions_are_reported_only_when_all_nodes_agree() -> None:
    existing = {"metadata": {"name": "kube-scheduler", "resourceVersion": "1"}, "spec": {}}

    def versions(pods: dict[str, Any]) -> dict[str, str]:
        plan = reconcile(start(cluster_operator=existing, operand_pods=pods))
        (report,) = [a for a in plan.reports if a.resource == CLUSTER_OPERATORS]
        return {v["name"]: v["version"] for v in report.obj["status"]["versions"]}

    assert versions({"a": operand_pod("a")})["kube-scheduler"] == "v1.35.4"
    mixed = {
        "a": operand_pod("a"),
        "b": operand_pod("b", image="registry.k8s.io/kube-scheduler:v1.36.0"),
    }
    assert set(versions(mixed)) == {"operator"}


def test_config_maps_have_own_labels_and_the_target_namespace() -> None:
    for action in reconcile(start()).actions:
        if action.resource == CONFIG_MAPS:
            assert action.obj["metadata"]["namespace"] == TARGET
            assert action.obj["metadata"]["labels"] == names.OWN_LABELS
