"""Every check by itself: what it reports, its result without facts, where its links lead."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM, MANAGED, OPENSHIFT, Platform
from kube_scheduler_operator.base.recognition import Recognition
from kube_scheduler_operator.cli.adoption.input import from_files, read_node_files
from kube_scheduler_operator.cli.checks import condition_hints, operation
from kube_scheduler_operator.cli.checks.check import (
    AssignmentTrial,
    CheckResult,
    CheckState,
    ClusterFacts,
    DryRun,
    KnownCertificate,
    Observed,
    SecondaryFacts,
    UnlimitedAccount,
    exit_code,
    run_check,
)
from kube_scheduler_operator.cli.checks.condition_hints import BY_REASON, BY_TYPE, advice
from kube_scheduler_operator.cli.checks.operation import _OBJECTS
from kube_scheduler_operator.cli.checks.table import AFTER, BEFORE
from kube_scheduler_operator.kube.resource import SECONDARY_SCHEDULERS
from kube_scheduler_operator.operator.controlplane.adoption.preview import preview
from kube_scheduler_operator.operator.model.snapshot import AssignmentWay

DOCS = Path(__file__).resolve().parents[4] / "docs"
NOW = datetime(2026, 11, 26, 12, tzinfo=UTC)
FACTS = ClusterFacts(NOW, KUBEADM, server_version="v1.35.4")
CHECKS = {check.name: check for check in (*BEFORE, *AFTER)}


PLAIN = (
    "ahead", "platform", "server_version", "own_crds", "kinds", "images", "secondaries",
)  # fmt: skip
"""Facts that are not read by one request."""


def results(name: str, table: Any = None, **facts: Any) -> tuple[CheckResult, ...]:
    check = next(one for one in (table or (*BEFORE, *AFTER)) if one.name == name)
    wrapped: dict[str, Any] = {
        key: value if key in PLAIN else Observed(value)
        for key, value in facts.items()
    }  # fmt: skip
    return run_check(check, replace(FACTS, **wrapped))


def one(name: str, table: Any = None, **facts: Any) -> CheckResult:
    (found,) = results(name, table, **facts)
    return found


def obj(name: str, namespace: str = "x", **rest: Any) -> dict[str, Any]:
    labels = rest.pop("labels", {})
    return {"metadata": {"name": name, "namespace": namespace, "labels": labels}, **rest}


# --- links and completeness -------------------------------------------------------------------


def anchors(page: str) -> set[str]:
    """As GitHub makes them of the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", (DOCS / page).read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


LINKS = {
    *(check.link for check in CHECKS.values()),
    *(found.link for found in (*BY_TYPE.values(), *BY_REASON.values())),
    condition_hints.MEANING,
    *(page for _, page in _OBJECTS),
    "troubleshooting.md#self-test",
    "where-it-runs.md#versions",
    "secondary-schedulers.md",
    "rights.md",
    operation._ASSIGNMENT_PAGE,
    operation._ASSIGNMENT_INSTALLED,
}


@pytest.mark.parametrize("link", sorted(LINKS))
def test_every_link_leads_to_a_section_of_the_documentation(link: str) -> None:
    page, _, anchor = link.partition("#")
    assert (DOCS / page).is_file()
    assert not anchor or anchor in anchors(page)


def test_every_condition_of_the_operator_has_its_own_hint() -> None:
    page = (DOCS / "operations.md").read_text()
    table = page[page.index("## What the conditions mean") :].partition("\n## ")[0]
    documented = set(
        re.findall(r"`([A-Z]\w+)`", "\n".join(re.findall(r"^\| (.+?) \|", table, re.M)))
    )
    openshift = {name for name in documented if "always False" in _row(table, name)}
    normal = {
        names.NODE_INSTALLER_PROGRESSING,
        names.SCHEDULERS_PROGRESSING,
        names.ADOPTED_SETTINGS,
    }
    assert documented - openshift - normal - set(BY_TYPE) == set()
    assert len(documented) > 30


def _row(table: str, name: str) -> str:
    return next(line for line in table.splitlines() if f"`{name}`" in line)


def test_a_reason_counts_before_the_type_and_an_unknown_type_has_a_general_hint() -> None:
    special = advice(names.ADOPTION_DEGRADED, "SchedulerHasConfigFile")
    assert special != advice(names.ADOPTION_DEGRADED, "Other")
    assert "status" in advice("NewDegraded", "X").hint


@pytest.mark.parametrize("name", sorted(CHECKS))
def test_no_check_fails_because_a_fact_is_missing(name: str) -> None:
    for found in run_check(CHECKS[name], replace(FACTS, kinds=_NoKinds())):
        assert found.state is not CheckState.FAILED
        assert found.cause


class _NoKinds(dict[str, Any]):
    def __missing__(self, kind: str) -> Observed[Any]:
        return Observed(error="no permission")


