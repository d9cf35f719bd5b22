"""Applies what kube-scheduler writes to a store, as the API server does.

What kube-scheduler relies on is checked: that an object exists or does not, its UID and its
resourceVersion, and that a Pod can be bound. A deleted Pod is gone at once.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Protocol

from ..base.objects import entries, mapping
from ..base.times import rfc3339
from ..config.language.versions import Version
from ..kube.resource import EVENTS_V1
from .controllers import Controllers
from .kinds import CLAIMS, NODES, PODS, RESOURCE_CLAIMS, VOLUMES, Object
from .patches import UnknownPatchError, patched
from .store import WorldStore
from .targets import RequestTarget

_COPIED: Final = ("topology.kubernetes.io/region", "topology.kubernetes.io/zone")
_WITH_BOTH_GATES: Final = Version(1, 35)
_SUBRESOURCES: Final = frozenset({"", "binding", "status"})


class DecisionListener(Protocol):
    """Gets kube-scheduler's decisions as they are written."""

    def bound(self, pod: Object, node: str) -> None: ...

    def unschedulable(self, pod: Object) -> None:
        """Take the status of a pod without a node."""

    def deleted(self, pod: Object) -> None:
        """Take a deleted pod: preemption ends this way."""

    def event(self, event: Object) -> None: ...

    def changed(self) -> None:
        """Take the write of an object other than a pod: it may let a waiting pod fit."""


_GRACE: Final = 30
"""The API server's default of terminationGracePeriodSeconds."""


class UnexpectedRequestError(Exception):
    """A request that kube-scheduler does not send; nothing is known about what follows it."""


@dataclass(frozen=True, slots=True)
class Write:
    method: str
    target: RequestTarget
    content_type: str
    body: Object


@dataclass(frozen=True, slots=True)
class Reply:
    code: int
    obj: Object


class WriteRequests:
    """The writes of one kube-scheduler."""

    def __init__(
        self, store: WorldStore, listener: DecisionListener, clock: Callable[[], float]
    ) -> None:
        self._store = store
        self._listener = listener
        self._clock = clock
        self._controllers = Controllers(store)
        self._generated = 0  # names made of generateName

    def apply(self, write: Write) -> Reply:
        """Apply a write.

        Raises:
            UnexpectedRequestError: it is of another form than those of kube-scheduler.
        """
        target = write.target
        if target.subresource not in _SUBRESOURCES:
            raise UnexpectedRequestError(f"the subresource {target.subresource} is not simulated")
        if target.resource.plural == EVENTS_V1.plural:
            return self._record(write)
        if target.subresource == "binding":
            return self._bind(write)
        if write.method == "POST":
            return self._create(write)
        if not target.name:
            raise UnexpectedRequestError("a collection is not written as a whole")
        known = self._store.get(target.resource, target.key)
        if known is None:
            return not_found(target)
        if write.method == "DELETE":
            return self._delete(write, known)
        return self._change(write, known)

    def _record(self, write: Write) -> Reply:
        self._listener.event(write.body)
        return Reply(201 if write.method == "POST" else 200, write.body)

    def _create(self, write: Write) -> Reply:
        target, obj = write.target, write.body
        metadata = obj.setdefault("metadata", {})
        if target.namespace:
            metadata.setdefault("namespace", target.namespace)
        if not metadata.get("name"):
            # kube-scheduler creates ResourceClaims for extended resources with generateName.
            self._generated += 1
            metadata["name"] = f"{metadata.get('generateName', '')}{self._generated:05}"
        key = (metadata.get("namespace", ""), metadata["name"])
        if self._store.get(target.resource, key) is not None:
            message = f'{target.resource.name} "{metadata["name"]}" already exists'
            return failure(409, "AlreadyExists", message)
        metadata["uid"] = str(uuid.uuid4())
        metadata["creationTimestamp"] = self._now()
        self._listener.changed()
        return Reply(201, self._store.put(target.resource, obj))

    def _bind(self, write: Write) -> Reply:
        target, binding = write.target, write.body
        pod = self._store.get(PODS, target.key)
        if pod is None:
            return not_found(target)
        if problem := _unbindable(pod) or _precondition(pod, binding.get("metadata")):
            message = f'Operation cannot be fulfilled on pods/binding "{target.name}": {problem}'
            return failure(409, "Conflict", message)
        node = str(mapping(binding.get("target")).get("name") or "")
        self._listener.bound(pod, node)
        pod["spec"]["nodeName"] = node
        self._label(pod, node)
        condition = {
            "type": "PodScheduled",
            "status": "True",
            # Extenders estimate the load of pods that were bound after the last measurement.
            "lastTransitionTime": self._now(),
        }
        # The whole condition is another one, without the reason of an earlier attempt.
        conditions = entries(pod["status"].get("conditions"))
        others = [one for one in conditions if one.get("type") != condition["type"]]
        pod["status"]["conditions"] = [*others, condition]
        if not self._is_old():
            pod["status"].pop("nominatedNodeName", None)
        self._store.put(PODS, pod)
        return Reply(201, {"kind": "Status", "apiVersion": "v1", "status": "Success", "code": 201})

    def _is_old(self) -> bool:
        """Whether the API server is known to be one of before 1.35.

        The gates PodTopologyLabelsAdmission and ClearingNominatedNodeNameAfterBinding are on by
        default from then on.
        """
        try:
            return Version.parse(self._store.cluster_version) < _WITH_BOTH_GATES
        except ValueError:  # the version is not known
            return False

    def _label(self, pod: Object, name: str) -> None:
        """Copy the labels of the node that the admission plugin PodTopologyLabels copies."""
        if self._is_old():
            return
        node = self._store.get(NODES, ("", name)) or {}
        labels = mapping(mapping(node.get("metadata")).get("labels"))
        copied = {key: labels[key] for key in _COPIED if key in labels}
        if copied:
            pod["metadata"]["labels"] = {**mapping(pod["metadata"].get("labels")), **copied}

    def _delete(self, write: Write, known: Object) -> Reply:
        if problem := _precondition(known, write.body.get("preconditions")):
            return _conflict(write.target, problem)
        target = write.target
        gone = self._store.delete(target.resource, target.key) or known
        if target.resource == PODS:
            self._controllers.pod_deleted(gone)
            self._listener.deleted(gone)
            grace = mapping(gone.get("spec")).get("terminationGracePeriodSeconds", _GRACE)
            gone["metadata"] |= {
                "deletionTimestamp": self._now(),
                "deletionGracePeriodSeconds": grace,
            }
            return Reply(200, gone)
        self._listener.changed()
        return Reply(200, {"kind": "Status", "apiVersion": "v1", "status": "Success"})

    def _change(self, write: Write, known: Object) -> Reply:
        target, sent = write.target, mapping(write.body.get("metadata"))
        uid, own = sent.get("uid"), known["metadata"].get("uid")
        if write.method == "PATCH" and uid and uid != own:
            # A patch has no such precondition; the UID is a field that cannot change.
            return _invalid(target, f"metadata.uid: {uid}: field is immutable")
        if problem := _precondition(known, sent):
            return _conflict(target, problem)
        try:
            changed = _changed(write, known)
        except UnknownPatchError as error:
            raise UnexpectedRequestError(f"a patch of type {error} is not simulated") from None
        if target.resource == PODS and _nominates_bound(known, changed):
            return _invalid(target, "status.nominatedNodeName: the pod is already bound")
        if target.resource == RESOURCE_CLAIMS and _changes_allocation(known, changed):
            text = "status.allocation: Invalid value: null: field cannot be modified once set"
            return _invalid(target, text)
        stored = self._store.put(target.resource, changed)
        self._report(target, stored)
        # A controller may have changed it again.
        return Reply(200, self._store.get(target.resource, target.key) or stored)

    def _report(self, target: RequestTarget, stored: Object) -> None:
        if target.resource == PODS and target.subresource == "status":
            self._listener.unschedulable(stored)
        elif target.resource == CLAIMS:
            self._controllers.claim_changed(stored)
        elif target.resource == VOLUMES:
            self._controllers.volume_changed(stored)
        if target.resource != PODS:
            self._listener.changed()

    def _now(self) -> str:
        return rfc3339(datetime.fromtimestamp(self._clock(), UTC))


