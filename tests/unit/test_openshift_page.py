"""docs/openshift-comparison.md: facts, tables, and a reason for every difference."""

from __future__ import annotations

import copy
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import OPENSHIFT
from kube_scheduler_operator.base.templates import canonical_json
from kube_scheduler_operator.config.effective.control_plane.compose import compose
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.operator.controlplane.cluster_operator import desired_cluster_operator
from kube_scheduler_operator.operator.controlplane.conditions import CONSTANT
from kube_scheduler_operator.operator.controlplane.target_config_maps import (
    config_map,
    installer_service_account,
    network_policies,
)
from pages import comparison as comparing
from pages import openshift, proofs
from pages import openshift_requests as requests
from pages.comparison import MISSING, Reason, Row
from pages.openshift_facts import facts
from pages.openshift_reference import KNOWN_ONLY, REASONS, REFERENCE

from ..builders import snapshot
from ..control_plane_inputs import inputs_of
from ..expect import status_of_kubescheduler
from .deploy.overlays import DEPLOY, build
from .operator.engine.test_reconcile_openshift import cluster, reported

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "unit" / "operator" / "controlplane" / "golden"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
NODE = "cp-1"


# --- the table --------------------------------------------------------------------------------
def test_both_sides_are_compared_and_differences_get_their_reason() -> None:
    reference = {"g": {"a": "1", "b": "2", "c": "3"}}
    here = {"g": {"a": "1", "b": "x", "z": "9", "y": "8"}}
    reasons = [Reason("g", "b", "because"), Reason("g", "[cyz]", "gone or new")]
    found = comparing.compare(reference, here, reasons)
    assert found.groups["g"] == (
        Row("a", "1", "1"),
        Row("b", "2", "x", "because"),
        Row("c", "3", MISSING, "gone or new"),
        Row("y", MISSING, "8", "gone or new"),
        Row("z", MISSING, "9", "gone or new"),
    )
    assert found.counts == (1, 4)
    assert not found.unexplained
    assert not found.unused


def test_a_difference_without_a_reason_is_reported() -> None:
    found = comparing.compare({"g": {"a": "1"}}, {"g": {"a": "2"}}, [Reason("h", "a", "another")])
    assert openshift.complaints(found) == ["g: a: '1' there, '2' here, and no reason why"]
    assert [reason.text for reason in found.unused] == ["another"]


def test_the_first_matching_reason_is_used() -> None:
    reasons = [Reason("g", "a.*", "precise"), Reason("g", "*", "general")]
    found = comparing.compare({"g": {"a.b": "1", "c": "1"}}, {"g": {}}, reasons)
    assert [row.reason for row in found.groups["g"]] == ["precise", "general"]


def test_a_reason_may_apply_to_one_value_only() -> None:
    reasons = [Reason("g", "*", "why", here="False, *")]
    found = comparing.compare(
        {"g": {"a": "False", "b": "False"}}, {"g": {"a": "False, X", "b": "True, X"}}, reasons
    )
    assert [row.item for _, row in found.unexplained] == ["b"]


def test_items_without_a_reference_are_not_compared() -> None:
    found = comparing.compare({"g": {"a": "1"}}, {"g": {"a": "1", "b": "2"}}, [], {"g"})
    assert [row.item for row in found.groups["g"]] == ["a"]


def test_a_table_shows_equal_values_once() -> None:
    rows = [Row("a", "x|y", "x|y"), Row("b", "yes", MISSING, "why"), Row("c", "1\n2", "", "empty")]
    assert comparing.table(rows).splitlines()[2:] == [
        r"| `a` | `x\|y` |  | same |  |",
        f"| `b` | yes | {MISSING} | different | why |",
        '| `c` | `1`<br>`2` | `""` | different | empty |',
    ]


# --- facts ------------------------------------------------------------------------------------
EVERY = {
    one["type"]: ("False", "AsExpected", "")
    for one in status_of_kubescheduler(reported(cluster(OPENSHIFT)))["conditions"]
}
"""The condition types that the operator writes, so that a new one needs a reason."""

