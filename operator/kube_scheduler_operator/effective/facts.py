"""What a configuration depends on besides the objects of users."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from ..base.images import ALLOWED_BY_DEFAULT, EVERY_IMAGE, AllowedImages
from ..base.platform import Platform
from ..operatorsettings.validate import PodDefaults
from ..schedulerconfig.versions import Version


@dataclass(frozen=True, slots=True)
class Permissions:
    """What the operator's own settings permit."""

    images: AllowedImages = EVERY_IMAGE  # images of SecondarySchedulers
    agent_images: AllowedImages = EVERY_IMAGE  # images of agents and sidecars
    # where SecondarySchedulers may run; None: not known, so all are accepted
    namespaces: tuple[str, ...] | None = None


UNKNOWN_PERMISSIONS = Permissions(ALLOWED_BY_DEFAULT, ALLOWED_BY_DEFAULT)
"""Of files: another image than Kubernetes' own is a warning."""


@dataclass(frozen=True, slots=True)
class ControlPlaneFacts:
    """What is known of the scheduler on control-plane nodes."""

    # the command line of the scheduler that was adopted, if it is visible
    stock_arguments: tuple[str, ...] = ()
    # fields of KubeSchedulerConfiguration with the effect of what was adopted
    adopted_config: Mapping[str, Any] = field(default_factory=dict)
    # the command line composed last; it supplies what cannot be observed now
    previous_arguments: tuple[str, ...] = ()
    serving_certificate: bool = False  # whether the cluster issued one for the scheduler
    # its schedulerNames, on which no other scheduler may run; None: those that are composed
    serves: tuple[str, ...] | None = None
    # the filters of default-scheduler; None if they are unknown
    filters: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """What a configuration depends on besides the objects; of files, flags state it."""

    platform: Platform  # the kind of cluster
    default_version: Version  # the version of an image whose tag is not a version of Kubernetes
    # kube-scheduler's image; empty: no image was found; None: files do not show it
    image: str | None = None
    stock: bool = True  # False if every image may have plugins that Kubernetes' own does not have
    follows_kubeadm: bool = False  # whether the image is that of the nodes, which kubeadm upgrades
    payload_version: str = ""  # the release whose feature gates apply, as named in FeatureGate
    # the API server's version, where schedulers may have another one; None elsewhere
    server_version: Version | None = None
    # whether to assume that agents run, which do so only once they are applied
    planned: bool = False
    # the SecondaryScheduler in the place of the control plane's scheduler
    managed_scheduler: str = ""
    # what Pods have without OperatorSettings
    pods: PodDefaults = field(default_factory=PodDefaults)
    # what the operator's own settings permit
    permissions: Permissions = field(default_factory=Permissions)
    # what is known of the scheduler on control-plane nodes
    control_plane: ControlPlaneFacts = field(default_factory=ControlPlaneFacts)

    @property
    def version(self) -> Version:
        """The version of kube-scheduler's image."""
        return self.version_of(self.image or "")

    def version_of(self, image: str) -> Version:
        """The version of an image: its tag, if that is one."""
        with suppress(ValueError):
            return Version.of_image(image)
        return self.default_version

    @property
    def is_stock(self) -> bool:
        """Whether the control plane's image has Kubernetes' own plugins only."""
        if self.image is None or self.platform.cluster_config:
            # On OpenShift the image of the stock scheduler can have any name.
            return self.stock
        return self.stock and is_stock_image(self.image)


def is_stock_image(image: str) -> bool:
    """Whether an image has the name of Kubernetes' own kube-scheduler."""
    return "/kube-scheduler:" in f"/{image}" or "/kube-scheduler@" in f"/{image}"
