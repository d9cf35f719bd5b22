"""The kinds that kube-scheduler reads, and which of their fields it reads.

Only listed fields enter a world. Environment variables, arguments, commands, probes, Secrets and
ConfigMaps are not listed, so they are never kept, sent or written to a file, but for the status of
cluster-autoscaler.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from ..base.objects import mapping
from ..kube import resource as kinds
from ..kube.resource import Resource, cluster_scoped, namespaced
from ..kube.store import MIRROR_ANNOTATION
from . import autoscaling_kinds as autoscaling
from . import other_versions
from .other_schedulers import GROUP_ANNOTATIONS
from .other_versions import OtherVersion

Object = dict[str, Any]

NODES: Final = kinds.NODES
PODS: Final = kinds.PODS
NAMESPACES: Final = kinds.NAMESPACES
SERVICES: Final = kinds.SERVICES
DAEMON_SETS: Final = kinds.DAEMON_SETS
CONTROLLERS: Final = namespaced("v1", "ReplicationController")
REPLICA_SETS: Final = namespaced("apps/v1", "ReplicaSet")
STATEFUL_SETS: Final = namespaced("apps/v1", "StatefulSet")
BUDGETS: Final = kinds.DISRUPTION_BUDGETS
VOLUMES: Final = cluster_scoped("v1", "PersistentVolume")
CLAIMS: Final = namespaced("v1", "PersistentVolumeClaim")
_STORAGE: Final = "storage.k8s.io/v1"
STORAGE_CLASSES: Final = cluster_scoped(_STORAGE, "StorageClass", "storageclasses")
CSI_NODES: Final = cluster_scoped(_STORAGE, "CSINode")
CSI_DRIVERS: Final = cluster_scoped(_STORAGE, "CSIDriver")
CSI_CAPACITIES: Final = Resource(
    "storage.k8s.io", "v1", "csistoragecapacities", "CSIStorageCapacity", namespaced=True
)
ATTACHMENTS: Final = cluster_scoped(_STORAGE, "VolumeAttachment")
_DRA: Final = "resource.k8s.io/v1"
RESOURCE_CLAIMS: Final = namespaced(_DRA, "ResourceClaim")
CLAIM_TEMPLATES: Final = namespaced(_DRA, "ResourceClaimTemplate")
RESOURCE_SLICES: Final = cluster_scoped(_DRA, "ResourceSlice")
DEVICE_CLASSES: Final = cluster_scoped(_DRA, "DeviceClass", "deviceclasses")
DEVICE_TAINT_RULES: Final = cluster_scoped(_DRA, "DeviceTaintRule")
PRIORITY_CLASSES: Final = cluster_scoped("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses")
QUOTAS: Final = namespaced("v1", "ResourceQuota")
WORKLOADS: Final = namespaced("scheduling.k8s.io/v1alpha1", "Workload")
"""The form of 1.35; kube-scheduler reads PodGroups instead from 1.36 on."""
POD_GROUPS: Final = namespaced("scheduling.k8s.io/v1beta1", "PodGroup")
COMPOSITE_POD_GROUPS: Final = namespaced("scheduling.k8s.io/v1alpha3", "CompositePodGroup")
LIMIT_RANGES: Final = namespaced("v1", "LimitRange")
RUNTIME_CLASSES: Final = cluster_scoped("node.k8s.io/v1", "RuntimeClass", "runtimeclasses")

HOSTNAME: Final = "kubernetes.io/hostname"
TEMPLATE_HASH: Final = "pod-template-hash"
"""The label by which the Pods of a Deployment differ between versions of its template."""
IMPOSSIBLE: Final = "simulation_"
"""The prefix of names that no object of a cluster can have: the API server refuses underscores."""

REPLICA_FAILURE: Final = "ReplicaFailure"
"""The condition of a workload whose pods the API server refuses."""

_METADATA: Final = frozenset(
    (
        "name",
        "namespace",
        "uid",
        "labels",
        "creationTimestamp",
        "deletionTimestamp",
        "ownerReferences",
    )
)
NAMES_ITS_NODE: Final[list[Object]] = [{"fieldsV1": {"f:spec": {"f:nodeName": {}}}}]
"""What is kept of the managedFields of a pod that was created with spec.nodeName."""
_ANNOTATIONS: Final = frozenset(
    {
        MIRROR_ANNOTATION,  # static pods are not preempted
        "pv.kubernetes.io/bind-completed",
        "pv.kubernetes.io/bound-by-controller",
        "resource.kubernetes.io/extended-resource-claim",  # its Pod may take its devices again
        "storageclass.kubernetes.io/is-default-class",
        "volume.beta.kubernetes.io/storage-class",
        "volume.kubernetes.io/selected-node",
        "storage.alpha.kubernetes.io/migrated-plugins",
        autoscaling.OWNER_KIND,
        autoscaling.OWNER_NAME,
        autoscaling.MACHINE,
        *GROUP_ANNOTATIONS,
    }
)
"""Annotations that kube-scheduler, the played controllers and node groups read."""

_POD_SPEC: Final = frozenset(
    (
        "affinity",
        "hostNetwork",
        "hostUsers",  # a feature that a node has to declare
        "nodeName",
        "nodeSelector",
        "os",
        "overhead",
        "preemptionPolicy",
        "priority",
        "priorityClassName",
        "resourceClaims",
        "resources",
        "restartPolicy",
        "runtimeClassName",  # it explains overhead and parts of the nodeSelector
        "schedulerName",
        "schedulingGates",
        "schedulingGroup",  # groups of pods, from 1.36
        "terminationGracePeriodSeconds",
        "tolerations",
        "topologySpreadConstraints",
        "workloadRef",  # groups of pods, 1.35
    )
)
_MOST_FINALIZERS: Final = 10
_POD_STATUS: Final = frozenset(
    (
        "allocatedResources",
        "nominatedNodeName",
        "phase",
        "nodeAllocatableResourceClaimStatuses",
        "extendedResourceClaimStatus",
        "resourceClaimStatuses",
        "resources",
        "startTime",
    )
)
RESIZES: Final = frozenset(("PodResizePending", "PodResizeInProgress"))
"""The types of conditions of a Pod that is resized."""
_POD_CONDITIONS: Final = RESIZES | {
    "DisruptionTarget",  # the victim of a preemption keeps the other Pod from preempting more
    "PodScheduled",
}
_CONDITIONS_ON_NODE: Final = _POD_CONDITIONS - {"PodScheduled"}  # which is why it has a node
_CONTAINER: Final = frozenset(("image", "name", "resources", "restartPolicy", "restartPolicyRules"))
_PORT: Final = ("hostPort", "hostIP", "protocol", "containerPort")
IMAGE_VOLUME: Final = "image"
"""The source of volumes that ImageLocality scores from 1.36 on; it restricts nothing."""
_VOLUMES: Final = frozenset(
    (
        "awsElasticBlockStore",
        "azureDisk",
        "azureFile",
        "cinder",
        "csi",
        "ephemeral",
        "gcePersistentDisk",
        IMAGE_VOLUME,
        "iscsi",
        "persistentVolumeClaim",
        "portworxVolume",
        "rbd",
        "vsphereVolume",
    )
)
"""Sources of volumes that matter for where a pod runs; also those that CSI drivers have replaced,
because they count for the limits of the drivers."""
_VOLUME_SPEC: Final = (
    "accessModes",
    "capacity",
    "claimRef",
    "hostPath",
    "local",
    "nodeAffinity",
    "persistentVolumeReclaimPolicy",
    "storageClassName",
    "volumeMode",
    "awsElasticBlockStore",
    "azureDisk",
    "azureFile",
    "cinder",
    "gcePersistentDisk",
    "portworxVolume",
    "volumeAttributesClassName",
    "vsphereVolume",
)


def pod_name(pod: Mapping[str, Any]) -> str:
    """Return namespace/name."""
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def names_its_node(metadata: Mapping[str, Any]) -> bool:
    """Return whether the creator of a pod set spec.nodeName, by its managedFields.

    A binding sets it as well, and has no entry there.
    """
    given = metadata.get("managedFields")
    return bool(given) and any(
        "f:nodeName" in mapping(mapping(entry.get("fieldsV1")).get("f:spec"))
        for entry in _items(given)
    )


def new_object(resource: Resource, name: str, namespace: str = "", **metadata: Any) -> Object:
    """Return an object without content."""
    place = {"namespace": namespace} if namespace else {}
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": name, **place, **metadata},
    }


def _kept(source: Any, fields: Container[str]) -> Object:
    # This runs ten times for each pod of a world.
    if not source:
        return {}
    return {
        field: value
        for field, value in (source if isinstance(source, dict) else mapping(source)).items()
        if field in fields and value is not None
    }


def _items(source: Any) -> list[Mapping[str, Any]]:
    # Checking for dict first takes less than half the time of Mapping alone.
    return [item for item in source if isinstance(item, (dict, Mapping))] if source else []


def _conditions(
    status: Mapping[str, Any], has_type: Callable[[str], bool], fields: Container[str]
) -> Object:
    """Return these fields of the conditions with such a type, as a status; empty without one."""
    conditions = [
        _kept(condition, fields)
        for condition in _items(status.get("conditions"))
        if has_type(str(condition.get("type", "")))
    ]
    return {"conditions": conditions} if conditions else {}


def _container(container: Mapping[str, Any], is_on_host: bool = False) -> Object:
    """Return what scheduling reads of a container; on the host's network, all ports are the host's.

    The API server completes `hostPort` there; `api_defaults` does for objects of files.
    """
    kept = _kept(container, _CONTAINER)
    if given := container.get("ports"):
        ports = [_kept(port, _PORT) for port in _items(given) if is_on_host or port.get("hostPort")]
        if ports:
            kept["ports"] = ports
    if given := container.get("volumeMounts"):
        # Options of a mount are a feature that a node has to declare; its path decides nothing.
        mounts = [
            _kept(mount, ("name", "bindMountOptions"))
            for mount in _items(given)
            if mount.get("bindMountOptions")
        ]
        if mounts:
            kept["volumeMounts"] = mounts
    return kept


def _volume(volume: Mapping[str, Any]) -> Object | None:
    for source, content in volume.items():
        if source not in _VOLUMES or content is None:
            continue
        if source == "csi":  # attributes and secrets are for the driver
            content = _kept(content, ("driver",))
        elif source == IMAGE_VOLUME:
            content = _kept(content, ("reference",))
        return {"name": volume.get("name", ""), source: content}
    return None


def _pod(pod: Mapping[str, Any]) -> Object:
    source = pod.get("spec") or {}
    spec = _kept(source, _POD_SPEC)
    is_on_host = bool(source.get("hostNetwork"))
    for field in ("initContainers", "containers"):
        if containers := [_container(item, is_on_host) for item in _items(source.get(field))]:
            spec[field] = containers
    if given := source.get("ephemeralContainers"):
        debugging = [_kept(_container(item), ("name", "volumeMounts")) for item in _items(given)]
        if mounting := [each for each in debugging if "volumeMounts" in each]:
            spec["ephemeralContainers"] = mounting
    volumes = [_volume(volume) for volume in _items(source.get("volumes"))]
    if kept := [volume for volume in volumes if volume is not None]:
        spec["volumes"] = kept
    reported = pod.get("status") or {}
    status = _kept(reported, _POD_STATUS)
    # A pod that is resized counts with what its containers have got.
    for field in ("initContainerStatuses", "containerStatuses"):
        resized = [
            _kept(item, ("name", "resources", "allocatedResources"))
            for item in _items(reported.get(field))
            if item.get("resources") or item.get("allocatedResources")
        ]
        if resized:
            status[field] = [
                {"ready": True, "image": "", "imageID": "", **entry} for entry in resized
            ]
    fields = ("type", "status", "reason", "message", "lastTransitionTime")
    known = _CONDITIONS_ON_NODE if source.get("nodeName") else _POD_CONDITIONS
    status |= _conditions(reported, known.__contains__, fields)
    return {"spec": spec, "status": status}


def _node(node: Mapping[str, Any]) -> Object:
    reported = node.get("status") or {}
    status = _kept(reported, ("allocatable", "capacity", "declaredFeatures", "features", "images"))
    status |= _conditions(reported, "Ready".__eq__, ("type", "status", "message"))
    for condition in status.get("conditions", ()):
        if condition.get("status") == "True":
            condition.pop("message", None)
    spec = _kept(node.get("spec"), ("podPreemptionPolicy", "providerID", "taints", "unschedulable"))
    return {"spec": spec, "status": status}


def _replicated(obj: Mapping[str, Any]) -> Object:
    """Add how many pods exist, and why not more, to what kube-scheduler reads."""
    reported = obj.get("status") or {}
    fields = ("type", "status", "reason", "message")
    failed = _conditions(reported, REPLICA_FAILURE.__eq__, fields)
    status = _kept(reported, ("replicas",)) | failed
    return {"spec": _kept(obj.get("spec"), ("selector", "replicas")), "status": status}


def _daemon_set(obj: Mapping[str, Any]) -> Object:
    template = (obj.get("spec") or {}).get("template") or {}
    metadata = _kept(template.get("metadata"), ("labels",))
    return {"spec": {"template": {"metadata": metadata, "spec": _pod(template)["spec"]}}}


def _parts(**parts: Container[str]) -> Callable[[Mapping[str, Any]], Object]:
    def keep(obj: Mapping[str, Any]) -> Object:
        return {part: _kept(obj.get(part), fields) for part, fields in parts.items()}

    return keep


def _whole(*fields: str) -> Callable[[Mapping[str, Any]], Object]:
    return lambda obj: _kept(obj, fields)


def _persistent_volume(volume: Mapping[str, Any]) -> Object:
    spec = _kept(volume.get("spec"), _VOLUME_SPEC)
    if csi := (volume.get("spec") or {}).get("csi"):
        spec["csi"] = _kept(csi, ("driver", "volumeHandle"))
    return {"spec": spec, "status": _kept(volume.get("status"), ("phase",))}


def _claim_status(status: Mapping[str, Any]) -> Object:
    """Return the status of a ResourceClaim, of its devices without the data of drivers."""
    kept = _kept(status, ("allocation", "reservedFor"))
    fields = ("driver", "pool", "device", "shareID", "conditions")
    devices = [_kept(device, fields) for device in _items(status.get("devices"))]
    if used := [device for device in devices if device.get("conditions")]:
        kept["devices"] = used
    return kept


@dataclass(frozen=True, slots=True)
class WorldKind:
    resource: Resource
    # the fields beside metadata that matter, of an object
    keep: Callable[[Mapping[str, Any]], Object]
    # whether kube-scheduler watches it; otherwise an imitated controller or a command reads it
    read_by_scheduler: bool = True
    # the versions besides that of the resource, newest first
    others: tuple[OtherVersion, ...] = ()
    makes_nodes: bool = False  # whether it is about nodes that do not exist yet
    only: tuple[str, str] | None = None  # namespace and name of the only object that matters
    of_new_pods: bool = False  # whether only decisions about pods that do not exist yet need it

    def versions(self) -> Iterator[Resource]:
        """Yield the kind in each of its versions, the newest first."""
        yield self.resource
        for other in self.others:
            yield self._in(other)

    def _in(self, other: OtherVersion) -> Resource:
        return replace(self.resource, version=other.version)

    def newest(self, obj: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return an object of any version in that of the resource."""
        for other in self.others:
            if obj.get("apiVersion") == self._in(other).api_version:
                spec = other.newer(mapping(obj.get("spec")))
                return {**obj, "apiVersion": self.resource.api_version, "spec": spec}
        return obj

    def in_version(self, version: str, obj: Object) -> Object:
        """Return an object of the world in a version that the kind has."""
        for other in self.others:
            if other.version == version:
                api_version = self._in(other).api_version
                return {**obj, "apiVersion": api_version, "spec": other.older(obj["spec"])}
        return obj