@pytest.mark.parametrize(
    ("state", "strict", "code"),
    [
        (CheckState.OK, True, 0),
        (CheckState.NOT_CHECKED, True, 0),
        (CheckState.WARNING, False, 0),
        (CheckState.WARNING, True, 1),
        (CheckState.FAILED, False, 1),
    ],
)
def test_only_failures_fail_unless_warnings_are_to_count(
    state: CheckState, strict: bool, code: int
) -> None:
    assert exit_code([CheckResult("x", state, "")], strict=strict) == code


def test_the_worst_result_of_a_check_comes_first() -> None:
    runs = [DryRun("a", unanswered="later"), DryRun("b", error="refused")]
    assert [found.state for found in results("admission", admission=runs)] == [
        CheckState.FAILED,
        CheckState.NOT_CHECKED,
    ]


# --- the cluster ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "state", "part"),
    [
        ("v1.35.4", CheckState.OK, "v1.35.4"),
        ("v1.35.4-eks-113cf36", CheckState.OK, "v1.35.4"),
        ("v1.30.1", CheckState.WARNING, "not tried"),
        ("v1.22.0", CheckState.FAILED, "older than 1.29"),
        ("v1.99.0", CheckState.WARNING, "newer"),
        ("nginx", CheckState.WARNING, '"nginx"'),
    ],
)
def test_the_version_of_the_api_server(version: str, state: CheckState, part: str) -> None:
    found = one("api-server", server_version=version)
    assert (found.state, part in found.cause) == (state, True)
    assert (found.hint == "") == (state is CheckState.OK)


def test_another_platform_than_the_chosen_one_is_a_warning() -> None:
    found = one("platform", recognition=Recognition(MANAGED, "EKS", "v1-eks-1"))
    assert found.state is CheckState.WARNING
    assert "deploy/managed" in found.hint


def lease(ahead: float) -> Mapping[str, Any]:
    renewed = (NOW + timedelta(seconds=ahead)).isoformat()
    entry = {"time": NOW.isoformat(), "fieldsV1": {"f:spec": {"f:renewTime": {}}}}
    return {"metadata": {"managedFields": [entry]}, "spec": {"renewTime": renewed}}


@pytest.mark.parametrize(("ahead", "word"), [(61, "ahead of"), (-61, "behind")])
def test_the_clock_of_a_node_is_compared_with_the_time_of_the_write(ahead: int, word: str) -> None:
    found = one("clocks", node_leases={"n1": lease(ahead), "n2": lease(1)})
    assert found.cause == f'the clock of node "n1" is 61 s {word} the API server\'s'
    assert found.state is CheckState.WARNING


def test_the_clock_of_this_machine_is_compared_as_well() -> None:
    found = one("clocks", ahead=-3600, node_leases={})
    assert "this machine's clock is 3600 s behind" in found.cause


@pytest.mark.parametrize(
    ("days", "state", "part"),
    [
        (-1, CheckState.FAILED, "expired at 2026-11-25 12:00 UTC"),
        (0.5, CheckState.WARNING, "expires in 12 hours"),
        (13, CheckState.WARNING, "expires in 13 days"),
        (90, CheckState.OK, "that of your kubeconfig expires first, in 90 days"),
    ],
)
@pytest.mark.parametrize(
    ("name", "fact"),
    [("connection-certificates", "server"), ("certificates", "certificates")],
)
def test_a_certificate_is_reported_before_it_expires(
    name: str, fact: str, days: float, state: CheckState, part: str
) -> None:
    known = [KnownCertificate("your kubeconfig", NOW + timedelta(days=days), "renew it")]
    found = one(name, **{fact: known})
    assert (found.state, part in found.cause) == (state, True)
    assert found.hint == ("" if state is CheckState.OK else "renew it")


def test_a_cluster_without_a_visible_control_plane_is_not_kubeadms() -> None:
    assert "managed" in one("nodes", nodes=[obj("worker")]).hint


def test_only_the_nodes_that_are_checked_are_counted() -> None:
    nodes = [obj("cp", labels={"node-role.kubernetes.io/control-plane": ""}), obj("worker")]
    assert one("nodes", nodes=nodes).cause.startswith("1 of 1 control-plane nodes are Ready")
    assert one("nodes", platform=MANAGED, nodes=nodes).cause.startswith("2 of 2 nodes are Ready")


@pytest.mark.parametrize("name", ["objects", "secondary-schedulers"])
def test_a_check_of_no_object_states_that(name: str) -> None:
    nothing: dict[str, Observed[Any]] = {kind: Observed({}) for kind, _ in _OBJECTS}
    assert one(name, kinds=nothing).cause == "no object exists"


# --- what an installation meets ---------------------------------------------------------------


def crd(*, labels: Mapping[str, str] = {names.PART_OF_LABEL: names.PROGRAM}, **fields: Any) -> Any:
    schema = {"properties": {"spec": {"properties": fields}}}
    version = {"name": "v1", "served": True, "schema": {"openAPIV3Schema": schema}}
    name = f"things.{names.PREFIX}"
    return {
        "metadata": {"name": name, "labels": dict(labels), "managedFields": [{"manager": "helm"}]},
        "spec": {"versions": [version]},
    }


