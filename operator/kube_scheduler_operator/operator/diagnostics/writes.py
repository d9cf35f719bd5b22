"""What the operator noticed about its writes and the state of etcd, as conditions."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from ...base import names
from ...base.times import rfc3339
from ..model.snapshot import FutileWrite, Futility
from ..status.conditions import AS_EXPECTED, Condition, problem_condition

RESTORE_REPORTED: Final = timedelta(hours=1)
"""How long a restore of etcd is reported."""

_PAUSE: Final = "pause the operator (docs/operations.md#pause-the-operator)"

_FIELDS: Final = 5
"""The number of fields in one message."""


def futile_writes(writes: Iterable[FutileWrite]) -> Condition:
    return problem_condition(
        names.WRITES_DEGRADED, ((write.why.value, message(write)) for write in writes)
    )


def message(write: FutileWrite) -> str:
    """One futile write in one sentence; without counts and times, so that it does not change."""
    fields = ", ".join(write.fields[:_FIELDS])
    if len(write.fields) > _FIELDS:
        fields += f" and {len(write.fields) - _FIELDS} more"
    other = "another client"
    if write.manager not in ("", "unknown"):
        other += f' (managedFields manager "{write.manager}")'
    match write.why:
        case Futility.DROPPED:
            return (
                f"{write.ref}: the API server does not store {fields}; apply crds/ of this version "
                "of the operator (on OpenShift deploy/openshift/crds), or change the admission "
                "webhook that removes it"
            )
        case Futility.REVERTED if fields:
            return (
                f"{write.ref}: {other} reverts {fields} after each write of the operator; stop "
                f"that client, or {_PAUSE}"
            )
        case Futility.REVERTED:
            return (
                f"{write.ref}: {other} deletes it each time the operator creates it; stop that "
                f"client, or {_PAUSE}"
            )
        case Futility.CONFLICT:
            return (
                f"{write.ref}: every write ends in a conflict; {other} changes it continuously, or "
                "an admission webhook returns 409: stop it"
            )


def restored(noticed: datetime | None, now: datetime) -> Condition:
    """Whether etcd was restored from a backup lately; for information only."""
    if noticed is None or now - noticed > RESTORE_REPORTED:
        return Condition(names.ETCD_RESTORED, "False", AS_EXPECTED)
    text = (
        f"at {rfc3339(noticed)} the API server had an older state than before: etcd was restored "
        "from an older backup; the operator has listed everything again and continues with that "
        "state; check Scheduler and KubeScheduler, because edits made after the backup are lost"
    )
    return Condition(names.ETCD_RESTORED, "True", "RestoredFromBackup", text)
