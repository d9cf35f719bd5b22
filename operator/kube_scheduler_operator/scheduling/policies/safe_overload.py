"""safe-overload: keeps pods from nodes that would probably be overloaded with them.

The agent safe of kube-safe-scheduler; the risk is that of formulas/safe.py.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

from ..arrays import np
from ..formulas import safe as formulas
from ..quantities import CPU
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

    def reasons(self, kind: Hashable, indices: Ints) -> list[str]:
        """See NodePolicy."""
        given = self.arguments
        tolerated = given.percentile / 100.0
        risks = [
            ("CPU" if resource == CPU else resource, self.risk(resource, kind, indices).tolist())
            for resource in self.resources
        ]
        before = (
            f"the risk that more than {given.utilization} percent is used with this pod is too "
            "high, "
        )
        after = f"; tolerated: {given.percentile} percent"
        return [
            before
            + ", ".join(
                f"{name}: {100 * of[at]:.1f} percent" for name, of in risks if of[at] > tolerated
            )
            + after
            for at in range(len(indices))
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
