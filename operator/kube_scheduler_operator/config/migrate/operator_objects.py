"""A configuration as objects of the operator: of the control plane's scheduler, or a secondary one.

A SchedulerExtender has other defaults than kube-scheduler, so all fields are set. Settings that it
does not support are reported, or kept in the configuration of a SecondaryScheduler.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from ...base.crd_schema import validate_object
from ...base.findings import Path, Problem, format_path, listing
from ...base.go_values import nanoseconds
from ...kube.resource import (
    SCHEDULER_EXTENDERS,
    SCHEDULER_PROFILES,
    SECONDARY_SCHEDULERS,
    Resource,
)
from ..language.schema import DEFAULT_SCHEDULER, TIMINGS
from ..language.warnings.configuration import scheduler_names
from .changes import Change, ConversionLog
from .old_schema import duration

DEFAULT_NAME: Final = "my-scheduler"
"""Name of a SecondaryScheduler for a configuration of default-scheduler."""

_SECOND_FIELDS: Final = (
    "parallelism", "percentageOfNodesToScore", "percentageOfPlacementsToScore",
    "podInitialBackoffSeconds", "podMaxBackoffSeconds",
    "enableProfiling", "enableContentionProfiling", "delayCacheUntilActive",
)  # fmt: skip
_CONVERTED_FIELDS: Final = ("apiVersion", "kind", "profiles", "extenders")
_OPERATOR_FIELDS: Final = ("clientConnection", "leaderElection")


@dataclass(frozen=True, slots=True)
class ConvertedObjects:
    objects: tuple[dict[str, Any], ...]  # for `kubectl apply`
    changes: tuple[Change, ...]  # differences from the old documents, unordered
    problems: tuple[Problem, ...] = ()  # errors with which the scheduler does not start


def operator_object(resource: Resource, name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": name},
        "spec": dict(spec),
    }


def free_name(base: str, used: Collection[str]) -> str:
    """Return `base`, numbered from 2 if the name is used."""
    name, number = base, 1
    while name in used:
        number += 1
        name = f"{base}-{number}"
    return name


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
                "a SchedulerProfile does not have this field; if it is still needed, set it in "
                "spec.unsupportedConfigOverrides of KubeScheduler"
            )
            report.lost((name,), "removed", why)
    return objects


def served_names(config: Mapping[str, Any], name: str) -> dict[str, str]:
    """Map old to new schedulerNames of a SecondaryScheduler's profiles.

    Only the control plane's scheduler serves the default one, which becomes `name`.
    """
    other = name or DEFAULT_NAME
    return {old: other if old == DEFAULT_SCHEDULER else old for old in scheduler_names(config)}


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
    timings = {key: election[key] for key in TIMINGS if key in election}
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


# --- extenders -----------------------------------------------------------------------------------

EXTENDER: Final = SCHEDULER_EXTENDERS.kind
_DEFINITION: Final = f"{SCHEDULER_EXTENDERS.name}.yaml"
DEFAULT_TIMEOUT: Final = 5_000_000_000
"""Nanoseconds; kube-scheduler's DefaultExtenderTimeout, for 0 as well."""

_VERBS: Final = ("filter", "prioritize", "bind", "preempt")
_PRIVATE: Final = ("certData", "keyData")
_FILES: Final = ("certFile", "keyFile")
_TLS: Final = ("insecure", "serverName", "caData", "caFile", "certFile", "keyFile")
_LONGEST_TIMEOUT: Final = 60_000_000_000
_SHORTEST_TIMEOUT: Final = 1_000_000
_LARGEST_WEIGHT: Final = 1_000_000
_LONGEST_NAME: Final = 36  # of 40, so that a number fits


@dataclass(frozen=True, slots=True)
class ExtenderObjects:
    objects: tuple[dict[str, Any], ...] = ()  # SchedulerExtenders
    kept: tuple[Mapping[str, Any], ...] = ()  # in the configuration of a SecondaryScheduler


