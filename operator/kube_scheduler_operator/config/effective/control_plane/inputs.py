from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ....base.images import EVERY_IMAGE, AllowedImages
from ....base.objects import mapping
from ....base.platform import Platform
from ...language.versions import Version


@dataclass(frozen=True, slots=True)
class Inputs:
    """Everything that the configuration depends on.

    Only OpenShift has `apiserver`, `feature_gate` and `infrastructure`.
    """

    platform: Platform
    operand_version: Version  # the kube-scheduler that will read the configuration
    scheduler: Mapping[str, Any] | None  # None if it does not exist
    kubescheduler: Mapping[str, Any]  # only its spec matters
    stock_arguments: tuple[str, ...] = ()  # of the adopted scheduler, if its command is visible
    # fields of KubeSchedulerConfiguration with the effect of what was adopted
    adopted_config: Mapping[str, Any] = field(default_factory=dict)
    stock_image: bool = True  # False for a custom operand image, which may have other plugins
    # the command line composed last; it supplies what cannot be observed now
    previous_arguments: tuple[str, ...] = ()
    payload_version: str = ""  # the release whose feature gates apply, as named in FeatureGate
    apiserver: Mapping[str, Any] | None = None  # TLS settings
    # TLS settings that replace those of an APIServer with an error
    accepted_serving: Mapping[str, Any] | None = None
    feature_gate: Mapping[str, Any] | None = None  # feature gates per release
    infrastructure: Mapping[str, Any] | None = None  # where the API server is
    serving_certificate: bool = False  # whether the cluster issued one for the scheduler
    # all SchedulerProfiles and SchedulerExtenders; None if the API does not serve the kind
    scheduler_profiles: tuple[Mapping[str, Any], ...] | None = ()
    scheduler_extenders: tuple[Mapping[str, Any], ...] | None = ()
    # the valid values of `spec.scheduler` of both; "" is the control plane's
    schedulers: frozenset[str] = frozenset({""})
    planned: bool = False  # assume that agents run, for offline checks
    agent_images: AllowedImages = EVERY_IMAGE  # of agents of SchedulerExtenders

    @property
    def spec(self) -> Mapping[str, Any]:
        return mapping(self.kubescheduler.get("spec"))
