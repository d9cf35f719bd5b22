"""The base class and the catalogue of policies.

A policy filters nodes for a Pod, scores them, or both. It is created once, for a `Cluster` that
reports changes, and called twice for every Pod, so it should precompute its results. The template
is builtin/foo.py; see also docs/policies.md.

This module and the argument classes load without numpy: the operator validates arguments with
`read_arguments`.
"""

from __future__ import annotations

import importlib
import importlib.metadata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from ...base.findings import did_you_mean, listing
from . import arguments as _arguments
from .arguments import ArgumentsError, argument
from .arrays import Ints
from .cluster import Cluster, Node
from .pods import Pod

__all__ = [
    "BEST", "GROUP", "Arguments", "ArgumentsError", "CatalogueEntry", "Policy", "Rejections",
    "UnknownPolicyError", "argument", "catalogue", "make", "policy_class", "read_arguments",
]  # fmt: skip

BEST: Final = 10
"""Scores are 0..BEST: extender API v1, MaxExtenderPriority."""

GROUP: Final = "kube_scheduler_operator.policies"
"""Entry point group for policies of other distributions: name = "package.module:Class"."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of a policy without arguments."""


@dataclass(slots=True)
class Rejections:
    """The rejected nodes of a request, by their position in it."""

    # position to reason, a sentence without a percent sign (kube-scheduler uses it as a format). It
    # must not contain the node's name or values: kube-scheduler counts equal reasons, but writes
    # all different ones into the Pod's status, and again on each change.
    reasons: dict[int, str] = field(default_factory=dict)
    # positions of nodes for which evicting Pods would not help
    unresolvable: set[int] = field(default_factory=set)
    # position to the values behind the reason, for `explain` only
    figures: dict[int, str] = field(default_factory=dict)

    def describe(self, at: int) -> str:
        figures = self.figures.get(at)
        return f"{self.reasons[at]} ({figures})" if figures else self.reasons[at]


class Policy:
    """A policy; subclasses override `filter`, `score` or both, and set `filters` and `scores`."""

    name: ClassVar[str]  # in configurations
    # a frozen dataclass with a default for every field (arguments.argument)
    Arguments: ClassVar[type] = Arguments
    env: ClassVar[Mapping[str, str]] = {}  # environment variable to field of Arguments
    filters: ClassVar[bool] = False
    scores: ClassVar[bool] = False
    # whether it uses bound Pods; if no policy of an extender does, the extender does not watch Pods
    pods: ClassVar[bool] = True

    def __init__(self, arguments: Any, cluster: Cluster) -> None:
        self.arguments = arguments
        self.cluster = cluster
        self._unregister: list[Callable[[], None]] = []

    def filter(self, pod: Pod, indices: Ints) -> Rejections | None:
        """Return the rejected nodes; None: all are accepted.

        Args:
            pod: the Pod to schedule.
            indices: cluster indices of the nodes of the request (intp[n], unique). Nodes of which
                only the name is known should not be rejected.
        """
        return None

    def score(self, pod: Pod, indices: Ints) -> Ints | None:
        """Return the score of each node; None: the policy does not apply.

        Args:
            pod: the Pod to schedule.
            indices: as for `filter`.

        Returns:
            Integers 0..BEST in the order of `indices`.
        """
        return None

    def explain(self, pod: Pod, indices: Ints) -> list[dict[str, Any]]:
        """Return each node's inputs and intermediate values, for logs and `explain`; may be slow.

        Every row has "node"; the other keys depend on the policy.
        """
        return [{"node": self.cluster.names[index]} for index in indices]

    def config_maps(self) -> Sequence[tuple[str, str]]:
        """Return (namespace, name) of ConfigMaps to watch; "" is the program's own namespace."""
        return ()

    def on_config_map(self, namespace: str, name: str, data: Mapping[str, str] | None) -> None:
        """Process a change of one of `config_maps()`; None: deleted."""

    def close(self) -> None:
        """Remove the callbacks from the cluster."""
        while self._unregister:
            self._unregister.pop()()

    # --- for subclasses -------------------------------------------------------------------------

    def listen(
        self,
        on_node: Callable[[int, Node | None], None] | None = None,
        on_pod: Callable[[int, Pod, bool], None] | None = None,
        on_name: Callable[[int, str], None] | None = None,
    ) -> None:
        """Register callbacks for the present objects and all changes until `close()`.

        See `Cluster.on_node`, `on_pod` and `on_name`; names come first, then nodes, then Pods.

        Raises:
            TypeError: `on_pod` is given, but the class has `pods = False`.
        """
        if on_pod is not None and not self.pods:
            raise TypeError(f"{type(self).__name__} registers on_pod: it must not set pods = False")
        if on_name is not None:
            self._unregister.append(self.cluster.on_name(on_name))
        if on_node is not None:
            self._unregister.append(self.cluster.on_node(on_node))
        if on_pod is not None:
            self._unregister.append(self.cluster.on_pod(on_pod))


