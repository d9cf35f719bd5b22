"""Reconciling LoadPolicies: their objects, the accepted version and their status."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kube_scheduler_operator.kube.resource import (
    CONFIG_MAPS,
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    LOAD_POLICIES,
    Resource,
)
from kube_scheduler_operator.operator.loadpolicy import reconcile
from kube_scheduler_operator.scheduling.load.policy import LoadPolicy
from kube_scheduler_operator.scheduling.load.policy_files import read_policy

from .world import World

BAD: dict[str, Any] = {"predicates": [{"name": "cpu_usage_avg_5m", "maxLimit": 65}]}
GOOD: dict[str, Any] = {"predicates": [{"name": "cpu_usage_avg_5m", "maxLimit": "50%"}]}


def test_empty_spec_uses_cranes_policy_and_our_exporter(world: World) -> None:
    world.put()

    world.run()

    assert world.everything() == {
        "ConfigMap load-policy-default", "ConfigMap load-state",
        "DaemonSet node-metrics-default", "Deployment load-annotator-default",
    }  # fmt: skip
    assert read_policy(world.file()).policy == LoadPolicy()
    assert world.run() == []


def test_annotation_families_are_recorded_before_nodes_are_annotated(world: World) -> None:
    world.put(write=["crane"])

    writes = world.run()

    assert writes[0] == "create ConfigMap load-state"
    assert world.written() == "own,crane"


def test_garbage_collection_deletes_everything_except_the_state(world: World) -> None:
    world.installed()

    assert world.remove() == {
        "ConfigMap load-policy-default", "DaemonSet node-metrics-default",
        "Deployment load-annotator-default",
    }  # fmt: skip


def test_editing_the_rules_restarts_no_pod(world: World) -> None:
    world.installed()

    world.put(**GOOD)

    assert world.run() == [
        "replace ConfigMap load-policy-default",
        "replace status LoadPolicy default",
    ]
    assert world.policy()["predicate"] == [{"name": "cpu_usage_avg_5m", "maxLimit": 0.5}]


def test_changing_the_source_deletes_the_exporter(world: World) -> None:
    world.installed()

    world.put(source={"type": "MetricsServer"})

    assert "delete DaemonSet node-metrics-default" in world.run()
    assert world.policy()["source"]["type"] == "MetricsServer"
    assert world.status()["source"] == "MetricsServer"


@pytest.mark.parametrize(
    ("resource", "name"),
    [(DAEMON_SETS, "node-metrics-default"), (DEPLOYMENTS, "load-annotator-default")],
)
def test_modified_workload_is_restored(world: World, resource: Resource, name: str) -> None:
    world.installed()
    spec = world.one(resource, name)["spec"]
    pod = {**spec["template"]["spec"], "priorityClassName": "low"}
    template = {**spec["template"], "spec": pod}

    world.change(resource, name, spec={**spec, "template": template})

    assert world.run() == [f"replace {resource.kind} {name}"]
    assert world.one(resource, name)["spec"] == spec


def test_modified_policy_file_is_restored(world: World) -> None:
    world.installed()
    before = world.file()

    world.change(CONFIG_MAPS, "load-policy-default", data={"policy.json": "{}"})
    world.run()

    assert world.file() == before


def test_lost_record_is_rewritten_and_the_report_stays(world: World) -> None:
    world.installed()
    report = world.one(CONFIG_MAPS, "load-state")["data"]["state.json"]

    world.change(CONFIG_MAPS, "load-state", data={"state.json": report})
    world.run()

    assert world.one(CONFIG_MAPS, "load-state")["data"] == {"state.json": report, "written": "own"}


# --- bad specs --------------------------------------------------------------------------------


def test_never_valid_policy_creates_nothing(world: World) -> None:
    world.put(**BAD)

    assert world.run() == ["replace status LoadPolicy default"]
    status, reason, message = world.condition("Accepted")
    assert (status, reason) == ("False", "NotInUse")
    assert (
        'spec.predicates[0].maxLimit: 65 is not a fraction between 0 and 1; write 0.65 or "65%"'
        in message
    )
    assert "default: no version of it is valid" in world.degraded()


def test_invalid_edit_keeps_the_accepted_version_in_use(world: World) -> None:
    world.installed(**GOOD)
    before = world.file()

    world.put(**BAD)

    assert world.run() == ["replace status LoadPolicy default"]
    assert world.file() == before
    status, reason, message = world.condition("Accepted")
    assert (status, reason) == ("False", "LastAcceptedInUse")
    assert message.startswith("generation 1 stays in use\n")
    assert world.status()["accepted"] == GOOD
    assert world.condition("Available")[0] == "True"
    assert "generation 1 stays in use" in world.degraded()


def test_objects_of_the_accepted_version_are_restored(world: World) -> None:
    """Also by a restarted operator: the API is its only memory."""
    world.installed(**GOOD)
    before = world.file()
    world.put(**BAD)
    world.run()

    world.change(CONFIG_MAPS, "load-policy-default", data={"policy.json": "{}"})

    assert "replace ConfigMap load-policy-default" in world.run()
    assert world.file() == before


def test_fixed_policy_is_accepted_again(world: World) -> None:
    world.installed()
    world.put(**BAD)
    world.run()

    world.put(**GOOD)
    world.run()

    assert world.condition("Accepted")[0] == "True"
    assert world.policy()["predicate"][0]["maxLimit"] == 0.5
    assert world.degraded() == ""
    assert any("Accepted is True" in event for event in world.events)


# --- several ----------------------------------------------------------------------------------


def test_older_of_two_policies_is_used(world: World) -> None:
    world.installed()

    world.put("younger", write=["safe"])
    world.run()

    assert world.condition("Accepted", "younger")[:2] == ("False", "AnotherPolicy")
    assert '"default" is older' in world.condition("Accepted", "younger")[2]
    assert not world.find(DEPLOYMENTS, "load-annotator-younger")
    assert world.written() == "own"
    assert 'younger: LoadPolicy "default" is older' in world.degraded()
    assert "default:" not in world.degraded().replace("younger: ", "")


def test_younger_policy_takes_over_when_the_older_is_deleted(world: World) -> None:
    world.installed(write=["crane"])
    world.put("younger", write=["safe"])
    world.run()

    world.remove()
    world.run()

    assert world.condition("Accepted", "younger")[0] == "True"
    assert not world.find(JOBS, "load-cleanup")
    # The younger policy's annotator removes families that only the older one wrote.
    assert world.policy("younger")["remove"] == ["crane"]
    assert world.written() == "own,crane,safe"


# --- annotations that are no longer wanted ----------------------------------------------------


def test_unwanted_family_is_removed_and_then_forgotten(world: World) -> None:
    world.installed(write=["crane", "safe"])
    world.put(write=["safe"])
    world.run()
    assert world.policy()["remove"] == ["crane"]
    assert world.written() == "own,crane,safe"

    world.cycle(removed=["crane"])
    world.run()

    assert world.written() == "own,safe"
    assert world.policy()["remove"] == []
    assert world.run() == []


def test_report_about_another_policy_file_is_ignored(world: World) -> None:
    """The annotator may have removed crane's annotations before they were requested again."""
    world.installed(write=["crane"])
    world.put()
    world.run()

    world.cycle(removed=["crane"], policy="0123456789")
    world.run()

    assert world.written() == "own,crane"
    assert world.policy()["remove"] == ["crane"]


