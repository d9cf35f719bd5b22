"""What a policy is, and which there are.

A policy filters nodes for a pod, scores them, or both. It is made once, for a `Cluster` that tells
it what changes, and asked twice for every pod: so what can be worked out beforehand, is. The
template to copy is builtin/foo.py; docs/policies.md has more.

This module and the classes' arguments load without numpy: the operator checks arguments with
`read_arguments`.
"""

from __future__ import annotations

import importlib
import importlib.metadata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final

from ..base.findings import did_you_mean, listing
from . import arguments as _arguments
from .arguments import ArgumentsError, argument
from .cluster import Cluster, Node
from .pods import Pod

if TYPE_CHECKING:
    from .arrays import Ints

__all__ = [
    "BEST", "GROUP", "Arguments", "ArgumentsError", "Entry", "Policy", "Rejections",
    "UnknownPolicyError", "argument", "catalogue", "make", "policy_class", "read_arguments",
]  # fmt: skip

BEST: Final = 10
"""Scores are 0..BEST: extender API v1, MaxExtenderPriority."""

GROUP: Final = "kube_scheduler_operator.policies"
"""Entry points of this group are policies of others: name = "package.module:Class"."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """Of a policy that takes none."""


@dataclass(slots=True)
class Rejections:
    """Which nodes of a request get no pod, by their position in it.

    Attributes:
        reasons: position to reason: a sentence for people, without a percent sign, which
            kube-scheduler would take for a format. Without the node's name and its figures, so that
            it is the same for many: kube-scheduler counts equal ones, and writes all that differ
            into the pod's status, whole, and again when one changes.
        unresolvable: positions where it would not help to evict other pods.
        figures: position to what it was that was too much, or too little; for `explain` alone.
    """

    reasons: dict[int, str] = field(default_factory=dict)
    unresolvable: set[int] = field(default_factory=set)
    figures: dict[int, str] = field(default_factory=dict)

    def told(self, at: int) -> str:
        """The reason at a position, with its figures."""
        figures = self.figures.get(at)
        return f"{self.reasons[at]} ({figures})" if figures else self.reasons[at]


class Policy:
    """A policy; subclasses override `filter`, `score` or both, and say so.

    Attributes:
        name: how configurations call it.
        Arguments: a frozen dataclass with a default for every field (arguments.argument).
        env: environment variable to field of Arguments.
        filters: it rejects nodes.
        scores: it has preferences.
        pods: it looks at the pods that are bound. If none of an extender's policies does, that
            watches none, which saves every pod's way to it.
        arguments: what it was given, an instance of Arguments.
        cluster: what it looks at.
    """

    name: ClassVar[str]
    Arguments: ClassVar[type] = Arguments
    env: ClassVar[Mapping[str, str]] = {}
    filters: ClassVar[bool] = False
    scores: ClassVar[bool] = False
    pods: ClassVar[bool] = True

    def __init__(self, arguments: Any, cluster: Cluster) -> None:
        self.arguments = arguments
        self.cluster = cluster
        self._leave: list[Callable[[], None]] = []

    def filter(self, pod: Pod, indices: Ints) -> Rejections | None:
        """The nodes that must not get the pod; None: all of them may.

        Args:
            pod: to place.
            indices: the nodes of the request, by their index in the cluster (intp[n], each once).
                Of some perhaps nothing more than the name is known: that is no reason to reject.
        """
        return None

    def score(self, pod: Pod, indices: Ints) -> Ints | None:
        """How well each node suits the pod; None: no opinion.

        Args:
            pod: to place.
            indices: as for `filter`.

        Returns:
            Integers 0..BEST in the order of `indices`.
        """
        return None

    def explain(self, pod: Pod, indices: Ints) -> list[dict[str, Any]]:
        """For each node what went into its judgement: for logs and `explain`, not to be fast.

        Every row has "node"; the other keys are the policy's own: inputs, intermediate values.
        """
        return [{"node": self.cluster.names[index]} for index in indices]

    def config_maps(self) -> Sequence[tuple[str, str]]:
        """(namespace, name) of ConfigMaps that it wants to hear of; "" is the program's own."""
        return ()

    def on_config_map(self, namespace: str, name: str, data: Mapping[str, str] | None) -> None:
        """One of `config_maps()` has come or changed; None: it is gone."""

    def close(self) -> None:
        """It is not asked any more: stop listening to the cluster."""
        while self._leave:
            self._leave.pop()()

    # --- for subclasses -------------------------------------------------------------------------

    def listen(
        self,
        on_node: Callable[[int, Node | None], None] | None = None,
        on_pod: Callable[[int, Pod, bool], None] | None = None,
        on_name: Callable[[int, str], None] | None = None,
    ) -> None:
        """Hear of changes until `close()`; what is known already is told at once.

        See `Cluster.on_node`, `on_pod` and `on_name`; names come first, then nodes, then pods.

        Raises:
            TypeError: the class says that it looks at no pods, so there would be none to hear of.
        """
        if on_pod is not None and not self.pods:
            raise TypeError(f"{type(self).__name__} listens to pods: it must not say pods = False")
        if on_name is not None:
            self._leave.append(self.cluster.on_name(on_name))
        if on_node is not None:
            self._leave.append(self.cluster.on_node(on_node))
        if on_pod is not None:
            self._leave.append(self.cluster.on_pod(on_pod))


