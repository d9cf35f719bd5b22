"""`kubectl scheduler rollout approve`: shows what is held and approves exactly that."""

from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import MANAGED
from kube_scheduler_operator.base.recognition import PlatformDecision, Recognition
from kube_scheduler_operator.base.sentences import in_one_line
from kube_scheduler_operator.kube.resource import (
    LOAD_POLICIES,
    OPERATOR_SETTINGS,
    SCHEDULER_EXTENDERS,
    SCHEDULERS,
    SECONDARY_SCHEDULERS,
)
from kube_scheduler_operator.operator.controlplane.placement_rules import (
    AgentSpecs,
    rules_hash,
    rules_of,
)
from kube_scheduler_operator.operator.controlplane.revision.content import RevisionContent
from kube_scheduler_operator.operator.model.plan import PlacementQuestion
from kube_scheduler_operator.operator.model.snapshot import PlacementAnswer

from ...fake_cluster import FakeCluster
from ..conftest import Cluster, content
from ..published import publish

APPROVE = ("rollout", "approve", "--platform", "kubeadm")
LOST = in_one_line(
    ["12 running pods could no longer be placed: node(s) didn't match; node(s) had taints (shop/a)"]
)
EDITED = "HighNodeUtilization"


def hash_of(made: RevisionContent, specs: AgentSpecs | None = None) -> str:
    rules = rules_of(made, specs or AgentSpecs())
    assert rules is not None
    return rules_hash(rules)


@pytest.fixture
def held(cluster: Cluster) -> Cluster:
    """Nodes run the default profile; an edit of it is held."""
    cluster.api.served |= {OPERATOR_SETTINGS}
    cluster.revision(1, content())
    cluster.kubescheduler({"cp": 1})
    cluster.put(SCHEDULERS, {"metadata": {"name": "cluster"}, "spec": {"profile": EDITED}})
    record(cluster, "Held", "Worse", f"{LOST}; 3 waiting pods could be placed")
    return cluster


def record(
    cluster: Cluster,
    state: str,
    result: str,
    effect: str,
    message: str = "",
    configuration: str = "",
) -> None:
    check = {
        "configuration": configuration or hash_of(content(EDITED)),
        "result": result,
        "state": state,
        "effect": effect,
        "message": message,
    }
    cluster.put(
        OPERATOR_SETTINGS,
        {
            "metadata": {"name": "cluster"},
            "spec": {"placementCheck": {"mode": "Gate"}},
            "status": {"placementCheck": check},
        },
    )


def approved(cluster: Cluster) -> Any:
    (obj,) = cluster.api.objects[OPERATOR_SETTINGS].values()
    return obj["spec"]["placementCheck"].get("approved")


async def test_it_shows_the_edit_and_its_effect_and_writes_its_hash(held: Cluster) -> None:
    done = await held.run(*APPROVE, "--yes")
    assert done.code == 0, done.err
    assert f"  - {LOST}\n  - 3 waiting pods could be placed\n" in done.out
    assert "NodeResourcesFit" in done.out  # what the profile changes
    assert approved(held) == hash_of(content(EDITED))
    (patch,) = held.api.requests("PATCH")
    assert patch.body["metadata"]["resourceVersion"]
    assert patch.body["spec"] == {"placementCheck": {"approved": approved(held)}}


async def test_an_edit_of_an_agent_is_shown_and_approved(held: Cluster) -> None:
    """No revision contains it: it is read in the objects, beside the version in use."""
    entry = {"urlPrefix": "http://127.0.0.1:5401/safe", "filterVerb": "filter"}
    overrides: dict[str, Any] = {"unsupportedConfigOverrides": {"extenders": [entry]}}
    calling = content(**overrides)
    held.api.served |= {SCHEDULER_EXTENDERS, LOAD_POLICIES}
    held.revision(1, calling)
    held.put(SCHEDULERS, {"metadata": {"name": "cluster"}, "spec": {}})
    held.kubescheduler({"cp": 1}, **overrides)
    policies, edited = ([{"name": "safe-overload", "weight": weight}] for weight in (1, 2))
    held.put(
        SCHEDULER_EXTENDERS,
        {
            "metadata": {"name": "safe"},
            "spec": {"agent": {"policies": edited}},
            "status": {"accepted": {"agent": {"policies": policies}}},
        },
    )
    specs = AgentSpecs({"safe": {"agent": {"policies": edited}}})
    effect = "no simulation tries edits of agents and LoadPolicies: SchedulerExtender safe"
    record(held, "Held", "NotKnown", effect, configuration=hash_of(calling, specs))
    done = await held.run(*APPROVE, "--yes")
    assert done.code == 0, done.err
    assert "weight: 1 → 2" in done.out
    assert f"what it changes for Pods is not known:\n    - {effect}\n" in done.out
    assert approved(held) == hash_of(calling, specs)


async def test_coming_back_after_a_removal_is_approved_without_a_revision(
    cluster: Cluster,
) -> None:
    cluster.api.served |= {OPERATOR_SETTINGS}
    cluster.kubescheduler({})
    cluster.put(SCHEDULERS, {"metadata": {"name": "cluster"}, "spec": {"profile": EDITED}})
    record(cluster, "Held", "NotKnown", "no revision is in use")
    done = await cluster.run(*APPROVE, "--yes")
    assert done.code == 0, done.err
    assert "all of the configuration is new" in done.out
    assert approved(cluster) == hash_of(content(EDITED))


async def test_nothing_is_written_in_a_dry_run_or_without_a_confirmation(held: Cluster) -> None:
    done = await held.run(*APPROVE, "--dry-run")
    assert (done.code, approved(held)) == (0, None)
    assert LOST in done.out
    done = await held.run(*APPROVE)
    assert (done.code, approved(held)) == (1, None)
    assert "use --yes to write" in done.err


