"""A KubeSchedulerConfiguration as objects of the operator's API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ..base.findings import Problem
from ..schedulerconfig.schema import DEFAULT_SCHEDULER
from .changes import Change, ConversionLog

_API_VERSION: Final = "kube-scheduler-operator.dev/v1alpha1"
_KIND: Final = "SchedulerProfile"
_ELECTION: Final = ("leaseDuration", "renewDeadline", "retryPeriod")
_SECOND_FIELDS: Final = (
    "parallelism", "percentageOfNodesToScore", "podInitialBackoffSeconds", "podMaxBackoffSeconds",
    "enableProfiling", "enableContentionProfiling", "delayCacheUntilActive", "extenders",
)  # fmt: skip
_OPERATOR_FIELDS: Final = ("apiVersion", "kind", "profiles", "clientConnection", "leaderElection")
"""Fields that the operator sets, or that SchedulerProfiles contain."""


@dataclass(frozen=True, slots=True)
class ConvertedObjects:
    """The result of a conversion to objects.

    Attributes:
        objects: for `kubectl apply`.
        changes: differences from the old documents, unordered.
        problems: errors with which the scheduler does not start.
    """

    objects: tuple[dict[str, Any], ...]
    changes: tuple[Change, ...]
    problems: tuple[Problem, ...] = ()


def operator_object(kind: str, name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    """An object of the operator's API group."""
    metadata = {"name": name}
    return {"apiVersion": _API_VERSION, "kind": kind, "metadata": metadata, "spec": dict(spec)}


def scheduler_profiles(config: Mapping[str, Any]) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """(SchedulerProfiles, fields of the configuration that SchedulerProfiles do not have).

    The base is None, kube-scheduler's defaults, with which a file's lists are merged. An object's
    name is the schedulerName of its profile.
    """
    objects = []
    for profile in config.get("profiles") or [{}]:
        name = profile.get("schedulerName") or DEFAULT_SCHEDULER
        spec = {key: value for key, value in profile.items() if key != "schedulerName"}
        objects.append(operator_object(_KIND, name, {"base": "None", **spec}))
    return objects, tuple(key for key in config if key not in _OPERATOR_FIELDS)


def secondary_scheduler(
    config: Mapping[str, Any],
    name: str,
    namespace: str,
    served: Mapping[str, str],
    report: ConversionLog,
) -> dict[str, Any]:
    """A SecondaryScheduler equivalent to a scheduler with this configuration (v1).

    `served` maps old to new schedulerNames, for renamed profiles.
    """
    settings = {key: config[key] for key in _SECOND_FIELDS if key in config}
    election = config.get("leaderElection") or {}
    timings = {key: election[key] for key in _ELECTION if key in election}
    if timings:
        settings["leaderElection"] = timings
    if election.keys() - timings.keys():
        why = f"its replicas use the Lease {namespace}/{name}, which belongs to it alone"
        report.same(("leaderElection",), "reduced to its timings", why)
    connection = config.get("clientConnection") or {}
    client = {key: value for key, value in connection.items() if key != "kubeconfig"}
    if client:
        settings["clientConnection"] = client
    if "kubeconfig" in connection:
        path = ("clientConnection", "kubeconfig")
        report.same(path, "removed", "a SecondaryScheduler has its own ServiceAccount")
    profiles = []
    for index, profile in enumerate(config.get("profiles") or [{}]):
        before = str(profile.get("schedulerName") or DEFAULT_SCHEDULER)
        after = served.get(before, before)
        if after != before:
            why = (
                "the control plane's scheduler serves that name, and two schedulers would place "
                f'the same pods; set spec.schedulerName of pods to "{after}"'
            )
            where = ("profiles", index, "schedulerName")
            report.differs(where, f"{before} renamed to {after}", why)
        profiles.append({**profile, "schedulerName": after})
    spec: dict[str, Any] = {"namespace": namespace}
    if settings:
        spec["config"] = settings
    return operator_object("SecondaryScheduler", name, {**spec, "profiles": profiles})
