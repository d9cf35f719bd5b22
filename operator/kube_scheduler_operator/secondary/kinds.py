"""What can be checked without a cluster, further schedulers included.

SchedulerProfiles belong to whichever scheduler they name, so all objects are looked at together:
those of the control plane as the operator does it, then each SecondaryScheduler with its profiles.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from .. import names
from ..config.findings import ERROR, WARNING, Problem, Severity
from ..config.hazards import Process
from ..config.inputs import mapping
from ..config.kinds import (
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
    told_of_profile,
)
from ..config.openapi import check_object

if TYPE_CHECKING:
    from ..config.check import Target
    from ..config.findings import Finding
    from .compose import Composition
    from .request import Request

SECONDARY: Final = "SecondaryScheduler"
VERSION: Final = "v1alpha1"
NAME_TAKEN: Final = "SchedulerNameTaken"
DEFINITION: Final = f"{names.SECONDARYSCHEDULERS}.yaml"


def check_objects(items: Sequence[Item], setting: Setting) -> Checked:
    """What the operator would say of Schedulers, KubeSchedulers, profiles and further schedulers.

    A profile whose scheduler is not among them is checked by itself: the cluster may have it.
    """
    # They load what merges, which configurations do not need.
    from ..config.scheduler_profiles import profiles_of

    further, problems = by_name(item for item in items if item.kind == SECONDARY)
    profiles = [item for item in items if item.kind == PROFILE]
    own = [item for item in profiles if not scheduler_of(item)]
    others, more = by_name(item for item in profiles if scheduler_of(item))
    checked = check_cluster(
        [item for item in items if item.kind not in (SECONDARY, PROFILE)] + own, setting
    )
    checked.problems += [*problems, *more]
    served = {"default-scheduler": "the control plane's scheduler"}
    for _, process in checked.processes:
        served |= dict.fromkeys(_names(process.config), "the control plane's scheduler")
    for name, item in further.items():
        mine = {key: each for key, each in others.items() if scheduler_of(each) == name}
        _check_one(item, mine, served, setting, checked)
    for scheduler in sorted({scheduler_of(item) for item in others.values()} - set(further)):
        objects = [item.value for item in others.values()]
        _, verdicts = profiles_of(scheduler, objects, {}, setting.target)
        for verdict in verdicts:
            checked.problems += told_of_profile(verdict, others)
    return checked


def composed(
    obj: Mapping[str, Any], profiles: Sequence[Mapping[str, Any]], setting: Setting
) -> tuple[Request, Composition, Sequence[Any], Target]:
    """(what is asked for, what it comes to, verdicts of its profiles, its kube-scheduler).

    Args:
        obj: a SecondaryScheduler that its definition allows.
        profiles: SchedulerProfiles, also those of others.
        setting: for an image that says neither its version nor that it is one's own.
    """
    from .compose import compose
    from .profiles import given_profiles
    from .request import read
    from .wanted import Operand, target_of

    request = read({**obj, "metadata": mapping(obj.get("metadata"))})
    version = setting.gates.version
    with suppress(ValueError):
        tag = request.image.partition("@")[0].rpartition("/")[2].partition(":")[2]
        version = type(version).parse(tag)
    target = target_of(request, Operand(""), version)
    target = replace(target, stock=target.stock and setting.stock)
    given = given_profiles(request, obj, profiles, target, {})
    composition = compose(
        request, setting.platform, version, stock=target.stock, profiles=given.profiles
    )
    return request, composition, given.verdicts, target


def _check_one(
    item: Item,
    profiles: Mapping[str, Item],
    served: dict[str, str],
    setting: Setting,
    checked: Checked,
) -> None:
    """Check one SecondaryScheduler; the names that it serves are added to `served`."""
    if next(check_object(item.value, DEFINITION, VERSION), None) is not None:
        return  # that is said of it, and more cannot be known
    objects = [each.value for each in profiles.values()]
    _, composition, verdicts, target = composed(item.value, objects, setting)
    for verdict in verdicts:
        checked.problems += told_of_profile(verdict, profiles)
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
    checked.processes.append((item, Process(item.file, composition.config, target)))


def _problem(finding: Finding) -> Problem:
    severity: Severity = ERROR if finding.blocking else WARNING
    return Problem(finding.reason, parse_path(finding.path), finding.message, severity=severity)


def _names(config: Mapping[str, Any]) -> Iterator[str]:
    from .compose import scheduler_names

    yield from scheduler_names(config)


ALL_KINDS: Final[Mapping[tuple[str, str], Kind]] = {
    **{
        key: kind if kind.checker is not check_cluster else replace(kind, checker=check_objects)
        for key, kind in KINDS.items()
    },
    (names.PREFIX, SECONDARY): Kind(VERSION, check_objects, DEFINITION),
}
"""Everything that `validate` reads."""
