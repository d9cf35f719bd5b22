"""The volumes and resource claims of a pod as constraints, each with what its claim lacks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from .constraint import Constraint, containers
from .kinds import CLAIMS, PODS, RESOURCE_CLAIMS, STORAGE_CLASSES, Object
from .world import World

VOLUMES_FAMILY: Final = "volumes"
DEVICES_FAMILY: Final = "devices"

_CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
_EXCLUSIVE: Final = "ReadWriteOncePod"
_NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"


def volume_constraints(pod: Mapping[str, Any], world: World) -> Iterator[Constraint]:
    """Yield one constraint for each volume that restricts where a pod can run."""
    for volume in pod["spec"].get("volumes") or ():
        name = volume.get("name")
        source = next(key for key in volume if key != "name")
        content = volume[source] or {}

        def remove(pod: Object, name: Any = name) -> None:
            volumes = pod["spec"].get("volumes") or ()
            pod["spec"]["volumes"] = [each for each in volumes if each.get("name") != name]

        claim = content.get("claimName")
        if source == "ephemeral":
            claim = f"{pod['metadata']['name']}-{name}"
        if claim:
            text, fix = _claim(pod, str(name), claim, world)
        else:
            what = content.get("driver") or source
            text = f"the volume {name} ({what}) cannot be used there"
            fix = f"remove the volume {name} ({what})"
        yield Constraint(VOLUMES_FAMILY, text, fix, remove)


def _claim(pod: Mapping[str, Any], volume: str, name: str, world: World) -> tuple[str, str]:
    """Return why a volume's PersistentVolumeClaim cannot be used, and the fix."""
    what = f"PersistentVolumeClaim {name}"
    remove = f"remove the volume {volume} ({what})"
    namespace = pod["metadata"]["namespace"]
    claim = world.get(CLAIMS, name, namespace)
    if claim is None:
        return f"{what} does not exist", f"create {what}"
    if claim["metadata"].get("deletionTimestamp"):
        return f"{what} is being deleted", f"create {what} again once it is gone"
    spec, status = claim.get("spec") or {}, claim.get("status") or {}
    bound = spec.get("volumeName")
    if status.get("phase") == "Lost":
        return (
            f"{what} has lost its volume {bound}",
            f"create {what} again, or restore PersistentVolume {bound}",
        )
    if bound:
        others = _users(pod, name, world) if _EXCLUSIVE in (spec.get("accessModes") or ()) else []
        if others:
            used = f"pod {others[0]} uses {what}, whose access mode is {_EXCLUSIVE}"
            return used, f"delete pod {others[0]}"
        return f"the volume {bound} of {what} cannot be used there", remove
    annotations = claim["metadata"].get("annotations") or {}
    class_name = spec.get("storageClassName")
    class_name = annotations.get(_CLASS_ANNOTATION) if class_name is None else class_name
    if not class_name:
        return f"{what} has no volume and no StorageClass", f"create a PersistentVolume for {what}"
    storage_class = world.get(STORAGE_CLASSES, class_name)
    if storage_class is None:
        missing = f"{what} names StorageClass {class_name}, which does not exist"
        return missing, f"create StorageClass {class_name}, or a PersistentVolume for {what}"
    provisioner = storage_class.get("provisioner", "")
    if provisioner == _NO_PROVISIONER:
        return (
            f"no free PersistentVolume of StorageClass {class_name} can be used there for {what}",
            f"create a PersistentVolume for {what}",
        )
    if storage_class.get("volumeBindingMode") == "WaitForFirstConsumer":
        return f"{provisioner} cannot provide a volume for {what} there", remove
    return (
        f"{what} waits for a volume of {provisioner} (StorageClass {class_name})",
        f"make {provisioner} provide a volume for {what}",
    )


def _users(pod: Mapping[str, Any], claim: str, world: World) -> list[str]:
    """Return the running pods that use a claim of this pod's namespace."""
    namespace = pod["metadata"]["namespace"]
    found = []
    for (of, name), entry in world.objects[PODS].items():
        if of == namespace and entry.node and claim.encode() in entry.content:
            volumes = entry.object()["spec"].get("volumes") or ()
            used = {(each.get("persistentVolumeClaim") or {}).get("claimName") for each in volumes}
            if claim in used:
                found.append(name)
    return found


def device_constraints(pod: Mapping[str, Any], world: World) -> Iterator[Constraint]:
    """Yield one constraint for each entry of `spec.resourceClaims`."""
    for claim in pod["spec"].get("resourceClaims") or ():
        name = claim["name"]

        def remove(pod: Object, name: str = name) -> None:
            changed = pod["spec"]
            claims = [each for each in changed["resourceClaims"] if each["name"] != name]
            changed["resourceClaims"] = claims
            for container in containers(changed):
                used = (container.get("resources") or {}).get("claims")
                if used:
                    kept = [each for each in used if each.get("name") != name]
                    container["resources"]["claims"] = kept

        text = f"the devices of the resource claim {name} are not available"
        fix = f"remove the resource claim {name}"
        wanted = claim.get("resourceClaimName")
        if wanted and world.get(RESOURCE_CLAIMS, wanted, pod["metadata"]["namespace"]) is None:
            text = f"ResourceClaim {wanted} does not exist"
            fix = f"create ResourceClaim {wanted}"
        yield Constraint(DEVICES_FAMILY, text, fix, remove)