CONDITIONS = {
    **EVERY,
    names.CONFIG_OBSERVATION_DEGRADED: ("False", "AsExpected", ""),
    names.TARGET_CONFIG_DEGRADED: ("False", "AsExpected", ""),
    names.OVERRIDES_DEGRADED: ("False", "AsExpected", ""),
    names.INEFFECTIVE_SETTINGS: ("False", "AsExpected", ""),
    names.OVERRIDES_UPGRADEABLE: ("True", "NoUnsupportedConfigOverrides", ""),
    names.REVISION_DEGRADED: ("False", "AsExpected", ""),
    names.STATIC_RESOURCES_DEGRADED: ("False", "AsExpected", ""),
    names.NODE_INSTALLER_PROGRESSING: (
        "False", "AllNodesAtLatestRevision", "1 node is at revision 7"),
    names.NEXT_VERSION_UPGRADEABLE: ("True", "AsExpected", ""),
    names.PREFLIGHT_DEGRADED: ("False", "AsExpected", ""),
    names.NODE_INSTALLER_DEGRADED: ("False", "AsExpected", ""),
    names.INSTALLER_DEGRADED: ("False", "AsExpected", ""),
    names.INSTALLER_POD_PENDING_DEGRADED: ("False", "AsExpected", ""),
    names.INSTALLER_POD_WAITING_DEGRADED: ("False", "AsExpected", ""),
    names.STATIC_PODS_AVAILABLE: (
        "True", "AsExpected", "1 node is active; 1 node is at revision 7"),
    names.STATIC_PODS_DEGRADED: ("False", "AsExpected", ""),
    names.NODES_DEGRADED: ("False", "MasterNodesReady", "All master nodes are ready"),
    **{kind: ("False", "AsExpected", f"always False: {why}") for kind, why in CONSTANT.items()},
}  # fmt: skip
ROLLING = {
    names.NODE_INSTALLER_PROGRESSING: (
        "True", "RollingOut",
        f"moving to revision 7; 1 node is at revision 6; 0 nodes have achieved new revision 7; "
        f"{NODE}: the installer pod is starting"),
    names.STATIC_PODS_AVAILABLE: ("False", "NoReadyScheduler", "no scheduler pod is Ready"),
}  # fmt: skip
GATES = {"enabled": ["NodeInclusionPolicyInPodTopologySpread", "AdminNetworkPolicy"],
         "disabled": ["SchedulerAsyncAPICalls", "RouteExternalCertificate"]}  # fmt: skip
EVENTS = {
    "ConfigMapUpdated": "Updated ConfigMap/config -n openshift-kube-scheduler because data changed",
    "StartingNewRevision": 'new revision 7 triggered by "required configmap/config has changed"',
    "RevisionTriggered": 'new revision 7 triggered by "required configmap/config has changed"',
    "InstallerPodCreated": f'installing revision 7 on "{NODE}"',
    "NodeTargetRevisionChanged": f'node "{NODE}": 6 -> revision 7',
    "NodeCurrentRevisionChanged": f'node "{NODE}" is at revision 7 (swap 2.5 s)',
}


def raw(conditions: dict[str, tuple[str, str, str]]) -> list[dict[str, Any]]:
    old = (NOW - timedelta(hours=1)).isoformat()
    return [
        {"type": kind, "status": status, "reason": reason, "message": message,
         "lastTransitionTime": old}
        for kind, (status, reason, message) in sorted(conditions.items())
    ]  # fmt: skip


def cluster_operator(conditions: list[dict[str, Any]]) -> dict[str, Any]:
    found, _ = desired_cluster_operator(
        snapshot(platform=OPENSHIFT, now=NOW),
        conditions,
        {
            "operator": "4.20.0-sandbox",
            "raw-internal": "4.20.0-sandbox",
            "kube-scheduler": "1.35.4",
        },
    )
    assert found is not None
    return found


