"""What about a node keeps a volume of a PersistentVolumeClaim from it, with figures.

kube-scheduler has one reason for each of these, without the volume, the driver or a number.
Sources: the plugins nodevolumelimits (csi.go), volumezone (volume_zone.go) and volumebinding
(binder.go, hasEnoughCapacity) of Kubernetes 1.35 and 1.37.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import islice
from typing import Any, Final

from ..base.objects import mapping
from ..base.quantities import EPHEMERAL_STORAGE, quantity
from ..kube.label_selector import matches, requirements, written
from .claim_bindings import class_of, is_of_earlier
from .constraint import quantity_text
from .kinds import (
    ATTACHMENTS,
    CLAIMS,
    CSI_CAPACITIES,
    CSI_DRIVERS,
    CSI_NODES,
    HOSTNAME,
    PODS,
    STORAGE_CLASSES,
    VOLUMES,
    Object,
)
from .world import World

Fact = Callable[[str], str]
"""Returns what keeps a volume from a node; empty: not found in the world."""

_Attached = Mapping[tuple[str, str], Mapping[str, str]]
"""(node, driver) -> the handles of the volumes that are attached there, each with the name of its
VolumeAttachment if no Pod there uses it; empty: one does."""

_ZONES: Final = (
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
)
_NAMED: Final = 3
_FILES: Final = "Filesystem"
_NO_NODE: Final = ", which no node has"
_COMPARED: Final = ("In", "NotIn", "Exists", "DoesNotExist")


def of_bound(
    volume: str, claim: str, world: World, others: Mapping[str, str] | None = None
) -> Fact:
    """The facts about a PersistentVolume that exists.

    `others` has the claim of each other volume that its pod uses, by the name of the volume.
    """
    found = world.get(VOLUMES, volume)
    attached = cache(partial(_attached, world))

    @cache
    def fact(node: str) -> str:
        if found is None:
            return f"the PersistentVolume {volume} of {claim} does not exist"
        labels = _labels(world, node)
        driver = _driver(found)
        return (
            _together(_affinity(found, claim, labels, world), found, others or {}, world)
            or _zone(found, claim, labels)
            or _limit(driver, node, world, attached)
            or _lacking(driver, node, world)
        )

    return fact


def of_class(claim: Mapping[str, Any], storage_class: Mapping[str, Any], world: World) -> Fact:
    """The facts about a volume that a driver would provide when the Pod is placed."""
    name = storage_class["metadata"]["name"]
    driver = str(storage_class.get("provisioner") or "")
    attached = cache(partial(_attached, world))
    text = str(mapping(mapping(mapping(claim.get("spec")).get("resources")).get("requests")).get(
        "storage") or "")  # fmt: skip

    @cache
    def fact(node: str) -> str:
        labels = _labels(world, node)
        allowed = storage_class.get("allowedTopologies") or ()
        if allowed and not any(_in_topology(term, labels) for term in allowed):
            where = " or ".join(filter(None, map(_topology, allowed)))
            return f"StorageClass {name} provides volumes only where {where}"
        return (
            _capacity(name, driver, text, claim["metadata"]["name"], labels, world)
            or _limit(driver, node, world, attached)
            or _lacking(driver, node, world)
        )

    return fact


def of_free(claim: Mapping[str, Any], storage_class: str, world: World) -> Fact:
    """The facts about volumes that exist and that no driver provides."""

    @cache
    def existing() -> list[Object]:
        found = (
            volume
            for volume in world.all(VOLUMES)
            if (mapping(volume.get("spec")).get("storageClassName") or "") == storage_class
        )
        return list(islice(found, _NAMED + 1))

    @cache
    def fact(node: str) -> str:
        labels = _labels(world, node)
        named = [
            f"{volume['metadata']['name']} {unusable(volume, claim, labels)}"
            for volume in existing()[:_NAMED]
        ]
        if len(existing()) > _NAMED:
            named.append("the others")
        of = f"of StorageClass {storage_class}" if storage_class else "without a class"
        missing = f"no free PersistentVolume {of} can be used on the node for PersistentVolumeClaim"
        there = f"not {'; not '.join(named)}" if named else "none exists"
        return f"{missing} {claim['metadata']['name']}: {there}"

    return fact


def unusable(
    volume: Mapping[str, Any], claim: Mapping[str, Any], labels: Mapping[str, str] | None
) -> str:
    """Return why a volume cannot be bound to a claim for a node with these labels.

    None stands for those of any node: empty if that is not known.
    """
    own, spec, wanted = claim["metadata"], mapping(volume.get("spec")), mapping(claim.get("spec"))
    holder = mapping(spec.get("claimRef"))
    phase = mapping(volume.get("status")).get("phase")
    if is_of_earlier(volume, claim):
        after = ", Released" if phase == "Released" else ""
        return f"(of an earlier PersistentVolumeClaim of the same name{after})"
    if holder and (holder.get("namespace"), holder.get("name")) != (own["namespace"], own["name"]):
        after = " (Released)" if phase == "Released" else ""
        return f"(of PersistentVolumeClaim {holder.get('namespace')}/{holder.get('name')}{after})"
    asked = mapping(mapping(wanted.get("resources")).get("requests")).get("storage")
    size = mapping(spec.get("capacity")).get("storage")
    if _bytes(size) < _bytes(asked):
        return f"({size}, and the claim requests {asked})"
    modes = spec.get("accessModes") or ()
    if not set(wanted.get("accessModes") or ()) <= set(modes):
        return f"({', '.join(modes)}, and the claim demands {', '.join(wanted['accessModes'])})"
    if not matches(wanted.get("selector") or {}, mapping(volume["metadata"].get("labels"))):
        return f"(without the labels {written(wanted['selector'])} of the claim's selector)"
    if (spec.get("volumeMode") or _FILES) != (wanted.get("volumeMode") or _FILES):
        return f"(volumeMode {spec.get('volumeMode') or _FILES})"
    if labels is None:
        named, own_class = (spec.get("storageClassName") or ""), class_of(claim) or ""
        return f'(StorageClass "{named}", and the claim has "{own_class}")' * (named != own_class)
    terms = _terms(volume)
    compared = bool(terms) and not any(map(_is_not_compared, terms))
    if compared and not any(matches(term, labels) for term in terms):
        return f"(its nodeAffinity demands {_written_terms(terms)})"
    return "(it differs in something else)"


def fields_without_effect(pod: Mapping[str, Any], world: World) -> Iterator[str]:
    """Yield the volumes of a pod that demand a node by its name, which is not compared.

    Source: CheckNodeAffinity in component-helpers/storage/volume, 1.34 to 1.38.0-beta.0: it
    compares labels alone.
    """
    for source in pod["spec"].get("volumes") or ():
        name = mapping(source.get("persistentVolumeClaim")).get("claimName")
        claim = world.get(CLAIMS, str(name or ""), pod["metadata"]["namespace"])
        bound = str(mapping((claim or {}).get("spec")).get("volumeName") or "")
        terms = _terms(world.get(VOLUMES, bound) or {})
        if any(term.get("matchFields") and not term.get("matchExpressions") for term in terms):
            yield (
                f"PersistentVolume {bound} demands a node by matchFields, which kube-scheduler "
                f"does not compare for volumes; it compares matchExpressions, such as {HOSTNAME}"
            )


def gone_node(volume: Mapping[str, Any], world: World) -> str:
    """Return the nodes on which alone a volume can be used, none of which exists; empty: others."""
    demanded = any(one.key == HOSTNAME for term in _terms(volume) for one in requirements(term))
    missing = missing_labels(volume, world).get(HOSTNAME, ()) if demanded else ()
    return " or ".join(missing[:_NAMED])


def missing_labels(volume: Mapping[str, Any], world: World) -> Mapping[str, Sequence[str]]:
    """Return the labels with values that a volume demands of nodes and that no node has."""
    terms, zones = _terms(volume), mapping(volume["metadata"].get("labels"))
    demanded = {key: zones[key].split("__") for key in _ZONES if zones.get(key)}
    for one in requirements(terms[0]) if len(terms) == 1 else ():
        if one.operator == "In" and one.values:
            demanded[one.key] = list(one.values)
    for node in world.nodes() if demanded else ():
        labels = mapping(node["metadata"].get("labels"))
        demanded = {
            key: values for key, values in demanded.items() if labels.get(key) not in values
        }
    return demanded


def lacks_reports(storage_class: Mapping[str, Any], world: World) -> bool:
    """Whether a driver that reports capacities has reported none of a class for any node."""
    driver = mapping(
        (world.get(CSI_DRIVERS, str(storage_class.get("provisioner"))) or {}).get("spec")
    )
    return bool(driver.get("storageCapacity")) and not any(
        _is_for(report, mapping(node["metadata"].get("labels")))
        for report in _reports(storage_class, world)
        for node in world.nodes()
    )


def largest_capacity(storage_class: Mapping[str, Any], world: World, volumes: int) -> str:
    """Return the largest size that a driver has reported to be possible for each of some volumes.

    Empty: unknown.
    """
    most = max(_reports(storage_class, world), key=_largest, default={})
    whole, one = most.get("capacity"), most.get("maximumVolumeSize")
    if volumes == 1 or not whole:
        return str(one or whole or "")
    share = _bytes(whole) / volumes
    return str(one) if one and _bytes(one) <= share else quantity_text(EPHEMERAL_STORAGE, share)


def _reports(storage_class: Mapping[str, Any], world: World) -> list[Object]:
    name = storage_class["metadata"]["name"]
    return [one for one in world.all(CSI_CAPACITIES) if one.get("storageClassName") == name]


def _labels(world: World, node: str) -> Mapping[str, str]:
    return mapping((world.node(node) or {"metadata": {}})["metadata"].get("labels"))


def _affinity(
    volume: Mapping[str, Any], claim: str, labels: Mapping[str, str], world: World
) -> str:
    """The nodeAffinity of a volume that a node with these labels does not meet."""
    terms = _terms(volume)
    if not terms or any(map(_is_not_compared, terms)):
        return ""
    if any(matches(term, labels) for term in terms):
        return ""
    wanted = _written_terms(terms)
    some = any(
        matches(term, mapping(node["metadata"].get("labels")))
        for node in world.nodes()
        for term in terms
    )
    text = f"the volume {volume['metadata']['name']} of {claim} demands {wanted}"
    if not some:
        return f"{text}{_NO_NODE}"
    keys = [one.key for term in terms for one in requirements(term) if one.key in _ZONES]
    return f"{text}, and the node {_place(keys[0], labels)}" if keys else text


def _together(text: str, volume: Mapping[str, Any], others: Mapping[str, str], world: World) -> str:
    """Add to a sentence which other volume of the pod no node can use together with this one."""
    own = _single(volume)
    for name, claim in others.items() if text else ():
        other = world.get(VOLUMES, name) or {}
        wanted = _single(other)
        for key in own.keys() & wanted.keys():
            if own[key].isdisjoint(wanted[key]):
                demanded = f"the volume {name} of {claim} demands {_written_terms(_terms(other))}"
                joint = ", and" if text.endswith(_NO_NODE) else ";"
                both = f"{text.removesuffix(_NO_NODE)}{joint} {demanded}: no node meets both"
                return both + _bound_at_once(volume, world)
    return text


def _single(volume: Mapping[str, Any]) -> dict[str, set[str]]:
    """Return the values by key that the only term of a volume leaves."""
    terms = _terms(volume)
    if len(terms) != 1:
        return {}
    return {one.key: set(one.values) for one in requirements(terms[0]) if one.operator == "In"}


def _bound_at_once(volume: Mapping[str, Any], world: World) -> str:
    name = str(mapping(volume.get("spec")).get("storageClassName") or "")
    mode = (world.get(STORAGE_CLASSES, name) or {}).get("volumeBindingMode")
    if mode != "Immediate":
        return ""
    return (
        f"; StorageClass {name} provides volumes before a pod that uses them has a node "
        "(volumeBindingMode Immediate)"
    )


def _place(key: str, labels: Mapping[str, str]) -> str:
    return f"has {key}={labels[key]}" if key in labels else f"has no label {key}"


def _terms(volume: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    required = mapping(mapping(mapping(volume.get("spec")).get("nodeAffinity")).get("required"))
    return list(required.get("nodeSelectorTerms") or ())


def _written_terms(terms: Sequence[Mapping[str, Any]]) -> str:
    return " or ".join(" and ".join(map(str, requirements(term))) for term in terms)


def _is_not_compared(term: Mapping[str, Any]) -> bool:
    operators = (requirement.operator for requirement in requirements(term))
    return bool(term.get("matchFields")) or any(one not in _COMPARED for one in operators)


def _zone(volume: Mapping[str, Any], claim: str, labels: Mapping[str, str]) -> str:
    """The zone in the labels of a volume, if it is not the node's."""
    own = mapping(volume["metadata"].get("labels"))
    for key in _ZONES:
        if own.get(key) and labels.get(key) not in own[key].split("__"):
            there = f"in {labels[key]}" if labels.get(key) else "without this label"
            named = volume["metadata"]["name"]
            return f"the volume {named} of {claim} is in {own[key]} ({key}), the node {there}"
    return ""


