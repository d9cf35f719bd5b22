"""What requirements on labels leave: of a NodePool, of a Pod and of its volumes.

The operators are those of Karpenter (pkg/scheduling/requirement.go of sigs.k8s.io/karpenter
v1.15.0): those of node affinity, Gte and Lte. Values decide which labels a template gets; whether
the Pod fits on it is kube-scheduler's decision.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product
from typing import Any, Final

from ..base.foreign_text import foreign
from ..base.limits import FOREIGN_REASON
from ..base.objects import entries, mapping
from .kinds import CLAIMS, PODS, STORAGE_CLASSES, VOLUMES
from .node_rules import REQUIRED
from .world import World

ZONE: Final = "topology.kubernetes.io/zone"
REGION: Final = "topology.kubernetes.io/region"
INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
ARCH: Final = "kubernetes.io/arch"
OS: Final = "kubernetes.io/os"
CAPACITY_TYPE: Final = "karpenter.sh/capacity-type"
ALIASES: Final[Mapping[str, str]] = {
    "failure-domain.beta.kubernetes.io/zone": ZONE,
    "topology.ebs.csi.aws.com/zone": ZONE,
    "topology.gke.io/zone": ZONE,
    "topology.disk.csi.azure.com/zone": ZONE,
    "failure-domain.beta.kubernetes.io/region": REGION,
    "beta.kubernetes.io/instance-type": INSTANCE_TYPE,
    "beta.kubernetes.io/arch": ARCH,
    "beta.kubernetes.io/os": OS,
}
"""Label -> the label with the same value, which requirements name."""

_ANY: Final = "any"
"""The value of a label that only has to exist."""
MOST_ALTERNATIVES: Final = 8
_MOST_REQUIREMENTS: Final = 100
_SHOWN_VALUES: Final = 5


@dataclass(frozen=True, slots=True)
class Values:
    """The values that requirements leave for one label."""

    only: frozenset[str] | None = None  # None: all but `without`
    without: frozenset[str] = frozenset()
    least: int | None = None  # of numbers
    most: int | None = None
    demanded: bool = False  # whether the label must exist

    def admits(self, value: str) -> bool:
        if value in self.without or (self.only is not None and value not in self.only):
            return False
        if self.least is None and self.most is None:
            return True
        number = _number(value)
        if number is None:
            return False
        return (self.least is None or number >= self.least) and (
            self.most is None or number <= self.most
        )

    def both(self, other: Values) -> Values:
        """Return what both leave."""
        sets = [only for only in (self.only, other.only) if only is not None]
        return Values(
            frozenset.intersection(*sets) if sets else None,
            self.without | other.without,
            _of(max, self.least, other.least),
            _of(min, self.most, other.most),
            self.demanded or other.demanded,
        )

    def some(self) -> list[str]:
        """Return the values that are left, or one of endlessly many; empty: none, or no label."""
        if self.only is not None:
            return sorted(filter(self.admits, self.only))
        numbers = [str(bound) for bound in (self.least, self.most) if bound is not None]
        chosen = [value for value in numbers if self.admits(value)][:1]
        return chosen or ([_ANY] if self.demanded and not numbers else [])


Requirements = Mapping[str, Values]
"""By label; a label without an entry may have any value."""

ANY: Final = Values()


def _of(choose: Any, one: int | None, other: int | None) -> int | None:
    known = [bound for bound in (one, other) if bound is not None]
    return choose(known) if known else None


def _number(value: Any) -> int | None:
    try:
        return int(str(value))
    except ValueError:
        return None


def _values(requirement: Mapping[str, Any]) -> Values:
    operator = str(requirement.get("operator"))
    values = frozenset(map(str, entries(requirement.get("values"))))
    number = _number(next(iter(values), ""))
    if operator == "In":
        return Values(values, demanded=True)
    if operator == "NotIn":
        return Values(without=values)
    if operator == "DoesNotExist":
        return Values(frozenset())
    if number is not None and operator in ("Gt", "Gte"):
        return Values(least=number + (operator == "Gt"), demanded=True)
    if number is not None and operator in ("Lt", "Lte"):
        return Values(most=number - (operator == "Lt"), demanded=True)
    return Values(demanded=True)


def requirements_of(expressions: Any, labels: Any = None) -> Requirements:
    """Return what expressions with key, operator and values, and fixed labels, leave together."""
    found: dict[str, Values] = {}
    listed = [one for one in entries(expressions) if isinstance(one, Mapping)]
    for one in listed[:_MOST_REQUIREMENTS]:
        key = ALIASES.get(str(one.get("key")), str(one.get("key")))
        found[key] = found.get(key, ANY).both(_values(one))
    for key, value in mapping(labels).items():
        key = ALIASES.get(key, key)
        found[key] = found.get(key, ANY).both(Values(frozenset({str(value)}), demanded=True))
    return found


def together(one: Requirements, other: Requirements) -> Requirements:
    return {key: one.get(key, ANY).both(other.get(key, ANY)) for key in (*one, *other)}


def written(requirement: Mapping[str, Any]) -> str:
    """Return a requirement as text, with its first values."""
    values = [str(value) for value in entries(requirement.get("values"))]
    listed = ", ".join(values[:_SHOWN_VALUES]) + (", …" if len(values) > _SHOWN_VALUES else "")
    text = f"{requirement.get('key')} {requirement.get('operator')} {listed}"
    return foreign(text.strip(), FOREIGN_REASON)


# --- what a pod demands ---------------------------------------------------------------------------


def demands(pod: Mapping[str, Any], world: World) -> list[Requirements]:
    """Return what nodeSelector, node affinity and volumes of a Pod demand: one of these.

    One more than MOST_ALTERNATIVES stands for all others.
    """
    spec = pod["spec"]
    affinity = mapping(mapping(spec.get("affinity")).get("nodeAffinity"))
    terms = mapping(affinity.get(REQUIRED)).get("nodeSelectorTerms")
    choices = [_alternatives(terms, "matchExpressions")]
    for volume in entries(spec.get("volumes")):
        name = mapping(mapping(volume).get("persistentVolumeClaim")).get("claimName")
        if mapping(volume).get("ephemeral"):
            name = f"{pod['metadata']['name']}-{mapping(volume).get('name')}"
        if name:
            choices.append(_of_claim(str(name), pod["metadata"]["namespace"], world))
    own = requirements_of((), spec.get("nodeSelector"))
    found = []
    for chosen in islice(product(*choices), MOST_ALTERNATIVES + 1):
        whole = own
        for one in chosen:
            whole = together(whole, one)
        found.append(whole)
    return found


def _alternatives(terms: Any, field: str) -> Sequence[Requirements]:
    """Return what each of these terms demands; one that demands nothing without terms."""
    listed = [requirements_of(mapping(term).get(field)) for term in entries(terms)]
    return listed[: MOST_ALTERNATIVES + 1] or [{}]


def _of_claim(name: str, namespace: str, world: World) -> Sequence[Requirements]:
    spec = mapping((world.get(CLAIMS, name, namespace) or {}).get("spec"))
    if bound := spec.get("volumeName"):
        volume = world.get(VOLUMES, str(bound)) or {}
        affinity = mapping(mapping(volume.get("spec")).get("nodeAffinity"))
        return _alternatives(
            mapping(affinity.get("required")).get("nodeSelectorTerms"), "matchExpressions"
        )
    storage_class = world.get(STORAGE_CLASSES, str(spec.get("storageClassName") or "")) or {}
    topologies = [
        {"in": [{**mapping(one), "operator": "In"} for one in entries(listed)]}
        for listed in (
            mapping(term).get("matchLabelExpressions")
            for term in entries(storage_class.get("allowedTopologies"))
        )
    ]
    return _alternatives(topologies, "in")


def deciding_keys(pod: Mapping[str, Any], world: World) -> Iterator[str]:
    """Yield the labels by whose values rules about other Pods decide: its own, and theirs."""
    yield from _topology_keys(pod["spec"])
    for entry in world.objects[PODS].values():
        if entry.node and b"podAntiAffinity" in entry.content:
            yield from _topology_keys(entry.object()["spec"], ("podAntiAffinity",))


def _topology_keys(
    spec: Mapping[str, Any], kinds: Iterable[str] = ("podAffinity", "podAntiAffinity")
) -> Iterator[str]:
    for rule in entries(spec.get("topologySpreadConstraints")):
        yield str(mapping(rule).get("topologyKey"))
    for kind in kinds:
        for term in entries(mapping(mapping(spec.get("affinity")).get(kind)).get(REQUIRED)):
            yield str(mapping(term).get("topologyKey"))
