"""Cutting revisions: rows of the reference (library-go, revision controller) and our own."""

from __future__ import annotations

from collections.abc import Container, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.base.settings import Settings
from kube_scheduler_operator.controlplane.revision.content import RevisionContent
from kube_scheduler_operator.controlplane.revision.revise import RevisionResult, revise
from kube_scheduler_operator.model.plan import Action, Create, Delete, Replace
from kube_scheduler_operator.model.snapshot import Snapshot

INSTALLED, REFUSED, FAILED = names.OUTCOME_INSTALLED, names.OUTCOME_REFUSED, names.OUTCOME_FAILED
FALLBACK = names.REASON_OPERAND_FALLBACK
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def content(text: str) -> RevisionContent:
    return RevisionContent({name: {"key": f"{name} {text}"} for name in KUBEADM.parts})


class Cluster:
    """ConfigMaps, node statuses and scheduler pods in memory."""

    def __init__(self) -> None:
        self.config_maps: dict[str, Any] = {}
        self.entries: dict[str, dict[str, Any]] = {}
        self.pods: dict[str, Any] = {}
        self.latest = 0
        self.writes: list[str] = []
        self._uid = 0

    def revision(
        self,
        number: int,
        text: str,
        outcome: str = "",
        *,
        ready: bool = True,
        copies: tuple[str, ...] = KUBEADM.parts,
        quarantined: str = "",
    ) -> Cluster:
        annotations = {names.REVISION_READY_ANNOTATION: "true" if ready else "false"}
        if outcome:
            annotations[names.OUTCOME_ANNOTATION] = outcome
        if quarantined:
            annotations[names.QUARANTINED_HASH_ANNOTATION] = content(quarantined).hash
        uid = self._put(
            f"revision-status-{number}",
            {
                "metadata": {"annotations": annotations},
                "data": {"revision": str(number), "hash": content(text).hash},
            },
        )
        for name in copies:
            owner = {"uid": uid, "name": f"revision-status-{number}"}
            self._put(
                f"{name}-{number}",
                {
                    "metadata": {"ownerReferences": [owner]},
                    "data": dict(content(text).parts[name]),
                    "immutable": True,
                },
            )
        if ready:
            self.latest = max(self.latest, number)
        return self

    def node(self, name: str, current: int, **fields: Any) -> Cluster:
        self.entries[name] = {"nodeName": name, "currentRevision": current, **fields}
        return self

    def pod(self, node: str, revision: int, text: str = "") -> Cluster:
        metadata = {
            "name": f"kube-scheduler-{node}",
            "labels": {names.REVISION_LABEL: str(revision)},
            "annotations": {names.CONTENT_HASH_ANNOTATION: content(text).hash},
        }
        self.pods[node] = {"metadata": metadata}
        return self

    def step(
        self, content: RevisionContent | None, swapping: Container[int] = ()
    ) -> RevisionResult:
        status = {
            "latestAvailableRevision": self.latest,
            "nodeStatuses": list(self.entries.values()),
        }
        snapshot = Snapshot(
            now=NOW,
            platform=KUBEADM,
            settings=Settings(),
            kubescheduler={"metadata": {"name": "cluster"}, "spec": {}, "status": status},
            config_maps=self.config_maps,
            operand_pods=self.pods,
        )
        return revise(snapshot, content, swapping)

    def settle(self, content: RevisionContent | None, limit: int = 12) -> RevisionResult:
        """Reconcile until nothing is written."""
        for _ in range(limit):
            revised = self.step(content)
            self.latest = max(self.latest, revised.latest)
            if not revised.actions:
                return revised
            for action in revised.actions:
                self._perform(action)
        raise AssertionError(f"still writing after {limit} reconciles: {self.writes}")

    def _perform(self, action: Action) -> None:
        name = action.obj["metadata"]["name"]
        verb = type(action).__name__.lower()
        self.writes.append(f"{verb} {name}")
        match action:
            case Create():
                assert name not in self.config_maps, name
                self._put(name, dict(action.obj))
            case Replace():
                assert action.obj["metadata"]["uid"] == self.config_maps[name]["metadata"]["uid"]
                self.config_maps[name] = action.obj
            case Delete():
                del self.config_maps[name]

    def _put(self, name: str, obj: Mapping[str, Any]) -> str:
        self._uid += 1
        uid = f"uid-{self._uid}"
        self.config_maps[name] = {
            **obj,
            "metadata": {"name": name, **obj["metadata"], "uid": uid, "resourceVersion": "1"},
        }
        return uid