def _changed(write: Write, known: Object) -> Object:
    """Return the object after a PATCH or PUT: of its status alone, or of all but its status."""
    if write.method == "PATCH":
        obj = patched(write.content_type, known, write.body)
    elif write.method == "PUT":
        obj = write.body
    else:
        raise UnexpectedRequestError(f"{write.method} is not simulated")
    if write.target.subresource == "status":
        return {**known, "status": obj.get("status") or {}}
    return {**obj, "status": known["status"]} if "status" in known else obj


def _unbindable(pod: Mapping[str, Any]) -> str:
    """Return why the API server refuses to bind a Pod; empty: it does not."""
    name, spec = pod["metadata"]["name"], pod["spec"]
    if pod["metadata"].get("deletionTimestamp"):
        return f"pod {name} is being deleted, cannot be assigned to a host"
    if spec.get("nodeName"):
        return f'pod {name} is already assigned to node "{spec["nodeName"]}"'
    if spec.get("schedulingGates"):
        return f"pod {name} has non-empty .spec.schedulingGates"
    return ""


def _nominates_bound(known: Mapping[str, Any], changed: Mapping[str, Any]) -> bool:
    before, after = mapping(known.get("status")), mapping(changed.get("status"))
    nominated = after.get("nominatedNodeName")
    is_new = bool(nominated) and nominated != before.get("nominatedNodeName")
    return is_new and bool(mapping(known.get("spec")).get("nodeName"))


def _changes_allocation(known: Mapping[str, Any], changed: Mapping[str, Any]) -> bool:
    """Return whether an allocation gets or loses a field.

    From 1.36 on, kube-scheduler adds the time to an allocation that has none, such as one by an
    older version, when it reserves the claim for another Pod.
    """
    before, after = (mapping(obj.get("status")).get("allocation") for obj in (known, changed))
    return bool(before and after) and mapping(before).keys() != mapping(after).keys()


def _precondition(known: Mapping[str, Any], sent: Any) -> str:
    """Return which precondition of a write an object does not fulfil; empty: it fulfils all."""
    preconditions, metadata = mapping(sent), known["metadata"]
    for name in ("uid", "resourceVersion"):
        wanted = preconditions.get(name)
        if wanted and wanted != metadata.get(name):
            return f"precondition failed: {name} in precondition: {wanted}, {metadata.get(name)}"
    return ""


def _conflict(target: RequestTarget, problem: str) -> Reply:
    message = f'Operation cannot be fulfilled on {target.resource.name} "{target.name}": {problem}'
    return failure(409, "Conflict", message)


def _invalid(target: RequestTarget, problem: str) -> Reply:
    kind, group = target.resource.kind, target.resource.group
    named = f"{kind}.{group}" if group else kind
    return failure(422, "Invalid", f'{named} "{target.name}" is invalid: {problem}')


def not_found(target: RequestTarget) -> Reply:
    return failure(404, "NotFound", f'{target.resource.name} "{target.name}" not found')


def failure(code: int, reason: str, message: str) -> Reply:
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message,
    }
    return Reply(code, status)