def test_written_family_is_never_forgotten(world: World) -> None:
    world.installed(write=["crane"])

    world.cycle(removed=["crane", "own"])
    world.run()

    assert world.written() == "own,crane"


# --- status -----------------------------------------------------------------------------------


def test_status_of_a_working_policy(world: World) -> None:
    world.installed()

    status = world.status()
    assert status["nodes"] == {"total": 3, "known": 3, "stale": 0, "missing": 0}
    assert status["lastCycle"] == "2026-01-01T00:00:01Z"
    assert (status["observedGeneration"], status["acceptedGeneration"]) == (1, 1)
    assert world.condition("Available")[2] == "load known for 3 of 3 nodes"
    assert world.condition("Degraded")[0] == "False"
    assert world.degraded() == ""
    assert any("Available is True" in event for event in world.events)


def test_not_available_until_its_programs_run(world: World) -> None:
    world.put()
    world.run()
    assert world.condition("Available") == (
        "False", "Starting", "no pod of the annotator is Ready"
    )  # fmt: skip

    world.come_up()
    world.run()

    assert world.condition("Available")[1:] == ("Starting", "the first cycle has not finished")
    assert world.degraded() == ""
    assert world.reconciled().requeue_after == pytest.approx(121.0)


def test_programs_that_never_start_are_reported(world: World) -> None:
    world.put()
    world.run()

    world.cluster.now += timedelta(seconds=121)
    world.run()

    assert world.condition("Available")[1] == "NoReadyAnnotator"
    assert world.degraded() == "default: no pod of the annotator is Ready"


def test_silent_annotator_is_reported(world: World) -> None:
    world.installed()
    wait = world.reconciled().requeue_after
    assert wait is not None

    world.cluster.now += timedelta(seconds=wait)
    world.run()

    status, reason, message = world.condition("Available")
    assert (status, reason) == ("False", "NoCycle")
    assert message == "the annotator has not reported a cycle for 421 s"
    assert message in world.degraded()
    assert world.condition("Degraded")[:2] == ("True", "NoCycle")