@pytest.fixture(scope="module")
def observed() -> dict[str, Any]:
    """The facts of a cluster, assembled from the operator's and deploy/'s objects."""
    gates = {kind: [{"name": gate} for gate in gates] for kind, gates in GATES.items()}
    composed = compose(
        inputs_of(
            platform=OPENSHIFT, default_version=Version.parse("v1.35.4"),
            scheduler={"spec": {"profile": openshift.PROFILE}}, kubescheduler={"spec": {}},
            feature_gate={"status": {"featureGates": [{"version": "4.20", **gates}]}},
            serving_certificate=True,
        )
    )  # fmt: skip
    assert composed.config is not None
    pod = json.loads((GOLDEN / "openshift-kube-scheduler-pod.json").read_text())
    pod["metadata"]["name"] += f"-{NODE}"
    pod["metadata"]["labels"]["revision"] = "7"
    pod["metadata"]["annotations"]["kubernetes.io/config.hash"] = "of the kubelet"
    pod["spec"]["containers"][0]["args"] = list(composed.arguments)
    pods = [pod, *(
        json.loads((GOLDEN / f"openshift-{name}-pod.json").read_text())
        for name in ("installer", "guard")
    )]  # fmt: skip
    data = {
        "config": {"config.yaml": canonical_json(composed.config)},
        "kube-scheduler-pod": dict.fromkeys(
            [names.PREFLIGHT_KUBECONFIG_KEY, names.FORCE_REDEPLOYMENT_KEY], ""
        )
        | {names.POD_KEY: json.dumps(pod)},
        "serviceaccount-ca": {names.CA_BUNDLE_KEY: ""},
        "scheduler-kubeconfig": {names.KUBECONFIG_KEY: ""},
    }
    maps = [config_map(OPENSHIFT, name, keys) for name, keys in data.items()]
    maps += [config_map(OPENSHIFT, f"{name}-7", keys) for name, keys in data.items()]
    status = config_map(
        OPENSHIFT, "revision-status-7",
        dict.fromkeys(["revision", "reason", "hash", names.INPUTS_KEY], ""),
    )  # fmt: skip
    status["metadata"]["annotations"] = {
        names.REVISION_READY_ANNOTATION: "true",
        names.OUTCOME_ANNOTATION: "installed",
        names.OUTCOME_TIME_ANNOTATION: "2026-01-01T00:00:00Z",
    }
    deployed = [*build(DEPLOY / "openshift"), *build(DEPLOY / "monitoring/openshift")]
    overlay = [one for one in deployed if "monitoring.coreos.com" not in one["apiVersion"]]
    there = OPENSHIFT.target_namespace
    certificate = {"name": "kube-scheduler-client-cert-key", "namespace": there}
    extra: list[dict[str, Any]] = [
        {"kind": "Secret", "metadata": certificate},
        {"kind": "Secret", "metadata": {"name": "serving-cert", "namespace": there}},
        {"kind": "Lease", "metadata": {"name": "kube-scheduler"}},
        {"kind": "Pod", "metadata": {"name": "kube-scheduler-cert-syncer-x7k2p"}},
        {"kind": "ConfigMap", "metadata": {"name": "kube-root-ca.crt"}, "data": {"ca.crt": ""}},
        {"kind": "ServiceAccount", "metadata": {"name": "default"}},
        installer_service_account(OPENSHIFT),
        *network_policies(OPENSHIFT),
    ]
    conditions = raw(CONDITIONS)
    rolling = raw({**CONDITIONS, **ROLLING})
    for condition in rolling:
        if condition["type"] in ROLLING:
            condition["lastTransitionTime"] = NOW.isoformat()
    return {
        "node": NODE,
        "release": "4.20.0-sandbox",
        "kubescheduler": {
            "spec": {"observedConfig": composed.observed_config},
            "status": {
                "conditions": conditions, "latestAvailableRevision": 7, "readyReplicas": 1,
                "observedGeneration": 3, "version": "0.1.0",
                "nodeStatuses": [{"nodeName": NODE, "currentRevision": 7}],
            },
        },
        "clusteroperator": cluster_operator(conditions),
        "namespace": next(one for one in overlay if one["metadata"]["name"] == there),
        # OpenShift's own definition of the kind.
        "columns": ["Version", "Available", "Progressing", "Degraded", "Since"],
        "objects": [
            *(one for one in overlay if one["metadata"].get("namespace") == there),
            *maps, status, *pods, *extra,
        ],
        "during": [
            [found, cluster_operator(found)["status"]["conditions"]]
            for found in (conditions, rolling, conditions)
        ],
        "events": [
            {"reason": reason, "message": message, "source": {"component": names.PROGRAM},
             "involvedObject": {"kind": "Deployment", "name": OPENSHIFT.operator.deployment}}
            for reason, message in EVENTS.items()
        ] + [
            {"reason": "Pulled", "message": "", "source": {"component": "kubelet"},
             "involvedObject": {"kind": "Pod", "name": "x"}},
        ],
    }  # fmt: skip


