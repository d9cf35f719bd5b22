"""The ClusterOperator is written only when its content changes."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM, OPENSHIFT, PLATFORMS, Platform
from kube_scheduler_operator.operator.controlplane.cluster_operator import (
    desired_cluster_operator,
    related_objects,
)

from ....builders import snapshot

CRDS = Path(__file__).resolve().parents[4] / "crds"
NOW = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
AGES_AGO = "2026-01-01T00:00:00Z"
VERSIONS = {"operator": "0.1.0", "kube-scheduler": "v1.35.4"}
HEALTHY = [
    {"type": type_, "status": status, "reason": "AsExpected", "lastTransitionTime": AGES_AGO}
    for type_, status in [
        ("NodeInstallerDegraded", "False"),
        ("NodeInstallerProgressing", "False"),
        ("StaticPodsAvailable", "True"),
        ("UnsupportedConfigOverridesUpgradeable", "True"),
    ]
]


class Planned(NamedTuple):
    object: Any  # None if it is up to date
    requeue_after: float | None


def plan(
    existing: dict[str, Any] | None = None,
    *,
    management_state: str = "Managed",
    conditions: list[dict[str, str]] = HEALTHY,
    versions: dict[str, str] = VERSIONS,
    **fields: Any,
) -> Planned:
    fields = {"now": NOW, "cluster_operator": existing, **fields}
    kubescheduler = {"spec": {"managementState": management_state}}
    seen = snapshot(kubescheduler=kubescheduler, **fields)
    return Planned(*desired_cluster_operator(seen, conditions, versions))


def statuses(obj: dict[str, Any]) -> dict[str, str]:
    return {c["type"]: c["status"] for c in obj["status"]["conditions"]}


def test_missing_object_is_created_complete() -> None:
    obj = plan().object
    assert (obj["apiVersion"], obj["kind"]) == ("config.openshift.io/v1", "ClusterOperator")
    assert obj["metadata"] == {"name": "kube-scheduler", "labels": names.OWN_LABELS}
    assert obj["spec"] == {}
    assert statuses(obj) == {
        "Available": "True",
        "Degraded": "False",
        "EvaluationConditionsDetected": "Unknown",
        "Progressing": "False",
        "Upgradeable": "True",
    }
    assert obj["status"]["versions"] == [
        {"name": "kube-scheduler", "version": "v1.35.4"},
        {"name": "operator", "version": "0.1.0"},
    ]


@pytest.mark.parametrize(
    ("platform", "message"),
    [
        (KUBEADM, "3 of 3 nodes at revision 7"),
        (OPENSHIFT, "StaticPodsAvailable: 3 of 3 nodes at revision 7"),
    ],
    ids=["elsewhere", "OpenShift"],
)
def test_types_precede_healthy_messages_only_on_openshift(platform: Any, message: str) -> None:
    available = {**HEALTHY[2], "message": "3 of 3 nodes at revision 7"}
    obj = plan(platform=platform, conditions=[*HEALTHY[:2], available]).object
    assert {c["type"]: c.get("message") for c in obj["status"]["conditions"]}[
        "Available"
    ] == message


YOUNG = "StaticPodsDegraded is True, which counts after 30 s: no pod"


@pytest.mark.parametrize(
    ("platform", "bad", "message"),
    [
        (KUBEADM, False, "3 of 3 nodes at revision 7"),
        (KUBEADM, True, f"all Ready\n{YOUNG}"),
        (OPENSHIFT, False, "NodeControllerDegraded: all Ready"),
    ],
    ids=["elsewhere", "an error within its inertia", "OpenShift"],
)
def test_kubectl_shows_what_runs_while_there_is_no_error(
    platform: Any, bad: bool, message: str
) -> None:
    conditions = [
        {**HEALTHY[2], "message": "3 of 3 nodes at revision 7"},
        {"type": "NodeControllerDegraded", "status": "False", "message": "all Ready"},
    ]
    if bad:
        fresh = NOW.strftime("%Y-%m-%dT%H:%M:%SZ")
        error = {"type": "StaticPodsDegraded", "status": "True", "message": "no pod"}
        conditions.append({**error, "reason": "Error", "lastTransitionTime": fresh})
    obj = plan(platform=platform, conditions=conditions).object
    found = {c["type"]: c for c in obj["status"]["conditions"]}["Degraded"]
    assert (found["status"], found["message"]) == ("False", message)


def test_types_precede_the_messages_of_unhealthy_conditions() -> None:
    fresh = NOW.strftime("%Y-%m-%dT%H:%M:%SZ")
    bad = {"type": "StaticPodsDegraded", "status": "True", "reason": "Error", "message": "no pod"}
    good = {"type": "NodeControllerDegraded", "status": "False", "message": "all Ready"}
    for since, status, message in (
        (fresh, "False", f"{YOUNG}\nall Ready"),
        (AGES_AGO, "True", "StaticPodsDegraded: no pod"),
    ):
        obj = plan(conditions=[{**bad, "lastTransitionTime": since}, good]).object
        found = {c["type"]: c for c in obj["status"]["conditions"]}["Degraded"]
        assert (found["status"], found["message"]) == (status, message)


def test_nothing_to_write_when_nothing_changed() -> None:
    existing = plan().object
    assert plan(existing, now=NOW + timedelta(hours=1)).object is None


def test_plan_neither_changes_nor_shares_its_input() -> None:
    existing = plan().object
    before = deepcopy(existing)
    changed = plan(existing, conditions=[]).object
    changed["status"]["relatedObjects"].clear()
    changed["metadata"]["name"] = "other"
    assert existing == before


def test_metadata_foreign_conditions_and_extension_survive() -> None:
    existing = plan().object
    existing["metadata"] |= {"resourceVersion": "7", "labels": {"mine": "yes"}}
    foreign = {"type": "ZForeign", "status": "True", "lastTransitionTime": AGES_AGO}
    existing["status"]["conditions"].append(foreign)
    existing["status"]["extension"] = {"anything": 1}
    obj = plan(existing, conditions=[]).object
    assert obj["metadata"] == existing["metadata"]
    assert obj["status"]["conditions"][-1] == foreign
    assert obj["status"]["extension"] == {"anything": 1}


def test_time_moves_only_for_the_condition_whose_status_changed() -> None:
    existing = plan(now=NOW - timedelta(hours=1)).object
    bad = [{**HEALTHY[0], "status": "True", "reason": "InstallerPodFailed", "message": "no space"}]
    obj = plan(existing, conditions=[*bad, *HEALTHY[1:]]).object
    moved = {
        c["type"]
        for c in obj["status"]["conditions"]
        if c["lastTransitionTime"] > "2026-11-21T09:30"
    }
    assert moved == {"Degraded"}
    degraded = next(c for c in obj["status"]["conditions"] if c["type"] == "Degraded")
    assert degraded["reason"] == "NodeInstaller_InstallerPodFailed"
    assert degraded["message"] == "NodeInstallerDegraded: no space"


@pytest.mark.parametrize("state", ["Unmanaged", "Removed"])
def test_unmanaged_conditions_are_unknown_with_an_explanation(state: str) -> None:
    planned = plan(management_state=state)
    assert set(statuses(planned.object).values()) == {"Unknown"}
    for condition in planned.object["status"]["conditions"]:
        assert condition["reason"] == state
        assert f"spec.managementState of KubeScheduler cluster is {state}" in condition["message"]
    assert planned.requeue_after is None


def test_the_message_names_the_annotation_that_requests_the_state() -> None:
    annotations = {names.MANAGEMENT_ANNOTATION: "Unmanaged"}
    kubescheduler = {"metadata": {"annotations": annotations}, "spec": {}}
    seen = snapshot(kubescheduler=kubescheduler, now=NOW, cluster_operator=None)
    obj, _ = desired_cluster_operator(seen, HEALTHY, VERSIONS)
    assert obj is not None
    assert all(
        f"[{names.MANAGEMENT_ANNOTATION}] of KubeScheduler cluster is Unmanaged" in c["message"]
        for c in obj["status"]["conditions"]
    )


@pytest.mark.parametrize("state", ["", "Managed", "Force"])
def test_other_management_states_report_health(state: str) -> None:
    assert statuses(plan(management_state=state).object)["Available"] == "True"


@pytest.mark.parametrize(
    ("before", "certain", "after"),
    [
        pytest.param({}, {"operator": "1"}, {"operator": "1"}, id="added"),
        pytest.param({"operator": "1"}, {"operator": "2"}, {"operator": "2"}, id="changed"),
        pytest.param({"operator": "1"}, {"operator": "1"}, {"operator": "1"}, id="unchanged"),
        pytest.param({"operator": "1"}, {}, {"operator": "1"}, id="kept-while-uncertain"),
        pytest.param(
            {"raw-internal": "1"},
            {"operator": "2"},
            {"operator": "2", "raw-internal": "1"},
            id="foreign-kept",
        ),
    ],
)
def test_versions(before: dict[str, str], certain: dict[str, str], after: dict[str, str]) -> None:
    existing = {"status": {"versions": [{"name": n, "version": v} for n, v in before.items()]}}
    obj = plan(existing, versions=certain).object
    assert {v["name"]: v["version"] for v in obj["status"]["versions"]} == after


def test_without_any_version_the_list_is_omitted() -> None:
    assert "versions" not in plan(versions={}).object["status"]


def test_related_objects_are_replaced() -> None:
    existing = plan().object
    existing["status"]["relatedObjects"] = [{"group": "", "resource": "pods", "name": "old"}]
    assert plan(existing).object["status"]["relatedObjects"] == related_objects(KUBEADM)


def test_related_namespaces_are_unique_and_depend_on_the_platform() -> None:
    platform = replace(
        KUBEADM, operator_namespace="op", target_namespace="t", operand_namespace="t"
    )
    listed = [o["name"] for o in related_objects(platform) if o["resource"] == "namespaces"]
    assert listed == ["op", "t"]
    listed = [o["name"] for o in related_objects(OPENSHIFT) if o["resource"] == "namespaces"]
    assert listed == [
        "openshift-config",
        "openshift-config-managed",
        "openshift-kube-scheduler-operator",
        "openshift-kube-scheduler",
    ]


@pytest.mark.parametrize("platform", PLATFORMS.values(), ids=lambda platform: platform.name)
def test_must_gather_finds_every_kind_of_the_operator(platform: Platform) -> None:
    listed = {(o["resource"], o["group"]) for o in related_objects(platform)}
    crds = {path.stem for path in CRDS.glob("*.*.yaml")} - {f"{names.CLUSTEROPERATORS}"}
    assert crds <= {f"{resource}.{group}" for resource, group in listed}


def test_conditions_that_are_always_false_add_nothing_to_the_summary() -> None:
    constant = {**HEALTHY[0], "type": "GuardControllerDegraded", "message": "always False: x"}
    nodes = {
        **HEALTHY[0],
        "type": "NodeControllerDegraded",
        "message": "All master nodes are ready",
    }
    obj = plan(platform=OPENSHIFT, conditions=[constant, nodes]).object
    (degraded,) = (c for c in obj["status"]["conditions"] if c["type"] == "Degraded")
    assert degraded["message"] == "NodeControllerDegraded: All master nodes are ready"


def test_requeue_is_that_of_the_first_pending_condition() -> None:
    fresh = (NOW - timedelta(seconds=10)).isoformat()
    conditions = [
        {"type": "StaticPodsAvailable", "status": "False", "lastTransitionTime": fresh},
        {"type": "RevisionControllerDegraded", "status": "True", "lastTransitionTime": fresh},
    ]
    planned = plan(conditions=conditions)
    assert planned.requeue_after == 20.0
    assert statuses(planned.object)["Available"] == "True"
    later = plan(planned.object, conditions=conditions, now=NOW + timedelta(seconds=20))
    assert statuses(later.object)["Available"] == "False"
    assert later.requeue_after == 90.0


def test_requeue_is_set_even_if_nothing_is_written() -> None:
    fresh = (NOW - timedelta(seconds=10)).isoformat()
    conditions = [{"type": "StaticPodsAvailable", "status": "False", "lastTransitionTime": fresh}]
    existing = plan(conditions=conditions).object
    again = plan(existing, conditions=conditions)
    assert (again.object, again.requeue_after) == (None, 20.0)
