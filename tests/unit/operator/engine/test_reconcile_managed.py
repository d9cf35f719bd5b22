"""Where the provider runs the control plane's scheduler, a SecondaryScheduler is in its place."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM, MANAGED
from kube_scheduler_operator.base.recognition import PlatformDecision, Recognition
from kube_scheduler_operator.base.settings import Settings
from kube_scheduler_operator.config.effective.control_plane import recorded_inputs
from kube_scheduler_operator.kube.resource import (
    CLUSTER_OPERATORS,
    CONFIG_MAPS,
    DAEMON_SETS,
    DEPLOYMENTS,
    KUBE_SCHEDULERS,
    LEASES,
    NODES,
    PODS,
    ROLE_BINDINGS,
    SCHEDULER_EXTENDERS,
    SCHEDULER_PROFILES,
    SECONDARY_SCHEDULERS,
    Resource,
)
from kube_scheduler_operator.operator.controlplane.managed import scheduler_conditions
from kube_scheduler_operator.operator.controlplane.operand_image import operand_image
from kube_scheduler_operator.operator.engine.reconcile import reconcile
from kube_scheduler_operator.operator.engine.watches import watches
from kube_scheduler_operator.operator.model.plan import Action, Create, Delete, Plan
from kube_scheduler_operator.operator.model.snapshot import Snapshot

from ....builders import (
    condition,
    extender,
    kubescheduler,
    node_status,
    profile,
    ready_condition,
    scheduler,
    secondary,
    snapshot,
)
from ....expect import condition_in, expect_condition, expect_forgotten, expect_no_writes, writes

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SERVER = "v1.35.4-eks-113cf36"
NAME = "managed-scheduler"
EKS = PlatformDecision(Recognition(MANAGED, "EKS", f"the API server is {SERVER}"), remember=True)
WHO = "the control plane's scheduler is managed by EKS"


def start(**fields: Any) -> Snapshot:
    """A cluster of EKS in which the operator has just been installed."""
    given: dict[str, Any] = {
        "platform": MANAGED,
        "decision": EKS,
        "server_version": SERVER,
        "scheduler": scheduler(),
        "kubescheduler": kubescheduler(),
    }
    return snapshot(now=NOW, **{**given, **fields})


def performed(snapshot: Snapshot, plan: Plan) -> Snapshot:
    """The cluster after the writes of a plan to the operator's own kinds."""
    sets = [action for actions in plan.write_sets.values() for action in actions]
    for action in (*plan.actions, *plan.reports, *sets):
        snapshot = _performed(snapshot, action)
    return snapshot


def _is_of_a_scheduler(obj: Any) -> bool:
    return names.SECONDARY_LABEL in obj["metadata"].get("labels", {})


def _performed(snapshot: Snapshot, action: Action) -> Snapshot:
    obj = deepcopy(dict(action.obj))
    name = obj["metadata"]["name"]
    if isinstance(action, Create) and action.resource == SECONDARY_SCHEDULERS:
        obj["metadata"] |= {"uid": f"uid-{name}", "generation": 1, "creationTimestamp": "2026"}
    fields: dict[Resource, str] = {
        SCHEDULER_PROFILES: "scheduler_profiles",
        SCHEDULER_EXTENDERS: "scheduler_extenders",
        CONFIG_MAPS: "config_maps",
    }
    if action.resource == KUBE_SCHEDULERS:
        return replace(snapshot, kubescheduler=obj)
    if action.resource == CLUSTER_OPERATORS:
        return replace(snapshot, cluster_operator=obj)
    if action.resource in fields and not _is_of_a_scheduler(obj):
        before = getattr(snapshot, fields[action.resource])
        after = {key: value for key, value in before.items() if key != name}
        after |= {} if isinstance(action, Delete) else {name: obj}
        changed: dict[str, Any] = {fields[action.resource]: after}
        return replace(snapshot, **changed)
    if action.resource == SECONDARY_SCHEDULERS:
        others = {k: v for k, v in snapshot.secondaries.schedulers.items() if k != name}
        kept = {} if isinstance(action, Delete) else {name: obj}
        secondaries = replace(snapshot.secondaries, schedulers={**others, **kept})
        return replace(snapshot, secondaries=secondaries)
    return snapshot


def settled(snapshot: Snapshot) -> Snapshot:
    """The cluster once the operator has nothing more to write to its own kinds."""
    for _ in range(6):
        snapshot = performed(snapshot, reconcile(snapshot))
    return snapshot


