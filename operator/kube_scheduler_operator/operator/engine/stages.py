"""The results of the steps of a reconcile, one immutable value for each stage.

A step takes the stages that it depends on, so a wrong order of steps is a type error. An
unexpected error in a step becomes a condition, and the other steps do their work.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Concatenate, Final, ParamSpec, TypeVar

from ...base import names
from ...base.defects import DEFECT, contained
from ...base.findings import Finding
from ...config.effective.control_plane.scheduler import EffectiveControlPlane
from ...config.effective.settings.validate import SettingsResult
from ...kube.resource import ObjectRef
from ..controlplane.adoption.adopted import Adopted
from ..controlplane.managed import ManagedScheduler
from ..controlplane.placement_gate import CheckedSpecs, RevisionCheck
from ..controlplane.revision.content import RevisionContent
from ..controlplane.revision.credentials import GatheredCredentials
from ..controlplane.revision.revise import RevisionResult
from ..controlplane.rollout.observe import Observation
from ..controlplane.upgrade_check import UpgradeCheck
from ..extenders.agents import ControlPlaneAgents
from ..loadpolicy.reconcile import LoadPolicies
from ..model.plan import Action, Plan
from ..model.snapshot import PendingPod, Snapshot
from ..secondary.reconcile import SecondarySchedulers
from ..status.conditions import Condition

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Diagnoses:
    pods: tuple[PendingPod, ...] = ()  # pods whose schedulerName no scheduler serves
    # the schedulerNames that a scheduler serves; None if they are not known
    served: frozenset[str] | None = None
    conditions: tuple[Condition, ...] = ()  # of KubeScheduler


@dataclass(frozen=True, slots=True)
class Everywhere:
    """The results that do not depend on the state of KubeScheduler."""

    # the write of the decision about the platform; empty if it is up to date
    record: Mapping[ObjectRef, tuple[Action, ...]] = field(default_factory=dict)
    image: str = ""  # the operand's image; empty if it is unknown
    secondary: SecondarySchedulers = field(default_factory=SecondarySchedulers)
    loads: LoadPolicies = field(default_factory=LoadPolicies)
    diagnoses: Diagnoses = field(default_factory=Diagnoses)


@dataclass(frozen=True, slots=True)
class DecidedControlPlane:
    control_plane: EffectiveControlPlane
    credentials: GatheredCredentials
    findings: tuple[Finding, ...]  # all errors and warnings


@dataclass(frozen=True, slots=True)
class HeldEdits:
    """Edits of agents, which need no revision, and what is in use until they are checked."""

    proposed: DecidedControlPlane  # with the edits
    decided: DecidedControlPlane  # with the versions in use in their place
    specs: CheckedSpecs


@dataclass(frozen=True, slots=True)
class PreparedRevision:
    adopted: Adopted  # settings of the schedulers that predate the operator
    # with the edits of agents only if they may be in use; None after an unexpected error
    decided: DecidedControlPlane | None
    edits: HeldEdits | None = None  # None after an unexpected error
    agents: ControlPlaneAgents = field(default_factory=ControlPlaneAgents)
    # the write of `spec.observedConfig`; empty if it is up to date
    observing: tuple[Action, ...] = ()
    upgrade: UpgradeCheck = field(default_factory=UpgradeCheck)  # of a newer version, on request
    failures: tuple[Finding, ...] = ()  # the unexpected errors of earlier steps

    @property
    def settings(self) -> SettingsResult | None:
        return self.decided.control_plane.settings if self.decided is not None else None

    @property
    def findings(self) -> tuple[Finding, ...]:
        decided = self.decided.findings if self.decided is not None else ()
        return (*self.failures, *decided, *self.agents.findings)


@dataclass(frozen=True, slots=True)
class Filled:
    """The revision that would be cut, and what runs."""

    content: RevisionContent | None  # None if a finding blocks it
    observation: Observation  # the schedulers, installer pods and nodes
    findings: tuple[Finding, ...] = ()  # about its size


@dataclass(frozen=True, slots=True)
class Revised:
    filled: Filled
    check: RevisionCheck | None  # None after an unexpected error
    targets: tuple[Action, ...]  # writes that bring the target ConfigMaps up to date
    revisions: RevisionResult


@dataclass(frozen=True, slots=True)
class Requested:
    """The SecondaryScheduler in place of the control plane's scheduler."""

    control_plane: EffectiveControlPlane | None = None  # None after an unexpected error
    managed: ManagedScheduler = field(default_factory=ManagedScheduler)
    findings: tuple[Finding, ...] = ()  # also about attached objects
    upgrade: UpgradeCheck = field(default_factory=UpgradeCheck)  # of a newer version, on request

    @property
    def settings(self) -> SettingsResult | None:
        return self.control_plane.settings if self.control_plane is not None else None


@dataclass(frozen=True, slots=True)
class Reconciled:
    everywhere: Everywhere
    plan: Plan | None  # None if a step that it needs raised an unexpected error


FAILURES: Final[Mapping[str, tuple[str, bool]]] = {
    "record platform": (names.CONFIG_OBSERVATION_DEGRADED, False),
    "find image": (names.TARGET_CONFIG_DEGRADED, True),
    "reconcile secondary schedulers": (names.SECONDARY_DEGRADED, False),
    "observe secondary schedulers": (names.SECONDARY_DEGRADED, False),
    "reconcile load policies": (names.LOAD_POLICIES_DEGRADED, False),
    "diagnose": (names.CONFIG_OBSERVATION_DEGRADED, False),
    "adopt": (names.ADOPTION_DEGRADED, True),
    "decide": (names.TARGET_CONFIG_DEGRADED, True),
    "keep edits back": (names.TARGET_CONFIG_DEGRADED, True),
    "run agents": (names.SCHEDULER_EXTENDERS_DEGRADED, False),
    "write observed config": (names.CONFIG_OBSERVATION_DEGRADED, False),
    "fill revision": (names.REVISION_DEGRADED, False),
    "check upgrade": (names.CONFIG_OBSERVATION_DEGRADED, False),
    "check placements": (names.REVISION_DEGRADED, False),
    "release edits": (names.REVISION_DEGRADED, False),
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