FULL = crd(a={}, b={"items": {"properties": {"c": {}}}})


@pytest.mark.parametrize(
    ("other", "part"),
    [
        (crd(a={}), "lacks the field spec.b"),
        (crd(a={}, b={"items": {"properties": {}}}), "lacks the field spec.b[].c"),
        (crd(labels={}, a={}, b=FULL["spec"]["versions"][0]["schema"]["openAPIV3Schema"]), "helm"),
    ],
)
def test_an_older_or_foreign_kind_is_named_with_what_it_lacks(other: Any, part: str) -> None:
    found = results("crds", BEFORE, crds={other["metadata"]["name"]: other}, own_crds=[FULL])
    assert part in found[0].cause


def test_a_kind_that_serves_another_version_fails() -> None:
    other = crd(a={})
    other["spec"]["versions"][0]["name"] = "v2"
    found = one("crds", BEFORE, crds={other["metadata"]["name"]: other}, own_crds=[FULL])
    assert (found.state, "does not serve v1" in found.cause) == (CheckState.FAILED, True)


def test_on_openshift_its_own_definitions_are_never_to_be_replaced() -> None:
    own = f"loadpolicies.{names.PREFIX}"
    older, ours = crd(a={}), {**FULL, "metadata": {**FULL["metadata"], "name": own}}
    foreign = {**FULL, "metadata": {**FULL["metadata"], "name": names.KUBESCHEDULERS}}
    installed = {own: older, names.KUBESCHEDULERS: older}
    found = one("crds", BEFORE, platform=OPENSHIFT, crds=installed, own_crds=[ours, foreign])
    assert own in found.cause
    assert found.hint.endswith("-k deploy/openshift/crds")
    missing = one(
        "crds", AFTER, platform=OPENSHIFT, crds={names.KUBESCHEDULERS: older}, own_crds=[ours]
    )
    assert missing.hint == "kubectl apply --server-side -k deploy/openshift/crds"


def test_a_newer_kind_with_more_fields_is_all_right() -> None:
    newer = crd(a={}, b={"items": {"properties": {"c": {}, "d": {}}}}, e={})
    found = one("crds", AFTER, crds={newer["metadata"]["name"]: newer}, own_crds=[FULL])
    assert found.state is CheckState.OK


def test_a_namespace_that_is_being_deleted_is_reported_with_what_keeps_it() -> None:
    conditions = [{"status": "True", "message": "Some content has finalizers: x.io"}]
    status = {"phase": "Terminating", "conditions": conditions}
    found = one("namespace", namespace=obj("ns", status=status))
    assert found.state is CheckState.FAILED
    assert "finalizers: x.io" in found.cause


def test_a_scheduler_with_a_configuration_file_is_reported_with_its_path(tmp_path: Path) -> None:
    container = {
        "name": "kube-scheduler",
        "image": "registry.k8s.io/kube-scheduler:v1.35.4",
        "command": [
            "kube-scheduler",
            "--kubeconfig=/etc/kubernetes/scheduler.conf",
            "--config=/etc/kubernetes/sched.yaml",
        ],
    }
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "kube-scheduler", "namespace": "kube-system"},
        "spec": {"hostNetwork": True, "containers": [container]},
    }
    file = tmp_path / "n1.yaml"
    file.write_text(json.dumps(manifest))
    found = from_files(read_node_files([f"n1={file}"]), KUBEADM)
    result = results("static-pods", adoption=preview(found.snapshot, found.reports))[-1]
    assert result.state is CheckState.WARNING
    assert "SchedulerHasConfigFile" in result.cause
    assert "/etc/kubernetes/sched.yaml" in result.cause
    assert "adopt --dry-run -f n1=FILE" in result.hint


SPACE = OPENSHIFT.operator_namespace
"""A namespace of another installation, since that of KUBEADM is the one that is checked."""


def deployment(image: str, *command: str, space: str = "other") -> dict[str, Any]:
    container = {"name": "c", "image": image, **({"command": list(command)} if command else {})}
    return obj("d", space, spec={"template": {"spec": {"containers": [container]}}})


@pytest.mark.parametrize(
    ("found", "state"),
    [
        (deployment("r.example/kube-scheduler-operator:v1", space=SPACE), CheckState.FAILED),
        (
            deployment("x/kube-scheduler-operator", names.PROGRAM, "operator", space=SPACE),
            CheckState.FAILED,
        ),
        # a tenant's, which may have no right at all
        (deployment("r.example/kube-scheduler-operator:v1"), CheckState.WARNING),
        (deployment("x/kube-scheduler-operator", names.PROGRAM, "rl-monitor"), CheckState.OK),
        (deployment("registry.k8s.io/kube-scheduler:v1.35.4"), CheckState.WARNING),
        (deployment("x/custom", "/bin/kube-scheduler"), CheckState.WARNING),
        (deployment("nginx"), CheckState.OK),
    ],
)
def test_other_operators_and_schedulers_are_recognized(found: Any, state: CheckState) -> None:
    assert one("other-programs", deployments=[found]).state is state


