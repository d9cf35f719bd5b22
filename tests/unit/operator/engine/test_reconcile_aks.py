"""SchedulerProfiles of AKS' own scheduler are kept in its object."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM, MANAGED
from kube_scheduler_operator.config.effective.profiles import aks_support
from kube_scheduler_operator.kube.resource import AKS_SCHEDULER_CONFIGURATIONS, SCHEDULER_PROFILES
from kube_scheduler_operator.operator.engine.reconcile import reconcile
from kube_scheduler_operator.operator.engine.watches import watches
from kube_scheduler_operator.operator.model.plan import Action, Create, Delete, Replace
from kube_scheduler_operator.operator.model.snapshot import Snapshot
from kube_scheduler_operator.operator.profiles import aks

from ....builders import kubescheduler, profile, secondary
from .test_reconcile_managed import settled, start, with_schedulers

PACKED = profile("packed", scheduler="aks", base="HighNodeUtilization")
UNSUPPORTED = profile(
    "packed", scheduler="aks", plugins={"score": {"enabled": [{"name": "DynamicResources"}]}}
)


def cluster(*profiles: Any, found: Any = None, **fields: Any) -> Snapshot:
    """A cluster of AKS with the kind, and this object of it."""
    objects = {} if found is None else {aks_support.NAME: found}
    snapshot = settled(start(aks_configurations=objects, **fields))
    return replace(snapshot, scheduler_profiles={obj["metadata"]["name"]: obj for obj in profiles})


def writes(snapshot: Snapshot) -> list[Action]:
    return list(reconcile(snapshot).write_sets.get(aks.REF, ()))


def made(snapshot: Snapshot) -> Any:
    (create,) = writes(snapshot)
    assert isinstance(create, Create)
    return {**create.obj, "metadata": {**create.obj["metadata"], "uid": "u"}}


def accepted(snapshot: Snapshot, name: str = "packed") -> dict[str, Any]:
    """The condition Accepted that the next status has."""
    for action in reconcile(snapshot).reports:
        if action.resource == SCHEDULER_PROFILES and action.obj["metadata"]["name"] == name:
            found = {one["type"]: one for one in action.obj["status"]["conditions"]}
            return {**found[names.ACCEPTED], "accepted": action.obj["status"].get("accepted")}
    raise AssertionError("no report")


def test_profiles_with_the_reserved_scheduler_are_kept_in_the_object() -> None:
    snapshot = cluster(PACKED)
    obj = made(snapshot)
    document = yaml.safe_load(obj["spec"]["rawConfig"])
    assert document["apiVersion"] == "kubescheduler.config.k8s.io/v1"
    assert [one["schedulerName"] for one in document["profiles"]] == ["packed"]
    assert accepted(snapshot)["status"] == "True"
    again = replace(snapshot, aks_configurations={aks_support.NAME: obj})
    assert writes(again) == [], "it is up to date"
    assert reconcile(again).served is not None
    assert "packed" in (reconcile(again).served or ())


def test_formatting_of_the_text_is_not_a_difference() -> None:
    obj = made(cluster(PACKED))
    document = yaml.safe_load(obj["spec"]["rawConfig"])
    other = {**obj, "spec": {"rawConfig": yaml.safe_dump(document, default_flow_style=True)}}
    assert writes(cluster(PACKED, found=other)) == []


def test_an_edit_of_the_object_is_undone_and_a_deleted_one_made_again() -> None:
    obj = made(cluster(PACKED))
    (write,) = writes(cluster(PACKED, found={**obj, "spec": {"rawConfig": "profiles: [", "x": 1}}))
    assert isinstance(write, Replace)
    assert write.obj["spec"]["rawConfig"] == obj["spec"]["rawConfig"]
    assert write.obj["spec"]["x"] == 1, "fields that are not ours stay"
    assert isinstance(writes(cluster(PACKED))[0], Create)


def test_an_object_of_another_client_stays_and_is_an_error_with_the_ways_out() -> None:
    foreign = {"metadata": {"name": aks_support.NAME, "uid": "x"}, "spec": {"rawConfig": ""}}
    snapshot = cluster(PACKED, found=foreign)
    assert writes(snapshot) == []
    found = accepted(snapshot)
    assert found["status"] == "False"
    assert "another client created SchedulerConfiguration/upstream" in found["message"]
    assert "kubectl label schedulerconfiguration upstream" in found["message"]


def test_without_the_kind_the_message_names_how_to_enable_it() -> None:
    snapshot = replace(cluster(PACKED), aks_configurations=None)
    assert writes(snapshot) == []
    assert "az aks update --enable-upstream-kubescheduler" in accepted(snapshot)["message"]


def test_what_aks_does_not_take_is_named_and_the_last_accepted_version_stays() -> None:
    snapshot = cluster(UNSUPPORTED)
    assert writes(snapshot) == []
    assert "spec.plugins.score.enabled[0].name" in accepted(snapshot)["message"]
    assert "DynamicResources is not one of the 18 plugins" in accepted(snapshot)["message"]
    before = {**UNSUPPORTED, "status": {"accepted": PACKED["spec"], "acceptedGeneration": 1}}
    obj = made(cluster(before))
    assert obj["spec"] == made(cluster(PACKED))["spec"]
    assert accepted(cluster(before))["reason"] == "LastAcceptedInUse"


def test_one_profile_with_an_error_does_not_stop_the_others() -> None:
    other = profile("spread", scheduler="aks")
    document = yaml.safe_load(made(cluster(UNSUPPORTED, other))["spec"]["rawConfig"])
    assert [one["schedulerName"] for one in document["profiles"]] == ["spread"]


def test_the_reserved_profile_of_aks_is_refused() -> None:
    snapshot = cluster(profile("packed", scheduler="aks", schedulerName="aks-system"))
    assert writes(snapshot) == []
    assert 'AKS reserves the profile "aks-system"' in accepted(snapshot)["message"]


def test_a_name_of_the_managed_scheduler_is_taken() -> None:
    snapshot = cluster(profile("packed", scheduler="aks", schedulerName="managed-scheduler"))
    assert writes(snapshot) == []
    assert "already serves" in accepted(snapshot)["message"]


@pytest.mark.parametrize("removed", [False, True])
def test_without_a_profile_or_when_removed_the_object_is_deleted(removed: bool) -> None:
    obj = made(cluster(PACKED))
    snapshot = cluster(found=obj)
    if removed:
        snapshot = replace(
            cluster(PACKED, found=obj), kubescheduler=kubescheduler(managementState="Removed")
        )
        found = [one for one in reconcile(snapshot).actions if isinstance(one, Delete)]
        assert AKS_SCHEDULER_CONFIGURATIONS in {one.resource for one in found}
        return
    (write,) = writes(snapshot)
    assert isinstance(write, Delete)


def test_an_error_of_the_api_is_reported_at_the_profiles() -> None:
    snapshot = replace(cluster(PACKED), write_errors={aks.REF: "admission webhook denied it"})
    assert "admission webhook denied it" in accepted(snapshot)["message"]


def test_a_secondary_scheduler_of_the_reserved_name_has_its_profiles() -> None:
    snapshot = with_schedulers(cluster(PACKED), secondary("aks"))
    assert writes(snapshot) == []
    assert accepted(snapshot)["status"] == "True"


def test_the_kind_is_watched_by_name_where_a_provider_runs_the_scheduler() -> None:
    (spec,) = [one for one in watches(MANAGED) if one.resource == AKS_SCHEDULER_CONFIGURATIONS]
    assert (spec.field_selector, spec.optional) == ("metadata.name=upstream", True)
    assert AKS_SCHEDULER_CONFIGURATIONS not in {one.resource for one in watches(KUBEADM)}
