"""What makes the volume of a claim usable where the pod can run, and keeps it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from ..base.objects import mapping
from . import volume_facts
from .claim_bindings import (
    EXCLUSIVE,
    LATE,
    class_of,
    is_bound,
    released_volumes,
    releasing,
    template_owner,
    users_of,
)
from .constraint import Change, Rank, RuleRepair
from .edits import Edit
from .kinds import CLAIMS, HOSTNAME, IMPOSSIBLE, STORAGE_CLASSES, VOLUMES, Object
from .world import World

_NAMED: Final = 3


def claim_repairs(
    pod: Mapping[str, Any], volume: str, name: str, world: World, remove: Change
) -> Iterator[RuleRepair]:
    """Yield what keeps the volume."""
    claim = world.get(CLAIMS, name, pod["metadata"]["namespace"])
    spec = mapping((claim or {}).get("spec"))
    if claim is None:
        return
    storage_class = world.get(STORAGE_CLASSES, class_of(claim) or "")
    driver = volume_facts.driver_of(claim, storage_class or {}, world)
    if lacking := volume_facts.without_driver(driver, world):
        text = (
            f"make the CSI driver {driver} run on the node: CSINode {lacking[0]} does not list it"
        )
        yield RuleRepair(text, remove, rank=Rank.MEND, only=frozenset(lacking).__contains__)
    for attachment, node in volume_facts.left_attachments(driver, world):
        text = (
            f"see why a volume that no pod uses is still attached to {node}: kubectl describe "
            f"volumeattachment {attachment}"
        )
        yield RuleRepair(text, remove, rank=Rank.MEND, only=node.__eq__)
    yield from _in_use(pod, name, claim, world, remove)
    yield from _released(claim, world, remove)
    if found := world.get(VOLUMES, str(spec.get("volumeName") or "")):
        if not is_bound(claim):
            return
        yield from _bound_elsewhere(pod, volume, claim, world)
        for key, values in volume_facts.missing_labels(found, world).items():
            if key != HOSTNAME:
                text = f"add a node with the label {key}={values[0]}"
                yield RuleRepair(text, remove, rank=Rank.NODE)
        return
    if storage_class is None or storage_class.get("volumeBindingMode") != LATE:
        return
    title = storage_class["metadata"]["name"]
    if storage_class.get("allowedTopologies"):
        anywhere = {**storage_class, "metadata": {"name": f"{IMPOSSIBLE}{title}"}}
        del anywhere["allowedTopologies"]
        yield _with_claim(
            f"create StorageClass {title} again with the labels of these nodes in "
            "allowedTopologies, or use another class",
            volume, claim, {"storageClassName": anywhere["metadata"]["name"]}, anywhere,
        )  # fmt: skip
    yield from _smaller(pod, volume, claim, storage_class, world)


def _in_use(
    pod: Mapping[str, Any], name: str, claim: Object, world: World, remove: Change
) -> Iterator[RuleRepair]:
    """Yield the end of the one pod that a claim is for."""
    spec = mapping(claim.get("spec"))
    users = users_of(pod, name, world) if EXCLUSIVE in (spec.get("accessModes") or ()) else []
    if len(users) == 1 and is_bound(claim):
        ended = Edit(f"Pod {pod['metadata']['namespace']}/{users[0]}")
        yield RuleRepair(
            f"delete pod {users[0]}", remove, rank=Rank.MEND, others=lambda _nodes: (ended,),
            only=_reaches(str(spec.get("volumeName")), world),
        )  # fmt: skip


def _released(claim: Object, world: World, remove: Change) -> Iterator[RuleRepair]:
    """Yield what gives a claim the volume that an earlier one of its name had."""
    for name in released_volumes(claim, world):
        yield RuleRepair(releasing(name), remove, rank=Rank.MEND, only=_reaches(name, world))


def _reaches(volume: str, world: World) -> Callable[[str], bool]:
    """Return whether a volume can be used on a node."""
    fact = volume_facts.of_bound(volume, "", world)
    return lambda node: not fact(node)


def _bound_elsewhere(
    pod: Mapping[str, Any], volume: str, claim: Object, world: World
) -> Iterator[RuleRepair]:
    """Yield a claim with a new volume, where the data of the old one may be given up."""
    name, bound = claim["metadata"]["name"], claim["spec"]["volumeName"]
    unbound = {"volumeName": None}
    owner = template_owner(pod, volume, name)
    if owner and not volume_facts.gone_node(world.get(VOLUMES, bound) or {}, world):
        namespace = claim["metadata"]["namespace"]
        ended = tuple(
            Edit(f"{kind} {namespace}/{one}")
            for kind, one in (("PersistentVolumeClaim", name), ("Pod", pod["metadata"]["name"]))
        )
        yield _with_claim(
            f"delete PersistentVolumeClaim {name} and pod {pod['metadata']['name']}: StatefulSet "
            f"{owner} creates both again, without the data of volume {bound}",
            volume, claim, unbound, rank=Rank.DROP, patch=ended,
        )  # fmt: skip
    storage_class = world.get(STORAGE_CLASSES, class_of(claim) or "") or {}
    if storage_class.get("volumeBindingMode") == LATE or not storage_class:
        return
    if not _others_are_bound_elsewhere(pod, name, world):
        return
    title = storage_class["metadata"]["name"]
    late = {**storage_class, "metadata": {"name": f"{IMPOSSIBLE}{title}"}}
    late["volumeBindingMode"] = LATE
    yield _with_claim(
        f"create PersistentVolumeClaim {name} again with a StorageClass whose volumeBindingMode is "
        f"{LATE}, so that its volume is where the pod can run; {title} has Immediate. The data of "
        f"volume {bound} is lost",
        volume, claim, {**unbound, "storageClassName": late["metadata"]["name"]}, late,
        rank=Rank.LESS,
    )  # fmt: skip


def _others_are_bound_elsewhere(pod: Mapping[str, Any], name: str, world: World) -> bool:
    """Whether the volume of a claim cannot be used where that of another claim of the pod can."""
    claims = [
        str(mapping(source.get("persistentVolumeClaim")).get("claimName") or "")
        for source in pod["spec"].get("volumes") or ()
    ]
    nodes = {}
    for each in claims:
        claim = world.get(CLAIMS, each, pod["metadata"]["namespace"])
        bound = mapping((claim or {}).get("spec")).get("volumeName")
        if bound:
            fact = volume_facts.of_bound(str(bound), "", world)
            names = (node["metadata"]["name"] for node in world.nodes())
            nodes[each] = {node for node in names if not fact(node)}
    own = nodes.pop(name, set())
    return any(own.isdisjoint(others) for others in nodes.values())


def _smaller(
    pod: Mapping[str, Any], volume: str, claim: Object, storage_class: Object, world: World
) -> Iterator[RuleRepair]:
    """Yield the largest size that a driver can provide, for each of the pod's claims alike."""
    name, wanted = claim["metadata"]["name"], _size(claim)
    alike: list[tuple[str, Object]] = []
    for source in pod["spec"].get("volumes") or ():
        own = str(mapping(source.get("persistentVolumeClaim")).get("claimName") or "")
        other = world.get(CLAIMS, own, pod["metadata"]["namespace"])
        if other is not None and _key(other) == _key(claim):
            alike.append((str(source.get("name")), other))
    if len(alike) > 1 and alike[0][1]["metadata"]["name"] != name:
        return
    largest = volume_facts.largest_capacity(storage_class, world, max(len(alike), 1))
    if not largest:
        return
    changed = {"resources": {"requests": {"storage": largest}}}
    if len(alike) < 2:
        text = f"request {largest} instead of {wanted} in PersistentVolumeClaim {name}"
        yield _with_claim(f"{text}, which is created again for that", volume, claim, changed)
        return
    names = [other["metadata"]["name"] for _, other in alike]
    last = names[-1] if len(names) <= _NAMED else f"{len(names) - _NAMED} more"
    listed = f"{', '.join(names[:-1][:_NAMED])} and {last}"
    repairs = [_with_claim("", source, other, changed) for source, other in alike]

    def use(pod: Object) -> None:
        for each in repairs:
            each.change(pod)

    text = f"request {largest} instead of {wanted} in each of PersistentVolumeClaims {listed}"
    yield RuleRepair(
        f"{text}, which are created again for that", use, rank=Rank.LESS,
        objects=tuple(obj for each in repairs for obj in each.objects),
    )  # fmt: skip


