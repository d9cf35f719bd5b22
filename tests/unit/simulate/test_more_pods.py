"""Pods that a group lacks: what is tried, and the edit of what creates them."""

from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.simulate.edits import Edit
from kube_scheduler_operator.simulate.kinds import PODS
from kube_scheduler_operator.simulate.more_pods import copies, creation
from kube_scheduler_operator.simulate.world import World

Object = dict[str, Any]


def obj(kind: str, name: str, spec: Object, owner: str = "") -> Object:
    made: Object = {"metadata": {"name": name, "namespace": "ml"}, "spec": spec}
    if owner:
        of, _, by = owner.partition("/")
        reference = {"apiVersion": "apps/v1", "kind": of, "name": by, "uid": by}
        made["metadata"]["ownerReferences"] = [{**reference, "controller": True}]
    return {"apiVersion": "v1" if kind == "Pod" else "apps/v1", "kind": kind, **made}


def world(owner: str = "", *objects: Object) -> World:
    made = World()
    for name in ("p", "p-1"):
        pod = obj("Pod", name, {"containers": [{"name": "c", "image": "i"}]}, owner)
        assert made.add({**pod, "status": {"resourceClaimStatuses": [{"name": "gpu"}]}})
    for each in objects:
        assert made.add(each)
    made.complete()
    return made


def test_copies_have_names_that_no_pod_has_and_nothing_of_the_other_pods_status() -> None:
    made = world()
    (like, _) = made.all(PODS)
    found = copies(made, like, 2)
    assert [one["metadata"]["name"] for one in found] == ["p-2", "p-3"]
    assert [one["status"] for one in found] == [{"phase": "Pending"}] * 2
    assert len({one["metadata"]["uid"] for one in found}) == 2
    first, second = creation(made, like, found)
    assert (first.object, second.object) == ("Pod ml/p-2", "Pod ml/p-3")
    assert (first.field, first.from_) == ("", None)
    assert first.to["kind"] == "Pod"
    assert first.to["metadata"]["name"] == "p-2"
    assert first.to["spec"] == found[0]["spec"]
    assert not {"uid", "creationTimestamp"} & first.to["metadata"].keys()


@pytest.mark.parametrize(
    ("owner", "objects", "edit"),
    [
        ("ReplicaSet/r", [obj("ReplicaSet", "r", {"replicas": 3})],
         Edit("ReplicaSet ml/r", "spec.replicas", 3, 5)),
        ("ReplicaSet/r", [obj("ReplicaSet", "r", {"replicas": 2}, "Deployment/web")],
         Edit("Deployment ml/web", "spec.replicas", 2, 4)),
        ("StatefulSet/s", [], Edit("StatefulSet ml/s", "spec.replicas", None, 4)),
    ],
)  # fmt: skip
def test_a_workload_creates_more_pods_by_its_number_of_replicas(
    owner: str, objects: list[Object], edit: Edit
) -> None:
    made = world(owner, *objects)
    like = next(iter(made.all(PODS)))
    assert creation(made, like, copies(made, like, 2)) == (edit,)


def test_the_pods_of_a_job_are_created_one_by_one() -> None:
    """More of them need other completions as well, which may not be changed."""
    made = world("Job/j")
    like = next(iter(made.all(PODS)))
    (only,) = creation(made, like, copies(made, like, 1))
    assert only.object == "Pod ml/p-2"
