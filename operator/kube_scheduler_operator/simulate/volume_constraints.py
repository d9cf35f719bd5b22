"""The constraints of a pod's volumes, each with what its claim lacks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from ..base.foreign_text import json_text
from ..base.limits import FOREIGN_NAME
from ..base.objects import mapping
from ..config.language.warnings.configuration import SUBDOMAIN
from . import volume_facts
from .absence import absent
from .claim_bindings import (
    EXCLUSIVE,
    LATE,
    class_of,
    is_bound,
    released_volumes,
    selected_node,
    template_owner,
    users_of,
)
from .constraint import (
    Constraint,
    OtherEdits,
    Rank,
    RuleRepair,
    no_edits,
    removing,
    unknown_edits,
)
from .controllers import NO_PROVISIONER, SELECTED_NODE
from .kinds import CLAIMS, IMAGE_VOLUME, NODES, STORAGE_CLASSES, VOLUMES, Object, pod_name
from .volume_repairs import claim_repairs
from .world import World

DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"
_NAMED: Final = 3
_DROPPING: Final = ("remove the volume ", "leave the volume ", "copy ")
"""How changes begin that give a volume or its place up."""


def volume_constraints(pod: Mapping[str, Any], world: World) -> Iterator[Constraint]:
    """Yield one constraint for each volume that restricts where a pod can run."""
    for volume in pod["spec"].get("volumes") or ():
        name = volume.get("name")
        source = next(key for key in volume if key != "name")
        if source == IMAGE_VOLUME:
            continue
        content = volume[source] or {}
        claim = content.get("claimName")
        if source == "ephemeral":
            claim = f"{pod['metadata']['name']}-{name}"
        on: volume_facts.Fact | None = None
        repairs: Callable[[], Iterable[RuleRepair]] = tuple
        remove = removing(volume, "spec", "volumes")
        others: OtherEdits = no_edits
        if claim:
            text, fix = _claim(pod, str(name), claim, world)
            if template_owner(pod, str(name), claim):  # whose template of pods has no such volume
                others = unknown_edits
            on = _on_node(claim, pod, world)
            repairs = partial(claim_repairs, pod, str(name), claim, world, remove)
        else:
            label = content.get("driver") or source
            text = f"the volume {name} ({label}) cannot be used on the node"
            fix = f"remove the volume {name} ({label})"
        rank = Rank.DROP if fix.startswith(_DROPPING) else Rank.MEND
        own = world.get(CLAIMS, claim, pod["metadata"]["namespace"]) if claim else None
        if own is not None and released_volumes(own, world):
            rank, others = Rank.RULE, unknown_edits  # rather give it that volume
        yield Constraint(
            "volumes", text, fix, remove, on=on, rank=rank, repairs=repairs, others=others
        )


def _on_node(name: str, pod: Mapping[str, Any], world: World) -> volume_facts.Fact | None:
    """Return what keeps a claim's volume from a node; None if that does not depend on the node."""
    claim = world.get(CLAIMS, name, pod["metadata"]["namespace"])
    spec = mapping((claim or {}).get("spec"))
    if claim is None or claim["metadata"].get("deletionTimestamp"):
        return None
    if (claim.get("status") or {}).get("phase") == "Lost":
        return None
    if bound := spec.get("volumeName"):
        if not is_bound(claim) and world.get(VOLUMES, bound) is not None:
            return None
        if EXCLUSIVE in (spec.get("accessModes") or ()):
            return None
        others = dict(_other_volumes(name, pod, world))
        return volume_facts.of_bound(bound, f"PersistentVolumeClaim {name}", world, others)
    storage_class = world.get(STORAGE_CLASSES, class_of(claim) or "")
    if class_of(claim) == "" or (storage_class or {}).get("provisioner") == NO_PROVISIONER:
        return volume_facts.of_free(claim, class_of(claim) or "", world)
    if storage_class is None or storage_class.get("volumeBindingMode") != LATE:
        return None
    if selected_node(claim):
        return None
    return volume_facts.of_class(claim, storage_class, world)


