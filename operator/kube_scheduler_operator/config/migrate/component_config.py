"""Conversion of KubeSchedulerConfiguration v1alpha1 to v1, and of a Policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from ...base.findings import Path
from ...base.go_values import without_nulls
from ..language.decode import decoded
from ..language.feature_gates import Gates
from ..language.plugins.effective_plugins import effective_plugins
from ..language.plugins.in_tree_plugins import listable_plugins
from ..language.schema import API_VERSION, CONFIGURATION, KIND
from .changes import ConversionLog, unreadable
from .old_defaults import CLOUD_LIMITS, LIMITS, SPREAD, SPREADING, PointPlugins, packing
from .old_profile import MULTI, ListedPlugin, OldProfile, PluginLists, expand, read_lists
from .old_schema import POLICY, SourceVersion, duration, read, unknown_fields
from .plugin_arguments import (
    Argument,
    convert_arguments,
    has_argument,
    read_arguments,
    set_argument,
)
from .plugin_lists import convert_lists
from .policy import read_policy

_LEASES: Final = "leases"
_MIGRATING: Final = ("endpointsleases", "configmapsleases")
"""Locks that use both a Lease and the old object."""
_PROVIDERS: Final = ("DefaultProvider", "ClusterAutoscalerProvider")
_UNCHANGED: Final = (
    "parallelism", "leaderElection", "clientConnection", "enableProfiling",
    "enableContentionProfiling", "percentageOfNodesToScore", "podInitialBackoffSeconds",
    "podMaxBackoffSeconds", "delayCacheUntilActive",
)  # fmt: skip
"""Fields that v1 has as well; `_election` converts v1alpha1's leaderElection before."""
_MOVED: Final = (
    ("hardPodAffinitySymmetricWeight", "InterPodAffinity", "hardPodAffinityWeight"),
    ("bindTimeoutSeconds", "VolumeBinding", "bindTimeoutSeconds"),
)
"""(top-level field, plugin, argument)."""


@dataclass(frozen=True, slots=True)
class _Context:
    old: Mapping[str, Any]  # the document's top-level fields that affect a profile
    source: SourceVersion
    gates: Gates
    report: ConversionLog


def convert_policy(
    document: Mapping[str, Any], gates: Gates, report: ConversionLog
) -> dict[str, Any]:
    """Convert a Policy that was passed to the scheduler by flag.

    Raises:
        ConversionError: it has a value that every kube-scheduler rejects.
    """
    why = (
        "kube-scheduler reads it with --config and then ignores --kubeconfig, --scheduler-name and "
        "other flags: set clientConnection.kubeconfig, profiles[0].schedulerName and so on"
    )
    report.differs(("kind",), "Policy converted to KubeSchedulerConfiguration", why)
    policy = read(document, POLICY, report)
    config: dict[str, Any] = {"apiVersion": API_VERSION, "kind": KIND}
    profile = _of_policy(policy, {}, _Context({}, POLICY, gates, report))
    if profile:
        config["profiles"] = [profile]
    if policy.get("extenders"):
        config["extenders"] = _with_durations(policy["extenders"], report)
    return config


def convert_component(
    document: Mapping[str, Any],
    source: SourceVersion,
    policy: Mapping[str, Any] | None,
    gates: Gates,
    report: ConversionLog,
) -> dict[str, Any]:
    """Convert a KubeSchedulerConfiguration of an old version.

    `policy` is the Policy to which its algorithmSource refers, if any.

    Raises:
        ConversionError: it has a value that every kube-scheduler rejects.
    """
    old = read(document, source, report)
    why = f"kube-scheduler {gates.version.short} only reads v1"
    report.same(("apiVersion",), f"{source.name} converted to v1", why)
    _election(old, report)
    config: dict[str, Any] = {"apiVersion": API_VERSION, "kind": KIND}
    config |= {name: old[name] for name in _UNCHANGED if name in old}
    _report_flags(old, report)
    context = _Context(old, source, gates, report)
    if source.name == "v1alpha1":
        known = None if policy is None else read(policy, POLICY, report)
        profiles = [_single(known, context)]
        if known and known.get("extenders"):
            config["extenders"] = _with_durations(known["extenders"], report)
    else:
        profiles = [
            _profile(profile, ("profiles", index), source.defaults, context)
            for index, profile in enumerate(old.get("profiles") or [{}])
        ]
    if any(profiles) or old.get("profiles"):
        config["profiles"] = profiles
    if old.get("extenders"):
        config["extenders"] = old["extenders"]
    return config


