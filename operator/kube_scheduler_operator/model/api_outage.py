"""The API server was away: what schedulers do because of that says nothing about their revision.

Without it a leader gives up, whoever starts ends again, and the kubelet's back-off then keeps them
away for minutes. So nobody is blamed for it, and nobody loses a scheduler until it is clear which
ones are left.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from ..base.times import rfc3339
from .operand_pods import Operand
from .snapshot import Snapshot

AFTERMATH: Final = timedelta(seconds=13)
"""How long after a leader's first chance to renew schedulers may still end because of an outage.

Requests that were under way time out (10 s), and the watches need a moment to tell.
"""


def accountable_since(snapshot: Snapshot) -> datetime | None:
    """The moment since which a scheduler that ends or is not Ready has itself to blame.

    None: the API server does not answer us either.
    """
    since = snapshot.answered_since
    return since + _aftermath(snapshot) if since is not None else None


def is_excused(snapshot: Snapshot, pod: Operand) -> bool:
    """Whether a scheduler's last end may be the API server's fault."""
    since = accountable_since(snapshot)
    return since is None or pod.ended is None or pod.ended <= since


def aftermath(snapshot: Snapshot) -> tuple[float, str]:
    """For how many seconds no scheduler may be taken away, and why; 0 if there was no outage."""
    if snapshot.answered_since is None:
        return 2.0, "the API server does not answer"
    recovered = snapshot.recovered_at
    if recovered is None:
        return 0.0, ""
    left = (recovered + _aftermath(snapshot) - snapshot.now).total_seconds()
    why = f"the API server was away until {rfc3339(recovered)}, schedulers may still end of that"
    return (left, why) if left > 0 else (0.0, "")


def _aftermath(snapshot: Snapshot) -> timedelta:
    """How long schedulers may still end because of an outage that is over."""
    return snapshot.platform.operand_lease.retry + AFTERMATH
