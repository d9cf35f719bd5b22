"""The status of a LoadPolicy: its conditions, and for how many nodes the load is known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from ...base import names
from ...base.decoding import sentence
from ...base.findings import listing
from ...base.objects import Object
from ...base.times import rfc3339, timestamp
from ...kube.resource import (
    CONFIG_MAPS,
    DAEMON_SETS,
    DEPLOYMENTS,
    KUBE_SCHEDULERS,
    LOAD_POLICIES,
)
from ...scheduling.load.policy import NODE_METRICS
from ...scheduling.load.reported_state import ReportedState
from ..model.plan import Event
from ..model.snapshot import Snapshot
from ..status.accepted import (
    ACCEPTED,
    LAST_ACCEPTED,
    NOT_IN_USE,
    accepted_version,
    remembered,
    waiting_condition,
)
from ..status.conditions import (
    AS_EXPECTED,
    Condition,
    aggregate,
    condition_in,
    merge_conditions,
    problem_condition,
)
from ..status.object_status import Report
from ..status.readiness import check_condition, readiness, rolling_out
from .request import EffectiveRequest

ANOTHER: Final = "AnotherPolicy"
SYNC_ERROR: Final = "SyncError"
REPORT_TIMEOUT: Final = 420.0
"""Seconds without a report until an annotator counts as failed; it reports every five minutes."""
START_TIMEOUT: Final = 120.0
"""Seconds for all workloads to start, image pulls included."""
_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class StatusInput:
    obj: Object  # the LoadPolicy
    effective: EffectiveRequest
    another: str = ""  # name of the LoadPolicy that is used instead; empty if this one is
    current: str = ""  # digest of the policy that the annotator should apply; empty: not written

    @property
    def name(self) -> str:
        return str(self.obj["metadata"]["name"])


def report(snapshot: Snapshot, inputs: StatusInput) -> Report:
    before: Mapping[str, Any] = inputs.obj.get("status") or {}
    reported = _reported(snapshot, inputs)
    accepted = _accepted(inputs, before)
    exporters = _exporters(snapshot, inputs)
    available, wait = _available(snapshot, inputs, reported, exporters)
    trouble = snapshot.write_errors.get(LOAD_POLICIES.named(inputs.name), "")
    is_wrong = accepted.status != "True" and not inputs.effective.is_held
    rejected = accepted if is_wrong else None
    degraded = _degraded(rejected, available, trouble, reported, exporters)
    own = (accepted, available, degraded)
    current = (*own, *readiness((*own, *_scheduler(snapshot, inputs, reported))))
    generation = int(inputs.obj["metadata"].get("generation") or 0)
    in_force = dict(inputs.effective.spec) if accepted.status == "True" else None
    status = remembered(before, generation, in_force)
    conditions = before.get("conditions") or ()
    status["conditions"] = merge_conditions(conditions, current, snapshot.now)
    if inputs.effective.request is not None and not inputs.another:
        status["source"] = inputs.effective.request.policy.source.type
    if reported.time is not None:
        status |= _counts(reported, reported.time)
    serious = [
        condition.message or condition.reason
        for condition in (rejected, available)
        if condition is not None
        and condition.status != "True"
        and condition.reason != names.REASON_STARTING
    ]
    return Report(
        status,
        _events(inputs.name, before, status),
        aggregate([*serious, *([trouble] if trouble else [])]),
        wait,
    )


def _reported(snapshot: Snapshot, inputs: StatusInput) -> ReportedState:
    if inputs.another or inputs.effective.request is None:
        return ReportedState()
    return ReportedState.read(snapshot.loads.objects.get(CONFIG_MAPS, {}).get(names.LOAD_STATE))


def _scheduler(
    snapshot: Snapshot, inputs: StatusInput, reported: ReportedState
) -> Iterator[Condition]:
    """Why an accepted spec is not in use yet."""
    if inputs.another:
        return
    check = condition_in(snapshot.status, names.PLACEMENT_CHECK_PROGRESSING)
    if inputs.effective.is_held and check.get("status") == "True":
        yield check_condition(str(check.get("reason")), KUBE_SCHEDULERS.kind)
    # An annotator of an earlier version does not report which policy it applies.
    if not inputs.current or reported.policy not in ("", inputs.current):
        yield rolling_out("the annotator has not reported a cycle with the current spec yet")


def _counts(reported: ReportedState, cycle: datetime) -> dict[str, Any]:
    counts = {
        "total": reported.nodes, "known": reported.known,
        "stale": reported.staleCount, "missing": reported.missingCount,
    }  # fmt: skip
    status: dict[str, Any] = {"lastCycle": rfc3339(cycle), "nodes": counts}
    if reported.stale:
        status["staleNodes"] = reported.stale
    if reported.missing:
        status["missingNodes"] = reported.missing
    return status


# --- conditions -------------------------------------------------------------------------------


def _accepted(inputs: StatusInput, before: Mapping[str, Any]) -> Condition:
    wrong = aggregate(sentence(problem) for problem in inputs.effective.problems)
    if inputs.another:
        message = (
            f'LoadPolicy "{inputs.another}" is older and already annotates all nodes; '
            "a cluster has one LoadPolicy: delete one of the two"
        )
        return Condition(names.ACCEPTED, "False", ANOTHER, message)
    if inputs.effective.is_held:
        uses_last_accepted = inputs.effective.request is not None
        return waiting_condition(before, uses_last_accepted=uses_last_accepted)
    if not wrong:
        return Condition(names.ACCEPTED, "True", ACCEPTED)
    if inputs.effective.uses_last_accepted:
        message = f"{accepted_version(before)} stays in use\n{wrong}"
        return Condition(names.ACCEPTED, "False", LAST_ACCEPTED, message)
    return Condition(names.ACCEPTED, "False", NOT_IN_USE, f"no version of it is valid\n{wrong}")


def _available(
    snapshot: Snapshot, inputs: StatusInput, reported: ReportedState, exporters: str
) -> tuple[Condition, float | None]:
    """Return whether load is measured and annotated, and seconds until that may change."""
    if inputs.another or inputs.effective.request is None:
        return _is_not("NotInForce", "the LoadPolicy is not in use"), None
    deployments = snapshot.loads.objects.get(DEPLOYMENTS, {})
    deployment = deployments.get(f"{names.LOAD_ANNOTATOR}-{inputs.name}") or {}
    ready = int((deployment.get("status") or {}).get("readyReplicas") or 0)
    age = (snapshot.now - reported.time).total_seconds() if reported.time is not None else None
    allowed = max(REPORT_TIMEOUT, 3 * inputs.effective.request.policy.cycle)
    born = timestamp(inputs.obj["metadata"].get("creationTimestamp"))
    left = START_TIMEOUT - (snapshot.now - born).total_seconds() if born is not None else 0.0
    if not ready:
        message = "no pod of the annotator is Ready"
        if left > 0:
            return _is_not(names.REASON_STARTING, message), left + 1.0
        return _is_not("NoReadyAnnotator", message), None
    if age is None or abs(age) > allowed:  # in the future: by another clock
        if age is None and left > 0:
            return _is_not(names.REASON_STARTING, "the first cycle has not finished"), left + 1.0
        when = f"for {age:.0f} s" if age is not None and age > 0 else "yet"
        return _is_not("NoCycle", f"the annotator has not reported a cycle {when}"), None
    wait = allowed - age + 1.0
    if not reported.known and reported.nodes:
        why = "; ".join(filter(None, (exporters, reported.error)))
        return _is_not("NoLoadKnown", f"no node's load is known{why and ': '}{why}"), wait
    message = f"load known for {reported.known} of {reported.nodes} nodes"
    return Condition(names.AVAILABLE, "True", AS_EXPECTED, message), wait


def _is_not(reason: str, message: str) -> Condition:
    return Condition(names.AVAILABLE, "False", reason, message)


def _exporters(snapshot: Snapshot, inputs: StatusInput) -> str:
    """Count the exporter pods that are not Ready; empty if all are Ready.

    Their Pods, which have the reason, are not read.
    """
    request = inputs.effective.request
    if request is None or request.policy.source.type != NODE_METRICS or inputs.another:
        return ""
    daemon_sets = snapshot.loads.objects.get(DAEMON_SETS, {})
    exporter = daemon_sets.get(f"{names.NODE_METRICS}-{inputs.name}") or {}
    status = exporter.get("status") or {}
    wanted = int(status.get("desiredNumberScheduled") or 0)
    ready = int(status.get("numberReady") or 0)
    if ready >= wanted:
        return ""
    if not ready and not status.get("currentNumberScheduled"):
        return _without_pods(snapshot, f"{names.NODE_METRICS}-{inputs.name}", wanted)
    source = request.policy.source
    namespace = snapshot.platform.target_namespace
    return (
        f"node-metrics is Ready on {ready} of {wanted} nodes; kubectl -n {namespace} get pods "
        f"-l app={names.NODE_METRICS} -o wide shows the others, and their logs why: another "
        f"program may use port {source.port} of the node"
    )


def _without_pods(snapshot: Snapshot, daemon_set: str, wanted: int) -> str:
    """Name the usual reason; the events of the DaemonSet, which have it, are not read."""
    namespace = snapshot.platform.target_namespace
    return (
        f"no Pod of node-metrics exists on any of {wanted} nodes: kubectl -n {namespace} describe "
        f"daemonset {daemon_set} shows why; if Pod Security refuses it, as on managed control "
        "planes, set spec.source.type to MetricsServer or KubeletSummary"
    )


def _degraded(
    rejected: Condition | None,  # None unless the current spec has an error
    available: Condition,
    trouble: str,
    reported: ReportedState,
    exporters: str,
) -> Condition:
    problems: list[tuple[str, str]] = []
    if rejected is not None:
        problems.append((rejected.reason, rejected.message))
    if trouble:
        problems.append((SYNC_ERROR, trouble))
    if available.status != "True" and available.reason not in (names.REASON_STARTING, "NotInForce"):
        problems.append((available.reason, available.message))
    if reported.staleCount or reported.missingCount:
        problems.append(("NodesUnknown", _unknown(reported)))
    if exporters:
        problems.append(("ExporterNotReady", exporters))
    return problem_condition(names.DEGRADED, problems)


def _unknown(reported: ReportedState) -> str:
    parts = []
    for count, some, what in (
        (reported.staleCount, reported.stale, "stale"),
        (reported.missingCount, reported.missing, "never known"),
    ):
        if count:
            shown = listing(some[:_SHOWN]).replace(" or ", " and ")
            more = f" and {count - _SHOWN} more" if count > _SHOWN else ""
            where = f" ({shown}{more})" if shown else ""
            parts.append(f"load {what} for {count} of {reported.nodes} nodes{where}")
    why = f": {reported.error}" if reported.error else ""
    return f"{'; '.join(parts)}{why}; pods are placed there as if the load were average"


# --- events -----------------------------------------------------------------------------------


def _events(name: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[Event, ...]:
    """Send an event for each condition whose status or reason changed."""
    old = {c["type"]: c for c in before.get("conditions") or ()}
    events = []
    for condition in after["conditions"]:
        kind, status = condition["type"], condition["status"]
        if kind not in (names.ACCEPTED, names.AVAILABLE):
            continue
        was = old.get(kind, {})
        keys = ("status", "reason")
        starting = status != "True" and condition.get("reason") in (
            names.REASON_STARTING,
            "NotInForce",
        )
        first = not was and (status == "True" or kind == names.AVAILABLE)
        if starting or first or [was.get(key) for key in keys] == [condition.get(k) for k in keys]:
            continue
        text = condition.get("message") or condition.get("reason", "")
        message = f'LoadPolicy "{name}": {kind} is {status}: {text}'
        events.append(
            Event("LoadPolicyStatusChanged", message, "Normal" if status == "True" else "Warning")
        )
    return tuple(events)