def test_every_expected_difference_has_a_reason(observed: dict[str, Any]) -> None:
    found = openshift.compared(observed)
    assert openshift.complaints(found) == []
    same, different = found.counts
    assert same > different


def test_cluster_specific_values_are_not_differences(observed: dict[str, Any]) -> None:
    text = json.dumps(observed).replace(NODE, "another-node")
    for number in ("revision 7", "-7"):
        text = text.replace(number, number.replace("7", "12"))
    other = json.loads(text)
    other["kubescheduler"]["status"]["latestAvailableRevision"] = 12
    assert facts(other) == facts(observed)


def test_an_unexpected_difference_is_found(observed: dict[str, Any]) -> None:
    changed = copy.deepcopy(observed)
    copies = [o for o in changed["objects"] if o["metadata"]["name"] == "kube-scheduler-pod-7"]
    pod = json.loads(copies[0]["data"][names.POD_KEY])
    pod["spec"]["containers"][0]["args"].append("--leader-elect=false")
    copies[0]["data"][names.POD_KEY] = json.dumps(pod)
    assert any("--leader-elect" in one for one in openshift.complaints(openshift.compared(changed)))


def test_the_page_has_every_group_and_the_output_of_kubectl(observed: dict[str, Any]) -> None:
    page = openshift.written(openshift.compared(observed), {"kubectl get nodes": "NAME\ncp-1"})
    assert page.count("\n## ") == len(REFERENCE) + 2
    assert "```console\n$ kubectl get nodes\nNAME\ncp-1\n```" in page
    assert "openshift-differences.md" in page


def test_every_request_has_a_result_and_tests_that_exist() -> None:
    assert requests.mistakes(requests.load(), proofs.tests(ROOT)) == []
    titles = [group["title"] for group in requests.load()]
    assert titles == [
        "End-to-end specifications",
        "Unit tables of the operator",
        "Unit tables of the operator's framework",
        "Habits",
        "What the rest of OpenShift asks for",
    ]
    (habits,) = (group["rows"] for group in requests.load() if group["title"] == "Habits")
    assert len(habits) >= 30


def test_mistakes_in_the_table_of_requests_are_found() -> None:
    rows = [
        {"item": "a", "here": "", "tests": ["test_that_exists"]},
        {"item": "b", "here": "", "tests": []},
        {"item": "c", "here": "", "tests": ["test_of_nothing"]},
        {"item": "d", "here": "perhaps", "tests": ["test_that_exists"]},
        {"item": "e", "here": "different", "tests": ["test_that_exists"]},
    ]
    known = {"test_that_exists": Path("tests/test_x.py")}
    assert requests.mistakes([{"title": "g", "rows": rows}], known) == [
        "g: b: no test",
        "g: c: no test test_of_nothing",
        "g: d: neither the same nor different",
        "g: e: no reason",
    ]


def test_the_part_about_requests_is_up_to_date() -> None:
    """Stale? Run `hack/openshift-docs --requests`."""
    page = (ROOT / "docs" / "openshift-comparison.md").read_text()
    assert requests.replaced(page, requests.section(requests.load(), proofs.tests(ROOT))) == page


def test_reasons_refer_to_existing_groups() -> None:
    assert {reason.group for reason in REASONS} <= REFERENCE.keys()
    assert REFERENCE.keys() >= KNOWN_ONLY


def test_the_page_shows_no_difference_without_a_reason() -> None:
    page = ROOT / "docs" / "openshift-comparison.md"
    assert page.exists(), "hack/openshift-docs makes it"
    rows = [line for line in page.read_text().splitlines() if "| different |" in line]
    assert rows
    assert not [row for row in rows if row.endswith("| different |  |")]