def _with_durations(extenders: list[dict[str, Any]], report: ConversionLog) -> list[dict[str, Any]]:
    """Convert the timeouts of a Policy's extenders."""
    converted = []
    for index, extender in enumerate(extenders):
        if "httpTimeout" in extender:
            given, path = extender["httpTimeout"], ("extenders", index, "httpTimeout")
            extender = {**extender, "httpTimeout": duration(given)}
            what = f"{given} converted to {extender['httpTimeout']}"
            report.same(path, what, "a Policy has nanoseconds, v1 a duration")
        converted.append(extender)
    return converted


def _single(policy: Mapping[str, Any] | None, context: _Context) -> dict[str, Any]:
    """Convert the single profile of v1alpha1, whose fields are top-level."""
    old, report = context.old, context.report
    fields = {
        name: old[name] for name in ("schedulerName", "plugins", "pluginConfig") if name in old
    }
    for name in fields:
        report.same((name,), f"moved to profiles[0].{name}", "v1 has profiles")
    if policy is not None:
        why = "v1 has no algorithmSource"
        report.same(("algorithmSource", "policy"), "Policy merged into the result", why)
        if fields.pop("plugins", None):
            why = "the Policy replaces these lists; add their plugins to the lists of the result"
            report.lost(("plugins",), "removed", why)
        return _of_policy(policy, fields, replace(context, source=POLICY))
    defaults = context.source.defaults
    provider = old.get("algorithmSource", {}).get("provider")
    if provider and provider not in _PROVIDERS:
        message = f'unknown provider "{provider}"; use {" or ".join(_PROVIDERS)}'
        raise unreadable(("algorithmSource", "provider"), message)
    if provider:
        why = "v1 has no algorithmSource; the provider's plugins are kept"
        report.same(("algorithmSource", "provider"), f"{provider} removed", why)
    if provider == _PROVIDERS[1] and defaults is not None:
        defaults = packing(defaults)
    return _profile(fields, (), defaults, context)


def _of_policy(
    policy: Mapping[str, Any], fields: Mapping[str, Any], context: _Context
) -> dict[str, Any]:
    written, arguments = read_policy(policy, context.report)
    arguments += read_arguments(fields.get("pluginConfig", []), ("pluginConfig",))
    _without_preemption(written, context)
    return _assembled(fields, written, arguments, (), POLICY.defaults, context)


def _profile(
    fields: Mapping[str, Any], path: Path, defaults: PointPlugins | None, context: _Context
) -> dict[str, Any]:
    lists = dict(fields.get("plugins", {}))
    if context.source.name == "v1alpha1" and "postFilter" in lists:
        where = (*path, "plugins", "postFilter")
        context.report.same(where, "renamed to preScore", "Kubernetes 1.18 renamed the point")
        lists["preScore"] = lists.pop("postFilter")
    written = read_lists(lists, (*path, "plugins"))
    if "unreserve" in written:
        written["reserve"] = _with_unreserve(written, context.report)
    _without_preemption(written, context)
    arguments = read_arguments(fields.get("pluginConfig", []), (*path, "pluginConfig"))
    return _assembled(fields, written, arguments, path, defaults, context)


