"""The required anti-affinity of running pods, which keeps others away as well.

Source: the plugin interpodaffinity (filtering.go) of Kubernetes 1.35.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final

from ..base.objects import controller_of, mapping
from ..kube.label_selector import matches, requirements
from .affinity_terms import Term, reaches, terms_of
from .constraint import Change, Constraint, no_edits, removing, unknown_edits
from .edits import Edit, edits
from .kinds import PODS, REPLICA_SETS, STATEFUL_SETS, TEMPLATE_HASH, Object, pod_name
from .node_rules import REQUIRED, place
from .owners import edited_object
from .world import World

_OF_CONTROLLERS: Final = (
    TEMPLATE_HASH, "controller-uid", "job-name", "apps.kubernetes.io/", "batch.kubernetes.io/",
    "statefulset.kubernetes.io/", "leaderworkerset.sigs.k8s.io/", "jobset.sigs.k8s.io/",
)  # fmt: skip
"""Labels that a controller gives its pods, by the beginnings of their names."""


@dataclass(frozen=True, slots=True)
class Holder:
    """A running pod whose anti-affinity keeps the pod away."""

    pod: Object
    term: Mapping[str, Any]
    keys: tuple[str, ...]  # of the pod's labels that the term selects

    def is_of(self, shared: Mapping[int, Sequence[Holder]]) -> bool:
        return any(self is one for holders in shared.values() for one in holders)


def holders_of(pod: Mapping[str, Any], world: World) -> list[Holder]:
    labels = pod["metadata"].get("labels") or {}
    found = []
    for entry in world.objects[PODS].values() if labels else ():
        if not entry.node or b"podAntiAffinity" not in entry.content:
            continue
        other = entry.object()
        for term in terms_of(other["spec"], "podAntiAffinity"):
            selector = term.get("labelSelector")
            keys = tuple(sorted({rule.key for rule in requirements(selector)} & set(labels)))
            if (
                keys
                and reaches(term, other, pod["metadata"]["namespace"], world)
                and matches(selector, labels)
            ):
                found.append(Holder(other, term, keys))
    return found


def shared_with(
    pod: Mapping[str, Any], holders: Sequence[Holder]
) -> Mapping[int, Sequence[Holder]]:
    """Return the pods of the same controller that have an anti-affinity of this pod against it.

    They are by the index of the pod's term, which ends for all of them at once. A pod with rules
    that count itself by its labels has none: these are not known to end alike.
    """
    owner = controller_of(pod)
    counted = any(
        rule.get("whenUnsatisfiable") == "DoNotSchedule"
        for rule in pod["spec"].get("topologySpreadConstraints") or ()
    )
    if owner is None or counted or terms_of(pod["spec"], "podAffinity"):
        return {}
    shared: dict[int, list[Holder]] = {}
    for index, term in enumerate(terms_of(pod["spec"], "podAntiAffinity")):
        same = [one for one in holders if one.term == term and controller_of(one.pod) == owner]
        others = {key for one in holders if one not in same for key in one.keys}
        if same and not others & set(same[0].keys):
            shared[index] = same
    return shared


def of_others(
    pod: Mapping[str, Any], world: World, holders: Iterable[Holder]
) -> Iterator[Constraint]:
    """Yield the labels of this pod that running pods keep away by a required anti-affinity."""
    labels = pod["metadata"].get("labels") or {}
    # labels -> topologyKey -> the nodes of pods that keep them away, with one pod of each node
    seen: dict[tuple[str, ...], dict[str, dict[str, str]]] = {}
    for one in holders:
        of_key = seen.setdefault(one.keys, {}).setdefault(str(one.term.get("topologyKey")), {})
        of_key.setdefault(one.pod["spec"]["nodeName"], pod_name(one.pod))
    fixed, alone = _fixed_labels(pod, world) if seen else frozenset(), _met_by_itself(pod, world)
    for keys, by_key in seen.items():
        named = ",".join(f"{key}={labels[key]}" for key in keys)
        hates = f"has anti-affinity to pods with {named}"
        names = [pod for pods in by_key.values() for pod in pods.values()]
        of_others = any(key in fixed or key.startswith(_OF_CONTROLLERS) for key in keys)
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        whose = f"remove the anti-affinity to pods with {named} of pod {names[0]}{more}"
        yield Constraint(
            "pod affinity",
            f"a pod in the node's {' or '.join(by_key)} {hates}, such as pod {names[0]}",
            whose if of_others else f"change the label {named} of the pod",
            both(partial(remove_labels, keys=keys), *alone),
            on=_Facts(by_key, hates, world).fact,
            field="" if of_others else "metadata.labels",
            others=unknown_edits if of_others else no_edits,
            words="existing pods anti-affinity",
        )


def _fixed_labels(pod: Mapping[str, Any], world: World) -> frozenset[str]:
    """Return the labels that the controller of a pod selects its pods by, which cannot change."""
    owner, namespace = controller_of(pod) or {}, pod["metadata"]["namespace"]
    for resource in (REPLICA_SETS, STATEFUL_SETS):
        if owner.get("kind") == resource.kind:
            found = world.get(resource, str(owner.get("name")), namespace) or {}
            selector = mapping(found.get("spec")).get("selector")
            return frozenset(rule.key for rule in requirements(selector))
    return frozenset()


def _met_by_itself(pod: Mapping[str, Any], world: World) -> list[Change]:
    """Return what removes the affinity that only this pod's own labels meet, as the first one."""
    labels = mapping(pod["metadata"].get("labels"))
    return [
        removing(term, "spec", "affinity", "podAffinity", REQUIRED)
        for term in terms_of(pod["spec"], "podAffinity")
        if matches(term.get("labelSelector"), labels) and not Term(pod, term, world).in_reach
    ]


def both(*changes: Change) -> Change:
    def change(pod: Object) -> None:
        for each in changes:
            each(pod)

    return change


def of_template(
    pod: Mapping[str, Any], remove: Change, holders: Sequence[Holder], world: World
) -> Callable[[Sequence[str]], Iterable[Edit]]:
    """Return the end of a term in the template, and of the pods that run with it."""

    def of_nodes(_nodes: Sequence[str]) -> Iterable[Edit]:
        changed = copy.deepcopy(dict(pod))
        remove(changed)
        yield from edits(*edited_object(world, pod), dict(pod), changed)
        for one in holders:
            yield Edit(f"Pod {pod_name(one.pod)}")

    return of_nodes


def several(pods: Sequence[Object]) -> str:
    more = f" and {len(pods) - 1} more" if len(pods) > 1 else ""
    return f"pod {min(map(pod_name, pods))}{more}"


@dataclass(eq=False)
class _Facts:
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


def remove_labels(pod: Object, keys: Iterable[str]) -> None:
    for key in keys:
        pod["metadata"]["labels"].pop(key, None)
