"""What is accepted and may surprise, in the pass: told where it was written, and nothing waits."""

from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.engine.reconcile import reconcile
from kube_scheduler_operator.kube.resource import CLUSTER_OPERATORS, CONFIG_MAPS, KUBE_SCHEDULERS
from kube_scheduler_operator.model.plan import Plan
from kube_scheduler_operator.model.snapshot import Snapshot

from .test_reconcile_profiles import profile, settled, start, written

NO_FIT = {"plugins": {"filter": {"disabled": [{"name": "NodeResourcesFit"}]}}}
PERCENTAGE = {"percentageOfNodesToScore": 2}


def overridden(**config: Any) -> dict[str, Any]:
    metadata = {"name": "cluster", "uid": "u", "resourceVersion": "1", "generation": 1}
    return {"metadata": metadata, "spec": {"unsupportedConfigOverrides": config}}


def profiled(**fields: Any) -> dict[str, Any]:
    return overridden(profiles=[{"schedulerName": "default-scheduler", **fields}])


def told(conditions: Any, type_: str) -> tuple[str, str, str]:
    (found,) = (each for each in conditions if each["type"] == type_)
    return found["status"], found["reason"], found.get("message", "")


def of_cluster(plan: Plan) -> dict[str, Any]:
    """KubeScheduler's conditions, by type."""
    (write,) = (
        action
        for action in plan.actions
        if action.resource == KUBE_SCHEDULERS and getattr(action, "subresource", "") == "status"
    )
    return {each["type"]: each for each in write.obj["status"]["conditions"]}


ROOT = "spec.unsupportedConfigOverrides"
CASES: dict[str, tuple[dict[str, Any], str, str]] = {
    "a safety filter that is off": (
        profiled(**NO_FIT), "SafetyFilterOff",
        f"{ROOT}.profiles[0].plugins.filter.disabled[0]: NodeResourcesFit does not run at filter: ",
    ),
    "a weight that silences the others": (
        profiled(plugins={"score": {"enabled": [{"name": "ImageLocality", "weight": 9999}]}}),
        "SilencedPlugins",
        f"{ROOT}.profiles[0].plugins.score.enabled[0]: ImageLocality decides alone: ",
    ),
    "an extender that is waited for": (
        overridden(extenders=[{
            "urlPrefix": "http://e", "filterVerb": "f", "ignorable": True,
            "nodeCacheCapable": True,
        }]),
        "LongTimeout", f"{ROOT}.extenders[0].httpTimeout: unset means 5s: ",
    ),
    "few nodes are compared": (
        overridden(**PERCENTAGE), "SampledTooFew", f"{ROOT}.percentageOfNodesToScore: with 2 % ",
    ),
    "a flag that counts for nothing": (
        overridden(arguments={"kube-api-qps": 100}), "VoidArgument",
        f"{ROOT}.arguments.kube-api-qps: kube-scheduler ignores --kube-api-qps beside --config",
    ),
    "nobody is default-scheduler": (
        overridden(profiles=[{"schedulerName": "mine"}]), "NoDefaultScheduler",
        f"{ROOT}.profiles: no profile is default-scheduler, so pods that name no ",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_person_who_edits_the_operators_objects_reads_the_warning(name: str) -> None:
    kubescheduler, reason, message = CASES[name]
    plan = reconcile(start(kubescheduler=kubescheduler))
    status, why, text = told(of_cluster(plan).values(), names.CONFIGURATION_WARNINGS)
    assert (status, why) == ("True", reason)
    assert text.startswith(message)


@pytest.mark.parametrize("fields", [NO_FIT, PERCENTAGE])
def test_a_warning_makes_nothing_degraded_and_stops_no_revision(fields: dict[str, Any]) -> None:
    operator = {"metadata": {"name": "kube-scheduler"}, "status": {}}
    plan = reconcile(start(kubescheduler=profiled(**fields), cluster_operator=operator))
    made = {action.obj["metadata"]["name"] for action in plan.actions}
    assert {names.CONFIG, f"{names.REVISION_STATUS}-1"} <= made
    bad = {
        type_
        for type_, each in of_cluster(plan).items()
        if type_.endswith("Degraded") and each["status"] != "False"
    }
    assert bad <= {names.STATIC_PODS_DEGRADED, names.NODES_DEGRADED}
    (report,) = (each for each in plan.reports if each.resource == CLUSTER_OPERATORS)
    assert names.CONFIGURATION_WARNINGS not in str(report.obj)


def rest(snapshot: Snapshot) -> list[str]:
    """What a pass would write of statuses although nothing has changed."""
    plan = reconcile(snapshot)
    return [
        action.obj["metadata"]["name"]
        for action in (*plan.actions, *plan.reports)
        if action.resource not in (CONFIG_MAPS, CLUSTER_OPERATORS)
        and getattr(action, "subresource", "") == "status"
    ]


def test_what_was_said_is_not_said_again() -> None:
    snapshot = settled(profile("a", **NO_FIT), kubescheduler=profiled(**PERCENTAGE))
    assert rest(snapshot) == []


def test_a_profile_says_it_where_it_was_written_and_nobody_else_does() -> None:
    snapshot = settled(profile("a", **NO_FIT), profile("b"))
    profiles = snapshot.scheduler_profiles or {}
    status, reason, message = told(profiles["a"]["status"]["conditions"], names.WARNINGS)
    assert (status, reason) == ("True", "SafetyFilterOff")
    assert message.startswith("spec.plugins.filter.disabled[0]: NodeResourcesFit does not run at ")
    assert told(profiles["a"]["status"]["conditions"], names.ACCEPTED)[0] == "True"
    assert told(profiles["b"]["status"]["conditions"], names.WARNINGS)[0] == "False"
    conditions = (snapshot.kubescheduler or {})["status"]["conditions"]
    assert told(conditions, names.CONFIGURATION_WARNINGS)[0] == "False"


def test_of_a_profile_that_is_held_it_is_what_runs_that_is_warned_of() -> None:
    held = {**profile("a", 2, plugins={"filter": {"enabled": [{"name": "No"}]}})}
    held["status"] = {"accepted": NO_FIT, "acceptedGeneration": 1}
    conditions = written(reconcile(start(held)))["a"]["conditions"]
    assert told(conditions, names.ACCEPTED)[:2] == ("False", "Held")
    assert told(conditions, names.WARNINGS)[2].startswith("status.accepted.plugins.filter.")


def test_what_overrides_do_to_a_profile_is_said_of_the_overrides() -> None:
    over = overridden(profiles=[{"schedulerName": "default-scheduler"}, {
        "schedulerName": "a", **NO_FIT,
    }])  # fmt: skip
    snapshot = settled(profile("a"), kubescheduler=over)
    profiles = snapshot.scheduler_profiles or {}
    assert told(profiles["a"]["status"]["conditions"], names.WARNINGS)[0] == "False"
    conditions = (snapshot.kubescheduler or {})["status"]["conditions"]
    message = told(conditions, names.CONFIGURATION_WARNINGS)[2]
    assert message.startswith(f"{ROOT}.profiles[1].plugins.filter.disabled[0]: ")