def _other_volumes(name: str, pod: Mapping[str, Any], world: World) -> Iterator[tuple[str, str]]:
    """Yield the volumes of the other claims of a pod, each with its claim."""
    for volume in pod["spec"].get("volumes") or ():
        other = mapping(volume.get("persistentVolumeClaim")).get("claimName")
        claim = world.get(CLAIMS, str(other), pod["metadata"]["namespace"]) if other else None
        bound = mapping((claim or {}).get("spec")).get("volumeName")
        if other != name and bound:
            yield str(bound), f"PersistentVolumeClaim {other}"


def _claim(pod: Mapping[str, Any], volume: str, name: str, world: World) -> tuple[str, str]:
    """Return why a volume's PersistentVolumeClaim cannot be used, and the fix."""
    text = f"PersistentVolumeClaim {name}"
    owner = template_owner(pod, volume, name)
    remove = f"remove the volume {volume} ({text})"
    if owner:
        remove = f"leave the volume {volume} out of the volumeClaimTemplates of StatefulSet {owner}"
    namespace = pod["metadata"]["namespace"]
    claim = world.get(CLAIMS, name, namespace)
    if claim is None and (no_name := _impossible("PersistentVolumeClaim", name)):
        return no_name, f"remove the volume {volume}, or name an existing PersistentVolumeClaim"
    if claim is None and owner:
        again = f"delete pod {pod_name(pod)}: StatefulSet {owner} creates it again, with {text}"
        return f"{text} does not exist", again
    if claim is None:
        return absent(world, CLAIMS, text, f"create {text}")
    if claim["metadata"].get("deletionTimestamp"):
        return f"{text} is being deleted", f"create {text} again once it is gone"
    spec, status = claim.get("spec") or {}, claim.get("status") or {}
    bound = spec.get("volumeName")
    if status.get("phase") == "Lost":
        return (
            f"{text} has lost its volume {bound}",
            f"create {text} again, or restore PersistentVolume {bound}",
        )
    if bound:
        return _bound(pod, volume, name, claim, remove, world)
    return _unbound(name, claim, text, remove, world)


def _impossible(kind: str, name: str) -> str:
    """Return that no object has a name, which the API server accepts in references; else empty."""
    if SUBDOMAIN.fullmatch(name):
        return ""
    return f"no {kind} can have the name {json_text(name[:FOREIGN_NAME])}"


def _bound(
    pod: Mapping[str, Any], volume: str, name: str, claim: Object, remove: str, world: World
) -> tuple[str, str]:
    spec, text = claim["spec"], f"PersistentVolumeClaim {name}"
    bound = spec["volumeName"]
    owner = template_owner(pod, volume, name)
    found = world.get(VOLUMES, bound)
    if found is not None and not is_bound(claim):
        return _named(claim, found, text)
    others = users_of(pod, name, world) if EXCLUSIVE in (spec.get("accessModes") or ()) else []
    if others:
        used = f"pod {others[0]} uses {text}, whose access mode is {EXCLUSIVE}"
        return used, f"{remove}, or use a claim of another access mode"
    if found is None and (no_name := _impossible("PersistentVolume", bound)):
        return f"{no_name}, which {text} demands", f"create {text} again without volumeName"
    if found is None:
        again = f"create PersistentVolume {bound}, or {text} again without volumeName"
        return absent(world, VOLUMES, f"the PersistentVolume {bound} of {text}", again)
    unusable = f"the volume {bound} of {text} cannot be used on the node"
    if gone := volume_facts.gone_node(found, world):
        again = f"create {text} again"
        if owner:
            again = (
                f"delete {text} and pod {pod['metadata']['name']}, which StatefulSet {owner} "
                "creates again"
            )
        return unusable, f"bring node {gone} back, or {again}: its data is lost"
    copied = "copy its data to a volume that these nodes can use"
    if owner:
        return unusable, f"copy the data of {text} to a volume that these nodes can use"
    return unusable, f"{remove}, or {copied}"


