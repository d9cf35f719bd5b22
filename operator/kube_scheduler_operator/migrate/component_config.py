"""KubeSchedulerConfiguration of v1alpha1 to v1beta3, and a Policy, field by field."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from ..base.findings import Path, Problem
from ..schedulerconfig.feature_gates import Gates
from ..schedulerconfig.schema import API_VERSION, KIND
from . import extenders
from .changes import ConversionError, Report
from .expansion import Listed, OldProfile, Written, expand, read_lists
from .old_defaults import SPREAD, SPREADING, Lists, packing
from .old_schema import POLICY, UNREADABLE, Source, read
from .plugin_arguments import (
    Argument,
    convert_arguments,
    has_argument,
    read_arguments,
    set_argument,
)
from .plugin_lists import convert_lists
from .policy import PolicyProfile, read_policy

_LEASES: Final = "leases"
_MIGRATING: Final = ("endpointsleases", "configmapsleases")
"""Locks that hold the Lease beside the old object, so that both kinds of schedulers agree."""
_PROVIDERS: Final = ("DefaultProvider", "ClusterAutoscalerProvider")
_KEPT: Final = (
    "parallelism", "leaderElection", "clientConnection", "enableProfiling",
    "enableContentionProfiling", "percentageOfNodesToScore", "podInitialBackoffSeconds",
    "podMaxBackoffSeconds", "delayCacheUntilActive",
)  # fmt: skip
"""Fields of all versions that are in v1 as they were; v1alpha1's election is renamed before."""
_MOVED: Final = (
    ("hardPodAffinitySymmetricWeight", "InterPodAffinity", "hardPodAffinityWeight"),
    ("bindTimeoutSeconds", "VolumeBinding", "bindTimeoutSeconds"),
)
"""Field at the top -> plugin and argument."""


@dataclass(frozen=True, slots=True)
class _Work:
    """What the parts of one conversion share.

    Attributes:
        old: the document's fields at the top that concern a profile.
        source: its version.
        gates: of the scheduler that will read the result.
        report: where the changes go.
    """

    old: Mapping[str, Any]
    source: Source
    gates: Gates
    report: Report


def convert_policy(document: Mapping[str, Any], gates: Gates, report: Report) -> dict[str, Any]:
    """A Policy on its own, which was given to the scheduler by flag.

    Raises:
        ConversionError: it has a value that no kube-scheduler took.
    """
    report.differs(
        ("kind",),
        "Policy is a KubeSchedulerConfiguration",
        "it is given by --config, beside which --kubeconfig, --scheduler-name and other old flags "
        "are not read: set clientConnection.kubeconfig, profiles[0].schedulerName and so on here",
    )
    policy = _read_policy(document, report)
    result: dict[str, Any] = {"apiVersion": API_VERSION, "kind": KIND}
    profile = _of_policy(read_policy(policy, report), {}, _Work({}, POLICY, gates, report))
    if profile:
        result["profiles"] = [profile]
    if policy.get("extenders"):
        result["extenders"] = extenders.from_policy(policy["extenders"], report)
    return result


def convert_component(
    document: Mapping[str, Any],
    source: Source,
    policy: Mapping[str, Any] | None,
    gates: Gates,
    report: Report,
) -> dict[str, Any]:
    """A KubeSchedulerConfiguration of an old version.

    Args:
        document: as it was written.
        source: its version.
        policy: the Policy that its algorithmSource names, if it names one.
        gates: of the scheduler that will read the result.
        report: where the changes go.

    Raises:
        ConversionError: it has a value that no kube-scheduler took.
    """
    spelled = dict(document)
    if "extenders" in spelled:
        spelled["extenders"] = extenders.spell(spelled["extenders"], report)
    old = read(spelled, source, report)
    why = f"kube-scheduler {gates.version.short} reads no other"
    report.same(("apiVersion",), f"{source.name} is v1", why)
    _election(old, report)
    result: dict[str, Any] = {"apiVersion": API_VERSION, "kind": KIND}
    result |= {name: old[name] for name in _KEPT if name in old}
    _tell_flags(old, report)
    work = _Work(old, source, gates, report)
    if source.name == "v1alpha1":
        known = None if policy is None else _read_policy(policy, report)
        profiles = [_single(known, work)]
        if known and known.get("extenders"):
            result["extenders"] = extenders.from_policy(known["extenders"], report)
    else:
        profiles = [
            _profile(profile, ("profiles", index), source.defaults, work)
            for index, profile in enumerate(old.get("profiles") or [{}])
        ]
    if any(profiles) or old.get("profiles"):
        result["profiles"] = profiles
    if old.get("extenders"):
        result["extenders"] = old["extenders"]
    return result