@pytest.mark.parametrize("platform", [MANAGED, OPENSHIFT], ids=lambda each: each.name)
def test_nothing_is_adopted_where_no_static_pod_has_settings_of_users(platform: Platform) -> None:
    found = one("static-pods", platform=platform, adoption=None)
    assert (found.state, "nothing is adopted" in found.cause) == (CheckState.OK, True)


@pytest.mark.parametrize(
    ("namespace", "labels", "state"),
    [
        (KUBEADM.operand_namespace, dict(KUBEADM.static_pod_labels), CheckState.OK),
        (KUBEADM.target_namespace, {names.PART_OF_LABEL: names.PROGRAM}, CheckState.OK),
        ("tenant", dict(KUBEADM.static_pod_labels), CheckState.FAILED),
        ("tenant", {names.PART_OF_LABEL: names.PROGRAM}, CheckState.FAILED),
        (KUBEADM.operand_namespace, {}, CheckState.FAILED),
    ],
)
def test_a_label_does_not_hide_a_port_that_another_pod_uses(
    namespace: str, labels: dict[str, str], state: CheckState
) -> None:
    containers = [{"name": "c", "ports": [{"containerPort": 10259}]}]
    spec = {"nodeName": "n1", "hostNetwork": True, "containers": containers}
    pod = obj("p", namespace, labels=labels, spec=spec)
    assert one("ports", host_pods=[pod]).state is state


def test_missing_rights_and_refused_roles_are_two_problems() -> None:
    found = results(
        "your-rights",
        missing_rights=["create namespaces"],
        rbac=[DryRun("ClusterRole a", error="attempting to grant RBAC permissions")],
    )
    assert "create namespaces" in found[0].cause
    assert "escalate" in found[1].hint


# --- an installed operator --------------------------------------------------------------------


def operator_lease(age: float) -> Mapping[str, Any]:
    renewed = (NOW - timedelta(seconds=age)).isoformat()
    return {
        "metadata": {},
        "spec": {"holderIdentity": "p", "renewTime": renewed, "leaseDurationSeconds": 15},
    }


@pytest.mark.parametrize(
    ("deployment", "age", "part"),
    [
        (None, 1, "the operator is not installed"),
        ({"spec": {"replicas": 0}, "status": {}}, 1, "scaled to 0"),
        ({"spec": {"replicas": 2}, "status": {}}, 1, "no Pod is Ready"),
        ({"spec": {"replicas": 2}, "status": {"readyReplicas": 1}}, 1, "1 of 2"),
        (
            {"spec": {"replicas": 2}, "status": {"readyReplicas": 2}},
            60,
            "since 2026-11-26T11:59:00Z",
        ),
        ({"spec": {"replicas": 2}, "status": {"readyReplicas": 2}}, 1, "2 of 2 Pods are Ready"),
    ],
)
def test_the_state_of_the_operator(deployment: Any, age: float, part: str) -> None:
    found = results("operator", deployment=deployment, operator_lease=operator_lease(age))
    assert any(part in each.cause for each in found)


def test_an_operator_of_another_version_is_reported_with_the_program_to_use() -> None:
    deployment = {"spec": {"replicas": 1}, "status": {"readyReplicas": 1}}
    facts = {"deployment": deployment, "operator_lease": operator_lease(1)}
    other = obj("cluster", status={"version": "9.8.7"})
    found = one("operator", kubescheduler=other, **facts)
    assert found.state is CheckState.WARNING
    assert "the operator is version 9.8.7" in found.cause
    assert "exec deploy/kube-scheduler-operator -- kubectl-scheduler check" in found.hint
    release = one("operator", kubescheduler=other, platform=OPENSHIFT, **facts)
    assert release.state is CheckState.OK


@pytest.mark.parametrize("is_reverted", [False, True])
def test_a_failed_revision_of_a_node_is_reported_until_the_edit_is_reverted(
    is_reverted: bool,
) -> None:
    entry = {
        "nodeName": "n1",
        "currentRevision": 3,
        "lastFailedRevision": 4,
        "lastFailedRevisionErrors": ["port in use"],
    }
    message = 'node "n1": port in use'
    type_ = names.NODE_INSTALLER_DEGRADED
    degraded = {"type": type_, "status": str(not is_reverted), "message": message}
    stale = {"nodeName": "n2", "currentRevision": 1, "lastFailedRevision": 2}
    stale["lastFailedRevisionErrors"] = ["of an edit that was reverted"]
    status = {
        "latestAvailableRevision": 4, "nodeStatuses": [entry, stale], "conditions": [degraded],
    }  # fmt: skip
    found = one("revisions", kubescheduler=obj("cluster", status=status))
    if is_reverted:
        assert found.state is CheckState.OK
        return
    assert found.cause == 'revision 4 failed on node "n1": port in use'
    assert "rollout undo" in found.hint