def numbers(cluster: Cluster) -> list[int]:
    prefix = "revision-status-"
    return sorted(
        int(name.removeprefix(prefix)) for name in cluster.config_maps if name.startswith(prefix)
    )


# --- the reference's rows -------------------------------------------------------------------------


def test_an_unfinished_revision_is_continued_because_numbers_have_no_gaps() -> None:
    # The reference continues with revision-status-2 and leaves revision 1 incomplete.
    cluster = Cluster().revision(1, "a", ready=False, copies=())
    cluster.settle(content("a"))
    assert numbers(cluster) == [1]
    assert cluster.writes == [
        "create config-1",
        "create kube-scheduler-pod-1",
        "replace revision-status-1",
    ]


def test_a_lost_status_write_is_repeated() -> None:
    cluster = Cluster().revision(1, "a").revision(2, "b")
    cluster.latest = 0
    assert cluster.settle(content("b")).latest == 2
    assert cluster.writes == []


def test_unusable_inputs_create_nothing() -> None:
    cluster = Cluster().revision(1, "a")
    revised = cluster.settle(None)
    assert cluster.writes == []
    assert revised.desired is not None
    assert revised.desired.number == 1, "the unfinished revision is completed"


def test_the_first_revision_is_written_in_an_order_that_survives_a_crash() -> None:
    cluster = Cluster()
    revised = cluster.settle(content("a"))
    assert cluster.writes == [
        "create revision-status-1",
        "create config-1",
        "create kube-scheduler-pod-1",
        "replace revision-status-1",
    ]
    assert revised.latest == 1
    assert cluster.config_maps["config-1"]["immutable"] is True
    owner = cluster.config_maps["config-1"]["metadata"]["ownerReferences"][0]
    assert owner["uid"] == cluster.config_maps["revision-status-1"]["metadata"]["uid"]


def test_equal_content_writes_nothing() -> None:
    cluster = Cluster().revision(1, "a")
    cluster.settle(content("a"))
    assert cluster.writes == []


def test_changed_content_gets_the_next_number_and_a_reason() -> None:
    cluster = Cluster().revision(2, "a")
    cluster.settle(content("b"))
    assert numbers(cluster) == [2, 3]
    reason = cluster.config_maps["revision-status-3"]["data"]["reason"]
    assert reason == (
        "required configmap/config has changed,required configmap/kube-scheduler-pod has changed"
    )


@pytest.mark.parametrize("crash_after", range(1, 5))
def test_a_crash_after_any_write_makes_no_extra_revision(crash_after: int) -> None:
    cluster = Cluster().revision(2, "a")
    while len(cluster.writes) < crash_after:
        for action in cluster.step(content("b")).actions[: crash_after - len(cluster.writes)]:
            cluster._perform(action)
    cluster.settle(content("b"))
    assert numbers(cluster) == [2, 3]


@pytest.mark.parametrize("crash_after", range(1, 4))
def test_an_edit_reverted_before_its_revision_is_complete_is_deleted(
    crash_after: int,
) -> None:
    cluster = Cluster().revision(2, "a")
    while len(cluster.writes) < crash_after:
        for action in cluster.step(content("b")).actions[: crash_after - len(cluster.writes)]:
            cluster._perform(action)
    cluster.settle(content("a"))
    assert numbers(cluster) == [2]


def test_an_edit_of_the_edit_reuses_the_number() -> None:
    cluster = Cluster().revision(2, "a")
    for action in cluster.step(content("b")).actions:
        cluster._perform(action)
    for action in cluster.step(content("b")).actions:
        cluster._perform(action)
    cluster.settle(content("c"))
    assert numbers(cluster) == [2, 3]
    assert cluster.config_maps["config-3"]["data"] == {"key": "config c"}


