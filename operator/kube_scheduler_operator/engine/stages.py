"""What the steps of a reconcile decide, one immutable value for each stage.

A step takes the stages that it depends on, so a wrong order of steps is an error of types.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..base.findings import Finding
from ..controlplane.adoption.adopted import Adopted
from ..controlplane.managed_scheduler import ManagedScheduler
from ..controlplane.placement_check import PlacementCheck
from ..controlplane.revision.content import RevisionContent
from ..controlplane.revision.credentials import GatheredCredentials
from ..controlplane.revision.revise import RevisionResult
from ..controlplane.rollout.observe import Observation
from ..controlplane.rollout.result import RolloutResult
from ..effective.control_plane.scheduler import EffectiveControlPlane
from ..extenders.agents import ControlPlaneAgents
from ..kube.resource import ObjectRef
from ..loadpolicy.reconcile import LoadPolicies
from ..model.plan import Action, Plan
from ..model.snapshot import PendingPod
from ..operatorsettings.validate import SettingsResult
from ..secondary.reconcile import SecondarySchedulers
from ..status.conditions import Condition


@dataclass(frozen=True, slots=True)
class Diagnoses:
    """What no scheduler, or an unmanaged one, serves."""

    pods: tuple[PendingPod, ...] = ()  # pods whose schedulerName no scheduler serves
    # the schedulerNames that a scheduler serves; None if they are not known
    served: frozenset[str] | None = None
    conditions: tuple[Condition, ...] = ()  # conditions of KubeScheduler about them


@dataclass(frozen=True, slots=True)
class Everywhere:
    """What does not depend on the state of KubeScheduler."""

    # the write of what was decided about the platform; empty if it is up to date
    record: Mapping[ObjectRef, tuple[Action, ...]] = field(default_factory=dict)
    image: str = ""  # the operand's image; empty if it is unknown
    # all SecondarySchedulers
    secondary: SecondarySchedulers = field(default_factory=SecondarySchedulers)
    loads: LoadPolicies = field(default_factory=LoadPolicies)  # all LoadPolicies
    # schedulerNames that no scheduler, or an unmanaged one, serves
    diagnoses: Diagnoses = field(default_factory=Diagnoses)


@dataclass(frozen=True, slots=True)
class DecidedControlPlane:
    """What the objects of the control plane lead to."""

    adopted: Adopted  # what is kept from the schedulers that predate the operator
    control_plane: EffectiveControlPlane  # the effective configuration
    credentials: GatheredCredentials  # what a revision holds besides the configuration
    findings: tuple[Finding, ...]  # all errors and warnings about both


@dataclass(frozen=True, slots=True)
class PreparedRevision:
    """What precedes a rollout."""

    adopted: Adopted  # what is kept from the schedulers that predate the operator
    decided: DecidedControlPlane | None  # what the objects lead to; None after an unexpected error
    # the agents of SchedulerExtenders on control-plane nodes
    agents: ControlPlaneAgents = field(default_factory=ControlPlaneAgents)
    # the write of `spec.observedConfig`; empty if it is up to date
    observing: tuple[Action, ...] = ()
    # the steps before that raised an unexpected error, as findings
    failures: tuple[Finding, ...] = ()

    @property
    def settings(self) -> SettingsResult | None:
        """The validated OperatorSettings; None without one."""
        return self.decided.control_plane.settings if self.decided is not None else None

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings about the control plane's configuration."""
        decided = self.decided.findings if self.decided is not None else ()
        return (*self.failures, *decided, *self.agents.findings)


@dataclass(frozen=True, slots=True)
class Filled:
    """The revision that would be cut, and what runs."""

    content: RevisionContent | None  # its content; None if a finding blocks it
    observation: Observation  # the schedulers, installer pods and nodes
    findings: tuple[Finding, ...] = ()  # the errors of its size


@dataclass(frozen=True, slots=True)
class Revised:
    """The revisions after this reconcile."""

    filled: Filled  # the revision that would be cut, and what runs
    # what was decided about the placements that it changes; None after an unexpected error
    check: PlacementCheck | None
    targets: tuple[Action, ...]  # writes that bring the target ConfigMaps up to date
    revisions: RevisionResult


@dataclass(frozen=True, slots=True)
class RolledOut:
    """What each node does next."""

    revised: Revised  # the revisions
    rollout: RolloutResult  # the result for the nodes


@dataclass(frozen=True, slots=True)
class Requested:
    """The SecondaryScheduler in the place of the control plane's scheduler."""

    # what Scheduler and KubeScheduler lead to; None after an unexpected error
    control_plane: EffectiveControlPlane | None = None
    managed: ManagedScheduler = field(default_factory=ManagedScheduler)  # the object
    # all errors and warnings about it and about attached objects
    findings: tuple[Finding, ...] = ()

    @property
    def settings(self) -> SettingsResult | None:
        """The validated OperatorSettings; None without one."""
        return self.control_plane.settings if self.control_plane is not None else None


@dataclass(frozen=True, slots=True)
class Reconciled:
    """The result of all steps."""

    everywhere: Everywhere  # what does not depend on the state of KubeScheduler
    plan: Plan | None  # the rest; None if a step that it needs raised an unexpected error
