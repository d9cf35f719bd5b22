"""`kubectl scheduler status`: the state of the scheduler, its problems and the next steps."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ...base import names
from ...base.management import MANAGED, management_state
from ...base.objects import Object, mapping
from ...base.platform import Platform
from ...config.effective.control_plane.recorded_inputs import profile_changes
from ...kube import resource as kinds
from ...kube.api import Api
from ...kube.errors import Forbidden
from ...kube.resource import Resource
from ...operator.controlplane.revision.history import Revision, ended
from ...operator.model import operand_pods
from ...operator.status.conditions import condition_in
from ...operator.status.lease_reading import lease_problem
from ...operator.status.running import images_that_run
from ..checks.check import CheckState, ClusterFacts, Observed
from ..checks.condition_hints import advice
from ..checks.operation import INFORMATIONAL, NO_KUBESCHEDULER, severity, silence
from ..checks.table import NOT_OBSERVED, RUNNING, UNOBSERVED, run_checks
from ..cluster import cluster_configuration
from ..cluster.answers import ClusterAnswer, ClusterQuestion, answering
from ..cluster.compare import parse_revision
from ..cluster.connection import ClusterConnection
from ..cluster.operands import identity, lease_of, render_identity
from ..cluster.operator_objects import find_object, find_singleton, list_by_name
from ..cluster.revisions import (
    IN_PROGRESS,
    NOT_RECORDED,
    later_revisions,
    list_revisions,
    nodes_by_revision,
)
from ..console.errors import CommandError, error_message
from ..console.flags import add_cluster_flags, add_output_flag
from ..console.output import format_table, print_remark, text_of

if TYPE_CHECKING:
    from ...kube.client import ApiClient

_WARNINGS_SHOWN: Final = 10
_REVISIONS_SHOWN: Final = 5
"""The limits in text output; `-o json` has all."""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "status",
        description="Shows the state of the cluster's scheduler on one screen, problems first. The "
        "exit code is 1 if there is a problem.",
    )
    parser.add_argument(
        "--verbose",
        action="store_true",
        help="also show the scheduler of each node: pod, image, revision and command line",
    )
    add_cluster_flags(parser, several=True)
    add_output_flag(parser)
    parser.set_defaults(run=answering(ClusterQuestion(_answer, subject="the status")))


async def _answer(connection: ClusterConnection) -> ClusterAnswer:
    verbose = connection.args.verbose
    report = await _report(connection.api, await connection.platform(), verbose=verbose)
    return ClusterAnswer(report, render(report), 0 if report["healthy"] else 1)


async def _report(api: ApiClient, platform: Platform, *, verbose: bool) -> dict[str, Any]:
    """Return the status as `-o json` prints it."""
    # Loaded here, so that completion does not wait for it.
    from ..adoption.cluster_facts import facts_of_pods

    facts = await facts_of_pods(api, ClusterFacts(api.clock.now(), platform))
    scheduler = mapping(await find_singleton(api, kinds.SCHEDULERS))
    kubescheduler = await find_singleton(api, kinds.KUBE_SCHEDULERS)
    reported = await find_object(api, kinds.CLUSTER_OPERATORS.named(names.CLUSTEROPERATOR))
    if facts.operand_pods.error:
        raise CommandError(facts.operand_pods.error)
    pods = facts.operand_pods.get()
    revisions = await list_revisions(api, platform)
    profiling_since = _profiling_since(revisions)
    profiles = await _listed(api, kinds.SCHEDULER_PROFILES)
    extenders = await _listed(api, kinds.SCHEDULER_EXTENDERS)
    settings = await _listed(api, kinds.OPERATOR_SETTINGS)
    load_policies = await _listed(api, kinds.LOAD_POLICIES, noted=False)
    secondaries = await _listed(api, kinds.SECONDARY_SCHEDULERS)
    kubeadm = await _kubeadm(api, platform)
    objects = {
        resource.kind: Observed({obj["metadata"]["name"]: obj for obj in listed})
        for resource, listed in (
            (kinds.SCHEDULER_PROFILES, profiles),
            (kinds.SCHEDULER_EXTENDERS, extenders),
            (kinds.OPERATOR_SETTINGS, settings),
            (kinds.SECONDARY_SCHEDULERS, secondaries),
            (kinds.LOAD_POLICIES, load_policies),
        )
    }
    with_objects = replace(facts, kubescheduler=Observed(kubescheduler), kinds=objects)
    observed = _observed(facts, with_objects)
    overall = {condition["type"]: condition for condition in _conditions(reported)}
    problems = [*_problems(kubescheduler, reported), *observed[CheckState.FAILED]]
    progressing = overall.get("Progressing", {})
    spec = mapping(mapping(kubescheduler).get("spec"))
    status = mapping(mapping(kubescheduler).get("status"))
    idle = lease_problem(facts.operand_lease.value, _lease_place(platform), "scheduler", facts.now)
    lease = mapping(facts.operand_lease.value)
    holder = "" if idle else str(mapping(lease.get("spec")).get("holderIdentity") or "")
    return {
        "healthy": not problems and _is_reported_healthy(kubescheduler, overall),
        "profile": mapping(scheduler.get("spec")).get("profile") or "LowNodeUtilization",
        "profileChangedBy": profile_changes(spec, _good_inputs(revisions)),
        "logLevel": spec.get("logLevel") or "Normal",
        "managementState": management_state(kubescheduler).state,
        "revision": status.get("latestAvailableRevision", 0),
        "laterRevisions": later_revisions(
            revisions,
            nodes_by_revision(kubescheduler or {}),
            int(status.get("latestAvailableRevision") or 0),
        ),
        "leaseHolder": holder,
        "leaseProblem": facts.operand_lease.error or idle,
        "profilingSince": profiling_since,
        "silence": silence(facts),
        "conditions": {type_: c["status"] for type_, c in sorted(overall.items())},
        "progress": progressing.get("message", ""),
        "progressing": progressing.get("status") == "True",
        "problems": problems,
        "notObserved": [found["message"] for found in observed[CheckState.NOT_CHECKED]],
        "warnings": [
            *(
                {"object": found["condition"], "message": found["message"]}
                for found in observed[CheckState.WARNING]
            ),
            *_warnings(kubescheduler, "KubeScheduler", *INFORMATIONAL),
            *(
                warning
                for obj in (*profiles, *extenders, *settings, *secondaries, *load_policies)
                for warning in _warnings(
                    obj, f"{obj['kind']} {obj['metadata']['name']}", names.WARNINGS
                )
            ),
            *(
                {"object": cluster_configuration.OWNER, "message": sentence}
                for sentence in cluster_configuration.disagreements(
                    kubeadm, kubescheduler, [operand_pods.read(pod).image for pod in pods.values()]
                )
            ),
        ],
        "assignments": list(_assignments(secondaries)),
        "managed": not platform.owns_static_pods,
        "platform": condition_in(status, names.PLATFORM_CHANGED).get("message", ""),
        "secondarySchedulers": [_secondary(obj) for obj in secondaries],
        "eventsIn": platform.operator_namespace,
        "nodes": list(_nodes(status, pods, holder, verbose=verbose)),
        "loadPolicies": [_load_policy(obj) for obj in load_policies],
        "schedulerProfiles": [_profile(obj) for obj in profiles],
        "operatorSettings": [_settings(obj) for obj in settings],
        "schedulerExtenders": [_extender(obj) for obj in extenders],
    }


def _is_reported_healthy(
    kubescheduler: Object | None, overall: Mapping[str, Mapping[str, Any]]
) -> bool:
    """Whether the ClusterOperator reports that all is well; it reports nothing unless Managed."""
    if management_state(kubescheduler).state != MANAGED:
        return True
    expected = {"Available": "True", "Degraded": "False"}
    return all(overall.get(type_, {}).get("status") == good for type_, good in expected.items())


def _lease_place(platform: Platform) -> str:
    lease = lease_of(platform)
    return f"{lease.namespace}/{lease.name}"


def _observed(
    facts: ClusterFacts, with_objects: ClusterFacts
) -> dict[CheckState, list[dict[str, str]]]:
    """Return what the Pods, Deployments and Leases show now, whatever the conditions say.

    Also which of the objects the operator does not observe.
    """
    found: dict[CheckState, list[dict[str, str]]] = {state: [] for state in CheckState}
    checks = (*RUNNING, *UNOBSERVED) if silence(facts) else RUNNING
    for result in (*run_checks(checks, facts), *run_checks(NOT_OBSERVED, with_objects)):
        texts = {"condition": result.check, "reason": "Observed", "message": result.cause}
        found[result.state].append({**texts, "hint": result.hint})
    return found


async def _listed(api: Api, resource: Resource, *, noted: bool = True) -> list[Object]:
    """List the objects of a kind by name; none, and a note on stderr, without permission."""
    try:
        objects = await list_by_name(api, resource) or {}
    except Forbidden as error:
        plural = f"{resource.kind.removesuffix('s')}s"
        if noted:
            print_remark(f"note: {plural} are not shown: {error_message(error)}")
        return []
    return [obj for _, obj in sorted(objects.items())]


async def _kubeadm(api: Api, platform: Platform) -> Object | None:
    """Return the ConfigMap of kubeadm; None without permission or without kubeadm."""
    if not platform.owns_static_pods or platform.cluster_config:
        return None
    try:
        return await find_object(api, cluster_configuration.REF)
    except Forbidden:
        return None


def _profiling_since(revisions: Sequence[Revision]) -> int:
    """Return the oldest of the latest good revisions with profiling on; 0 if it is off."""
    since = 0
    for revision in reversed([revision for revision in revisions if not revision.bad]):
        if not parse_revision(revision.content).config.get("enableProfiling"):
            break
        since = revision.number
    return since


def _good_inputs(revisions: Sequence[Revision]) -> str:
    """Return the recorded inputs of the latest good revision; empty without one."""
    return next((revision.inputs for revision in reversed(revisions) if not revision.bad), "")


def _nodes(
    status: Mapping[str, Any], pods: Mapping[str, Object], holder: str, *, verbose: bool
) -> Iterator[dict[str, Any]]:
    """Yield the state of each control-plane node; `holder` is that of the schedulers' Lease."""
    entries = {entry["nodeName"]: entry for entry in status.get("nodeStatuses") or ()}
    for node in sorted({*entries, *pods}):
        pod = operand_pods.read(pods[node]) if node in pods else None
        yield {
            "node": node,
            "revision": entries.get(node, {}).get("currentRevision", 0),
            "target": entries.get(node, {}).get("targetRevision", 0),
            "runs": pod.revision if pod else None,
            "ready": bool(pod and pod.ready),
            "restarts": pod.restarts if pod else 0,
            "image": pod.image if pod else "",
            "leader": holder.startswith(f"{node}_"),
            **({"scheduler": identity(pods.get(node))} if verbose else {}),
        }


