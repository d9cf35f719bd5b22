"""Unmanaged schedulers that serve a schedulerName which a managed scheduler serves already.

Two processes that serve one schedulerName bind the same pods, each by its own view of what is free,
and overcommit nodes. Leases of their own keep them from noticing each other. Every binding leaves
an event `Scheduled` with the profile (reportingController) and the process (reportingInstance: the
profile's name, a dash, and the host's name, which in a pod with its own network is the pod's name).

An event is a claim of its author, and a tenant writes any events in its namespace. A process counts
if such events are about bound pods of several namespaces.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeAlias

from ...base import names
from ...base.foreign_text import foreign
from ...base.limits import FOREIGN_NAME
from ...base.objects import Object, mapping
from ...base.times import timestamp
from ...config.effective.secondary.scheduler import CONTROL_PLANE
from ...kube import protobuf
from ..model.snapshot import BindingScheduler, Snapshot
from ..status.conditions import AS_EXPECTED, NOT_ALL_READ, Condition
from ..status.scheduler_lease import hosts_of, short

RECENT: Final = 180.0
"""Seconds for which a binding counts; events remain for an hour, schedulers may not."""

AT_MOST: Final = 500
"""The number of claims that one poll keeps."""

MOST_READ: Final = 2000
"""The number of events that one poll reads; the next one continues."""

FIELD_SELECTOR: Final = "reason=Scheduled"
"""The bindings of the last hour."""

NAMESPACES: Final = 2
"""The number of namespaces whose pods a process must have bound: a tenant has one."""

LOOK_UPS: Final = 20
"""The number of pods that one poll looks up."""

_LONGEST: Final = 128 + 1
"""Bytes of the names in an event: the API server accepts 128, and any number in core/v1 events."""

_LONGEST_POD: Final = 253 + 1
_POD_NAME: Final = re.compile(r"[a-z0-9][a-z0-9.-]{0,252}")
"""Needs no escapes in a field selector."""

_METADATA: Final = protobuf.Message(
    protobuf.text(3, "namespace"), protobuf.date(8, "creationTimestamp")
)
_REGARDING: Final = protobuf.Message(
    protobuf.begin_of_text(1, "kind", _LONGEST),
    protobuf.begin_of_text(3, "name", _LONGEST_POD),
    protobuf.begin_of_text(4, "uid", _LONGEST),
)
FIELDS: Final = protobuf.Message(
    protobuf.part(1, "metadata", _METADATA),
    protobuf.begin_of_text(4, "reportingController", _LONGEST),
    protobuf.begin_of_text(5, "reportingInstance", _LONGEST),
    protobuf.part(8, "regarding", _REGARDING),
)
"""The fields of an Event of events.k8s.io that `claims` reads."""

SHOWN: Final = 5
"""The number of schedulerNames that a message has."""


Process: TypeAlias = tuple[str, str]
"""A schedulerName, and the host of a process that serves it."""

ClaimKey: TypeAlias = tuple[str, str, str]
"""A process, and the namespace of pods that it bound."""


@dataclass(frozen=True, slots=True)
class BindingClaim:
    """The content of an event: a process bound a pod."""

    scheduler: str
    host: str
    namespace: str  # of the event, and so of the pod
    pod: str
    uid: str  # of the pod
    at: datetime

    @property
    def process(self) -> Process:
        return self.scheduler, self.host

    @property
    def key(self) -> ClaimKey:
        return self.scheduler, self.host, self.namespace

    def is_about(self, pod: Object) -> bool:
        """Whether this pod is the one that was bound, for the schedulerName of the claim."""
        spec = mapping(pod.get("spec"))
        return (
            mapping(pod.get("metadata")).get("uid") == self.uid
            and bool(spec.get("nodeName"))
            and spec.get("schedulerName") == self.scheduler
        )


class Changes:
    """Keeps an event only if it is the first or a later claim of its process and namespace.

    Of a thousand events of one scheduler, a few are kept.
    """

    def __init__(self) -> None:
        self._last: dict[ClaimKey, datetime] = {}

    def __call__(self, item: Mapping[str, Any]) -> bool:
        for claim in claims([item]):
            last = self._last.get(claim.key)
            if last is None or claim.at > last:
                self._last[claim.key] = claim.at
                return True
        return False


def claims(items: Iterable[Mapping[str, Any]]) -> tuple[BindingClaim, ...]:
    """The newest claim of each process in each namespace, from listed events."""
    newest: dict[ClaimKey, BindingClaim] = {}
    for item in items:
        name = str(item.get("reportingController") or "")
        host = str(item.get("reportingInstance") or "").removeprefix(f"{name}-")
        metadata, pod = mapping(item.get("metadata")), mapping(item.get("regarding"))
        # The eventTime is by the clock of a machine that may be anywhere.
        at = timestamp(metadata.get("creationTimestamp"))
        if not name or not host or at is None or pod.get("kind") != "Pod":
            continue
        namespace, pod_name = str(metadata.get("namespace") or ""), str(pod.get("name") or "")
        claim = BindingClaim(name, host, namespace, pod_name, str(pod.get("uid") or ""), at)
        if _POD_NAME.fullmatch(pod_name) and at >= newest.get(claim.key, claim).at:
            newest[claim.key] = claim
    return tuple(claim for _, claim in sorted(newest.items()))


def to_look_up(
    known: Iterable[BindingClaim], proven: Collection[ClaimKey]
) -> Iterator[BindingClaim]:
    """The claims whose pods would decide about a process, the newest first.

    A tenant can claim any number of processes, but each of them in its own namespace only.
    """
    newest = sorted(known, key=lambda claim: claim.at, reverse=True)
    for process, listed in _by_process(newest).items():
        count = sum((*process, claim.namespace) in proven for claim in listed)
        if len(listed) >= NAMESPACES > count:
            yield from [claim for claim in listed if claim.key not in proven][:NAMESPACES]


def binding_schedulers(
    known: Iterable[BindingClaim], proven: Collection[ClaimKey]
) -> tuple[BindingScheduler, ...]:
    """The processes that bound pods of several namespaces, with their last binding."""
    by_process = _by_process(claim for claim in known if claim.key in proven)
    return tuple(
        BindingScheduler(*process, max(claim.at for claim in listed))
        for process, listed in sorted(by_process.items())
        if len(listed) >= NAMESPACES
    )


def _by_process(known: Iterable[BindingClaim]) -> dict[Process, list[BindingClaim]]:
    by_process: dict[Process, list[BindingClaim]] = {}
    for claim in known:
        by_process.setdefault(claim.process, []).append(claim)
    return by_process


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

    The authors of events choose the hosts in them. So the condition has the schedulerNames, which
    are those of managed schedulers, but no host.

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
        "by the events of bound Pods in several namespaces, an unmanaged scheduler also binds "
        f"Pods for schedulerName {listed}{more}; compare reportingInstance in kubectl get "
        "events.v1.events.k8s.io --all-namespaces --field-selector reason=Scheduled -o yaml with "
        "your schedulers; two schedulers with one name overcommit nodes, so stop the other one, "
        "or give its profile another schedulerName"
    )
    return Condition(names.UNKNOWN_SCHEDULER, "True", "NameServedTwice", message)