def test_a_node_without_a_scheduler_and_a_lease_that_is_not_renewed() -> None:
    label = {KUBEADM.node_selectors[0]: ""}
    found = results(
        "schedulers",
        nodes=[obj("n1", labels=label)],
        operand_pods={},
        operand_lease=operator_lease(90),
    )
    assert [each.state for each in found] == [CheckState.FAILED] * 2
    assert "node n1 has no scheduler Pod" in found[0].cause
    assert "has not renewed it since 2026-11-26T11:58:30Z" in found[1].cause


@pytest.mark.parametrize(
    ("node_is_ready", "state", "cause"),
    [
        ("True", {"waiting": {"reason": "CrashLoopBackOff"}}, "does not run"),
        ("True", {"running": {"startedAt": "2026-11-26T11:00:00Z"}}, "n1 runs and is not Ready"),
        ("Unknown", {"running": {"startedAt": "2026-11-26T11:00:00Z"}}, "runs is not known"),
    ],
)
def test_a_scheduler_that_is_not_ready(
    node_is_ready: str, state: dict[str, Any], cause: str
) -> None:
    """The Pods of a node whose kubelet does not report are marked as not Ready, and may run."""
    label = {KUBEADM.node_selectors[0]: ""}
    ready = {"type": "Ready", "status": node_is_ready}
    last = {"terminated": {"exitCode": 1, "message": "panic: gone"}}
    operand = {"name": names.OPERAND, "ready": False, "state": state, "lastState": last}
    status = {
        "conditions": [{"type": "Ready", "status": "False"}],
        "containerStatuses": [operand],
    }
    (found,) = results(
        "schedulers",
        nodes=[obj("n1", labels=label, status={"conditions": [ready]})],
        operand_pods={"n1": {"metadata": {"name": "kube-scheduler-n1"}, "status": status}},
        operand_lease=operator_lease(0),
    )
    assert found.state is CheckState.FAILED
    assert cause in found.cause
    assert ("gone" in found.cause) is (node_is_ready == "True")


@pytest.mark.parametrize(
    ("type_", "status", "state"),
    [
        ("PreflightDegraded", "True", CheckState.FAILED),
        ("StaticPodsAvailable", "False", CheckState.FAILED),
        ("SchedulersAvailable", "False", CheckState.FAILED),
        ("NextVersionUpgradeable", "False", CheckState.WARNING),
        ("UpgradeCheckPassed", "False", CheckState.WARNING),
        ("UpgradeCheckPassed", "Unknown", CheckState.OK),
        ("VersionSkew", "True", CheckState.WARNING),
        ("KubeadmUpgrade", "True", CheckState.WARNING),
        ("StaticPodsAvailable", "True", CheckState.OK),
        ("NodeInstallerProgressing", "True", CheckState.OK),
    ],
)
def test_conditions_are_failures_or_warnings_by_their_type(
    type_: str, status: str, state: CheckState
) -> None:
    condition = {"type": type_, "status": status, "reason": "R", "message": "what\nhappened"}
    found = one(
        "conditions",
        kubescheduler=obj("cluster", status={"conditions": [condition]}),
        cluster_operator=obj("kube-scheduler", status={"conditions": []}, x=1)
        | {"status": {"conditions": [{"type": "Available", "status": "False"}]}},
    )
    assert found.state is state
    assert state is CheckState.OK or f"{type_} (R): what happened" in found.cause


def test_a_scheduler_that_is_replaced_is_a_warning() -> None:
    reported = {"type": "StaticPodsAvailable", "status": "False", "reason": "NoReadyScheduler"}
    statuses = [{"nodeName": "n1", "currentRevision": 1, "targetRevision": 2}]
    kubescheduler = obj("cluster", status={"conditions": [reported], "nodeStatuses": statuses})
    overall = {"status": {"conditions": [{"type": "Available", "status": "True"}]}}
    facts: dict[str, Any] = {"kubescheduler": kubescheduler, "cluster_operator": overall}
    facts["operator_lease"] = operator_lease(1)
    assert one("conditions", **facts).state is CheckState.WARNING
    role = {"node-role.kubernetes.io/control-plane": ""}
    found = one("schedulers", **facts, nodes=[obj("n1", labels=role)], operand_pods={},
                operand_lease=operator_lease(0))  # fmt: skip
    assert found.state is CheckState.WARNING
    assert found.cause == "the scheduler of node n1 is replaced by revision 2"


def test_a_load_policy_that_starts_is_a_warning() -> None:
    starting = {"type": "Available", "status": "False", "reason": "Starting", "message": "wait"}
    policy = obj("default", status={"conditions": [starting]})
    listed: dict[str, Any] = {kind: Observed({}) for kind, _ in _OBJECTS}
    listed["LoadPolicy"] = Observed({"default": policy})
    found = one("objects", kinds=listed, operator_lease=operator_lease(1))
    assert (found.state, found.hint) == (CheckState.WARNING, "wait until it has started")


