"""What kube-scheduler writes has the answers of a real API server.

tests/integration/test_requests_against_cluster.py compares them with one.
"""

from __future__ import annotations

import time
from typing import Any
from unittest.mock import Mock

import pytest

from kube_scheduler_operator.simulate.store import WorldStore
from kube_scheduler_operator.simulate.targets import target_of
from kube_scheduler_operator.simulate.world import World
from kube_scheduler_operator.simulate.writes import (
    Reply,
    UnexpectedRequestError,
    Write,
    WriteRequests,
)

Object = dict[str, Any]

PODS = "api/v1/namespaces/n/pods"
CLAIMS = "apis/resource.k8s.io/v1/namespaces/n/resourceclaims"
STRATEGIC = "application/strategic-merge-patch+json"


def pod(name: str, metadata: Object | None = None, **spec: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "n", "uid": f"uid-{name}", **(metadata or {})},
        "spec": {"nodeName": "a", **spec},
    }


def node(name: str, labels: Object) -> Object:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}


@pytest.fixture(params=[""])
def writes(request: pytest.FixtureRequest) -> WriteRequests:
    """Requests to the API server of the version that is the parameter."""
    world = World(version=request.param)
    for one in (
        node("a", {"kubernetes.io/hostname": "a", "topology.kubernetes.io/zone": "z"}),
        pod("bound"),
        pod("gone", {"deletionTimestamp": "2026-01-01T00:00:00Z"}),
        {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
         "metadata": {"name": "c", "namespace": "n", "uid": "uid-c"},
         "status": {"reservedFor": [{"uid": "uid-bound", "name": "bound", "resource": "pods"}]}},
    ):  # fmt: skip
        world.add(one)
    store = WorldStore(world)
    for name, gates in {"free": [], "gated": [{"name": "g"}]}.items():
        waiting = pod(name, schedulingGates=gates)
        del waiting["spec"]["nodeName"]
        store.put(_target(PODS).resource, {**waiting, "status": {}})
    return WriteRequests(store, Mock(), time.time)


def _target(path: str) -> Any:
    target = target_of(path.split("/"))
    assert target is not None
    return target


def write(
    writes: WriteRequests, method: str, path: str, body: Object | None = None, type_: str = ""
) -> Reply:
    return writes.apply(Write(method, _target(path), type_, body or {}))


@pytest.mark.parametrize(
    ("name", "code", "reason"),
    [
        ("free", 201, None),
        ("bound", 409, "Conflict"),
        ("gone", 409, "Conflict"),
        ("gated", 409, "Conflict"),
        ("missing", 404, "NotFound"),
    ],
)
def test_a_pod_is_bound_if_it_can_be(
    writes: WriteRequests, name: str, code: int, reason: str | None
) -> None:
    answer = write(writes, "POST", f"{PODS}/{name}/binding", {"target": {"name": "a"}})
    assert (answer.code, answer.obj.get("reason")) == (code, reason)


def test_a_pod_is_bound_once(writes: WriteRequests) -> None:
    path, body = f"{PODS}/free/binding", {"target": {"name": "a"}}
    assert [write(writes, "POST", path, body).code for _ in range(2)] == [201, 409]


@pytest.mark.parametrize(
    ("method", "subresource", "key"),
    [("POST", "/binding", "metadata"), ("PUT", "/status", "metadata"),
     ("DELETE", "", "preconditions")],
)  # fmt: skip
def test_another_uid_is_a_conflict(
    writes: WriteRequests, method: str, subresource: str, key: str
) -> None:
    body = {key: {"uid": "another"}}
    answer = write(writes, method, f"{PODS}/free{subresource}", body, STRATEGIC)
    assert (answer.code, answer.obj["reason"]) == (409, "Conflict")
    body = {key: {"uid": "uid-free"}}
    answer = write(writes, method, f"{PODS}/free{subresource}", body, STRATEGIC)
    assert answer.code in (200, 201)


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("free", {"metadata": {"uid": "another"}}),
        ("bound", {"status": {"nominatedNodeName": "a"}}),
    ],
)
def test_what_cannot_change_is_invalid(writes: WriteRequests, name: str, body: Object) -> None:
    answer = write(writes, "PATCH", f"{PODS}/{name}/status", body, STRATEGIC)
    assert (answer.code, answer.obj["reason"]) == (422, "Invalid")


