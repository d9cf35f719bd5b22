"""An unexpected error in a step becomes a condition, and the other steps do their work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Concatenate, Final, ParamSpec, TypeVar

from ...base import names
from ...base.defects import DEFECT, contained
from ...base.findings import Finding
from ..model.snapshot import Snapshot

P = ParamSpec("P")
T = TypeVar("T")

FAILURES: Final[Mapping[str, tuple[str, bool]]] = {
    "record platform": (names.CONFIG_OBSERVATION_DEGRADED, False),
    "find image": (names.TARGET_CONFIG_DEGRADED, True),
    "reconcile secondary schedulers": (names.SECONDARY_DEGRADED, False),
    "reconcile load policies": (names.LOAD_POLICIES_DEGRADED, False),
    "diagnose": (names.CONFIG_OBSERVATION_DEGRADED, False),
    "adopt": (names.ADOPTION_DEGRADED, True),
    "decide": (names.TARGET_CONFIG_DEGRADED, True),
    "run agents": (names.SCHEDULER_EXTENDERS_DEGRADED, False),
    "write observed config": (names.CONFIG_OBSERVATION_DEGRADED, False),
    "fill revision": (names.REVISION_DEGRADED, False),
    "check placements": (names.REVISION_DEGRADED, False),
    "revise": (names.REVISION_DEGRADED, False),
    "roll out": (names.NODE_INSTALLER_DEGRADED, False),
    "report": (names.INSTALLER_DEGRADED, False),
    "remove": (names.NODE_INSTALLER_DEGRADED, False),
    "decide managed": (names.TARGET_CONFIG_DEGRADED, True),
    "request scheduler": (names.TARGET_CONFIG_DEGRADED, False),
    "reconcile attached schedulers": (names.SECONDARY_DEGRADED, False),
}
"""The condition that reports an unexpected error in a step, and whether it blocks a revision."""


class Containment:
    """Runs the steps of one reconcile, each with its snapshot."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.failures: tuple[Finding, ...] = ()  # of the steps that raised an unexpected error

    def __call__(
        self,
        step: str,
        function: Callable[Concatenate[Snapshot, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T | None:
        """Return the result of a step; None after an unexpected error, which becomes a finding."""
        try:
            return function(self.snapshot, *args, **kwargs)
        except Exception as error:
            condition, blocking = FAILURES.get(step, (names.INSTALLER_DEGRADED, False))
            message = (
                f'step "{step}" failed: {contained(step, "", error)}; report this with the '
                "operator's log (running schedulers are not affected)"
            )
            failure = Finding(condition, DEFECT, "", message, blocking=blocking)
            self.failures = (*self.failures, failure)
            return None