# --- what runs, whatever the conditions say ---------------------------------------------------


def secondary_facts(
    ready: tuple[bool, ...] = (True, True),
    *,
    age: float = 1,
    has_deployment: bool = True,
    image: str = "",
    lost: str = "",
    **spec: Any,
) -> dict[str, Any]:
    """The facts of SecondaryScheduler `packed`, which wants two Pods."""
    waiting = {"reason": "ImagePullBackOff", "message": "no such image"}
    statuses = [{"image": image, "state": {"waiting": waiting}}] if image else []
    pods = [
        obj(f"packed-{at}", status={
            "conditions": [{"type": "Ready", "status": str(is_ready)}],
            "containerStatuses": statuses,
        })
        for at, is_ready in enumerate(ready)
    ]  # fmt: skip
    deployment = obj("packed") if has_deployment else None
    facts = SecondaryFacts(deployment, pods, operator_lease(age), lost)
    conditions = [{"type": "Available", "status": "True"}, {"type": "Assigned", "status": "True"}]
    scheduler = obj(
        "packed",
        spec={"namespace": "x", "replicas": 2, **spec},
        status={"conditions": conditions, "readyReplicas": 2},
    )
    kind = SECONDARY_SCHEDULERS.kind
    return {
        "kinds": {kind: Observed({"packed": scheduler})},
        "secondaries": {"packed": Observed(facts)},
    }


@pytest.mark.parametrize(
    ("facts", "state", "part"),
    [
        (secondary_facts(), CheckState.OK, "it has its Pods"),
        (secondary_facts(has_deployment=False), CheckState.FAILED, "has no Deployment x/packed"),
        (secondary_facts(()), CheckState.FAILED, "has no Pod in x"),
        (secondary_facts((False, False)), CheckState.FAILED, "no Pod of SecondaryScheduler"),
        (secondary_facts((True, False)), CheckState.WARNING, "1 of 2 Pods"),
        (secondary_facts(age=60), CheckState.FAILED, "has not renewed it since"),
        (secondary_facts(lost="packed-config-1"), CheckState.FAILED, "no ConfigMap x/packed-con"),
        (secondary_facts((), replicas=0), CheckState.OK, "it has its Pods"),
    ],
)
def test_a_secondary_scheduler_is_what_runs_of_it(
    facts: dict[str, Any], state: CheckState, part: str
) -> None:
    """Its status has Available=True in each of these cases."""
    first = results("secondary-schedulers", **facts)[0]
    assert (first.state, part in first.cause) == (state, True)


@pytest.mark.parametrize(("age", "state"), [(1, CheckState.OK), (9, CheckState.FAILED)])
def test_a_lease_that_was_just_released_is_not_a_problem(age: float, state: CheckState) -> None:
    facts = secondary_facts()
    renewed = (NOW - timedelta(seconds=age)).isoformat()
    lease = {"metadata": {}, "spec": {"holderIdentity": "", "renewTime": renewed}}
    pods = facts["secondaries"]["packed"].value.pods
    facts["secondaries"] = {"packed": Observed(SecondaryFacts(obj("packed"), pods, lease))}
    assert one("secondary-schedulers", **facts).state is state


@pytest.mark.parametrize("where", ["operator_pods", "operand_pods", "secondaries"])
def test_every_pod_that_waits_for_its_image_is_named(where: str) -> None:
    waiting = secondary_facts((False,), image="registry.example/x:1")
    (pod,) = waiting["secondaries"]["packed"].value.pods
    facts: dict[str, Any] = {"operator_pods": [], "operand_pods": {}, "secondaries": {}}
    facts[where] = {
        "operator_pods": [pod],
        "operand_pods": {"n": pod},
        "secondaries": waiting["secondaries"],
    }[where]
    found = one("images", AFTER, **facts)
    assert found.state is CheckState.FAILED
    assert "x/packed-0" in found.cause
    assert "registry.example/x:1" in found.cause


@pytest.mark.parametrize(
    ("way", "ready", "state", "part"),
    [
        (AssignmentWay.POLICY, 0, CheckState.OK, "packed"),
        (AssignmentWay.WEBHOOK, 1, CheckState.OK, "packed"),
        (AssignmentWay.WEBHOOK, 0, CheckState.FAILED, "which serves webhook"),
        (AssignmentWay.NO_SERVICE, 1, CheckState.FAILED, "has no Service"),
        (AssignmentWay.NONE_POLICY, 1, CheckState.FAILED, "with its binding"),
        (AssignmentWay.NONE_WEBHOOK, 1, CheckState.FAILED, "MutatingWebhookConfiguration"),
    ],
)
def test_what_applies_an_assignment_must_exist_and_answer(
    way: AssignmentWay, ready: int, state: CheckState, part: str
) -> None:
    facts = secondary_facts(assign={})
    operator = {"status": {"readyReplicas": ready}}
    found = one("assignment", assignment_way=way, webhook_service={}, deployment=operator, **facts)
    assert (found.state, part in found.cause) == (state, True)
    assert state is CheckState.OK or found.link.startswith("assignment.md")


