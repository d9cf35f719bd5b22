"""`kubectl scheduler status`: what runs, what is wrong and what to do next, on one screen."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ...base import names
from ..lib import common
from ..lib.operand_identity import identity, render_identity
from ..lib.status_extenders import extender_state, render_extenders

if TYPE_CHECKING:
    from ...base.objects import Object
    from ...base.platform import Platform
    from ...controlplane.revision.history import Revision
    from ...kube.client import ApiClient


_FOR_INFORMATION: Final = (
    names.CONFIGURATION_WARNINGS,
    names.PODS_WITHOUT_SCHEDULER,
    names.UNKNOWN_LEASE_HOLDER,
    names.UNKNOWN_SCHEDULER,
)
"""Conditions of KubeScheduler that make nothing Degraded and are worth a look."""

_WARNINGS_SHOWN: Final = 10
"""On the screen, which is one; `-o json` has all."""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = subparsers.add_parser(
        "status",
        help="what runs, what is wrong, what to do next",
        description="Shows the scheduler of this cluster on one screen; problems come first. Exit "
        "code 1 if it is Degraded or not Available.",
    )
    parser.add_argument(
        "--verbose",
        action="store_true",
        help="also every node's command line, image and identity of the scheduler that runs there",
    )
    common.add_cluster_flags(parser)
    common.add_output_flag(parser)
    parser.set_defaults(run=run)


@dataclass(frozen=True, slots=True)
class Seen:
    """What the API has; an entry is None if it does not exist.

    Attributes:
        profiles: SchedulerProfiles by name; None: the API does not serve the kind.
        extenders: SchedulerExtenders likewise.
        profiling_since: the revision that turned profiling on; 0 if it is off.
        events_in: the namespace of the operator's events.
        loads: LoadPolicies.
    """

    scheduler: Mapping[str, Any] | None
    kubescheduler: Mapping[str, Any] | None
    cluster_operator: Mapping[str, Any] | None
    pods: Mapping[str, Mapping[str, Any]]
    lease: Mapping[str, Any] | None
    profiling_since: int
    events_in: str
    profiles: Mapping[str, Mapping[str, Any]] | None = None
    loads: Sequence[Mapping[str, Any]] = ()
    extenders: Mapping[str, Mapping[str, Any]] | None = None


def run(args: argparse.Namespace) -> int:
    """Print the screen; exit code 1 if the scheduler is Degraded or not Available."""

    async def work(api: ApiClient, platform: Platform) -> int:
        report = summarize(await _read(api, platform), verbose=args.verbose)
        if args.output == "text":
            print(render(report))
        else:
            common.print_document(report, args.output)
        return 0 if report["healthy"] else 1

    return common.run(args, work)


async def _read(api: ApiClient, platform: Platform) -> Seen:
    from ...base import names
    from ...kube.resource import CLUSTER_OPERATORS, KUBE_SCHEDULERS, LEASES, SCHEDULERS, ObjectRef

    lease = ObjectRef(LEASES, platform.operand_lease_namespace, platform.operand_lease_name)
    operator = ObjectRef(CLUSTER_OPERATORS, None, names.CLUSTEROPERATOR)
    return Seen(
        scheduler=await common.find_one(api, ObjectRef(SCHEDULERS, None, names.CLUSTER)),
        kubescheduler=await common.find_one(api, ObjectRef(KUBE_SCHEDULERS, None, names.CLUSTER)),
        cluster_operator=await common.find_one(api, operator),
        pods=await common.operand_pods(api, platform),
        lease=await common.find_one(api, lease),
        profiling_since=_profiling_since(await common.revisions(api, platform)),
        events_in=platform.operator_namespace,
        profiles=await _allowed("SchedulerProfiles", common.scheduler_profiles(api)),
        extenders=await _allowed("SchedulerExtenders", common.scheduler_extenders(api)),
        loads=await _load_policies(api),
    )


async def _allowed(
    what: str, asked: Awaitable[Mapping[str, Object] | None]
) -> Mapping[str, Object] | None:
    """What was asked for; who may not list it sees the rest."""
    from ...kube.errors import Forbidden

    try:
        return await asked
    except Forbidden as error:
        print(f"note: {what} are left out: {common.sentence(error)}", file=sys.stderr)
        return None


async def _load_policies(api: ApiClient) -> Sequence[Object]:
    """The LoadPolicies; none for who may not list them, or where there is no such kind."""
    from ...kube.errors import Forbidden, NotFound
    from ...kube.resource import LOAD_POLICIES

    try:
        return (await api.list(LOAD_POLICIES)).items
    except (Forbidden, NotFound):
        return ()


def _profiling_since(revisions: Sequence[Revision]) -> int:
    """The first of the newest good revisions that all have profiling on; 0 if it is off."""
    from ..lib.compare import take_apart

    since = 0
    for revision in reversed([revision for revision in revisions if not revision.bad]):
        if not take_apart(revision.content).config.get("enableProfiling"):
            break
        since = revision.number
    return since


def summarize(seen: Seen, *, verbose: bool = False) -> dict[str, Any]:
    """The screen as data: also what `-o json` prints."""
    from ...model import operand_pods

    status = (seen.kubescheduler or {}).get("status") or {}
    spec = (seen.kubescheduler or {}).get("spec") or {}
    overall = {
        condition["type"]: condition
        for condition in ((seen.cluster_operator or {}).get("status") or {}).get("conditions") or ()
    }
    pods = {node: operand_pods.read(pod) for node, pod in seen.pods.items()}
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
            **({"scheduler": identity(seen.pods.get(node))} if verbose else {}),
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
        "profilingSince": seen.profiling_since,
        "conditions": {type_: c["status"] for type_, c in sorted(overall.items())},
        "progress": overall.get("Progressing", {}).get("message", ""),
        "progressing": overall.get("Progressing", {}).get("status") == "True",
        "problems": problems,
        "warnings": [
            *_warnings("KubeScheduler", seen.kubescheduler, *_FOR_INFORMATION),
            *(
                warning
                for name, obj in sorted((seen.profiles or {}).items())
                for warning in _warnings(f"SchedulerProfile {name}", obj, names.WARNINGS)
            ),
            *(
                warning
                for name, obj in sorted((seen.extenders or {}).items())
                for warning in _warnings(f"SchedulerExtender {name}", obj, names.WARNINGS)
            ),
        ],
        "eventsIn": seen.events_in,
        "nodes": nodes,
        "loadPolicies": [_load_policy(obj) for obj in seen.loads],
        "schedulerProfiles": [_profile(obj) for _, obj in sorted((seen.profiles or {}).items())],
        "schedulerExtenders": [
            extender_state(obj) for _, obj in sorted((seen.extenders or {}).items())
        ],
    }


def _warnings(owner: str, obj: Mapping[str, Any] | None, *types: str) -> Iterator[dict[str, str]]:
    """What the operator accepted and warns about, one entry a sentence."""
    for condition in ((obj or {}).get("status") or {}).get("conditions") or ():
        if condition["type"] in types and condition["status"] == "True":
            for line in str(condition.get("message", "")).splitlines():
                yield {"object": owner, "message": line}


def _profile(obj: Mapping[str, Any]) -> dict[str, Any]:
    """What became of a SchedulerProfile; `state` is empty until the operator has seen it."""
    status = obj.get("status") or {}
    conditions = {c["type"]: c for c in status.get("conditions") or ()}
    accepted = conditions.get(names.ACCEPTED, {})
    seen = status.get("observedGeneration") == obj["metadata"].get("generation")
    spec = obj.get("spec") or {}
    return {
        "name": obj["metadata"]["name"],
        "schedulerName": status.get("schedulerName") or spec.get("schedulerName") or "",
        "scheduler": spec.get("scheduler") or "",
        "state": accepted.get("reason", "") if seen else "",
        "generation": obj["metadata"].get("generation", 0),
        "acceptedGeneration": status.get("acceptedGeneration", 0),
        "message": accepted.get("message", ""),
    }


def _load_policy(obj: Mapping[str, Any]) -> dict[str, Any]:
    """What became of a LoadPolicy, and of how many nodes the load is known."""
    status = obj.get("status") or {}
    conditions = {c["type"]: c for c in status.get("conditions") or ()}
    return {
        "name": obj["metadata"]["name"],
        "source": status.get("source", ""),
        "nodes": status.get("nodes") or {},
        "accepted": conditions.get(names.ACCEPTED, {}).get("status", "Unknown"),
        "available": conditions.get(names.AVAILABLE, {}).get("status", "Unknown"),
        "said": conditions.get(names.AVAILABLE, {}).get("message", ""),
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
    if report["profilingSince"]:
        lines.append(
            f"Profiling  on since revision {report['profilingSince']}; off again: enableProfiling "
            "in unsupportedConfigOverrides of the KubeScheduler"
        )
    for policy in report["loadPolicies"]:
        source = f" ({policy['source']})" if policy["source"] else ""
        said = policy["said"] or "the operator has not seen it yet"
        lines.append(f"Load       {policy['name']}{source}: {said}")
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
    lines += common.table(rows)
    if report["schedulerProfiles"]:
        lines += ["", *_render_profiles(report["schedulerProfiles"])]
    if report["schedulerExtenders"]:
        lines += ["", *render_extenders(report["schedulerExtenders"])]
    if report["warnings"]:
        lines += ["", *_render_warnings(report["warnings"])]
    for node in report["nodes"]:
        if "scheduler" in node:
            lines += ["", *render_identity(node["node"], node["scheduler"])]
    lines += ["", *_next_steps(report)]
    return "\n".join(lines).rstrip()


def _render_profiles(profiles: Sequence[Mapping[str, Any]]) -> list[str]:
    """All that need a look, and a count of those that do not."""
    calm = [p for p in profiles if p["state"] == "Accepted"]
    others = [p for p in profiles if p["state"] != "Accepted"]
    lines = [f"SchedulerProfiles  {len(calm)} of {len(profiles)} accepted"]
    if not others:
        return lines
    rows = [("PROFILE", "SCHEDULERNAME", "SCHEDULER", "STATE", "RUNS")]
    for profile in others:
        runs = profile["acceptedGeneration"] if profile["state"] == "Held" else 0
        rows.append(
            (
                profile["name"],
                profile["schedulerName"] or profile["name"],
                profile["scheduler"] or "-",
                profile["state"] or "not seen yet",
                f"generation {runs} of {profile['generation']}" if runs else "-",
            )
        )
    return [*lines, *common.table(rows)]


def _render_warnings(warnings: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = [f"Warnings   {len(warnings)}, which stop nothing:"]
    lines += [f"  {each['object']}: {each['message']}" for each in warnings[:_WARNINGS_SHOWN]]
    if len(warnings) > _WARNINGS_SHOWN:
        lines.append(
            f"  and {len(warnings) - _WARNINGS_SHOWN} more: kubectl scheduler status -o json"
        )
    return lines


def _is_of_an_edit(problem: Mapping[str, Any]) -> bool:
    """Whether a user's settings are what has to change."""
    return (
        problem["condition"]
        in (
            names.CONFIG_OBSERVATION_DEGRADED,
            names.TARGET_CONFIG_DEGRADED,
            names.OVERRIDES_DEGRADED,
            names.PREFLIGHT_DEGRADED,
        )
        or problem["reason"] == "RevisionFailed"
    )