def with_schedulers(snapshot: Snapshot, *objects: Any) -> Snapshot:
    found = {obj["metadata"]["name"]: obj for obj in objects}
    schedulers = {**snapshot.secondaries.schedulers, **found}
    return replace(snapshot, secondaries=replace(snapshot.secondaries, schedulers=schedulers))


def runs(snapshot: Snapshot, image: str = "registry.k8s.io/kube-scheduler:v1.35.4") -> Snapshot:
    """Every SecondaryScheduler is Available."""
    good = condition(names.AVAILABLE, "True", "AsExpected")
    calm = condition(names.PROGRESSING, "False", "AsExpected")
    status = {"conditions": [good, calm], "readyReplicas": 2, "image": image}
    objects = snapshot.secondaries.schedulers.values()
    return with_schedulers(snapshot, *({**obj, "status": status} for obj in objects))


def managed_of(snapshot: Snapshot) -> Any:
    return snapshot.secondaries.schedulers[NAME]["spec"]


def conditions(snapshot: Snapshot) -> Any:
    return performed(snapshot, reconcile(snapshot)).status["conditions"]


def operator_conditions(snapshot: Snapshot) -> Any:
    after = snapshot
    for _ in range(2):
        for report in reconcile(after).reports:
            after = _performed(after, report)
    assert after.cluster_operator is not None
    return after.cluster_operator["status"]["conditions"]


def test_nothing_of_nodes_or_of_the_providers_scheduler_is_watched() -> None:
    specs = watches(MANAGED)
    assert NODES not in {spec.resource for spec in specs}
    elsewhere = {spec.resource for spec in specs if spec.namespace == "kube-system"}
    assert elsewhere == {ROLE_BINDINGS}, "for the authentication of secondary schedulers"
    # The objects of SecondarySchedulers and LoadPolicies are.
    here = {spec.resource for spec in specs if spec.namespace == MANAGED.target_namespace}
    assert {CONFIG_MAPS, DEPLOYMENTS, DAEMON_SETS, LEASES, PODS} <= here


# --- what is written ------------------------------------------------------------------------------


def test_the_first_reconcile_makes_the_scheduler_and_records_the_platform() -> None:
    plan = reconcile(start())
    assert writes(plan.actions) == [
        f"create SecondaryScheduler {NAME}",
        "replace KubeScheduler cluster",
    ]
    record = CONFIG_MAPS.named("platform", MANAGED.target_namespace)
    assert next(iter(plan.write_sets)) == record, "before the images that follow its version"
    (write,) = plan.write_sets[record]
    assert write.obj["data"] == {
        "platform": "managed",
        "provider": "EKS",
        "reason": f"the API server is {SERVER}",
        "kubernetesVersion": SERVER,
    }


def test_no_static_pod_installer_or_guard_is_ever_written() -> None:
    snapshot, seen = start(), set[str]()
    for _ in range(5):
        plan = reconcile(snapshot)
        sets = [action for actions in plan.write_sets.values() for action in actions]
        seen |= {write.split()[1] for write in writes((*plan.actions, *plan.reports, *sets))}
        snapshot = performed(snapshot, plan)
    assert "Deployment" in seen
    assert "Pod" not in seen
    assert not {name for name in snapshot.config_maps if name != "platform"}


def test_its_settings_are_those_of_scheduler_and_kubescheduler() -> None:
    overrides = {
        "parallelism": 3,
        "leaderElection": {"leaseDuration": "30s"},
        "clientConnection": {"qps": 70},
        "arguments": {"profiling": False, "feature-gates": "DynamicResourceAllocation=true"},
    }
    snapshot = settled(
        start(
            scheduler=scheduler(profile="HighNodeUtilization"),
            kubescheduler=kubescheduler(
                logLevel="Debug", unsupportedConfigOverrides=overrides, forceRedeploymentReason="x"
            ),
        )
    )
    spec = managed_of(snapshot)
    assert spec["namespace"] == MANAGED.target_namespace
    assert (spec["logLevel"], spec["forceRedeploymentReason"]) == ("Debug", "x")
    assert spec["config"] == {
        "parallelism": 3,
        "enableProfiling": False,
        "enableContentionProfiling": False,
        "leaderElection": {"leaseDuration": "30s"},
        "clientConnection": {"qps": 70},
    }
    (first,) = spec["profiles"]
    assert first["schedulerName"] == NAME
    (args,) = [one["args"] for one in first["pluginConfig"] if one["name"] == "NodeResourcesFit"]
    assert args["scoringStrategy"]["type"] == "MostAllocated"
    assert spec["featureGates"] == {"DynamicResourceAllocation": True}
    assert spec["extraArguments"] == {"profiling": "false"}


