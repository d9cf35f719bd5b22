"""Schedulers that the operator does not know and that serve a name which is served already.

Two processes that serve one schedulerName bind the same pods, each by its own idea of what is free,
and nobody says so: Leases of their own keep them from noticing each other. But every binding leaves
an event `Scheduled` that names the profile (reportingController) and who it was
(reportingInstance: the profile's name, a dash, and the host's name, which in a pod with a network
of its own is the pod's name).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from ..base import names
from ..base.times import timestamp
from ..model.node_hostnames import hosts_of, short
from ..model.snapshot import Binder, Snapshot
from ..secondary.filter_differences import CONTROL_PLANE
from ..status.conditions import AS_EXPECTED, Condition

RECENT: Final = 180.0
"""Seconds for which a binding counts; events stay for an hour, schedulers may not."""

LISTED: Final = 500
"""So many events are looked at. They come in no order of time, so these are a sample."""

PATH: Final = f"/apis/events.k8s.io/v1/events?fieldSelector=reason%3DScheduled&limit={LISTED}"
"""Of the bindings of the last hour, one page."""


def binders(items: Iterable[Mapping[str, Any]]) -> tuple[Binder, ...]:
    """Who binds pods, and when it was last seen to; nothing else of the events is kept."""
    last: dict[tuple[str, str], datetime] = {}
    for item in items:
        name = str(item.get("reportingController") or "")
        host = str(item.get("reportingInstance") or "").removeprefix(f"{name}-")
        at = timestamp(item.get("eventTime"))
        if not name or not host or at is None:
            continue
        last[name, host] = max(at, last.get((name, host), at))
    return tuple(Binder(name, host, at) for (name, host), at in sorted(last.items()))


def rivals(snapshot: Snapshot, served: Mapping[str, str]) -> tuple[Binder, ...]:
    """Those that bind pods for a name that is served, and are none of the schedulers we know.

    Pods of a SecondaryScheduler are known by its name, for those of a rollout come and go. Who was
    seen before a control-plane node was taken away may have been on it, and on OpenShift another
    machine binds pods first, which bootstraps the cluster.

    Args:
        snapshot: what was seen.
        served: schedulerName -> who serves it.
    """
    known = {short(name) for node in snapshot.nodes.values() for name in hosts_of(node)}
    comparable = known and not snapshot.platform.cluster_config
    ours = tuple(f"{name}-" for name in snapshot.secondaries.schedulers)
    gone = snapshot.node_left
    return tuple(
        binder
        for binder in snapshot.secondaries.binders
        if binder.scheduler in served
        and (comparable or served[binder.scheduler] != CONTROL_PLANE)
        and (snapshot.now - binder.at).total_seconds() < RECENT
        and (gone is None or (binder.at - gone).total_seconds() > 0)
        and short(binder.host) not in known
        and not binder.host.startswith(ours)
    )


def rivals_condition(found: Iterable[Binder]) -> Condition:
    """Who fights over which name; when it was seen is no part of it, for that changes."""
    fights = sorted({(each.scheduler, each.host) for each in found})
    if not fights:
        return Condition(names.UNKNOWN_SCHEDULER, "False", AS_EXPECTED)
    listed = "; ".join(f'{host} serves "{name}"' for name, host in fights[:5])
    more = f" and {len(fights) - 5} more" if len(fights) > 5 else ""
    message = (
        f"a scheduler that the operator does not know binds pods of a name that is served already: "
        f"{listed}{more}; both place pods by their own idea of what is free, so stop it, or give "
        "its profile another schedulerName"
    )
    return Condition(names.UNKNOWN_SCHEDULER, "True", "NameServedTwice", message)
