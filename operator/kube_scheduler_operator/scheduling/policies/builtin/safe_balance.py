"""safe-balance: prefers nodes with a low and steady load.

The agent safe of kube-safe-scheduler.
"""

from __future__ import annotations

from collections.abc import Hashable

from ..arrays import Floats, Ints, np
from ..policy import BEST
from .safe import SafePolicy


class SafeBalance(SafePolicy):
    """Scores by mean and standard deviation of the use of the worse resource."""

    name = "safe-balance"

    def scores_of(self, kind: Hashable, indices: Ints) -> Floats:
        return self.worst(
            *(_score(*self.utilisation(resource, kind, indices)) for resource in self.resources)
        )


def _score(mu: Floats, sigma: Floats) -> Floats:
    """Return round((1 - (mu + √sigma)/2)·10): 10 for an idle node with a steady load."""
    return np.trunc((1.0 - (mu + np.sqrt(sigma)) / 2.0) * BEST + 0.5)