def test_a_missing_copy_of_the_latest_is_restored_instead_of_a_new_revision() -> None:
    # The reference creates revision 2 then, which restarts every scheduler.
    cluster = Cluster().revision(1, "a", copies=(names.CONFIG,))
    cluster.settle(content("a"))
    assert cluster.writes == ["create kube-scheduler-pod-1"]


def test_a_deleted_latest_revision_status_causes_no_deadlock() -> None:
    # The reference tries to lower latestAvailableRevision, which the API always refuses.
    cluster = Cluster().revision(1, "a").revision(2, "b").node("n", 2)
    del cluster.config_maps["revision-status-2"]
    cluster.settle(content("b"))
    assert numbers(cluster) == [1, 3]


def test_a_deleted_latest_revision_status_is_restored_if_a_scheduler_proves_its_content() -> None:
    cluster = Cluster().revision(1, "a").revision(2, "b").node("n", 2).pod("n", 2, "b")
    del cluster.config_maps["revision-status-2"]
    revised = cluster.step(content("b"))
    assert revised.desired is None, "no node moves meanwhile"
    cluster.settle(content("b"))
    assert numbers(cluster) == [1, 2]


def test_numbers_that_only_nodes_show_are_not_reused() -> None:
    cluster = Cluster().pod("n", 7, "x")
    revised = cluster.settle(content("y"))
    assert numbers(cluster) == [8]
    assert revised.latest == 8


def test_content_that_only_nodes_show_is_recognized() -> None:
    cluster = Cluster().pod("n", 7, "x")
    cluster.settle(content("x"))
    assert numbers(cluster) == [7]


# --- refused, failed, put back --------------------------------------------------------------------


def desired_number(revised: RevisionResult) -> int | None:
    return revised.desired.number if revised.desired else None


def rejected(revised: RevisionResult) -> int | None:
    return revised.rejected.number if revised.rejected else None


@pytest.mark.parametrize("outcome", [REFUSED, FAILED])
def test_a_bad_revision_is_quarantined_and_the_last_good_one_stays_desired(outcome: str) -> None:
    cluster = Cluster().revision(1, "a", INSTALLED).revision(2, "b", outcome).node("n", 1)
    revised = cluster.settle(content("b"))
    assert cluster.writes == []
    assert (desired_number(revised), rejected(revised)) == (1, 2)


def test_an_edit_that_is_reverted_before_a_node_ran_it_is_withdrawn() -> None:
    cluster = Cluster().revision(1, "a", names.OUTCOME_INSTALLED).revision(2, "b").node("n", 1)
    revised = cluster.settle(content("a"))
    assert cluster.writes == ["replace revision-status-2"]
    assert revised.desired is not None
    assert revised.desired.number == 1
    assert revised.latest == 2
    assert revised.history[-1].outcome == names.OUTCOME_WITHDRAWN
    assert revised.rejected is None


@pytest.mark.parametrize(
    ("current", "pod", "swapping"),
    [(2, 2, ()), (1, 2, ()), (1, 1, {2})],
    ids=["a node has it", "a node evidently runs it", "a node is about to run it"],
)
def test_a_revision_that_some_node_runs_is_not_withdrawn(
    current: int, pod: int, swapping: Container[int]
) -> None:
    cluster = Cluster().revision(1, "a", names.OUTCOME_INSTALLED).revision(2, "b")
    cluster.node("n", 1).node("m", current).pod("m", pod, "ab"[pod - 1])
    (action,) = cluster.step(content("a"), swapping).actions
    assert action.obj["metadata"]["name"] == "revision-status-3"


def test_withdrawn_content_can_be_requested_again() -> None:
    cluster = Cluster().revision(1, "a", names.OUTCOME_INSTALLED).node("n", 1)
    cluster.revision(2, "b", names.OUTCOME_WITHDRAWN)
    revised = cluster.settle(content("b"))
    assert revised.desired is not None
    assert revised.desired.number == 3
    assert "requested again" in revised.desired.status["data"]["reason"]