def _driver(volume: Mapping[str, Any]) -> str:
    return str(mapping(mapping(volume.get("spec")).get("csi")).get("driver") or "")


def too_many(pod: Mapping[str, Any], world: World) -> Fact:
    """The facts about drivers that attach fewer volumes to a node than a pod has of them."""
    own: Counter[str] = Counter()
    for source in pod["spec"].get("volumes") or ():
        name = mapping(source.get("persistentVolumeClaim")).get("claimName")
        claim = world.get(CLAIMS, str(name or ""), pod["metadata"]["namespace"]) or {}
        storage_class = world.get(STORAGE_CLASSES, class_of(claim) or "") if claim else None
        if claim and (driver := driver_of(claim, storage_class or {}, world)):
            own[driver] += 1

    def fact(node: str) -> str:
        for driver, count in own.items():
            limit = _limits(driver, node, world)
            if limit is not None and count > limit:
                return (
                    f"the pod has {count} volumes of the CSI driver {driver}, which attaches at "
                    f"most {limit} to the node (spec.drivers of its CSINode)"
                )
        return ""

    return fact


def _limits(driver: str, node: str, world: World) -> int | None:
    """Return how many volumes a driver attaches to a node; None: it has set no limit."""
    for one in _drivers(node, world):
        count = mapping(one.get("allocatable")).get("count")
        if one.get("name") == driver and isinstance(count, int):
            return count
    return None


