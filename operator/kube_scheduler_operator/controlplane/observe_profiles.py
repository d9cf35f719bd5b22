"""The SchedulerProfiles of the control plane, as part of its observed configuration.

What is accepted of them is in `observedConfig.profiles`, whole profiles each. So the API remembers
them where their own kind cannot be read any more: an API server that does not serve it (its
CustomResourceDefinition is away) must not take profiles from pods that name them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ..base import names
from ..base.findings import Finding
from ..base.objects import mapping
from ..model.attachment import CONTROL_PLANE, said
from ..model.inputs import Inputs
from ..profiles.check import first_profile
from ..profiles.validate import Verdict, profiles_of, unclaimed
from ..schedulerconfig.check import Target
from ..schedulerconfig.merge import names_of, plain

PROFILES: Final = "profiles"
KIND_NOT_SERVED: Final = "KindNotServed"


@dataclass(frozen=True, slots=True)
class ObservedProfiles:
    """What SchedulerProfiles contribute.

    Attributes:
        own: the profiles that come from them.
        all: all profiles of the scheduler before the overrides, in order; empty: `own` is.
        verdicts: one for each object that this scheduler, or no scheduler, answers for.
        findings: what is wrong with them.
    """

    own: tuple[Mapping[str, Any], ...] = ()
    all: tuple[Mapping[str, Any], ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    findings: tuple[Finding, ...] = ()


def observe_profiles(
    inputs: Inputs, base: Mapping[str, Any] | None, over: Mapping[str, Any], target: Target
) -> ObservedProfiles:
    """Judge the SchedulerProfiles and say what the scheduler is to have of them.

    Args:
        inputs: everything.
        base: the fragment of the profile that Scheduler "cluster" asks for; None: it asks for
            nothing that can be had, so nothing is judged and what was observed stays.
        over: what the overrides lay over the configuration.
        target: the kube-scheduler that will read it.
    """
    if base is None:
        return ObservedProfiles(_remembered(inputs))
    first = first_profile(base)
    if inputs.scheduler_profiles is None:
        own = _remembered(inputs)
        replaced = {profile["schedulerName"] for profile in own}
        kept = () if first["schedulerName"] in replaced else (first,)
        return ObservedProfiles(own, (*kept, *own) if own else (), (), (_not_served(own),))
    objects = inputs.scheduler_profiles
    profiles, verdicts = profiles_of(CONTROL_PLANE, objects, first, target, over=over)
    verdicts = (*verdicts, *unclaimed(objects, inputs.schedulers))
    own = tuple(profile for profile in profiles if profile is not first)
    found = tuple(finding for verdict in verdicts for finding in said(verdict))
    return ObservedProfiles(own, profiles if own else (), verdicts, found)


def _remembered(inputs: Inputs) -> tuple[Mapping[str, Any], ...]:
    """The profiles as they were observed last."""
    previous = mapping(inputs.spec.get("observedConfig")).get(PROFILES)
    if names_of(previous, "schedulerName") is None:
        return ()
    return tuple(plain(previous))


def _not_served(own: tuple[Mapping[str, Any], ...]) -> Finding:
    condition = names.INEFFECTIVE_SETTINGS
    message = "the API does not serve this kind; install it: kubectl apply --server-side -k crds"
    if own:
        condition = names.SCHEDULER_PROFILES_DEGRADED
        kept = ", ".join(str(profile["schedulerName"]) for profile in own)
        message += f" (profiles stay as they were observed last: {kept})"
    return Finding(condition, KIND_NOT_SERVED, "SchedulerProfile", message, blocking=False)
