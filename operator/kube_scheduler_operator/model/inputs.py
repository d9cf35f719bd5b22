"""Everything that the configuration depends on, as one immutable value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..base.objects import mapping
from ..base.platform import Platform
from ..schedulerconfig.versions import Version


@dataclass(frozen=True, slots=True)
class Inputs:
    """Everything that the configuration depends on.

    Those from `apiserver` to `infrastructure` exist only where the platform has OpenShift's cluster
    configuration.

    Attributes:
        platform: where the scheduler runs.
        operand_version: the kube-scheduler that will read the configuration.
        scheduler: the Scheduler "cluster" as read, None if it does not exist.
        kubescheduler: the KubeScheduler "cluster" as read; only its spec matters.
        stock_arguments: command line of the scheduler that was found at adoption, if visible.
        stock_image: False for a custom operand image, which may know plugins that we do not.
        previous_arguments: command line that was composed last; what cannot be observed now stays
            as it is there.
        payload_version: the release whose feature gates count, as FeatureGate calls it.
        apiserver: the APIServer "cluster": TLS settings.
        feature_gate: the FeatureGate "cluster": feature gates per release.
        infrastructure: the Infrastructure "cluster": where the API server is.
        serving_certificate: whether the cluster made one for the scheduler (platform.credentials).
        scheduler_profiles: SchedulerProfiles as read; None: the API does not serve the kind.
        scheduler_extenders: SchedulerExtenders as read; None: the API does not serve the kind.
        schedulers: what `spec.scheduler` of both may say; empty is the control plane's.
        planned: whether agents are taken for running although nobody has seen them.
    """

    platform: Platform
    operand_version: Version
    scheduler: Mapping[str, Any] | None
    kubescheduler: Mapping[str, Any]
    stock_arguments: tuple[str, ...] = ()
    stock_image: bool = True
    previous_arguments: tuple[str, ...] = ()
    payload_version: str = ""
    apiserver: Mapping[str, Any] | None = None
    feature_gate: Mapping[str, Any] | None = None
    infrastructure: Mapping[str, Any] | None = None
    serving_certificate: bool = False
    scheduler_profiles: tuple[Mapping[str, Any], ...] | None = ()
    scheduler_extenders: tuple[Mapping[str, Any], ...] | None = ()
    schedulers: frozenset[str] = frozenset({""})
    planned: bool = False

    @property
    def spec(self) -> Mapping[str, Any]:
        """KubeScheduler's spec."""
        return mapping(self.kubescheduler.get("spec"))