def _assembled(
    fields: Mapping[str, Any],
    written: Mapping[str, PluginLists],
    arguments: list[Argument],
    path: Path,
    defaults: PointPlugins | None,
    context: _Context,
) -> dict[str, Any]:
    """Compose the v1 profile from an old profile's fields, lists and arguments."""
    profile = expand(context.source.name, path, written, defaults)
    converted = convert_arguments(arguments, profile.ran, context.gates, context.report)
    for name, plugin, argument in _MOVED:
        if name not in context.old:
            continue
        if has_argument(converted, plugin, argument):
            why = f"{argument} of {plugin} took precedence"
            context.report.same((name,), "removed", why)
        else:
            set_argument(converted, plugin, argument, context.old[name])
            what = f"moved to {argument} {context.old[name]} of {plugin}"
            context.report.same((name,), what, "v1 has it in the plugin's arguments")
    _only_own_constraints(profile, defaults, converted, context.report)
    lists = convert_lists(profile, context.gates, context.report)
    kept = {
        name: fields[name]
        for name in ("schedulerName", "percentageOfNodesToScore")
        if name in fields
    }
    return kept | {
        name: value for name, value in (("plugins", lists), ("pluginConfig", converted)) if value
    }


def _only_own_constraints(
    profile: OldProfile,
    defaults: PointPlugins | None,
    arguments: list[dict[str, Any]],
    report: ConversionLog,
) -> None:
    """Keep System constraints off if the plugin that spread the pods of Services was disabled."""
    scored = {entry.name for entry in profile.ran.get("score", ())}
    by_default = {entry.name for entry in (defaults or {}).get("score", ())}
    if SPREAD not in scored or scored & set(SPREADING) or not by_default & set(SPREADING):
        return
    if all(entry["name"] != SPREAD for entry in arguments):
        set_argument(arguments, SPREAD, "defaultingType", "List")
        why = f"{profile.source} spread the pods of Services with a plugin that was disabled"
        path = (*profile.path, "plugins", "score")
        report.same(path, f"defaultingType of {SPREAD} set to List", why)


def _without_preemption(written: dict[str, PluginLists], context: _Context) -> None:
    if not context.old.get("disablePreemption"):
        return
    path: Path = ("disablePreemption",)
    context.report.same(path, "DefaultPreemption disabled at postFilter", "preemption is a plugin")
    here = written.get("postFilter", PluginLists())
    off = (*here.disabled, ListedPlugin("DefaultPreemption", path))
    written["postFilter"] = PluginLists(here.enabled, off)


def _with_unreserve(written: dict[str, PluginLists], report: ConversionLog) -> PluginLists:
    """Add plugins that are only listed at unreserve to reserve; since 1.20 one plugin does both."""
    reserve, unreserve = written.get("reserve", PluginLists()), written.pop("unreserve")
    listed = {item.name for item in reserve.enabled}
    more = tuple(item for item in unreserve.enabled if item.name not in (*listed, "VolumeBinding"))
    for item in unreserve.enabled:
        if item in more:
            report.differs(item.path, f"{item.name} moved to reserve", "v1 has no unreserve")
        else:
            report.same(item.path, f"{item.name} removed", "since 1.20 reserve includes it")
    for item in unreserve.disabled:
        report.same(item.path, f"{item.name} removed", "v1 has no unreserve")
    return PluginLists((*reserve.enabled, *more), reserve.disabled)


def _election(old: dict[str, Any], report: ConversionLog) -> None:
    """Convert the name and the type of the lock."""
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
            message = f'"{value}" conflicts with {name} "{election[name]}"; remove one of them'
            raise unreadable(path, message)
        election[name] = value
        report.same(path, f"renamed to {name} ({value})", "v1 renamed the field")
    lock = election.get("resourceLock")
    path = ("leaderElection", "resourceLock")
    if not lock or lock == _LEASES:
        return
    election["resourceLock"], what = _LEASES, f"{lock} replaced by {_LEASES}"
    if lock in _MIGRATING:
        report.same(path, what, "both use the Lease, and v1 has no other lock")
    else:
        why = (
            "v1 has no other lock; schedulers with the old lock ignore the Lease, so stop all of "
            "them first"
        )
        report.differs(path, what, why)


