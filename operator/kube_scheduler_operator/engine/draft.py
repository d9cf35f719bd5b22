"""What the steps of a reconcile have decided so far, as one immutable value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

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

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Draft:
    """The results of the steps in engine/steps.py; each step returns a copy with its own added.

    Attributes:
        adopted: what is kept from the schedulers before the operator.
        image: the operand's image; empty if it is unknown.
        record: the write of what was decided about the platform; empty if it is up to date.
        managed: the SecondaryScheduler in the place of the control plane's scheduler.
        secondary: all SecondarySchedulers.
        loads: all LoadPolicies.
        pods_without_scheduler: pods whose schedulerName no scheduler serves.
        served: the schedulerNames that a scheduler serves; None if they are not known.
        diagnoses: conditions about schedulerNames that no scheduler, or an unmanaged one, serves.
        control_plane: what the control plane's objects lead to.
        observing: the write of `spec.observedConfig`; empty if it is up to date.
        agents: the agents of SchedulerExtenders on control-plane nodes.
        credentials: what a revision holds besides the configuration.
        findings: all findings about the control plane's configuration.
        composed: the content that a revision would have; None if a finding blocks it.
        content: what of it may be rolled out; None if that is not known.
        check: what was decided about the placements that it changes; None if it was not asked.
        targets: writes that bring the target ConfigMaps up to date.
        revised: revisions after this reconcile.
        observation: the schedulers, installer pods and nodes.
        rollout: what each node does next.
        failures: the steps that raised an unexpected error, as findings.
        plan: the result; the step that sets it is the last one.
    """

    adopted: Adopted = field(default_factory=Adopted)
    image: str = ""
    record: Mapping[ObjectRef, tuple[Action, ...]] = field(default_factory=dict)
    managed: ManagedScheduler = field(default_factory=ManagedScheduler)
    secondary: SecondarySchedulers = field(default_factory=SecondarySchedulers)
    loads: LoadPolicies = field(default_factory=LoadPolicies)
    pods_without_scheduler: tuple[PendingPod, ...] = ()
    served: frozenset[str] | None = None
    diagnoses: tuple[Condition, ...] = ()
    control_plane: EffectiveControlPlane | None = None
    observing: tuple[Action, ...] = ()
    agents: ControlPlaneAgents = field(default_factory=ControlPlaneAgents)
    credentials: GatheredCredentials | None = None
    findings: tuple[Finding, ...] = ()
    composed: RevisionContent | None = None
    content: RevisionContent | None = None
    check: PlacementCheck | None = None
    targets: tuple[Action, ...] = ()
    revised: RevisionResult | None = None
    observation: Observation | None = None
    rollout: RolloutResult | None = None
    failures: tuple[Finding, ...] = ()
    plan: Plan | None = None

    @property
    def settings(self) -> SettingsResult | None:
        """The validated OperatorSettings; None without one."""
        return self.control_plane.settings if self.control_plane is not None else None


class MissingResultError(RuntimeError):
    """An earlier step has failed, or STEPS has the steps in the wrong order."""


def result_of(value: T | None) -> T:
    """`value`, which an earlier step has set.

    Raises:
        MissingResultError: it has not.
    """
    if value is None:
        raise MissingResultError("a step of reconcile ran before the step that it depends on")
    return value
