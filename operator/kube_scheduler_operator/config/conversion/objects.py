"""A KubeSchedulerConfiguration as the objects that people apply: a SchedulerProfile per profile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..merge import DEFAULT_SCHEDULER

_API_VERSION: Final = "kube-scheduler-operator.dev/v1alpha1"
_KIND: Final = "SchedulerProfile"
_OURS: Final = ("apiVersion", "kind", "profiles", "clientConnection", "leaderElection")
"""What is the operator's own business: the connection to the API server and the election."""


def scheduler_profiles(config: Mapping[str, Any]) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """(SchedulerProfiles, fields of the configuration that no SchedulerProfile can say).

    The base is None, kube-scheduler's own defaults, because that is what a file's lists are merged
    with. An object has the name of its profile, which is that of pods' `spec.schedulerName`.
    """
    objects = []
    for profile in config.get("profiles") or [{}]:
        name = profile.get("schedulerName") or DEFAULT_SCHEDULER
        spec = {key: value for key, value in profile.items() if key != "schedulerName"}
        objects.append(
            {
                "apiVersion": _API_VERSION,
                "kind": _KIND,
                "metadata": {"name": name},
                "spec": {"base": "None", **spec},
            }
        )
    return objects, tuple(key for key in config if key not in _OURS)