def _read_policy(document: Mapping[str, Any], report: Report) -> dict[str, Any]:
    spelled = {**document, "extenders": extenders.spell(document.get("extenders"), report)}
    return read(spelled, POLICY, report)


def _single(policy: Mapping[str, Any] | None, work: _Work) -> dict[str, Any]:
    """The one profile of v1alpha1, whose fields are at the top."""
    old, report = work.old, work.report
    fields = {
        name: old[name] for name in ("schedulerName", "plugins", "pluginConfig") if name in old
    }
    for name in fields:
        report.same((name,), f"this is in profiles[0].{name}", "v1 has profiles")
    if policy is not None:
        why = "v1 has no algorithmSource"
        report.same(("algorithmSource", "policy"), "the Policy is part of the result", why)
        if fields.pop("plugins", None):
            why = "the Policy decides; put into the lists of the result what these added to it"
            report.lost(("plugins",), "left out", why)
        return _of_policy(read_policy(policy, report), fields, replace(work, source=POLICY))
    defaults = work.source.defaults
    provider = old.get("algorithmSource", {}).get("provider")
    if provider and provider not in _PROVIDERS:
        message = f'there is no provider "{provider}"; use {" or ".join(_PROVIDERS)}'
        raise ConversionError([Problem(UNREADABLE, ("algorithmSource", "provider"), message)])
    if provider:
        why = "v1 has no algorithmSource; the plugins that it enabled are kept"
        report.same(("algorithmSource", "provider"), f"{provider} left out", why)
    if provider == _PROVIDERS[1] and defaults is not None:
        defaults = packing(defaults)
    return _profile(fields, (), defaults, work)


def _of_policy(policy: PolicyProfile, fields: Mapping[str, Any], work: _Work) -> dict[str, Any]:
    more = read_arguments(fields.get("pluginConfig", []), ("pluginConfig",))
    arguments = [*policy.arguments, *more]
    written = dict(policy.written)
    _without_preemption(written, work)
    return _assembled(fields, written, arguments, (), POLICY.defaults, work)


def _profile(
    fields: Mapping[str, Any], path: Path, defaults: Lists | None, work: _Work
) -> dict[str, Any]:
    lists = dict(fields.get("plugins", {}))
    if work.source.name == "v1alpha1" and "postFilter" in lists:
        where = (*path, "plugins", "postFilter")
        work.report.same(where, "this is preScore", "the point got that name in 1.18")
        lists["preScore"] = lists.pop("postFilter")
    written = read_lists(lists, (*path, "plugins"))
    if "unreserve" in written:
        written["reserve"] = _with_unreserve(written, work.report)
    _without_preemption(written, work)
    arguments = read_arguments(fields.get("pluginConfig", []), (*path, "pluginConfig"))
    return _assembled(fields, written, arguments, path, defaults, work)


def _assembled(
    fields: Mapping[str, Any],
    written: Mapping[str, Written],
    arguments: list[Argument],
    path: Path,
    defaults: Lists | None,
    work: _Work,
) -> dict[str, Any]:
    """A profile of v1 of what the old one wrote."""
    profile = expand(work.source.name, path, written, defaults)
    converted = convert_arguments(arguments, profile.ran, work.gates, work.report)
    for name, plugin, argument in _MOVED:
        if name not in work.old:
            continue
        if has_argument(converted, plugin, argument):
            why = f"{plugin} has an own {argument}, which counted"
            work.report.same((name,), "left out", why)
        else:
            set_argument(converted, plugin, argument, work.old[name])
            what = f"{argument} {work.old[name]} of {plugin}"
            work.report.same((name,), what, "it moved there")
    _only_own_constraints(profile, defaults, converted, work.report)
    lists = convert_lists(profile, work.gates, work.report)
    result = {
        name: fields[name]
        for name in ("schedulerName", "percentageOfNodesToScore")
        if name in fields
    }
    return result | {
        name: value for name, value in (("plugins", lists), ("pluginConfig", converted)) if value
    }


