"""Settings of the operator, from flags and environment variables."""

from __future__ import annotations

from dataclasses import dataclass, field

from .. import __version__
from .backoff import Backoff
from .images import AllowedImages


@dataclass(frozen=True, slots=True)
class Rollout:
    """Settings of a rollout; times in seconds."""

    # time for a new scheduler to become Ready before the last good one is restored
    health_timeout: float = 60.0
    # time that it must then stay Ready without a restart to count as healthy
    settling_time: float = 2.0
    # time that an installer pod may be pending (image pull, node) before the operator is Degraded,
    # and that a node that is not Ready may delay the others
    pending_tolerance: float = 60.0
    # the back-off after the first failure of an installer pod; it grows by 1.5
    retry_base: float = 10.0
    retry_limit: float = 600.0  # the longest back-off
    # a crash loop that starts this soon after the scheduler became healthy is attributed to its
    # revision, a later one to its environment
    probation: float = 600.0
    crash_restarts: int = 3  # the number of restarts that make a crash loop
    # time that a node may run another revision than its own, or none, before its revision is
    # restored
    drift_tolerance: float = 10.0

    def delay(self, attempt: int) -> float:
        """The back-off in seconds after `attempt` failures."""
        return Backoff.exponential(self.retry_base, self.retry_limit, 1.5).delay(attempt)


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that is known before the operator connects to the cluster."""

    # the image of the installer pods: this program
    operator_image: str = f"kube-scheduler-operator:{__version__}"
    operand_image: str = ""  # the image of kube-scheduler; empty: the one that the cluster runs now
    # the repository of kube-scheduler's images, without tag, where the provider runs the control
    # plane's scheduler
    operand_repository: str = "registry.k8s.io/kube-scheduler"
    # the name of the SecondaryScheduler that the operator makes there
    managed_scheduler: str = "managed-scheduler"
    # seconds for which all API servers must be newer before schedulers follow
    upgrade_delay: float = 600.0
    image_pull_secrets: tuple[str, ...] = ()  # the names of pull Secrets for pods on nodes
    operator_version: str = __version__  # the version in ClusterOperator
    # kube-scheduler's version in ClusterOperator on OpenShift, as the release payload has it;
    # empty: that of its image
    operand_version: str = ""
    # the version of the cluster's OpenShift release; it selects feature gates
    release_version: str = ""
    resync: float = 60.0  # seconds after which to reconcile even without a change
    # the namespaces of SecondarySchedulers; None: the target namespace
    secondary_namespaces: tuple[str, ...] | None = None
    # the images that objects may name, in addition to the defaults of each field
    allowed_images: AllowedImages = field(default_factory=AllowedImages)
    # seconds between polls for pending pods and bindings; 0: disabled
    pending_interval: float = 60.0
    rollout: Rollout = field(default_factory=Rollout)  # settings of rollouts

    @property
    def agent_images(self) -> AllowedImages:
        """The images that agents and sidecars may have: the operator's own, and those allowed."""
        return self.allowed_images.with_repositories_of(self.operator_image)
