"""congestion: prefers nodes that are congested little.

The agent congestion of kube-safe-scheduler: score = round(10·(1 - v/M)), v the node's congestion
factor up to its maximum M. What the factor measures is up to who annotates nodes; ours says how far
use is beyond its limits, in percent of what is left there.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from ..arrays import clip, np
from ..node_loads import CONGESTION, OWN, SAFE, Loads
from ..node_policy import NodePolicy, rounded, shown
from ..policy import BEST, argument

if TYPE_CHECKING:
    from ..arrays import Floats, Ints


@dataclass(frozen=True, slots=True)
class CongestionArguments:
    """The arguments of congestion."""

    maximum: float = argument(
        100.0, "the congestion factor that counts as fully congested", least=0, above=True
    )
    annotations: str = argument(OWN, "whose annotation on nodes to read", choices=(OWN, SAFE))
    compatibility: bool = argument(
        default=False, text="as the original: a node without the annotation is not congested at all"
    )


class Congestion(NodePolicy):
    """Scores by a congestion factor."""

    name = "congestion"
    Arguments: ClassVar[type] = CongestionArguments
    env: ClassVar = {"CONGESTION_FACTOR_MAX": "maximum"}
    scores = True
    pods = False
    arguments: CongestionArguments
    loads: Loads

    def start(self) -> None:
        """See NodePolicy."""
        self.loads = Loads(
            self.cluster, [CONGESTION], self.changed, annotations=self.arguments.annotations
        )

    def scores_of(self, kind: Hashable, indices: Ints) -> Floats:
        """See NodePolicy."""
        factor = self.loads.columns[CONGESTION].take(indices, len(self.cluster))
        if self.arguments.compatibility:
            factor = np.nan_to_num(factor)
        most = self.arguments.maximum
        return rounded(BEST * (1.0 - clip(factor, 0.0, most) / most))

    def details(self, kind: Hashable, indices: Ints) -> list[dict[str, Any]]:
        """See NodePolicy."""
        factor = self.loads.columns[CONGESTION].take(indices, len(self.cluster))
        return [{"congestionFactor": value} for value in shown(factor)]