def _only_own_constraints(
    profile: OldProfile,
    defaults: Lists | None,
    arguments: list[dict[str, Any]],
    report: Report,
) -> None:
    """Where a plugin of its own spread Services and was turned off, System must not do it now."""
    scored = {entry.name for entry in profile.ran.get("score", ())}
    by_default = {entry.name for entry in (defaults or {}).get("score", ())}
    if SPREAD not in scored or scored & set(SPREADING) or not by_default & set(SPREADING):
        return
    if all(entry["name"] != SPREAD for entry in arguments):
        set_argument(arguments, SPREAD, "defaultingType", "List")
        why = f"{profile.source} spread the pods of Services by a plugin that was turned off"
        path = (*profile.path, "plugins", "score")
        report.same(path, f"defaultingType List for {SPREAD}", why)


def _without_preemption(written: dict[str, Written], work: _Work) -> None:
    if not work.old.get("disablePreemption"):
        return
    path: Path = ("disablePreemption",)
    work.report.same(path, "postFilter has no DefaultPreemption", "preemption is a plugin")
    here = written.get("postFilter", Written())
    off = (*here.disabled, Listed("DefaultPreemption", path))
    written["postFilter"] = Written(here.enabled, off)


def _with_unreserve(written: dict[str, Written], report: Report) -> Written:
    """The reserve list with what was listed at unreserve only: one plugin does both since 1.20."""
    reserve, unreserve = written.get("reserve", Written()), written.pop("unreserve")
    listed = {item.name for item in reserve.enabled}
    more = tuple(item for item in unreserve.enabled if item.name not in (*listed, "VolumeBinding"))
    for item in unreserve.enabled:
        if item in more:
            report.differs(item.path, f"{item.name} is at reserve", "v1 has no unreserve")
        else:
            report.same(item.path, f"{item.name} left out", "reserve takes care of it")
    for item in unreserve.disabled:
        report.same(item.path, f"{item.name} left out", "v1 has no unreserve")
    return Written((*reserve.enabled, *more), reserve.disabled)


def _election(old: dict[str, Any], report: Report) -> None:
    """Names of the lock, and the kind of it."""
    election = old.get("leaderElection")
    if election is None:
        return
    for before, name in (
        ("lockObjectName", "resourceName"),
        ("lockObjectNamespace", "resourceNamespace"),
    ):
        value = election.pop(before, "")
        if not value:
            continue
        path: Path = ("leaderElection", before)
        if election.get(name, value) != value:
            message = f'this is "{value}" and {name} is "{election[name]}"; remove one of them'
            raise ConversionError([Problem(UNREADABLE, path, message)])
        election[name] = value
        report.same(path, f"{name} {value}", "it has that name in v1")
    lock = election.get("resourceLock")
    path = ("leaderElection", "resourceLock")
    if lock in _MIGRATING:
        election["resourceLock"] = _LEASES
        report.same(path, f"{lock} is {_LEASES}", "both hold the Lease, and v1 has no other lock")
    elif lock and lock != _LEASES:
        election["resourceLock"] = _LEASES
        report.differs(
            path,
            f"{lock} is {_LEASES}",
            "v1 has no other lock; an old scheduler that still runs does not see it, so stop "
            "all of them first",
        )


def _tell_flags(old: Mapping[str, Any], report: Report) -> None:
    """Fields that no version has any more, or that are flags."""
    for name, served in (("healthzBindAddress", "/healthz"), ("metricsBindAddress", "/metrics")):
        if name not in old:
            continue
        address = old[name]
        if address in ("", "0") or address.endswith(":0"):
            report.same((name,), "left out", "nothing was served there")
        else:
            report.differs(
                (name,),
                f"{address} left out",
                f"{served} is served by HTTPS only, at --bind-address and --secure-port (10259)"
                + (", for who may get that URL" if served == "/metrics" else ""),
            )
    if old.get("featureGates"):
        gates = ",".join(f"{name}={str(on).lower()}" for name, on in old["featureGates"].items())
        why = f"feature gates are a flag: --feature-gates={gates}, as far as they still exist"
        report.lost(("featureGates",), "left out", why)
    if "failureDomains" in old:
        why = "an affinity names its topologyKey; an empty one is no longer valid"
        report.lost(("failureDomains",), "left out", why)
    if "disablePreemption" in old and not old["disablePreemption"]:
        report.same(("disablePreemption",), "left out", "preemption is on by default")