def extender_objects(
    config: Mapping[str, Any],
    scheduler: str | None,
    used: set[str],
    report: ConversionLog,
    *,
    replaced: Collection[int] = (),
) -> ExtenderObjects:
    """Convert the extenders of a configuration (v1) with valid types.

    `scheduler` is the SecondaryScheduler that calls them; None: the control plane's scheduler.
    `used` and `replaced` are as in `secondary_objects`.
    """
    objects: list[dict[str, Any]] = []
    kept: list[Mapping[str, Any]] = []
    for index, entry in enumerate(config.get("extenders") or ()):
        path: Path = ("extenders", index)
        if index in replaced:
            continue
        obstacles = _obstacles(entry)
        if obstacles and scheduler is not None:
            kept.append(entry)
            why = f"a SchedulerExtender cannot express {listing(obstacles)}"
            report.same(path, "kept in spec.config.extenders of the SecondaryScheduler", why)
            continue
        spec = _spec(entry, path, report)
        if spec is None:
            continue
        if scheduler is not None:
            spec = {"scheduler": scheduler, **spec}
        candidate = operator_object(SCHEDULER_EXTENDERS, _extender_name(entry, used), spec)
        problem = next(validate_object(candidate, _DEFINITION, SCHEDULER_EXTENDERS.version), None)
        if problem is not None:
            refusal = f"{format_path(problem.path)}: {problem.message}"
            why = f"SchedulerExtender does not allow it: {refusal}; change the old field"
            report.lost(path, "removed", why)
            continue
        used.add(candidate["metadata"]["name"])
        objects.append(candidate)
        what = f"converted to SchedulerExtender {candidate['metadata']['name']}"
        report.same(path, what, "the operator adds it to the scheduler's configuration")
    order = [extender["metadata"]["name"] for extender in objects]
    if order != sorted(order):
        why = (
            "kube-scheduler calls extenders one after the other, each with the nodes that the "
            "former ones left; rename the objects if an extender depends on that order"
        )
        what = f"called in the order of their names: {', '.join(sorted(order))}"
        report.differs(("extenders",), what, why)
    return ExtenderObjects(tuple(objects), tuple(kept))


def _extender_name(entry: Mapping[str, Any], used: set[str]) -> str:
    """Choose a free name: the first label of the host in the URL, or `extender`."""
    try:
        host = urlsplit(str(entry.get("urlPrefix") or "")).hostname or ""
    except ValueError:
        host = ""
    label = host.partition(".")[0]
    base = re.sub("[^a-z0-9]+", "-", label)[:_LONGEST_NAME].strip("-")
    if label == "localhost" or not re.search("[a-z]", base) or ":" in host:
        base = "extender"
    return free_name(base, used)


def _obstacles(entry: Mapping[str, Any]) -> list[str]:
    """List the settings of an extender that SchedulerExtender does not support."""
    tls = entry.get("tlsConfig") or {}
    obstacles = [f"tlsConfig.{name}" for name in _PRIVATE if tls.get(name)]
    if not _VALID_URL.fullmatch(str(entry.get("urlPrefix") or "")):
        obstacles.append("this urlPrefix")
    if not _verbs(entry):
        obstacles.append("an extender without verbs")
    if not _is_https(entry) or entry.get("enableHTTPS") or _has_authority(tls):
        return obstacles
    return [*obstacles, "verification by the CAs of the image"]


_VALID_URL: Final = re.compile(r"https?://[^\s/?#]+(/[^\s?#]*)?")


