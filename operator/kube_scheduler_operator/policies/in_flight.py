"""What pods will use that measurements do not show yet.

A measurement is a mean of some minutes and some minutes old: a pod that was bound since then is not
in it, one that was bound shortly before only in part. Without that, everything that arrives within
one period goes to the node that was idle when it was measured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from .arrays import Matrix

if TYPE_CHECKING:
    from .arrays import Column
    from .pods import Pod

_BELIEVED: Final = 4 * 3600.0
"""Seconds: no measurement is believed for that long; crane's longest are for three hours and five
minutes."""

Estimate = Callable[["Pod"], Sequence[float]]


class InFlight:
    """For each node what its pods will use that were bound since it was measured, or just before.

    Args:
        count: how many figures an estimate has.
        estimate: what a pod will use.
        clock: seconds since 1970.
        measured: when each node was measured; NaN: nobody knows, and all its pods count in full.
        lag: a pod that was bound so many seconds before the measurement or earlier is in it.
        fades: one bound within the lag is in it for as large a part of it as it was there, as in a
            mean over the lag; otherwise it is not in it at all, as if usage came late.

    Attributes:
        columns: one for each figure, 0 where no pod counts.
        matrix: the same together.
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
        self.matrix = Matrix(count, 0.0)
        self.columns = tuple(self.matrix.column(at) for at in range(count))
        self._estimate, self._clock, self._measured = estimate, clock, measured
        self._lag, self._fades = lag, fades
        self._pods: dict[int, dict[str, tuple[float, Sequence[float]]]] = {}
        self._inexact: set[int] = set()  # nodes of which some pods count in part

    def pod(self, index: int, pod: Pod, added: bool) -> bool:
        """A pod has come or gone; returns whether it matters."""
        pods = self._pods.get(index, {})
        known = pods.get(pod.key)
        if not added:
            if known is None:
                return False
            (bound, amounts), sign = known, -1.0
            del pods[pod.key]
        elif pod.bound + self._lag <= self._oldest(index):
            return False  # all of it is in the measurement
        else:
            bound, amounts, sign = pod.bound, self._estimate(pod), 1.0
            self._pods.setdefault(index, pods)[pod.key] = bound, amounts
        share = self._missing(bound, self._measured[index])
        if (added and known) or index in self._inexact or not pods or not _exact(share, amounts):
            self.renew(index)
        else:
            # A burst of pods on one node costs what they are, not that again for all before them.
            for figure, column in enumerate(self.columns):
                column[index] += sign * amounts[figure]
        return True

    def renew(self, index: int) -> None:
        """The node was measured anew, or its pods have changed."""
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
            # Sorted, so that the order in which pods came does not show in the last digit.
            column[index] = sum(sorted(share * amounts[figure] for share, amounts in shares))

    def _oldest(self, index: int) -> float:
        """When the node was measured; if nobody knows, what no measurement can be older than."""
        measured = self._measured[index]
        return measured if measured == measured else self._clock() - _BELIEVED

    def _missing(self, bound: float, measured: float) -> float:
        """How much of a pod the measurement does not have, 0..1."""
        if not self._fades or measured != measured:
            return 1.0
        return min(max(1.0 - (measured - bound) / self._lag, 0.0), 1.0)


def _exact(share: float, amounts: Sequence[float]) -> bool:
    """Whether it is whole numbers that are added, whose sum is the same in any order."""
    return share == 1.0 and not any(amount % 1.0 for amount in amounts)