def _drivers(node: str, world: World) -> Sequence[Mapping[str, Any]]:
    return mapping((world.get(CSI_NODES, node) or {}).get("spec")).get("drivers") or ()


def _limit(driver: str, node: str, world: World, attached_by: Callable[[], _Attached]) -> str:
    """The number of volumes that a driver attaches to a node, if it is reached."""
    limit = _limits(driver, node, world)
    if not driver or limit is None:
        return ""
    attached = attached_by().get((node, driver), {})
    if len(attached) < limit:
        return ""
    text = f"{len(attached)} of {limit} volumes of the CSI driver {driver} are attached to the node"
    left = sorted(name for name in attached.values() if name)
    if not left:
        return text
    more = f" and {len(left) - 1} more" if len(left) > 1 else ""
    return f"{text}, although no pod there uses that of VolumeAttachment {left[0]}{more}"


def _lacking(driver: str, node: str, world: World) -> str:
    """That a driver does not run on a node, if it demands that for Pods with its volumes."""
    if not is_demanded(driver, world) or driver in {
        one.get("name") for one in _drivers(node, world)
    }:
        return ""
    return f"the CSI driver {driver} is not installed on the node: CSINode {node} does not list it"


def is_demanded(driver: str, world: World) -> bool:
    """Whether Pods with volumes of a driver can only run where it does (by default since 1.37)."""
    spec = mapping((world.get(CSI_DRIVERS, driver) or {}).get("spec"))
    return spec.get("preventPodSchedulingIfMissing") is True