def _key(claim: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what claims have in common that a driver may provide alike."""
    return class_of(claim), _size(claim), mapping(claim.get("spec")).get("volumeName")


def _size(claim: Mapping[str, Any]) -> Any:
    return mapping(mapping(mapping(claim.get("spec")).get("resources")).get("requests")).get(
        "storage"
    )


def _with_claim(
    text: str,
    volume: str,
    claim: Object,
    changed: Mapping[str, Any],
    *objects: Object,
    rank: Rank | None = None,
    patch: Sequence[Edit] = (),
) -> RuleRepair:
    """Return the repair by a claim like this one, with another spec; None removes a field."""
    own = claim["metadata"]
    name = f"{IMPOSSIBLE}{own['name']}-{len(changed)}{len(objects)}"
    spec = {**claim["spec"], **changed}
    made = {**claim, "spec": {key: value for key, value in spec.items() if value is not None}}
    made["status"] = {"phase": "Pending"}
    made["metadata"] = {"name": name, "namespace": own["namespace"], "uid": name}

    def use(pod: Object) -> None:
        for source in pod["spec"]["volumes"]:
            if source["name"] == volume:
                source.pop("ephemeral", None)
                source["persistentVolumeClaim"] = {"claimName": name}

    rank = rank if rank is not None else Rank.RULE if objects else Rank.LESS
    return RuleRepair(
        text, use, rank=rank, objects=(*objects, made), others=lambda _nodes: tuple(patch)
    )
