"""Requests of all end-to-end tests: none was refused, and every granted right was used."""

from __future__ import annotations

from pathlib import Path

import pytest

from kube_scheduler_operator.base.platform import OPENSHIFT
from kube_scheduler_operator.simulate.kinds import KINDS

from .ledger import Ledger

CONFLICT = "test_a_conflict_ends_the_plan_and_the_object_is_read_again"
BESIDE = "test_an_agent_runs_next_to_the_control_planes_scheduler"
HELD = "test_gate_holds_an_edit_until_it_is_approved"
pytestmark = pytest.mark.audit

SELDOM = {
    **{(written, "get"): CONFLICT for written in (
        "clusteroperators", "clusterrolebindings", "daemonsets", "kubeschedulers", "loadpolicies",
        "networkpolicies", "operatorsettings", "poddisruptionbudgets", "rolebindings", "roles",
        "schedulerextenders", "schedulerprofiles", "secondaryschedulers", "secrets",
        "serviceaccounts", "services",
    )},
    # Only while a SecondaryScheduler has spec.assign.
    **{(kind, "get"): "test_what_exists_decides" for kind in (
        "mutatingadmissionpolicies", "mutatingadmissionpolicybindings",
        "mutatingwebhookconfigurations",
    )},
    # Only on AKS, while a SchedulerProfile has `scheduler: aks`.
    **{("schedulerconfigurations", verb): "test_profiles_of_aks_are_kept_in_its_object"
       for verb in ("create", "delete", "get", "list", "update", "watch")},
    # Only the operator's own managed-scheduler.
    ("secondaryschedulers", "delete"): "test_removed_leaves_nothing_but_what_the_manifests_made",
    ("secondaryschedulers", "update"): "test_an_edit_of_the_operators_fields_is_undone",
    ("daemonsets", "update"): "test_changed_or_deleted_objects_are_restored",
    ("networkpolicies", "delete"): (
        "test_removed_deletes_the_network_policies_of_the_operator_only"
    ),
    ("networkpolicies", "update"): (
        "test_network_policies_of_the_target_namespace_are_put_back_on_openshift"
    ),
    ("poddisruptionbudgets", "delete"): "test_the_budget_allows_one_eviction_at_a_time",
    ("poddisruptionbudgets", "update"): "test_the_budget_allows_one_eviction_at_a_time",
    ("secrets", "delete"): "test_a_secret_of_another_type_is_recreated",
    ("serviceaccounts", "update"): "test_the_token_of_the_installer_account_is_disabled_again",
}  # fmt: skip
"""Rights that are used only after rare failures, and the tests that provoke those."""

ON_OPENSHIFT = f"{OPENSHIFT.operator_namespace}:{OPENSHIFT.operator.account}"
SELDOM_OF = {
    # In an upgrade from the release in which the operator's objects had other names.
    (ON_OPENSHIFT, "deployments", "delete"): (
        "test_its_deployment_is_deleted_and_its_lease_claimed"
    ),
    # A repeated event is patched only after a minute.
    **{(account, "events", "patch"): "test_events_of_a_pod_are_rate_limited"
       for account in ("scheduler-extender", "scheduler-extender-binder")},
    # Agents that bind and agents that do not have one program; here one that binds learns.
    **{("scheduler-extender", "configmaps", verb): BESIDE for verb in ("list", "watch")},
    ("load-annotator", "nodes", "get"): "test_a_patch_of_an_outdated_node_is_refused",
    ("load-annotator", "nodes", "list"): "test_metrics_server_is_requested_once_for_all_nodes",
    # Only with spec.placementCheck of OperatorSettings, which no test on OpenShift sets.
    **{(ON_OPENSHIFT, kind.plural, "list"): HELD
       for kind in KINDS if kind.plural not in ("nodes", "pods")},
    # The kubelet asks the API server about it in its own name.
    ("load-kubelet-stats", "nodes/stats", "get"): "test_kubelets_receive_a_token_for_nothing_else",
    ("load-annotator", "serviceaccounts/token", "create"): (
        "test_kubelets_receive_a_token_for_nothing_else"
    ),
}  # fmt: skip
"""The same for single accounts, of any namespace or of one; "nodes" of the annotator includes
metrics-server's."""


REFUSED = {
    # `kubectl scheduler status` in the operator's Pod has its rights, and shows nothing of kubeadm.
    ("kube-scheduler-operator", "configmaps", "get", "kube-system"),
}
"""Requests of commands that people run with an account of the operator."""


def test_rarely_used_rights_have_a_test() -> None:
    names = (*SELDOM.values(), *SELDOM_OF.values())
    texts = [path.read_text() for path in Path(__file__).parents[1].rglob("test_*.py")]
    assert [n for n in names if not any(f"def {n}(" in text for text in texts)] == []


@pytest.mark.core
def test_nothing_was_refused(ledger: Ledger) -> None:
    assert ledger.audit.requests > 0
    refused = [
        str(right)
        for right in sorted(ledger.audit.refused)
        if (right.account.partition(":")[2], right.resource, right.verb, right.namespace)
        not in REFUSED
    ]
    assert refused == []


def test_every_granted_right_was_used(ledger: Ledger) -> None:
    unused = [
        right
        for right in ledger.audit.unused()
        if (right.resource, right.verb) not in SELDOM
        and not any(
            (account, right.resource, right.verb) in SELDOM_OF
            for account in (right.account, right.account.partition(":")[2])
        )
    ]
    files = Path(__file__).parent.rglob("test_*.py")
    apart = ("pytest.mark.audit", "pytestmark = [pytest.mark.soak")
    audited = {file.name for file in files if not any(mark in file.read_text() for mark in apart)}
    if missing := audited - ledger.files:
        pytest.skip(f"needs all end-to-end tests; these did not run: {sorted(missing)}")
    assert not unused, "\n".join(str(right) for right in unused)