def _next_steps(report: Mapping[str, Any]) -> list[str]:
    problems = report["problems"]
    if problems:
        steps = []
        if any(_is_of_an_edit(problem) for problem in problems):
            steps += [
                "fix the field that the problem names: kubectl edit scheduler cluster, or",
                "kubectl edit kubescheduler cluster; or take the edit back:",
                "kubectl scheduler history, kubectl scheduler rollout undo.",
            ]
        if any(p["condition"] == names.SCHEDULER_PROFILES_DEGRADED for p in problems):
            steps += [
                "fix the field that the problem names: kubectl edit schedulerprofile NAME; the",
                "other profiles go on without it.",
            ]
        if any(p["condition"] == names.SCHEDULER_EXTENDERS_DEGRADED for p in problems):
            steps += [
                "fix what the problem names: kubectl edit schedulerextender NAME, or see to its",
                f"pods (label {names.EXTENDER_LABEL}=NAME); the others go on without it.",
            ]
        if any(problem["condition"] == names.NODES_DEGRADED for problem in problems):
            steps += [
                "bring the node back, or remove it (kubectl delete node); the others go on",
                "without it, and it gets what it missed by itself.",
            ]
        if not steps:
            steps += ["see to what the problem names; the operator goes on by itself."]
        steps += [
            "What happened:",
            f"kubectl -n {report['eventsIn']} get events --sort-by=.lastTimestamp",
        ]
        return [f"{'Next: ' if line == 0 else ' ' * 6}{text}" for line, text in enumerate(steps)]
    if not report["revision"]:
        return ["Next: nothing; the first revision appears when the operator runs."]
    return []
