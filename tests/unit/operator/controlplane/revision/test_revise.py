"""Cutting revisions: rows of the reference (library-go, revision controller) and our own."""

from __future__ import annotations

from collections.abc import Container, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.base.times import rfc3339
from kube_scheduler_operator.operator.controlplane.revision.content import RevisionContent
from kube_scheduler_operator.operator.controlplane.revision.revise import RevisionResult, revise
from kube_scheduler_operator.operator.model.operand_pods import NodeDisk
from kube_scheduler_operator.operator.model.plan import Action, Create, Delete, Replace

from .....builders import node, snapshot

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
        self.disks: dict[str, NodeDisk] = {}
        self.nodes: dict[str, Any] = {}
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

    def disk(self, node: str, revision: int, text: str = "", **fields: Any) -> Cluster:
        """What a program on a node found on its disk."""
        known = {"revision": revision, "newest": revision, "content": content(text).hash}
        self.disks[node] = NodeDisk(begun=NOW, **{**known, **fields})
        return self

    def step(
        self, content: RevisionContent | None, swapping: Container[int] = ()
    ) -> RevisionResult:
        status = {
            "latestAvailableRevision": self.latest,
            "nodeStatuses": list(self.entries.values()),
        }
        observed = snapshot(
            now=NOW,
            kubescheduler={"metadata": {"name": "cluster"}, "spec": {}, "status": status},
            config_maps=self.config_maps,
            operand_pods=self.pods,
            nodes=self.nodes,
        )
        return revise(observed, content, swapping, self.disks)

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


def test_numbers_that_only_disks_have_are_not_reused() -> None:
    cluster = Cluster().disk("n", 7, "x")
    revised = cluster.settle(content("y"))
    assert numbers(cluster) == [8]
    assert revised.latest == 8


def test_content_that_only_disks_have_is_recognized() -> None:
    cluster = Cluster().disk("n", 7, "x")
    cluster.settle(content("x"))
    assert numbers(cluster) == [7]


@pytest.mark.parametrize("label", ["2", "99", "1000000000", "9223372036854775807", "9" * 63, "٣"])
def test_a_label_never_makes_a_number(label: str) -> None:
    cluster = Cluster().revision(1, "a", INSTALLED).node("n", 1).pod("n", 1, "a")
    cluster.pods["n"]["metadata"]["labels"][names.REVISION_LABEL] = label
    cluster.settle(content("b"))
    assert numbers(cluster) == [1, 2]
    assert cluster.latest == 2


def test_revisions_that_the_api_forgot_are_not_cut_again() -> None:
    # Etcd was restored: nodes have run revisions 3 to 5 since.
    cluster = Cluster().revision(2, "b", INSTALLED).node("n", 2).disk("n", 5, "e")
    cluster.settle(content("c"))
    assert numbers(cluster) == [2, 6]


def test_a_number_that_a_node_has_with_other_content_is_replaced_by_a_higher_one() -> None:
    cluster = Cluster().revision(2, "b", INSTALLED).revision(3, "c").node("n", 2)
    cluster.disk("n", 2, newest=3, taken=3)
    revised = cluster.step(content("c"))
    assert revised.desired is None, "no node moves to the number that is taken"
    cluster.settle(content("c"))
    assert numbers(cluster) == [2, 3, 4]
    reason = cluster.config_maps["revision-status-4"]["data"]["reason"]
    assert reason == "a node has another revision 3 on its disk"


def looking(age: float) -> Cluster:
    """A cluster whose node shows a revision that the API does not know."""
    cluster = Cluster().revision(2, "b", INSTALLED).node("n", 2).pod("n", 7)
    cluster.pods["n"]["metadata"]["creationTimestamp"] = rfc3339(NOW - timedelta(seconds=age))
    cluster.nodes["n"] = node("n")
    return cluster


def test_no_number_is_cut_before_a_look_at_a_disk_that_may_have_it() -> None:
    cluster = looking(20)
    revised = cluster.step(content("c"))
    assert revised.actions == ()
    assert revised.requeue_after == pytest.approx(40.0)


def test_a_label_delays_a_revision_for_a_minute_at_most() -> None:
    cluster = looking(61)
    cluster.settle(content("c"))
    assert numbers(cluster) == [2, 3]


