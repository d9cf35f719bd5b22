"""The topologySpreadConstraints of a pod, each with the counts that decide.

kube-scheduler has one reason for all of them, without a number. Source: the plugin
podtopologyspread (common.go, filtering.go) of Kubernetes 1.35 to 1.37, and of v1.38.0-beta.0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from heapq import nsmallest
from typing import Any, Final

from ..base.objects import mapping
from ..config.language.feature_gates import Gates
from ..config.language.versions import Version
from ..kube.label_selector import matches, written
from .constraint import Change, Constraint, RuleRepair
from .kinds import NODES, PODS, TEMPLATE_HASH, Object
from .node_rules import admits, untolerated, written_taint
from .world import World

_FIELD: Final = "spec.topologySpreadConstraints"
_SKEWS: Final = 3
_HONOR: Final = "Honor"
_NO_LABEL: Final = "(missing required label)"
_NAMED: Final = 5
"""Domains that a sentence names."""


EMPTY_SELECTS_ALL: Final = Version(1, 38)
"""The version from which an empty labelSelector, here and in a budget, selects all pods."""


def spread_constraints(
    pod: Mapping[str, Any], world: World, gates: Gates | None = None
) -> Iterator[Constraint]:
    """Yield one constraint for each rule that kube-scheduler must keep."""
    counts_all = gates is not None and gates.version >= EMPTY_SELECTS_ALL
    rules = pod["spec"].get("topologySpreadConstraints") or ()
    kept = {
        index: rule
        for index, rule in enumerate(rules)
        if rule.get("whenUnsatisfiable") == "DoNotSchedule"
    }
    keys = [str(rule.get("topologyKey")) for rule in kept.values()]
    for index, rule in kept.items():
        spread = _Spread(pod, rule, keys, world, counts_all)
        key = spread.key
        yield Constraint(
            "spread",
            f"pods would differ by more than {spread.most} between values of {key} "
            "(topologySpreadConstraints), or the node has no such label",
            f"use ScheduleAnyway for the spread over {key}",
            _setting(index, whenUnsatisfiable="ScheduleAnyway"),
            on=cache(spread.fact),
            is_for=spread.is_reason_for,
            field=f"{_FIELD}[{index}].whenUnsatisfiable",
            repairs=partial(_repairs, spread, index),
        )


def spreads_without_effect(
    pod: Mapping[str, Any], world: World, gates: Gates | None = None
) -> Iterator[str]:
    """Yield why rules of a pod do not spread it, in sentences."""
    counts_all = gates is not None and gates.version >= EMPTY_SELECTS_ALL
    for index, rule in enumerate(pod["spec"].get("topologySpreadConstraints") or ()):
        spread = _Spread(pod, rule, [str(rule.get("topologyKey"))], world, counts_all)
        name = f"topologySpreadConstraints[{index}] over {spread.key}"
        if not spread.counts_some:
            yield f"{name} has no labelSelector: it counts no pods, and so it does not spread any"
        elif not spread.counts_itself:
            chosen = written(spread.selector)
            yield f"{name} counts pods with {chosen}, and this pod has other labels"
        elif len(spread.domains) == 1 and spread.least_domains == 1:
            yield from _of_one_domain(spread, name)


def _of_one_domain(spread: _Spread, name: str) -> Iterator[str]:
    """Yield why a rule has one domain, unless it only prefers others and the cluster has none."""
    keeps = spread.rule.get("whenUnsatisfiable") == "DoNotSchedule"
    several = len(spread.every_domain) > 1
    reason = "no node has another value of this label"
    if several:
        reason = "the pod's nodeSelector and node affinity leave no node of another one"
    needed = f"; with minDomains 2, more than {spread.most} would wait for another one"
    if keeps or several:
        yield (
            f"{name} has one domain, {next(iter(spread.domains))}: {reason}, and so it does not "
            f"spread any pods{needed if keeps else ''}"
        )


def _setting(index: int, **fields: Any) -> Change:
    """Return what sets fields of a rule; None removes one."""

    def change(pod: Object) -> None:
        rule = pod["spec"]["topologySpreadConstraints"][index]
        for name, value in fields.items():
            rule[name] = value
            if value is None:
                del rule[name]

    return change


@dataclass(eq=False)
class _Spread:
    """A rule over a world, counted as kube-scheduler counts."""

    pod: Mapping[str, Any]
    rule: Mapping[str, Any]
    keys: Sequence[str]  # the topologyKeys of all rules that it must keep
    world: World
    counts_all: bool  # whether an empty selector counts all pods, or none
    selector: Mapping[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        labels = self.labels
        chosen = {
            key: labels[key] for key in self.rule.get("matchLabelKeys") or () if key in labels
        }
        selector = mapping(self.rule.get("labelSelector"))
        expressions = [
            *(selector.get("matchExpressions") or ()),
            *({"key": key, "operator": "In", "values": [chosen[key]]} for key in chosen),
        ]
        self.selector = {**selector, "matchExpressions": expressions}

    @property
    def key(self) -> str:
        return str(self.rule.get("topologyKey"))

    @property
    def most(self) -> int:
        return int(self.rule.get("maxSkew") or 1)

    @property
    def labels(self) -> Mapping[str, str]:
        return mapping(self.pod["metadata"].get("labels"))

    @property
    def least_domains(self) -> int:
        return int(self.rule.get("minDomains") or 1)

    @cached_property
    def counts_itself(self) -> bool:
        """Whether the pod would count; an empty selector of a rule matches it in all versions."""
        return self._selects and matches(self.selector, self.labels)

    @property
    def _selects(self) -> bool:
        return self.rule.get("labelSelector") is not None

    @property
    def counts_some(self) -> bool:
        """Whether its selector can select pods."""
        return self._selects and (self.counts_all or bool(written(self.selector)))

    @property
    def every_domain(self) -> set[str]:
        """The values of the topologyKey, also of nodes that do not count."""
        labels = (mapping(node["metadata"].get("labels")) for node in self.world.nodes())
        return {own[self.key] for own in labels if self.key in own}

    @cached_property
    def domains(self) -> Mapping[str, list[Mapping[str, Any]]]:
        """The nodes that count, by the value of the topologyKey."""
        domains: dict[str, list[Mapping[str, Any]]] = {}
        for node in self.world.nodes():
            labels = mapping(node["metadata"].get("labels"))
            if all(key in labels for key in self.keys) and self._counts(node):
                domains.setdefault(labels[self.key], []).append(node)
        return domains

    @cached_property
    def _domain_of(self) -> Mapping[str, str]:
        """The domain of each node that has the label, whether it counts or not."""
        labels = self.world.labels_of_nodes()
        return {node: own[self.key] for node, own in labels.items() if self.key in own}

    @property
    def unlabelled(self) -> bool:
        """Whether some node has no label of this key."""
        return len(self._domain_of) < len(self.world.objects[NODES])

    def is_unlabelled(self, node: str) -> bool:
        return node not in self._domain_of

    def is_reason_for(self, reason: str, node: str) -> bool:
        """Return whether kube-scheduler's reason can be for this node."""
        return self.is_unlabelled(node) == (_NO_LABEL in reason)

    def _counts(self, node: Mapping[str, Any]) -> bool:
        spec = self.pod["spec"]
        affinity = self.rule.get("nodeAffinityPolicy") or _HONOR
        if affinity == _HONOR and not admits(spec, node):
            return False
        honors = self.rule.get("nodeTaintsPolicy") == _HONOR
        return not (honors and any(untolerated(spec, node)))

    @cached_property
    def counted(self) -> Mapping[str, list[Object]]:
        """The pods that count, by domain."""
        domain_of = {
            node["metadata"]["name"]: domain
            for domain, nodes in self.domains.items()
            for node in nodes
        }
        pods: dict[str, list[Object]] = {domain: [] for domain in self.domains}
        if not self.counts_some:
            return pods
        namespace = self.pod["metadata"]["namespace"]
        for (where, _), entry in self.world.objects[PODS].items():
            if where != namespace or entry.node not in domain_of:
                continue
            found = entry.object()
            if found["metadata"].get("deletionTimestamp"):
                continue
            if matches(self.selector, mapping(found["metadata"].get("labels"))):
                pods[domain_of[entry.node]].append(found)
        return pods

    @cached_property
    def least(self) -> int:
        if len(self.domains) < self.least_domains:
            return 0
        return min((len(pods) for pods in self.counted.values()), default=0)

    def skew(self, domain: str) -> int:
        """By how much the domain would have more pods than the least, with this pod."""
        return len(self.counted.get(domain, ())) + self.counts_itself - self.least

    def fact(self, name: str) -> str:
        """Return why a node breaks the rule; empty: it does not, as far as is known."""
        domain = self._domain_of.get(name)
        if domain is None:
            return (
                f"the node has no label {self.key}, the topologyKey of a topologySpreadConstraint "
                "of the pod"
            )
        if self.skew(domain) <= self.most:
            return ""
        chosen = written(self.selector) or "any labels"
        itself = "" if self.counts_itself else "; the pod itself has other labels"
        return (
            f"one more pod in {self.key} {domain} would break maxSkew {self.most} "
            f"(topologySpreadConstraints); pods with {chosen}: {self._distribution(domain)}"
            f"{self._why_the_least()}{itself}"
        )

    @cached_property
    def _fewest(self) -> list[tuple[int, str]]:
        """The domains with fewest pods: as many as a sentence can need."""
        counts = ((len(pods), value) for value, pods in self.counted.items())
        return nsmallest(_NAMED + 2, counts)

    def _distribution(self, domain: str) -> str:
        """Write the counts: that of the domain, then the least ones."""
        rest = [row for row in self._fewest if row[1] != domain][: _NAMED + 1]
        named = [f"{len(self.counted.get(domain, ()))} in {domain}"]
        named += [f"{count} in {value}" for count, value in rest[:_NAMED]]
        if len(rest) > _NAMED:
            others = len(self.counted) - (domain in self.counted) - _NAMED
            named.append(f"{rest[_NAMED][0]} or more in {others} others")
        return ", ".join(named)

    def _why_the_least(self) -> str:
        """Explain a minimum that a reader does not see."""
        if len(self.domains) < self.least_domains:
            several = "value counts" if len(self.domains) == 1 else "values count"
            return (
                f"; minDomains is {self.least_domains} and {len(self.domains)} {several}, so the "
                "minimum is 0"
            )
        closed = self.closed
        if closed:
            taint = written_taint(next(untolerated(self.pod["spec"], closed[1])))
            return (
                f"; {closed[0]} counts (nodeTaintsPolicy {self._policy}) although its nodes "
                f"have the taint {taint}, which the pod does not tolerate"
            )
        if self.excluded:
            return (
                f"; {self.excluded} counts (nodeAffinityPolicy Ignore) although the pod's "
                "nodeSelector or node affinity excludes its nodes"
            )
        return ""

    @property
    def _policy(self) -> str:
        return str(self.rule.get("nodeTaintsPolicy") or "Ignore")

    @cached_property
    def closed(self) -> tuple[str, Mapping[str, Any]] | None:
        """A domain with the minimum whose nodes all have taints that keep the pod away."""
        for domain, nodes in sorted(self.domains.items()):
            if len(self.counted[domain]) == self.least and all(
                any(untolerated(self.pod["spec"], node)) for node in nodes
            ):
                return domain, nodes[0]
        return None

    @cached_property
    def excluded(self) -> str:
        """A domain with the minimum whose nodes the pod itself excludes; empty: none."""
        for domain, nodes in sorted(self.domains.items()):
            if len(self.counted[domain]) == self.least and not any(
                admits(self.pod["spec"], node) for node in nodes
            ):
                return domain
        return ""

    @cached_property
    def of_older_templates(self) -> int:
        """Pods that count and are of another pod template than this one."""
        own = self.labels.get(TEMPLATE_HASH)
        if own is None:
            return 0
        hashes = Counter(
            mapping(found["metadata"].get("labels")).get(TEMPLATE_HASH, own)
            for pods in self.counted.values()
            for found in pods
        )
        return hashes.total() - hashes[own]