def _of_new_nodes(
    resource: Resource, keep: Callable[[Mapping[str, Any]], Object], **fields: Any
) -> WorldKind:
    return WorldKind(resource, keep, read_by_scheduler=False, makes_nodes=True, **fields)


_OLD_MACHINES: Final = (OtherVersion("v1beta1"),)

KINDS: Final = {
    kind.resource: kind
    for kind in (
        WorldKind(NAMESPACES, _parts()),
        WorldKind(NODES, _node),
        WorldKind(PODS, _pod),
        WorldKind(SERVICES, _parts(spec=("selector",))),
        WorldKind(CONTROLLERS, _replicated),
        WorldKind(REPLICA_SETS, _replicated),
        WorldKind(STATEFUL_SETS, _parts(spec=("selector",))),
        WorldKind(
            BUDGETS,
            _parts(
                spec=("selector", "minAvailable", "maxUnavailable", "unhealthyPodEvictionPolicy"),
                status=("disruptionsAllowed", "disruptedPods", "observedGeneration"),
            ),
        ),
        WorldKind(VOLUMES, _persistent_volume),
        WorldKind(
            CLAIMS,
            _parts(
                spec=(
                    "accessModes",
                    "resources",
                    "selector",
                    "storageClassName",
                    "volumeMode",
                    "volumeName",
                    "dataSource",
                    "dataSourceRef",
                    "volumeAttributesClassName",
                ),
                status=("phase", "capacity", "accessModes"),
            ),
        ),
        WorldKind(
            STORAGE_CLASSES,
            _whole("provisioner", "volumeBindingMode", "allowedTopologies", "reclaimPolicy"),
        ),
        WorldKind(CSI_NODES, _parts(spec=("drivers",))),
        WorldKind(
            CSI_DRIVERS,
            _parts(
                spec=(
                    "attachRequired",
                    "preventPodSchedulingIfMissing",
                    "storageCapacity",
                    "volumeLifecycleModes",
                )
            ),
        ),
        WorldKind(
            CSI_CAPACITIES,
            _whole("capacity", "maximumVolumeSize", "nodeTopology", "storageClassName"),
        ),
        WorldKind(
            ATTACHMENTS,
            _parts(spec=("attacher", "nodeName", "source"), status=("attached",)),
        ),
        WorldKind(
            RESOURCE_CLAIMS,
            lambda obj: {
                "spec": obj.get("spec") or {},
                "status": _claim_status(mapping(obj.get("status"))),
            },
        ),
        WorldKind(CLAIM_TEMPLATES, _whole("spec"), read_by_scheduler=False),
        WorldKind(RESOURCE_SLICES, _whole("spec")),
        WorldKind(DEVICE_CLASSES, _whole("spec")),
        WorldKind(
            DEVICE_TAINT_RULES,
            _parts(spec=("deviceSelector", "taint")),
            others=other_versions.DEVICE_TAINT_RULES,
        ),
        WorldKind(WORKLOADS, _parts(spec=("podGroups",))),
        WorldKind(
            POD_GROUPS,
            _parts(
                spec=(
                    "disruptionMode",
                    "parentCompositePodGroupName",
                    "preemptionPolicy",
                    "priority",
                    "resourceClaims",
                    "schedulingConstraints",
                    "schedulingPolicy",
                    "workloadRef",
                ),
                status=("conditions", "resourceClaimStatuses"),
            ),
            others=other_versions.POD_GROUPS,
        ),
        WorldKind(
            COMPOSITE_POD_GROUPS,
            _parts(
                spec=(
                    "disruptionMode",
                    "parentCompositePodGroupName",
                    "preemptionPolicy",
                    "priority",
                    "schedulingConstraints",
                    "schedulingPolicy",
                    "workloadRef",
                ),
                status=("conditions",),
            ),
        ),
        WorldKind(
            PRIORITY_CLASSES,
            _whole("value", "globalDefault", "preemptionPolicy"),
            read_by_scheduler=False,
        ),
        WorldKind(QUOTAS, _whole("spec", "status"), read_by_scheduler=False),
        _of_new_nodes(autoscaling.NODE_POOLS, autoscaling.node_pool),
        _of_new_nodes(autoscaling.NODE_CLAIMS, autoscaling.node_claim),
        _of_new_nodes(autoscaling.MACHINE_DEPLOYMENTS, autoscaling.machines, others=_OLD_MACHINES),
        _of_new_nodes(autoscaling.MACHINE_SETS, autoscaling.machines, others=_OLD_MACHINES),
        _of_new_nodes(autoscaling.OPENSHIFT_MACHINE_SETS, autoscaling.machines),
        _of_new_nodes(
            autoscaling.AUTOSCALER_STATUS,
            autoscaling.autoscaler_status,
            only=autoscaling.STATUS_KEY,
        ),
        _of_new_nodes(DAEMON_SETS, _daemon_set),
        WorldKind(LIMIT_RANGES, _whole("spec"), read_by_scheduler=False, of_new_pods=True),
        WorldKind(
            RUNTIME_CLASSES,
            _whole("overhead", "scheduling"),
            read_by_scheduler=False,
            of_new_pods=True,
        ),
    )
}
"""All kinds of a world, in the order in which they are read."""