class UnknownPolicyError(LookupError):
    """There is no policy of that name; the text says which there are."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Where a policy is.

    Attributes:
        name: of the policy.
        where: `package.module:Class`.
        distribution: who brings it along; empty: it is our own.
    """

    name: str
    where: str
    distribution: str = ""

    def load(self) -> type[Policy]:
        """The class.

        Raises:
            UnknownPolicyError: there is no policy at that place.
        """
        module, _, name = self.where.partition(":")
        package = __package__ if module.startswith(".") else None
        try:
            found = getattr(importlib.import_module(module, package), name)
        except (ImportError, AttributeError) as error:
            raise UnknownPolicyError(
                f'policy "{self.name}" of {self.distribution}: {error}'
            ) from error
        if not (isinstance(found, type) and issubclass(found, Policy)):
            raise UnknownPolicyError(
                f'policy "{self.name}": {self.where} is not a subclass of Policy'
            )
        return found


_BUILT_IN: Final = {
    name: Entry(name, f".builtin.{name.replace('-', '_')}:{class_name}")
    for name, class_name in (
        ("congestion", "Congestion"),
        ("foo", "Foo"),
        ("load-aware", "LoadAware"),
        ("load-variation-risk-balancing", "LoadVariationRiskBalancing"),
        ("low-risk-over-commitment", "LowRiskOverCommitment"),
        ("pigeon-holing", "PigeonHoling"),
        ("rl-priority", "RlPriority"),
        ("safe-balance", "SafeBalance"),
        ("safe-overload", "SafeOverload"),
        ("target-load-packing", "TargetLoadPacking"),
        ("usage-thresholds", "UsageThresholds"),
    )
}


def catalogue() -> dict[str, Entry]:
    """All policies by name: our own, and those of other distributions.

    One of another distribution with a name of ours is left out: what a configuration means must
    not depend on what else is installed.
    """
    others = {
        found.name: Entry(found.name, found.value, found.dist.name if found.dist else "?")
        for found in importlib.metadata.entry_points(group=GROUP)
    }
    return {**others, **_BUILT_IN}


def policy_class(name: str) -> type[Policy]:
    """The policy of that name.

    Raises:
        UnknownPolicyError: there is none.
    """
    entry = _BUILT_IN.get(name) or catalogue().get(name)
    if entry is None:
        known = sorted(catalogue())
        hint = did_you_mean(name, known) or f"; use {listing(known)}"
        raise UnknownPolicyError(f'there is no policy "{name}"{hint}')
    return entry.load()


def read_arguments(
    name: str, given: Mapping[str, Any], environ: Mapping[str, str] | None = None
) -> Any:
    """The arguments of a policy; what `environ` says comes before what is given.

    Raises:
        UnknownPolicyError: there is none of that name.
        ArgumentsError: something is wrong; the text names each field and what to do.
    """
    found = policy_class(name)
    return _arguments.read(found.Arguments, given, environ, found.env)


def make(
    name: str,
    given: Mapping[str, Any],
    cluster: Cluster,
    environ: Mapping[str, str] | None = None,
) -> Policy:
    """A policy of that name with these arguments.

    Raises:
        UnknownPolicyError, ArgumentsError: as above.
    """
    return policy_class(name)(read_arguments(name, given, environ), cluster)
