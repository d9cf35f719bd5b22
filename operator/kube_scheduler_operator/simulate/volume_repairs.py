"""What makes the volume of a claim usable where the pod can run, and keeps it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ..base.objects import mapping
from . import volume_facts
from .constraint import Change, Rank, RuleRepair
from .kinds import CLAIMS, HOSTNAME, IMPOSSIBLE, STORAGE_CLASSES, VOLUMES, Object
from .world import World

LATE: Final = "WaitForFirstConsumer"
_CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"


def class_of(claim: Mapping[str, Any]) -> str | None:
    name = (claim.get("spec") or {}).get("storageClassName")
    annotations = claim["metadata"].get("annotations") or {}
    return annotations.get(_CLASS_ANNOTATION) if name is None else name


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
    if found := world.get(VOLUMES, str(spec.get("volumeName") or "")):
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
    largest = volume_facts.largest_capacity(storage_class, world)
    if largest:
        wanted = mapping(mapping(spec.get("resources")).get("requests")).get("storage")
        yield _with_claim(
            f"request {largest} instead of {wanted} in PersistentVolumeClaim {name}, which is "
            "created again for that",
            volume, claim, {"resources": {"requests": {"storage": largest}}},
        )  # fmt: skip


def _with_claim(
    text: str, volume: str, claim: Object, changed: Mapping[str, Any], *objects: Object
) -> RuleRepair:
    """Return the repair by a claim like this one, with another spec."""
    own = claim["metadata"]
    name = f"{IMPOSSIBLE}{own['name']}-{len(changed)}{len(objects)}"
    made = {**claim, "spec": {**claim["spec"], **changed}}
    made["metadata"] = {"name": name, "namespace": own["namespace"], "uid": name}

    def use(pod: Object) -> None:
        for source in pod["spec"]["volumes"]:
            if source["name"] == volume:
                source.pop("ephemeral", None)
                source["persistentVolumeClaim"] = {"claimName": name}

    rank = Rank.RULE if objects else Rank.LESS
    return RuleRepair(text, use, rank=rank, objects=(*objects, made))
