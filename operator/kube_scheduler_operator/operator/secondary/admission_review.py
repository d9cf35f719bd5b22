"""The answer of the webhook that applies `spec.assign` to a new Pod, as a pure function.

An answer is either "unchanged" or one patch of `spec.schedulerName`; no answer rejects a Pod. The
exclusions of deploy/assignment/webhook are repeated here, because that object can be edited.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ...base import names
from ...base.objects import Object, mapping
from ...config.language.schema import DEFAULT_SCHEDULER
from .assignment import NAMESPACES, chosen, in_effect

API_VERSION: Final = "admission.k8s.io/v1"

_MIRROR: Final = "kubernetes.io/config.mirror"


class NotAReviewError(ValueError):
    """The request is not an AdmissionReview of a new Pod; the message has the reason."""


@dataclass(frozen=True, slots=True)
class NewPod:
    """The properties of a new Pod that decide whether it is assigned."""

    uid: str  # of the request; the answer repeats it
    namespace: str
    labels: Mapping[str, str] = field(default_factory=dict)
    priority_class: str = ""
    eligible: bool = False  # whether it may be assigned at all


def read_review(review: Any, excluded: Iterable[str]) -> NewPod:
    """Read an AdmissionReview; Pods in the namespaces `excluded` are not eligible.

    Raises:
        NotAReviewError: the request is about something else.
    """
    if mapping(review).get("apiVersion") != API_VERSION or review.get("kind") != "AdmissionReview":
        raise NotAReviewError(f"the body is not an AdmissionReview of {API_VERSION}")
    request = mapping(review.get("request"))
    uid = request.get("uid")
    if not isinstance(uid, str) or not uid:
        raise NotAReviewError("request.uid is missing")
    kind = mapping(request.get("kind"))
    pod = request.get("object")
    if (
        (kind.get("group"), kind.get("kind")) != ("", "Pod")
        or request.get("operation") != "CREATE"
        or request.get("subResource")
        or not isinstance(pod, Mapping)
    ):
        raise NotAReviewError("the request is not about a new Pod")
    metadata, spec = mapping(pod.get("metadata")), mapping(pod.get("spec"))
    namespace = str(request.get("namespace") or "")
    labels = {str(key): str(value) for key, value in mapping(metadata.get("labels")).items()}
    eligible = (
        bool(namespace)
        and namespace not in frozenset(excluded)
        and spec.get("schedulerName") == DEFAULT_SCHEDULER
        and not spec.get("nodeName")
        and _MIRROR not in mapping(metadata.get("annotations"))
        and not _of_daemonset(metadata.get("ownerReferences"))
        and labels.get(names.ASSIGN_LABEL) != names.ASSIGN_NEVER
        and names.SECONDARY_LABEL not in labels
    )
    priority_class = str(spec.get("priorityClassName") or "")
    return NewPod(uid, namespace, labels, priority_class, eligible)


def needs_namespace(schedulers: Iterable[Object]) -> bool:
    return any(
        mapping(pods).get(NAMESPACES)
        for obj in schedulers
        for assignment in (in_effect(obj),)
        for pods in (assignment.get("pods"), *(assignment.get("except") or ()))
    )


def essentials(schedulers: Iterable[Object]) -> list[dict[str, Any]]:
    """Reduce SecondarySchedulers to what decides about Pods, in the same order."""
    return [
        {"metadata": {}, "status": {"assignment": assignment}}
        for obj in schedulers
        if (assignment := in_effect(obj))
    ]


def scheduler_for(
    pod: NewPod, schedulers: Iterable[Object], namespace_labels: Mapping[str, str]
) -> str:
    """Choose the schedulerName of a Pod; empty: it stays unchanged."""
    if not pod.eligible or namespace_labels.get(names.ASSIGN_LABEL) == names.ASSIGN_NEVER:
        return ""
    return chosen(schedulers, namespace_labels, pod.labels, pod.priority_class)


def answer(uid: str, scheduler: str) -> dict[str, Any]:
    """Make the AdmissionReview of an answer; an empty `scheduler` changes nothing."""
    response: dict[str, Any] = {"uid": uid, "allowed": True}
    if scheduler:
        patch = [{"op": "replace", "path": "/spec/schedulerName", "value": scheduler}]
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(json.dumps(patch).encode()).decode()
    return {"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": response}


def _of_daemonset(owners: Any) -> bool:
    return isinstance(owners, list) and any(
        mapping(owner).get("kind") == "DaemonSet" for owner in owners
    )
