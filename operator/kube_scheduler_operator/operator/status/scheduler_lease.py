"""The Lease of the control plane's scheduler: whether it is renewed, and by which process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from ...base import names
from ...base.objects import Object
from ..model.snapshot import Snapshot
from .conditions import AS_EXPECTED, Condition, condition_in

LEASE_GRACE = 5.0
"""Seconds on top of a Lease's duration before it counts as not being renewed."""


def lease_health(
    lease: Object | None, seen: datetime | None, now: datetime, place: str
) -> tuple[str, float | None]:
    """(why a Lease shows that no scheduler leads, seconds until it would show that).

    `seen` is the time of its last observed renewal.
    """
    spec = (lease or {}).get("spec") or {}
    if not spec.get("holderIdentity"):
        return f"the Lease {place} has no holder", None
    left = lease_allowance(spec) - (now - seen).total_seconds() if seen is not None else -1.0
    if left < 0:
        return f"{spec['holderIdentity']} holds the Lease {place} but does not renew it", None
    return "", left + 0.5


def control_plane_lease(snapshot: Snapshot) -> tuple[str, float | None]:
    """The health of the Lease of the control plane's scheduler.

    A process that has just started has not seen a renewal yet: until one is due, the last reported
    health counts; without a report, the Lease counts as healthy.
    """
    lease, seen = snapshot.operand_lease, snapshot.lease_seen
    before = condition_in(snapshot.status, names.STATIC_PODS_AVAILABLE).get("status")
    if seen is None and before != "False":
        seen = snapshot.answered_since
    return lease_health(lease, seen, snapshot.now, _place(snapshot))


def was_renewed(snapshot: Snapshot) -> bool:
    """Whether this process has observed a renewal: later than the Lease that it listed first."""
    seen, since = snapshot.lease_seen, snapshot.answered_since
    if seen is None or since is None:
        return False
    allowance = lease_allowance((snapshot.operand_lease or {}).get("spec") or {})
    return (seen - since).total_seconds() > allowance


def lease_holder(snapshot: Snapshot) -> Condition:
    """Whether an unmanaged process holds the Lease of the control plane's scheduler.

    For information only, because a scheduler identifies itself by its host name, which can be
    anything. The Lease of a node that was just removed expires, unless its scheduler still renews
    it. Not reported on OpenShift, where the bootstrap machine, which is not a node, holds it first.
    """
    type_ = names.UNKNOWN_LEASE_HOLDER
    host = _holding_host(snapshot)
    explained = snapshot.platform.cluster_config or _may_run_out(snapshot)
    if explained or not host or not snapshot.nodes or holding_node(snapshot):
        return Condition(type_, "False", AS_EXPECTED)
    message = (
        f"{host} holds the Lease {_place(snapshot)}, but no control-plane node has this host name: "
        "if it is another scheduler, it shares the Lease, and only one of those that share it "
        "schedules; give it a Lease of its own (leaderElection.resourceName), or replace it with a "
        "SecondaryScheduler"
    )
    return Condition(type_, "True", "NotAControlPlaneNode", message)


def holding_node(snapshot: Snapshot) -> str:
    """The control-plane node whose host name the holder of the Lease has; empty: none has it."""
    host = short(_holding_host(snapshot))
    holding = (n for n, node in snapshot.nodes.items() if host in map(short, hosts_of(node)))
    return next(holding, "") if host else ""


def _holding_host(snapshot: Snapshot) -> str:
    spec = (snapshot.operand_lease or {}).get("spec") or {}
    return str(spec.get("holderIdentity") or "").rpartition("_")[0]


def _may_run_out(snapshot: Snapshot) -> bool:
    """Whether the scheduler's Lease may be left from a process that has ended."""
    if control_plane_lease(snapshot)[0] or snapshot.lease_seen is None:
        return True
    if snapshot.node_left is None:
        return False
    allowance = lease_allowance((snapshot.operand_lease or {}).get("spec") or {})
    return (snapshot.lease_seen - snapshot.node_left).total_seconds() <= allowance


def lease_duration(spec: Object) -> float:
    """Seconds after its last renewal at which another process may take a Lease."""
    return float(spec.get("leaseDurationSeconds") or 15)


def lease_allowance(spec: Object) -> float:
    """Seconds after its last renewal at which a Lease counts as not being renewed."""
    return lease_duration(spec) + LEASE_GRACE


def _place(snapshot: Snapshot) -> str:
    return f"{snapshot.platform.operand_lease_namespace}/{snapshot.platform.operand_lease_name}"


def hosts_of(node: Mapping[str, Any]) -> Iterator[str]:
    """The possible host names of a node."""
    yield str(node["metadata"]["name"])
    yield str((node["metadata"].get("labels") or {}).get("kubernetes.io/hostname") or "")
    for address in (node.get("status") or {}).get("addresses") or ():
        if address.get("type") in ("Hostname", "InternalDNS"):
            yield str(address.get("address") or "")


def short(host: str) -> str:
    """`host` without its domain: a node's name or its host's name may have one."""
    return host.lower().partition(".")[0]