@pytest.mark.parametrize(
    ("writes", "labels", "nominated"),
    [
        ("v1.34.4", None, {"nominatedNodeName": "a"}),
        ("v1.35.0", {"topology.kubernetes.io/zone": "z"}, {}),
    ],
    indirect=["writes"],
)
def test_what_a_binding_changes_depends_on_the_version(
    writes: WriteRequests, labels: Object | None, nominated: Object
) -> None:
    """Gates: PodTopologyLabelsAdmission and ClearingNominatedNodeNameAfterBinding."""
    status = {"status": {"nominatedNodeName": "a"}}
    write(writes, "PATCH", f"{PODS}/free/status", status, STRATEGIC)
    write(writes, "POST", f"{PODS}/free/binding", {"target": {"name": "a"}})
    bound = write(writes, "PATCH", f"{PODS}/free/status", {}, STRATEGIC).obj
    assert bound["metadata"].get("labels") == labels
    kept = {"nominatedNodeName"} & bound["status"].keys()
    assert {field: bound["status"][field] for field in kept} == nominated


def test_a_name_is_taken_once(writes: WriteRequests) -> None:
    claim = {"metadata": {"name": "c"}}
    answer = write(writes, "POST", CLAIMS, claim)
    assert (answer.code, answer.obj["reason"]) == (409, "AlreadyExists")


def test_what_is_created_has_a_uid(writes: WriteRequests) -> None:
    """kube-scheduler reserves a ResourceClaim that it made by its UID."""
    made = write(writes, "POST", CLAIMS, {"metadata": {"generateName": "c-"}}).obj["metadata"]
    assert made["uid"]
    assert made["creationTimestamp"]


def test_a_claim_is_given_back(writes: WriteRequests) -> None:
    patch = {
        "metadata": {"uid": "uid-c"},
        "status": {"reservedFor": [{"$patch": "delete", "uid": "uid-bound"}]},
    }
    answer = write(writes, "PATCH", f"{CLAIMS}/c/status", patch, STRATEGIC)
    assert (answer.code, answer.obj["status"]) == (200, {})


@pytest.mark.parametrize(
    ("allocation", "code"),
    [({"devices": {}}, 200), ({"devices": {}, "allocationTimestamp": "t"}, 422)],
)
def test_an_allocation_does_not_change(
    writes: WriteRequests, allocation: Object, code: int
) -> None:
    path = f"{CLAIMS}/c/status"
    first: Object = {"status": {"allocation": {"devices": {}}}}
    assert write(writes, "PUT", path, first).code == 200
    answer = write(writes, "PUT", path, {"status": {"allocation": allocation}})
    assert answer.code == code
    assert (code == 200) or 'ResourceClaim.resource.k8s.io "c" is invalid' in answer.obj["message"]


def test_a_status_is_written_alone(writes: WriteRequests) -> None:
    patch = {"spec": {"nodeName": "b"}, "status": {"phase": "Pending"}}
    answer = write(writes, "PATCH", f"{PODS}/free/status", patch, STRATEGIC)
    assert "nodeName" not in answer.obj["spec"]


@pytest.mark.parametrize(
    ("method", "path", "type_"),
    [
        ("PATCH", f"{PODS}/free/status", "application/json-patch+json"),
        ("PUT", f"{PODS}/free/ephemeralcontainers", ""),
        ("DELETE", PODS, ""),
        ("OPTIONS", f"{PODS}/free", ""),
    ],
)
def test_what_kube_scheduler_does_not_send_is_unexpected(
    writes: WriteRequests, method: str, path: str, type_: str
) -> None:
    with pytest.raises(UnexpectedRequestError):
        write(writes, method, path, {}, type_)
