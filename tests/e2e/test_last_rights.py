"""What all tests before did at the API: nothing was refused, and no right is there for nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from .ledger import Ledger

CONFLICT = "test_a_plan_that_is_out_of_date_ends_and_what_is_there_is_read"
BESIDE = "test_an_agent_runs_beside_the_control_planes_scheduler"
SELDOM = {
    **{(written, "get"): CONFLICT for written in (
        "clusteroperators", "clusterrolebindings", "daemonsets", "kubeschedulers", "loadpolicies",
        "poddisruptionbudgets", "rolebindings", "roles", "schedulerextenders",
        "schedulerprofiles", "secondaryschedulers", "secrets", "serviceaccounts", "services",
    )},
    ("daemonsets", "update"): "test_what_somebody_changes_or_deletes_comes_back",
    ("poddisruptionbudgets", "delete"): "test_all_but_one_stay",
    ("poddisruptionbudgets", "update"): "test_all_but_one_stay",
    ("secrets", "delete"): "test_a_secret_of_another_type_is_made_again",
    ("serviceaccounts", "update"): "test_a_token_for_the_installer_is_taken_away_again",
}  # fmt: skip
"""Rights whose use needs an accident that no test has on a real node, and the test that has it."""

SELDOM_OF = {
    # An event that is told again is told a minute later.
    **{(account, "events", "patch"): "test_a_pod_gets_its_next_event_after_a_while"
       for account in ("scheduler-extender", "scheduler-extender-binder")},
    # Agents that bind and agents that do not have one program; here one that binds learns.
    **{("scheduler-extender", "configmaps", verb): BESIDE for verb in ("list", "watch")},
    ("load-annotator", "nodes", "get"): "test_a_patch_of_what_was_not_seen_is_refused",
    ("load-annotator", "nodes", "list"): "test_metrics_server_is_asked_once_for_all",
    # The kubelet asks the API server about it in its own name.
    ("load-annotator", "nodes/stats", "get"): "test_a_kubelet_is_asked_with_our_token",
}  # fmt: skip
"""The same of one account; both "nodes" of the annotator, metrics-server's among them."""


def test_what_is_seldom_has_a_test() -> None:
    names = (*SELDOM.values(), *SELDOM_OF.values())
    texts = [path.read_text() for path in Path(__file__).parents[1].rglob("test_*.py")]
    assert [n for n in names if not any(f"def {n}(" in text for text in texts)] == []


@pytest.mark.core
def test_nothing_was_refused(ledger: Ledger) -> None:
    assert ledger.audit.requests > 0
    assert [str(right) for right in sorted(ledger.audit.refused)] == []


def test_no_right_is_there_for_nothing(ledger: Ledger) -> None:
    unused = [
        right
        for right in ledger.audit.unused()
        if (right.resource, right.verb) not in SELDOM
        and (right.account.partition(":")[2], right.resource, right.verb) not in SELDOM_OF
    ]
    there = {path.name for path in Path(__file__).parent.glob("test_*.py")}
    missing = {name for name in there - ledger.files if not name.startswith("test_last_")}
    if missing:
        pytest.skip(f"this is about all end-to-end tests, and without {sorted(missing)}")
    assert not unused, "\n".join(str(right) for right in unused)
