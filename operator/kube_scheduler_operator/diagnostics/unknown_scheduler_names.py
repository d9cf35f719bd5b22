"""Pods that ask for a scheduler that there is none of: they wait for ever, and nobody tells them.

Every scheduler that tries a pod and fails writes the condition PodScheduled on it. So a pod that
has waited for a while without one has not been looked at, and if none of the schedulers that we
know serves the name that it asks for, none will.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from ..base import names
from ..base.times import timestamp
from ..model.snapshot import PendingPod
from ..status.conditions import AS_EXPECTED, Condition

PATIENCE: Final = 30.0
"""Seconds that a scheduler has to look at a pod; the next one in line takes milliseconds."""

LISTED: Final = 500
"""So many pods are looked at; whoever has more of them that wait has been told already."""

PATH: Final = f"/api/v1/pods?fieldSelector=spec.nodeName%3D,status.phase%3DPending&limit={LISTED}"
"""Of the pods that wait for a scheduler, one page."""


def untouched(items: Iterable[Mapping[str, Any]]) -> tuple[PendingPod, ...]:
    """Of listed pods those that no scheduler has looked at; nothing else of them is kept."""
    return tuple(
        PendingPod(
            namespace=item["metadata"].get("namespace", ""),
            name=item["metadata"]["name"],
            uid=str(item["metadata"].get("uid") or ""),
            scheduler=str(item["spec"].get("schedulerName") or "default-scheduler"),
            created=timestamp(item["metadata"].get("creationTimestamp")),
        )
        for item in items
        if not item["spec"].get("nodeName")
        and not item["spec"].get("schedulingGates")
        and "deletionTimestamp" not in item["metadata"]
        and not any(
            condition.get("type") == "PodScheduled"
            for condition in (item.get("status") or {}).get("conditions") or ()
        )
    )


def unserved(
    pods: Iterable[PendingPod], served: Collection[str], now: datetime
) -> tuple[PendingPod, ...]:
    """Those of the pods that ask for a scheduler that there is none of."""
    return tuple(
        pod
        for pod in pods
        if pod.scheduler not in served
        and pod.created is not None
        and (now - pod.created).total_seconds() > PATIENCE
    )


def sentence(pod: PendingPod) -> str:
    """What is said of a pod, with it."""
    return (
        f'no scheduler serves the name "{pod.scheduler}", so this pod waits for ever: correct '
        "spec.schedulerName, or create a SecondaryScheduler with a profile of that name"
    )


def condition(pods: Iterable[PendingPod]) -> Condition:
    """Which names are asked for; how many ask is no part of it, for that changes all the time."""
    asked = sorted({pod.scheduler for pod in pods})
    if not asked:
        return Condition(names.PODS_WITHOUT_SCHEDULER, "False", AS_EXPECTED)
    message = (
        f"pods ask for schedulers that there are none of: {', '.join(asked)}; correct their "
        "spec.schedulerName, or create a SecondaryScheduler with a profile of that name"
    )
    return Condition(names.PODS_WITHOUT_SCHEDULER, "True", "NoSuchScheduler", message)
