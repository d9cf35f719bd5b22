"""Everything that the configuration depends on, as one immutable value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...base.images import EVERY_IMAGE, AllowedImages
from ...base.objects import mapping
from ...base.platform import Platform
from ...schedulerconfig.versions import Version


@dataclass(frozen=True, slots=True)
class Inputs:
    """Everything that the configuration depends on.

    Only OpenShift has `apiserver`, `feature_gate` and `infrastructure`.

    Attributes:
        platform: where the scheduler runs.
        operand_version: the kube-scheduler that will read the configuration.
        scheduler: the Scheduler "cluster"; None if it does not exist.
        kubescheduler: the KubeScheduler "cluster"; only its spec matters.
        stock_arguments: the command line of the scheduler that was adopted, if it is visible.
        adopted_config: fields of KubeSchedulerConfiguration with the effect of what was adopted.
        stock_image: False for a custom operand image, which may have other plugins.
        previous_arguments: the command line composed last; it supplies what cannot be observed now.
        payload_version: the release whose feature gates apply, as named in FeatureGate.
        apiserver: the APIServer "cluster": TLS settings.
        accepted_serving: TLS settings that replace those of an APIServer with an error.
        feature_gate: the FeatureGate "cluster": feature gates per release.
        infrastructure: the Infrastructure "cluster": where the API server is.
        serving_certificate: whether the cluster issued one for the scheduler.
        scheduler_profiles: all SchedulerProfiles; None if the API does not serve the kind.
        scheduler_extenders: all SchedulerExtenders; None if the API does not serve the kind.
        schedulers: the valid values of `spec.scheduler` of both; "" is the control plane's.
        planned: whether to assume that agents run, for offline checks.
        agent_images: the images that agents of SchedulerExtenders may have.
    """

    platform: Platform
    operand_version: Version
    scheduler: Mapping[str, Any] | None
    kubescheduler: Mapping[str, Any]
    stock_arguments: tuple[str, ...] = ()
    adopted_config: Mapping[str, Any] = field(default_factory=dict)
    stock_image: bool = True
    previous_arguments: tuple[str, ...] = ()
    payload_version: str = ""
    apiserver: Mapping[str, Any] | None = None
    accepted_serving: Mapping[str, Any] | None = None
    feature_gate: Mapping[str, Any] | None = None
    infrastructure: Mapping[str, Any] | None = None
    serving_certificate: bool = False
    scheduler_profiles: tuple[Mapping[str, Any], ...] | None = ()
    scheduler_extenders: tuple[Mapping[str, Any], ...] | None = ()
    schedulers: frozenset[str] = frozenset({""})
    planned: bool = False
    agent_images: AllowedImages = EVERY_IMAGE

    @property
    def spec(self) -> Mapping[str, Any]:
        """KubeScheduler's spec."""
        return mapping(self.kubescheduler.get("spec"))
