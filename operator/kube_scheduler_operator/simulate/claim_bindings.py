"""What a PersistentVolumeClaim waits for that its pod cannot change.

It is bound to a volume that an earlier claim of the same name had, or its driver has not provided
the volume for which kube-scheduler has chosen a node. Sources: `IsVolumeBoundToClaim` and
`isPVCFullyBound` of kube-scheduler 1.35, and the controller of volumes (pv_controller.go).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from ..base.foreign_text import foreign
from ..base.limits import FOREIGN_NAME
from ..base.objects import controller_of, entries, mapping
from ..config.language.feature_gates import Gates
from .controllers import BIND_COMPLETED, NO_PROVISIONER, SELECTED_NODE
from .device_claims import claims_of
from .kinds import (
    CLAIMS,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    STATEFUL_SETS,
    STORAGE_CLASSES,
    VOLUMES,
)
from .world import World

LATE: Final = "WaitForFirstConsumer"
_BINDING_CONDITIONS: Final = "DRADeviceBindingConditions"
_CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
EXCLUSIVE: Final = "ReadWriteOncePod"


def class_of(claim: Mapping[str, Any]) -> str | None:
    name = (claim.get("spec") or {}).get("storageClassName")
    annotations = claim["metadata"].get("annotations") or {}
    return annotations.get(_CLASS_ANNOTATION) if name is None else name


def template_owner(pod: Mapping[str, Any], volume: str, claim: str) -> str:
    """Return the StatefulSet that makes a claim of a pod with it; empty: none does."""
    owner = controller_of(pod) or {}
    if owner.get("kind") != STATEFUL_SETS.kind or claim != f"{volume}-{pod['metadata']['name']}":
        return ""
    return foreign(str(owner.get("name")), FOREIGN_NAME)


def is_bound(claim: Mapping[str, Any]) -> bool:
    """Whether kube-scheduler takes a claim that names its volume as bound to it."""
    return BIND_COMPLETED in (claim["metadata"].get("annotations") or {})


def is_of_earlier(volume: Mapping[str, Any], claim: Mapping[str, Any]) -> bool:
    """Whether a volume belongs to an earlier claim that had the name of this one."""
    holder, own = mapping(mapping(volume.get("spec")).get("claimRef")), claim["metadata"]
    same = (holder.get("namespace"), holder.get("name")) == (own["namespace"], own["name"])
    return same and holder.get("uid") not in (None, "", own.get("uid"))


def releasing(volume: str) -> str:
    """Return how a claim gets the volume of an earlier one of the same name."""
    patch = '{"spec":{"claimRef":{"uid":null}}}'
    return (
        f"give PersistentVolume {volume} of an earlier claim of this name to this one: kubectl "
        f"patch pv {volume} --type merge -p '{patch}'"
    )


def selected_node(claim: Mapping[str, Any]) -> str:
    """Return the node for which kube-scheduler has asked a driver to provide a volume."""
    annotations = claim["metadata"].get("annotations") or {}
    return foreign(str(annotations.get(SELECTED_NODE) or ""), FOREIGN_NAME)


def awaited_volumes(pod: Mapping[str, Any], world: World) -> Iterator[str]:
    """Yield which volumes of a pod its drivers have not provided on the node that is chosen."""
    namespace = pod["metadata"]["namespace"]
    for source in pod["spec"].get("volumes") or ():
        name = mapping(source.get("persistentVolumeClaim")).get("claimName")
        if source.get("ephemeral"):
            name = f"{pod['metadata']['name']}-{source.get('name')}"
        claim = world.get(CLAIMS, str(name or ""), namespace)
        if claim is None or mapping(claim.get("spec")).get("volumeName"):
            continue
        storage_class = world.get(STORAGE_CLASSES, class_of(claim) or "") or {}
        provisioner = foreign(str(storage_class.get("provisioner") or ""), FOREIGN_NAME)
        chosen = selected_node(claim)
        if not chosen or world.get(NODES, chosen) is None or provisioner in ("", NO_PROVISIONER):
            continue
        shown = foreign(str(name), FOREIGN_NAME)
        yield (
            f"kube-scheduler has chosen node {chosen} and waits for {provisioner} to provide the "
            f"volume of PersistentVolumeClaim {shown} there ({SELECTED_NODE}): kubectl describe "
            f"pvc -n {namespace} {shown} shows what it reports; kube-scheduler chooses again after "
            f"kubectl annotate pvc -n {namespace} {shown} {SELECTED_NODE}-"
        )


def awaited_devices(pod: Mapping[str, Any], world: World) -> Iterator[str]:
    """Yield the conditions of a pod's devices that have to be true before it is bound."""
    namespace = pod["metadata"]["namespace"]
    for name in claims_of(pod):
        shown = foreign(name, FOREIGN_NAME)
        status = mapping((world.get(RESOURCE_CLAIMS, name, namespace) or {}).get("status"))
        reported = {
            _device(one): {
                each.get("type")
                for each in map(mapping, entries(one.get("conditions")))
                if each.get("status") == "True"
            }
            for one in map(mapping, entries(status.get("devices")))
        }
        devices = mapping(mapping(status.get("allocation")).get("devices"))
        for result in map(mapping, entries(devices.get("results"))):
            wanted = entries(result.get("bindingConditions"))
            missing = [
                foreign(str(one), FOREIGN_NAME)
                for one in wanted
                if one not in reported.get(_device(result), ())
            ]
            if missing:
                driver, _, device = _device(result)
                yield (
                    f"kube-scheduler has allocated device {device} of driver {driver} and waits "
                    f"for its condition {missing[0]} in status.devices of ResourceClaim {shown}, "
                    f"which a controller of the driver sets: kubectl describe resourceclaim -n "
                    f"{namespace} {shown}"
                )


def _device(result: Mapping[str, Any]) -> tuple[str, str, str]:
    driver, pool, device = (
        foreign(str(result.get(key)), FOREIGN_NAME) for key in ("driver", "pool", "device")
    )
    return driver, pool, device


def awaited(pod: Mapping[str, Any], world: World, gates: Callable[[], Gates]) -> list[str]:
    """Return what the scheduler of a pod waits for before it binds it, in sentences."""
    devices = list(awaited_devices(pod, world))
    if devices and not gates().enabled(_BINDING_CONDITIONS):
        devices = []
    return [*awaited_volumes(pod, world), *devices]


def released_volumes(claim: Mapping[str, Any], world: World) -> list[str]:
    """Return the volumes that an unbound claim can get, which an earlier one of its name had."""
    if bound := mapping(claim.get("spec")).get("volumeName"):
        found = None if is_bound(claim) else world.get(VOLUMES, str(bound))
        return [str(bound)] if found is not None and is_of_earlier(found, claim) else []
    return [
        volume["metadata"]["name"]
        for volume in world.all(VOLUMES)
        if (mapping(volume.get("spec")).get("storageClassName") or "") == (class_of(claim) or "")
        and is_of_earlier(volume, claim)
    ]


def users_of(pod: Mapping[str, Any], claim: str, world: World) -> list[str]:
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
