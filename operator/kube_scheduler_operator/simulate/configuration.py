"""The configuration of a simulated kube-scheduler: the cluster's own, without its surroundings."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from ..base.objects import entries
from ..config.language.feature_gates import Gates
from ..config.language.plugins.effective_plugins import effective_plugins
from ..config.language.schema import API_VERSION, DEFAULT_SCHEDULER, KIND

PLACEMENT_FIELDS: Final = ("profiles", "extenders", "parallelism", "percentageOfNodesToScore")
"""Fields that decide placements; back-offs decide only when, other fields concern the process."""
SPY: Final = "spy"
_FIT: Final = "NodeResourcesFit"
OFF: Final = {"disabled": [{"name": "*"}]}
"""A list of plugins without any."""
_AFTER_FILTER: Final = (
    "postFilter", "preScore", "score", "reserve", "permit", "preBind", "postBind"
)  # fmt: skip


def default_configuration() -> dict[str, Any]:
    """Return a configuration that sets nothing."""
    return {"apiVersion": API_VERSION, "kind": KIND}


def profiles_of(config: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the profiles of a configuration, with the names that they get by default."""
    profiles: list[dict[str, Any]] = [dict(given) for given in config.get("profiles") or [{}]]
    for profile in profiles:
        profile.setdefault("schedulerName", DEFAULT_SCHEDULER)
    return profiles


def only(
    profile: Mapping[str, Any],
    gates: Gates,
    name: str,
    filters: Iterable[str],
    post_filters: Iterable[str] = (),
) -> dict[str, Any]:
    """Return a profile of this name beside another one, with these plugins alone."""
    points = effective_plugins(profile, gates).points
    queue = [plugin.name for plugin in points.get("queueSort", ())]
    bind = [{"name": plugin.name} for plugin in points.get("bind", ())]
    after = [{"name": plugin} for plugin in post_filters]
    plugins: dict[str, Any] = {
        "multiPoint": {**OFF, "enabled": [{"name": plugin} for plugin in (*queue, *filters)]},
        "preEnqueue": OFF,
        **dict.fromkeys(_AFTER_FILTER, OFF),
        "bind": {**OFF, "enabled": bind},
    }
    if after:
        plugins["postFilter"] = {**OFF, "enabled": after}
    given = profile.get("plugins") or {}
    if "queueSort" in given:  # must be written alike in all profiles
        plugins["queueSort"] = copy.deepcopy(given["queueSort"])
    return {
        "schedulerName": name,
        "percentageOfNodesToScore": 100,
        "pluginConfig": copy.deepcopy(profile.get("pluginConfig") or []),
        "plugins": plugins,
    }


def with_profile(
    config: Mapping[str, Any], fragment: Mapping[str, Any], name: str = DEFAULT_SCHEDULER
) -> dict[str, Any]:
    """Return the configuration whose profile with this schedulerName is that of a fragment."""
    (profile,) = profiles_of(fragment)
    others = [other for other in profiles_of(config) if other["schedulerName"] != name]
    named = {**profile, "schedulerName": name}
    return {**copy.deepcopy(dict(config)), "profiles": [named, *others]}


def simulated(
    config: Mapping[str, Any],
    profiles: Sequence[Mapping[str, Any]] = (),
    extenders: Iterable[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Return the configuration to run.

    `config` is the cluster's own; `extenders`, which are served in process, replace its extenders.
    Resources that others of these manage are ignored as in the cluster.
    """
    kept = {field: copy.deepcopy(config[field]) for field in PLACEMENT_FIELDS if field in config}
    configuration = {**default_configuration(), **kept}
    chosen = list(extenders)
    managing = (*entries(configuration.pop("extenders", None)), *chosen)
    ignored = list(dict.fromkeys(name for extender in managing for name in _ignored(extender)))
    configuration["profiles"] = [
        _ignoring(profile, ignored) for profile in (*profiles_of(config), *profiles)
    ]
    if chosen:
        configuration["extenders"] = [_counting(extender) for extender in chosen]
    return {
        **configuration,
        "leaderElection": {"leaderElect": False},
        "enableProfiling": False,
        "enableContentionProfiling": False,
        "podInitialBackoffSeconds": 1,
        "podMaxBackoffSeconds": 1,
    }


def without_calls(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration whose extenders only state which resources are ignored."""
    kept = {key: value for key, value in config.items() if key != "extenders"}
    names = [name for extender in entries(config.get("extenders")) for name in _ignored(extender)]
    managed = [{"name": name, "ignoredByScheduler": True} for name in names]
    return {**kept, "extenders": [{"managedResources": managed}]} if managed else kept


def _ignored(extender: Mapping[str, Any]) -> Iterator[str]:
    """Yield the resources that kube-scheduler ignores because an extender manages them."""
    for resource in entries(extender.get("managedResources")):
        if resource.get("ignoredByScheduler"):
            yield str(resource.get("name"))


def _counting(extender: Mapping[str, Any]) -> dict[str, Any]:
    """Return an extender without what `_ignoring` has done."""
    managed = [{"name": one.get("name")} for one in entries(extender.get("managedResources"))]
    return {**extender, **({"managedResources": managed} if managed else {})}


def _ignoring(profile: Mapping[str, Any], resources: Sequence[str]) -> dict[str, Any]:
    """Return a profile that ignores these resources, if any, instead of its ignoredResources.

    kube-scheduler does so for each profile, and does not start if one has no NodeResourcesFit, as
    profiles of probes (`buildExtenders`).
    """
    if not resources:
        return dict(profile)
    configs = [copy.deepcopy(one) for one in entries(profile.get("pluginConfig"))]
    own = next((one for one in configs if one.get("name") == _FIT), None)
    if own is None:
        own = {"name": _FIT}
        configs.append(own)
    own["args"] = {**(own.get("args") or {}), "ignoredResources": list(resources)}
    return {**profile, "pluginConfig": configs}


def spying_extender(url: str, *, last: bool = False) -> dict[str, Any]:
    """Return an extender that sees the nodes that all filters accept.

    With `last`, it is called after all others, as kube-scheduler calls ignorable extenders.
    """
    return {
        **({"ignorable": True} if last else {}),
        "urlPrefix": url,
        "filterVerb": "filter",
        "nodeCacheCapable": True,
        "httpTimeout": "60s",
    }
