"""The control plane's Lease: whether it is renewed, and by whom."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..base import names
from ..model.node_hostnames import hosts_of, short
from .conditions import AS_EXPECTED, Condition

if TYPE_CHECKING:
    from ..model.snapshot import Snapshot

LEASE_GRACE = 5.0
"""Seconds on top of a Lease's duration before it counts as not being renewed."""


def lease_problem(snapshot: Snapshot) -> str:
    """Why the scheduler's Lease says that nobody schedules; empty if somebody does."""
    spec = (snapshot.operand_lease or {}).get("spec") or {}
    place = f"{snapshot.platform.operand_lease_namespace}/{snapshot.platform.operand_lease_name}"
    if not spec.get("holderIdentity"):
        return f"nobody holds the Lease {place}"
    seen = snapshot.lease_seen
    if seen is None or (snapshot.now - seen).total_seconds() > _lease_allowance(snapshot):
        return f"{spec['holderIdentity']} holds the Lease {place} but does not renew it"
    return ""


def lease_holder(snapshot: Snapshot) -> Condition:
    """Whether a process that is none of ours elects by the control plane's Lease.

    A scheduler calls itself by its host's name, which may be anything: so this is for information.
    The Lease of a node that was just taken away runs out, unless its scheduler still renews it. On
    OpenShift nothing is said: there a bootstrap machine has it first, and is no node.
    """
    type_ = names.UNKNOWN_LEASE_HOLDER
    spec = (snapshot.operand_lease or {}).get("spec") or {}
    host = str(spec.get("holderIdentity") or "").rpartition("_")[0]
    known = {short(name) for node in snapshot.nodes.values() for name in hosts_of(node)}
    explained = snapshot.platform.cluster_config or _may_run_out(snapshot)
    if explained or not host or not known or short(host) in known:
        return Condition(type_, "False", AS_EXPECTED)
    place = f"{snapshot.platform.operand_lease_namespace}/{snapshot.platform.operand_lease_name}"
    message = (
        f"{host} holds the Lease {place}, and no control-plane node is called so: if it is another "
        "scheduler, it elects by the control plane's Lease, and of those that share one only one "
        "works; give it a Lease of its own (leaderElection.resourceName), or replace it by a "
        "SecondaryScheduler"
    )
    return Condition(type_, "True", "NotAControlPlaneNode", message)


def _may_run_out(snapshot: Snapshot) -> bool:
    """Whether the scheduler's Lease may be that of somebody who has gone."""
    if lease_problem(snapshot) or snapshot.lease_seen is None:
        return True
    if snapshot.node_left is None:
        return False
    return (snapshot.lease_seen - snapshot.node_left).total_seconds() <= _lease_allowance(snapshot)


def _lease_allowance(snapshot: Snapshot) -> float:
    """Seconds after which a Lease that nobody renewed has run out."""
    spec = (snapshot.operand_lease or {}).get("spec") or {}
    return float(spec.get("leaseDurationSeconds") or 15) + LEASE_GRACE