def _named(claim: Object, found: Object, text: str) -> tuple[str, str]:
    """Return why a claim is not bound to the volume that it names, and the fix."""
    bound, own = found["metadata"]["name"], claim["metadata"]
    names = f"{text} names PersistentVolume {bound} and is not bound to it"
    if why := volume_facts.unusable(found, claim, None):
        return f"{names}: {bound} {why}", f"create {text} again with another volumeName"
    return names, f"see why: kubectl describe pvc -n {own['namespace']} {own['name']}"


def _unbound(name: str, claim: Object, text: str, remove: str, world: World) -> tuple[str, str]:
    namespace = claim["metadata"]["namespace"]
    class_name = class_of(claim)
    if class_name is None:
        return _without_class(text, world)
    if not class_name:
        return (
            f'{text} has the storageClassName "", and no free PersistentVolume without a class '
            "can be used on the node",
            f"create a PersistentVolume for {text}",
        )
    storage_class = world.get(STORAGE_CLASSES, class_name)
    if storage_class is None and (no_name := _impossible("StorageClass", class_name)):
        return f"{no_name}, which {text} demands", f"create {text} again with an existing one"
    if storage_class is None:
        create = f"create StorageClass {class_name}, or a PersistentVolume for {text}"
        which = f"{text} names StorageClass {class_name}, which"
        return absent(world, STORAGE_CLASSES, which, create)
    provisioner = storage_class.get("provisioner", "")
    if provisioner == NO_PROVISIONER:
        return (
            f"no free PersistentVolume of StorageClass {class_name} can be used on the node for "
            f"{text}",
            f"create a PersistentVolume for {text}",
        )
    if storage_class.get("volumeBindingMode") == LATE:
        if selected := selected_node(claim):
            return _selected_elsewhere(text, f"{namespace} {name}", selected, provisioner, world)
        if volume_facts.lacks_reports(storage_class, world):
            return f"{provisioner} cannot provide a volume for {text} on the node", (
                f"make {provisioner} report its capacity (CSIStorageCapacity), or set "
                f"storageCapacity of CSIDriver {provisioner} to false"
            )
        return f"{provisioner} cannot provide a volume for {text} on the node", remove
    return (
        f"{text} waits for a volume of {provisioner} (StorageClass {class_name})",
        f"make {provisioner} provide a volume for {text}: kubectl describe pvc -n {namespace} "
        f"{name} shows what it reports",
    )


def _without_class(text: str, world: World) -> tuple[str, str]:
    names = [one["metadata"]["name"] for one in world.all(STORAGE_CLASSES)]
    missing = f"{text} has no storageClassName, and no StorageClass is the default"
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    if not names:
        known = world.unread.get(STORAGE_CLASSES) or "the cluster has none"
        return (
            f"{missing}: {known}",
            f"create a StorageClass and make it the default, or a PersistentVolume for {text}",
        )
    listed = f"{', '.join(sorted(names)[:_NAMED])}{more}"
    chosen = names[0] if len(names) == 1 else "NAME"
    return (
        f"{missing}; the cluster has {listed}",
        f"make a StorageClass the default: kubectl annotate storageclass {chosen} "
        f"{DEFAULT_CLASS}=true",
    )


def _selected_elsewhere(
    text: str, where: str, selected: str, provisioner: str, world: World
) -> tuple[str, str]:
    """Return why a claim waits for the volume of a node, and the fix."""
    chosen = f"the volume of {text} is to be provided for node {selected}"
    if world.get(NODES, selected) is None:
        return (
            f"{chosen} ({SELECTED_NODE}), which does not exist",
            f"remove the annotation: kubectl annotate pvc -n {where} {SELECTED_NODE}-",
        )
    return (
        f"{chosen}, and {provisioner} has not done it",
        f"see why {provisioner} does not provide it: kubectl describe pvc -n {where}",
    )
