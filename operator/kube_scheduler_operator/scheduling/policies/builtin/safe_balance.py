"""safe-balance: prefers nodes with a low and steady load.

The agent safe of kube-safe-scheduler; objective: formulas/safe.py.
"""

from __future__ import annotations

from collections.abc import Hashable

from ..arrays import Floats, Ints
from ..formulas import safe as formulas
from .safe import SafePolicy


class SafeBalance(SafePolicy):
    """Scores by mean and standard deviation of the use of the worse resource."""

    name = "safe-balance"

    def scores_of(self, kind: Hashable, indices: Ints) -> Floats:
        return self.worst(
            *(
                formulas.balance_score(*self.utilisation(resource, kind, indices))
                for resource in self.resources
            )
        )
