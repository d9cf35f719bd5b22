"""What the person who deploys the operator can set, from flags and environment variables."""

from __future__ import annotations

from dataclasses import dataclass, field

from .. import __version__


@dataclass(frozen=True, slots=True)
class Rollout:
    """How a rollout behaves; times in seconds.

    Attributes:
        health_timeout: how long a new scheduler has to become Ready before the last good one is put
            back.
        settling_time: how long it must then stay Ready without a restart to count as healthy.
        pending_tolerance: how long an installer pod may wait (image pull, node) without being a
            reason to be Degraded, and a node that is not Ready may hold up the others.
        retry_base: wait before a failed installer pod is tried again; grows by 1.5 each time.
        retry_limit: the longest such wait.
        probation: a scheduler that starts crash-looping this soon after it became healthy is blamed
            on its revision, later than that on its surroundings.
        crash_restarts: so many restarts make a crash loop.
        drift_tolerance: how long a node may run something else than it should, or nothing, before
            its revision is put back.
    """

    health_timeout: float = 60.0
    settling_time: float = 2.0
    pending_tolerance: float = 60.0
    retry_base: float = 10.0
    retry_limit: float = 600.0
    probation: float = 600.0
    crash_restarts: int = 3
    drift_tolerance: float = 10.0

    def delay(self, attempt: int) -> float:
        """Seconds to wait before the attempt after `attempt` failed ones."""
        # The exponent is bounded so that the power cannot overflow into no wait at all.
        return min(self.retry_base * 1.5 ** min(attempt, 30), self.retry_limit)


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that is known before the first request to the cluster.

    Attributes:
        operator_image: image of the installer pods: this very program.
        operand_image: kube-scheduler's image; empty: the one that the cluster runs now.
        image_pull_secrets: names of Secrets with which pods on nodes pull their images.
        operator_version: shown in ClusterOperator.
        release_version: of the cluster's payload, where there is one; it chooses feature gates.
        resync: seconds after which a pass runs even if nothing happened.
        secondary_namespaces: where SecondarySchedulers may run; None: in the target namespace.
        pending_interval: seconds between looks at pods that wait for a scheduler; 0: never.
        rollout: see Rollout.
    """

    operator_image: str = f"kube-scheduler-operator:{__version__}"
    operand_image: str = ""
    image_pull_secrets: tuple[str, ...] = ()
    operator_version: str = __version__
    release_version: str = ""
    resync: float = 60.0
    secondary_namespaces: tuple[str, ...] | None = None
    pending_interval: float = 60.0
    rollout: Rollout = field(default_factory=Rollout)
