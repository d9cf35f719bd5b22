"""The constraints of a pod's volumes, each with what its claim lacks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ..base.objects import mapping
from . import volume_facts
from .constraint import Constraint, Rank, removing
from .kinds import CLAIMS, PODS, STORAGE_CLASSES
from .world import World

_CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
_EXCLUSIVE: Final = "ReadWriteOncePod"
_LATE: Final = "WaitForFirstConsumer"
_NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"


def volume_constraints(pod: Mapping[str, Any], world: World) -> Iterator[Constraint]:
    """Yield one constraint for each volume that restricts where a pod can run."""
    for volume in pod["spec"].get("volumes") or ():
        name = volume.get("name")
        source = next(key for key in volume if key != "name")
        content = volume[source] or {}
        claim = content.get("claimName")
        if source == "ephemeral":
            claim = f"{pod['metadata']['name']}-{name}"
        on = None
        if claim:
            text, fix = _claim(pod, str(name), claim, world)
            on = _on_node(claim, pod["metadata"]["namespace"], world)
        else:
            label = content.get("driver") or source
            text = f"the volume {name} ({label}) cannot be used there"
            fix = f"remove the volume {name} ({label})"
        rank = Rank.DROP if fix.startswith("remove ") else Rank.MEND
        yield Constraint(
            "volumes", text, fix, removing(volume, "spec", "volumes"), on=on, rank=rank
        )


def _on_node(name: str, namespace: str, world: World) -> volume_facts.Fact | None:
    """Return what keeps a claim's volume from a node; None if that does not depend on the node."""
    claim = world.get(CLAIMS, name, namespace)
    spec = mapping((claim or {}).get("spec"))
    if claim is None or claim["metadata"].get("deletionTimestamp"):
        return None
    if (claim.get("status") or {}).get("phase") == "Lost":
        return None
    if bound := spec.get("volumeName"):
        if _EXCLUSIVE in (spec.get("accessModes") or ()):
            return None
        return volume_facts.of_bound(bound, f"PersistentVolumeClaim {name}", world)
    storage_class = world.get(STORAGE_CLASSES, _class_of(claim) or "")
    if storage_class is None or storage_class.get("volumeBindingMode") != _LATE:
        return None
    if storage_class.get("provisioner") == _NO_PROVISIONER:
        return None
    return volume_facts.of_class(claim, storage_class, world)


def _class_of(claim: Mapping[str, Any]) -> str | None:
    name = (claim.get("spec") or {}).get("storageClassName")
    annotations = claim["metadata"].get("annotations") or {}
    return annotations.get(_CLASS_ANNOTATION) if name is None else name


def _claim(pod: Mapping[str, Any], volume: str, name: str, world: World) -> tuple[str, str]:
    """Return why a volume's PersistentVolumeClaim cannot be used, and the fix."""
    text = f"PersistentVolumeClaim {name}"
    remove = f"remove the volume {volume} ({text})"
    namespace = pod["metadata"]["namespace"]
    claim = world.get(CLAIMS, name, namespace)
    if claim is None:
        return f"{text} does not exist", f"create {text}"
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
        others = _users(pod, name, world) if _EXCLUSIVE in (spec.get("accessModes") or ()) else []
        if others:
            used = f"pod {others[0]} uses {text}, whose access mode is {_EXCLUSIVE}"
            return used, f"delete pod {others[0]}"
        return f"the volume {bound} of {text} cannot be used there", remove
    class_name = _class_of(claim)
    if not class_name:
        return (
            f"{text} has no volume and no StorageClass",
            f"create a PersistentVolume for {text}",
        )
    storage_class = world.get(STORAGE_CLASSES, class_name)
    if storage_class is None:
        missing = f"{text} names StorageClass {class_name}, which does not exist"
        return missing, f"create StorageClass {class_name}, or a PersistentVolume for {text}"
    provisioner = storage_class.get("provisioner", "")
    if provisioner == _NO_PROVISIONER:
        return (
            f"no free PersistentVolume of StorageClass {class_name} can be used there for {text}",
            f"create a PersistentVolume for {text}",
        )
    if storage_class.get("volumeBindingMode") == _LATE:
        return f"{provisioner} cannot provide a volume for {text} there", remove
    return (
        f"{text} waits for a volume of {provisioner} (StorageClass {class_name})",
        f"make {provisioner} provide a volume for {text}",
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
