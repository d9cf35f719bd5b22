"""Checks of SecondarySchedulers together with the control plane's objects.

A SchedulerProfile or SchedulerExtender belongs to the scheduler that it names, so all objects are
checked together: first those of the control plane, then each SecondaryScheduler with its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from ..base import names
from ..base.findings import Finding, Problem
from ..base.objects import mapping
from ..kube.resource import SECONDARY_SCHEDULERS
from ..schedulerconfig.crd_schema import validate_object
from ..schedulerconfig.warnings import ConfiguredScheduler
from .checks import Checked, CheckOptions, Item, by_name, problem_of, problems_of
from .control_plane import (
    EXTENDER,
    PROFILE,
    check_control_plane,
    scheduler_of,
    valid_extenders,
)

if TYPE_CHECKING:
    from ..effective.secondary.attached import AttachedExtenders
    from ..effective.secondary.compose import SecondaryComposition
    from ..effective.secondary.request import SchedulerRequest
    from ..profiles.validate import ProfileResult
    from ..schedulerconfig.validation import Target

SECONDARY: Final = SECONDARY_SCHEDULERS.kind
NAME_TAKEN: Final = "SchedulerNameTaken"
DEFINITION: Final = f"{names.SECONDARYSCHEDULERS}.yaml"


def check_objects(items: Sequence[Item], options: CheckOptions) -> Checked:
    """Check all objects from which the operator composes configurations.

    A profile whose scheduler is not among them is checked alone: the cluster may have it.
    """
    # Loaded here because composition is slow to import and configurations do not need it.
    from ..effective.secondary.compose import scheduler_names
    from ..extenders.validate import OwnExtenders, validate_extenders
    from ..profiles.validate import validate_profiles

    secondaries, problems = by_name(item for item in items if item.kind == SECONDARY)
    attached = [item for item in items if item.kind in (PROFILE, EXTENDER)]
    own = [item for item in attached if not scheduler_of(item)]
    elsewhere = [item for item in attached if scheduler_of(item)]
    others, more = by_name(item for item in elsewhere if item.kind == PROFILE)
    extenders, unnamed = valid_extenders(elsewhere)
    checked = check_control_plane(
        [item for item in items if item.kind not in (SECONDARY, PROFILE, EXTENDER)] + own, options
    )
    checked.problems += [*problems, *more, *unnamed]
    served = {"default-scheduler": "the control plane's scheduler"}
    for _, process in checked.processes:
        served |= dict.fromkeys(scheduler_names(process.config), "the control plane's scheduler")
    for name, item in secondaries.items():
        own_profiles = {key: other for key, other in others.items() if scheduler_of(other) == name}
        own_extenders = {
            key: extender for key, extender in extenders.items() if scheduler_of(extender) == name
        }
        _check_one(item, own_profiles, own_extenders, served, options, checked)
    named = {scheduler_of(item) for item in (*others.values(), *extenders.values())}
    for scheduler in sorted(named - set(secondaries)):
        chosen = validate_extenders(
            scheduler,
            [item.value for item in extenders.values()],
            OwnExtenders(None, f'SecondaryScheduler "{scheduler}" itself'),
            options.target,
            planned=True,
            images=options.images,
        )
        for result in chosen.results:
            checked.problems += problems_of(result, extenders)
        objects = [item.value for item in others.values()]
        _, profile_results = validate_profiles(scheduler, objects, {}, options.target)
        for profile_result in profile_results:
            checked.problems += problems_of(profile_result, others)
    return checked


@dataclass(frozen=True, slots=True)
class ComposedSecondary:
    """The composition of a SecondaryScheduler.

    Attributes:
        request: its spec, decoded.
        composition: its configuration and flags.
        findings: what is wrong with it, including settings that the operator does not permit.
        profile_results: the results of its SchedulerProfiles.
        extenders: the results of its SchedulerExtenders.
        target: its kube-scheduler.
    """

    request: SchedulerRequest
    composition: SecondaryComposition
    findings: Sequence[Finding]
    profile_results: Sequence[ProfileResult]
    extenders: AttachedExtenders
    target: Target

    @property
    def blocking(self) -> bool:
        """Whether the operator would not roll it out."""
        return any(finding.blocking for finding in self.findings)


def compose_secondary(
    obj: Mapping[str, Any],
    profiles: Sequence[Mapping[str, Any]],
    extenders: Sequence[Mapping[str, Any]],
    options: CheckOptions,
) -> ComposedSecondary:
    """Compose a SecondaryScheduler.

    Args:
        obj: a SecondaryScheduler that satisfies its CustomResourceDefinition.
        profiles: SchedulerProfiles; those of other schedulers are ignored.
        extenders: SchedulerExtenders; those of other schedulers are ignored.
        options: defaults for an image whose version and origin cannot be derived.
    """
    from ..effective.secondary.attached import attach_extenders, attach_profiles, with_extenders
    from ..effective.secondary.compose import compose
    from ..effective.secondary.permitted import refused_settings
    from ..effective.secondary.request import read
    from ..secondary.desired import OperandDefaults, target_of

    request = read({**obj, "metadata": mapping(obj.get("metadata"))})
    version = options.gates.version
    with suppress(ValueError):
        version = type(version).of_image(request.image)
    target = target_of(request, OperandDefaults(""), version)
    target = replace(target, stock=target.stock and options.stock)
    count = max(len(request.profiles), 1) + len(profiles)
    called = attach_extenders(
        request, obj, extenders, target, profiles=count, planned=True, images=options.images
    )
    request = with_extenders(request, called)
    given = attach_profiles(request, obj, profiles, target, {})
    composition = compose(
        request, options.platform, version, stock=target.stock, profiles=given.profiles
    )
    refused = refused_settings(request, "", options.images, options.images)
    findings = (*composition.findings, *refused)
    return ComposedSecondary(request, composition, findings, given.results, called, target)


def _check_one(
    item: Item,
    profiles: Mapping[str, Item],
    extenders: Mapping[str, Item],
    served: dict[str, str],
    options: CheckOptions,
    checked: Checked,
) -> None:
    """Check one SecondaryScheduler; add the schedulerNames that it serves to `served`."""
    violations = validate_object(item.value, DEFINITION, SECONDARY_SCHEDULERS.version)
    if next(violations, None) is not None:
        return  # reported separately; composition needs a valid object
    objects = [each.value for each in profiles.values()]
    result = compose_secondary(
        item.value, objects, [each.value for each in extenders.values()], options
    )
    composition = result.composition
    for profile_result in result.profile_results:
        checked.problems += problems_of(profile_result, profiles)
    for judged in result.extenders.chosen.results:
        checked.problems += problems_of(judged, extenders)
    checked.problems += [(item, problem_of(finding)) for finding in result.findings]
    for name in dict.fromkeys(composition.scheduler_names):
        if name in served:
            message = (
                f'{served[name]} already serves schedulerName "{name}", and two schedulers with '
                "one name overcommit nodes; use another schedulerName"
            )
            checked.problems.append((item, Problem(NAME_TAKEN, ("spec", "profiles"), message)))
        served.setdefault(name, f'SecondaryScheduler "{item.name}"')
    if result.blocking:
        return
    checked.processes.append(
        (item, ConfiguredScheduler(item.file, composition.config, result.target))
    )