def test_a_settled_cluster_is_not_written_again() -> None:
    snapshot = settled(start())
    plan = reconcile(snapshot)
    assert writes(plan.actions) == writes(plan.reports) == []
    assert SECONDARY_SCHEDULERS.named(NAME) in plan.write_sets, "its Deployment is not played here"
    assert set(plan.write_sets) == {SECONDARY_SCHEDULERS.named(NAME)}


def test_an_edit_of_its_spec_is_undone_except_for_what_users_set() -> None:
    snapshot = settled(start())
    found = snapshot.secondaries.schedulers[NAME]
    assign: dict[str, Any] = {"namespaceSelector": {}}
    edited = {**found, "spec": {**found["spec"], "replicas": 9, "assign": assign}}
    after = performed(edited_in := with_schedulers(snapshot, edited), reconcile(edited_in))
    assert managed_of(after) == {**found["spec"], "assign": assign}


def test_while_it_is_being_deleted_an_edit_is_not_undone() -> None:
    snapshot = settled(start())
    found = snapshot.secondaries.schedulers[NAME]
    metadata = {**found["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}
    leaving = {**found, "metadata": metadata, "spec": {**found["spec"], "replicas": 9}}
    after = performed(edited_in := with_schedulers(snapshot, leaving), reconcile(edited_in))
    assert managed_of(after) == leaving["spec"]


def test_with_another_name_that_one_is_made() -> None:
    snapshot = settled(start(settings=Settings(managed_scheduler="packer")))
    assert list(snapshot.secondaries.schedulers) == ["packer"]


def test_an_object_of_that_name_that_another_client_made_is_an_error() -> None:
    foreign = secondary(NAME, profiles=[{"schedulerName": "x"}])
    snapshot = settled(with_schedulers(start(), foreign))
    assert managed_of(snapshot) == foreign["spec"]
    expect_condition(
        conditions(snapshot),
        names.TARGET_CONFIG_DEGRADED,
        "True",
        "NotOurs",
        f"SecondaryScheduler/{NAME}: another client made this object",
        "MANAGED_SCHEDULER",
    )


def test_an_object_of_another_client_gets_no_profiles_of_the_control_plane() -> None:
    profiles = {"batch": profile("batch")}
    snapshot = settled(with_schedulers(start(scheduler_profiles=profiles), secondary(NAME)))
    plan = reconcile(snapshot)
    made = [a.obj for a in plan.write_sets[SECONDARY_SCHEDULERS.named(NAME)]]
    (config,) = [o["data"]["config.yaml"] for o in made if o["kind"] == "ConfigMap"]
    assert "batch" not in config
    assert "status" not in (snapshot.scheduler_profiles or {})["batch"]


def test_while_a_setting_has_an_error_it_stays_as_it_is() -> None:
    snapshot = settled(start(scheduler=scheduler(profile="NoScoring")))
    before = managed_of(snapshot)
    broken = kubescheduler(unsupportedConfigOverrides={"parallelism": -1})
    broken["status"] = snapshot.status
    after = settled(replace(snapshot, kubescheduler=broken))
    assert managed_of(after) == before
    path = "spec.unsupportedConfigOverrides.parallelism"
    expect_condition(conditions(after), names.OVERRIDES_DEGRADED, "True", None, path)


def test_an_error_in_one_field_delays_no_other_edit() -> None:
    before = {"parallelism": 5}
    snapshot = settled(start(kubescheduler=kubescheduler(unsupportedConfigOverrides=before)))
    broken = kubescheduler(logLevel="Trace", unsupportedConfigOverrides={"parallelism": -1})
    broken["status"] = snapshot.status
    edited = scheduler(profile="HighNodeUtilization")
    after = settled(replace(snapshot, kubescheduler=broken, scheduler=edited))
    spec = managed_of(after)
    assert (spec["logLevel"], spec["config"]["parallelism"]) == ("Trace", 5)
    assert "MostAllocated" in str(spec["profiles"])
    note = f'(those of SecondaryScheduler "{NAME}" stay in use)'
    expect_condition(conditions(after), names.OVERRIDES_DEGRADED, "True", None, note)


def test_a_record_that_is_too_long_for_an_annotation_is_left_out() -> None:
    profiles = [{"schedulerName": f"{i}-{'x' * 190}"} for i in range(800)]
    overrides = {"profiles": [*profiles, {"schedulerName": "default-scheduler"}]}
    snapshot = settled(start(kubescheduler=kubescheduler(unsupportedConfigOverrides=overrides)))
    (note,) = snapshot.secondaries.schedulers[NAME]["metadata"]["annotations"].values()
    assert note == ""
    assert len(managed_of(snapshot)["profiles"]) == 801


def test_an_error_in_the_first_settings_leaves_them_unset() -> None:
    broken = kubescheduler(logLevel="Loud")
    snapshot = settled(start(kubescheduler=broken))
    assert managed_of(snapshot)["logLevel"] == "Normal"
    expect_condition(conditions(snapshot), names.TARGET_CONFIG_DEGRADED, "True", None, "Loud")


def test_settings_that_only_a_static_pod_has_are_reported() -> None:
    overrides = {"arguments": {"bind-address": "0.0.0.0"}}
    found = conditions(
        settled(
            start(
                scheduler=scheduler(mastersSchedulable=True),
                kubescheduler=kubescheduler(unsupportedConfigOverrides=overrides),
            )
        )
    )
    path = "spec.unsupportedConfigOverrides.arguments.bind-address"
    reported = ("spec.mastersSchedulable", path)
    expect_condition(found, names.INEFFECTIVE_SETTINGS, "True", None, *reported)


# --- SchedulerProfiles and SchedulerExtenders -----------------------------------------------------


def test_profiles_of_the_control_plane_are_its_profiles() -> None:
    profiles = {"batch": profile("batch", base="HighNodeUtilization")}
    snapshot = settled(start(scheduler_profiles=profiles))
    plan = reconcile(snapshot)
    made = [a.obj for a in plan.write_sets[SECONDARY_SCHEDULERS.named(NAME)]]
    (config,) = [o["data"]["config.yaml"] for o in made if o["kind"] == "ConfigMap"]
    assert "schedulerName: batch" in config or '"schedulerName":"batch"' in config.replace(" ", "")
    status = (snapshot.scheduler_profiles or {})["batch"]["status"]
    expect_condition(status["conditions"], names.ACCEPTED, "True")
    assert status["accepted"] == profiles["batch"]["spec"], "as its user wrote it"


@pytest.mark.parametrize(
    "named", [profile("default-scheduler"), profile("x", schedulerName="default-scheduler")]
)
def test_a_profile_called_default_scheduler_becomes_its_first_one_and_reports_it(
    named: Any,
) -> None:
    name = named["metadata"]["name"]
    named["spec"]["percentageOfNodesToScore"] = 7
    snapshot = settled(start(scheduler_profiles={name: named}))
    plan = reconcile(snapshot)
    made = [a.obj for a in plan.write_sets[SECONDARY_SCHEDULERS.named(NAME)]]
    (config,) = [o["data"]["config.yaml"] for o in made if o["kind"] == "ConfigMap"]
    assert "default-scheduler" not in config
    assert "percentageOfNodesToScore" in config
    status = (snapshot.scheduler_profiles or {})[name]["status"]
    assert status["schedulerName"] == NAME
    expect_condition(status["conditions"], names.ACCEPTED, "True")
    expect_condition(
        status["conditions"], names.WARNINGS, "True", "SchedulerNameReplaced",
        'spec.schedulerName: the provider\'s scheduler serves "default-scheduler"', NAME,
    )  # fmt: skip
    assert status["accepted"] == named["spec"]


def test_an_error_in_a_profile_is_reported_and_stops_nothing_else() -> None:
    wrong = profile("wrong", percentageOfNodesToScore=-3)
    snapshot = settled(start(scheduler_profiles={"wrong": wrong}))
    status = (snapshot.scheduler_profiles or {})["wrong"]["status"]
    expect_condition(status["conditions"], names.ACCEPTED, "False")
    found = conditions(snapshot)
    expect_condition(found, names.SCHEDULER_PROFILES_DEGRADED, "True", None, "wrong")
    assert NAME in snapshot.secondaries.schedulers


def test_an_object_for_a_scheduler_that_does_not_exist_is_reported() -> None:
    stray = extender("stray", scheduler="missing", urlPrefix="http://x", filterVerb="f")
    snapshot = settled(start(scheduler_extenders={"stray": stray}))
    status = (snapshot.scheduler_extenders or {})["stray"]["status"]
    expect_condition(status["conditions"], names.ACCEPTED, "False", None, '"missing"')


# --- the image ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "image"),
    [
        ("v1.35.4-eks-113cf36", "registry.k8s.io/kube-scheduler:v1.35.4"),
        ("v1.33.5-gke.1080000", "registry.k8s.io/kube-scheduler:v1.33.5"),
        ("v1.33.1+k3s1", "registry.k8s.io/kube-scheduler:v1.33.1"),
        ("v1.33.2", "registry.k8s.io/kube-scheduler:v1.33.2"),
        ("v1.36.0-rc.1", "registry.k8s.io/kube-scheduler:v1.36.0-rc.1"),
        ("v1.36.0-alpha.1.gke.5", "registry.k8s.io/kube-scheduler:v1.36.0"),
        ("unknown", ""),
    ],
)
def test_the_default_image_has_the_api_servers_version(version: str, image: str) -> None:
    assert operand_image(start(server_version=version)) == image


def test_a_mirror_and_a_fixed_image_are_settings() -> None:
    mirror = Settings(operand_repository="mirror.example:5000/ks")
    assert operand_image(start(settings=mirror)) == "mirror.example:5000/ks:v1.35.4"
    fixed = Settings(operand_image="a/kube-scheduler:v1.35.1", operand_repository="b")
    assert operand_image(start(settings=fixed)) == "a/kube-scheduler:v1.35.1"


def test_the_deployment_has_the_derived_image_and_follows_the_api_server() -> None:
    def images(snapshot: Snapshot) -> set[str]:
        plan = reconcile(snapshot)
        made = plan.write_sets[SECONDARY_SCHEDULERS.named(NAME)]
        (deployment,) = [a.obj for a in made if a.resource == DEPLOYMENTS]
        spec = deployment["spec"]["template"]["spec"]
        return {c["image"] for c in (*spec["initContainers"], *spec["containers"])}

    snapshot = settled(start())
    assert images(snapshot) == {"registry.k8s.io/kube-scheduler:v1.35.4"}
    upgraded = replace(snapshot, server_version="v1.36.1-eks-7")
    assert images(upgraded) == {"registry.k8s.io/kube-scheduler:v1.36.1"}


def test_an_unknown_version_is_an_error_that_names_the_setting() -> None:
    found = conditions(settled(start(server_version="unknown")))
    message = "the API server's version is not a release of Kubernetes; set OPERAND_IMAGE"
    expect_condition(found, names.TARGET_CONFIG_DEGRADED, "True", "NoOperandImage", message)


@pytest.mark.parametrize(
    ("tag", "server", "part"),
    [
        ("v1.35.4", "v1.35.1-eks-1", ""),
        ("v1.34.0", "v1.35.4-eks-1", ""),
        ("v1.36.0", "v1.35.4-eks-1", "is newer than the API server (v1.35.4)"),
        ("v1.33.9", "v1.35.4-eks-1", "more than one minor version older"),
    ],
)
def test_the_version_skew_that_kubernetes_supports_is_reported(
    tag: str, server: str, part: str
) -> None:
    image = f"registry.k8s.io/kube-scheduler:{tag}"
    snapshot = runs(settled(start(server_version=server)), image)
    status, _, message = condition_in(conditions(snapshot), names.VERSION_SKEW)
    assert (status == "True") == bool(part)
    assert part in message
    explicit = with_schedulers(start(server_version=server), secondary("mine", image=image))
    found = settled(explicit).secondaries.schedulers["mine"]["status"]["conditions"]
    _, _, warning = condition_in(found, names.WARNINGS)
    assert (part in warning) if part else ("minor version" not in warning)


def test_an_upgrade_that_is_under_way_is_reported() -> None:
    snapshot = start(newer_version="v1.36.1-eks-7")
    message = "some API servers are v1.36.1-eks-7 already"
    expect_condition(conditions(snapshot), names.VERSION_SKEW, "False", None, message)


# --- status ---------------------------------------------------------------------------------------


def test_clusteroperator_is_available_when_the_schedulers_schedule() -> None:
    snapshot = runs(settled(start(scheduler=scheduler(profile="HighNodeUtilization"))))
    message = f"{WHO}; {NAME} schedules"
    expect_condition(conditions(snapshot), names.SCHEDULERS_AVAILABLE, "True", None, message)
    found = operator_conditions(snapshot)
    expect_condition(found, "Available", "True", "AsExpected", message)
    expect_condition(found, "Degraded", "False", "AsExpected", message)
    expect_condition(found, "Progressing", "False")
    expect_condition(found, "Upgradeable", "True")


def test_clusteroperator_names_the_scheduler_that_does_not_schedule() -> None:
    snapshot = runs(settled(with_schedulers(start(), secondary("mine"))))
    bad = condition(names.AVAILABLE, "False", "NoReadyScheduler", "no scheduler pod is Ready")
    mine = {**snapshot.secondaries.schedulers["mine"], "status": {"conditions": [bad]}}
    found = conditions(with_schedulers(snapshot, mine))
    expect_condition(
        found, names.SCHEDULERS_AVAILABLE, "False", "SchedulerNotAvailable",
        'SecondaryScheduler "mine" does not schedule: no scheduler pod is Ready', WHO,
    )  # fmt: skip


def test_conditions_of_static_pods_are_withdrawn_and_none_is_written() -> None:
    old = [
        condition(names.STATIC_PODS_AVAILABLE, "False", "NoReadyScheduler", "no pod"),
        condition(names.NODES_DEGRADED, "True", "NoControlPlaneNodes", "no node"),
    ]
    before = kubescheduler(status={"conditions": old, "nodeStatuses": [node_status("a", 1)]})
    after = performed(snapshot := start(kubescheduler=before), reconcile(snapshot))
    types = {one["type"] for one in after.status["conditions"]}
    for part in ("StaticPod", "NodeController", "NodeInstaller", "Revision", "Guard"):
        assert not [type_ for type_ in types if part in type_]
    assert after.status["nodeStatuses"] == []


def test_the_platform_and_its_reason_are_in_the_status() -> None:
    message = f"platform managed: {WHO} (the API server is {SERVER})"
    expect_condition(conditions(start()), names.PLATFORM_CHANGED, "False", None, message)


def test_a_disagreement_of_detection_is_in_the_status_and_does_not_degrade() -> None:
    decision = replace(EKS, disagreement="platform managed of EKS is in use, and …")
    snapshot = runs(settled(start(decision=decision)))
    expect_condition(
        conditions(snapshot), names.PLATFORM_CHANGED, "True", "DetectionDiffers", "is in use"
    )
    expect_condition(operator_conditions(snapshot), "Degraded", "False")


def test_on_kubeadm_the_record_is_written_only_if_the_platform_was_detected() -> None:
    detected = PlatformDecision(Recognition(KUBEADM, reason="so"), remember=True)
    record = CONFIG_MAPS.named("platform", KUBEADM.target_namespace)
    assert record in reconcile(start(platform=KUBEADM, decision=detected)).write_sets
    plan = reconcile(start(platform=KUBEADM, decision=None))
    assert record not in plan.write_sets
    assert names.PLATFORM_CHANGED not in str(plan.actions)


def test_without_a_kubescheduler_what_runs_is_reported() -> None:
    snapshot = replace(runs(settled(start())), kubescheduler=None)
    found = operator_conditions(snapshot)
    expect_condition(found, "Degraded", "True", None, 'KubeScheduler "cluster" does not exist')
    expect_condition(found, "Available", "True", None, WHO)


# --- removal --------------------------------------------------------------------------------------


def test_removed_deletes_the_scheduler_then_the_record_and_forgets() -> None:
    profiles = {"batch": profile("batch")}
    snapshot = settled(start(scheduler_profiles=profiles))
    removed = kubescheduler(managementState="Removed")
    removed["status"] = snapshot.status
    snapshot = replace(snapshot, kubescheduler=removed)
    plan = reconcile(snapshot)
    assert writes(plan.actions)[0] == f"delete SecondaryScheduler {NAME}"
    snapshot = settled(snapshot)
    assert snapshot.secondaries.schedulers == {}
    assert snapshot.config_maps == {}
    expect_forgotten((snapshot.scheduler_profiles or {})["batch"]["status"])
    moving = condition_in(snapshot.status["conditions"], names.SCHEDULERS_PROGRESSING)
    assert moving[:2] == ("False", "Removed")
    expect_no_writes(reconcile(snapshot))


def test_removed_leaves_schedulers_of_users() -> None:
    foreign = secondary(NAME)
    removed = kubescheduler(managementState="Removed")
    plan = reconcile(with_schedulers(start(kubescheduler=removed), foreign))
    assert not [write for write in writes(plan.actions) if write.startswith("delete Secondary")]


def state(snapshot: Snapshot, management: str) -> Snapshot:
    """The cluster with another `spec.managementState`."""
    changed = kubescheduler(managementState=management)
    return replace(snapshot, kubescheduler={**changed, "status": snapshot.status})


def assigned(snapshot: Snapshot, assign: Any) -> Snapshot:
    """`spec.assign` of the managed scheduler is in effect, and its Pods and Deployment are gone."""
    obj = snapshot.secondaries.schedulers[NAME]
    status = {
        "assignment": {"schedulerName": NAME, "pods": {}},
        "conditions": [condition(names.AVAILABLE, "True", "AsExpected")],
        "history": [{"hash": "0123", "outcome": "installed", "time": "2026-01-01T00:00:00Z"}],
        "readyReplicas": 2,
    }
    spec = {**obj["spec"], "assign": assign}
    return with_schedulers(snapshot, {**obj, "spec": spec, "status": status})


@pytest.mark.parametrize("management", ["Unmanaged", "Removed"])
def test_a_scheduler_that_is_not_managed_is_observed_and_not_changed(management: str) -> None:
    snapshot = state(assigned(settled(start()), {}), management)
    sets = reconcile(snapshot).write_sets[SECONDARY_SCHEDULERS.named(NAME)]
    assert writes(sets) == [f"replace SecondaryScheduler {NAME}"]
    status = sets[0].obj["status"]
    assert "assignment" not in status
    assert status["readyReplicas"] == 0
    found = status["conditions"]
    expect_condition(found, names.AVAILABLE, "False", "NoReadyScheduler")
    expect_condition(found, names.ASSIGNED, "False", "NotReady")
    expect_condition(found, names.DEGRADED, "True", "DeploymentMissing", NAME)


def test_what_is_not_observed_while_unmanaged_is_reported_as_such() -> None:
    before = runs(settled(start()))
    after = settled(state(before, "Unmanaged"))
    assert managed_of(after) == managed_of(before)
    found = after.status["conditions"]
    expect_condition(found, names.SCHEDULERS_AVAILABLE, "False", None, "no scheduler pod is Ready")
    expect_condition(found, names.SECONDARY_DEGRADED, "False")
    expect_condition(found, names.TARGET_CONFIG_DEGRADED, "Unknown", "Unmanaged", "not observed")
    expect_no_writes(reconcile(after))
    back = settled(state(after, "Managed")).status["conditions"]
    assert not [one["type"] for one in back if one.get("reason") == "Unmanaged"]


def test_edits_have_no_effect_while_unmanaged_and_other_schedulers_are_managed() -> None:
    snapshot = state(settled(start()), "Unmanaged")
    snapshot = with_schedulers(replace(snapshot, scheduler=scheduler(profile="NoScoring")),
                               secondary("mine"))  # fmt: skip
    plan = reconcile(snapshot)
    assert "create Deployment mine" in writes(plan.write_sets[SECONDARY_SCHEDULERS.named("mine")])
    assert managed_of(settled(snapshot)) == managed_of(snapshot)


@pytest.mark.parametrize("way", ["Removed", "deleted"])
def test_what_users_set_in_it_outlives_it(way: str) -> None:
    assign = {"namespaceSelector": {"matchLabels": {"team": "batch"}}}
    before = settled(assigned(settled(start()), assign))
    if way == "Removed":
        gone = settled(state(before, "Removed"))
    else:
        gone = replace(before, secondaries=replace(before.secondaries, schedulers={}))
    assert NAME not in gone.secondaries.schedulers
    managed = state(gone, "Managed")
    events = [event for action in reconcile(managed).actions for event in action.events]
    assert "spec.assign" in next(e.message for e in events if e.reason == "SettingsRestored")
    assert managed_of(settled(managed))["assign"] == assign


def test_what_users_set_is_recorded_before_it_is_removed() -> None:
    assign = {"podSelector": {"matchLabels": {"packed": "yes"}}}
    unrecorded = state(assigned(settled(start()), assign), "Removed")
    assert writes(reconcile(unrecorded).actions) == ["replace KubeScheduler cluster"]
    recorded = settled(unrecorded)
    assert NAME not in recorded.secondaries.schedulers
    assert recorded.status["managedScheduler"] == {"name": NAME, "assign": assign}


def test_what_users_have_unset_does_not_come_back() -> None:
    snapshot = settled(assigned(settled(start()), {}))
    obj = snapshot.secondaries.schedulers[NAME]
    spec = {key: value for key, value in obj["spec"].items() if key != "assign"}
    snapshot = settled(with_schedulers(snapshot, {**obj, "spec": spec}))
    assert "managedScheduler" not in snapshot.status
    again = settled(state(settled(state(snapshot, "Removed")), "Managed"))
    assert "assign" not in managed_of(again)


def test_a_scheduler_of_another_name_does_not_get_what_users_set_in_this_one() -> None:
    gone = settled(state(settled(assigned(settled(start()), {})), "Removed"))
    renamed = replace(gone, settings=Settings(managed_scheduler="packed"))
    again = settled(state(renamed, "Managed"))
    assert "assign" not in again.secondaries.schedulers["packed"]["spec"]


def test_removed_names_the_schedulers_that_stay() -> None:
    snapshot = with_schedulers(settled(start()), secondary("mine"))
    removed = settled(state(snapshot, "Removed"))
    _, _, progress = condition_in(removed.status["conditions"], names.SCHEDULERS_PROGRESSING)
    assert NAME in progress
    assert "those of users stay: mine" in progress
    expect_condition(operator_conditions(removed), "Available", "Unknown", "Removed", "mine")
    expect_condition(
        removed.status["conditions"], names.SCHEDULERS_AVAILABLE, "False", None, '"mine"'
    )


def test_the_status_of_a_profile_of_a_scheduler_that_stays_is_kept_up_to_date() -> None:
    profiles = {"own": profile("own"), "other": profile("other", scheduler="mine")}
    snapshot = with_schedulers(start(scheduler_profiles=profiles), secondary("mine"))
    removed = settled(state(settled(snapshot), "Removed"))
    kept = removed.scheduler_profiles or {}
    expect_forgotten(kept["own"]["status"])
    expect_condition(kept["other"]["status"]["conditions"], names.ACCEPTED, "True")
    expect_no_writes(replace(reconcile(removed), write_sets={}))


def test_the_profile_is_named_once_pods_run_it() -> None:
    """A ConfigMap has a record of the settings that it was made of."""
    snapshot = runs(settled(start(scheduler=scheduler(profile="NoScoring"))))
    _, _, before = condition_in(operator_conditions(snapshot), "Available")
    assert NAME in before
    assert "profile" not in before
    record = recorded_inputs.record(scheduler(profile="HighNodeUtilization"), kubescheduler())
    labels = {names.CONFIG_HASH_LABEL: "0123"}
    config_map = {
        "metadata": {
            "name": "c",
            "labels": labels,
            "annotations": {names.ACCEPTED_SETTINGS_ANNOTATION: record},
        }
    }
    pod = {"metadata": {"name": "p", "labels": labels}, "spec": {},
           "status": {"conditions": [ready_condition()]}}  # fmt: skip
    created: Any = {NAME: {CONFIG_MAPS: {"c": config_map}, PODS: {"p": pod}}}
    running = replace(snapshot, secondaries=replace(snapshot.secondaries, objects=created))
    (available,) = (c for c in scheduler_conditions(running) if c.type.endswith("Available"))
    assert f"{NAME} (profile HighNodeUtilization) schedules" in available.message


def test_a_provider_that_cannot_be_seen_is_reported_with_the_reason() -> None:
    hidden = PlatformDecision(
        Recognition(MANAGED, reason="--platform names it"),
        remember=True,
        open=True,
        unanswered=("nodes is forbidden",),
    )
    found = conditions(settled(start(decision=hidden)))
    message = next(one["message"] for one in found if one["type"] == names.PLATFORM_CHANGED)
    assert "managed by the provider of this cluster (--platform names it)" in message
    assert message.endswith("; the provider's name is unknown, because nodes is forbidden")


def test_a_scheduler_that_it_made_under_another_name_is_reported_and_stays() -> None:
    before = settled(start())
    renamed = settled(replace(before, settings=Settings(managed_scheduler="packed")))
    assert set(renamed.secondaries.schedulers) == {NAME, "packed"}
    found = {one["type"]: one for one in conditions(renamed)}[names.INEFFECTIVE_SETTINGS]
    assert found["status"] == "True"
    assert f"SecondaryScheduler/{NAME}" in found["message"]
    assert f"kubectl delete secondaryscheduler {NAME}" in found["message"]
    calm = {one["type"]: one for one in conditions(before)}[names.INEFFECTIVE_SETTINGS]
    assert calm["status"] == "False"


def test_pods_of_the_providers_scheduler_count_as_those_of_a_known_one() -> None:
    """Otherwise the metric of waiting Pods could not say that the provider's schedules nothing."""
    assert "default-scheduler" in (reconcile(start()).served or ())
