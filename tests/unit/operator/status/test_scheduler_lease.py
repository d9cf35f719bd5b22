"""The holder of the control plane's Lease: one of its schedulers, or a foreign one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM, OPENSHIFT, Platform
from kube_scheduler_operator.operator.controlplane.conditions import rollout_conditions
from kube_scheduler_operator.operator.controlplane.revision.revise import RevisionResult
from kube_scheduler_operator.operator.controlplane.rollout.observe import Observation
from kube_scheduler_operator.operator.controlplane.rollout.rollout_step import RolloutStep
from kube_scheduler_operator.operator.status.conditions import Condition

from ....builders import by_name, snapshot

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def seen_holder(
    holder: str,
    *nodes: dict[str, Any],
    age: float = 1.0,
    left_ago: float | None = None,
    platform: Platform = KUBEADM,
) -> Condition:
    """The finding about the Lease's holder."""
    observed = snapshot(
        now=NOW,
        platform=platform,
        nodes=by_name(nodes),
        operand_lease={"spec": {"holderIdentity": holder, "leaseDurationSeconds": 15}},
        lease_seen=NOW - timedelta(seconds=age),
        node_left=NOW - timedelta(seconds=left_ago) if left_ago is not None else None,
    )
    found = rollout_conditions(RolloutStep(observed, RevisionResult(), Observation()))
    return {one.type: one for one in found}[names.UNKNOWN_LEASE_HOLDER]


def named(name: str, label: str = "", **addresses: str) -> dict[str, Any]:
    listed = [{"type": kind, "address": address} for kind, address in addresses.items()]
    labels = {"kubernetes.io/hostname": label} if label else {}
    return {"metadata": {"name": name, "labels": labels}, "status": {"addresses": listed}}


@pytest.mark.parametrize(
    ("holder", "node"),
    [
        ("a_123", named("a")),
        ("A_123", named("a")),
        ("a_123", named("a.example.com")),
        ("a.example.com_123", named("a")),
        ("under_score_123", named("under_score")),
        ("host_123", named("a", label="host")),
        ("host_123", named("a", Hostname="host.example.com")),
        ("host_123", named("a", InternalDNS="host.internal")),
    ],
)
def test_a_node_is_recognized_by_every_host_name(holder: str, node: dict[str, Any]) -> None:
    condition = seen_holder(holder, named("b"), node)
    assert (condition.status, condition.reason) == ("False", "AsExpected")


def test_a_holder_that_is_not_a_node_is_reported() -> None:
    condition = seen_holder("my-scheduler-7d9c5-x2x4z_123", named("a", InternalIP="10.0.0.1"))
    assert condition.status == "True"
    assert condition.message.startswith("my-scheduler-7d9c5-x2x4z holds the Lease kube-system/kube")
    assert "leaderElection.resourceName" in condition.message
    assert condition == seen_holder("my-scheduler-7d9c5-x2x4z_456", named("a")), (
        "one message for each pod"
    )


@pytest.mark.parametrize(
    ("holder", "nodes", "age"), [("", ["a"], 1.0), ("x_1", ["a"], 60.0), ("x_1", [], 1.0)]
)
def test_expired_or_unverifiable_holders_are_not_reported(
    holder: str, nodes: list[str], age: float
) -> None:
    assert seen_holder(holder, *map(named, nodes), age=age).status == "False"


@pytest.mark.parametrize(
    ("left_ago", "expected"), [(1.0, "False"), (21.0, "False"), (22.0, "True")]
)
def test_a_removed_node_may_hold_the_lease_until_it_expires(left_ago: float, expected: str) -> None:
    condition = seen_holder("gone_1", named("a"), age=1.0, left_ago=left_ago)
    assert condition.status == expected, "15 s, and 5 s of grace"


def test_the_bootstrap_machine_of_openshift_may_hold_the_lease() -> None:
    assert seen_holder("bootstrap_1", named("a"), platform=OPENSHIFT).status == "False"
