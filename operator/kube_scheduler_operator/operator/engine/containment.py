"""An unexpected error in a step becomes a condition, and the other steps do their work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, ParamSpec, TypeVar

from ...base import names
from ...base.defects import DEFECT, contained
from ...base.findings import Finding

P = ParamSpec("P")
T = TypeVar("T")

FAILURES: Final[Mapping[str, tuple[str, bool]]] = {
    "record_platform": (names.CONFIG_OBSERVATION_DEGRADED, False),
    "find_image": (names.TARGET_CONFIG_DEGRADED, True),
    "reconcile_secondary_schedulers": (names.SECONDARY_DEGRADED, False),
    "reconcile_load_policies": (names.LOAD_POLICIES_DEGRADED, False),
    "diagnose": (names.CONFIG_OBSERVATION_DEGRADED, False),
    "adopt": (names.ADOPTION_DEGRADED, True),
    "decide": (names.TARGET_CONFIG_DEGRADED, True),
    "run_agents": (names.SCHEDULER_EXTENDERS_DEGRADED, False),
    "write_observed_config": (names.CONFIG_OBSERVATION_DEGRADED, False),
    "fill_revision": (names.REVISION_DEGRADED, False),
    "check_placements": (names.REVISION_DEGRADED, False),
    "revise": (names.REVISION_DEGRADED, False),
    "roll_out": (names.NODE_INSTALLER_DEGRADED, False),
    "report": (names.INSTALLER_DEGRADED, False),
    "remove": (names.NODE_INSTALLER_DEGRADED, False),
    "decide_managed": (names.TARGET_CONFIG_DEGRADED, True),
    "request_scheduler": (names.TARGET_CONFIG_DEGRADED, False),
    "reconcile_attached_schedulers": (names.SECONDARY_DEGRADED, False),
}
"""The condition that reports an unexpected error in a step, and whether it blocks a revision."""


class Containment:
    """Runs the steps of one reconcile."""

    def __init__(self) -> None:
        self.failures: tuple[Finding, ...] = ()  # of the steps that raised an unexpected error

    def __call__(self, step: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
        """Return the result of a step; None after an unexpected error, which becomes a finding."""
        try:
            return step(*args, **kwargs)
        except Exception as error:
            self.failures = (*self.failures, _failure(step.__name__, error))
            return None


def _failure(step: str, error: Exception) -> Finding:
    name = step.replace("_", " ")
    condition, blocking = FAILURES.get(step, (names.INSTALLER_DEGRADED, False))
    message = (
        f'step "{name}" failed: {contained(name, "", error)}; report this with the operator\'s '
        "log (running schedulers are not affected)"
    )
    return Finding(condition, DEFECT, "", message, blocking=blocking)
