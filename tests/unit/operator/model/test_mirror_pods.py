"""Labels and annotations of mirror Pods that other clients wrote are not the manifest's."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from kube_scheduler_operator.operator.model.operand_pods import foreign_metadata, of_manifest

MIRROR = "kubernetes.io/config.mirror"
HASH = "kube-scheduler-operator.dev/content-hash"


def entry(manager: str, **fields: dict[str, str]) -> dict[str, Any]:
    """An entry of managedFields, as the API server writes it."""
    metadata: dict[str, Any] = {
        f"f:{group}": {".": {}, **{f"f:{key}": {} for key in keys}}
        for group, keys in fields.items()
    }
    return {"manager": manager, "operation": "Update", "fieldsV1": {"f:metadata": metadata}}


def pod(*entries: dict[str, Any]) -> dict[str, Any]:
    metadata: dict[str, Any] = {
        "name": "kube-scheduler-a",
        "labels": {"component": "kube-scheduler", "team": "x"},
        "annotations": {MIRROR: "1", "note": "y"},
    }
    if entries:
        metadata["managedFields"] = list(entries)
    return {"metadata": metadata, "spec": {}}


OWN = entry("kubelet", labels={"component": ""}, annotations={MIRROR: ""})
OTHER = entry("kubectl-label", labels={"team": ""}, annotations={"note": ""})


def test_what_other_clients_wrote_is_removed() -> None:
    original = pod(OWN, OTHER)
    before = deepcopy(original)
    assert list(foreign_metadata(original)) == ["annotations.note", "labels.team"]
    assert of_manifest(original)["metadata"] == {
        "name": "kube-scheduler-a",
        "labels": {"component": "kube-scheduler"},
        "annotations": {MIRROR: "1"},
    }
    assert original == before


def test_a_changed_revision_of_a_pod_of_the_operator_stays_a_hint() -> None:
    made = pod(entry("kubelet", labels={"component": ""}, annotations={MIRROR: "", HASH: ""}))
    made["metadata"]["labels"] |= {"revision": "7"}
    made["metadata"]["annotations"] |= {HASH: "1"}
    assert list(foreign_metadata(made)) == ["annotations.note", "labels.team"]
    stock = pod(OWN)
    stock["metadata"]["labels"] |= {"revision": "7"}
    stock["metadata"]["annotations"] |= {HASH: "1"}
    assert set(foreign_metadata(stock)) >= {"labels.revision", f"annotations.{HASH}"}


def test_the_creators_entry_is_found_by_the_mirror_annotation_and_not_by_its_name() -> None:
    renamed = {**OWN, "manager": "rke2"}
    forged = entry("kubelet", labels={"team": ""})
    assert list(foreign_metadata(pod(forged, renamed))) == ["annotations.note", "labels.team"]


@pytest.mark.parametrize(
    "managed",
    [[], [OTHER], None, "text", 7, [None], [{"fieldsV1": 7}], [{"fieldsV1": {"f:metadata": []}}]],
)
def test_without_the_kubelets_entry_everything_counts_as_the_manifests(managed: Any) -> None:
    original = pod()
    original["metadata"]["managedFields"] = managed
    assert list(foreign_metadata(original)) == []
    assert of_manifest(original) == pod()


@pytest.mark.parametrize("metadata", [{}, {"labels": None}, {"labels": 7, "annotations": []}])
def test_metadata_of_any_type_is_accepted(metadata: dict[str, Any]) -> None:
    odd = {"metadata": {**metadata, "managedFields": [OWN]}}
    assert list(foreign_metadata(odd)) == []
    assert of_manifest(odd) == {"metadata": metadata}
