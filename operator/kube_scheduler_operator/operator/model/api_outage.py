"""Outages of the API server: they make schedulers fail whatever their revision is.

Without the API server, the leader gives up, every scheduler that starts exits again, and the
kubelet's back-off then keeps them down for minutes. So no revision fails because of an outage, and
no scheduler is replaced until it is clear which ones survive it.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from ...base.times import rfc3339
from .operand_pods import OperandPod
from .snapshot import Snapshot

AFTERMATH: Final = timedelta(seconds=13)
"""How long after the leader's first chance to renew schedulers may still exit because of an outage.

Pending requests time out (10 s), and the watches need a moment to notice.
"""


def accountable_since(snapshot: Snapshot) -> datetime | None:
    """The time since which an outage no longer explains that a scheduler exits or is not Ready.

    None: the API server does not answer the operator either.
    """
    since = snapshot.answered_since
    return since + _aftermath(snapshot) if since is not None else None


def is_excused(snapshot: Snapshot, pod: OperandPod) -> bool:
    """Whether an outage may explain the scheduler's last exit."""
    since = accountable_since(snapshot)
    return since is None or pod.ended is None or pod.ended <= since


def aftermath(snapshot: Snapshot) -> tuple[float, str]:
    """For how many seconds no scheduler may be replaced, and why; 0 if there was no outage."""
    if snapshot.answered_since is None:
        return 2.0, "the API server does not answer"
    recovered = snapshot.recovered_at
    if recovered is None:
        return 0.0, ""
    left = (recovered + _aftermath(snapshot) - snapshot.now).total_seconds()
    why = (
        f"the API server was down until {rfc3339(recovered)}; schedulers may still exit due to that"
    )
    return (left, why) if left > 0 else (0.0, "")


def _aftermath(snapshot: Snapshot) -> timedelta:
    """How long schedulers may still exit because of an outage that is over."""
    return snapshot.platform.operand_lease.retry + AFTERMATH