def test_a_disk_that_contradicts_the_label_ends_the_wait() -> None:
    cluster = looking(20)
    at = rfc3339(NOW - timedelta(seconds=10))
    state = {"running": {"startedAt": at}}
    cluster.pods["n"]["status"] = {"containerStatuses": [{"name": names.OPERAND, "state": state}]}
    cluster.disk("n", 2, "b").settle(content("c"))
    assert numbers(cluster) == [2, 3]


def test_a_cordoned_node_is_not_waited_for() -> None:
    cluster = looking(20)
    cluster.nodes["n"] = node("n", unschedulable=True)
    cluster.settle(content("c"))
    assert numbers(cluster) == [2, 3]


def test_an_implausible_number_on_a_disk_is_reported_and_does_not_count() -> None:
    cluster = Cluster().revision(2, "b", INSTALLED).node("n", 2).disk("n", 2, newest=2003)
    revised = cluster.settle(content("c"))
    assert numbers(cluster) == [2, 3]
    assert 'node "n" has revision 2003' in revised.problem
    assert "remove its directory" in revised.problem


def test_a_sealed_revision_without_annotations_and_without_a_record_keeps_its_content() -> None:
    # KubeScheduler was created again, and the annotations were removed.
    cluster = Cluster().revision(1, "a", INSTALLED).revision(2, "b", ready=False)
    cluster.config_maps["revision-status-2"]["immutable"] = True
    cluster.latest = 0
    cluster.settle(content("c"))
    assert cluster.config_maps["config-2"]["data"] == {"key": "config b"}
    assert numbers(cluster) == [1, 2, 3]


def forged(cluster: Cluster, number: int, text: str, *, complete: bool = False) -> Cluster:
    """A ready revision that the operator did not advertise."""
    latest, copies = cluster.latest, KUBEADM.parts if complete else ()
    cluster.revision(number, text, copies=copies)
    cluster.latest = latest
    return cluster


@pytest.mark.parametrize("number", [9, 4000, 1_000_000_000, 2**63 - 1, 10**30])
def test_a_revision_status_without_its_parts_makes_no_number(number: int) -> None:
    cluster = forged(Cluster().revision(2, "b", INSTALLED).node("n", 2), number, "x")
    revised = cluster.settle(content("c"))
    assert cluster.latest == 3
    assert f"revision-status-{number} in" in revised.problem
    assert "delete it" in revised.problem


def test_a_forged_hash_makes_no_number() -> None:
    cluster = forged(Cluster().revision(2, "b", INSTALLED).node("n", 2), 9, "x", complete=True)
    cluster.config_maps["revision-status-9"]["data"]["hash"] = content("y").hash
    cluster.settle(content("c"))
    assert cluster.latest == 3


def test_a_whole_revision_counts_up_to_a_plausible_jump() -> None:
    cluster = forged(Cluster().revision(2, "b", INSTALLED).node("n", 2), 9, "x", complete=True)
    cluster.settle(content("c"))
    assert cluster.latest == 10
    cluster = forged(Cluster().revision(2, "b", INSTALLED).node("n", 2), 1003, "x", complete=True)
    assert "revision-status-1003" in cluster.settle(content("c")).problem
    assert cluster.latest == 3


def test_without_any_record_whole_revisions_count() -> None:
    # KubeScheduler was created again.
    cluster = forged(Cluster(), 4000, "x", complete=True)
    cluster.settle(content("c"))
    assert numbers(cluster) == [4000, 4001]


def test_a_cluster_that_has_an_impossible_number_recovers() -> None:
    cluster = Cluster().revision(5, "e", INSTALLED).node("n", 2**63 - 1).pod("n", 5, "e")
    cluster.revision(2**63 - 1, "x")
    revised = cluster.step(content("c"))
    assert f"status.latestAvailableRevision {2**63 - 1} is larger than" in revised.problem
    cluster.latest = 0  # the status is written without it
    cluster.settle(content("c"))
    assert cluster.latest == 6


def test_the_last_number_is_not_exceeded() -> None:
    cluster = Cluster().revision(1_000_000_000, "b", INSTALLED).node("n", 1_000_000_000)
    revised = cluster.settle(content("c"))
    assert cluster.writes == []
    assert "no revision number is left" in revised.problem
    assert "set managementState to Removed" in revised.problem


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
