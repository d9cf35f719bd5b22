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
    """What no scheduler, or an unmanaged one, serves.

    Attributes:
        pods: pods whose schedulerName no scheduler serves.
        served: the schedulerNames that a scheduler serves; None if they are not known.
        conditions: conditions of KubeScheduler about them.
    """

    pods: tuple[PendingPod, ...] = ()
    served: frozenset[str] | None = None
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class Everywhere:
    """What does not depend on the state of KubeScheduler.

    Attributes:
        record: the write of what was decided about the platform; empty if it is up to date.
        image: the operand's image; empty if it is unknown.
        secondary: all SecondarySchedulers.
        loads: all LoadPolicies.
        diagnoses: schedulerNames that no scheduler, or an unmanaged one, serves.
    """

    record: Mapping[ObjectRef, tuple[Action, ...]] = field(default_factory=dict)
    image: str = ""
    secondary: SecondarySchedulers = field(default_factory=SecondarySchedulers)
    loads: LoadPolicies = field(default_factory=LoadPolicies)
    diagnoses: Diagnoses = field(default_factory=Diagnoses)


@dataclass(frozen=True, slots=True)
class DecidedControlPlane:
    """What the objects of the control plane lead to.

    Attributes:
        adopted: what is kept from the schedulers that predate the operator.
        control_plane: the effective configuration.
        credentials: what a revision holds besides the configuration.
        findings: all errors and warnings about both.
    """

    adopted: Adopted
    control_plane: EffectiveControlPlane
    credentials: GatheredCredentials
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class PreparedRevision:
    """What precedes a rollout.

    Attributes:
        adopted: what is kept from the schedulers that predate the operator.
        decided: what the objects lead to; None after an unexpected error.
        agents: the agents of SchedulerExtenders on control-plane nodes.
        observing: the write of `spec.observedConfig`; empty if it is up to date.
        failures: the steps before that raised an unexpected error, as findings.
    """

    adopted: Adopted
    decided: DecidedControlPlane | None
    agents: ControlPlaneAgents = field(default_factory=ControlPlaneAgents)
    observing: tuple[Action, ...] = ()
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
    """The revision that would be cut, and what runs.

    Attributes:
        content: its content; None if a finding blocks it.
        observation: the schedulers, installer pods and nodes.
        findings: the errors of its size.
    """

    content: RevisionContent | None
    observation: Observation
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Revised:
    """The revisions after this reconcile.

    Attributes:
        filled: the revision that would be cut, and what runs.
        check: what was decided about the placements that it changes; None after an unexpected
            error.
        targets: writes that bring the target ConfigMaps up to date.
        revisions: the revisions.
    """

    filled: Filled
    check: PlacementCheck | None
    targets: tuple[Action, ...]
    revisions: RevisionResult


@dataclass(frozen=True, slots=True)
class RolledOut:
    """What each node does next.

    Attributes:
        revised: the revisions.
        rollout: the result for the nodes.
    """

    revised: Revised
    rollout: RolloutResult


@dataclass(frozen=True, slots=True)
class Requested:
    """The SecondaryScheduler in the place of the control plane's scheduler.

    Attributes:
        control_plane: what Scheduler and KubeScheduler lead to; None after an unexpected error.
        managed: the object.
        findings: all errors and warnings about it and about attached objects.
    """

    control_plane: EffectiveControlPlane | None = None
    managed: ManagedScheduler = field(default_factory=ManagedScheduler)
    findings: tuple[Finding, ...] = ()

    @property
    def settings(self) -> SettingsResult | None:
        """The validated OperatorSettings; None without one."""
        return self.control_plane.settings if self.control_plane is not None else None


@dataclass(frozen=True, slots=True)
class Reconciled:
    """The result of all steps.

    Attributes:
        everywhere: what does not depend on the state of KubeScheduler.
        plan: the rest; None if a step that it needs raised an unexpected error.
    """

    everywhere: Everywhere
    plan: Plan | None
