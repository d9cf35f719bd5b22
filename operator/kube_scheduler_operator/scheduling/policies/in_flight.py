"""The expected load of Pods that measurements do not include yet.

A measurement is a mean over some minutes and some minutes old. It does not include Pods that were
bound later, and includes those bound shortly before only in part. Without a correction, all Pods of
one measuring period are placed on the node that was idle when it was measured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from .arrays import Column, Matrix
from .pods import Pod

_TRUSTED_SECONDS: Final = 4 * 3600.0
"""Seconds, longer than any measurement is valid; crane's are valid for up to 3 h 5 min."""

Estimate = Callable[["Pod"], Sequence[float]]


class InFlight:
    """For each node, the expected load of Pods that its measurement does not fully include.

    Args:
        count: number of values of an estimate.
        estimate: the expected load of a Pod.
        clock: seconds since 1970.
        measured: time of each node's measurement; NaN: unknown, and all its Pods count in full.
        lag: seconds before a measurement; Pods that were bound earlier are fully included.
        fades: whether Pods bound within the lag are included in proportion to their time, as in a
            mean over the lag; otherwise they are not included, as if usage were reported late.
    """

    def __init__(
        self,
        count: int,
        estimate: Estimate,
        clock: Callable[[], float],
        measured: Column,
        lag: float,
        *,
        fades: bool,
    ) -> None:
        self.matrix = Matrix(count, 0.0)  # a column for each value; 0 without such Pods
        self.columns = tuple(self.matrix.column(at) for at in range(count))
        self._estimate, self._clock, self._measured = estimate, clock, measured
        self._lag, self._fades = lag, fades
        self._pods: dict[int, dict[str, tuple[float, Sequence[float]]]] = {}
        self._inexact: set[int] = set()  # nodes with Pods that count in part

    def pod(self, index: int, pod: Pod, added: bool) -> bool:
        """Process an added or removed Pod; returns whether a value has changed."""
        pods = self._pods.get(index, {})
        known = pods.get(pod.key)
        if not added:
            if known is None:
                return False
            (bound, amounts), sign = known, -1.0
            del pods[pod.key]
        elif pod.bound + self._lag <= self._oldest(index):
            return False  # fully included in the measurement
        else:
            bound, amounts, sign = pod.bound, self._estimate(pod), 1.0
            self._pods.setdefault(index, pods)[pod.key] = bound, amounts
        share = self._missing(bound, self._measured[index])
        if (added and known) or index in self._inexact or not pods or not _exact(share, amounts):
            self.renew(index)
        else:
            # Adding only the new Pod keeps the cost of a burst of Pods on one node linear.
            for figure, column in enumerate(self.columns):
                column[index] += sign * amounts[figure]
        return True

    def renew(self, index: int) -> None:
        """Recompute a node after a new measurement or a change of its Pods."""
        pods = self._pods.get(index)
        measured = self._measured[index]
        if pods is not None and measured == measured:
            for key in [key for key, (at, _) in pods.items() if at + self._lag <= measured]:
                del pods[key]
        if not pods:
            self._pods.pop(index, None)
        self._inexact.discard(index)
        shares = [(self._missing(at, measured), amounts) for at, amounts in (pods or {}).values()]
        if not all(_exact(share, amounts) for share, amounts in shares):
            self._inexact.add(index)
        for figure, column in enumerate(self.columns):
            # Sorted, so that the sum does not depend on the order of events.
            column[index] = sum(sorted(share * amounts[figure] for share, amounts in shares))

    def _oldest(self, index: int) -> float:
        """Return the time of the node's measurement; if unknown, the age limit of measurements."""
        measured = self._measured[index]
        return measured if measured == measured else self._clock() - _TRUSTED_SECONDS

    def _missing(self, bound: float, measured: float) -> float:
        """Return the share of a Pod's load that the measurement does not include, 0..1."""
        if not self._fades or measured != measured:
            return 1.0
        return min(max(1.0 - (measured - bound) / self._lag, 0.0), 1.0)


def _exact(share: float, amounts: Sequence[float]) -> bool:
    """Report whether the summands are integers, whose sum does not depend on their order."""
    return share == 1.0 and not any(amount % 1.0 for amount in amounts)
