"""The SchedulerProfiles that a SecondaryScheduler is to run, beside those that it has itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..base import names
from ..base.findings import Finding
from ..base.objects import Object, mapping
from ..model.attachment import Refusal
from ..profiles.attribution import attribute, relocated
from ..profiles.validate import Verdict, profiles_of
from ..schedulerconfig.check import Target
from .desired import Wanted
from .request import Request


@dataclass(frozen=True, slots=True)
class Given:
    """What SchedulerProfiles come to for one SecondaryScheduler.

    Attributes:
        profiles: all profiles that it is to run; empty: its own.
        verdicts: one for each SchedulerProfile that is meant for it.
        findings: what holds it back.
    """

    profiles: tuple[Mapping[str, Any], ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    findings: tuple[Finding, ...] = ()


def given_profiles(
    request: Request,
    obj: Object,
    objects: Iterable[Object] | None,
    target: Target,
    served: Mapping[str, str],
) -> Given:
    """What SchedulerProfiles come to.

    Args:
        request: the SecondaryScheduler.
        obj: the same, as read: its status says what it runs.
        objects: SchedulerProfiles, all that are or were meant for it among them; None: the API does
            not serve the kind.
        target: the kube-scheduler that will read them.
        served: schedulerName -> who serves it already, for messages.
    """
    first, *others = [{} if one is None else one for one in request.profiles] or [{}]
    if not all(isinstance(profile, Mapping) for profile in (first, *others)):
        return Given()  # the check of the configuration says what is wrong
    first = {**first, "schedulerName": first.get("schedulerName") or request.name}
    own = {first["schedulerName"], *(str(profile.get("schedulerName")) for profile in others)}
    if objects is None:
        return Given(findings=_not_served(obj, own))
    itself = f'SecondaryScheduler "{request.name}" itself'
    taken = {**served, **dict.fromkeys(own - {first["schedulerName"]}, itself)}
    # What extenders need is asked of every profile.
    over = {"extenders": request.extenders} if request.extenders is not None else {}
    found, verdicts = profiles_of(request.name, objects, first, target, over=over, taken=taken)
    if all(profile is first for profile in found):
        return Given(verdicts=verdicts)
    front, *further = found
    return Given((front, *others, *further), verdicts)


def named(wanted: Wanted, verdicts: tuple[Verdict, ...]) -> Wanted:
    """`wanted`, whose findings name the SchedulerProfile if they are about the profile of one."""
    composition = wanted.composition
    if not verdicts or not composition.findings:
        return wanted
    found = relocated(composition.findings, composition.config.get("profiles"), verdicts)
    return replace(wanted, composition=replace(composition, findings=found))


def attributed(verdicts: tuple[Verdict, ...], refusal: Refusal | None) -> tuple[Verdict, ...]:
    """The verdicts of a SecondaryScheduler's SchedulerProfiles, with what is said of them."""
    if refusal is None:
        return verdicts
    profiles = refusal.config.get("profiles")
    return attribute(verdicts, refusal.words, profiles, profiles, refusal.state)


def _not_served(obj: Object, own: set[str]) -> tuple[Finding, ...]:
    """An API that does not serve the kind any more takes no profile from pods that name it."""
    running = mapping(obj.get("status")).get("profiles") or ()
    lost = [str(p.get("schedulerName")) for p in running if p.get("schedulerName") not in own]
    if not lost:
        return ()
    message = (
        f"the API does not serve this kind, from which {', '.join(lost)} came, so the schedulers "
        "stay as they are; install it: kubectl apply --server-side -k crds"
    )
    return (Finding(names.DEGRADED, "KindNotServed", "SchedulerProfile", message, blocking=True),)
