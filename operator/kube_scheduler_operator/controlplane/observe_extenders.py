"""The SchedulerExtenders of the control plane, as part of its observed configuration.

What is accepted of them is in `observedConfig.extenders`, so the API remembers them where their own
kind cannot be read any more, as it does for profiles.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ..base import names
from ..base.findings import Finding
from ..base.objects import mapping
from ..extenders.validate import ExtenderVerdict, extenders_of, unclaimed_extenders
from ..model.attachment import CONTROL_PLANE, name_of, said, scheduler_of
from ..model.inputs import Inputs
from ..schedulerconfig.merge import DEFAULT_SCHEDULER, plain
from ..schedulerconfig.target import Target
from .observe_profiles import KIND_NOT_SERVED

EXTENDERS: Final = "extenders"
OVERRIDES: Final = "unsupportedConfigOverrides"


@dataclass(frozen=True, slots=True)
class ObservedExtenders:
    """What SchedulerExtenders contribute.

    Attributes:
        own: entries of `extenders`, in the order in which they are called.
        verdicts: one for each object that this scheduler, or no scheduler, answers for.
        leaving: those that this scheduler has until another one has accepted them.
        findings: what is wrong with them.
    """

    own: tuple[Mapping[str, Any], ...] = ()
    verdicts: tuple[ExtenderVerdict, ...] = ()
    leaving: tuple[ExtenderVerdict, ...] = ()
    findings: tuple[Finding, ...] = ()

    def over(self, config: Mapping[str, Any]) -> Mapping[str, Any]:
        """A configuration that is laid over others, with these extenders in front of its own."""
        listed = config.get(EXTENDERS)
        if not self.own or not isinstance(listed, list | None):
            return config
        return {**config, EXTENDERS: [*self.own, *(listed or ())]}


def observe_extenders(
    inputs: Inputs, composable: bool, over: Mapping[str, Any], target: Target
) -> ObservedExtenders:
    """Judge the SchedulerExtenders and say what the scheduler is to have of them.

    Args:
        inputs: everything.
        composable: False: there can be no configuration, so nothing is judged and what was observed
            stays.
        over: what the overrides lay over the configuration.
        target: the kube-scheduler that will read it.
    """
    if not composable:
        return ObservedExtenders(_remembered(inputs))
    if inputs.scheduler_extenders is None:
        own = _remembered(inputs)
        # Who has never had any is not told: the kind came later than the others.
        return ObservedExtenders(own, findings=(_not_served(own),) if own else ())
    objects = inputs.scheduler_extenders
    if not objects:
        return ObservedExtenders()
    chosen = extenders_of(
        CONTROL_PLANE,
        objects,
        over.get(EXTENDERS),
        target,
        itself=OVERRIDES,
        profiles=_profile_count(inputs, over),
        planned=inputs.planned,
    )
    verdicts = (*chosen.verdicts, *unclaimed_extenders(objects, inputs.schedulers))
    found = tuple(finding for verdict in verdicts for finding in said(verdict))
    return ObservedExtenders(chosen.entries, verdicts, chosen.leaving, found)


def _profile_count(inputs: Inputs, over: Mapping[str, Any]) -> int:
    """How many profiles there would be, if all were accepted."""
    specs = [(name_of(obj), mapping(obj.get("spec"))) for obj in inputs.scheduler_profiles or ()]
    asked = {
        spec.get("schedulerName") or name
        for name, spec in specs
        if scheduler_of(spec) == CONTROL_PLANE
    }
    listed = over.get("profiles")
    for profile in listed if isinstance(listed, list) else ():
        asked.add(mapping(profile).get("schedulerName") or DEFAULT_SCHEDULER)
    return len({DEFAULT_SCHEDULER, *map(str, asked)})


def _remembered(inputs: Inputs) -> tuple[Mapping[str, Any], ...]:
    """The extenders as they were observed last."""
    previous = mapping(inputs.spec.get("observedConfig")).get(EXTENDERS)
    if not isinstance(previous, list) or not all(isinstance(one, Mapping) for one in previous):
        return ()
    return tuple(plain(previous))


def _not_served(own: tuple[Mapping[str, Any], ...]) -> Finding:
    kept = ", ".join(str(entry.get("urlPrefix")) for entry in own)
    message = (
        "the API does not serve this kind; install it: kubectl apply --server-side -k crds "
        f"(extenders stay as they were observed last: {kept})"
    )
    condition = names.SCHEDULER_EXTENDERS_DEGRADED
    return Finding(condition, KIND_NOT_SERVED, "SchedulerExtender", message, blocking=False)
