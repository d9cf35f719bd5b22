"""How `kubectl scheduler pprof` turns profiling on and off, and who may read it. Pure."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ...base import names
from ...controlplane.revision.history import Revision
from ...kube.api import Object
from .compare import take_apart

NAME: Final = "kube-scheduler-pprof"
"""Of the ServiceAccount, the ClusterRole and its binding, which exist only during the command."""

_FIELD: Final = "enableProfiling"
_OVERRIDES: Final = "unsupportedConfigOverrides"


def url(profile: str, seconds: int) -> str:
    """Path and query of a profile (k8s.io/apiserver/pkg/server/routes/profiling.go).

    Args:
        profile: heap, goroutine, profile or trace.
        seconds: how long to record; for heap and goroutine Go then tells the difference.
    """
    return f"/debug/pprof/{profile}{f'?seconds={seconds}' if seconds else ''}"


def switched(kubescheduler: Mapping[str, Any], value: bool | None) -> Object | None:
    """The KubeScheduler with profiling overridden to `value` (None: not); None if it is so."""
    changed: Object = copy.deepcopy(dict(kubescheduler))
    spec = changed.setdefault("spec", {})
    overrides = dict(spec.get(_OVERRIDES) or {})
    if overrides.get(_FIELD) == value:
        return None
    if value is None:
        del overrides[_FIELD]
    else:
        overrides[_FIELD] = value
    if overrides:
        spec[_OVERRIDES] = overrides
    else:
        spec.pop(_OVERRIDES, None)
    return changed


def override(kubescheduler: Mapping[str, Any]) -> bool | None:
    """What the overrides say about profiling; None if nothing."""
    overrides = (kubescheduler.get("spec") or {}).get(_OVERRIDES) or {}
    value: bool | None = overrides.get(_FIELD)
    return value


def profiled(kubescheduler: Mapping[str, Any], revisions: Sequence[Revision]) -> dict[str, int]:
    """The nodes that run a revision with profiling on, and which one."""
    on = {r.number for r in revisions if take_apart(r.content).config.get(_FIELD) is True}
    return {
        entry["nodeName"]: entry["currentRevision"]
        for entry in (kubescheduler.get("status") or {}).get("nodeStatuses") or ()
        if entry.get("currentRevision") in on
    }


def service_account(namespace: str) -> Object:
    """The identity that reads profiles."""
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": NAME, "namespace": namespace, "labels": _labels()},
        "automountServiceAccountToken": False,
    }


def cluster_role() -> Object:
    """All that it may do."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": NAME, "labels": _labels()},
        "rules": [{"nonResourceURLs": ["/debug/pprof/*"], "verbs": ["get"]}],
    }


def cluster_role_binding(namespace: str) -> Object:
    """Gives it to nobody else."""
    group = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": NAME, "labels": _labels()},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": NAME},
        "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": namespace}],
    }


def token_request(seconds: int) -> Object:
    """A token that ends by itself if its ServiceAccount should survive; ten minutes at least."""
    return {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": max(600, seconds)},
    }


def _labels() -> dict[str, str]:
    # Not the label of the operator's own objects: it would take them for its own.
    return {"app.kubernetes.io/name": NAME, "app.kubernetes.io/part-of": names.PROGRAM}
