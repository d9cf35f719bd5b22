"""The SchedulerProfiles and SchedulerExtenders of a SecondaryScheduler, in addition to its spec."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ....base import names
from ....base.findings import Finding
from ....base.objects import Object, mapping
from ....base.spec_limits import json_bytes
from ...language.merging.merge import normalized_json
from ...language.validation.configuration import Target
from ..extenders.validate import ExtenderResults, OwnExtenders, validate_extenders
from ..facts import Facts
from ..profiles.validate import ProfileResult, validate_profiles
from .compose import PORT
from .request import SchedulerRequest

EXTENDERS: Final = "extenders"


@dataclass(frozen=True, slots=True)
class AttachedProfiles:
    # all its profiles; empty if it has only those of its spec
    profiles: tuple[Mapping[str, Any], ...] = ()
    results: tuple[ProfileResult, ...] = ()  # one for each SchedulerProfile whose spec names it
    findings: tuple[Finding, ...] = ()  # errors that block the SecondaryScheduler


def attach_profiles(
    request: SchedulerRequest,
    obj: Object,
    objects: Iterable[Object] | None,
    target: Target,
    served: Mapping[str, str],
) -> AttachedProfiles:
    """Validate the SchedulerProfiles of a SecondaryScheduler, whose status shows what it runs.

    `objects` has all whose spec names it or named it; None if the API does not serve the kind.
    `served` maps each schedulerName to the scheduler that serves it already.
    """
    first, *others = [{} if profile is None else profile for profile in request.profiles] or [{}]
    if not all(isinstance(profile, Mapping) for profile in (first, *others)):
        return AttachedProfiles()  # validation of the configuration reports the error
    first = {**first, "schedulerName": first.get("schedulerName") or request.name}
    own = {first["schedulerName"], *(str(profile.get("schedulerName")) for profile in others)}
    if objects is None:
        running = mapping(obj.get("status")).get("profiles") or ()
        lost = [name for name in (each.get("schedulerName") for each in running) if name not in own]
        return AttachedProfiles(findings=_not_served("SchedulerProfile", "runs profiles", lost))
    itself = f'SecondaryScheduler "{request.name}" itself'
    taken = {**served, **dict.fromkeys(own - {first["schedulerName"]}, itself)}
    # Extenders have requirements that every profile must meet.
    over = {"extenders": request.extenders} if request.extenders is not None else {}
    profiles, results = validate_profiles(
        request.name,
        objects,
        first,
        target,
        over=over,
        taken=taken,
        reserved=json_bytes([request.config, request.profiles, over]),
    )
    if all(profile is first for profile in profiles):
        return AttachedProfiles(results=results)
    front, *further = profiles
    return AttachedProfiles((front, *others, *further), results)


def attach_extenders(
    request: SchedulerRequest,
    obj: Object,
    objects: Iterable[Object] | None,
    target: Target,
    facts: Facts,
    profiles: int,
) -> tuple[ExtenderResults, tuple[Finding, ...]]:
    """Validate the SchedulerExtenders of a SecondaryScheduler, whose status shows what it runs.

    `objects` has all whose spec names it or named it; None if the API does not serve the kind.
    `profiles` is the number of its profiles.

    Returns:
        (results, errors that block the SecondaryScheduler).
    """
    if objects is None:
        running = mapping(obj.get("status")).get(EXTENDERS) or ()
        return ExtenderResults(), _not_served("SchedulerExtender", "calls extenders", running)
    chosen = validate_extenders(
        request.name,
        objects,
        OwnExtenders(
            request.config.get(EXTENDERS),
            f'SecondaryScheduler "{request.name}" itself',
            ports=(PORT, *_ports(request)),
        ),
        target,
        facts,
        profiles=profiles,
    )
    return chosen, ()


def asked_for(
    extenders: ExtenderResults,
) -> tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]]:
    """Return (entries of the configuration, agents that run as sidecars), as plain data."""
    agents: list[Mapping[str, Any]] = [
        {"name": result.name, "spec": normalized_json(result.agent), "port": result.port}
        for result in extenders.all
        if result.agent is not None and result.entry is not None
    ]
    return [normalized_json(entry) for entry in extenders.entries], agents


def _ports(request: SchedulerRequest) -> Iterator[int]:
    for sidecar in request.sidecars:
        for port in sidecar.get("ports") or ():
            number = mapping(port).get("containerPort")
            if isinstance(number, int):
                yield number


def _not_served(kind: str, does: str, lost: Sequence[Any]) -> tuple[Finding, ...]:
    """Report an error if the API no longer serves the kind but the scheduler runs its settings."""
    if not lost:
        return ()
    message = (
        f"the API does not serve this kind, and the scheduler {does} from it "
        f"({', '.join(map(str, lost))}), so it is not changed; install the kind: "
        "kubectl apply --server-side -k crds (on OpenShift -k deploy/openshift/crds)"
    )
    return (Finding(names.DEGRADED, "KindNotServed", kind, message, blocking=True),)
