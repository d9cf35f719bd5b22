"""What people do with OpenShift's scheduler, as public how-tos describe it, word for word.

`oc` is kubectl here; both take these words. There are no nodes, so a new revision is what counts;
tests/e2e has rollouts. docs/openshift-comparison.md lists all habits.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from cluster import openshift
from cluster.api import ApiError
from cluster.observe import CLUSTEROPERATOR, KUBESCHEDULER, until
from kube_scheduler_operator.base import names

from .conftest import REPOSITORY
from .openshift_world import World, opened

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAME = f"oh-{hashlib.sha256(str(REPOSITORY).encode()).hexdigest()[:6]}"
TARGET_NAMESPACE = "openshift-kube-scheduler"

pytestmark = pytest.mark.timeout(120, func_only=True)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with opened(NAME, tmp_path_factory.mktemp("operator")) as found:
        yield found


@pytest.fixture
def world(cluster: World) -> Iterator[World]:
    """The cluster, which has its default configuration before and after the test."""
    yield cluster
    cluster.oc("annotate", "kubescheduler", "cluster", f"{names.MANAGEMENT_ANNOTATION}-")
    cluster.oc("patch", "scheduler.config.openshift.io", "cluster", "--type=json",
               "-p", '[{"op":"replace","path":"/spec","value":{}}]')  # fmt: skip
    cluster.oc("patch", "kubescheduler", "cluster", "--type=merge", "-p", json.dumps(
        {"spec": {"logLevel": "Normal", "operatorLogLevel": "Normal",
                  "unsupportedConfigOverrides": None, "managementState": "Managed",
                  "forceRedeploymentReason": None}}))  # fmt: skip
    until(lambda: at_rest(cluster), 60, "the default configuration does not return")


def at_rest(world: World) -> bool:
    kubescheduler = world.api.request("GET", KUBESCHEDULER)
    seen = kubescheduler["status"].get("observedGeneration")
    pod = world.data("kube-scheduler-pod")
    return bool(
        seen == kubescheduler["metadata"]["generation"]
        and profiles(world) is None
        and not pod["forceRedeploymentReason"]
        and "-v=2" in world.arguments
        and not any("unsupported" in argument for argument in world.arguments)
    )


def profiles(world: World) -> Any:
    return world.config.get("profiles")


def follows(world: World, before: int) -> None:
    until(lambda: world.latest > before, 60, "no revision")


def changed(world: World, *words: str, **environment: str) -> None:
    """Run oc and wait for the revision that follows."""
    before = world.latest
    world.oc(*words, **environment)
    follows(world, before)


def unchanged(world: World, *words: str) -> None:
    """Run oc; the operator has seen the edit, and no revision follows."""
    before = world.latest
    world.oc(*words)
    world.oc("annotate", "kubescheduler", "cluster", "--overwrite", f"seen={before}")
    world.oc("wait", "kubescheduler", "cluster", "--for=condition=StaticPodsAvailable=False",
             "--timeout=10s")  # fmt: skip
    until(lambda: at_observed(world), 60, "the operator does not see the edit")
    assert world.latest == before


def at_observed(world: World) -> bool:
    found = world.api.request("GET", KUBESCHEDULER)
    return bool(found["status"].get("observedGeneration") == found["metadata"]["generation"])


# --- Scheduler --------------------------------------------------------------------------------
def test_oc_edit_scheduler_cluster(world: World) -> None:
    editor = "sed -i 's/^spec: .*/spec: {profile: HighNodeUtilization}/'"
    changed(world, "edit", "scheduler.config.openshift.io", "cluster", KUBE_EDITOR=editor)
    (profile,) = profiles(world)
    (argument,) = profile["pluginConfig"]
    assert argument["args"]["scoringStrategy"]["type"] == "MostAllocated"


@pytest.mark.presubmit
@pytest.mark.parametrize(
    "words",
    [
        ("--type=merge", "-p", '{"spec":{"profile":"NoScoring"}}'),
        ("--type", "merge", "--patch", '{"spec":{"profile":"NoScoring"}}'),
        ("--type=json", "-p", '[{"op":"add","path":"/spec/profile","value":"NoScoring"}]'),
    ],
    ids=["merge", "spaced", "json"],
)
def test_oc_patch_scheduler_cluster(world: World, words: tuple[str, ...]) -> None:
    changed(world, "patch", "scheduler.config.openshift.io", "cluster", *words)
    (profile,) = profiles(world)
    assert profile["plugins"]["score"]["disabled"] == [{"name": "*"}]
    shown = world.oc("get", "scheduler.config.openshift.io", "cluster",
                     "-o", "jsonpath={.spec.profile}")  # fmt: skip
    assert shown == "NoScoring"


def test_a_profile_is_removed_to_return_to_the_default(world: World) -> None:
    changed(world, "patch", "scheduler.config.openshift.io", "cluster", "--type=merge",
            "-p", '{"spec":{"profile":"HighNodeUtilization"}}')  # fmt: skip
    changed(world, "patch", "scheduler.config.openshift.io", "cluster", "--type=json",
            "-p", '[{"op":"remove","path":"/spec/profile"}]')  # fmt: skip
    assert profiles(world) is None


def test_oc_get_o_yaml_is_saved_and_replaced(world: World, tmp_path: Path) -> None:
    """The round trip of a backup, with the fields that OpenShift's own object has."""
    text = world.oc("get", "scheduler.config.openshift.io", "cluster", "-o", "yaml")
    spec = {"mastersSchedulable": False, "policy": {"name": ""}, "profile": ""}
    backup = tmp_path / "scheduler.yaml"
    backup.write_text(json.dumps({**yaml.safe_load(text), "spec": spec}))
    unchanged(world, "replace", "-f", str(backup))


