"""All SecondarySchedulers: each for itself, but for the names that pods ask for.

Whatever is wrong with one of them, a defect of ours included, stops neither the others nor the
control plane.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from .. import names
from ..config.findings import Finding
from ..config.scheduler_profiles import Verdict, by_scheduler
from ..config.versions import Version
from ..plan import Action
from ..snapshot import Object, PendingPod, Snapshot
from ..status.conditions import AS_EXPECTED, Condition, aggregate
from .beside import CONTROL_PLANE, different_filters, main_filters
from .compose import scheduler_names
from .plan import NOT_ALLOWED, Planned, plan
from .profiles import attributed, given_profiles, named
from .request import read
from .rivals import rivals, rivals_condition
from .unserved import condition, unserved
from .wanted import Operand, Wanted, target_of, want

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Secondary:
    """What is to be done for all of them.

    Attributes:
        chains: name -> writes.
        conditions: of KubeScheduler: whether any is Degraded, whether pods ask for none,
            and whether somebody else serves a name of theirs or of the control plane.
        verdicts: what became of the SchedulerProfiles that are meant for them.
        unserved: pods that ask for a scheduler that there is none of.
        requeue_after: seconds until a pass is worth while even if nothing happens; None: no need.
    """

    chains: Mapping[str, tuple[Action, ...]] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    unserved: tuple[PendingPod, ...] = ()
    requeue_after: float | None = None


def secondary_schedulers(
    snapshot: Snapshot,
    image: str,
    version_of: Callable[[str], Version],
) -> Secondary:
    """What is to be done for all SecondarySchedulers.

    Args:
        snapshot: what was seen.
        image: the control plane's kube-scheduler; empty if it is not known.
        version_of: the version of an image.
    """
    operand = Operand(image, snapshot.settings.image_pull_secrets)
    planned: dict[str, Planned] = {}
    verdicts: list[Verdict] = []
    served = dict.fromkeys(control_plane_names(snapshot), CONTROL_PLANE)
    objects = snapshot.scheduler_profiles
    profiles = None if objects is None else by_scheduler(objects.values())
    filters = main_filters(snapshot, version_of(image)) if snapshot.secondaries.schedulers else None
    for obj in sorted(snapshot.secondaries.schedulers.values(), key=_age):
        name = obj["metadata"]["name"]
        if "deletionTimestamp" in obj["metadata"]:
            continue
        try:
            version = version_of(str((obj.get("spec") or {}).get("image") or image))
            request = read(obj)
            target = target_of(request, operand, version)
            mine = None if profiles is None else profiles.get(name, ())
            given = given_profiles(request, obj, mine, target, served)
            wanted = want(obj, snapshot.platform, operand, version, given.profiles)
            wanted = named(wanted, given.verdicts)
            further = [*_place(snapshot, wanted), *_conflicts(wanted, served), *given.findings]
            further += different_filters(name, wanted.composition, filters)
            if not any(finding.reason == NOT_ALLOWED for finding in further):
                claims = dict.fromkeys(wanted.composition.scheduler_names)
                served |= {asked: _named(name) for asked in claims if asked not in served}
            planned[name] = plan(snapshot, obj, wanted, version, further)
            asked = planned[name].asked
            verdicts += attributed(given.verdicts, name, wanted.content, asked)
        except Exception as error:
            log.exception("SecondaryScheduler %s cannot be planned: a defect in the operator", name)
            planned[name] = Planned(
                (), f"a defect in the operator: {type(error).__name__}: {error}"
            )
    waits = [each.requeue_after for each in planned.values()]
    nobodys = unserved(snapshot.secondaries.pending, served, snapshot.now)
    return Secondary(
        {name: each.actions for name, each in planned.items() if each.actions},
        (
            _condition({name: each.degraded for name, each in planned.items() if each.degraded}),
            condition(nobodys),
            rivals_condition(rivals(snapshot, served)),
        ),
        tuple(verdicts),
        nobodys,
        min((wait for wait in waits if wait is not None), default=None),
    )


def _named(name: str) -> str:
    return f'SecondaryScheduler "{name}"'


def control_plane_names(snapshot: Snapshot) -> tuple[str, ...]:
    """The names that the control plane's scheduler serves, as far as its configuration is ours."""
    data = (snapshot.config_maps.get(names.CONFIG) or {}).get("data") or {}
    return _names_in(data.get(names.CONFIG_KEY, "{}"))


@lru_cache(maxsize=16)
def _names_in(text: str) -> tuple[str, ...]:
    try:
        return scheduler_names(json.loads(text))
    except (ValueError, AttributeError, TypeError):
        return scheduler_names({})  # somebody put something else there


def _age(obj: Object) -> tuple[str, str]:
    """Oldest first: who had a name first keeps it."""
    metadata = obj["metadata"]
    return str(metadata.get("creationTimestamp") or ""), metadata["name"]


def _place(snapshot: Snapshot, wanted: Wanted) -> list[Finding]:
    allowed = snapshot.platform.secondary_namespaces(snapshot.settings.secondary_namespaces)
    namespace = wanted.request.namespace
    if namespace in allowed:
        return []
    message = (
        f'the operator may not work in namespace "{namespace}": add it to SECONDARY_NAMESPACES of '
        "the operator's Deployment and give it the rights there (with Helm: "
        f"secondarySchedulers.namespaces), or make this one again in {' or '.join(allowed)}"
    )
    return [Finding(names.DEGRADED, NOT_ALLOWED, "spec.namespace", message, blocking=True)]


def _conflicts(wanted: Wanted, served: Mapping[str, str]) -> list[Finding]:
    """Two processes that serve one name bind the same pods, and each other's bindings fail."""
    return [
        Finding(
            names.DEGRADED,
            "SchedulerNameTaken",
            "spec.profiles",
            f'pods that ask for "{name}" are scheduled by {served[name]}, and two would fight over '
            "them; use another schedulerName",
            blocking=True,
        )
        for name in dict.fromkeys(wanted.composition.scheduler_names)
        if name in served
    ]


def _condition(degraded: Mapping[str, str]) -> Condition:
    if not degraded:
        return Condition(names.SECONDARY_DEGRADED, "False", AS_EXPECTED)
    lines = [
        f"{name}: {text}" for name, message in degraded.items() for text in message.split("\n")
    ]
    return Condition(
        names.SECONDARY_DEGRADED, "True", "SecondarySchedulerDegraded", aggregate(lines)
    )
