"""The table of kinds, and the changes that several of them make."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .situation import Object, Situation

Change = Callable[[Situation], None]


@dataclass(frozen=True)
class Kind:
    """A kind of Pending."""

    arrange: Change  # makes the pod wait
    cause: str  # a part of one cause, or of kube-scheduler's own words for it
    fix: str  # a part of a change that is named; empty: no change is expected
    repair: Change | None  # makes that change; None: nothing is repaired
    first: str = ""  # a part of the change that is named first; empty: `fix`
    untried: bool = False  # kube-scheduler does not try the pod: it waits for a claim
    since: int = 0  # the first minor version of Kubernetes in which it exists by default
    # the first minor version in which kube-scheduler does not try the pod again after the change
    retried_late_since: int = 99
    reason: str = "Unschedulable"  # of the condition PodScheduled


KINDS: dict[str, Kind] = {}


def kind(
    cause: str, fix: str = "", repair: Change | None = None, **fields: Any
) -> Callable[[Change], Change]:
    """Register a kind; `{}` stands for the prefix of the situation's names."""

    def register(arrange: Change) -> Change:
        name = arrange.__name__.replace("_", " ").strip()
        KINDS[name] = Kind(arrange, cause, fix, repair, **fields)
        return arrange

    return register


def requests(**amounts: str | None) -> Change:
    return lambda situation: situation.requests(**amounts)


def with_spec(**fields: Any) -> Change:
    return lambda situation: situation.spec.update(fields)


def without(*fields: str) -> Change:
    def remove(situation: Situation) -> None:
        for name in fields:
            situation.spec.pop(name)

    return remove


def tolerate(*keys: str) -> Change:
    return with_spec(tolerations=[{"key": key, "operator": "Exists"} for key in keys])


def expression(key: str, operator: str, *values: str) -> Object:
    content: Object = {"key": key, "operator": operator}
    return {"matchExpressions": [content | ({"values": list(values)} if values else {})]}


def term(app: str, key: str, **fields: Any) -> Object:
    return {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key, **fields}


def delete_the_first(situation: Situation) -> None:
    metadata = situation.running[0]["metadata"]
    path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
    situation.deletions.append(path)
    # kube-scheduler tries the same pod again after half a minute, and a new one at once.
    situation.waiting["metadata"]["labels"]["new"] = "yes"


def adds_node(name: str, zone: str, **labels: str) -> Change:
    def add(situation: Situation) -> None:
        situation.node(name, zone)
        situation.nodes[-1]["metadata"]["labels"].update(labels)

    return add


def runs(node: int, app: str, **labels: str) -> Change:
    """Another pod gets a node."""

    def run(situation: Situation) -> None:
        situation.runs(node, app=app)["metadata"]["labels"].update(labels)

    return run


def provides(resource: str, amount: str) -> Change:
    """A node gets more of a resource."""

    def provide(situation: Situation) -> None:
        path = f"/api/v1/nodes/{situation.name('a')}/status"
        amounts = {key: {resource: amount} for key in ("capacity", "allocatable")}
        situation.patches.append((path, {"status": amounts}))

    return provide


def ignore(_: Any) -> None:
    """Make a change of something that returns what it has made."""
