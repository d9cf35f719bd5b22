"""`spec.assign`: what of it is in effect, who comes first, and when it is taken away."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.kube.resource import PODS
from kube_scheduler_operator.operator.model.snapshot import AssignmentWay, PendingPod, Snapshot
from kube_scheduler_operator.operator.secondary import assignment, reconcile
from kube_scheduler_operator.operator.secondary.assignment import (
    assigned_pods,
    chosen,
    described,
    overlap,
)

from ....builders import kubescheduler
from .world import NAME, NAMESPACE, World

BATCH = {"namespaceSelector": {"matchLabels": {"team": "batch"}}}


def scheduler(
    pods: dict[str, Any], *others: dict[str, Any], name: str = "packed", **metadata: Any
) -> dict[str, Any]:
    found: dict[str, Any] = {"schedulerName": name, "pods": pods}
    if others:
        found["except"] = list(others)
    return {"metadata": {"name": name, **metadata}, "status": {"assignment": found}}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, None),
        ({"assign": None}, None),
        ({"assign": {}}, {}),
        ({"assign": {"namespaceSelector": {}, "podSelector": None, "priorityClassNames": []}}, {}),
        ({"assign": {"podSelector": {"matchLabels": {}, "matchExpressions": []}}}, {}),
        ({"assign": BATCH}, BATCH),
        ({"assign": {"priorityClassNames": ["low"]}}, {"priorityClassNames": ["low"]}),
    ],
)
def test_absent_assigns_nothing_and_an_empty_field_restricts_nothing(
    spec: dict[str, Any], expected: object
) -> None:
    assert assigned_pods({"spec": spec}) == expected


@pytest.mark.parametrize(
    ("pods", "namespace", "labels", "priority", "expected"),
    [
        ({}, {}, {}, "", True),
        (BATCH, {"team": "batch"}, {}, "", True),
        (BATCH, {"team": "web"}, {}, "", False),
        (BATCH, {}, {"team": "batch"}, "", False),
        ({"podSelector": {"matchLabels": {"a": "b"}}}, {}, {"a": "b", "c": "d"}, "", True),
        ({"podSelector": {"matchLabels": {"a": "b"}}}, {}, {"a": "c"}, "", False),
        ({"priorityClassNames": ["low", "none"]}, {}, {}, "none", True),
        ({"priorityClassNames": ["low"]}, {}, {}, "", False),
        ({**BATCH, "priorityClassNames": ["low"]}, {"team": "batch"}, {}, "low", True),
        ({**BATCH, "priorityClassNames": ["low"]}, {"team": "batch"}, {}, "high", False),
    ],
)
def test_all_fields_must_select_a_pod(
    pods: dict[str, Any],
    namespace: dict[str, str],
    labels: dict[str, str],
    priority: str,
    expected: bool,
) -> None:
    found = chosen([scheduler(pods)], namespace, labels, priority)
    assert found == ("packed" if expected else "")


def test_what_another_one_keeps_is_not_chosen() -> None:
    one = scheduler({}, BATCH, name="all")
    assert chosen([one], {"team": "batch"}, {}, "") == ""
    assert chosen([one], {}, {}, "") == "all"
    assert chosen([one, scheduler(BATCH)], {"team": "batch"}, {}, "") == "packed"


def test_a_scheduler_that_is_deleted_gets_no_more_pods() -> None:
    assert chosen([scheduler({}, deletionTimestamp="2026-01-01T00:00:00Z")], {}, {}, "") == ""


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ({}, {}, True),
        ({}, BATCH, True),
        (BATCH, {"namespaceSelector": {"matchLabels": {"team": "web"}}}, False),
        (BATCH, {"podSelector": {"matchLabels": {"team": "web"}}}, True),
        ({"priorityClassNames": ["a"]}, {"priorityClassNames": ["b"]}, False),
        ({"priorityClassNames": ["a", "c"]}, {"priorityClassNames": ["b", "c"]}, True),
    ],
)
def test_two_overlap_if_a_pod_can_exist_that_both_select(
    one: dict[str, Any], other: dict[str, Any], expected: bool
) -> None:
    assert overlap(one, other) is expected
    assert overlap(other, one) is expected


def test_pods_are_described_in_words() -> None:
    assert described({}) == "all that may be assigned"
    pods = {
        **BATCH,
        "podSelector": {"matchExpressions": [{"key": "gpu", "operator": "DoesNotExist"}]},
        "priorityClassNames": ["a", "b"],
    }
    assert described(pods) == (
        "those in namespaces with team=batch, with labels !gpu, with PriorityClass a or b"
    )


# --- in a reconcile ---------------------------------------------------------------------------


class Assigning(World):
    """A world in which the API server has a policy.

    Attributes:
        state: `spec.managementState` of KubeScheduler; None if that does not exist.
    """

    way: AssignmentWay | None = AssignmentWay.POLICY
    state: str | None = None

    def snapshot(self) -> Snapshot:
        snapshot = replace(super().snapshot(), assignment_way=self.way)
        if self.state is None:
            return snapshot
        return replace(snapshot, kubescheduler=kubescheduler(managementState=self.state))

    def ready(self, name: str = NAME, **spec: Any) -> None:
        """A SecondaryScheduler whose rollout has ended."""
        self.put(name, **spec)
        self.run()
        self.roll_out(name)
        self.run()

    def assignment(self, name: str = NAME) -> Any:
        return self.status(name).get("assignment")


@pytest.fixture
def assigning() -> Assigning:
    return Assigning()


def test_pods_are_assigned_once_the_scheduler_schedules(assigning: Assigning) -> None:
    assigning.put(assign=BATCH)
    assigning.run()
    assert assigning.assignment() is None
    assert assigning.condition(names.ASSIGNED)[:2] == ("False", assignment.NOT_READY)
    assigning.roll_out()
    assigning.run()
    assert assigning.assignment() == {"schedulerName": NAME, "pods": BATCH}
    assert assigning.condition(names.ASSIGNED) == (
        "True",
        "AsExpected",
        f'new Pods get schedulerName "{NAME}": those in namespaces with team=batch; '
        "by MutatingAdmissionPolicy assignment.kube-scheduler-operator.dev",
    )
    assigning.run()
    assert assigning.writes == []


def test_without_assign_there_is_no_condition_and_no_assignment(assigning: Assigning) -> None:
    assigning.ready(assign={})
    assert assigning.assignment() == {"schedulerName": NAME, "pods": {}}
    assigning.put()
    assigning.run()
    assert assigning.assignment() is None
    with pytest.raises(AssertionError, match="0 conditions of type Assigned"):
        assigning.condition(names.ASSIGNED)


def test_an_edit_of_assign_rolls_nothing_out(assigning: Assigning) -> None:
    assigning.ready(assign={})
    assigning.put(assign=BATCH)
    assigning.run()
    assert assigning.writes == [f"replace status SecondaryScheduler {NAME}"]
    assert assigning.assignment()["pods"] == BATCH


def test_a_scheduler_that_is_away_loses_its_assignment_with_one_event(
    assigning: Assigning,
) -> None:
    assigning.ready(assign=BATCH)
    assigning.no_pods()
    assigning.run()
    assert assigning.assignment() is None
    status, reason, message = assigning.condition(names.ASSIGNED)
    assert (status, reason) == ("False", assignment.NOT_READY)
    assert message == "no scheduler pod is Ready; new Pods go to default-scheduler"
    reported = [event for event in assigning.events if "Assigned is False" in event]
    assert reported == [f'SecondaryScheduler "{NAME}": Assigned is False: {message}']
    assigning.run()
    assert assigning.events == []
    assigning.roll_out()
    assigning.run()
    assert assigning.assignment() == {"schedulerName": NAME, "pods": BATCH}
    assert [event for event in assigning.events if "Assigned is True" in event]


def test_pods_that_are_being_deleted_do_not_count(assigning: Assigning) -> None:
    """They are Ready until their process has ended, as when the Deployment is deleted."""
    assigning.ready(assign=BATCH)
    for pod in assigning.cluster.list(PODS):
        metadata = {**pod["metadata"], "deletionTimestamp": assigning.cluster.clock.stamp()}
        assigning.cluster.keep(PODS, {**pod, "metadata": metadata})
    assigning.run()
    assert assigning.assignment() is None
    assert assigning.status()["readyReplicas"] == 0
    assert assigning.condition(names.AVAILABLE)[:2] == ("False", "NoReadyScheduler")


def test_a_scheduler_that_crashes_again_and_again_gets_no_pods(assigning: Assigning) -> None:
    assigning.ready(assign=BATCH)
    hash_ = assigning.running()

    def passes(seconds: float) -> None:
        assigning.cluster.now += timedelta(seconds=seconds)
        assigning.leases_seen[NAMESPACE, NAME] = assigning.cluster.now

    def restarted(times: int) -> None:
        assigning.no_pods()
        assigning.run()
        assert assigning.assignment() is None
        passes(1)
        container = {"name": names.OPERAND, "ready": True, "restartCount": times, "state": {}}
        ready = {"type": "Ready", "status": "True"}
        assigning.pod(hash_, conditions=[ready], containerStatuses=[container])
        assigning.run()
        assert assigning.condition(names.AVAILABLE)[0] == "True"
        status, reason, message = assigning.condition(names.ASSIGNED)
        assert (status, reason) == ("False", assignment.NOT_READY)
        assert message.startswith("it was restarted less than 10 s ago")
        assert assigning.wait is not None
        assert assigning.wait <= 10

    restarted(1)
    passes(9)
    assigning.run()
    assert assigning.assignment() is None
    restarted(2)
    passes(10)
    assigning.run()
    assert assigning.assignment() == {"schedulerName": NAME, "pods": BATCH}


def test_a_replica_has_time_to_take_over(assigning: Assigning) -> None:
    assigning.ready(assign=BATCH)
    lease = assigning.leases.pop((NAMESPACE, NAME))
    assigning.run()
    assert assigning.condition(names.AVAILABLE)[:2] == ("False", "LeaseNotRenewed")
    assert assigning.assignment() is not None
    wait = assigning.wait
    assert wait is not None
    assert wait <= 15
    assigning.cluster.now += timedelta(seconds=14)
    assigning.run()
    assert assigning.assignment() is not None
    assigning.cluster.now += timedelta(seconds=1)
    assigning.run()
    assert assigning.assignment() is None
    assert assigning.condition(names.ASSIGNED)[1] == assignment.NOT_READY
    # It is given back only to one that schedules.
    assigning.cluster.now += timedelta(seconds=1)
    assigning.run()
    assert assigning.assignment() is None
    assigning.leases[NAMESPACE, NAME] = lease
    assigning.leases_seen[NAMESPACE, NAME] = assigning.cluster.now
    assigning.run()
    assert assigning.assignment() is not None


def test_a_released_lease_has_the_time_of_a_takeover(assigning: Assigning) -> None:
    """In each rollout the leader releases its Lease: without a holder, for a duration of 1 s."""
    assigning.ready(assign=BATCH)
    lease = assigning.leases[NAMESPACE, NAME]
    released = {**lease["spec"], "holderIdentity": "", "leaseDurationSeconds": 1}
    assigning.leases[NAMESPACE, NAME] = {**lease, "spec": released}
    assigning.leases_seen[NAMESPACE, NAME] = assigning.cluster.now
    for seconds in (0.0, 1.0, 4.0, 9.9):  # Available becomes False in between
        assigning.cluster.now += timedelta(seconds=seconds)
        assigning.run()
        assert assigning.assignment() is not None
    assigning.cluster.now += timedelta(seconds=0.2)
    assigning.run()
    assert assigning.assignment() is None


def test_a_scheduler_that_hangs_loses_its_assignment_when_its_lease_expires(
    assigning: Assigning,
) -> None:
    """Its Pod is Ready until its probe has failed three times, which is after half a minute."""
    assigning.ready(assign=BATCH)
    assert assigning.wait is not None
    assert assigning.wait <= 15
    assigning.cluster.now += timedelta(seconds=14.9)
    assigning.run()
    assert assigning.assignment() is not None
    for seconds in (0.1, 2.0, 2.0, 4.0, 20.0):  # Available becomes False in between
        assigning.cluster.now += timedelta(seconds=seconds)
        assigning.run()
        assert assigning.assignment() is None
        status, reason, message = assigning.condition(names.ASSIGNED)
        assert (status, reason) == ("False", assignment.NOT_READY)
        assert f"no renewal of the Lease {NAMESPACE}/{NAME} was observed for 15 s" in message
    assigning.leases_seen[NAMESPACE, NAME] = assigning.cluster.now
    assigning.run()
    assert assigning.assignment() is not None


def test_an_outage_of_the_api_server_withdraws_nothing(assigning: Assigning) -> None:
    """The operator has seen no renewal during it, and no Pod could be created."""
    assigning.ready(assign=BATCH)
    assigning.cluster.now += timedelta(seconds=60)
    assigning.answered_since = None
    assigning.run()
    assert assigning.assignment() is not None
    assigning.answered_since = assigning.cluster.now
    assigning.run()
    assert assigning.assignment() is not None
    assigning.cluster.now += timedelta(seconds=15)
    assigning.run()
    assert assigning.assignment() is None


@pytest.mark.parametrize("state", [None, "Managed", "Unmanaged", "Removed"])
def test_assignments_are_withdrawn_whatever_the_state_of_kubescheduler(
    assigning: Assigning, state: str | None
) -> None:
    assigning.state = state
    assigning.ready(assign=BATCH)
    assert assigning.assignment() is not None
    assigning.no_pods()
    assigning.run()
    assert assigning.assignment() is None
    assert assigning.status()["readyReplicas"] == 0
    assert assigning.condition(names.AVAILABLE)[0] == "False"
    assert assigning.condition(names.ASSIGNED)[0] == "False"


def test_a_defect_does_not_stop_the_withdrawal(
    assigning: Assigning, monkeypatch: pytest.MonkeyPatch
) -> None:
    assigning.ready(assign=BATCH)
    monkeypatch.setattr(reconcile, "plan", _broken)
    assigning.run()
    assert assigning.condition(names.DEGRADED)[:2] == ("True", "OperatorError")
    assert assigning.condition(names.AVAILABLE)[0] == "True"
    assert assigning.assignment() is not None
    assigning.no_pods()
    assigning.run()
    assert assigning.condition(names.AVAILABLE)[0] == "False"
    assert assigning.assignment() is None


def test_a_scheduler_that_cannot_be_observed_gets_no_pods(
    assigning: Assigning, monkeypatch: pytest.MonkeyPatch
) -> None:
    assigning.ready(assign=BATCH)
    monkeypatch.setattr(reconcile, "read_pod", _broken)
    assigning.run()
    assert assigning.assignment() is None
    assert assigning.condition(names.DEGRADED)[:2] == ("True", "OperatorError")
    assert assigning.condition(names.ASSIGNED)[:2] == ("False", assignment.NOT_KNOWN)


def test_a_failed_composition_of_all_does_not_stop_the_withdrawal(
    assigning: Assigning, monkeypatch: pytest.MonkeyPatch
) -> None:
    assigning.ready(assign=BATCH)
    monkeypatch.setattr(reconcile, "effective_secondaries", _broken)
    assigning.no_pods()
    assigning.run()
    assert assigning.assignment() is None
    assert assigning.condition(names.DEGRADED)[:2] == ("True", "OperatorError")


def _broken(*_: Any) -> Any:
    raise ZeroDivisionError("x")


def test_pods_that_wait_for_it_are_named_with_what_to_do(assigning: Assigning) -> None:
    assigning.ready(assign=BATCH)
    assigning.no_pods()
    assigning.run()
    assert NAME not in (assigning.plan().served or ())
    assigning.pending = tuple(
        PendingPod("team", f"job-{number}", str(number), NAME, assigning.cluster.now)
        for number in range(5)
    )
    assigning.run()
    message = assigning.condition(names.ASSIGNED)[2]
    assert message.endswith(
        "; 5 Pods wait for it (team/job-0, team/job-1, team/job-2 and 2 more), and schedulerName "
        "cannot be changed: make this scheduler Ready again, or delete them, so that their "
        "controllers create them for default-scheduler"
    )
    assert assigning.events == []  # the change was reported when it happened


@pytest.mark.parametrize(
    ("way", "directory"),
    [
        (AssignmentWay.NONE_POLICY, "policy"),
        (AssignmentWay.NONE_WEBHOOK, "webhook"),
        (AssignmentWay.NO_SERVICE, "webhook"),
    ],
)
def test_nothing_that_applies_it_is_named_with_the_command(
    assigning: Assigning, way: AssignmentWay, directory: str
) -> None:
    assigning.way = way
    assigning.ready(assign=BATCH)
    status, reason, message = assigning.condition(names.ASSIGNED)
    assert (status, reason) == ("False", assignment.NOT_INSTALLED)
    assert f"kubectl apply --server-side -k deploy/assignment/{directory} " in message
    assert assigning.assignment() is None


def test_until_the_way_is_known_nothing_changes(assigning: Assigning) -> None:
    assigning.way = None
    assigning.ready(assign=BATCH)
    assert assigning.condition(names.ASSIGNED)[:2] == ("False", assignment.NOT_KNOWN)
    assert assigning.assignment() is None
    assigning.way = AssignmentWay.POLICY
    assigning.run()
    assert assigning.assignment() is not None
    assigning.way = None  # a new process has not looked yet
    assigning.run()
    assert assigning.assignment() is not None
    assert assigning.events == []


def test_an_operator_that_may_not_look_assigns(assigning: Assigning) -> None:
    assigning.way = AssignmentWay.UNREADABLE
    assigning.ready(assign=BATCH)
    assert assigning.condition(names.ASSIGNED)[0] == "True"


def test_the_older_one_comes_first_and_the_other_reports_it(assigning: Assigning) -> None:
    pods = {"podSelector": {"matchLabels": {"app": "web"}}}
    assigning.ready("a", born=1, assign=pods)
    assigning.ready("b", born=0, assign=BATCH)
    assert assigning.assignment("b") == {"schedulerName": "b", "pods": BATCH}
    assert assigning.assignment("a") == {"schedulerName": "a", "pods": pods, "except": [BATCH]}
    assert (
        'SecondaryScheduler "b" can select the same Pods'
        in (assigning.condition(names.WARNINGS, "a")[2])
    )
    assert assigning.condition(names.WARNINGS, "b")[0] == "False"


def test_one_without_a_selector_comes_last(assigning: Assigning) -> None:
    assigning.ready("a", born=0, assign={})
    assigning.ready("b", born=1, assign=BATCH)
    assert assigning.assignment("a")["except"] == [BATCH]
    assert "except" not in assigning.assignment("b")


def test_pods_of_one_that_is_away_go_to_the_next(assigning: Assigning) -> None:
    assigning.ready("a", born=0, assign=BATCH)
    assigning.ready("b", born=1, assign={})
    assigning.no_pods(name="a")
    assigning.run()
    assert assigning.assignment("a") is None
    assert "except" not in assigning.assignment("b")


def test_those_that_cannot_select_the_same_pod_do_not_know_each_other(
    assigning: Assigning,
) -> None:
    other = {"namespaceSelector": {"matchLabels": {"team": "web"}}}
    assigning.ready("a", born=0, assign=BATCH)
    assigning.ready("b", born=1, assign=other)
    assert assigning.assignment("b") == {"schedulerName": "b", "pods": other}
    assert assigning.condition(names.WARNINGS, "b")[0] == "False"


def test_a_new_name_is_assigned_after_every_pod_serves_it(assigning: Assigning) -> None:
    assigning.ready(assign={})
    old = assigning.running()
    assigning.put(assign={}, profiles=[{"schedulerName": "new"}, {"schedulerName": NAME}])
    assigning.run()
    new = assigning.running()
    assert new != old
    # One Pod of each content is Ready: both serve the old name only.
    assigning.no_pods()
    assigning.pod(old, 0)
    assigning.pod(new, 1)
    assigning.run()
    assert assigning.assignment()["schedulerName"] == NAME
    assigning.roll_out()
    assigning.run()
    assert assigning.assignment()["schedulerName"] == "new"


def test_a_name_that_not_every_pod_serves_is_not_assigned(assigning: Assigning) -> None:
    assigning.ready(assign={})
    old = assigning.running()
    assigning.put(assign={}, profiles=[{"schedulerName": "new"}])
    assigning.run()
    assigning.no_pods()
    assigning.pod(old, 0)
    assigning.pod(assigning.running(), 1)
    assigning.run()
    assert assigning.assignment() is None
    assert assigning.condition(names.ASSIGNED)[1] == assignment.ROLLING_OUT


def test_more_others_than_the_status_holds_withdraw_the_assignment(
    assigning: Assigning, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assignment, "MAX_EXCEPT", 1)
    for number in range(3):
        assigning.ready(f"s{number}", born=number, assign=BATCH)
    assert assigning.assignment("s1")["except"] == [BATCH]
    assert assigning.condition(names.ASSIGNED, "s2")[1] == assignment.TOO_MANY


def test_a_scheduler_whose_spec_has_an_error_keeps_what_runs_assigned(
    assigning: Assigning,
) -> None:
    assigning.ready(assign=BATCH)
    assigning.put(assign=BATCH, config={"parallelism": -1})
    assigning.run()
    assert assigning.condition(names.DEGRADED)[0] == "True"
    assert assigning.assignment() == {"schedulerName": NAME, "pods": BATCH}
