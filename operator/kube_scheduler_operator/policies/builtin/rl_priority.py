"""rl-priority: prefers nodes on which pods of the same type have fared well.

The agent kubeRL of kube-safe-scheduler: score = trunc(10·v), v the value that rl-monitor has learnt
for the pod's type and the node (rl/state.py).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from ..arrays import np
from ..learned_values import CONFIG_MAP, pod_type, read_state
from ..node_policy import NodePolicy
from ..policy import BEST, argument

if TYPE_CHECKING:
    from ..arrays import Floats, Ints
    from ..pods import Pod


@dataclass(frozen=True, slots=True)
class RlPriorityArguments:
    """The arguments of rl-priority."""

    namespace: str = argument(
        "", "where rl-monitor keeps its state; empty: where this program runs"
    )
    unseen: float = argument(
        0.5, "the value of a node on which no pod of the type has been seen", least=0, most=1
    )
    compatibility: bool = argument(
        default=False, text="as the original: a node on which none has been seen scores 0"
    )


class RlPriority(NodePolicy):
    """Scores by what has been learnt."""

    name = "rl-priority"
    Arguments: ClassVar[type] = RlPriorityArguments
    scores = True
    pods = False
    arguments: RlPriorityArguments

    def start(self) -> None:
        """See NodePolicy."""
        self._values: Mapping[str, Mapping[str, float]] = {}

    def config_maps(self) -> Sequence[tuple[str, str]]:
        """See Policy."""
        return [(self.arguments.namespace, CONFIG_MAP)]

    def on_config_map(self, namespace: str, name: str, data: Mapping[str, str] | None) -> None:
        """See Policy."""
        self._values = read_state(data).by_type()
        self._changes.mark_all()

    def kind(self, pod: Pod) -> str:
        """See NodePolicy."""
        return pod_type(pod)

    def scores_of(self, kind: Hashable, indices: Ints) -> Floats:
        """See NodePolicy."""
        # A value of 0.7 times 10 must not be 6.999… and so 6.
        return np.trunc(np.array(self._of(kind, indices)) * BEST + 1e-9)

    def details(self, kind: Hashable, indices: Ints) -> list[dict[str, Any]]:
        """See NodePolicy."""
        return [{"type": kind, "value": value} for value in self._of(kind, indices)]

    def _of(self, kind: Hashable, indices: Ints) -> list[float]:
        values = self._values.get(str(kind), {})
        unseen = 0.0 if self.arguments.compatibility else self.arguments.unseen
        names = self.cluster.names
        return [values.get(names[index], unseen) for index in indices.tolist()]