def _conditions(obj: Object | None) -> Sequence[Mapping[str, Any]]:
    conditions: Sequence[Any] | None = mapping(mapping(obj).get("status")).get("conditions")
    return conditions or ()


def _problems(
    kubescheduler: Object | None, cluster_operator: Object | None
) -> Iterator[dict[str, str]]:
    if kubescheduler is None:
        yield {
            "condition": "KubeScheduler",
            "reason": "NotFound",
            "message": NO_KUBESCHEDULER.cause,
            "hint": NO_KUBESCHEDULER.hint,
        }
    for condition in _conditions(kubescheduler):
        if severity(condition, cluster_operator) is CheckState.FAILED:
            texts = {key: condition.get(key, "") for key in ("reason", "message")}
            remedy = advice(condition["type"], texts["reason"])
            yield {"condition": condition["type"], **texts, "hint": remedy.hint}


def _state(obj: Object) -> str:
    """Return the reason of Accepted; empty until the operator has observed the object."""
    status = mapping(obj.get("status"))
    if status.get("observedGeneration") != obj["metadata"].get("generation"):
        return ""
    return str(condition_in(status, names.ACCEPTED).get("reason", ""))


def _assignments(secondaries: Sequence[Object]) -> Iterator[dict[str, Any]]:
    """Yield whether Pods are assigned, for each SecondaryScheduler with `spec.assign`."""
    for obj in secondaries:
        condition = condition_in(mapping(obj.get("status")), names.ASSIGNED)
        if condition or mapping(obj.get("spec")).get("assign") is not None:
            message = condition.get("message") or "not observed by the operator yet"
            assigned = condition.get("status") == "True"
            name = obj["metadata"]["name"]
            yield {"scheduler": name, "assigned": assigned, "message": message}


