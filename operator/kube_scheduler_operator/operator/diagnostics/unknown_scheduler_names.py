"""Pods whose `spec.schedulerName` no scheduler serves: they stay Pending, without any event.

A scheduler that fails to place a pod writes the pod's condition PodScheduled. A pod that has waited
for a while without that condition has not been attempted, and if no known scheduler serves its
schedulerName, it never will be.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from itertools import zip_longest
from typing import Any, Final

from ...base import names
from ...base.foreign_text import foreign
from ...base.limits import FOREIGN_NAME
from ...base.times import timestamp
from ...kube.protobuf import Message, begin_of_text, date, part, parts, present, text
from ..model.snapshot import PendingPod
from ..status.conditions import AS_EXPECTED, NOT_ALL_READ, Condition

GRACE_PERIOD: Final = 30.0
"""Seconds within which a scheduler attempts a new pod; a pod's turn in the queue takes less."""

AT_MOST: Final = 500
"""The number of pods without an attempt that one poll lists; the next one continues."""

MOST_READ: Final = 10_000
"""The number of pods that one poll reads to find those: any number may wait for something else,
such as a scheduling gate."""

_LONGEST: Final = 253 + 1
"""Bytes of a schedulerName: the API server does not limit them, and no scheduler serves a name that
is longer than names of Kubernetes may be."""

_METADATA: Final = Message(
    text(1, "name"),
    text(3, "namespace"),
    text(5, "uid"),
    date(8, "creationTimestamp"),
    present(9, "deletionTimestamp"),
)
_SPEC: Final = Message(
    text(10, "nodeName"),
    begin_of_text(19, "schedulerName", _LONGEST),
    present(38, "schedulingGates"),
)
_STATUS: Final = Message(parts(2, "conditions", Message(text(1, "type"))))
FIELDS: Final = Message(
    part(1, "metadata", _METADATA), part(2, "spec", _SPEC), part(3, "status", _STATUS)
)
"""The fields of a Pod that `not_attempted` reads."""

SHOWN: Final = 20
"""The number of names in a message."""

_SERVE: Final = (
    "create what serves it: a SchedulerProfile with spec.schedulerName (spec.scheduler is the "
    "SecondaryScheduler that runs it; unset: the control plane's scheduler), or a "
    "SecondaryScheduler with spec.profiles[].schedulerName"
)

_SELECTOR_LENGTH: Final = 4000
"""Characters of the selector in a URL; load balancers refuse URLs of 8 KiB."""

_PLAIN: Final = re.compile(r"[A-Za-z0-9._-]+")
"""Names that need no escapes in a field selector."""


def field_selector(served: Iterable[str] = ()) -> str:
    """Select the pods that have no node, and no schedulerName in `served`.

    Without `served`, thousands of pods that wait for a node of a known scheduler would fill the
    page in a large cluster. Names beyond the length of the selector are filtered later, by
    `without_scheduler`.
    """
    selector = "spec.nodeName=,status.phase=Pending"
    for name in sorted(served):
        term = f",spec.schedulerName!={name}"
        if _PLAIN.fullmatch(name) and len(selector) + len(term) <= _SELECTOR_LENGTH:
            selector += term
    return selector


def is_not_attempted(item: Mapping[str, Any]) -> bool:
    """Whether no scheduler has attempted a listed pod, although one should."""
    return (
        not item["spec"].get("nodeName")
        and not item["spec"].get("schedulingGates")
        and "deletionTimestamp" not in item["metadata"]
        and not any(
            condition.get("type") == "PodScheduled"
            for condition in (item.get("status") or {}).get("conditions") or ()
        )
    )


def not_attempted(items: Iterable[Mapping[str, Any]]) -> tuple[PendingPod, ...]:
    """The listed pods that no scheduler has attempted, reduced to what later steps need."""
    return tuple(
        PendingPod(
            namespace=item["metadata"].get("namespace", ""),
            name=item["metadata"]["name"],
            uid=str(item["metadata"].get("uid") or ""),
            scheduler=str(item["spec"].get("schedulerName") or "default-scheduler"),
            created=timestamp(item["metadata"].get("creationTimestamp")),
        )
        for item in items
        if is_not_attempted(item)
    )


def without_scheduler(
    pods: Iterable[PendingPod], served: Collection[str], now: datetime
) -> tuple[PendingPod, ...]:
    """The pods older than GRACE_PERIOD whose schedulerName is not in `served`."""
    return tuple(
        pod
        for pod in pods
        if pod.scheduler not in served
        and pod.created is not None
        and (now - pod.created).total_seconds() > GRACE_PERIOD
    )


def event_message(pod: PendingPod) -> str:
    name = foreign(pod.scheduler, FOREIGN_NAME)
    return (
        f'no scheduler serves spec.schedulerName "{name}", so this Pod stays Pending; '
        f"correct the name, or {_SERVE}"
    )


def _unknown_names(pods: Iterable[PendingPod]) -> list[str]:
    """The unknown names, in turn one of each namespace: a tenant's hide no others."""
    by_namespace: dict[str, set[str]] = {}
    for pod in pods:
        name = foreign(pod.scheduler, FOREIGN_NAME)
        by_namespace.setdefault(pod.namespace, set()).add(name)
    turns = zip_longest(*(sorted(by_namespace[namespace]) for namespace in sorted(by_namespace)))
    return list(dict.fromkeys(name for turn in turns for name in turn if name is not None))


def condition(pods: Iterable[PendingPod], *, unread: str = "") -> Condition:
    """The condition; it lists names but no counts, so that it does not change with every pod.

    `unread` is why some pods were not read, so that the names in them are unknown.
    """
    unknown = _unknown_names(pods)
    if not unknown and unread:
        message = (
            f"not all Pending Pods were read, because {unread}; see kubectl get pods "
            "--all-namespaces --field-selector status.phase=Pending"
        )
        return Condition(names.PODS_WITHOUT_SCHEDULER, "Unknown", NOT_ALL_READ, message)
    if not unknown:
        return Condition(names.PODS_WITHOUT_SCHEDULER, "False", AS_EXPECTED)
    listed = ", ".join(f'"{name}"' for name in unknown[:SHOWN])
    more = f" and {len(unknown) - SHOWN} more" if len(unknown) > SHOWN else ""
    message = (
        f"no scheduler serves spec.schedulerName {listed}{more}, and Pods with that name are "
        f"Pending; correct the name in the Pods, or {_SERVE}"
    )
    return Condition(names.PODS_WITHOUT_SCHEDULER, "True", "NoSuchScheduler", message)