class UnknownPolicyError(LookupError):
    """The policy does not exist; the message lists the existing ones."""


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    name: str
    where: str  # `package.module:Class`
    distribution: str = ""  # the distribution that provides it; empty: built in

    def load(self) -> type[Policy]:
        """Import the class. Raises UnknownPolicyError."""
        module, _, name = self.where.partition(":")
        package = __package__ if module.startswith(".") else None
        try:
            policy = getattr(importlib.import_module(module, package), name)
        except (ImportError, AttributeError) as error:
            raise UnknownPolicyError(
                f'policy "{self.name}" of {self.distribution}: {error}'
            ) from error
        if not (isinstance(policy, type) and issubclass(policy, Policy)):
            raise UnknownPolicyError(
                f'policy "{self.name}": {self.where} is not a subclass of Policy'
            )
        return policy


_BUILT_IN: Final = {
    name: CatalogueEntry(name, f".builtin.{name.replace('-', '_')}:{class_name}")
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


def catalogue() -> dict[str, CatalogueEntry]:
    """Return all policies by name: the built-in ones and those of other distributions.

    Built-in names take precedence, so that the meaning of a configuration does not depend on other
    installed distributions.
    """
    others = {
        entry_point.name: CatalogueEntry(
            entry_point.name, entry_point.value, entry_point.dist.name if entry_point.dist else "?"
        )
        for entry_point in importlib.metadata.entry_points(group=GROUP)
    }
    return {**others, **_BUILT_IN}


def policy_class(name: str) -> type[Policy]:
    """Import the class of a policy. Raises UnknownPolicyError."""
    entry = _BUILT_IN.get(name) or catalogue().get(name)
    if entry is None:
        known = sorted(catalogue())
        hint = did_you_mean(name, known) or f"; use {listing(known)}"
        raise UnknownPolicyError(f'unknown policy "{name}"{hint}')
    return entry.load()


def read_arguments(
    name: str, arguments: Mapping[str, Any], environ: Mapping[str, str] | None = None
) -> Any:
    """Return the validated arguments of a policy; `environ` overrides `arguments`.

    Raises UnknownPolicyError and ArgumentsError.
    """
    policy = policy_class(name)
    return _arguments.read(policy.Arguments, arguments, environ, policy.env)


def environment_arguments(name: str) -> dict[str, str]:
    """Map each variable that a policy reads to the argument that it overrides.

    Raises UnknownPolicyError.
    """
    policy = policy_class(name)
    names = {entry.attribute: entry.name for entry in _arguments.described(policy.Arguments)}
    return {variable: names[attribute] for variable, attribute in policy.env.items()}


def make(
    name: str,
    arguments: Mapping[str, Any],
    cluster: Cluster,
    environ: Mapping[str, str] | None = None,
) -> Policy:
    """Create a policy. Raises UnknownPolicyError and ArgumentsError."""
    return policy_class(name)(read_arguments(name, arguments, environ), cluster)
