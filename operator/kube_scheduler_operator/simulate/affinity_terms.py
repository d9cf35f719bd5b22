"""A term of a required affinity or anti-affinity to pods, over a world.

Source: the plugin interpodaffinity (filtering.go) of Kubernetes 1.35, and the terms' namespaces in
kube-scheduler/framework/types.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Final

from ..base.objects import mapping
from ..kube.label_selector import DOES_NOT_EXIST, NOT_IN, matcher, matches, requirements, written
from .kinds import HOSTNAME, NAMESPACES, PODS, Object, pod_name
from .node_rules import REQUIRED, place
from .world import World

DEMANDS: Final = ", which the pod's affinity demands"
FORBIDS: Final = ", which the pod's anti-affinity forbids"
_NAMED: Final = 3
_NEGATIVE: Final = (NOT_IN, DOES_NOT_EXIST)


def terms_of(spec: Mapping[str, Any], kind: str) -> list[Mapping[str, Any]]:
    return list(mapping(mapping(spec.get("affinity")).get(kind)).get(REQUIRED) or ())


def apart_by(pod: Mapping[str, Any]) -> list[str]:
    """Return the topologyKeys, except that of nodes, by which a pod keeps apart from others."""
    keys = (str(term.get("topologyKey")) for term in terms_of(pod["spec"], "podAntiAffinity"))
    return [key for key in dict.fromkeys(keys) if key != HOSTNAME]


@dataclass(eq=False)
class Term:
    """A term over a world."""

    pod: Mapping[str, Any]
    term: Mapping[str, Any]
    world: World

    @property
    def key(self) -> str:
        return str(self.term.get("topologyKey") or "")

    @property
    def selector(self) -> str:
        return written(self.term.get("labelSelector")) or "any labels"

    @cached_property
    def domains(self) -> Mapping[str, str]:
        """The domain of each node that has one."""
        labels = self.world.labels_of_nodes()
        return {node: own[self.key] for node, own in labels.items() if self.key in own}

    @cached_property
    def matching(self) -> list[tuple[Object, str]]:
        """The pods with a node whose labels match, of all namespaces, each with its node."""
        return self._matching(lambda _: True)

    @cached_property
    def in_reach(self) -> list[tuple[Object, str]]:
        """Those of the namespaces that the term has."""
        return self._matching(
            cache(lambda namespace: reaches(self.term, self.pod, namespace, self.world))
        )

    def _matching(self, has: Callable[[str], bool]) -> list[tuple[Object, str]]:
        selector = self.term.get("labelSelector")
        meets = matcher(selector)
        return [
            (found, entry.node)
            for (namespace, _), entry in self.world.objects[PODS].items()
            if selector is not None
            and entry.node
            and has(namespace)
            and meets(mapping((found := entry.object())["metadata"].get("labels")))
        ]

    @property
    def namespaces(self) -> str:
        """The namespaces that the term has, as a part of a sentence."""
        names, chosen = self.term.get("namespaces") or (), self.term.get("namespaceSelector")
        if chosen is None:
            names = names or [self.pod["metadata"]["namespace"]]
        parts = [f"namespace{'s' * (len(names) > 1)} {', '.join(names)}"] if names else []
        if chosen is not None:
            text = written(chosen)
            parts.append(f"namespaces with {text}" if text else "any namespace")
        return " or ".join(parts)

    def missing(self, node: str) -> str:
        """Return that no pod runs in a node's domain, and where some do; empty: some do there."""
        if node not in self.domains:
            return (
                f"the node has no label {self.key}, the topologyKey of the pod affinity to pods "
                f"with {self.selector}"
            )
        domain = self.domains[node]
        where = {self.domains.get(on, "") for _, on in self.in_reach}
        if domain in where:
            return ""
        text = (
            f"no pod with {self.selector} in {self.namespaces} runs {place(self.key, domain, node)}"
        )
        return f"{text}{DEMANDS}{self._elsewhere(where - {''})}"

    def _elsewhere(self, domains: Iterable[str]) -> str:
        named = sorted(domains)
        if named:
            more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
            there = "on" if self.key == HOSTNAME else "in"
            return f"; some run {there} {', '.join(named[:_NAMED])}{more}"
        if self.in_reach:
            return f"; those that run are on nodes without the label {self.key}"
        if others := self.other_namespaces:
            more = f" and {len(others) - _NAMED} more" if len(others) > _NAMED else ""
            return f"; pods with these labels run in namespace {', '.join(others[:_NAMED])}{more}"
        if self.waiting:
            return f"; pod {self.waiting} has these labels and has no node itself"
        return "; none runs anywhere"

    @cached_property
    def waiting(self) -> str:
        """A pod without a node that the term is for, as namespace/name; empty: none."""
        own = pod_name(self.pod)
        selector = self.term.get("labelSelector")
        for found in self.world.pending() if selector is not None else ():
            namespace, labels = found["metadata"]["namespace"], found["metadata"].get("labels")
            if (
                pod_name(found) != own
                and reaches(self.term, self.pod, namespace, self.world)
                and matches(selector, mapping(labels))
            ):
                return pod_name(found)
        return ""

    @cached_property
    def other_namespaces(self) -> list[str]:
        """The namespaces with such pods that the term does not have; none if it has some."""
        if self.in_reach:
            return []
        return sorted({found["metadata"]["namespace"] for found, _ in self.matching})

    def present(self, node: str) -> str:
        """Return which pod runs in a node's domain; empty: none that is known."""
        domain = self.domains.get(node)
        if domain is None:
            return ""
        there = sorted(
            pod_name(found) for found, on in self.in_reach if self.domains.get(on) == domain
        )
        if not there:
            return self._miscounted(domain)
        more = f" and {len(there) - 1} more" if len(there) > 1 else ""
        verb = "run" if more else "runs"
        where = place(self.key, domain, node)
        return f"pod {there[0]}{more} with {self.selector} {verb} {where}{FORBIDS}"

    @cached_property
    def is_negative(self) -> bool:
        """Whether its namespaceSelector excludes: kube-scheduler may count all namespaces then."""
        rules = requirements(self.term.get("namespaceSelector"))
        return any(rule.operator in _NEGATIVE for rule in rules)

    def _miscounted(self, domain: str) -> str:
        """Return which pod kube-scheduler counts although the term is not for its namespace.

        1.34.4, 1.35.4 and 1.36.3 do, 1.37.2 does not (kubernetes issue 141526).
        """
        there = [found for found, on in self.matching if self.domains.get(on) == domain]
        if not self.is_negative or not there:
            return ""
        first = min(there, key=pod_name)
        return (
            f"pod {pod_name(first)} with {self.selector} runs in {self.key} {domain}; the pod's "
            f"anti-affinity is for {self.namespaces} alone, which {first['metadata']['namespace']} "
            "is not, but this version of kube-scheduler counts it (kubernetes issue 141526)"
        )


def reaches(
    term: Mapping[str, Any], holder: Mapping[str, Any], namespace: str, world: World
) -> bool:
    """Return whether a term of the pod `holder` concerns the pods of a namespace."""
    names, chosen = term.get("namespaces") or (), term.get("namespaceSelector")
    if not names and chosen is None:
        return bool(namespace == holder["metadata"]["namespace"])
    if namespace in names:
        return True
    if chosen is None:
        return False
    found = world.get(NAMESPACES, namespace) or {"metadata": {}}
    return matches(chosen, mapping(found["metadata"].get("labels")))