def without_driver(driver: str, world: World) -> list[str]:
    """Return the nodes on which a driver does not run that demands it."""
    names = [node["metadata"]["name"] for node in world.nodes()]
    return [name for name in names if _lacking(driver, name, world)]


def left_attachments(driver: str, world: World) -> list[tuple[str, str]]:
    """Return (VolumeAttachment, node), one of each node that has reached its limit by them."""
    found = []
    for (node, of), attached in sorted(_attached(world).items()):
        left = sorted(name for name in attached.values() if name)
        limit = _limits(driver, node, world)
        if of != driver or not left or limit is None:
            continue
        if len(attached) - len(left) < limit <= len(attached):
            found.append((left[0], node))
    return found


def driver_of(claim: Mapping[str, Any], storage_class: Mapping[str, Any], world: World) -> str:
    """Return the CSI driver of a claim's volume, or that will provide it."""
    bound = world.get(VOLUMES, str(mapping(claim.get("spec")).get("volumeName") or ""))
    return _driver(bound) if bound else str(storage_class.get("provisioner") or "")


def _attached(world: World) -> _Attached:
    found: dict[tuple[str, str], dict[str, str]] = {}
    for (namespace, _), entry in world.objects[PODS].items():
        if not entry.node or b"laim" not in entry.content:
            continue
        pod: Object = entry.object()
        for source in pod["spec"].get("volumes") or ():
            name = mapping(source.get("persistentVolumeClaim")).get("claimName")
            if source.get("ephemeral"):
                name = f"{pod['metadata']['name']}-{source.get('name')}"
            claim = world.get(CLAIMS, str(name or ""), namespace)
            bound = mapping((claim or {}).get("spec")).get("volumeName")
            volume = world.get(VOLUMES, str(bound or "")) or {}
            csi = mapping(mapping(volume.get("spec")).get("csi"))
            if csi:
                key = (entry.node, str(csi.get("driver")))
                found.setdefault(key, {})[str(csi.get("volumeHandle"))] = ""
    # Those of Pods that are gone count until the volume is detached.
    for attachment in world.all(ATTACHMENTS):
        spec = mapping(attachment.get("spec"))
        bound = mapping(spec.get("source")).get("persistentVolumeName")
        csi = mapping(mapping((world.get(VOLUMES, str(bound or "")) or {}).get("spec")).get("csi"))
        if csi:
            key = (str(spec.get("nodeName")), str(spec.get("attacher")))
            handles = found.setdefault(key, {})
            handles.setdefault(str(csi.get("volumeHandle")), attachment["metadata"]["name"])
    return found