def _secondary(obj: Object) -> dict[str, Any]:
    status = mapping(obj.get("status"))
    return {
        "name": obj["metadata"]["name"],
        "ready": status.get("readyReplicas", 0),
        "replicas": mapping(obj.get("spec")).get("replicas", 0),
        "available": condition_in(status, names.AVAILABLE).get("status", "Unknown"),
        "image": ", ".join(images_that_run(obj)),
        "leader": status.get("leaseHolder", ""),
    }


def _warnings(obj: Object | None, owner: str, *types: str) -> Iterator[dict[str, str]]:
    """Yield the warnings in conditions of these types, one entry per line."""
    for condition in _conditions(obj):
        if condition["type"] in types and condition["status"] == "True":
            for line in str(condition.get("message", "")).splitlines():
                yield {"object": owner, "message": line}


def _profile(obj: Object) -> dict[str, Any]:
    status, spec = mapping(obj.get("status")), mapping(obj.get("spec"))
    return {
        "name": obj["metadata"]["name"],
        "schedulerName": status.get("schedulerName") or spec.get("schedulerName") or "",
        "scheduler": spec.get("scheduler") or "",
        "state": _state(obj),
        "generation": obj["metadata"].get("generation", 0),
        "acceptedGeneration": status.get("acceptedGeneration", 0),
        "message": condition_in(status, names.ACCEPTED).get("message", ""),
    }


