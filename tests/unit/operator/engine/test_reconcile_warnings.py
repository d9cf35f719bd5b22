"""Warnings about accepted configuration: reported at their object, without blocking a revision."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.config.language.plugins.in_tree_plugins import NEWEST
from kube_scheduler_operator.kube.resource import (
    CLUSTER_OPERATORS,
    CONFIG_MAPS,
    SCHEDULER_EXTENDERS,
)
from kube_scheduler_operator.operator.engine.reconcile import reconcile
from kube_scheduler_operator.operator.model.snapshot import Loads, Snapshot

from ....builders import extender, kubescheduler, load_policy, profile
from ....expect import condition_in, expect_condition, status_of_kubescheduler
from .test_reconcile_profiles import SETTINGS, settled, start, versioned, written

NO_FIT = {"plugins": {"filter": {"disabled": [{"name": "NodeResourcesFit"}]}}}
PERCENTAGE = {"percentageOfNodesToScore": 2}


def overridden(**config: Any) -> dict[str, Any]:
    return kubescheduler(unsupportedConfigOverrides=config)


def profiled(**fields: Any) -> dict[str, Any]:
    return overridden(profiles=[{"schedulerName": "default-scheduler", **fields}])


ROOT = "spec.unsupportedConfigOverrides"
CASES: dict[str, tuple[dict[str, Any], str, str]] = {
    "a safety filter that is off": (
        profiled(**NO_FIT), "SafetyFilterOff",
        f"{ROOT}.profiles[0].plugins.filter.disabled[0]: NodeResourcesFit does not run at filter: ",
    ),
    "a weight that outvotes the others": (
        profiled(plugins={"score": {"enabled": [{"name": "ImageLocality", "weight": 9999}]}}),
        "OutvotedPlugins",
        f"{ROOT}.profiles[0].plugins.score.enabled[0]: ImageLocality decides alone: ",
    ),
    "an extender with a long timeout": (
        overridden(extenders=[{
            "urlPrefix": "http://e", "filterVerb": "f", "ignorable": True,
            "nodeCacheCapable": True,
        }]),
        "LongTimeout", f"{ROOT}.extenders[0].httpTimeout: the default is 5s: ",
    ),
    "too few nodes are scored": (
        overridden(**PERCENTAGE), "SampledTooFew", f"{ROOT}.percentageOfNodesToScore: with 2 % ",
    ),
    "a flag without effect": (
        overridden(arguments={"kube-api-qps": 100}), "VoidArgument",
        f"{ROOT}.arguments.kube-api-qps: kube-scheduler ignores --kube-api-qps "
        "when --config is set",
    ),
    "no profile is default-scheduler": (
        overridden(profiles=[{"schedulerName": "mine"}]), "NoDefaultScheduler",
        f"{ROOT}.profiles: no profile is named default-scheduler, so pods without ",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_kubescheduler_reports_warnings_about_overrides(name: str) -> None:
    edited, reason, message = CASES[name]
    plan = reconcile(start(kubescheduler=edited))
    status, why, text = condition_in(
        status_of_kubescheduler(plan)["conditions"], names.CONFIGURATION_WARNINGS
    )
    assert (status, why) == ("True", reason)
    assert text.startswith(message)


@pytest.mark.parametrize("fields", [NO_FIT, PERCENTAGE])
def test_a_warning_degrades_nothing_and_blocks_no_revision(fields: dict[str, Any]) -> None:
    operator = {"metadata": {"name": "kube-scheduler"}, "status": {}}
    plan = reconcile(start(kubescheduler=profiled(**fields), cluster_operator=operator))
    written_names = {action.obj["metadata"]["name"] for action in plan.actions}
    assert {names.CONFIG, f"{names.REVISION_STATUS}-1"} <= written_names
    bad = {
        each["type"]
        for each in status_of_kubescheduler(plan)["conditions"]
        if each["type"].endswith("Degraded") and each["status"] != "False"
    }
    assert bad <= {names.STATIC_PODS_DEGRADED, names.NODES_DEGRADED}
    (report,) = (each for each in plan.reports if each.resource == CLUSTER_OPERATORS)
    assert names.CONFIGURATION_WARNINGS not in str(report.obj)


NEXT = f"1.{NEWEST.minor + 1}"
NEWER_IMAGE = f"registry.k8s.io/kube-scheduler:v{NEXT}.1"


def running(image: str, *profiles: Any, **fields: Any) -> Snapshot:
    """A cluster whose schedulers run an image."""
    settings = replace(SETTINGS, operand_image=image)
    return replace(start(*profiles, **fields), settings=settings)


def test_an_operand_that_is_newer_than_the_record_is_served_with_a_note() -> None:
    operator = {"metadata": {"name": "kube-scheduler"}, "status": {}}
    plan = reconcile(running(NEWER_IMAGE, cluster_operator=operator))
    written_names = {action.obj["metadata"]["name"] for action in plan.actions}
    assert {names.CONFIG, f"{names.REVISION_STATUS}-1"} <= written_names
    conditions = status_of_kubescheduler(plan)["conditions"]
    status, reason, message = condition_in(conditions, names.CONFIGURATION_WARNINGS)
    assert (status, reason) == ("True", "UnknownVersion")
    assert message.startswith(f"kube-scheduler {NEXT}: Kubernetes {NEXT} is newer than the ")
    assert message.endswith("; upgrade this operator")
    (report,) = (each for each in plan.reports if each.resource == CLUSTER_OPERATORS)
    assert "UnknownVersion" not in str(report.obj)


def test_what_a_newer_operand_may_have_is_not_refused_and_what_no_version_takes_is() -> None:
    plugins = {"score": {"enabled": [{"name": "NewPlugin"}]}}
    objects = (profile("new", plugins=plugins), profile("bad", percentageOfNodesToScore=101))
    found = written(reconcile(running(NEWER_IMAGE, *objects)))
    expect_condition(found["new"]["conditions"], names.ACCEPTED, "True")
    status, reason, message = condition_in(found["new"]["conditions"], names.WARNINGS)
    assert (status, reason) == ("True", "UnknownPlugin")
    assert message.startswith("spec.plugins.score.enabled[0].name: kube-scheduler 1.")
    expect_condition(found["bad"]["conditions"], names.ACCEPTED, "False")


@pytest.mark.parametrize(("policy", "reason"), [("load", "AsExpected"), ("other", None)])
def test_an_extender_warns_of_a_load_policy_that_does_not_exist(
    policy: str, reason: str | None
) -> None:
    agent = {"policies": [{"name": "load-aware"}], "loadPolicy": "load"}
    obj = versioned(extender("a", agent=agent))
    loads = Loads(policies={policy: load_policy(policy)})
    plan = reconcile(start(scheduler_extenders={"a": obj}, loads=loads))
    (write,) = (action for action in plan.reports if action.resource == SCHEDULER_EXTENDERS)
    conditions = write.obj["status"]["conditions"]
    expect_condition(conditions, names.ACCEPTED, "True")
    status, found, message = condition_in(conditions, names.WARNINGS)
    assert (status, found) == (("False", reason) if reason else ("True", "LoadPolicyNotFound"))
    assert message.startswith("spec.agent.loadPolicy: LoadPolicy") is (reason is None)


def test_the_tag_of_an_own_image_is_not_a_version_of_kubernetes() -> None:
    plan = reconcile(running("registry.example/my-scheduler:v7.1.0"))
    conditions = status_of_kubescheduler(plan)["conditions"]
    expect_condition(conditions, names.CONFIGURATION_WARNINGS, "False")


def status_writes(snapshot: Snapshot) -> list[str]:
    """Names of the objects whose status a reconcile would write."""
    plan = reconcile(snapshot)
    return [
        action.obj["metadata"]["name"]
        for action in (*plan.actions, *plan.reports)
        if action.resource not in (CONFIG_MAPS, CLUSTER_OPERATORS)
        and getattr(action, "subresource", "") == "status"
    ]


def test_a_reported_warning_is_not_written_again() -> None:
    snapshot = settled(profile("a", **NO_FIT), kubescheduler=profiled(**PERCENTAGE))
    assert status_writes(snapshot) == []


def test_a_warning_about_a_profile_is_reported_only_at_that_profile() -> None:
    snapshot = settled(profile("a", **NO_FIT), profile("b"))
    profiles = snapshot.scheduler_profiles or {}
    status, reason, message = condition_in(profiles["a"]["status"]["conditions"], names.WARNINGS)
    assert (status, reason) == ("True", "SafetyFilterOff")
    assert message.startswith("spec.plugins.filter.disabled[0]: NodeResourcesFit does not run at ")
    expect_condition(profiles["a"]["status"]["conditions"], names.ACCEPTED, "True")
    expect_condition(profiles["b"]["status"]["conditions"], names.WARNINGS, "False")
    conditions = (snapshot.kubescheduler or {})["status"]["conditions"]
    expect_condition(conditions, names.CONFIGURATION_WARNINGS, "False")


def test_warnings_are_about_the_accepted_version_that_stays_in_use() -> None:
    status = {"accepted": NO_FIT, "acceptedGeneration": 1}
    plugins = {"filter": {"enabled": [{"name": "No"}]}}
    rejected = profile("a", generation=2, status=status, plugins=plugins)
    conditions = written(reconcile(start(rejected)))["a"]["conditions"]
    expect_condition(conditions, names.ACCEPTED, "False", "LastAcceptedInUse")
    assert condition_in(conditions, names.WARNINGS)[2].startswith("status.accepted.plugins.filter.")


def test_a_warning_about_overrides_is_not_reported_at_a_profile() -> None:
    over = overridden(profiles=[{"schedulerName": "default-scheduler"}, {
        "schedulerName": "a", **NO_FIT,
    }])  # fmt: skip
    snapshot = settled(profile("a"), kubescheduler=over)
    profiles = snapshot.scheduler_profiles or {}
    expect_condition(profiles["a"]["status"]["conditions"], names.WARNINGS, "False")
    conditions = (snapshot.kubescheduler or {})["status"]["conditions"]
    message = condition_in(conditions, names.CONFIGURATION_WARNINGS)[2]
    assert message.startswith(f"{ROOT}.profiles[1].plugins.filter.disabled[0]: ")
