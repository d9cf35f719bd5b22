"""What OpenShift's tools look for in the status, whatever is wrong with the cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM, OPENSHIFT, Platform
from kube_scheduler_operator.kube.resource import CONFIG_MAPS, KUBE_SCHEDULERS
from kube_scheduler_operator.operator.controlplane.conditions import CONSTANT
from kube_scheduler_operator.operator.engine.reconcile import reconcile
from kube_scheduler_operator.operator.model.plan import Plan
from kube_scheduler_operator.operator.model.snapshot import Snapshot

from ....builders import kubescheduler, scheduler, snapshot
from ....expect import status_of_kubescheduler

REFERENCE = {
    "BackingResourceControllerDegraded", "ConfigObservationDegraded", "GuardControllerDegraded",
    "InstallerControllerDegraded", "InstallerPodContainerWaitingDegraded",
    "InstallerPodNetworkingDegraded", "InstallerPodPendingDegraded",
    "KubeControllerManagerStaticResourcesDegraded", "MissingStaticPodControllerDegraded",
    "NodeControllerDegraded", "NodeInstallerDegraded", "NodeInstallerProgressing",
    "ResourceSyncControllerDegraded", "RevisionControllerDegraded", "StaticPodsAvailable",
    "StaticPodsDegraded", "TargetConfigControllerDegraded", "UnsupportedConfigOverridesUpgradeable",
}  # fmt: skip
"""The condition types of OpenShift's own operator, which its conformance tests ask for."""


def cluster(platform: Platform, **fields: Any) -> Snapshot:
    """A cluster in which little exists."""
    return snapshot(
        platform=platform,
        server_version="v1.35.4",
        **{"scheduler": scheduler(), "kubescheduler": kubescheduler(), **fields},
    )


def reported(snapshot: Snapshot) -> Plan:
    """The plan once spec.observedConfig has been written."""
    plan = reconcile(snapshot)
    (first, *_) = plan.actions
    if first.resource == KUBE_SCHEDULERS and "status" not in first.obj:
        return reconcile(replace(snapshot, kubescheduler=first.obj))
    return plan


@pytest.mark.parametrize("platform", [OPENSHIFT, KUBEADM], ids=lambda platform: platform.name)
def test_on_openshift_every_condition_type_of_the_reference_is_reported(platform: Platform) -> None:
    plan = reported(cluster(platform))
    conditions = {c["type"]: c for c in status_of_kubescheduler(plan)["conditions"]}
    renamed = set() if platform is OPENSHIFT else set(CONSTANT)
    assert REFERENCE - conditions.keys() == renamed
    for type_ in CONSTANT.keys() & conditions.keys():
        assert conditions[type_]["status"] == "False"
        assert conditions[type_]["message"].startswith("always False: ")


def test_the_policy_is_copied_although_no_revision_can_be_made() -> None:
    policy = {"metadata": {"name": "mine"}, "data": {"policy.cfg": "{}"}}
    named = scheduler(policy={"name": "mine"})
    plan = reported(cluster(OPENSHIFT, scheduler=named, user_config_maps={"mine": policy}))
    written = [w.obj for w in plan.actions if w.resource == CONFIG_MAPS]
    assert [one["metadata"]["name"] for one in written] == [names.POLICY]