def _in_topology(term: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    expressions = term.get("matchLabelExpressions") or ()
    return all(labels.get(one.get("key")) in (one.get("values") or ()) for one in expressions)


def _topology(term: Mapping[str, Any]) -> str:
    expressions = term.get("matchLabelExpressions") or ()
    return " and ".join(
        f"{one.get('key')} is {' or '.join(map(str, one.get('values') or ()))}"
        for one in expressions
    )


def _capacity(
    storage_class: str,
    driver: str,
    wanted: str,
    claim: str,
    labels: Mapping[str, str],
    world: World,
) -> str:
    """The capacity that a driver reports for a node, if it is less than a claim wants."""
    reports = mapping((world.get(CSI_DRIVERS, driver) or {}).get("spec")).get("storageCapacity")
    if not reports or not wanted:
        return ""
    of_class = [
        capacity
        for capacity in world.all(CSI_CAPACITIES)
        if capacity.get("storageClassName") == storage_class
    ]
    there = [capacity for capacity in of_class if _is_for(capacity, labels)]
    if not there:
        reported = {written(one.get("nodeTopology")) for one in of_class} - {""}
        whole = "" if of_class else ", nor for any other node"
        text = (
            f"{driver} reports no capacity of StorageClass {storage_class} for the node{whole} "
            "(CSIStorageCapacity)"
        )
        if not reported:
            return text
        more = f" and {len(reported) - _NAMED} others" if len(reported) > _NAMED else ""
        return f"{text}; it reports some for {' or '.join(sorted(reported)[:_NAMED])}{more}"
    free = [(_largest(capacity), capacity) for capacity in there]
    size, most = max(free, key=lambda one: one[0])
    if size >= _bytes(wanted):
        return ""
    one = most.get("maximumVolumeSize")
    text = f"at most {one} in one volume" if one else f"{most.get('capacity') or 0} free"
    return (
        f"{driver} has {text} of StorageClass {storage_class} for the node, and "
        f"PersistentVolumeClaim {claim} wants {wanted}"
    )


def _is_for(capacity: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    topology = capacity.get("nodeTopology")
    return topology is not None and matches(topology, labels)


def _largest(capacity: Mapping[str, Any]) -> float:
    """The largest volume that a CSIStorageCapacity allows, bytes."""
    return _bytes(capacity.get("maximumVolumeSize") or capacity.get("capacity") or "0")


def _bytes(text: Any) -> float:
    """Read a quantity; 0 if it is none, which no API server accepts."""
    try:
        return quantity(str(text))
    except ValueError:
        return 0.0