def _repairs(spread: _Spread, index: int) -> Iterator[RuleRepair]:
    """Yield changes of the rule that keep it; each is tried."""
    where = f"{_FIELD}[{index}]"
    if spread.unlabelled:
        yield RuleRepair(
            f"label the nodes: kubectl label node NODE {spread.key}=VALUE",
            _setting(index, whenUnsatisfiable="ScheduleAnyway"),
            only=spread.is_unlabelled,  # each value is new there, and has no pods yet
        )
    few = len(spread.domains) < spread.least_domains
    if few and len(spread.domains) > 1:
        count = len(spread.domains)
        yield RuleRepair(
            f"set minDomains to {count}: {count} values of {spread.key} count",
            _setting(index, minDomains=count),
            f"{where}.minDomains",
        )
    elif few:
        change = _setting(index, minDomains=None)
        yield RuleRepair("remove minDomains", change, f"{where}.minDomains")
    if spread.closed is not None:
        yield RuleRepair(
            f"set nodeTaintsPolicy to {_HONOR}, so that nodes with taints that the pod does not "
            "tolerate do not count",
            _setting(index, nodeTaintsPolicy=_HONOR),
            f"{where}.nodeTaintsPolicy",
        )
    if spread.rule.get("nodeAffinityPolicy") == "Ignore":
        yield RuleRepair(
            f"set nodeAffinityPolicy to {_HONOR}, so that nodes that the pod's nodeSelector and "
            "node affinity exclude do not count",
            _setting(index, nodeAffinityPolicy=_HONOR),
            f"{where}.nodeAffinityPolicy",
        )
    if spread.of_older_templates and TEMPLATE_HASH not in (spread.rule.get("matchLabelKeys") or ()):
        keys = [*(spread.rule.get("matchLabelKeys") or ()), TEMPLATE_HASH]
        yield RuleRepair(
            f"add {TEMPLATE_HASH} to matchLabelKeys: {spread.of_older_templates} of the pods that "
            "count are of another version of the pod template",
            _setting(index, matchLabelKeys=keys),
            f"{where}.matchLabelKeys",
        )
    skews = {spread.skew(domain) for domain in spread.domains}
    # The nodes of the least may be excluded for another reason.
    for skew in sorted(skew for skew in skews if skew > spread.most)[:_SKEWS]:
        yield RuleRepair(
            f"raise maxSkew to {skew} for the spread over {spread.key}",
            _setting(index, maxSkew=skew),
            f"{where}.maxSkew",
            series=f"{where}.maxSkew",
        )
