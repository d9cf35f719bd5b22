"""The webhook's answer: one patch of one field, or nothing, and never a refusal."""

from __future__ import annotations

import base64
import copy
import json
from typing import Any

import pytest

from kube_scheduler_operator.operator.secondary.admission_review import (
    NotAReviewError,
    answer,
    needs_namespace,
    read_review,
    scheduler_for,
)

REVIEW: dict[str, Any] = {
    "apiVersion": "admission.k8s.io/v1",
    "kind": "AdmissionReview",
    "request": {
        "uid": "1",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "operation": "CREATE",
        "namespace": "team",
        "object": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"schedulerName": "default-scheduler", "priorityClassName": "low"},
        },
    },
}
PACKED = {
    "metadata": {"name": "packed"},
    "status": {"assignment": {"schedulerName": "packed", "pods": {}}},
}
OPT_OUT = {"kube-scheduler-operator.dev/assign": "never"}


def review(*path: str, value: Any) -> dict[str, Any]:
    """A review with one field changed."""
    found = copy.deepcopy(REVIEW)
    *parents, last = path
    place = found
    for part in parents:
        place = place.setdefault(part, {})
    place[last] = value
    return found


def test_a_new_pod_gets_the_scheduler_that_selects_it() -> None:
    pod = read_review(REVIEW, ())
    assert (pod.uid, pod.namespace, pod.labels, pod.priority_class) == (
        "1", "team", {"app": "web"}, "low",
    )  # fmt: skip
    assert scheduler_for(pod, [PACKED], {}) == "packed"


POD = ("request", "object")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ((*POD, "spec", "schedulerName"), "another"),
        ((*POD, "spec", "schedulerName"), None),
        ((*POD, "spec", "nodeName"), "node"),
        ((*POD, "metadata", "annotations"), {"kubernetes.io/config.mirror": "x"}),
        ((*POD, "metadata", "ownerReferences"), [{"kind": "DaemonSet", "name": "d"}]),
        ((*POD, "metadata", "labels"), OPT_OUT),
        ((*POD, "metadata", "labels"), {"kube-scheduler-operator.dev/secondary-scheduler": "x"}),
        (("request", "namespace"), "kube-system"),
        (("request", "namespace"), ""),
    ],
)
def test_a_pod_that_is_never_assigned_stays_unchanged(path: tuple[str, ...], value: Any) -> None:
    pod = read_review(review(*path, value=value), ["kube-system"])
    assert scheduler_for(pod, [PACKED], {}) == ""


def test_a_label_of_the_namespace_opts_out() -> None:
    assert scheduler_for(read_review(REVIEW, ()), [PACKED], OPT_OUT) == ""


@pytest.mark.parametrize(
    "bad",
    [
        None, [], "", 1, {}, {"kind": "AdmissionReview"}, {**REVIEW, "apiVersion": "v1"},
        {**REVIEW, "request": None}, {**REVIEW, "request": []},
        review("request", "uid", value=None), review("request", "uid", value=7),
        review("request", "uid", value=""),
        review("request", "operation", value="UPDATE"),
        review("request", "operation", value=["CREATE"]),
        review("request", "subResource", value="binding"),
        review("request", "kind", value={"group": "apps", "kind": "Deployment"}),
        review("request", "kind", value="Pod"),
        review("request", "object", value=None), review("request", "object", value=[1]),
    ],
)  # fmt: skip
def test_what_is_not_a_review_of_a_new_pod_is_named(bad: Any) -> None:
    with pytest.raises(NotAReviewError):
        read_review(bad, ())


@pytest.mark.parametrize(
    "value",
    [
        None, [], "x", 7, {"labels": [1]}, {"labels": {"a": 1}}, {"ownerReferences": "x"},
        {"ownerReferences": [1, None]},
    ],
)  # fmt: skip
def test_odd_metadata_does_no_harm(value: Any) -> None:
    pod = read_review(review(*POD, "metadata", value=value), ())
    assert scheduler_for(pod, [PACKED], {}) == "packed"


def test_the_answer_changes_one_field() -> None:
    response = answer("1", "packed")["response"]
    assert response.keys() == {"uid", "allowed", "patchType", "patch"}
    assert json.loads(base64.b64decode(response["patch"])) == [
        {"op": "replace", "path": "/spec/schedulerName", "value": "packed"}
    ]
    assert answer("1", "")["response"] == {"uid": "1", "allowed": True}


def test_namespaces_are_read_only_if_an_assignment_depends_on_them() -> None:
    selector = {"namespaceSelector": {"matchLabels": {"a": "b"}}}
    other = copy.deepcopy(PACKED)
    other["status"]["assignment"]["pods"] = selector  # type: ignore[index]
    third = copy.deepcopy(PACKED)
    third["status"]["assignment"]["except"] = [selector]  # type: ignore[index]
    assert not needs_namespace([PACKED, {"metadata": {"name": "x"}}])
    assert needs_namespace([PACKED, other])
    assert needs_namespace([third])
