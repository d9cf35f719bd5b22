"""The objects of users, in the one form that every caller hands over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..base import names
from ..base.objects import Object


@dataclass(frozen=True, slots=True)
class Objects:
    """What users wrote: in a cluster, in files, or in files laid over a cluster.

    Only OpenShift has `apiserver`, `feature_gate` and `infrastructure`.
    """

    scheduler: Mapping[str, Any] | None = None  # the Scheduler "cluster"; None if it does not exist
    # the KubeScheduler "cluster"; only its spec matters
    kubescheduler: Mapping[str, Any] = field(default_factory=dict)
    # all SchedulerProfiles; None if the API does not serve the kind
    profiles: tuple[Mapping[str, Any], ...] | None = ()
    # all SchedulerExtenders; None if the API does not serve the kind
    extenders: tuple[Mapping[str, Any], ...] | None = ()
    secondaries: tuple[Object, ...] = ()  # all SecondarySchedulers
    # the OperatorSettings "cluster"; None if it does not exist
    operator_settings: Mapping[str, Any] | None = None
    apiserver: Mapping[str, Any] | None = None  # the APIServer "cluster": TLS settings
    # the FeatureGate "cluster": feature gates per release
    feature_gate: Mapping[str, Any] | None = None
    # the Infrastructure "cluster": where the API server is
    infrastructure: Mapping[str, Any] | None = None

    @property
    def settings(self) -> Mapping[str, Mapping[str, Any]]:
        """OperatorSettings by name."""
        own = self.operator_settings
        return {} if own is None else {names.CLUSTER: own}
