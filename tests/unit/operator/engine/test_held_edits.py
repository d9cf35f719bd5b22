"""Edits of agents and LoadPolicies in whole reconciles: with a Gate, they wait for an approval."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.kube.resource import (
    CONFIG_MAPS,
    DAEMON_SETS,
    KUBE_SCHEDULERS,
    LOAD_POLICIES,
    OPERATOR_SETTINGS,
    SCHEDULER_EXTENDERS,
    SCHEDULER_PROFILES,
)
from kube_scheduler_operator.operator.engine import held_edits
from kube_scheduler_operator.operator.model.plan import PlacementQuestion
from kube_scheduler_operator.operator.model.snapshot import PlacementAnswer

from ....expect import condition_of
from ...fake_cluster import FakeCluster

TARGET = KUBEADM.target_namespace


def agent(utilization: int, **fields: Any) -> dict[str, Any]:
    arguments = {"utilization": utilization}
    return {"policies": [{"name": "safe-overload", "arguments": arguments}], **fields}


def load(percent: int) -> dict[str, Any]:
    return {"predicates": [{"name": "cpu_usage_avg_5m", "maxLimit": f"{percent}%"}]}


ANOTHER_LOAD = "which nodes SchedulerExtender safe rejects at another load is not known"


def unknown(question: PlacementQuestion) -> PlacementAnswer:
    return PlacementAnswer(question.identity, effect=ANOTHER_LOAD, unknown=True)


def harmless(question: PlacementQuestion) -> PlacementAnswer:
    return PlacementAnswer(question.identity, effect="each of 40 pods can be placed as today")


def gated(mode: str = "Gate") -> FakeCluster:
    """A cluster that checks edits, and whose scheduler calls the agent `safe`."""
    cluster = FakeCluster()
    cluster.settle()
    cluster.extender("safe", agent=agent(80))
    cluster.put(LOAD_POLICIES, "default", **load(80))
    cluster.settle()
    cluster.put(OPERATOR_SETTINGS, "cluster", placementCheck={"mode": mode})
    cluster.settle()
    assert "http://127.0.0.1:5401/safe" in config(cluster)
    cluster.simulate = unknown
    return cluster


def config(cluster: FakeCluster) -> str:
    return str(cluster.get(CONFIG_MAPS, names.CONFIG, TARGET)["data"][names.CONFIG_KEY])


def utilization(cluster: FakeCluster) -> int:
    """The argument in the file of the agent."""
    document = json.loads(
        cluster.get(CONFIG_MAPS, "extender-safe", TARGET)["data"]["extender.json"]
    )
    return int(document["agents"][0]["policies"][0]["arguments"]["utilization"])


def limit(cluster: FakeCluster) -> str:
    """The policy that the annotator and agents read."""
    return str(cluster.get(CONFIG_MAPS, "load-policy-default", TARGET)["data"]["policy.json"])


def record(cluster: FakeCluster) -> dict[str, Any]:
    return dict(cluster.get(OPERATOR_SETTINGS, "cluster")["status"].get("placementCheck") or {})


def state(cluster: FakeCluster) -> str:
    kubescheduler = cluster.get(KUBE_SCHEDULERS, "cluster")
    return condition_of(kubescheduler, names.PLACEMENT_CHECK_PROGRESSING)[1]


def accepted(cluster: FakeCluster, resource: Any = SCHEDULER_EXTENDERS, name: str = "safe") -> Any:
    return condition_of(cluster.get(resource, name), names.ACCEPTED)


def approve(cluster: FakeCluster) -> None:
    check = {"mode": "Gate", "approved": record(cluster)["configuration"]}
    cluster.put(OPERATOR_SETTINGS, "cluster", placementCheck=check)
    cluster.settle()


def test_an_edit_of_policies_waits_for_an_approval() -> None:
    cluster = gated()
    cluster.extender("safe", agent=agent(1))
    cluster.settle()
    assert (utilization(cluster), state(cluster)) == (80, "Held")
    status, reason, message = accepted(cluster)
    assert (status, reason) == ("False", "Waiting")
    assert "generation 1 stays in use" in message
    assert names.PLACEMENT_CHECK_PROGRESSING in message
    assert record(cluster)["result"] == "NotKnown"
    approve(cluster)
    assert (utilization(cluster), accepted(cluster)[0]) == (1, "True")
    assert state(cluster) in ("Approved", "Unchanged")
    cluster.extender("safe", agent=agent(2))
    cluster.settle()
    assert (utilization(cluster), state(cluster)) == (1, "Held")
    cluster.extender("safe", agent=agent(1))
    cluster.settle()
    assert (utilization(cluster), accepted(cluster)[0]) == (1, "True")


def test_an_edit_of_policies_that_costs_no_pod_its_place_is_in_use() -> None:
    """Its scores, e.g.: what a filter does at another load is never known."""
    cluster = gated()
    cluster.simulate = harmless
    cluster.extender("safe", agent=agent(1))
    cluster.settle()
    assert (utilization(cluster), accepted(cluster)[0]) == (1, "True")
    (asked,) = cluster.simulations
    limits = [
        rules.agents["safe"]["policies"][0]["arguments"]["utilization"]
        for rules in (asked.before, asked.after)
    ]
    assert limits == [80, 1]


def test_an_edit_of_the_load_policy_is_simulated_with_both_versions() -> None:
    cluster = gated()
    lost = "3 running pods could no longer be placed: the load is above the limit (shop/a)"
    cluster.simulate = lambda asked: PlacementAnswer(asked.identity, True, lost)
    before = limit(cluster)
    cluster.put(LOAD_POLICIES, "default", **load(10))
    cluster.settle()
    (asked,) = cluster.simulations
    assert (asked.before.load_policies, asked.after.load_policies) == (
        {"default": load(80)},
        {"default": load(10)},
    )
    assert (limit(cluster), state(cluster)) == (before, "Held")
    assert lost in record(cluster)["message"]
    cluster.put(LOAD_POLICIES, "default", **load(80))
    cluster.settle()
    assert (limit(cluster), state(cluster)) == (before, "Unchanged")


def test_a_profile_that_waits_is_not_reported_as_in_use() -> None:
    cluster = gated()
    cluster.simulate = None
    cluster.profile("team", percentageOfNodesToScore=20)
    cluster.settle()
    assert "percentageOfNodesToScore" not in config(cluster)
    assert state(cluster) == "Simulating"
    status, reason, message = accepted(cluster, SCHEDULER_PROFILES, "team")
    assert (status, reason) == ("True", "Accepted")
    assert names.PLACEMENT_CHECK_PROGRESSING in message


def test_an_edit_of_the_load_policy_waits_for_an_approval() -> None:
    cluster = gated()
    before = limit(cluster)
    cluster.put(LOAD_POLICIES, "default", **load(10))
    cluster.settle()
    assert (limit(cluster), state(cluster)) == (before, "Held")
    assert accepted(cluster, LOAD_POLICIES, "default")[:2] == ("False", "Waiting")
    degraded = condition_of(cluster.get(LOAD_POLICIES, "default"), names.DEGRADED)
    assert names.PLACEMENT_CHECK_PROGRESSING not in degraded[2]
    approve(cluster)
    assert limit(cluster) != before
    assert accepted(cluster, LOAD_POLICIES, "default")[0] == "True"


def test_with_warn_edits_are_reported_and_in_use() -> None:
    cluster = gated("Warn")
    before = limit(cluster)
    cluster.extender("safe", agent=agent(1))
    cluster.put(LOAD_POLICIES, "default", **load(10))
    cluster.settle()
    assert utilization(cluster) == 1
    assert limit(cluster) != before
    assert (state(cluster), record(cluster)["result"]) == ("NotKnown", "NotKnown")
    reported = [m for _, reason, m in cluster.recorder.events if reason == "PlacementCheckPassed"]
    assert any(ANOTHER_LOAD in message for message in reported)


def test_an_edit_of_policies_does_not_slip_in_with_another_edit() -> None:
    """An edit that changes spec.observedConfig as well ends the reconcile before the check."""
    cluster = gated()
    cluster.extender("safe", agent=agent(1), weight=7, timeout="2s")
    cluster.settle()
    assert (utilization(cluster), state(cluster)) == (80, "Held")
    assert '"weight":7' not in config(cluster)


def test_a_deleted_extender_comes_back_as_an_edit() -> None:
    """Its name, its port and so its URL are those that the scheduler calls."""
    cluster = gated()
    cluster.remove(SCHEDULER_EXTENDERS, "safe")
    cluster.extender("safe", agent=agent(1))
    cluster.settle()
    assert utilization(cluster) == 80
    assert state(cluster) in ("Held", "Simulating")


def test_a_new_extender_is_not_called_yet_and_may_be_edited() -> None:
    cluster = gated()
    cluster.simulate = None
    cluster.extender("other", agent=agent(70))
    cluster.settle()
    cluster.extender("other", agent=agent(60))
    cluster.settle()
    text = cluster.get(CONFIG_MAPS, "extender-other", TARGET)["data"]["extender.json"]
    assert '"utilization":60' in text
    assert "/other" not in config(cluster)
    assert (utilization(cluster), state(cluster)) == (80, "Simulating")


def test_what_agents_do_not_decide_by_is_written_at_once() -> None:
    cluster = gated()
    cluster.extender("safe", agent=agent(80, logLevel="DEBUG"))
    cluster.settle()
    text = cluster.get(CONFIG_MAPS, "extender-safe", TARGET)["data"]["extender.json"]
    assert '"logLevel":"DEBUG"' in text
    assert state(cluster) == "Unchanged"


def test_without_a_called_agent_a_load_policy_does_not_wait() -> None:
    cluster = FakeCluster()
    cluster.put(LOAD_POLICIES, "default", **load(80))
    cluster.put(OPERATOR_SETTINGS, "cluster", placementCheck={"mode": "Gate"})
    cluster.settle()
    before = limit(cluster)
    cluster.put(LOAD_POLICIES, "default", **load(10))
    cluster.settle()
    assert limit(cluster) != before


def test_a_load_policy_does_not_slip_in_while_kubescheduler_is_deleted() -> None:
    cluster = gated()
    before = limit(cluster)
    cluster.remove(KUBE_SCHEDULERS, "cluster")
    cluster.put(LOAD_POLICIES, "default", **load(10))
    cluster.settle()
    assert limit(cluster) == before


def test_off_writes_edits_at_once() -> None:
    cluster = gated("Off")
    cluster.extender("safe", agent=agent(1))
    cluster.settle()
    assert (utilization(cluster), accepted(cluster)[0]) == (1, "True")


def test_a_defect_puts_no_edit_into_use(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = gated()

    def fail(*_: Any) -> Any:
        raise RuntimeError("defect")

    monkeypatch.setattr(held_edits, "checked_specs", fail)
    cluster.extender("safe", agent=agent(1))
    cluster.settle()
    assert utilization(cluster) == 80
    assert cluster.find(DAEMON_SETS, "extender-safe", TARGET) is not None
