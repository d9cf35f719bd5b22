"""Follows the rollout of a SecondaryScheduler: its Deployment replaces one Pod after the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...base import names
from ...base.objects import mapping
from ...config.effective.pipeline import is_ours
from ...operator.status.conditions import condition_in
from ...operator.status.generations import is_scheduler_observed
from .follow_rollout import End, blocking_problem, settled


@dataclass(frozen=True, slots=True)
class SchedulerRollout:
    configuration: str  # the hash of the content that its Pods run, or are about to
    pods: str  # how many are Ready
    problem: str  # an error that the operator retries
    end: End | None  # the outcome; None while the rollout is in progress
    message: str  # the details of the outcome
    waits: Mapping[str, str] = field(default_factory=dict)  # by the name of the scheduler


def read_scheduler(
    scheduler: Mapping[str, Any],
    kubescheduler: Mapping[str, Any],
    source: Mapping[str, Any] | None = None,
) -> SchedulerRollout:
    """Read the state of a SecondaryScheduler's rollout.

    For ours, errors of KubeScheduler count as well, and it has no end before the operator has
    observed KubeScheduler and `source`, the Scheduler "cluster".
    """
    name = str(scheduler["metadata"]["name"])
    status = mapping(scheduler.get("status"))
    progressing = condition_in(status, names.PROGRESSING)
    degraded = condition_in(status, names.DEGRADED)
    generation = scheduler["metadata"].get("generation", 0)
    observed = status.get("observedGeneration", 0) == generation
    replicas = mapping(scheduler.get("spec")).get("replicas", 1)
    ready = int(status.get("readyReplicas") or 0)
    # During a rollout there is one more Pod.
    pods = f"{ready} Pods are Ready, {replicas} are desired"
    end: End | None = None
    message = ""
    problem, refused = "", ""
    if degraded.get("status") == "True":
        problem = str(degraded.get("message") or degraded.get("reason", ""))
    if is_ours(scheduler):
        management = mapping(kubescheduler.get("spec")).get("managementState") or "Managed"
        if management not in ("Managed", "Force"):
            refused = f"managementState of the KubeScheduler is {management}: nothing is rolled out"
        refused = refused or blocking_problem(kubescheduler)
        seen = mapping(kubescheduler.get("status")).get("observedGeneration", 0)
        observed = observed and seen == mapping(kubescheduler.get("metadata")).get("generation", 0)
        observed = observed and is_scheduler_observed(kubescheduler, source)
    if observed and (refused or problem) and progressing.get("status") == "False":
        end, message = End.FAILED, refused or problem
    elif observed and progressing.get("status") == "False":
        done = f"configuration {status.get('configHash', '')} runs; {pods}"
        end, message = settled(kubescheduler if is_ours(scheduler) else {}, done)
    waits = {name: str(progressing.get("message", ""))} if end is None else {}
    shown = problem if end is None else ""
    return SchedulerRollout(str(status.get("configHash") or ""), pods, shown, end, message, waits)


def scheduler_changes(before: SchedulerRollout | None, after: SchedulerRollout) -> list[str]:
    """Return one line per change in `after`."""
    lines = []
    if before is None or before.configuration != after.configuration:
        lines.append(f"configuration: {after.configuration or 'none yet'}")
    if before is None or before.pods != after.pods:
        lines.append(after.pods)
    known_waits = before.waits.values() if before is not None else ()
    lines += [wait for wait in after.waits.values() if wait not in known_waits]
    if after.problem and (before is None or before.problem != after.problem):
        lines.append(after.problem)
    return [line for line in lines if line]
