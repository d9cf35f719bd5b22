"""What a configuration depends on besides the objects of users."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from ...base.images import ALLOWED_BY_DEFAULT, EVERY_IMAGE, AllowedImages
from ...base.platform import Platform
from ..language.versions import Version
from .settings.validate import PodDefaults


@dataclass(frozen=True, slots=True)
class Permissions:
    """What the operator's own settings permit."""

    images: AllowedImages = EVERY_IMAGE  # of SecondarySchedulers
    agent_images: AllowedImages = EVERY_IMAGE  # of agents and sidecars
    namespaces: tuple[str, ...] | None = None  # of SecondarySchedulers; None: all are accepted
    own_image: str = ""  # the operator's; empty: not known


UNKNOWN_PERMISSIONS = Permissions(ALLOWED_BY_DEFAULT, ALLOWED_BY_DEFAULT)
"""Of files: another image than Kubernetes' own is a warning."""


@dataclass(frozen=True, slots=True)
class ControlPlaneFacts:
    """What is known of the scheduler on control-plane nodes."""

    stock_arguments: tuple[str, ...] = ()  # of the adopted scheduler, if its command is visible
    # fields of KubeSchedulerConfiguration with the effect of what was adopted
    adopted_config: Mapping[str, Any] = field(default_factory=dict)
    # the command line composed last; it supplies what cannot be observed now
    previous_arguments: tuple[str, ...] = ()
    serving_certificate: bool = False  # whether the cluster issued one for the scheduler
    # its schedulerNames, which no other scheduler may serve; None: those that are composed
    serves: tuple[str, ...] | None = None
    filters: frozenset[str] | None = None  # of default-scheduler; None: unknown


@dataclass(frozen=True, slots=True)
class Facts:
    """What a configuration depends on besides the objects; for files, flags supply it."""

    platform: Platform
    default_version: Version  # of an image whose tag is not a version of Kubernetes
    image: str | None = None  # empty: no image was found; None: files do not show it
    stock: bool = True  # False if every image may have plugins that Kubernetes' own does not have
    follows_kubeadm: bool = False  # whether the image is that of the nodes, which kubeadm upgrades
    # whether `default_version` is that of every image, whatever its tag
    pinned: bool = False
    payload_version: str = ""  # the release whose feature gates apply, as named in FeatureGate
    # the API server's version, where schedulers may have another one; None elsewhere
    server_version: Version | None = None
    planned: bool = False  # assume that agents run, before they are applied
    managed_scheduler: str = ""  # the SecondaryScheduler in place of the control plane's scheduler
    load_policies: frozenset[str] | None = None  # the names of all; None: they are not known
    pods: PodDefaults = field(default_factory=PodDefaults)  # of Pods without OperatorSettings
    permissions: Permissions = field(default_factory=Permissions)
    control_plane: ControlPlaneFacts = field(default_factory=ControlPlaneFacts)

    @property
    def version(self) -> Version:
        return self.version_of(self.image or "")

    def version_of(self, image: str) -> Version:
        """Return the version in the image's tag, otherwise the default version."""
        if not self.pinned:
            with suppress(ValueError):
                return Version.of_image(image)
        return self.default_version

    def of_version(self, version: Version) -> Facts:
        """Return the facts for images of another version, with the same plugins."""
        return replace(self, image=None, stock=self.is_stock, default_version=version, pinned=True)

    @property
    def managed_namespace(self) -> str:
        """The target namespace if schedulers may run there, else the first one that is allowed."""
        target, allowed = self.platform.target_namespace, self.permissions.namespaces
        return target if allowed is None or target in allowed else next(iter(allowed), "")

    @property
    def is_stock(self) -> bool:
        """Whether the control plane's image has Kubernetes' own plugins only."""
        if self.image is None or self.platform.cluster_config:
            # On OpenShift the image of the stock scheduler can have any name.
            return self.stock
        return self.stock and is_stock_image(self.image)


def is_stock_image(image: str) -> bool:
    """Report whether an image has the name of Kubernetes' own kube-scheduler."""
    return "/kube-scheduler:" in f"/{image}" or "/kube-scheduler@" in f"/{image}"