BY_KIND: Final = {
    (served.api_version, served.kind): kind for kind in KINDS.values() for served in kind.versions()
}
"""apiVersion, in any version that the kind has, and kind -> what the world has of it."""


def strip(kind: WorldKind, obj: Mapping[str, Any], annotations: bool = False) -> Object:
    """Return the part of an object that scheduling reads.

    With `annotations`, all of them are kept, e.g. the measured load of Nodes for load policies.
    """
    obj = kind.newest(obj)
    metadata = obj.get("metadata") or {}
    kept = _kept(metadata, _METADATA)
    values = metadata.get("annotations")
    if values and isinstance(values, (dict, Mapping)):
        chosen = {key: value for key, value in values.items() if annotations or key in _ANNOTATIONS}
        if chosen:
            kept["annotations"] = chosen
    if kind.resource is PODS and "deletionTimestamp" in kept:  # `why` describes its end
        kept |= _kept(metadata, ("deletionGracePeriodSeconds",))
        if finalizers := [str(name) for name in metadata.get("finalizers") or ()]:
            kept["finalizers"] = finalizers[:_MOST_FINALIZERS]
    if kind.resource is PODS and "ownerReferences" in kept:
        kept["ownerReferences"] = [
            _kept(owner, ("apiVersion", "kind", "name", "uid", "controller"))
            for owner in _items(kept["ownerReferences"])
        ]
    if kind.resource is PODS and names_its_node(metadata):
        kept["managedFields"] = NAMES_ITS_NODE
    resource = kind.resource
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": kept,
        **kind.keep(obj),
    }