@pytest.mark.parametrize(
    ("way", "trial", "state", "parts"),
    [
        (
            AssignmentWay.WEBHOOK,
            AssignmentTrial("packed", "team-a", "packed"),
            CheckState.OK,
            ["a dry run in namespace team-a got it"],
        ),
        (
            AssignmentWay.WEBHOOK,
            AssignmentTrial("packed", "team-a", "default-scheduler"),
            CheckState.FAILED,
            ["gets schedulerName default-scheduler, not packed", "10250"],
        ),
        (
            AssignmentWay.POLICY,
            AssignmentTrial("packed", "team-a", "other"),
            CheckState.FAILED,
            ["gets schedulerName other, not packed", "mutatingadmissionpolicies"],
        ),
        (
            AssignmentWay.POLICY,
            AssignmentTrial("packed", unanswered="no namespace"),
            CheckState.OK,
            ["not tried: no namespace"],
        ),
    ],
    ids=["assigned", "webhook not reached", "another policy", "not tried"],
)
def test_an_assignment_is_what_a_dry_run_gets(
    way: AssignmentWay, trial: AssignmentTrial, state: CheckState, parts: list[str]
) -> None:
    found = one(
        "assignment",
        assignment_way=way,
        webhook_service={},
        deployment={"status": {"readyReplicas": 1}},
        assignment_trials={"packed": trial},
        **secondary_facts(assign={}),
    )
    assert found.state is state
    assert all(part in f"{found.cause} {found.hint}" for part in parts)


def test_an_assignment_that_was_withdrawn_is_reported_with_its_reason() -> None:
    facts = secondary_facts(assign={"podSelector": {}})
    (scheduler,) = facts["kinds"][SECONDARY_SCHEDULERS.kind].value.values()
    scheduler["status"]["conditions"][1] |= {"status": "False", "message": "it does not schedule"}
    found = one("assignment", assignment_way=AssignmentWay.POLICY, **facts)
    assert found.state is CheckState.WARNING
    assert "it does not schedule" in found.cause
    none = one("assignment", assignment_way=None, **secondary_facts())
    assert none.state is CheckState.OK


@pytest.mark.parametrize(
    ("account", "link"), [("installer-sa", "operations.md#on-openshift"), ("own", "rights.md")]
)
def test_on_openshift_its_operator_makes_rights_of_the_installer_again(
    account: str, link: str
) -> None:
    unlimited = UnlimitedAccount(f"x/{account}", ["leftover"])
    found = one(
        "operator-rights",
        platform=OPENSHIFT,
        missing_account_rights=[],
        unlimited_accounts=[unlimited],
    )
    assert found.link == link
    assert ("OpenShift's own operator" in found.hint) == (account == "installer-sa")


def test_an_account_that_may_do_everything_is_named_with_its_binding() -> None:
    account = UnlimitedAccount("x/installer-sa", ["leftover"])
    found = one("operator-rights", missing_account_rights=[], unlimited_accounts=[account])
    assert found.state is CheckState.FAILED
    assert "x/installer-sa" in found.cause
    assert found.hint.endswith("delete clusterrolebinding leftover"), "OpenShift is elsewhere"
    fine = one("operator-rights", missing_account_rights=[], unlimited_accounts=[])
    assert fine.state is CheckState.OK


OVERALL = {**obj("kube-scheduler"), "status": {"conditions": [{}]}}


@pytest.mark.parametrize(
    "type_", [names.PLACEMENT_CHECK_PROGRESSING, names.SECONDARY_CHECK_PROGRESSING]
)
@pytest.mark.parametrize(
    ("reason", "state"), [("Held", CheckState.WARNING), ("Simulating", CheckState.OK)]
)
def test_an_edit_that_waits_for_an_approval_is_a_warning(
    type_: str, reason: str, state: CheckState
) -> None:
    condition = {"type": type_, "status": "True", "reason": reason, "message": "the edit is held"}
    kubescheduler = obj("cluster", status={"conditions": [condition]})
    found = one("conditions", kubescheduler=kubescheduler, cluster_operator=OVERALL)
    assert found.state is state
    assert state is CheckState.OK or "rollout approve" in found.hint


@pytest.mark.parametrize("management", ["Unmanaged", "Removed"])
def test_conditions_that_the_operator_does_not_observe_are_a_warning(management: str) -> None:
    unknown = {"type": names.HAND_EDITS, "status": "Unknown", "reason": management}
    kubescheduler = obj(
        "cluster", spec={"managementState": management}, status={"conditions": [unknown]}
    )
    found = one("conditions", kubescheduler=kubescheduler, cluster_operator=OVERALL)
    assert found.state is CheckState.WARNING
    assert f"spec.managementState of KubeScheduler cluster is {management}" in found.cause


