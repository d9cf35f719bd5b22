"""Which running pods share a trial: those that differ in their names, and in some of their nodes.

Most filters decide about each node by itself, so that replicas on several nodes can be tried with
the places of all of them free. Rules about other pods count by domain: of replicas with such rules,
those in the same domains share a trial.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

from ..base.objects import entries, mapping
from .affinity_terms import apart_by, terms_of
from .configuration import profiles_of
from .device_claims import claims_of
from .kinds import HOSTNAME
from .profile_rules import default_constraints
from .run_options import RunOptions, has_unknown_plugins
from .world import World

_HARD: Final = "DoNotSchedule"


class Replicas:
    """What of a pod's node counts for trials of replicas, with any of several options."""

    def __init__(self, world: World, *options: RunOptions) -> None:
        self._world = world
        self._has_unknown_plugins = any(map(has_unknown_plugins, options))
        self._by_default: dict[str, set[str]] = {}  # schedulerName -> topologyKeys
        for each in options:
            for profile in profiles_of(each.config):
                keys = self._by_default.setdefault(profile["schedulerName"], set())
                keys.update(_hard_keys(default_constraints(profile)))

    @cached_property
    def _labels(self) -> Mapping[str, Mapping[str, str]]:
        return self._world.labels_of_nodes()

    def place(self, pod: Mapping[str, Any]) -> tuple[str, ...]:
        """Return in what replicas that share a trial do not differ: the domains of their rules."""
        node = pod["spec"].get("nodeName") or ""
        if claims_of(pod):
            return (node,)  # whose device it has
        return tuple(self._labels.get(node, {}).get(key, "") for key in self._keys(pod))

    def keep_apart(self, pod: Mapping[str, Any]) -> bool:
        """Return whether the place of a replica keeps others out of its domain."""
        return bool(self._keys(pod)) or _spreads_over_nodes(pod)

    def stand_for_each_other(self, pod: Mapping[str, Any]) -> bool:
        """Return whether one replica is tried for all: what else their places do is not known.

        Those with affinity to pods may need each other.
        """
        return bool(terms_of(pod["spec"], "podAffinity")) or self._has_unknown_plugins

    def _keys(self, pod: Mapping[str, Any]) -> list[str]:
        """Return the topologyKeys, except that of nodes, of rules that keep replicas apart."""
        of_profile = self._by_default.get(pod["spec"].get("schedulerName") or "", ())
        keys = {*apart_by(pod), *_hard_keys(pod["spec"].get("topologySpreadConstraints"))}
        return sorted({*keys, *of_profile} - {HOSTNAME})


def _spreads_over_nodes(pod: Mapping[str, Any]) -> bool:
    return HOSTNAME in _hard_keys(pod["spec"].get("topologySpreadConstraints"))


def _hard_keys(constraints: Any) -> set[str]:
    return {
        str(one.get("topologyKey"))
        for one in map(mapping, entries(constraints))
        if one.get("whenUnsatisfiable") == _HARD
    }
