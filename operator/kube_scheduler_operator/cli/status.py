"""`kubectl scheduler status`: what runs, what is wrong and what to do next, on one screen."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = subparsers.add_parser(
        "status",
        help="what runs, what is wrong, what to do next",
        description="Shows the scheduler of this cluster on one screen; problems come first.",
    )
    parser.add_argument("--kubeconfig", help="default: $KUBECONFIG, then ~/.kube/config")
    parser.add_argument("--context", help="context of the kubeconfig")
    parser.add_argument("--platform", default="kubeadm", help="kind of cluster (default: kubeadm)")
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text")
    parser.set_defaults(run=run)


@dataclass(frozen=True, slots=True)
class Seen:
    """What the API has; an entry is None if it does not exist."""

    scheduler: Mapping[str, Any] | None
    kubescheduler: Mapping[str, Any] | None
    cluster_operator: Mapping[str, Any] | None
    pods: Mapping[str, Mapping[str, Any]]
    lease: Mapping[str, Any] | None


def run(args: argparse.Namespace) -> int:
    """Print the screen; exit code 1 if the scheduler is Degraded or not Available."""
    import asyncio

    from ..kube.errors import KubeError
    from ..platform import PLATFORMS

    platform = PLATFORMS.get(args.platform)
    if platform is None:
        print(
            f"--platform {args.platform!r} is unknown; known: {', '.join(PLATFORMS)}",
            file=sys.stderr,
        )
        return 2
    try:
        seen = asyncio.run(_read(args, platform))
    except KubeError as error:
        print(f"cannot read the scheduler's state: {error}", file=sys.stderr)
        return 1
    report = summarize(seen)
    text = json.dumps(report, indent=2) if args.output == "json" else render(report)
    print(text)
    return 0 if report["healthy"] else 1


async def _read(args: argparse.Namespace, platform: Any) -> Seen:
    from .. import names
    from ..kube.client import ApiClient
    from ..kube.credentials import find
    from ..kube.errors import NotFound
    from ..kube.resource import (
        CLUSTER_OPERATORS,
        KUBE_SCHEDULERS,
        LEASES,
        PODS,
        SCHEDULERS,
        ObjectRef,
    )

    async with ApiClient(find(args.kubeconfig, args.context), field_manager=names.PROGRAM) as api:

        async def one(ref: ObjectRef) -> Mapping[str, Any] | None:
            try:
                return await api.get(ref)
            except NotFound:
                return None

        selector = ",".join(f"{key}={value}" for key, value in platform.static_pod_labels)
        lease = ObjectRef(LEASES, platform.operand_lease_namespace, platform.operand_lease_name)
        pods = await api.list(PODS, platform.operand_namespace, label_selector=selector)
        return Seen(
            scheduler=await one(ObjectRef(SCHEDULERS, None, names.CLUSTER)),
            kubescheduler=await one(ObjectRef(KUBE_SCHEDULERS, None, names.CLUSTER)),
            cluster_operator=await one(ObjectRef(CLUSTER_OPERATORS, None, names.CLUSTEROPERATOR)),
            pods={pod["spec"].get("nodeName", ""): pod for pod in pods.items},
            lease=await one(lease),
        )


def summarize(seen: Seen) -> dict[str, Any]:
    """The screen as data: also what `-o json` prints."""
    from ..rollout import operand

    status = (seen.kubescheduler or {}).get("status") or {}
    spec = (seen.kubescheduler or {}).get("spec") or {}
    overall = {
        condition["type"]: condition
        for condition in ((seen.cluster_operator or {}).get("status") or {}).get("conditions") or ()
    }
    pods = {node: operand.read(pod) for node, pod in seen.pods.items()}
    entries = {entry["nodeName"]: entry for entry in status.get("nodeStatuses") or ()}
    holder = str(((seen.lease or {}).get("spec") or {}).get("holderIdentity") or "")
    nodes = [
        {
            "node": node,
            "revision": entries.get(node, {}).get("currentRevision", 0),
            "target": entries.get(node, {}).get("targetRevision", 0),
            "runs": pods[node].revision if node in pods else None,
            "ready": node in pods and pods[node].ready,
            "restarts": pods[node].restarts if node in pods else 0,
            "image": pods[node].image if node in pods else "",
            "leader": holder.startswith(f"{node}_"),
        }
        for node in sorted({*entries, *pods})
    ]
    problems = [
        {"condition": c["type"], "reason": c.get("reason", ""), "message": c.get("message", "")}
        for c in status.get("conditions") or ()
        if (c["type"].endswith("Degraded") and c["status"] == "True")
        or (c["type"].endswith("Available") and c["status"] == "False")
    ]
    if seen.kubescheduler is None:
        problems.append(
            {
                "condition": "KubeScheduler",
                "reason": "NotFound",
                "message": 'KubeScheduler "cluster" does not exist: is the operator installed?',
            }
        )
    healthy = (
        overall.get("Available", {}).get("status") == "True"
        and overall.get("Degraded", {}).get("status") == "False"
    )
    return {
        "healthy": healthy,
        "profile": ((seen.scheduler or {}).get("spec") or {}).get("profile")
        or "LowNodeUtilization",
        "logLevel": spec.get("logLevel") or "Normal",
        "managementState": spec.get("managementState") or "Managed",
        "revision": status.get("latestAvailableRevision", 0),
        "leaseHolder": holder,
        "conditions": {type_: c["status"] for type_, c in sorted(overall.items())},
        "progress": overall.get("Progressing", {}).get("message", ""),
        "progressing": overall.get("Progressing", {}).get("status") == "True",
        "problems": problems,
        "nodes": nodes,
    }


def render(report: Mapping[str, Any]) -> str:
    """The screen as text."""
    lines = []
    for problem in report["problems"]:
        lines.append(f"PROBLEM  {problem['condition']} ({problem['reason']})")
        lines += [f"         {line}" for line in str(problem["message"]).splitlines()]
    if report["problems"]:
        lines.append("")
    states = "  ".join(
        f"{type_}={report['conditions'].get(type_, 'Unknown')}"
        for type_ in ("Available", "Progressing", "Degraded", "Upgradeable")
    )
    lines += [
        f"Scheduler  {states}",
        f"Profile    {report['profile']}   logLevel {report['logLevel']}   "
        f"{report['managementState']}",
        f"Revision   {report['revision'] or 'none yet'}",
        f"Leader     {report['leaseHolder'] or 'nobody holds the Lease'}",
    ]
    if report["progressing"]:
        lines.append(f"Rollout    {report['progress']}")
    lines.append("")
    rows = [("NODE", "REVISION", "TARGET", "READY", "RESTARTS", "LEADER", "IMAGE")]
    for node in report["nodes"]:
        runs = node["runs"]
        revision = "stock" if runs == 0 and not node["revision"] else str(node["revision"] or "-")
        rows.append(
            (
                node["node"],
                revision,
                str(node["target"] or "-"),
                "yes" if node["ready"] else "no",
                str(node["restarts"]),
                "yes" if node["leader"] else "",
                node["image"],
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = zip(row, widths, strict=True)
        lines.append("  ".join(cell.ljust(width) for cell, width in cells).rstrip())
    lines += ["", *_next_steps(report)]
    return "\n".join(lines).rstrip()


def _next_steps(report: Mapping[str, Any]) -> list[str]:
    if report["problems"]:
        return [
            "Next: fix the field that the problem names: kubectl edit scheduler cluster, or",
            "      kubectl edit kubescheduler cluster; its events tell what happened:",
            "      kubectl -n kube-scheduler-operator get events --sort-by=.lastTimestamp",
        ]
    if not report["revision"]:
        return ["Next: nothing; the first revision appears when the operator runs."]
    return []
