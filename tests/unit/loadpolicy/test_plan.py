"""One LoadPolicy: what is made for it, what it is held to, and what its status says."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kube_scheduler_operator.kube.resource import (
    CONFIG_MAPS,
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    LOAD_POLICIES,
    Resource,
)
from kube_scheduler_operator.load.policy import LoadPolicy
from kube_scheduler_operator.load.policy_files import read_policy

from .world import World

BAD = {"predicates": [{"name": "cpu_usage_avg_5m", "maxLimit": 65}]}
GOOD = {"predicates": [{"name": "cpu_usage_avg_5m", "maxLimit": "50%"}]}


def test_an_empty_spec_runs_with_cranes_policy_and_our_exporter(world: World) -> None:
    world.put()

    world.run()

    assert world.everything() == {
        "ConfigMap load-policy-default", "ConfigMap load-state",
        "DaemonSet node-metrics-default", "Deployment load-annotator-default",
    }  # fmt: skip
    assert read_policy(world.file()).policy == LoadPolicy()
    assert world.run() == []


def test_what_nodes_may_have_is_written_down_before_anything_writes_on_nodes(world: World) -> None:
    world.put(write=["crane"])

    writes = world.run()

    assert writes[0] == "create ConfigMap load-state"
    assert world.written() == "own,crane"


def test_everything_but_that_memory_goes_with_the_policy(world: World) -> None:
    world.installed()

    assert world.remove() == {
        "ConfigMap load-policy-default", "DaemonSet node-metrics-default",
        "Deployment load-annotator-default",
    }  # fmt: skip


def test_an_edit_of_the_rules_restarts_nothing(world: World) -> None:
    world.installed()

    world.put(**GOOD)

    assert world.run() == ["replace ConfigMap load-policy-default", "status LoadPolicy default"]
    assert world.policy()["predicate"] == [{"name": "cpu_usage_avg_5m", "maxLimit": 0.5}]


def test_another_source_takes_the_exporter_away(world: World) -> None:
    world.installed()

    world.put(source={"type": "MetricsServer"})

    assert "delete DaemonSet node-metrics-default" in world.run()
    assert world.policy()["source"]["type"] == "MetricsServer"
    assert world.status()["source"] == "MetricsServer"


@pytest.mark.parametrize(
    ("resource", "name"),
    [(DAEMON_SETS, "node-metrics-default"), (DEPLOYMENTS, "load-annotator-default")],
)
def test_what_somebody_changed_is_put_back(world: World, resource: Resource, name: str) -> None:
    world.installed()
    spec = world.one(resource, name)["spec"]
    pod = {**spec["template"]["spec"], "priorityClassName": "low"}
    template = {**spec["template"], "spec": pod}

    world.change(resource, name, spec={**spec, "template": template})

    assert world.run() == [f"replace {resource.kind} {name}"]
    assert world.one(resource, name)["spec"] == spec


def test_an_edited_file_is_put_back(world: World) -> None:
    world.installed()
    before = world.file()

    world.change(CONFIG_MAPS, "load-policy-default", data={"policy.json": "{}"})
    world.run()

    assert world.file() == before


def test_a_lost_memory_is_written_anew_and_the_annotators_words_stay(world: World) -> None:
    world.installed()
    said = world.one(CONFIG_MAPS, "load-state")["data"]["state.json"]

    world.change(CONFIG_MAPS, "load-state", data={"state.json": said})
    world.run()

    assert world.one(CONFIG_MAPS, "load-state")["data"] == {"state.json": said, "written": "own"}


# --- bad specs --------------------------------------------------------------------------------


def test_a_policy_that_never_was_good_does_nothing(world: World) -> None:
    world.put(**BAD)

    assert world.run() == ["status LoadPolicy default"]
    status, reason, message = world.condition("Accepted")
    assert (status, reason) == ("False", "LeftOut")
    assert (
        'spec.predicates[0].maxLimit: 65 is not a fraction between 0 and 1; write 0.65 or "65%"'
        in message
    )
    assert "default: no version of it can be used" in world.degraded()


def test_a_bad_edit_leaves_the_accepted_version_in_force(world: World) -> None:
    world.installed(**GOOD)
    before = world.file()

    world.put(**BAD)

    assert world.run() == ["status LoadPolicy default"]
    assert world.file() == before
    status, reason, message = world.condition("Accepted")
    assert (status, reason) == ("False", "Held")
    assert message.startswith("generation 1 stays in force\n")
    assert world.status()["accepted"] == GOOD
    assert world.condition("Available")[0] == "True"
    assert "generation 1 stays in force" in world.degraded()


def test_what_is_held_is_kept_as_it_should_be(world: World) -> None:
    """Also by an operator that has just been started: the API is the only memory."""
    world.installed(**GOOD)
    before = world.file()
    world.put(**BAD)
    world.run()

    world.change(CONFIG_MAPS, "load-policy-default", data={"policy.json": "{}"})

    assert "replace ConfigMap load-policy-default" in world.run()
    assert world.file() == before


def test_mended_it_is_in_force_again(world: World) -> None:
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


def test_the_older_of_two_has_the_nodes(world: World) -> None:
    world.installed()

    world.put("younger", born=5, write=["safe"])
    world.run()

    assert world.condition("Accepted", "younger")[:2] == ("False", "AnotherPolicy")
    assert '"default" is older' in world.condition("Accepted", "younger")[2]
    assert not world.find(DEPLOYMENTS, "load-annotator-younger")
    assert world.written() == "own"
    assert 'younger: LoadPolicy "default" is older' in world.degraded()
    assert "default:" not in world.degraded().replace("younger: ", "")


def test_it_takes_over_when_the_older_one_goes(world: World) -> None:
    world.installed(write=["crane"])
    world.put("younger", born=5, write=["safe"])
    world.run()

    world.remove()
    world.run()

    assert world.condition("Accepted", "younger")[0] == "True"
    assert not world.find(JOBS, "load-cleanup")
    # What the older one wrote and the younger does not is taken away by its annotator.
    assert world.policy("younger")["remove"] == ["crane"]
    assert world.written() == "own,crane,safe"


# --- annotations that are no longer wanted ----------------------------------------------------


def test_what_is_no_longer_written_is_taken_away_and_then_forgotten(world: World) -> None:
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


def test_what_an_annotator_says_of_another_file_counts_for_nothing(world: World) -> None:
    """It may have taken crane's annotations away before they were wanted again."""
    world.installed(write=["crane"])
    world.put()
    world.run()

    world.cycle(removed=["crane"], policy="0123456789")
    world.run()

    assert world.written() == "own,crane"
    assert world.policy()["remove"] == ["crane"]


