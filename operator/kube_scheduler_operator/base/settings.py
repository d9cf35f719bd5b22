"""Settings of the operator, from flags and environment variables."""

from __future__ import annotations

from dataclasses import dataclass, field

from .. import __version__
from .backoff import Backoff
from .images import AllowedImages


@dataclass(frozen=True, slots=True)
class Rollout:
    """Settings of a rollout; times in seconds."""

    health_timeout: float = 60.0  # to become Ready, before the last good scheduler is restored
    settling_time: float = 2.0  # to then stay Ready without a restart, to count as healthy
    # for which an installer pod may be pending (image pull, node) before the operator is Degraded,
    # and for which a node that is not Ready may delay the others
    pending_tolerance: float = 60.0
    retry_base: float = 10.0  # the back-off after an installer pod's first failure; grows by 1.5
    retry_limit: float = 600.0  # the longest back-off
    # after the scheduler became healthy, in which a crash loop is attributed to its revision; a
    # later one is attributed to its environment
    probation: float = 600.0
    crash_restarts: int = 3  # in a crash loop
    # for which a node may run another revision, or none, before its own is restored
    drift_tolerance: float = 10.0

    def delay(self, attempt: int) -> float:
        """Return the back-off in seconds after `attempt` failures."""
        return Backoff.exponential(self.retry_base, self.retry_limit, 1.5).delay(attempt)


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings that are known before the operator connects to the cluster."""

    operator_image: str = f"kube-scheduler-operator:{__version__}"  # of this program
    operand_image: str = ""  # of kube-scheduler; empty: the image that the cluster runs now
    # of kube-scheduler's images, without tag, where the provider runs the control plane's scheduler
    operand_repository: str = "registry.k8s.io/kube-scheduler"
    managed_scheduler: str = "managed-scheduler"  # the name of the SecondaryScheduler there
    # seconds for which all API servers must be newer before schedulers follow
    upgrade_delay: float = 600.0
    image_pull_secrets: tuple[str, ...] = ()  # for pods on nodes
    operator_version: str = __version__  # in ClusterOperator
    # kube-scheduler's version in ClusterOperator on OpenShift, from the release payload; empty: the
    # version of its image
    operand_version: str = ""
    release_version: str = ""  # of the cluster's OpenShift release, which selects feature gates
    resync: float = 60.0  # seconds after which to reconcile even without a change
    # of SecondarySchedulers; None: the target namespace
    secondary_namespaces: tuple[str, ...] | None = None
    # that objects may name, in addition to the defaults of each field
    allowed_images: AllowedImages = field(default_factory=AllowedImages)
    pending_interval: float = 60.0  # seconds between polls for pending pods and bindings; 0: none
    rollout: Rollout = field(default_factory=Rollout)

    @property
    def agent_images(self) -> AllowedImages:
        """The images that agents and sidecars may use: the operator's own, and those allowed."""
        return self.allowed_images.with_repositories_of(self.operator_image)
