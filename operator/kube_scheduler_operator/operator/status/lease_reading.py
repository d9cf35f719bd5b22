"""A Lease that is read once: whether a process leads, by the time of its last write."""

from __future__ import annotations

from datetime import datetime

from ...base.objects import Object, mapping
from ...base.times import rfc3339, timestamp
from .scheduler_lease import LEASE_GRACE, lease_allowance


def lease_problem(lease: Object | None, place: str, who: str, now: datetime) -> str:
    """Why no process leads; empty: one holds the Lease and renews it, or has just released it."""
    spec = mapping(mapping(lease).get("spec"))
    holder = str(spec.get("holderIdentity") or "")
    renewed = renewed_at(lease) if lease is not None else None
    age = None if renewed is None else (now - renewed).total_seconds()
    if age is not None and age <= (lease_allowance(spec) if holder else LEASE_GRACE):
        return ""
    if not holder:
        return f"no {who} holds the Lease {place}"
    since = "" if renewed is None else f" since {rfc3339(renewed)}"
    return f"{holder} holds the Lease {place} but has not renewed it{since}"


def renewed_at(lease: Object) -> datetime | None:
    """The last renewal of a Lease, by the API server's clock if it noted the write."""
    return written_at(lease) or timestamp(mapping(lease.get("spec")).get("renewTime"))


def written_at(lease: Object) -> datetime | None:
    """When renewTime was last written, by the API server's clock; None: it was not noted."""
    moments = [
        moment
        for entry in lease["metadata"].get("managedFields") or ()
        if "f:renewTime" in ((entry.get("fieldsV1") or {}).get("f:spec") or {})
        and (moment := timestamp(entry.get("time")))
    ]
    return max(moments, default=None)