def test_a_withdrawn_revision_that_runs_after_all_is_replaced_by_a_higher_one() -> None:
    cluster = Cluster().revision(1, "a", names.OUTCOME_INSTALLED).node("n", 2)
    cluster.revision(2, "b", names.OUTCOME_WITHDRAWN)
    revised = cluster.settle(content("a"))
    assert revised.desired is not None
    assert revised.desired.number == 3


@pytest.mark.parametrize("outcome", [REFUSED, FAILED])
def test_reverting_a_bad_edit_needs_no_revision(outcome: str) -> None:
    cluster = Cluster().revision(1, "a", INSTALLED).revision(2, "b", outcome).node("n", 1)
    revised = cluster.settle(content("a"))
    assert cluster.writes == []
    assert (desired_number(revised), rejected(revised)) == (1, None)
    assert revised.latest == 2


def test_a_node_behind_the_last_good_revision_may_still_catch_up() -> None:
    cluster = Cluster().revision(1, "z", INSTALLED).revision(2, "a", INSTALLED)
    cluster.revision(3, "b", REFUSED).node("m", 1).node("n", 2)
    assert desired_number(cluster.step(content("b"))) == 2
    assert desired_number(cluster.step(content("a"))) == 2


def test_no_node_moves_below_the_revision_of_another() -> None:
    cluster = Cluster().revision(1, "a", INSTALLED).revision(2, "b", FAILED)
    cluster.node("m", 1).node("n", 2)
    assert desired_number(cluster.step(content("b"))) is None


def test_an_edit_after_a_bad_one_is_the_next_revision() -> None:
    cluster = Cluster().revision(1, "a", INSTALLED).revision(2, "b", REFUSED).node("n", 1)
    assert desired_number(cluster.settle(content("c"))) == 3


def test_after_a_late_failure_a_new_revision_has_the_last_good_content() -> None:
    cluster = Cluster().revision(1, "a", INSTALLED).revision(2, "b", FAILED).node("n", 2)
    revised = cluster.settle(content("b"))
    assert cluster.config_maps["config-3"]["data"] == {"key": "config a"}
    assert (desired_number(revised), rejected(revised)) == (3, 2)
    assert "quarantine" not in revised.blocked
    assert "is not retried" in revised.blocked


def test_an_error_in_the_configuration_does_not_block_the_last_good_content() -> None:
    cluster = Cluster().revision(1, "a", INSTALLED).revision(2, "b", FAILED).node("n", 2)
    assert desired_number(cluster.settle(None)) == 3


def test_quarantine_lasts_until_other_content_is_requested() -> None:
    cluster = Cluster().revision(1, "a", INSTALLED).revision(2, "b", FAILED).node("n", 2)
    cluster.settle(content("b"))
    cluster.settle(content("c"))
    assert numbers(cluster) == [1, 2, 3, 4]
    cluster.settle(content("b"))
    assert numbers(cluster) == [1, 2, 3, 4, 5]


def test_a_refused_edit_on_top_of_a_failed_revision_also_rolls_back() -> None:
    cluster = Cluster().revision(1, "a", INSTALLED).revision(2, "b", FAILED)
    cluster.revision(3, "c", REFUSED).node("n", 2)
    revised = cluster.settle(content("c"))
    assert desired_number(revised) == 4
    assert cluster.config_maps["config-4"]["data"] == {"key": "config a"}
    cluster.settle(content("c"))
    assert numbers(cluster) == [1, 2, 3, 4], "the refused one is not retried indefinitely"


def test_rolling_back_does_not_loop() -> None:
    cluster = Cluster().revision(1, "a", INSTALLED).revision(2, "b", FAILED)
    cluster.revision(3, "a", FAILED, quarantined="b").node("n", 3)
    revised = cluster.settle(content("b"))
    assert numbers(cluster) == [1, 2, 3], "a failed as well, so no content is left"
    assert desired_number(revised) is None


def test_other_content_is_tried_even_without_a_good_revision() -> None:
    cluster = Cluster().revision(1, "a", FAILED).node("n", 1)
    assert desired_number(cluster.settle(content("b"))) == 2