async def test_an_edit_that_is_not_the_held_one_any_more_is_not_described(held: Cluster) -> None:
    held.put(SCHEDULERS, {"metadata": {"name": "cluster"}, "spec": {"profile": "NoScoring"}})
    done = await held.run(*APPROVE, "--dry-run")
    assert "it is not the one that the objects have now" in done.out
    assert LOST in done.out
    done = await held.run(*APPROVE, "--yes")
    assert (done.code, approved(held)) == (1, None)
    assert "the objects have changed since" in done.err


@pytest.mark.parametrize(
    ("state", "result", "message", "error"),
    [
        ("Simulating", "Simulating", "the edit waits", "the edit waits: wait for its result"),
        ("Approved", "Worse", f"approved: {LOST}", f"the last one: approved: {LOST}"),
        ("Passed", "NothingWorse", "no Pod loses its place: x", "the last one: no Pod loses"),
    ],
)
async def test_without_a_held_edit_it_reports_the_last_one(
    held: Cluster, state: str, result: str, message: str, error: str
) -> None:
    record(held, state, result, "", message)
    done = await held.run(*APPROVE, "--yes")
    assert (done.code, approved(held)) == (1, None)
    assert error in done.err


async def test_without_a_check_nothing_is_held(cluster: Cluster) -> None:
    cluster.revision(1, content())
    cluster.kubescheduler({"cp": 1})
    cluster.put(SCHEDULERS, {"metadata": {"name": "cluster"}, "spec": {}})
    done = await cluster.run(*APPROVE, "--yes")
    assert done.code == 1
    assert "no edit is held: spec.placementCheck.mode of OperatorSettings is not Gate" in done.err


async def test_the_history_has_what_an_edit_changed_for_pods(held: Cluster) -> None:
    held.revision(2, content(EDITED))
    status = held.api.objects
    for by_key in status.values():
        for (_, name), obj in by_key.items():
            if name == "revision-status-2":
                obj["metadata"]["annotations"][names.PLACEMENT_CHECK_ANNOTATION] = LOST
    done = await held.run("history", "--platform", "kubeadm")
    assert f"     placements: {LOST}" in done.out


# --- SecondarySchedulers -------------------------------------------------------------------------


def worse(question: PlacementQuestion) -> PlacementAnswer:
    return PlacementAnswer(question.identity, worse=True, effect=LOST)


def holding(cluster: Cluster, operators: FakeCluster) -> Cluster:
    """What this operator has left in the cluster, which the command reads."""
    cluster.api.served |= {OPERATOR_SETTINGS, LOAD_POLICIES}
    operators.put(OPERATOR_SETTINGS, "cluster", placementCheck={"mode": "Gate"})
    operators.settle()
    operators.simulate = worse
    return cluster


async def test_an_edit_of_a_secondary_scheduler_is_shown_and_approved(cluster: Cluster) -> None:
    operators = FakeCluster()
    operators.secondary("batch", config={"percentageOfNodesToScore": 50})
    operators.settle()
    holding(cluster, operators)
    operators.secondary("batch", config={"percentageOfNodesToScore": 7}, logLevel="Debug")
    operators.settle()
    publish(operators, cluster)
    cluster.kubescheduler({"a": 1})
    cluster.revision(1, content())
    command = (*APPROVE, "--scheduler", "batch")
    done = await cluster.run(*command, "--yes")
    assert done.code == 0, done.err
    assert "percentageOfNodesToScore: 50 → 7" in done.out
    assert f"  - {LOST}\n" in done.out
    assert "kubectl scheduler rollout watch --scheduler batch" in done.out
    (obj,) = cluster.api.objects[OPERATOR_SETTINGS].values()
    record = operators.get(SECONDARY_SCHEDULERS, "batch")["status"]["placementCheck"]
    check = {"mode": "Gate", "approvedSchedulers": {"batch": record["configuration"]}}
    assert obj["spec"]["placementCheck"] == check
    watched = await cluster.run("rollout", "watch", "--scheduler", "batch", "--platform", "kubeadm")
    assert watched.code == 1
    assert "the edit is held" in watched.out + watched.err
    none = await cluster.run(*APPROVE, "--yes")
    assert (none.code, "no edit is held" in none.err) == (1, True)
    named = "an edit of SecondaryScheduler batch is held: "
    assert f"{named}kubectl scheduler rollout approve --scheduler batch" in none.err
    shown = await cluster.run("status", "--platform", "kubeadm")
    assert f"Rollout    SecondaryPlacementCheckProgressing: batch: the edit is held: {LOST}" in (
        shown.out
    )
    operators.secondary("batch", config={"percentageOfNodesToScore": 9})
    publish(operators, cluster)
    cluster.kubescheduler({"a": 1})
    changed = await cluster.run(*command, "--yes")
    assert changed.code == 1
    assert "spec.placementCheck.approvedSchedulers.batch of OperatorSettings" in changed.err


async def test_an_edit_of_the_managed_scheduler_is_that_of_the_control_plane(
    cluster: Cluster,
) -> None:
    operators = FakeCluster(
        MANAGED, PlatformDecision(Recognition(MANAGED, "EKS", ""), remember=True)
    )
    operators.settle()
    holding(cluster, operators)
    operators.put(SCHEDULERS, "cluster", profile=EDITED)
    operators.settle()
    publish(operators, cluster)
    done = await cluster.run("rollout", "approve", "--platform", "managed", "--yes")
    assert done.code == 0, done.err
    assert "NodeResourcesFit" in done.out
    recorded = operators.get(OPERATOR_SETTINGS, "cluster")["status"]["placementCheck"]
    assert approved(cluster) == recorded["configuration"]
