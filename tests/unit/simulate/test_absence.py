"""What files lack, or a user may not list, is not reported as absent from the cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kube_scheduler_operator.simulate.absence import lacking
from kube_scheduler_operator.simulate.constraints import constraints_of
from kube_scheduler_operator.simulate.kinds import CLAIMS
from kube_scheduler_operator.simulate.read_files import read_files
from kube_scheduler_operator.simulate.world import World

NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}}
CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "other", "namespace": "n"},
    "spec": {},
}
USES = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}
DEVICE = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one"}]}
PLURALS = "persistentvolumeclaims,persistentvolumes,storageclasses,csinodes,csidrivers"
DEVICES = "resourceclaims,resourceclaimtemplates,resourceslices,deviceclasses"


def pod(spec: dict[str, Any], owner: str = "") -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": "p", "namespace": "n"}
    if owner:
        reference = {"kind": owner, "name": "r", "uid": "1", "controller": True}
        metadata["ownerReferences"] = [reference | {"apiVersion": "apps/v1"}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def read(folder: Path, *objects: dict[str, Any]) -> World:
    path = folder / "cluster.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [NODE, *objects]}))
    return read_files([path]).world


@pytest.mark.parametrize(
    ("spec", "owner", "note"),
    [
        ({}, "", ""),
        (USES, "", f"no PersistentVolumeClaim, to which Pods refer: kubectl get {PLURALS},"),
        (DEVICE, "", f"no ResourceClaim, to which Pods refer: kubectl get {DEVICES} -A"),
        ({}, "ReplicaSet", "no ReplicaSet, to which Pods refer: kubectl get replicasets -A"),
        (USES | DEVICE, "ReplicaSet", "no PersistentVolumeClaim, ResourceClaim or ReplicaSet, to"),
    ],
)  # fmt: skip
def test_a_note_has_the_command_that_prints_what_files_lack(
    tmp_path: Path, spec: dict[str, Any], owner: str, note: str
) -> None:
    notes = list(lacking(read(tmp_path, pod(spec, owner))))
    assert len(notes) == bool(note)
    assert all(note in each for each in notes)


def volume(world: World) -> tuple[str, str]:
    (found,) = (each for each in constraints_of(pod(USES), world) if each.family == "volumes")
    return found.text, found.fix


def test_a_claim_is_absent_only_if_claims_were_read(tmp_path: Path) -> None:
    text, fix = volume(read(tmp_path))
    assert text == (
        "PersistentVolumeClaim data is not known: the files have no PersistentVolumeClaim"
    )
    assert fix.startswith("see whether it exists (kubectl get persistentvolumeclaims -A), or ")
    assert volume(read(tmp_path, CLAIM))[0] == "PersistentVolumeClaim data does not exist"


def test_a_claim_that_may_not_be_listed_is_not_known() -> None:
    world = World(unread={CLAIMS: "you have no permission to list persistentvolumeclaims"})
    assert volume(world)[0] == (
        "PersistentVolumeClaim data is not known: you have no permission to list "
        "persistentvolumeclaims"
    )
