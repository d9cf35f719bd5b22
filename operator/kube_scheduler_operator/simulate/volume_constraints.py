"""The constraints of a pod's volumes, each with what its claim lacks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from ..base.foreign_text import foreign, json_text
from ..base.limits import FOREIGN_NAME
from ..base.objects import mapping
from ..config.language.warnings.configuration import SUBDOMAIN
from . import volume_facts
from .absence import absent
from .constraint import Constraint, Rank, RuleRepair, removing
from .controllers import SELECTED_NODE
from .kinds import CLAIMS, IMAGE_VOLUME, NODES, PODS, STORAGE_CLASSES, VOLUMES, Object
from .volume_repairs import LATE, claim_repairs, class_of
from .world import World

DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"
_NAMED: Final = 3
_EXCLUSIVE: Final = "ReadWriteOncePod"
_NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"


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
        if claim:
            text, fix = _claim(pod, str(name), claim, world)
            on = _on_node(claim, pod, world)
            repairs = partial(claim_repairs, pod, str(name), claim, world, remove)
        else:
            label = content.get("driver") or source
            text = f"the volume {name} ({label}) cannot be used on the node"
            fix = f"remove the volume {name} ({label})"
        rank = Rank.DROP if fix.startswith("remove the volume ") else Rank.MEND
        yield Constraint("volumes", text, fix, remove, on=on, rank=rank, repairs=repairs)


def _on_node(name: str, pod: Mapping[str, Any], world: World) -> volume_facts.Fact | None:
    """Return what keeps a claim's volume from a node; None if that does not depend on the node."""
    claim = world.get(CLAIMS, name, pod["metadata"]["namespace"])
    spec = mapping((claim or {}).get("spec"))
    if claim is None or claim["metadata"].get("deletionTimestamp"):
        return None
    if (claim.get("status") or {}).get("phase") == "Lost":
        return None
    if bound := spec.get("volumeName"):
        if _EXCLUSIVE in (spec.get("accessModes") or ()):
            return None
        others = dict(_other_volumes(name, pod, world))
        return volume_facts.of_bound(bound, f"PersistentVolumeClaim {name}", world, others)
    storage_class = world.get(STORAGE_CLASSES, class_of(claim) or "")
    if class_of(claim) == "" or (storage_class or {}).get("provisioner") == _NO_PROVISIONER:
        return volume_facts.of_free(claim, class_of(claim) or "", world)
    if storage_class is None or storage_class.get("volumeBindingMode") != LATE:
        return None
    if _selected(claim):
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


def _selected(claim: Mapping[str, Any]) -> str:
    """Return the node for which kube-scheduler has asked a driver to provide a volume."""
    annotations = claim["metadata"].get("annotations") or {}
    return foreign(str(annotations.get(SELECTED_NODE) or ""), FOREIGN_NAME)


def _claim(pod: Mapping[str, Any], volume: str, name: str, world: World) -> tuple[str, str]:
    """Return why a volume's PersistentVolumeClaim cannot be used, and the fix."""
    text = f"PersistentVolumeClaim {name}"
    remove = f"remove the volume {volume} ({text})"
    namespace = pod["metadata"]["namespace"]
    claim = world.get(CLAIMS, name, namespace)
    if claim is None and (no_name := _impossible("PersistentVolumeClaim", name)):
        return no_name, f"remove the volume {volume}, or name an existing PersistentVolumeClaim"
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
        return _bound(pod, name, claim, text, f"{remove}, or", world)
    return _unbound(name, claim, text, remove, world)


def _impossible(kind: str, name: str) -> str:
    """Return that no object has a name, which the API server accepts in references; else empty."""
    if SUBDOMAIN.fullmatch(name):
        return ""
    return f"no {kind} can have the name {json_text(name[:FOREIGN_NAME])}"


def _bound(
    pod: Mapping[str, Any], name: str, claim: Object, text: str, remove: str, world: World
) -> tuple[str, str]:
    spec = claim["spec"]
    bound = spec["volumeName"]
    others = _users(pod, name, world) if _EXCLUSIVE in (spec.get("accessModes") or ()) else []
    if others:
        used = f"pod {others[0]} uses {text}, whose access mode is {_EXCLUSIVE}"
        return used, f"delete pod {others[0]}"
    found = world.get(VOLUMES, bound)
    if found is None and (no_name := _impossible("PersistentVolume", bound)):
        return f"{no_name}, which {text} demands", f"create {text} again without volumeName"
    if found is None:
        again = f"create PersistentVolume {bound}, or {text} again without volumeName"
        return absent(world, VOLUMES, f"the PersistentVolume {bound} of {text}", again)
    unusable = f"the volume {bound} of {text} cannot be used on the node"
    if gone := volume_facts.gone_node(found, world):
        return unusable, f"bring node {gone} back, or create {text} again: its data is lost"
    return unusable, f"{remove} copy its data to a volume that these nodes can use"


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
    if provisioner == _NO_PROVISIONER:
        return (
            f"no free PersistentVolume of StorageClass {class_name} can be used on the node for "
            f"{text}",
            f"create a PersistentVolume for {text}",
        )
    if storage_class.get("volumeBindingMode") == LATE:
        if selected := _selected(claim):
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


def _users(pod: Mapping[str, Any], claim: str, world: World) -> list[str]:
    """Return the running pods that use a claim of this pod's namespace."""
    namespace = pod["metadata"]["namespace"]
    users = []
    for (of, name), entry in world.objects[PODS].items():
        if of == namespace and entry.node and claim.encode() in entry.content:
            volumes = entry.object()["spec"].get("volumes") or ()
            used = {
                (volume.get("persistentVolumeClaim") or {}).get("claimName") for volume in volumes
            }
            if claim in used:
                users.append(name)
    return users
