"""A KubeSchedulerConfiguration as the objects that people apply."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ..base.findings import Problem
from ..schedulerconfig.merge import DEFAULT_SCHEDULER
from .changes import Change, Report

_API_VERSION: Final = "kube-scheduler-operator.dev/v1alpha1"
_KIND: Final = "SchedulerProfile"
_ELECTION: Final = ("leaseDuration", "renewDeadline", "retryPeriod")
_SECOND_FIELDS: Final = (
    "parallelism", "percentageOfNodesToScore", "podInitialBackoffSeconds", "podMaxBackoffSeconds",
    "enableProfiling", "enableContentionProfiling", "delayCacheUntilActive", "extenders",
)  # fmt: skip
_OURS: Final = ("apiVersion", "kind", "profiles", "clientConnection", "leaderElection")
"""What is the operator's own business: the connection to the API server and the election."""


@dataclass(frozen=True, slots=True)
class Converted:
    """What comes of it.

    Attributes:
        objects: for `kubectl apply`.
        changes: what is different, in no order that means something.
        problems: why the scheduler would not start with it.
    """

    objects: tuple[dict[str, Any], ...]
    changes: tuple[Change, ...]
    problems: tuple[Problem, ...] = ()


def own_object(kind: str, name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    """An object of our own group."""
    metadata = {"name": name}
    return {"apiVersion": _API_VERSION, "kind": kind, "metadata": metadata, "spec": dict(spec)}


def scheduler_profiles(config: Mapping[str, Any]) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """(SchedulerProfiles, fields of the configuration that no SchedulerProfile can say).

    The base is None, kube-scheduler's own defaults, because that is what a file's lists are merged
    with. An object has the name of its profile, which is that of pods' `spec.schedulerName`.
    """
    objects = []
    for profile in config.get("profiles") or [{}]:
        name = profile.get("schedulerName") or DEFAULT_SCHEDULER
        spec = {key: value for key, value in profile.items() if key != "schedulerName"}
        objects.append(own_object(_KIND, name, {"base": "None", **spec}))
    return objects, tuple(key for key in config if key not in _OURS)


def secondary_scheduler(
    config: Mapping[str, Any],
    name: str,
    namespace: str,
    served: Mapping[str, str],
    report: Report,
) -> dict[str, Any]:
    """A SecondaryScheduler that does what a scheduler with this configuration did.

    Args:
        config: KubeSchedulerConfiguration v1.
        name: of the object.
        namespace: where it is to run.
        served: schedulerName -> the one under which the profile runs now, where it is another.
        report: is told what differs.
    """
    kept = {key: config[key] for key in _SECOND_FIELDS if key in config}
    election = config.get("leaderElection") or {}
    timings = {key: election[key] for key in _ELECTION if key in election}
    if timings:
        kept["leaderElection"] = timings
    if election.keys() - timings.keys():
        why = f"its replicas elect by the Lease {namespace}/{name}, which nobody else has"
        report.same(("leaderElection",), "only its timings are kept", why)
    connection = config.get("clientConnection") or {}
    kept_connection = {key: value for key, value in connection.items() if key != "kubeconfig"}
    if kept_connection:
        kept["clientConnection"] = kept_connection
    if "kubeconfig" in connection:
        path = ("clientConnection", "kubeconfig")
        report.same(path, "left out", "a SecondaryScheduler has an account of its own")
    profiles = []
    for index, profile in enumerate(config.get("profiles") or [{}]):
        before = str(profile.get("schedulerName") or DEFAULT_SCHEDULER)
        after = served.get(before, before)
        if after != before:
            why = (
                "pods that ask for it are the control plane's scheduler's, and two would fight "
                f'over them; pods have to ask for "{after}" (spec.schedulerName)'
            )
            where = ("profiles", index, "schedulerName")
            report.differs(where, f"{before} is {after}", why)
        profiles.append({**profile, "schedulerName": after})
    spec: dict[str, Any] = {"namespace": namespace}
    if kept:
        spec["config"] = kept
    return own_object("SecondaryScheduler", name, {**spec, "profiles": profiles})