def test_a_report_from_the_future_does_not_hide_a_silent_annotator(world: World) -> None:
    world.installed()
    world.reconciled()
    world.cluster.now -= timedelta(seconds=1200)
    world.run()
    assert world.condition("Available")[:2] == ("False", "NoCycle")


def test_unknown_nodes_are_named_without_degrading_the_cluster(
    world: World,
) -> None:
    world.installed()

    world.cycle(
        known=1, stale=["b"], staleCount=1, missing=["c"], missingCount=1, error="b: refused"
    )
    world.run()

    assert world.condition("Available")[0] == "True"
    status, reason, message = world.condition("Degraded")
    assert (status, reason) == ("True", "NodesUnknown")
    assert message == (
        "load stale for 1 of 3 nodes (b); load never known for 1 of 3 nodes (c): "
        "b: refused; pods are placed there as if the load were average"
    )
    assert (world.status()["staleNodes"], world.status()["missingNodes"]) == (["b"], ["c"])
    assert world.degraded() == ""


def test_source_without_any_answer_degrades_the_cluster(world: World) -> None:
    world.installed()

    world.cycle(known=0, missingCount=3, missing=["a", "b", "c"], error="metrics.k8s.io: 404")
    world.run()

    assert world.condition("Available") == (
        "False", "NoLoadKnown", "no node's load is known: metrics.k8s.io: 404"
    )  # fmt: skip
    assert "metrics.k8s.io: 404" in world.degraded()


def test_where_no_exporter_is_created_the_message_names_the_usual_reason(world: World) -> None:
    """Pod Security refuses Pods with access to their node; only events report it."""
    world.installed()
    counts = {"desiredNumberScheduled": 3, "currentNumberScheduled": 0, "numberReady": 0}
    world.change(DAEMON_SETS, "node-metrics-default", status=counts)
    world.cycle(known=0, error="10.0.0.1:19101: connection refused")
    world.run()
    for condition in ("Available", "Degraded"):
        message = world.condition(condition)[2]
        assert "no Pod of node-metrics exists on any of 3 nodes" in message
        assert "daemonset node-metrics-default" in message
        assert "MetricsServer" in message
    world.change(
        DAEMON_SETS, "node-metrics-default", status={**counts, "currentNumberScheduled": 3}
    )
    world.run()
    assert "node-metrics is Ready on 0 of 3 nodes" in world.condition("Degraded")[2]


def test_exporters_that_are_not_ready_are_counted(world: World) -> None:
    world.installed()

    counts = {"desiredNumberScheduled": 3, "numberReady": 2}
    world.change(DAEMON_SETS, "node-metrics-default", status=counts)
    world.run()

    message = world.condition("Degraded")[2]
    assert message.startswith("node-metrics is Ready on 2 of 3 nodes")
    assert "-l app=node-metrics" in message, "its Pods are not read, and show why"
    assert "port 19101" in message


@pytest.mark.parametrize(
    "text",
    ["[]", "{", "null", '{"at": 7, "nodes": "x", "stale": 1, "removed": null, "policy": {}}'],
)
def test_invalid_report_is_ignored(world: World, text: str) -> None:
    world.installed()

    world.change(CONFIG_MAPS, "load-state", data={"written": "own", "state.json": text})
    world.run()

    assert world.condition("Available")[1] == "Starting"


def test_rejected_write_is_reported_first(world: World) -> None:
    world.forbidden = {DEPLOYMENTS}
    world.put()

    world.run()

    status, reason, message = world.condition("Degraded")
    assert (status, reason) == ("True", "SyncError")
    assert "403" in message
    assert "403" in world.degraded()

    world.forbidden = set()
    world.run()
    assert "403" not in world.degraded()


# --- the kind ---------------------------------------------------------------------------------


def test_kind_that_is_not_installed_is_not_treated_as_no_policy(world: World) -> None:
    world.installed()
    world.remove()
    world.served = False

    assert world.run() == []
    assert world.degraded() == ""


def test_policy_being_deleted_counts_as_absent(world: World) -> None:
    world.installed()
    policy = world.one(LOAD_POLICIES, "default")
    leaving = {**policy["metadata"], "deletionTimestamp": "2026-01-01T00:01:00Z"}

    world.change(LOAD_POLICIES, "default", metadata=leaving)

    assert "create Job load-cleanup" in world.run()


def test_a_defect_leaves_nothing_called_available(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> Any:
        raise ZeroDivisionError("x")

    world.installed()
    assert world.condition("Available")[0] == "True"
    monkeypatch.setattr(reconcile, "effective_request", broken)
    world.run()
    assert world.condition("Degraded")[:2] == ("True", "OperatorError")
    assert world.condition("Available")[:2] == ("Unknown", "OperatorError")