def _verbs(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {verb: entry[f"{verb}Verb"] for verb in _VERBS if entry.get(f"{verb}Verb")}


def _spec(entry: Mapping[str, Any], path: Path, report: ConversionLog) -> dict[str, Any] | None:
    """Convert an extender; None if SchedulerExtender does not support it."""
    url = str(entry.get("urlPrefix") or "")
    verbs = _verbs(entry)
    if not verbs:
        _report_without_verbs(entry, path, report)
        return None
    if not _VALID_URL.fullmatch(url):
        why = (
            "a SchedulerExtender needs an http or https URL with a host, without spaces, query "
            "and fragment; correct it, and convert again"
        )
        report.lost((*path, "urlPrefix"), f'extender with "{url}" removed', why)
        return None
    spec: dict[str, Any] = {"url": url, "verbs": verbs}
    if entry.get("prioritizeVerb"):
        spec["weight"] = _weight(entry, path, report)
    elif entry.get("weight"):
        report.same((*path, "weight"), "removed", "the extender does not score nodes")
    spec["timeout"] = extender_timeout(entry, path, report)
    spec["ignorable"] = bool(entry.get("ignorable"))
    if entry.get("managedResources"):
        spec["managedResources"] = entry["managedResources"]
    spec["nodeCacheCapable"] = bool(entry.get("nodeCacheCapable"))
    tls = _tls(entry, path, report)
    return {**spec, "tls": tls} if tls else spec


def _report_without_verbs(entry: Mapping[str, Any], path: Path, report: ConversionLog) -> None:
    ignored = [
        str(resource.get("name"))
        for resource in entry.get("managedResources") or ()
        if resource.get("ignoredByScheduler")
    ]
    if not ignored:
        report.same(path, "removed", "it has no verbs, so kube-scheduler never calls it")
        return
    why = (
        f"its only effect is that NodeResourcesFit ignores {', '.join(ignored)}; set "
        "ignoredResources of NodeResourcesFit in pluginConfig instead"
    )
    report.lost(path, "extender without verbs removed", why)


def _weight(entry: Mapping[str, Any], path: Path, report: ConversionLog) -> int:
    weight = int(entry.get("weight") or 0)
    if weight <= _LARGEST_WEIGHT:
        return max(weight, 1)
    why = (
        f"a SchedulerExtender has at most {_LARGEST_WEIGHT}; reduce the weights of the others as "
        "well"
    )
    report.differs((*path, "weight"), f"{weight} reduced to {_LARGEST_WEIGHT}", why)
    return _LARGEST_WEIGHT


def extender_timeout(entry: Mapping[str, Any], path: Path, report: ConversionLog) -> str:
    """Return the httpTimeout of an extender as far as a SchedulerExtender allows it."""
    given = nanoseconds(str(entry.get("httpTimeout") or "0s")) or DEFAULT_TIMEOUT
    limited = min(max(given, _SHORTEST_TIMEOUT), _LONGEST_TIMEOUT)
    if limited != given:
        why = "a SchedulerExtender allows 1ms to 1m"
        what = f"{duration(given)} changed to {duration(limited)}"
        report.differs((*path, "httpTimeout"), what, why)
    return duration(limited)


def _is_https(entry: Mapping[str, Any]) -> bool:
    return str(entry.get("urlPrefix") or "").startswith("https://")


def _has_authority(tls: Mapping[str, Any]) -> bool:
    return bool(tls.get("caData") or tls.get("caFile") or tls.get("insecure"))


def _tls(entry: Mapping[str, Any], path: Path, report: ConversionLog) -> dict[str, Any]:
    tls = entry.get("tlsConfig") or {}
    where = (*path, "tlsConfig")
    if not _is_https(entry):
        if tls or entry.get("enableHTTPS"):
            field = where if tls else (*path, "enableHTTPS")
            report.same(field, "removed", "the URL begins with http://, so TLS is not used")
        return {}
    if not entry.get("enableHTTPS") and not _has_authority(tls):
        why = (
            "the operator sets enableHTTPS, with which kube-scheduler verifies a certificate only "
            "if it has a CA, and not with the CAs of its image; set spec.tls.caData or caFile"
        )
        report.differs(path, "server certificate no longer verified", why)
    spec = {name: tls[name] for name in _TLS if tls.get(name)}
    certificate = [name for name in ("certFile", "certData") if tls.get(name)]
    key = [name for name in ("keyFile", "keyData") if tls.get(name)]
    private = [name for name in _PRIVATE if tls.get(name)]
    if private and certificate and key:
        why = (
            "a SchedulerExtender contains no private key; copy certificate and key to files that "
            "kube-scheduler's container can read, and set spec.tls.certFile and spec.tls.keyFile"
        )
        report.lost(where, f"{', '.join(private)} removed", why)
    elif bool(certificate) != bool(key):
        why = "kube-scheduler ignores a certificate without a key, and a key without a certificate"
        report.same(where, f"{', '.join(certificate or key)} removed", why)
    if ("certFile" in spec) != ("keyFile" in spec):
        spec = {name: value for name, value in spec.items() if name not in _FILES}
    return spec
