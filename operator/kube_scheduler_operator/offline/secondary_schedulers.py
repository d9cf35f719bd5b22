"""What can be checked without a cluster, further schedulers included.

SchedulerProfiles belong to whichever scheduler they name, so all objects are looked at together:
those of the control plane as the operator does it, then each SecondaryScheduler with its profiles.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from ..base import names
from ..base.findings import ERROR, WARNING, Problem, Severity
from ..base.objects import mapping
from ..schedulerconfig.crd_schema import check_object
from ..schedulerconfig.warnings import Process
from . import load_policies as loads
from .kinds import (
    EXTENDER,
    KINDS,
    PROFILE,
    Checked,
    Item,
    Kind,
    Setting,
    by_name,
    check_cluster,
    parse_path,
    scheduler_of,
    told_of,
    well_formed_extenders,
)

if TYPE_CHECKING:
    from ..base.findings import Finding
    from ..profiles.validate import Verdict
    from ..schedulerconfig.check import Target
    from ..secondary.compose import Composition
    from ..secondary.extenders import GivenExtenders
    from ..secondary.request import Request

SECONDARY: Final = "SecondaryScheduler"
VERSION: Final = "v1alpha1"
NAME_TAKEN: Final = "SchedulerNameTaken"
DEFINITION: Final = f"{names.SECONDARYSCHEDULERS}.yaml"


def check_objects(items: Sequence[Item], setting: Setting) -> Checked:
    """What the operator would say of Schedulers, KubeSchedulers, profiles and further schedulers.

    A profile whose scheduler is not among them is checked by itself: the cluster may have it.
    """
    # They load what merges, which configurations do not need.
    from ..extenders.validate import extenders_of
    from ..profiles.validate import profiles_of

    further, problems = by_name(item for item in items if item.kind == SECONDARY)
    given = [item for item in items if item.kind in (PROFILE, EXTENDER)]
    own = [item for item in given if not scheduler_of(item)]
    elsewhere = [item for item in given if scheduler_of(item)]
    others, more = by_name(item for item in elsewhere if item.kind == PROFILE)
    extenders, unnamed = well_formed_extenders(elsewhere)
    checked = check_cluster(
        [item for item in items if item.kind not in (SECONDARY, PROFILE, EXTENDER)] + own, setting
    )
    checked.problems += [*problems, *more, *unnamed]
    served = {"default-scheduler": "the control plane's scheduler"}
    for _, process in checked.processes:
        served |= dict.fromkeys(_names(process.config), "the control plane's scheduler")
    for name, item in further.items():
        mine = {key: each for key, each in others.items() if scheduler_of(each) == name}
        called = {key: each for key, each in extenders.items() if scheduler_of(each) == name}
        _check_one(item, mine, called, served, setting, checked)
    asked = {scheduler_of(item) for item in (*others.values(), *extenders.values())}
    for scheduler in sorted(asked - set(further)):
        chosen = extenders_of(
            scheduler,
            [item.value for item in extenders.values()],
            None,
            setting.target,
            itself=f'SecondaryScheduler "{scheduler}" itself',
            planned=True,
        )
        for one in chosen.verdicts:
            checked.problems += told_of(one, extenders)
        objects = [item.value for item in others.values()]
        _, verdicts = profiles_of(scheduler, objects, {}, setting.target)
        for verdict in verdicts:
            checked.problems += told_of(verdict, others)
    return checked


@dataclass(frozen=True, slots=True)
class Composed:
    """What a SecondaryScheduler comes to.

    Attributes:
        request: what is asked for.
        composition: what it comes to.
        verdicts: of its SchedulerProfiles.
        extenders: what SchedulerExtenders come to.
        target: its kube-scheduler.
    """

    request: Request
    composition: Composition
    verdicts: Sequence[Verdict]
    extenders: GivenExtenders
    target: Target


def composed(
    obj: Mapping[str, Any],
    profiles: Sequence[Mapping[str, Any]],
    extenders: Sequence[Mapping[str, Any]],
    setting: Setting,
) -> Composed:
    """What a SecondaryScheduler comes to.

    Args:
        obj: a SecondaryScheduler that its definition allows.
        profiles: SchedulerProfiles, also those of others.
        extenders: SchedulerExtenders likewise.
        setting: for an image that says neither its version nor that it is one's own.
    """
    from ..secondary.compose import compose
    from ..secondary.desired import Operand, target_of
    from ..secondary.extenders import given_extenders, with_extenders
    from ..secondary.profiles import given_profiles
    from ..secondary.request import read

    request = read({**obj, "metadata": mapping(obj.get("metadata"))})
    version = setting.gates.version
    with suppress(ValueError):
        version = type(version).of_image(request.image)
    target = target_of(request, Operand(""), version)
    target = replace(target, stock=target.stock and setting.stock)
    count = max(len(request.profiles), 1) + len(profiles)
    calls = given_extenders(request, obj, extenders, target, profiles=count, planned=True)
    request = with_extenders(request, calls)
    given = given_profiles(request, obj, profiles, target, {})
    composition = compose(
        request, setting.platform, version, stock=target.stock, profiles=given.profiles
    )
    return Composed(request, composition, given.verdicts, calls, target)


def _check_one(
    item: Item,
    profiles: Mapping[str, Item],
    extenders: Mapping[str, Item],
    served: dict[str, str],
    setting: Setting,
    checked: Checked,
) -> None:
    """Check one SecondaryScheduler; the names that it serves are added to `served`."""
    if next(check_object(item.value, DEFINITION, VERSION), None) is not None:
        return  # that is said of it, and more cannot be known
    objects = [each.value for each in profiles.values()]
    called = [each.value for each in extenders.values()]
    made = composed(item.value, objects, called, setting)
    composition = made.composition
    for verdict in made.verdicts:
        checked.problems += told_of(verdict, profiles)
    for one in made.extenders.chosen.verdicts:
        checked.problems += told_of(one, extenders)
    checked.problems += [(item, _problem(finding)) for finding in composition.findings]
    for name in dict.fromkeys(composition.scheduler_names):
        if name in served:
            message = (
                f'pods that ask for "{name}" are scheduled by {served[name]}, and two would fight '
                "over them; use another schedulerName"
            )
            checked.problems.append((item, Problem(NAME_TAKEN, ("spec", "profiles"), message)))
        served.setdefault(name, f'SecondaryScheduler "{item.name}"')
    if composition.blocking:
        return
    checked.processes.append((item, Process(item.file, composition.config, made.target)))


def _problem(finding: Finding) -> Problem:
    severity: Severity = ERROR if finding.blocking else WARNING
    return Problem(finding.reason, parse_path(finding.path), finding.message, severity=severity)


def _names(config: Mapping[str, Any]) -> Iterator[str]:
    from ..secondary.compose import scheduler_names

    yield from scheduler_names(config)


ALL_KINDS: Final[Mapping[tuple[str, str], Kind]] = {
    **{
        key: kind if kind.checker is not check_cluster else replace(kind, checker=check_objects)
        for key, kind in KINDS.items()
    },
    (names.PREFIX, SECONDARY): Kind(VERSION, check_objects, DEFINITION),
    **loads.KINDS,
}
"""Everything that `validate` reads."""
