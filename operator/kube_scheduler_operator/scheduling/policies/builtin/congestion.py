"""congestion: prefers nodes with a low congestion factor.

The agent congestion of kube-safe-scheduler: score = round(10·(1 - v/M)) for the congestion factor
v, at most M. Its meaning depends on the annotator; ours writes how far the load exceeds its limits,
in percent of the room above them.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar

from ..arrays import Floats, Ints, clip, np
from ..node_loads import CONGESTION, OWN, SAFE, LoadColumns
from ..node_policy import NodePolicy, rounded, shown
from ..policy import BEST, argument


@dataclass(frozen=True, slots=True)
class CongestionArguments:
    maximum: float = argument(
        100.0, "congestion factor of a fully congested node", least=0, above=True
    )
    annotations: str = argument(OWN, "annotations to read", choices=(OWN, SAFE))
    compatibility: bool = argument(
        default=False, text="as in the original: a node without the annotation has no congestion"
    )


class Congestion(NodePolicy):
    name = "congestion"
    Arguments: ClassVar[type] = CongestionArguments
    env: ClassVar = {"CONGESTION_FACTOR_MAX": "maximum"}
    scores = True
    pods = False
    load_metrics = (CONGESTION,)
    arguments: CongestionArguments
    loads: LoadColumns

    def scores_of(self, kind: Hashable, indices: Ints) -> Floats:
        factor = self.loads.columns[CONGESTION].take(indices, len(self.cluster))
        if self.arguments.compatibility:
            factor = np.nan_to_num(factor)
        most = self.arguments.maximum
        return rounded(BEST * (1.0 - clip(factor, 0.0, most) / most))

    def details(self, kind: Hashable, indices: Ints) -> list[dict[str, Any]]:
        factor = self.loads.columns[CONGESTION].take(indices, len(self.cluster))
        return [{"congestionFactor": value} for value in shown(factor)]