def _settings(obj: Object) -> dict[str, Any]:
    # Loaded here, because few clusters have these settings.
    from ...config.effective.settings.validate import OFF, placement_settings

    pods = mapping(mapping(obj.get("spec")).get("pods"))
    mode = placement_settings(obj.get("spec")).mode
    accepted = condition_in(mapping(obj.get("status")), names.ACCEPTED)
    return {
        "name": obj["metadata"]["name"],
        "pods": sorted(name for name, value in pods.items() if value),
        "placementCheck": mode if mode != OFF else "",
        "state": _state(obj),
        "message": accepted.get("message", ""),
    }


def _load_policy(obj: Object) -> dict[str, Any]:
    status = mapping(obj.get("status"))
    available = condition_in(status, names.AVAILABLE)
    return {
        "name": obj["metadata"]["name"],
        "source": status.get("source", ""),
        "nodes": status.get("nodes") or {},
        "accepted": condition_in(status, names.ACCEPTED).get("status", "Unknown"),
        "available": available.get("status", "Unknown"),
        "message": available.get("message", ""),
    }


def _extender(obj: Object) -> dict[str, Any]:
    status = mapping(obj.get("status"))
    agent = mapping(status.get("agent"))
    return {
        "name": obj["metadata"]["name"],
        "scheduler": mapping(obj.get("spec")).get("scheduler") or "",
        "state": _state(obj),
        "available": condition_in(status, names.AVAILABLE).get("status", "Unknown"),
        "endpoint": status.get("endpoint") or "",
        "ready": agent.get("ready", 0),
        "desired": agent.get("desired", 0),
    }


Columns: TypeAlias = Mapping[str, Callable[[Mapping[str, Any]], str]]
"""The columns of a table: heading -> the cell of an entry of the report."""