@pytest.mark.parametrize(
    "spec",
    [{"mastersSchedulable": True}, {"defaultNodeSelector": "type=user-node,region=east"}],
    ids=["mastersSchedulable", "defaultNodeSelector"],
)
def test_fields_of_other_operators_restart_no_scheduler(world: World, spec: Any) -> None:
    unchanged(world, "patch", "scheduler.config.openshift.io", "cluster", "--type=merge",
              "-p", json.dumps({"spec": spec}))  # fmt: skip


# --- KubeScheduler ----------------------------------------------------------------------------
@pytest.mark.presubmit
def test_force_redeployment_reason_forces_a_revision(world: World) -> None:
    reason = "recovery-2026-01-01 00:00:00.000000001+00:00"
    changed(world, "patch", "kubescheduler", "cluster", "--type=merge",
            "-p", json.dumps({"spec": {"forceRedeploymentReason": reason}}))  # fmt: skip
    assert world.data("kube-scheduler-pod")["forceRedeploymentReason"] == reason


def test_the_documented_check_of_a_redeployment(world: World) -> None:
    """The jsonpath of OpenShift's manual; without nodes all of them are at the revision."""
    path = (
        '{range .status.conditions[?(@.type=="NodeInstallerProgressing")]}'
        '{.reason}{"\\n"}{.message}{"\\n"}'
    )
    shown = world.oc("get", "kubescheduler", "-o=jsonpath={range .items[0]" + path[6:])
    assert shown.splitlines()[0] == "AllNodesAtLatestRevision"


@pytest.mark.presubmit
@pytest.mark.parametrize(("level", "flag"), [("Debug", 4), ("Trace", 6), ("TraceAll", 10)])
def test_log_level_is_the_verbosity_of_the_scheduler(world: World, level: str, flag: int) -> None:
    changed(world, "patch", "kubescheduler", "cluster", "--type=merge",
            "-p", json.dumps({"spec": {"logLevel": level}}))  # fmt: skip
    assert f"-v={flag}" in world.arguments


def test_operator_log_level_restarts_no_scheduler(world: World) -> None:
    unchanged(world, "patch", "kubescheduler", "cluster", "--type=merge",
              "-p", '{"spec":{"operatorLogLevel":"Trace"}}')  # fmt: skip


def test_unsupported_overrides_block_upgrades_and_become_flags(world: World) -> None:
    overrides = {"arguments": {"unsupported-kube-api-over-localhost": "true"}}
    changed(world, "patch", "kubescheduler", "cluster", "--type=merge",
            "-p", json.dumps({"spec": {"unsupportedConfigOverrides": overrides}}))  # fmt: skip
    assert "--unsupported-kube-api-over-localhost=true" in world.arguments

    def upgradeable() -> str:
        path = 'jsonpath={.status.conditions[?(@.type=="Upgradeable")].status}'
        return world.oc("get", "co", "kube-scheduler", "-o", path)

    until(lambda: upgradeable() == "False", 60, "Upgradeable stays")


def test_revision_limits_are_patched(world: World) -> None:
    unchanged(world, "patch", "kubescheduler", "cluster", "--type=merge",
              "-p", '{"spec":{"failedRevisionLimit":3,"succeededRevisionLimit":3}}')  # fmt: skip