def test_what_is_wanted_is_never_forgotten(world: World) -> None:
    world.installed(write=["crane"])

    world.cycle(removed=["crane", "own"])
    world.run()

    assert world.written() == "own,crane"


# --- status -----------------------------------------------------------------------------------


def test_the_status_of_one_that_works(world: World) -> None:
    world.installed()

    status = world.status()
    assert status["nodes"] == {"total": 3, "known": 3, "stale": 0, "missing": 0}
    assert status["lastCycle"] == "2026-01-01T00:00:00Z"
    assert (status["observedGeneration"], status["acceptedGeneration"]) == (1, 1)
    assert world.condition("Available")[2] == "the load of 3 of 3 nodes is known"
    assert world.condition("Degraded")[0] == "False"
    assert world.degraded() == ""
    assert any("Available is True" in event for event in world.events)


def test_until_its_programs_run_it_is_not_available(world: World) -> None:
    world.put()
    world.run()
    assert world.condition("Available") == (
        "False", "Starting", "no pod of the annotator is Ready"
    )  # fmt: skip

    world.come_up()
    world.run()

    assert world.condition("Available")[1:] == ("Starting", "the first cycle is not over")
    assert world.degraded() == ""
    assert world.looked().requeue_after == pytest.approx(121.0)


def test_programs_that_never_come_up_are_told(world: World) -> None:
    world.put()
    world.run()

    world.now += timedelta(seconds=121)
    world.run()

    assert world.condition("Available")[1] == "NoReadyAnnotator"
    assert world.degraded() == "default: no pod of the annotator is Ready"


def test_an_annotator_that_says_nothing(world: World) -> None:
    world.installed()
    wait = world.looked().requeue_after
    assert wait is not None

    world.now += timedelta(seconds=wait)
    world.run()

    status, reason, message = world.condition("Available")
    assert (status, reason) == ("False", "NoCycle")
    assert message == "the annotator has not reported a cycle for 421 s"
    assert message in world.degraded()
    assert world.condition("Degraded")[:2] == ("True", "NoCycle")


def test_nodes_of_which_nothing_is_known_are_named_and_do_not_alarm_the_cluster(
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
        "the load of 1 of 3 nodes is stale (b); the load of 1 of 3 nodes was never known (c): "
        "b: refused; pods are placed there as if it were average"
    )
    assert (world.status()["staleNodes"], world.status()["missingNodes"]) == (["b"], ["c"])
    assert world.degraded() == ""


def test_a_source_that_answers_nothing_does(world: World) -> None:
    world.installed()

    world.cycle(known=0, missingCount=3, missing=["a", "b", "c"], error="metrics.k8s.io: 404")
    world.run()

    assert world.condition("Available") == (
        "False", "NoLoadKnown", "the load of no node is known: metrics.k8s.io: 404"
    )  # fmt: skip
    assert "metrics.k8s.io: 404" in world.degraded()


def test_exporters_that_are_not_ready_are_counted(world: World) -> None:
    world.installed()

    counts = {"desiredNumberScheduled": 3, "numberReady": 2}
    world.change(DAEMON_SETS, "node-metrics-default", status=counts)
    world.run()

    assert world.condition("Degraded")[2] == "node-metrics is Ready on 2 of 3 nodes"


@pytest.mark.parametrize(
    "text",
    ["[]", "{", "null", '{"at": 7, "nodes": "x", "stale": 1, "removed": null, "policy": {}}'],
)
def test_rubbish_instead_of_the_annotators_words(world: World, text: str) -> None:
    world.installed()

    world.change(CONFIG_MAPS, "load-state", data={"written": "own", "state.json": text})
    world.run()

    assert world.condition("Available")[1] == "Starting"


def test_what_the_api_refuses_is_said_first(world: World) -> None:
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


def test_a_kind_that_is_not_served_is_not_the_same_as_no_policy(world: World) -> None:
    world.installed()
    world.remove()
    world.served = False

    assert world.run() == []
    assert world.degraded() == ""


def test_one_that_is_being_deleted_is_none(world: World) -> None:
    world.installed()
    policy = world.one(LOAD_POLICIES, "default")
    leaving = {**policy["metadata"], "deletionTimestamp": "2026-01-01T00:01:00Z"}

    world.change(LOAD_POLICIES, "default", metadata=leaving)

    assert "create Job load-cleanup" in world.run()
