"""Formats load as node annotations: the operator's own, crane's and kube-safe-scheduler's.

Imports little: `uninstall` uses it, too.
"""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

from ...base.json_text import parse_json
from ...base.limits import ANNOTATION
from ...base.names import LOAD_ANNOTATION
from ..load.policy import CRANE, HOT_VALUE, METRICS, OWN, SAFE, SAFE_KEYS, Rules
from .measurement import KEYS as METRIC_KEYS
from .measurement import UNKNOWN, Load

_SAFE_REQUESTED: Final[Mapping[str, str]] = {
    "requested-cpu": "cpu",
    "requested-memory": "memory",
    "requested-pods": "pods",
    "requested-gpu": "gpu",
    "requested-ephemeral-storage": "ephemeral-storage",
}

KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    OWN: (LOAD_ANNOTATION,),
    CRANE: (*METRICS, HOT_VALUE),
    SAFE: (*SAFE_KEYS.values(), *_SAFE_REQUESTED),
}
"""Family -> all of its annotations."""


def own(load: Load) -> dict[str, str]:
    fields: dict[str, Any] = {"at": _utc(load.at), "source": load.source}
    metrics = zip(METRIC_KEYS, load.values, strict=True)
    fields.update((key, value) for key, value in metrics if not math.isnan(value))
    if load.capacities[0] > 0 and load.capacities[1] > 0:
        fields["cpu"], fields["memory"] = load.capacities
    return {LOAD_ANNOTATION: json.dumps(fields, separators=(",", ":"))}


def read_own(text: str | None) -> Load | None:
    """Parse the operator's own annotation; None if it is missing or invalid."""
    try:
        fields = parse_json(text, ANNOTATION) if text else None
        if not isinstance(fields, dict):
            return None
        at = datetime.datetime.fromisoformat(fields["at"])
        if at.tzinfo is None:
            return None
        at = at.astimezone(datetime.UTC)  # OverflowError: in UTC, its year is none of 1 to 9999
        values = tuple(_number(fields.get(key)) for key in METRIC_KEYS)
        sizes = (_number(fields.get("cpu")), _number(fields.get("memory")))
        capacities = (0.0, 0.0) if any(map(math.isnan, sizes)) else sizes
        return Load(at.timestamp(), str(fields.get("source") or ""), values, capacities)
    except (ValueError, KeyError, TypeError, OverflowError):
        return None


def crane(load: Load, rules: Rules, zone: datetime.tzinfo, hot: int, now: float) -> dict[str, str]:
    """Return Crane's annotations: a value with five decimals and a local time with a literal Z.

    Source: gocrane/crane-scheduler, pkg/controller/annotator/node.go and pkg/utils/utils.go.
    """
    at = _local(load.at, zone)
    annotations = {}
    for metric in rules.metrics:
        value = load[metric] if metric in METRICS else UNKNOWN
        if not math.isnan(value):
            annotations[metric] = f"{value:.5f},{at}"
    if rules.hot_values:
        annotations[HOT_VALUE] = f"{hot},{_local(now, zone)}"
    return annotations


def safe(load: Load, requested: Mapping[str, float]) -> dict[str, str]:
    """Return the annotations of kube-safe-scheduler's node-annotator: millicores, bytes, counts.

    `requested` has the sum of the requests of the node's pods by resource; empty if unknown.
    """
    annotations = {}
    for metric, key in SAFE_KEYS.items():
        value = load[metric]
        if not math.isnan(value):
            annotations[key] = str(round(value))
    if requested:
        for key, resource in _SAFE_REQUESTED.items():
            annotations[key] = str(round(requested.get(resource, 0.0)))
    return annotations


def read_hot(annotations: Mapping[str, str]) -> int | None:
    """Return the hot value in a node's annotations; None if missing."""
    value, comma, _ = annotations.get(HOT_VALUE, "").partition(",")
    return int(value) if comma and value.isdecimal() else None


def read_requested(annotations: Mapping[str, str]) -> dict[str, float]:
    """Return the sums of requests in a node's annotations."""
    return {
        resource: float(text)
        for key, resource in _SAFE_REQUESTED.items()
        if (text := annotations.get(key, "")).isdecimal()
    }


def cleanup_patch(node: Mapping[str, Any], families: Iterable[str]) -> dict[str, Any] | None:
    """Return the merge patch that removes all annotations of these families; None without any.

    The uid excludes a later node with the same name.
    """
    metadata = node["metadata"]
    present = metadata.get("annotations") or {}
    keys = [key for family in families for key in KEYS[family] if key in present]
    if not keys:
        return None
    return {"metadata": {"uid": metadata["uid"], "annotations": dict.fromkeys(keys)}}


def _utc(at: float) -> str:
    return _local(at, datetime.UTC)


def _local(at: float, zone: datetime.tzinfo) -> str:
    return datetime.datetime.fromtimestamp(int(at), zone).strftime("%Y-%m-%dT%H:%M:%SZ")


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        return UNKNOWN
    return float(value)
