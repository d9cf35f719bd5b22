"""The configuration of a simulated kube-scheduler: the cluster's own, without its surroundings."""

from __future__ import annotations

import copy
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from ..base.objects import entries
from ..config.language.feature_gates import Gates
from ..config.language.plugins.effective_plugins import effective_plugins
from ..config.language.schema import API_VERSION, DEFAULT_SCHEDULER, KIND

PLACEMENT_FIELDS: Final = ("profiles", "extenders", "parallelism", "percentageOfNodesToScore")
"""Fields that decide placements; back-offs decide only when, other fields concern the process."""
SPY: Final = "spy"
_NEVER_CALLED: Final = "http://simulation.invalid"
"""kube-scheduler demands a URL of an extender without verbs, and does not call it."""
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


def with_profile(config: Mapping[str, Any], fragment: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration whose profile "default-scheduler" is the one of a fragment."""
    (profile,) = profiles_of(fragment)
    others = [other for other in profiles_of(config) if other["schedulerName"] != DEFAULT_SCHEDULER]
    return {**copy.deepcopy(dict(config)), "profiles": [profile, *others]}


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
    configuration["profiles"] = [*profiles_of(config), *profiles]
    chosen = list(extenders)
    known = {resource["name"] for own in chosen for resource in own.get("managedResources") or ()}
    ignored = configuration.pop("extenders", ())
    chosen += _silent(ignored, known)
    if chosen:
        configuration["extenders"] = chosen
    return {
        **configuration,
        "leaderElection": {"leaderElect": False},
        "enableProfiling": False,
        "enableContentionProfiling": False,
        "podInitialBackoffSeconds": 1,
        "podMaxBackoffSeconds": 1,
    }


def without_calls(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration whose extenders only make NodeResourcesFit ignore resources."""
    kept = {key: value for key, value in config.items() if key != "extenders"}
    silent = list(_silent(config.get("extenders"), ()))
    return {**kept, "extenders": silent} if silent else kept


def _silent(extenders: Any, known: Container[str]) -> Iterator[dict[str, Any]]:
    """Yield entries without verbs, for the resources that are ignored and not `known`."""
    for extender in entries(extenders):
        managed = entries(extender.get("managedResources"))
        ignored = [one for one in managed if one.get("ignoredByScheduler")]
        if resources := [dict(one) for one in ignored if one.get("name") not in known]:
            yield {"urlPrefix": _NEVER_CALLED, "managedResources": resources}


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
