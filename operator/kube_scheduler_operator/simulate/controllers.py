"""Imitates the controllers of volumes and resource claims, for which kube-scheduler waits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from ..kube.resource import Resource
from .device_claims import claims_of, is_deleted_with, without_users
from .kinds import (
    CLAIM_TEMPLATES,
    CLAIMS,
    CSI_NODES,
    HOSTNAME,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    STORAGE_CLASSES,
    VOLUMES,
    Object,
    new_object,
)
from .store import WorldStore

SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"


class Controllers:
    """The persistent volume controller, a provisioner, and the controller of resource claims."""

    def __init__(self, store: WorldStore) -> None:
        self._store = store

    def claim_changed(self, claim: Object) -> None:
        """Provision the volume of a claim for which kube-scheduler has selected a node."""
        node = (claim["metadata"].get("annotations") or {}).get(SELECTED_NODE)
        if not node or claim["spec"].get("volumeName"):
            return
        spec = claim["spec"]
        storage_class = self._store.get(STORAGE_CLASSES, ("", spec.get("storageClassName") or ""))
        provisioner = (storage_class or {}).get("provisioner")
        if provisioner in (None, "", NO_PROVISIONER):
            return
        uid, since = claim["metadata"]["uid"], claim["metadata"].get("creationTimestamp")
        volume = new_object(VOLUMES, f"pvc-{uid}", uid=f"pv-{uid}", creationTimestamp=since)
        volume["spec"] = {
            "accessModes": spec.get("accessModes") or ["ReadWriteOnce"],
            "capacity": (spec.get("resources") or {}).get("requests") or {},
            "storageClassName": spec.get("storageClassName"),
            "csi": {"driver": provisioner, "volumeHandle": uid},
            "nodeAffinity": {"required": self._reach(str(provisioner), str(node))},
        }
        self._bind(volume, claim)

    def volume_changed(self, volume: Object) -> None:
        """Complete the binding of a volume that kube-scheduler has assigned to a claim."""
        ref = volume["spec"].get("claimRef") or {}
        claim = self._store.get(CLAIMS, (ref.get("namespace", ""), ref.get("name", "")))
        if claim is not None and not claim["spec"].get("volumeName"):
            self._bind(volume, claim)

    def pod_deleted(self, pod: Object) -> None:
        namespace = pod["metadata"]["namespace"]
        for name in claims_of(pod):
            claim = self._store.get(RESOURCE_CLAIMS, (namespace, name))
            if claim is None:
                continue
            if is_deleted_with(claim, pod):
                self._store.delete(RESOURCE_CLAIMS, (namespace, name))
            elif (freed := without_users(claim, [pod])) is not None:
                self._store.put(RESOURCE_CLAIMS, freed)

    def prepare(self, pod: Object) -> None:
        """Create the claims that a pod's templates describe, and record them in its status."""
        named = {item.get("name") for item in (pod["status"].get("resourceClaimStatuses") or ())}
        for reference in pod["spec"].get("resourceClaims") or ():
            template = reference.get("resourceClaimTemplateName")
            if not template or reference["name"] in named:
                continue
            namespace = pod["metadata"]["namespace"]
            claim_template = self._store.get(CLAIM_TEMPLATES, (namespace, template))
            if claim_template is None:
                continue
            claim = _claim_of(pod, RESOURCE_CLAIMS, reference["name"], claim_template["spec"])
            self._store.put(RESOURCE_CLAIMS, claim)
            statuses = pod["status"].setdefault("resourceClaimStatuses", [])
            name = claim["metadata"]["name"]
            statuses.append({"name": reference["name"], "resourceClaimName": name})
        for volume in pod["spec"].get("volumes") or ():
            template_of = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
            key = (pod["metadata"]["namespace"], f"{pod['metadata']['name']}-{volume['name']}")
            if template_of and self._store.get(CLAIMS, key) is None:
                claim = _claim_of(pod, CLAIMS, volume["name"], template_of)
                self._store.put(CLAIMS, {**claim, "status": {"phase": "Pending"}})

    def _reach(self, driver: str, node: str) -> Object:
        """Return the nodes from which a volume that is provisioned for this node can be used."""
        keys: Iterable[str] = ()
        csi_node = self._store.get(CSI_NODES, ("", node))
        for entry in ((csi_node or {}).get("spec") or {}).get("drivers") or ():
            if entry.get("name") == driver:
                keys = entry.get("topologyKeys") or ()
        labels = ((self._store.get(NODES, ("", node)) or {}).get("metadata") or {}).get("labels")
        values = labels or {}
        expressions = [
            {"key": key, "operator": "In", "values": [values[key]]} for key in keys if key in values
        ]
        if not expressions:  # reachable from everywhere
            expressions = [{"key": HOSTNAME, "operator": "Exists"}]
        return {"nodeSelectorTerms": [{"matchExpressions": expressions}]}

    def _bind(self, volume: Object, claim: Object) -> None:
        metadata = claim["metadata"]
        volume["spec"]["claimRef"] = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "uid": metadata["uid"],
        }
        volume["status"] = {"phase": "Bound"}
        self._store.put(VOLUMES, volume)
        claim["spec"]["volumeName"] = volume["metadata"]["name"]
        metadata.setdefault("annotations", {})[BIND_COMPLETED] = "yes"
        claim["status"] = {"phase": "Bound", "capacity": volume["spec"].get("capacity") or {}}
        self._store.put(CLAIMS, claim)


def _claim_of(pod: Object, resource: Resource, name: str, template: Mapping[str, Any]) -> Object:
    """Return a claim of a pod, which is deleted with it."""
    own = pod["metadata"]
    claim = new_object(
        resource,
        f"{own['name']}-{name}",
        own["namespace"],
        uid=f"claim-{own['uid']}-{name}",
        creationTimestamp=own.get("creationTimestamp"),
        ownerReferences=[PODS.owner(own["name"], own["uid"])],
    )
    return {**claim, "spec": template.get("spec") or {}}