def _report_flags(old: Mapping[str, Any], report: ConversionLog) -> None:
    """Report top-level fields that v1 does not have."""
    for name, served in (("healthzBindAddress", "/healthz"), ("metricsBindAddress", "/metrics")):
        if name not in old:
            continue
        address = old[name]
        if address in ("", "0") or address.endswith(":0"):
            report.same((name,), "removed", "it was disabled")
        else:
            who = ", to clients that may get that URL" if served == "/metrics" else ""
            ports = "at --bind-address and --secure-port (10259)"
            why = f"{served} is only served with HTTPS, {ports}{who}"
            report.differs((name,), f"{address} removed", why)
    if old.get("featureGates"):
        gates = ",".join(f"{name}={str(on).lower()}" for name, on in old["featureGates"].items())
        why = f"set them by flag, if they still exist: --feature-gates={gates}"
        report.lost(("featureGates",), "removed", why)
    if "failureDomains" in old:
        why = "every affinity term must set topologyKey; an empty one is no longer valid"
        report.lost(("failureDomains",), "removed", why)
    if "disablePreemption" in old and not old["disablePreemption"]:
        report.same(("disablePreemption",), "removed", "preemption is enabled by default")


# --- v1: removal of plugins that the target version does not have -------------------------------


def convert_v1(document: Mapping[str, Any], gates: Gates, report: ConversionLog) -> dict[str, Any]:
    """Copy a configuration without removed plugins.

    With unknown fields, which validation reports, the copy is unchanged.

    Raises:
        ConversionError: a value has the wrong type.
    """
    minor = gates.version.minor
    config: dict[str, Any] = without_nulls(document)
    if unknown_fields(config, CONFIGURATION, (), minor):
        return config
    config = decoded(config, CONFIGURATION, minor)
    obsolete = set(CLOUD_LIMITS) - listable_plugins(gates.version).keys()
    for index, profile in enumerate(config.get("profiles", ())):
        path: Path = ("profiles", index)
        removed = _without_limits(profile, obsolete, (*path, "plugins"), gates, report)
        _enable_volume_limits(profile, removed, (*path, "plugins"), gates, report)
        if "pluginConfig" in profile:
            why = f"kube-scheduler {gates.version.short} has no such plugin"
            where, entries = (*path, "pluginConfig"), profile["pluginConfig"]
            profile["pluginConfig"] = _kept(entries, obsolete, where, "arguments of ", why, report)
    return config


def _kept(
    entries: list[dict[str, Any]],
    obsolete: set[str],
    path: Path,
    what: str,
    why: str,
    report: ConversionLog,
) -> list[dict[str, Any]]:
    """Return the entries of plugins that the target version has; report the others."""
    for index, entry in enumerate(entries):
        if entry.get("name") in obsolete:
            report.same((*path, index), f"{what}{entry['name']} removed", why)
    return [entry for entry in entries if entry.get("name") not in obsolete]


def _without_limits(
    profile: dict[str, Any], obsolete: set[str], path: Path, gates: Gates, report: ConversionLog
) -> list[str]:
    """Remove former plugins for cloud volumes; return the points that enabled them."""
    points = []
    why = f"kube-scheduler {gates.version.short} has no such plugin; {LIMITS} counts volumes"
    for point, sets in profile.get("plugins", {}).items():
        for key in ("enabled", "disabled"):
            entries = sets.get(key, [])
            left = _kept(entries, obsolete, (*path, point, key), "", why, report)
            if len(left) == len(entries):
                continue
            sets[key] = left
            if not left:
                del sets[key]
            if key == "enabled":
                points.append(point)
    return points


def _enable_volume_limits(
    profile: dict[str, Any], points: list[str], path: Path, gates: Gates, report: ConversionLog
) -> None:
    """Enable NodeVolumeLimits at points of removed plugins, unless it runs there already."""
    runs = effective_plugins(profile, gates).points
    for point in points:
        at = "filter" if point == MULTI else point
        if any(entry.name == LIMITS for entry in runs[at]):
            continue
        profile["plugins"][point].setdefault("enabled", []).append({"name": LIMITS})
        why = "it counts volumes of CSI drivers, which attach these volumes today"
        report.same((*path, point), f"{LIMITS} enabled", why)
