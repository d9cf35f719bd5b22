"""User objects, in the one form that every caller hands over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...base import names
from ...base.objects import Object


@dataclass(frozen=True, slots=True)
class Objects:
    """What users wrote: in a cluster, in files, or in files laid over a cluster.

    Only OpenShift has `apiserver`, `feature_gate` and `infrastructure`.
    """

    scheduler: Mapping[str, Any] | None = None  # None if it does not exist
    kubescheduler: Mapping[str, Any] = field(default_factory=dict)  # its spec, and one annotation
    # all SchedulerProfiles and SchedulerExtenders; None if the API does not serve the kind
    profiles: tuple[Mapping[str, Any], ...] | None = ()
    extenders: tuple[Mapping[str, Any], ...] | None = ()
    secondaries: tuple[Object, ...] = ()  # all SecondarySchedulers
    operator_settings: Mapping[str, Any] | None = None  # None if it does not exist
    apiserver: Mapping[str, Any] | None = None  # TLS settings
    feature_gate: Mapping[str, Any] | None = None  # feature gates per release
    infrastructure: Mapping[str, Any] | None = None  # where the API server is

    @property
    def schedulers(self) -> frozenset[str]:
        """The valid values of `spec.scheduler`; "" is the control plane's."""
        return frozenset({"", *(str(obj["metadata"]["name"]) for obj in self.secondaries)})

    @property
    def settings(self) -> Mapping[str, Mapping[str, Any]]:
        own = self.operator_settings
        return {} if own is None else {names.CLUSTER: own}
