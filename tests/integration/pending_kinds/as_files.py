"""Situations as objects in files, as `kubectl get` writes them, and edits of such objects."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from kube_scheduler_operator.simulate.api_defaults import complete_pod
from kube_scheduler_operator.simulate.kinds import BY_KIND

from .situation import PRIORITIES, Object, Situation

_CREATED: Final = "2026-01-01T00:00:00Z"
_DELETED: Final = "2026-01-01T01:00:00Z"
_KINDS: Final = {kind.resource.plural: kind.resource for kind in BY_KIND.values()}
_STEP: Final = re.compile(r"\[([^\]]+)\]|([^.\[]+)")


def objects_of(situation: Situation) -> list[Object]:
    """Return what an API server would have; no program has changed it yet."""
    ending = {path.rpartition("/")[2] for path in situation.terminating}
    found = [{"apiVersion": "v1", "kind": "Node", **copy.deepcopy(one)} for one in situation.nodes]
    found += [_typed(*made) for made in situation.objects]
    _bind(found)
    found += [_pod(pod) for pod in (*situation.running, situation.waiting)]
    for obj in found:
        metadata = obj["metadata"]
        metadata |= {"uid": f"{obj['kind']}-{metadata['name']}", "creationTimestamp": _CREATED}
        if metadata["name"] in ending:
            metadata["deletionTimestamp"] = _DELETED
    return found


def _typed(path: str, obj: Object, status: Object) -> Object:
    parts = path.strip("/").split("/")
    resource = _KINDS[parts[-1]]
    typed = {"apiVersion": resource.api_version, "kind": resource.kind, **copy.deepcopy(obj)}
    if "namespaces" in parts[:-1]:
        typed["metadata"]["namespace"] = parts[parts.index("namespaces") + 1]
    return typed | ({"status": status} if status else {})


def _pod(pod: Object) -> Object:
    made = {"apiVersion": "v1", "kind": "Pod", **copy.deepcopy(pod)}
    complete_pod(made["spec"])
    made["spec"]["priority"] = PRIORITIES.get(made["spec"].get("priorityClassName"), 0)
    if str(made["spec"].get("priorityClassName")).endswith("never"):
        made["spec"]["preemptionPolicy"] = "Never"
    return made


def _bind(objects: Iterable[Object]) -> None:
    """Bind the claims that name their volume."""
    volumes = {one["metadata"]["name"]: one for one in objects if one["kind"].endswith("Volume")}
    for claim in (one for one in objects if one["kind"] == "PersistentVolumeClaim"):
        volume = volumes.get(claim["spec"].get("volumeName"))
        if volume is not None:
            own = claim["metadata"]
            own.setdefault("annotations", {})["pv.kubernetes.io/bind-completed"] = "yes"
            volume["spec"]["claimRef"] = {
                "namespace": own["namespace"],
                "name": own["name"],
                "uid": f"PersistentVolumeClaim-{own['name']}",
            }
            claim["status"] = volume["status"] = {"phase": "Bound"}


def edited(objects: Iterable[Object], patch: Iterable[Mapping[str, Any]]) -> list[Object]:
    """Make the edits of a change in their order."""
    result = copy.deepcopy(list(objects))
    for edit in patch:
        kind, _, name = edit["object"].partition(" ")
        namespace, _, name = name.rpartition("/")
        named = [
            one
            for one in result
            if (one["kind"], one["metadata"]["name"]) == (kind, name)
            and one["metadata"].get("namespace", "") == namespace
        ]
        if edit["to"] is not None and not edit["field"]:
            assert not named
            result.append(edit["to"])
            continue
        (obj,) = named
        if edit["field"]:
            _set(obj, list(_steps(edit["field"])), edit["from"], edit["to"])
        else:
            result.remove(obj)
    return result


def _steps(path: str) -> Iterator[str | int]:
    for key, name in _STEP.findall(path):
        yield int(key) if key.isdigit() else key or name


def _set(obj: Any, steps: list[str | int], before: Any, after: Any) -> None:
    *way, last = steps
    for step in way:
        obj = obj.setdefault(step, {}) if isinstance(obj, dict) else obj[step]
    if isinstance(last, str):
        assert obj.get(last) == before
        obj[last] = after
        if after is None:
            del obj[last]
    elif before is None:
        obj.insert(last, after)
    else:
        assert obj[last] == before
        obj[last : last + 1] = [] if after is None else [after]
