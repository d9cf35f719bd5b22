"""Which objects get a status while KubeScheduler is not Managed, and what `check` knows of it."""

from __future__ import annotations

from typing import Any, Final

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM, MANAGED, Platform
from kube_scheduler_operator.base.recognition import PlatformDecision, Recognition
from kube_scheduler_operator.kube.resource import (
    KUBE_SCHEDULERS,
    LOAD_POLICIES,
    OPERATOR_SETTINGS,
    SCHEDULER_EXTENDERS,
    SCHEDULER_PROFILES,
    SECONDARY_SCHEDULERS,
)
from kube_scheduler_operator.operator.status.observation import why_unobserved

from ....expect import condition_of
from ...fake_cluster import FakeCluster

EXTENDER: Final = {"url": "http://10.0.0.1/x", "verbs": {"filter": "filter"}}
OWN: Final = "managed-scheduler"
EKS: Final = PlatformDecision(Recognition(MANAGED, "EKS", "so it is"), remember=True)
OBSERVED: Final = {
    "LoadPolicy load", "SchedulerExtender of-packed", "SchedulerProfile of-packed",
    "SecondaryScheduler packed",
}  # fmt: skip


def edit(cluster: FakeCluster) -> None:
    """Create an object of every kind, for every scheduler."""
    cluster.secondary("packed", profiles=[{"schedulerName": "packed"}])
    for name, spec in {
        "of-control-plane": {},
        "of-packed": {"scheduler": "packed"},
        "of-managed": {"scheduler": OWN},
        "of-missing": {"scheduler": "missing"},
    }.items():
        cluster.put(SCHEDULER_PROFILES, name, **spec)
        cluster.put(SCHEDULER_EXTENDERS, name, **EXTENDER, **spec)
    cluster.put(OPERATOR_SETTINGS, "cluster", pods={})
    cluster.put(LOAD_POLICIES, "load", source={"type": "MetricsServer"})


def objects(cluster: FakeCluster) -> list[tuple[str, Any]]:
    listed = (
        SCHEDULER_PROFILES, SCHEDULER_EXTENDERS, OPERATOR_SETTINGS, SECONDARY_SCHEDULERS,
        LOAD_POLICIES,
    )  # fmt: skip
    return [(kind.kind, obj) for kind in listed for obj in cluster.list(kind)]


@pytest.mark.parametrize("state", ["Unmanaged", "Removed", None])
@pytest.mark.parametrize(("platform", "decision"), [(KUBEADM, None), (MANAGED, EKS)])
def test_what_is_not_observed_is_known(
    platform: Platform, decision: PlatformDecision | None, state: str | None
) -> None:
    cluster = FakeCluster(platform, decision)
    cluster.settle()
    if state is None:
        cluster.remove(KUBE_SCHEDULERS, "cluster")
    else:
        cluster.put(KUBE_SCHEDULERS, "cluster", managementState=state)
    cluster.settle()
    edit(cluster)
    cluster.settle()
    kubescheduler = next(iter(cluster.list(KUBE_SCHEDULERS)), None)
    schedulers = {obj["metadata"]["name"]: obj for obj in cluster.list(SECONDARY_SCHEDULERS)}
    observed, known = set(), set()
    for kind, obj in objects(cluster):
        name = f"{kind} {obj['metadata']['name']}"
        if condition_of(obj, names.READY)[0] in ("True", "False"):
            observed.add(name)
        why = why_unobserved(kind, obj, kubescheduler, schedulers)
        if not why:
            known.add(name)
        elif state is None:
            assert why == 'KubeScheduler "cluster" does not exist'
        else:
            assert why == f"spec.managementState of KubeScheduler cluster is {state}"
    assert known == observed
    assert observed - {f"SecondaryScheduler {OWN}"} == OBSERVED
