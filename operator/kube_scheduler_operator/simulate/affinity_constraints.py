"""Required affinity and anti-affinity to pods: the pod's own, and that of pods which run.

Source: the plugin interpodaffinity (filtering.go) of Kubernetes 1.35, and the terms' namespaces in
kube-scheduler/framework/types.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import Any, Final

from ..base.objects import mapping
from ..kube.label_selector import matcher, matches, requirements, written
from .constraint import Change, Constraint, Rank, RuleRepair, distinct, removing
from .kinds import HOSTNAME, NAMESPACES, NODES, PODS, TEMPLATE_HASH, Object, pod_name
from .node_rules import REQUIRED, place
from .world import World

_NAMED: Final = 3
_VERBS: Final = {"podAffinity": "pod affinity", "podAntiAffinity": "pod anti-affinity"}
_DEMANDS: Final = ", which the pod's affinity demands"
_FORBIDS: Final = ", which the pod's anti-affinity forbids"


def affinity_constraints(pod: Mapping[str, Any], world: World) -> Iterator[Constraint]:
    yield from _own(pod, world)
    yield from _of_others(pod, world)


def _terms(spec: Mapping[str, Any], kind: str) -> list[Mapping[str, Any]]:
    return list(mapping(mapping(spec.get("affinity")).get(kind)).get(REQUIRED) or ())


def _own(pod: Mapping[str, Any], world: World) -> Iterator[Constraint]:
    words = {
        "podAffinity": f"no pod {{selector}} runs in the node's {{key}}{_DEMANDS}",
        "podAntiAffinity": f"a pod {{selector}} runs in the node's {{key}}{_FORBIDS}",
    }
    for kind, text in words.items():
        verb = _VERBS[kind]
        for index, term in distinct(_terms(pod["spec"], kind)):
            found = _Term(pod, term, world)
            chosen = f"with {found.selector}"
            key = found.key
            described = text.format(selector=chosen, key=key)
            if kind == "podAffinity" and not found.domains:
                described = (
                    f"no node has the label {key}, the topologyKey of the pod affinity to pods "
                    f"{chosen}"
                )
            where = f"spec.affinity.{kind}.{REQUIRED}[{index}]"
            remove = removing(term, "spec", "affinity", kind, REQUIRED)
            yield Constraint(
                "pod affinity",
                described,
                f"remove the {verb} to pods with {found.selector} per {key}",
                remove,
                on=cache(found.missing if kind == "podAffinity" else found.present),
                field=where,
                repairs=partial(_OWN_REPAIRS[kind], found, index, where, remove),
                words="pod affinity rules" if kind == "podAffinity" else "pod anti-affinity rules",
            )


@dataclass(eq=False)
class _Term:
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
            cache(lambda namespace: _reaches(self.term, self.pod, namespace, self.world))
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
        return f"{text}{_DEMANDS}{self._elsewhere(where - {''})}"

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
                and _reaches(self.term, self.pod, namespace, self.world)
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
            return ""
        more = f" and {len(there) - 1} more" if len(there) > 1 else ""
        verb = "run" if more else "runs"
        where = place(self.key, domain, node)
        return f"pod {there[0]}{more} with {self.selector} {verb} {where}{_FORBIDS}"


def _reaches(
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


def _of_affinity(term: _Term, index: int, where: str, remove: Change) -> Iterator[RuleRepair]:
    """Yield what gives the pod its neighbours; the effect of another pod is that of no rule."""
    if len(term.domains) < len(term.world.objects[NODES]):
        yield RuleRepair(f"label the nodes: kubectl label node NODE {term.key}=VALUE", remove)
    if term.in_reach or not term.domains:
        return
    if others := term.other_namespaces:
        own = list(term.term.get("namespaces") or ())
        if not own and term.term.get("namespaceSelector") is None:
            own = [term.pod["metadata"]["namespace"]]

        def change(pod: Object) -> None:
            pod["spec"]["affinity"]["podAffinity"][REQUIRED][index]["namespaces"] = [
                *own, others[0]
            ]  # fmt: skip

        yield RuleRepair(
            f"add {others[0]} to the namespaces of the pod affinity", change, f"{where}.namespaces"
        )
    elif term.waiting:
        yield RuleRepair(
            f"give pod {term.waiting} a node first: kubectl scheduler why {term.waiting}",
            remove,
            rank=Rank.MEND,
        )
    else:
        yield RuleRepair(
            f"run a pod with {term.selector} in {term.namespaces}", remove, rank=Rank.MEND
        )


def _of_anti_affinity(term: _Term, index: int, where: str, remove: Change) -> Iterator[RuleRepair]:
    yield from _of_rollout(term, index, where)
    if term.key != HOSTNAME and term.domains:
        text = f"add a node with another value of {term.key}"
        yield RuleRepair(text, remove, rank=Rank.NODE)


_OWN_REPAIRS: Final = {"podAffinity": _of_affinity, "podAntiAffinity": _of_anti_affinity}


def _of_rollout(term: _Term, index: int, where: str) -> Iterator[RuleRepair]:
    """Yield what lets the new pods of a Deployment run beside its old ones."""
    own = mapping(term.pod["metadata"].get("labels")).get(TEMPLATE_HASH)
    if own is None:
        return
    hashes = {
        mapping(found["metadata"].get("labels")).get(TEMPLATE_HASH) for found, _ in term.in_reach
    }
    if not hashes - {own, None}:
        return

    def change(pod: Object) -> None:
        chosen = pod["spec"]["affinity"]["podAntiAffinity"][REQUIRED][index]
        # The API server adds this for each of the matchLabelKeys of a new pod.
        selector = chosen.setdefault("labelSelector", {})
        added = {"key": TEMPLATE_HASH, "operator": "In", "values": [own]}
        selector["matchExpressions"] = [*(selector.get("matchExpressions") or ()), added]

    yield RuleRepair(
        f"add {TEMPLATE_HASH} to matchLabelKeys of the pod anti-affinity: pods of another version "
        "of the pod template hold the places",
        change,
        f"{where}.matchLabelKeys",
    )


def _of_others(pod: Mapping[str, Any], world: World) -> Iterator[Constraint]:
    """Yield the labels of this pod that running pods keep away by a required anti-affinity."""
    labels = pod["metadata"].get("labels") or {}
    if not labels:
        return
    # labels -> topologyKey -> the nodes of pods that keep them away, with one pod of each node
    seen: dict[tuple[str, ...], dict[str, dict[str, str]]] = {}
    for entry in world.objects[PODS].values():
        if not entry.node or b"podAntiAffinity" not in entry.content:
            continue
        other = entry.object()
        for term in _terms(other["spec"], "podAntiAffinity"):
            selector = term.get("labelSelector")
            keys = tuple(sorted({rule.key for rule in requirements(selector)} & set(labels)))
            if (
                keys
                and _reaches(term, other, pod["metadata"]["namespace"], world)
                and matches(selector, labels)
            ):
                holders = seen.setdefault(keys, {}).setdefault(str(term.get("topologyKey")), {})
                holders.setdefault(entry.node, pod_name(other))
    for keys, by_key in seen.items():
        named = ",".join(f"{key}={labels[key]}" for key in keys)
        hates = f"has anti-affinity to pods with {named}"
        example = next(pod for pods in by_key.values() for pod in pods.values())
        yield Constraint(
            "pod affinity",
            f"a pod in the node's {' or '.join(by_key)} {hates}, such as pod {example}",
            f"change the label {named} of the pod",
            partial(_remove_labels, keys=keys),
            on=_Holders(by_key, hates, world).fact,
            field="metadata.labels",
            words="existing pods anti-affinity",
        )


@dataclass(eq=False)
class _Holders:
    """Pods whose anti-affinity keeps the pod away."""

    by_key: Mapping[str, Mapping[str, str]]  # topologyKey -> node -> pod
    hates: str  # what each of them has, as a part of a sentence
    world: World

    @cached_property
    def _labels(self) -> Mapping[str, Mapping[str, str]]:
        return self.world.labels_of_nodes()

    @cached_property
    def _domains(self) -> Mapping[tuple[str, str], str]:
        """One of the pods by (topologyKey, domain)."""
        return {
            (key, self._labels.get(node, {}).get(key, "")): pod
            for key, pods in self.by_key.items()
            for node, pod in sorted(pods.items(), reverse=True)
        }

    def fact(self, node: str) -> str:
        """Return which pod keeps the pod from a node; empty: none that is known."""
        for key in self.by_key:
            domain = self._labels.get(node, {}).get(key, "")
            if domain and (pod := self._domains.get((key, domain))):
                return f"pod {pod} runs {place(key, domain, node)} and {self.hates}"
        return ""


def _remove_labels(pod: Object, keys: Iterable[str]) -> None:
    for key in keys:
        pod["metadata"]["labels"].pop(key, None)
