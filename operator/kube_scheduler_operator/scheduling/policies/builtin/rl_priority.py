"""rl-priority: prefers nodes on which Pods of the same type ran well.

The agent kubeRL of kube-safe-scheduler: score = trunc(10·v) for the value v that rl-monitor has
learned for the Pod's type and the node (learned_values.py).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ..arrays import Floats, Ints, np
from ..learned_values import CONFIG_MAP, read_values, type_in_namespace
from ..node_policy import NodePolicy
from ..pods import Pod
from ..policy import BEST, argument


@dataclass(frozen=True, slots=True)
class RlPriorityArguments:
    namespace: str = argument(
        "", "namespace of rl-monitor's state; empty: the namespace of the extender"
    )
    unseen: float = argument(
        0.5, "value of a node on which no Pod of the type has run", least=0, most=1
    )
    compatibility: bool = argument(default=False, text="as in the original: such a node scores 0")


class RlPriority(NodePolicy):
    name = "rl-priority"
    Arguments: ClassVar[type] = RlPriorityArguments
    scores = True
    pods = False
    arguments: RlPriorityArguments

    def start(self) -> None:
        self._values: Mapping[str, Mapping[str, float]] = {}

    def config_maps(self) -> Sequence[tuple[str, str]]:
        return [(self.arguments.namespace, CONFIG_MAP)]

    def on_config_map(self, namespace: str, name: str, data: Mapping[str, str] | None) -> None:
        self._values = read_values(data).by_type()
        self._changes.mark_all()

    def kind(self, pod: Pod) -> str:
        return type_in_namespace(pod)

    def scores_of(self, kind: Hashable, indices: Ints) -> Floats:
        # 0.7 times 10 must not become 6.999…, and then 6.
        return np.trunc(np.array(self._of(kind, indices)) * BEST + 1e-9)

    def details(self, kind: Hashable, indices: Ints) -> list[dict[str, Any]]:
        plain = str(kind).partition("/")[2]
        return [{"type": plain, "value": value} for value in self._of(kind, indices)]

    def _of(self, kind: Hashable, indices: Ints) -> list[float]:
        # One namespace that rl-monitor watches alone has types without it.
        plain = str(kind).partition("/")[2]
        values = self._values.get(str(kind)) or self._values.get(plain, {})
        unseen = 0.0 if self.arguments.compatibility else self.arguments.unseen
        names = self.cluster.names
        return [values.get(names[index], unseen) for index in indices.tolist()]
