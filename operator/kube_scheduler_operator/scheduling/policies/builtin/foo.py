"""foo: accepts every node with the same score; the template for new policies.

Equivalent to the agent foo of kube-safe-scheduler; benchmarks use it to measure an extender without
a computation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ..arrays import Ints, np
from ..cluster import Cluster
from ..pods import Pod
from ..policy import BEST, Policy, Rejections, argument


@dataclass(frozen=True, slots=True)
class FooArguments:
    value: int = argument(1, "score of every node", least=0, most=BEST)


class Foo(Policy):
    name = "foo"
    Arguments: ClassVar[type] = FooArguments
    filters = True
    scores = True
    pods = False  # omit this if the policy registers on_pod
    arguments: FooArguments

    def __init__(self, arguments: FooArguments, cluster: Cluster) -> None:
        super().__init__(arguments, cluster)
        # Register callbacks for the inputs here, and keep derived values:
        # self.listen(on_node=self._node, on_pod=self._pod)

    def filter(self, pod: Pod, indices: Ints) -> Rejections | None:
        return None

    def score(self, pod: Pod, indices: Ints) -> Ints:
        return np.full(len(indices), self.arguments.value)

    def explain(self, pod: Pod, indices: Ints) -> list[dict[str, Any]]:
        names = self.cluster.names
        return [{"node": names[index], "score": self.arguments.value} for index in indices]
