"""Unmanaged schedulers that serve a schedulerName which a managed scheduler serves already.

Two processes that serve one schedulerName bind the same pods, each by its own view of what is free,
and overcommit nodes. Leases of their own keep them from noticing each other. Every binding leaves
an event `Scheduled` with the profile (reportingController) and the process (reportingInstance: the
profile's name, a dash, and the host's name, which in a pod with its own network is the pod's name).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from ...base import names
from ...base.foreign_text import foreign
from ...base.limits import FOREIGN_NAME
from ...base.times import timestamp
from ...config.effective.secondary.scheduler import CONTROL_PLANE
from ...kube import protobuf
from ..model.snapshot import BindingScheduler, Snapshot
from ..status.conditions import AS_EXPECTED, NOT_ALL_READ, Condition
from ..status.scheduler_lease import hosts_of, short

RECENT: Final = 180.0
"""Seconds for which a binding counts; events remain for an hour, schedulers may not."""

AT_MOST: Final = 500
"""The number of schedulers of events that one poll lists."""

MOST_READ: Final = 2000
"""The number of events that one poll reads; the next one continues."""

FIELD_SELECTOR: Final = "reason=Scheduled"
"""The bindings of the last hour."""

_LONGEST: Final = 128 + 1
"""Bytes of the names in an event: the API server accepts 128, and any number in core/v1 events."""

FIELDS: Final = protobuf.Message(
    protobuf.part(1, "metadata", protobuf.Message(protobuf.date(8, "creationTimestamp"))),
    protobuf.begin_of_text(4, "reportingController", _LONGEST),
    protobuf.begin_of_text(5, "reportingInstance", _LONGEST),
)
"""The fields of an Event of events.k8s.io that `binding_schedulers` reads."""

SHOWN: Final = 5
"""The number of schedulerNames that a message has."""


class Changes:
    """Keeps an event only if it is the first or a later binding of its scheduler.

    Of a thousand events of one scheduler, a few are kept.
    """

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], datetime] = {}

    def __call__(self, item: Mapping[str, Any]) -> bool:
        for binding in binding_schedulers([item]):
            key = binding.scheduler, binding.host
            last = self._last.get(key)
            if last is None or binding.at > last:
                self._last[key] = binding.at
                return True
        return False


def binding_schedulers(items: Iterable[Mapping[str, Any]]) -> tuple[BindingScheduler, ...]:
    """The processes that bound pods, with the time of their last binding, from listed events."""
    last: dict[tuple[str, str], datetime] = {}
    for item in items:
        name = str(item.get("reportingController") or "")
        host = str(item.get("reportingInstance") or "").removeprefix(f"{name}-")
        # The eventTime is by the clock of a machine that may be anywhere.
        at = timestamp((item.get("metadata") or {}).get("creationTimestamp"))
        if not name or not host or at is None:
            continue
        last[name, host] = max(at, last.get((name, host), at))
    return tuple(BindingScheduler(name, host, at) for (name, host), at in sorted(last.items()))


def unmanaged(snapshot: Snapshot, served: Mapping[str, str]) -> tuple[BindingScheduler, ...]:
    """The processes that bind pods for a served name and are not managed schedulers.

    Pods of a SecondaryScheduler are recognised by its name, because they change with every rollout.
    A process that was last seen before a control-plane node was removed may have run there. On
    OpenShift, the machine that bootstraps the cluster binds pods first.
    """
    known = {short(name) for node in snapshot.nodes.values() for name in hosts_of(node)}
    comparable = known and not snapshot.platform.cluster_config
    ours = tuple(f"{name}-" for name in snapshot.secondaries.schedulers)
    removed = snapshot.node_left
    return tuple(
        binding
        for binding in snapshot.binding_schedulers
        if binding.scheduler in served
        and (comparable or served[binding.scheduler] != CONTROL_PLANE)
        and (snapshot.now - binding.at).total_seconds() < RECENT
        and (removed is None or (binding.at - removed).total_seconds() > 0)
        and short(binding.host) not in known
        and not binding.host.startswith(ours)
    )


def condition(bindings: Iterable[BindingScheduler], *, unread: str = "") -> Condition:
    """The condition; it omits the time of bindings, so that it does not change with each one.

    An event is only a claim: users who may create events control their content. So the condition
    has the schedulerNames, which are those of managed schedulers, but no host.

    `unread` is why some events were not read.
    """
    claimed = sorted({foreign(binding.scheduler, FOREIGN_NAME) for binding in bindings})
    if not claimed:
        if unread:
            message = f"not all events of bindings were read, because {unread}"
            return Condition(names.UNKNOWN_SCHEDULER, "Unknown", NOT_ALL_READ, message)
        return Condition(names.UNKNOWN_SCHEDULER, "False", AS_EXPECTED)
    listed = ", ".join(f'"{name}"' for name in claimed[:SHOWN])
    more = f" and {len(claimed) - SHOWN} more" if len(claimed) > SHOWN else ""
    message = (
        "events report that an unmanaged scheduler also binds Pods for schedulerName "
        f"{listed}{more}; another client may have written them: compare reportingInstance in "
        "kubectl get events.v1.events.k8s.io --all-namespaces --field-selector reason=Scheduled "
        "-o yaml with your schedulers; two schedulers with one name overcommit nodes, so stop the "
        "other one, or give its profile another schedulerName"
    )
    return Condition(names.UNKNOWN_SCHEDULER, "True", "NameServedTwice", message)
