"""The configuration of a simulated kube-scheduler: the cluster's own, without its surroundings."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from ..config.language.schema import API_VERSION, DEFAULT_SCHEDULER, KIND

PLACEMENT_FIELDS: Final = ("profiles", "extenders", "parallelism", "percentageOfNodesToScore")
"""Fields that decide placements; back-offs decide only when, other fields concern the process."""
SPY: Final = "spy"


def default_configuration() -> dict[str, Any]:
    """Return a configuration that sets nothing."""
    return {"apiVersion": API_VERSION, "kind": KIND}


def profiles_of(config: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the profiles of a configuration, with the names that they get by default."""
    profiles: list[dict[str, Any]] = [dict(given) for given in config.get("profiles") or [{}]]
    for profile in profiles:
        profile.setdefault("schedulerName", DEFAULT_SCHEDULER)
    return profiles


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
    """
    kept = {field: copy.deepcopy(config[field]) for field in PLACEMENT_FIELDS if field in config}
    configuration = {**default_configuration(), **kept}
    configuration["profiles"] = [*profiles_of(config), *profiles]
    chosen = list(extenders)
    configuration.pop("extenders", None)
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