def test_unmanaged_pauses_the_operator(world: World) -> None:
    before = world.latest
    world.oc("annotate", "kubescheduler", "cluster", f"{names.MANAGEMENT_ANNOTATION}=Unmanaged")

    def unknown() -> bool:
        status = world.api.request("GET", CLUSTEROPERATOR)["status"]
        return all(one["status"] == "Unknown" for one in status["conditions"])

    until(unknown, 60, "ClusterOperator is not Unknown")
    world.oc("patch", "scheduler.config.openshift.io", "cluster", "--type=merge",
             "-p", '{"spec":{"profile":"NoScoring"}}')  # fmt: skip
    until(unknown, 5, "ClusterOperator is not Unknown any more")
    assert world.latest == before


# --- reading ----------------------------------------------------------------------------------
@pytest.mark.presubmit
def test_oc_get_clusteroperator(world: World) -> None:
    header, row = world.oc("get", "co", "kube-scheduler").splitlines()
    assert header.split()[:6] == [
        "NAME", "VERSION", "AVAILABLE", "PROGRESSING", "DEGRADED", "SINCE",
    ]  # fmt: skip
    assert row.split()[0] == "kube-scheduler"


def test_the_jsonpaths_of_scripts_find_conditions_and_versions(world: World) -> None:
    def path(text: str) -> str:
        return world.oc("get", "clusteroperator/kube-scheduler", "-o", f"jsonpath={text}")

    for kind in ("Available", "Progressing", "Degraded", "Upgradeable"):
        assert path(f'{{.status.conditions[?(@.type=="{kind}")].status}}') in ("True", "False")
    assert path('{.status.versions[?(@.name=="raw-internal")].version}') == openshift.VERSION
    related = path('{range .status.relatedObjects[*]}{.resource}{" "}{.name}{"\\n"}{end}')
    assert "namespaces openshift-kube-scheduler" in related.splitlines()


@pytest.mark.presubmit
def test_oc_wait_follows_the_cluster_operator(world: World) -> None:
    world.oc("wait", "--for=condition=Upgradeable", "co/kube-scheduler", "--timeout=20s")
    world.oc("wait", "--for=condition=Available=False", "co/kube-scheduler", "--timeout=50s")


def test_the_configuration_is_read_from_its_config_map(world: World) -> None:
    text = world.oc("-n", TARGET_NAMESPACE, "get", "cm", "config",
                    "-o", r"jsonpath={.data.config\.yaml}")  # fmt: skip
    assert yaml.safe_load(text)["kind"] == "KubeSchedulerConfiguration"
    pod = world.oc("-n", TARGET_NAMESPACE, "get", "cm", "kube-scheduler-pod",
                   "-o", r"jsonpath={.data.pod\.yaml}")  # fmt: skip
    assert yaml.safe_load(pod)["metadata"]["name"] == "openshift-kube-scheduler"


def test_revisions_are_listed(world: World) -> None:
    shown = world.oc("-n", TARGET_NAMESPACE, "get", "cm", "-o", "name").splitlines()
    numbers = {int(one.rpartition("-")[2]) for one in shown if "/revision-status-" in one}
    assert world.latest in numbers
    for part in ("config", "kube-scheduler-pod", "scheduler-kubeconfig", "serviceaccount-ca"):
        assert f"configmap/{part}-{world.latest}" in shown


def test_events_say_what_was_decided(world: World) -> None:
    changed(world, "patch", "kubescheduler", "cluster", "--type=merge",
            "-p", '{"spec":{"forceRedeploymentReason":"for an event"}}')  # fmt: skip

    def reported() -> bool:
        shown = world.oc("-n", "openshift-kube-scheduler-operator", "get", "events")
        # Of which revision depends on how many events the operator has just sent: it limits them.
        return bool(re.search(r"StartingNewRevision.*new revision \d+ triggered by", shown))

    until(reported, 60, "no event reports the revision")


def test_oc_explain_describes_the_fields(world: World) -> None:
    shown = world.oc("explain", "kubescheduler.spec.logLevel")
    assert "TraceAll" in shown
    assert "NoScoring" in world.oc("explain", "scheduler.spec.profile", "--api-version",
                                   "config.openshift.io/v1")  # fmt: skip


@pytest.mark.presubmit
def test_a_value_that_does_not_exist_is_refused_with_the_list(world: World) -> None:
    with pytest.raises(ApiError, match="LowNodeUtilization"):
        world.api.request("PATCH", "/apis/config.openshift.io/v1/schedulers/cluster",
                          {"spec": {"profile": "MediumNodeUtilization"}})  # fmt: skip
