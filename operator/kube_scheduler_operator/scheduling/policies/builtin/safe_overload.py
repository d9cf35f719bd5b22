"""safe-overload: rejects nodes that the Pod would probably overload.

The agent safe of kube-safe-scheduler.
"""

from __future__ import annotations

from collections.abc import Hashable

from ....base.quantities import CPU
from ..arrays import Bools, Floats, Ints, np
from ..policy import BEST
from .safe import SafePolicy


class SafeOverload(SafePolicy):
    name = "safe-overload"
    filters = True

    def rejects(self, kind: Hashable, indices: Ints) -> Bools:
        """Reject a node if either resource is at risk; unknown nodes are accepted."""
        tolerated = self.arguments.percentile / 100.0
        rejected = np.zeros(len(indices), np.bool_)
        for resource in self.resources:
            rejected |= self.risk(resource, kind, indices) > tolerated
        return rejected

    def reasons(self, kind: Hashable, indices: Ints) -> list[tuple[str, str]]:
        arguments = self.arguments
        return [
            (
                f"the risk of using more than {arguments.utilization} percent of "
                f"{' or '.join(risks)} with this pod exceeds {arguments.percentile} percent",
                ", ".join(f"{name}: {100 * risk:.1f} percent" for name, risk in risks.items()),
            )
            for risks in self._too_high(kind, indices)
        ]

    def scores_of(self, kind: Hashable, indices: Ints) -> Floats:
        tolerated = self.arguments.percentile / 100.0
        return self.worst(
            *(_score(self.risk(resource, kind, indices), tolerated) for resource in self.resources)
        )

    def _too_high(self, kind: Hashable, indices: Ints) -> list[dict[str, float]]:
        """Return for each node the intolerable risks by resource."""
        tolerated = self.arguments.percentile / 100.0
        risks = {
            "CPU" if resource == CPU else resource: self.risk(resource, kind, indices).tolist()
            for resource in self.resources
        }
        return [
            {name: of[at] for name, of in risks.items() if of[at] > tolerated}
            for at in range(len(indices))
        ]


def _score(risk: Floats, tolerated: float) -> Floats:
    """Return trunc((1 - √f)·10), f = risk/P: 10 without risk, 0 at the tolerated risk P."""
    if tolerated > 0.0:
        share = np.minimum(risk / tolerated, 1.0)
    else:
        share = np.where(np.isnan(risk), risk, (risk > 0.0).astype(np.float64))
    return np.trunc((1.0 - np.sqrt(share)) * BEST)