@pytest.mark.parametrize(
    ("status", "reason", "state"),
    [
        ("Unknown", "NotManaged", CheckState.OK),  # the server of a SchedulerExtender with a URL
        ("Unknown", "Unmanaged", CheckState.WARNING),
        ("False", "AgentsNotReady", CheckState.FAILED),
        ("True", "AsExpected", CheckState.OK),
    ],
)
def test_an_object_whose_state_is_not_known_has_not_failed(
    status: str, reason: str, state: CheckState
) -> None:
    condition = {"type": names.AVAILABLE, "status": status, "reason": reason}
    extender = obj("external", status={"conditions": [condition]})
    listed: dict[str, Any] = {kind: Observed({}) for kind, _ in _OBJECTS}
    listed["SchedulerExtender"] = Observed({"external": extender})
    assert one("objects", kinds=listed, operator_lease=operator_lease(1)).state is state


@pytest.mark.parametrize(("age", "state"), [(1, CheckState.OK), (60, CheckState.WARNING)])
def test_a_report_of_a_stopped_operator_is_marked(age: float, state: CheckState) -> None:
    good = {"conditions": [{"type": "StaticPodsAvailable", "status": "True"}]}
    facts = {"operator_lease": operator_lease(age), **secondary_facts()}
    kubescheduler = obj("cluster", status=good)
    found = one("conditions", kubescheduler=kubescheduler, cluster_operator=OVERALL, **facts)
    assert found.state is state
    others: dict[str, Any] = {kind: Observed({}) for kind, _ in _OBJECTS}
    facts["kinds"] = {**others, **facts["kinds"]}
    assert one("objects", **facts).state is state


def test_what_no_operator_has_observed_is_not_its_report() -> None:
    facts: dict[str, Any] = {
        "operator_lease": None,
        "kubescheduler": obj("cluster"),
        "cluster_operator": None,
        "kinds": {kind: Observed({}) for kind, _ in _OBJECTS},
    }
    facts["kinds"]["SchedulerProfile"] = Observed({"dense": obj("dense")})
    found = [*results("conditions", **facts), *results("objects", **facts)]
    causes = [each.cause for each in found]
    assert 'ClusterOperator "kube-scheduler" does not exist' in causes
    assert sum("the operator has not seen it yet" in cause for cause in causes) == 2
    assert not any("before it stopped" in cause for cause in causes)


def test_a_status_of_an_earlier_generation_is_marked() -> None:
    facts = secondary_facts()
    others: dict[str, Any] = {kind: Observed({}) for kind, _ in _OBJECTS}
    facts["kinds"] = {**others, **facts["kinds"]}
    (scheduler,) = facts["kinds"][SECONDARY_SCHEDULERS.kind].value.values()
    scheduler["metadata"]["generation"] = 3
    scheduler["status"]["observedGeneration"] = 2
    found = one("objects", **facts)
    assert found.state is CheckState.WARNING
    assert "generation 2" in found.cause


@pytest.mark.parametrize("management", ["Unmanaged", "Removed"])
def test_what_the_management_state_keeps_from_being_observed_is_one_warning(
    management: str,
) -> None:
    """The operator runs, so the check operator has nothing to show."""
    unknown = {"type": names.AVAILABLE, "status": "Unknown", "reason": "Unmanaged"}
    paused = {"observedGeneration": 1, "conditions": [unknown]}
    known = {"observedGeneration": 1, "conditions": [{"type": names.ACCEPTED, "status": "True"}]}
    edited = obj("edited", status=known)
    edited["metadata"]["generation"] = 2
    facts = secondary_facts()
    facts["kinds"] = {
        **{kind: Observed({}) for kind, _ in _OBJECTS},
        **facts["kinds"],
        "SchedulerProfile": Observed({"new": obj("new"), "edited": edited}),
        "SchedulerExtender": Observed({"paused": obj("paused", status=paused)}),
        "OperatorSettings": Observed({"cluster": obj("cluster")}),
    }
    kubescheduler = obj("cluster", spec={"managementState": management})
    found = one("objects", kubescheduler=kubescheduler, **facts)
    assert found.state is CheckState.WARNING
    assert found.cause == (
        "the operator does not observe OperatorSettings cluster, SchedulerExtender paused, "
        "SchedulerProfile edited, SchedulerProfile new, because spec.managementState of "
        f"KubeScheduler cluster is {management}"
    )
    facts["kinds"] |= {"LoadPolicy": Observed({"load": obj("load")})}
    causes = {each.cause for each in results("objects", kubescheduler=kubescheduler, **facts)}
    always = "LoadPolicy load has no status: the operator has not seen it yet"
    assert causes == {found.cause, always}
    managed = obj("cluster", spec={"managementState": "Managed"})
    causes = {each.cause for each in results("objects", kubescheduler=managed, **facts)}
    assert found.cause not in causes
    assert "SchedulerProfile new has no status: the operator has not seen it yet" in causes
