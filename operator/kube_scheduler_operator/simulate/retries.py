"""Which waiting Pods kube-scheduler tries again after it has placed another one.

A plugin registers the events that may make a Pod that it has rejected schedulable. Of Kubernetes'
plugins, InterPodAffinity and PodTopologySpread register that a Pod got a node, the former for
required podAffinity: podAntiAffinity only keeps more nodes away then. Those of volumes and claims
register what changes with it; a group is tried with each of its Pods. Extenders, and plugins
outside Kubernetes, may wait for any event.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Final

from ..base.objects import entries, mapping
from ..config.language.schema import DEFAULT_SCHEDULER
from .configuration import profiles_of
from .device_claims import claims_of
from .pod_groups import group_name
from .run_options import RunOptions, has_unknown_plugins

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_CLAIMS: Final = ("persistentVolumeClaim", "ephemeral")
_SPREAD: Final = "PodTopologySpread"
_HARD: Final = "DoNotSchedule"


class Retries:
    """Whether a placed Pod may make kube-scheduler try another one again."""

    def __init__(self, options: RunOptions) -> None:
        self._options = options

    @cached_property
    def _any_event(self) -> bool:
        """Whether what rejects Pods may wait for any event."""
        options = self._options
        extenders = options.extenders or any(other.extenders for other in options.others)
        return bool(extenders or options.probes) or has_unknown_plugins(options)

    @cached_property
    def _spread(self) -> frozenset[str]:
        """The schedulerNames whose Pods have a hard constraint although their spec has none."""
        options = self._options
        configs = (options.config, *(other.config for other in options.others))
        return frozenset(
            str(profile["schedulerName"])
            for config in configs
            for profile in profiles_of(config)
            if any(each.get("whenUnsatisfiable") == _HARD for each in _default_constraints(profile))
        )

    def follow(self, pod: Mapping[str, Any]) -> bool:
        """Return whether a Pod that waits may be tried again when another one is placed."""
        spec = mapping(pod.get("spec"))
        affinity = mapping(spec.get("affinity"))
        return bool(
            self._any_event
            or str(spec.get("schedulerName") or DEFAULT_SCHEDULER) in self._spread
            or mapping(affinity.get("podAffinity")).get(_REQUIRED)
            or any(
                mapping(each).get("whenUnsatisfiable") == _HARD
                for each in entries(spec.get("topologySpreadConstraints"))
            )
            or any(mapping(each).get(kind) is not None for kind in _CLAIMS
                   for each in entries(spec.get("volumes")))
            or spec.get("resourceClaims")
            or claims_of(pod)
            or group_name(pod) is not None
        )  # fmt: skip


def _default_constraints(profile: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for plugin in entries(profile.get("pluginConfig")):
        if mapping(plugin).get("name") == _SPREAD:
            args = mapping(mapping(plugin).get("args"))
            yield from map(mapping, entries(args.get("defaultConstraints")))
