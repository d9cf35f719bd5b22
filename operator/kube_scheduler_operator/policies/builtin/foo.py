"""foo: accepts every node and gives each the same score. The template for policies of your own.

What it says and does is what the agent foo of kube-safe-scheduler says and does; it also measures
what an extender costs that has nothing to work out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from ..arrays import np
from ..cluster import Cluster
from ..pods import Pod
from ..policy import BEST, Policy, Rejections, argument

if TYPE_CHECKING:
    from ..arrays import Ints


@dataclass(frozen=True, slots=True)
class FooArguments:
    """The arguments of foo."""

    value: int = argument(1, "the score of every node", least=0, most=BEST)


class Foo(Policy):
    """Accepts all, and scores all alike."""

    name = "foo"
    Arguments: ClassVar[type] = FooArguments
    filters = True
    scores = True
    pods = False  # leave this out if it listens to pods
    arguments: FooArguments

    def __init__(self, arguments: FooArguments, cluster: Cluster) -> None:
        super().__init__(arguments, cluster)
        # Listen here to what the scores depend on, and keep it ready:
        # self.listen(on_node=self._node, on_pod=self._pod)

    def filter(self, pod: Pod, indices: Ints) -> Rejections | None:
        """Every node may have the pod."""
        return None

    def score(self, pod: Pod, indices: Ints) -> Ints:
        """The same for every node."""
        return np.full(len(indices), self.arguments.value)

    def explain(self, pod: Pod, indices: Ints) -> list[dict[str, Any]]:
        """What there is to say of each node."""
        names = self.cluster.names
        return [{"node": names[index], "score": self.arguments.value} for index in indices]
