"""safe-balance: prefers nodes that are used little and evenly over time.

The agent safe of kube-safe-scheduler; the objective is that of formulas/safe.py.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

from ..formulas import safe as formulas
from .safe import Safe

if TYPE_CHECKING:
    from ..arrays import Floats, Ints


class SafeBalance(Safe):
    """Scores by mean and deviation of use, of the resource where it is worse."""

    name = "safe-balance"

    def scores_of(self, kind: Hashable, indices: Ints) -> Floats:
        """See NodePolicy."""
        return self.worst(
            *(
                formulas.balance_score(*self.utilisation(resource, kind, indices))
                for resource in self.resources
            )
        )