def test_the_mirror_pod_of_a_rolled_back_scheduler_does_not_count() -> None:
    cluster = Cluster().revision(1, "a", INSTALLED).revision(2, "b", FAILED)
    cluster.node("n", 1, lastFailedRevision=2, lastFailedReason=FALLBACK).pod("n", 2, "b")
    revised = cluster.settle(content("b"))
    assert numbers(cluster) == [1, 2]
    assert desired_number(revised) == 1


def test_a_removed_ready_annotation_is_restored_with_the_same_quarantine() -> None:
    cluster = Cluster().revision(1, "a", INSTALLED).revision(2, "b", FAILED)
    cluster.revision(3, "a", INSTALLED, quarantined="b").node("n", 3)
    annotations = cluster.config_maps["revision-status-3"]["metadata"]["annotations"]
    annotations[names.REVISION_READY_ANNOTATION] = "false"
    cluster.settle(content("b"))
    assert numbers(cluster) == [1, 2, 3]
    assert cluster.writes == ["replace revision-status-3"]


def test_copies_of_a_restored_revision_status_get_the_new_owner() -> None:
    cluster = Cluster().revision(1, "a", INSTALLED)
    cluster.config_maps["revision-status-1"]["metadata"]["uid"] = "another"
    cluster.settle(content("a"))
    assert cluster.writes == ["replace config-1", "replace kube-scheduler-pod-1"]
    owner = cluster.config_maps["config-1"]["metadata"]["ownerReferences"][0]
    assert owner["uid"] == "another"


def test_missing_copies_of_older_revisions_are_a_note() -> None:
    cluster = Cluster().revision(1, "a", copies=(names.CONFIG,)).revision(2, "b")
    assert "kube-scheduler-pod-1" in cluster.step(content("b")).note


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=12))
def test_numbers_count_changes_of_the_content(texts: list[str]) -> None:
    cluster = Cluster()
    changes = 0
    previous = ""
    for text in texts:
        changes += text != previous
        previous = text
        revised = cluster.settle(content(text))
        assert revised.desired is not None
        assert revised.desired.number == changes
        assert revised.desired.content == content(text)
    assert numbers(cluster) == list(range(1, changes + 1))


# --- recorded inputs ----------------------------------------------------------------------------


def asked(text: str, inputs: str) -> RevisionContent:
    return RevisionContent(content(text).parts, inputs)


def recorded(cluster: Cluster, number: int) -> str | None:
    data: dict[str, str] = cluster.config_maps[f"revision-status-{number}"]["data"]
    return data.get(names.INPUTS_KEY)


def test_a_revision_records_its_inputs() -> None:
    cluster = Cluster()
    cluster.settle(asked("a", "first"))
    cluster.settle(asked("b", "second"))
    assert (recorded(cluster, 1), recorded(cluster, 2)) == ("first", "second")


def test_other_inputs_with_the_same_content_write_nothing() -> None:
    cluster = Cluster()
    cluster.settle(asked("a", "one way"))
    cluster.writes.clear()
    cluster.settle(asked("a", "another way"))
    assert cluster.writes == []
    assert recorded(cluster, 1) == "one way"


def test_a_rollback_revision_has_the_inputs_of_the_good_content() -> None:
    cluster = Cluster()
    cluster.settle(asked("a", "good"))
    cluster.config_maps["revision-status-1"]["metadata"]["annotations"][
        names.OUTCOME_ANNOTATION
    ] = INSTALLED
    cluster.settle(asked("b", "bad"))
    cluster.config_maps["revision-status-2"]["metadata"]["annotations"][
        names.OUTCOME_ANNOTATION
    ] = FAILED
    cluster.node("a", 2)
    cluster.settle(asked("b", "bad"))
    assert recorded(cluster, 3) == "good"


def test_a_restored_revision_status_has_its_inputs() -> None:
    cluster = Cluster().revision(1, "a").pod("a", 1, "a")
    del cluster.config_maps["revision-status-1"]
    cluster.settle(asked("a", "known"))
    assert recorded(cluster, 1) == "known"


def test_revisions_without_recorded_inputs_stay_unchanged() -> None:
    cluster = Cluster().revision(1, "a")
    assert cluster.settle(asked("a", "now")).desired is not None
    assert cluster.writes == []
    assert recorded(cluster, 1) is None
