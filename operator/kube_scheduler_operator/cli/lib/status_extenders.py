"""SchedulerExtenders on the screen of `status`: where they are called, and whether they answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...base import names
from . import common


def extender_state(obj: Mapping[str, Any]) -> dict[str, Any]:
    """What became of a SchedulerExtender; `state` is empty until the operator has seen it."""
    status = obj.get("status") or {}
    conditions = {c["type"]: c for c in status.get("conditions") or ()}
    seen = status.get("observedGeneration") == obj["metadata"].get("generation")
    agent = status.get("agent") or {}
    return {
        "name": obj["metadata"]["name"],
        "scheduler": (obj.get("spec") or {}).get("scheduler") or "",
        "state": conditions.get(names.ACCEPTED, {}).get("reason", "") if seen else "",
        "available": conditions.get(names.AVAILABLE, {}).get("status", "Unknown"),
        "endpoint": status.get("endpoint") or "",
        "ready": agent.get("ready", 0),
        "desired": agent.get("desired", 0),
    }


def render_extenders(extenders: Sequence[Mapping[str, Any]]) -> list[str]:
    """A line for each: there are few of them, and a scheduler asks all of them about every pod."""
    rows = [("EXTENDER", "SCHEDULER", "STATE", "AVAILABLE", "AGENTS", "ENDPOINT")]
    for each in extenders:
        agents = f"{each['ready']}/{each['desired']}" if each["desired"] else "-"
        rows.append(
            (
                each["name"],
                each["scheduler"] or "-",
                each["state"] or "not seen yet",
                each["available"],
                agents,
                each["endpoint"] or "not called",
            )
        )
    return common.table(rows)