_NODES: Final[Columns] = {
    "NODE": lambda node: node["node"],
    "REVISION": lambda node: str(node["revision"] or ("stock" if node["runs"] == 0 else "-")),
    "TARGET": lambda node: str(node["target"] or "-"),
    "READY": lambda node: "yes" if node["ready"] else "no",
    "RESTARTS": lambda node: str(node["restarts"]),
    "LEADER": lambda node: "yes" if node["leader"] else "",
    "IMAGE": lambda node: node["image"],
}
_SECONDARIES: Final[Columns] = {
    "SECONDARYSCHEDULER": lambda scheduler: scheduler["name"],
    "READY": lambda scheduler: f"{scheduler['ready']}/{scheduler['replicas']}",
    "AVAILABLE": lambda scheduler: scheduler["available"],
    "LEADER": lambda scheduler: scheduler["leader"],
    "IMAGE": lambda scheduler: scheduler["image"],
}
_PROFILES: Final[Columns] = {
    "PROFILE": lambda profile: profile["name"],
    "SCHEDULERNAME": lambda profile: profile["schedulerName"] or profile["name"],
    "SCHEDULER": lambda profile: profile["scheduler"] or "-",
    "STATE": lambda profile: profile["state"] or "not observed",
    "RUNS": lambda profile: (
        f"generation {profile['acceptedGeneration']} of {profile['generation']}"
        if profile["state"] == "LastAcceptedInUse" and profile["acceptedGeneration"]
        else "-"
    ),
}
_EXTENDERS: Final[Columns] = {
    "EXTENDER": lambda extender: extender["name"],
    "SCHEDULER": lambda extender: extender["scheduler"] or "-",
    "STATE": lambda extender: extender["state"] or "not observed",
    "AVAILABLE": lambda extender: extender["available"],
    "AGENTS": lambda extender: (
        f"{extender['ready']}/{extender['desired']}" if extender["desired"] else "-"
    ),
    "ENDPOINT": lambda extender: extender["endpoint"] or "not called",
}


def _table(columns: Columns, entries: Sequence[Mapping[str, Any]]) -> list[str]:
    rows = [[cell(entry) for cell in columns.values()] for entry in entries]
    return format_table([list(columns), *rows])


def render(report: Mapping[str, Any]) -> str:
    lines = [
        *_render_problems(report["problems"]),
        *_render_scheduler(report),
        *_render_settings(report),
    ]
    if not report["managed"]:
        lines += ["", *_table(_NODES, report["nodes"])]
    if report["managed"] or report["secondarySchedulers"]:
        lines += ["", *_table(_SECONDARIES, report["secondarySchedulers"])]
    if report["schedulerProfiles"]:
        lines += ["", *_render_profiles(report["schedulerProfiles"])]
    if report["schedulerExtenders"]:
        lines += ["", *_table(_EXTENDERS, report["schedulerExtenders"])]
    if report["warnings"]:
        lines += ["", *_render_warnings(report["warnings"])]
    if report["notObserved"]:
        lines += ["", *(f"Not known  {reason}" for reason in report["notObserved"])]
    for node in report["nodes"]:
        if "scheduler" in node:
            lines += ["", *render_identity(node["node"], node["scheduler"])]
    lines += ["", *_next_steps(report)]
    return text_of(lines).rstrip()


