"""KubeSchedulerConfiguration to objects, for the control plane's scheduler or a secondary one."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from ...kube.resource import SCHEDULER_PROFILES, SECONDARY_SCHEDULERS
from ..language.schema import DEFAULT_SCHEDULER
from .changes import ConversionLog
from .extender_objects import extender_objects
from .operator_objects import operator_object

DEFAULT_NAME: Final = "my-scheduler"
"""Name of a SecondaryScheduler for a configuration of default-scheduler."""

_KIND: Final = SCHEDULER_PROFILES.kind
_ELECTION: Final = ("leaseDuration", "renewDeadline", "retryPeriod")
_SECOND_FIELDS: Final = (
    "parallelism", "percentageOfNodesToScore", "podInitialBackoffSeconds", "podMaxBackoffSeconds",
    "enableProfiling", "enableContentionProfiling", "delayCacheUntilActive",
)  # fmt: skip
_CONVERTED_FIELDS: Final = ("apiVersion", "kind", "profiles", "extenders")
_OPERATOR_FIELDS: Final = ("clientConnection", "leaderElection")


def control_plane_objects(
    config: Mapping[str, Any], used: set[str], report: ConversionLog
) -> list[dict[str, Any]]:
    """Create SchedulerProfiles and SchedulerExtenders for the control plane's scheduler.

    The base of a profile is None: kube-scheduler's defaults, with which a file's lists are merged.
    An object's name is the schedulerName of its profile. `used` contains the names of other
    SchedulerExtenders; the new ones are added.
    """
    objects = []
    for profile in config.get("profiles") or [{}]:
        name = profile.get("schedulerName") or DEFAULT_SCHEDULER
        spec = {key: value for key, value in profile.items() if key != "schedulerName"}
        objects.append(operator_object(SCHEDULER_PROFILES, name, {"base": "None", **spec}))
    objects += extender_objects(config, None, used, report).objects
    for name in config:
        if name in _OPERATOR_FIELDS:
            why = "the operator sets it for the control plane's scheduler"
            report.same((name,), "removed", why)
        elif name not in _CONVERTED_FIELDS:
            why = (
                f"a {_KIND} does not have this field; if it is still needed, set it in "
                "spec.unsupportedConfigOverrides of KubeScheduler"
            )
            report.lost((name,), "removed", why)
    return objects


def served_names(config: Mapping[str, Any], name: str) -> dict[str, str]:
    """Map old to new schedulerNames of a SecondaryScheduler's profiles.

    Only the control plane's scheduler serves the default one, which becomes `name`.
    """
    names = [
        str(profile.get("schedulerName") or DEFAULT_SCHEDULER)
        for profile in config.get("profiles") or [{}]
    ]
    other = name or DEFAULT_NAME
    return {old: other if old == DEFAULT_SCHEDULER else old for old in names}


def secondary_objects(
    config: Mapping[str, Any],
    name: str,
    namespace: str,
    served: Mapping[str, str],
    used: set[str],
    report: ConversionLog,
    *,
    replaced: Collection[int] = (),
) -> list[dict[str, Any]]:
    """Create an equivalent SecondaryScheduler, and its extenders.

    `served` maps old to new schedulerNames. `used` is as in `control_plane_objects`. Other objects
    replace the extenders with the indexes `replaced`.
    """
    settings = {key: config[key] for key in _SECOND_FIELDS if key in config}
    extenders = extender_objects(config, name, used, report, replaced=replaced)
    if extenders.kept:
        settings["extenders"] = list(extenders.kept)
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
    scheduler = operator_object(SECONDARY_SCHEDULERS, name, {**spec, "profiles": profiles})
    return [scheduler, *extenders.objects]
