"""`status`: which sandboxes there are, how they are, and what is left of broken ones."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from cluster import lifecycle, model, processes, teardown
from cluster.api import Api, ApiError, condition

if TYPE_CHECKING:
    from cluster.model import Sandbox


def report(form: str) -> str:
    """Describe all sandboxes, as a table or as JSON."""
    found = [describe(name) for name in teardown.names()]
    if form == "json":
        return json.dumps({"sandboxes": found}, indent=2)
    if not found:
        return "no sandboxes"
    rows = [("NAME", "PHASE", "KUBERNETES", "NODES", "SERVER", "NOTE")]
    for one in found:
        ready = sum(node["ready"] for node in one["nodes"])
        count = f"{ready}/{len(one['nodes'])}"
        rows.append(
            (one["name"], one["phase"], one["kubernetes"], count, one["server"], one["note"])
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
    return "\n".join(lines)


def describe(name: str) -> dict[str, Any]:
    """Describe one sandbox: phase Running, Degraded (with a note) or Remnants."""
    sandbox = model.load(name)
    if sandbox is None:
        return {
            "name": name,
            "phase": "Remnants",
            "kubernetes": "",
            "server": "",
            "nodes": [],
            "note": f"its record is gone; remove the rest: hack/sandbox down --name {name}",
            "remnants": asdict(teardown.find(name)),
        }
    running = {daemon: processes.alive(sandbox, daemon) for daemon in lifecycle.daemons(sandbox)}
    nodes = _nodes(sandbox)
    dead = [daemon for daemon, alive in running.items() if not alive]
    unready = [node["name"] for node in nodes if not node["ready"]]
    note = f"not running: {', '.join(dead)}" if dead else ""
    if unready and not dead:
        note = f"not Ready: {', '.join(unready)}"
    return {
        "name": name,
        "phase": "Degraded" if note else "Running",
        "kubernetes": sandbox.kubernetes,
        "server": sandbox.server,
        "kubeconfig": str(sandbox.kubeconfig),
        "state": str(sandbox.state),
        "nodes": nodes,
        "daemons": running,
        "note": note,
    }


def _nodes(sandbox: Sandbox) -> list[dict[str, Any]]:
    try:
        known = Api(sandbox).nodes()
    except (ApiError, OSError):
        known = {}
    return [
        {
            "name": node.name,
            "role": "control-plane" if node.control_plane else "worker",
            "address": str(sandbox.address(node)),
            "ready": condition(known.get(node.name, {}), "Ready") == "True",
        }
        for node in sandbox.nodes
    ]