def _render_problems(problems: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = []
    for problem in problems:
        lines.append(f"PROBLEM  {problem['condition']} ({problem['reason']})")
        lines += [f"         {line}" for line in str(problem["message"]).splitlines()]
    return [*lines, ""] if lines else []


def _render_scheduler(report: Mapping[str, Any]) -> list[str]:
    """Render the control plane's scheduler; one that the provider runs has no nodes here."""
    states = "  ".join(
        f"{type_}={report['conditions'].get(type_, 'Unknown')}"
        for type_ in ("Available", "Progressing", "Degraded", "Upgradeable")
    )
    if report["silence"]:
        since = "observed before the operator stopped"
        states += f"  ({since if report['conditions'] else 'no operator has observed them'})"
    changes = f", changed by {report['profileChangedBy']}" if report["profileChangedBy"] else ""
    lines = [
        f"Scheduler  {states}",
        f"Profile    {report['profile']}{changes}   logLevel {report['logLevel']}   "
        f"managementState {report['managementState']}",
    ]
    if report["managed"]:
        return [*lines, f"Platform   {report['platform']}"]
    return [
        *lines,
        f"Revision   {_revision(report)}",
        f"Leader     {report['leaseHolder'] or '- (' + report['leaseProblem'] + ')'}",
    ]


_OPEN: Final = {
    IN_PROGRESS: "is in progress",
    NOT_RECORDED: "has no recorded outcome",
    names.OUTCOME_INSTALLED: "is installed",
}
"""The outcomes of revisions that nodes may move to, as predicates."""


def _revision(report: Mapping[str, Any]) -> str:
    """Render the latest revision, or what happened to those after the ones that nodes run."""
    later = report["laterRevisions"]
    if not later:
        return str(report["revision"] or "none yet")
    shown = [
        f"{each['revision']} {_OPEN.get(each['outcome']) or ended(each['outcome'])}"
        for each in later[:_REVISIONS_SHOWN]
    ]
    if len(later) > len(shown):
        shown.append(f"and {len(later) - len(shown)} more before")
    runs = sorted({node["revision"] for node in report["nodes"] if node["revision"]})
    places = " and ".join(map(str, runs)) or "no revision"
    one = len(report["nodes"]) == 1
    who, are, stay = ("node", "is", "stays") if one else ("nodes", "are", "stay")
    verb = are if any(each["outcome"] in _OPEN for each in later) else stay
    see = "; see kubectl scheduler history" if any(each["message"] for each in later) else ""
    return f"{', '.join(shown)}; the {who} {verb} at {places}{see}"


def _render_settings(report: Mapping[str, Any]) -> list[str]:
    lines = []
    if report["profilingSince"]:
        lines.append(
            f"Profiling  on since revision {report['profilingSince']}; to turn it off, remove "
            "enableProfiling from the KubeScheduler's spec.unsupportedConfigOverrides"
        )
    for settings in report["operatorSettings"]:
        fields = [f"pods.{name}" for name in settings["pods"]]
        if settings["placementCheck"]:
            fields.append(f"placementCheck {settings['placementCheck']}")
        state = settings["state"] or "not observed"
        lines.append(f"Settings   {state}: {', '.join(fields) or 'nothing is set'}")
    for policy in report["loadPolicies"]:
        source = f" ({policy['source']})" if policy["source"] else ""
        message = policy["message"] or "not observed by the operator yet"
        lines.append(f"Load       {policy['name']}{source}: {message}")
    for assignment in report["assignments"]:
        state = "" if assignment["assigned"] else "not assigned: "
        lines.append(f"Assigned   {assignment['scheduler']}: {state}{assignment['message']}")
    if report["progressing"]:
        lines.append(f"Rollout    {report['progress']}")
    return lines


def _render_profiles(profiles: Sequence[Mapping[str, Any]]) -> list[str]:
    """Render the number of accepted profiles, and a table of the others."""
    accepted = [p for p in profiles if p["state"] == "Accepted"]
    others = [p for p in profiles if p["state"] != "Accepted"]
    summary = f"SchedulerProfiles  {len(accepted)} of {len(profiles)} accepted"
    return [summary, *(_table(_PROFILES, others) if others else ())]


def _render_warnings(warnings: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = [f"Warnings   {len(warnings)}:"]
    shown = warnings[:_WARNINGS_SHOWN]
    lines += [f"  {warning['object']}: {warning['message']}" for warning in shown]
    if len(warnings) > _WARNINGS_SHOWN:
        lines.append(
            f"  and {len(warnings) - _WARNINGS_SHOWN} more; see kubectl scheduler status -o json"
        )
    return lines


def _next_steps(report: Mapping[str, Any]) -> list[str]:
    problems = report["problems"]
    if not problems:
        if report["revision"] or report["managed"]:
            return []
        return ["Next: none; the operator creates the first revision when it runs."]
    lines = [
        *(hint for hint in dict.fromkeys(problem["hint"] for problem in problems) if hint),
        "Events:",
        f"kubectl -n {report['eventsIn']} get events --sort-by=.lastTimestamp",
    ]
    return [f"{'Next: ' if number == 0 else ' ' * 6}{line}" for number, line in enumerate(lines)]
