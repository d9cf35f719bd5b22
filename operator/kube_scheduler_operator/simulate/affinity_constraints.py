"""Required affinity and anti-affinity to pods: the pod's own, and that of pods which run.

Source: the plugin interpodaffinity (filtering.go) of Kubernetes 1.35.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any, Final

from ..base.foreign_text import foreign
from ..base.limits import FOREIGN_NAME
from ..base.objects import entries, mapping
from .affinity_terms import DEMANDS, FORBIDS, Term, reaches, terms_of
from .constraint import (
    Change,
    Constraint,
    OtherEdits,
    Rank,
    RuleRepair,
    distinct,
    no_edits,
    removing,
)
from .kinds import HOSTNAME, NAMESPACES, NODES, TEMPLATE_HASH, Object
from .node_rules import PREFERRED, REQUIRED
from .others_anti_affinity import (
    Holder,
    both,
    holders_of,
    of_others,
    of_template,
    remove_labels,
    several,
    shared_with,
)
from .world import World

_NAMED: Final = 3
_VERBS: Final = {"podAffinity": "pod affinity", "podAntiAffinity": "pod anti-affinity"}


def affinities_without_effect(pod: Mapping[str, Any], world: World) -> Iterator[str]:
    """Yield which rules about other pods no node is compared by, in sentences.

    A required affinity over such a label keeps its pod from all nodes instead.
    """
    affinity = mapping(pod["spec"].get("affinity"))
    rules = [
        ("required pod anti-affinity", term)
        for term in entries(mapping(affinity.get("podAntiAffinity")).get(REQUIRED))
    ]
    rules += [
        (f"preferred {verb}", mapping(weighted).get("podAffinityTerm"))
        for kind, verb in _VERBS.items()
        for weighted in entries(mapping(affinity.get(kind)).get(PREFERRED))
    ]
    known = {key for labels in world.labels_of_nodes().values() for key in labels}
    for verb, term in rules if known else ():
        key = str(mapping(term).get("topologyKey"))
        if key not in known:
            shown = foreign(key, FOREIGN_NAME)
            yield f"the pod's {verb} per {shown} has no effect: no node has the label {shown}"


def affinity_constraints(pod: Mapping[str, Any], world: World) -> Iterator[Constraint]:
    holders = holders_of(pod, world)
    shared = shared_with(pod, holders)
    yield from _own(pod, world, shared)
    yield from of_others(pod, world, [one for one in holders if not one.is_of(shared)])


def _own(
    pod: Mapping[str, Any], world: World, shared: Mapping[int, Sequence[Holder]]
) -> Iterator[Constraint]:
    words = {
        "podAffinity": f"no pod {{selector}} runs in the node's {{key}}{DEMANDS}",
        "podAntiAffinity": f"a pod {{selector}} runs in the node's {{key}}{FORBIDS}",
    }
    for kind, text in words.items():
        verb = _VERBS[kind]
        for index, term in distinct(terms_of(pod["spec"], kind)):
            found = Term(pod, term, world)
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
            fix = f"remove the {verb} to pods with {found.selector} per {key}"
            others: OtherEdits = no_edits
            if kind == "podAntiAffinity" and (same := shared.get(index)):
                named = several([one.pod for one in same])
                have = "has" if len(same) == 1 else "have"
                fix = f"{fix}, then delete {named}, which {have} it as well"
                others = of_template(pod, remove, same, world)
                remove = both(remove, partial(remove_labels, keys=same[0].keys))
            yield Constraint(
                "pod affinity",
                described,
                fix,
                remove,
                others=others,
                on=cache(found.missing if kind == "podAffinity" else found.present),
                field=where,
                repairs=partial(_OWN_REPAIRS[kind], found, index, where, remove),
                words="pod affinity rules" if kind == "podAffinity" else "pod anti-affinity rules",
            )


def _of_affinity(term: Term, index: int, where: str, remove: Change) -> Iterator[RuleRepair]:
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


def _of_anti_affinity(term: Term, index: int, where: str, remove: Change) -> Iterator[RuleRepair]:
    yield from _of_rollout(term, index, where)
    yield from _of_negative(term, index, where)
    if term.key != HOSTNAME and term.domains:
        text = f"add a node with another value of {term.key}"
        yield RuleRepair(text, remove, rank=Rank.NODE)


_OWN_REPAIRS: Final = {"podAffinity": _of_affinity, "podAntiAffinity": _of_anti_affinity}


def _of_rollout(term: Term, index: int, where: str) -> Iterator[RuleRepair]:
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


def _of_negative(term: Term, index: int, where: str) -> Iterator[RuleRepair]:
    """Yield the namespaces that are not excluded, by their names."""
    namespaces = [one["metadata"]["name"] for one in term.world.all(NAMESPACES)]
    meant = [name for name in namespaces if reaches(term.term, term.pod, name, term.world)]
    if not term.is_negative or not meant or len(meant) > _NAMED:
        return

    def change(pod: Object) -> None:
        chosen = pod["spec"]["affinity"]["podAntiAffinity"][REQUIRED][index]
        chosen["namespaces"] = meant
        del chosen["namespaceSelector"]

    yield RuleRepair(
        f"set the namespaces of the pod anti-affinity to {', '.join(meant)}, without its "
        "namespaceSelector",
        change,
        where,
    )
