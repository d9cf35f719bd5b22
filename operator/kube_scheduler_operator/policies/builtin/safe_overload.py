"""safe-overload: keeps pods from nodes that would probably be overloaded with them.

The agent safe of kube-safe-scheduler; the risk is that of formulas/safe.py.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

from ...base.quantities import CPU
from ..arrays import np
from ..formulas import safe as formulas
from .safe import Safe

if TYPE_CHECKING:
    from ..arrays import Bools, Floats, Ints


class SafeOverload(Safe):
    """Rejects where the risk of overload is more than tolerated; prefers where there is little."""

    name = "safe-overload"
    filters = True

    def rejects(self, kind: Hashable, indices: Ints) -> Bools:
        """Of either resource; what is unknown passes."""
        tolerated = self.arguments.percentile / 100.0
        found = np.zeros(len(indices), np.bool_)
        for resource in self.resources:
            found |= self.risk(resource, kind, indices) > tolerated
        return found

    def reasons(self, kind: Hashable, indices: Ints) -> list[tuple[str, str]]:
        """See NodePolicy."""
        given = self.arguments
        return [
            (
                f"the risk that more than {given.utilization} percent of {' or '.join(risks)} is "
                f"used with this pod is above the tolerated {given.percentile} percent",
                ", ".join(f"{name}: {100 * risk:.1f} percent" for name, risk in risks.items()),
            )
            for risks in self._too_high(kind, indices)
        ]

    def scores_of(self, kind: Hashable, indices: Ints) -> Floats:
        """See NodePolicy."""
        tolerated = self.arguments.percentile / 100.0
        return self.worst(
            *(
                formulas.overload_score(self.risk(resource, kind, indices), tolerated)
                for resource in self.resources
            )
        )

    def _too_high(self, kind: Hashable, indices: Ints) -> list[dict[str, float]]:
        """For each node the risks beyond what is tolerated, by resource."""
        tolerated = self.arguments.percentile / 100.0
        risks = {
            "CPU" if resource == CPU else resource: self.risk(resource, kind, indices).tolist()
            for resource in self.resources
        }
        return [
            {name: of[at] for name, of in risks.items() if of[at] > tolerated}
            for at in range(len(indices))
        ]
