"""Checks of KubeSchedulerConfigurations and of the control plane's objects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from ..base import names
from ..base.findings import WARNING, Path, Problem
from ..base.objects import mapping
from ..kube.resource import SCHEDULER_EXTENDERS, SCHEDULER_PROFILES
from ..schedulerconfig.crd_schema import validate_object
from ..schedulerconfig.feature_gates import Gates, parse_gates
from ..schedulerconfig.validation import Target, validate_config
from ..schedulerconfig.warnings import (
    SECOND_DEFAULT_SCHEDULER,
    ConfiguredScheduler,
    config_warnings,
    file_warnings,
    standalone_warnings,
)
from .acceptance import refused
from .checks import (
    NOT_READ,
    OTHER_SCHEDULER,
    Checked,
    CheckOptions,
    Item,
    by_name,
    problem_of,
    problems_of,
)
from .leader_election import election_of, has_unknown_election
from .reader_target import is_read_by_volcano, target_of

PROFILE: Final = SCHEDULER_PROFILES.kind
EXTENDER: Final = SCHEDULER_EXTENDERS.kind

_MANY: Final = (PROFILE, EXTENDER)


def check_configurations(items: Sequence[Item], options: CheckOptions) -> Checked:
    """Check KubeSchedulerConfigurations as kube-scheduler does, then for risky settings."""
    checked = Checked()
    for item in items:
        if is_read_by_volcano(item):
            checked.problems.append((item, _not_volcanos()))
            continue
        target = target_of(item, options)
        unknown = has_unknown_election(item.reader)
        election = {} if unknown else election_of(item.value, item.reader)
        # With its nulls: kube-scheduler refuses an unknown field also if it has no value.
        problems = validate_config(item.document.root.data, target, election)
        if not problems:
            config = {**item.value, "leaderElection": election} if election else item.value
            problems = [
                each
                for each in _warnings(item, config, target, options)
                if not unknown or each.path[:1] != ("leaderElection",)
            ]
            process = ConfiguredScheduler(item.label, config, target)
            checked.processes.append((item, process))
        checked.problems += [(item, problem) for problem in problems]
        place = item.place.place if item.place and not options.place else options.place
        checked.problems += [(item, problem) for problem in refused(place, item.value, target)]
    return checked


def _not_volcanos() -> Problem:
    return Problem(
        OTHER_SCHEDULER,
        ("kind",),
        "Volcano's vc-scheduler reads no KubeSchedulerConfiguration: it finds no action in it and "
        "keeps its built-in configuration",
        "write actions and tiers in Volcano's format, or let kube-scheduler read the file",
    )


_PROVIDERS_OWN: Final = ("aks", "eks", "gardener")
"""Places where profiles become a part of the provider's own scheduler, with its Lease."""


def _warnings(
    item: Item, config: Mapping[str, Any], target: Target, options: CheckOptions
) -> Iterator[Problem]:
    """The warnings that concern the way in which a configuration is used."""
    if is_run_by_provider(item, options):
        yield from standalone_warnings(config, target)
        return
    warn = file_warnings if needs_kubeconfig(item) else config_warnings
    is_static = item.reader is not None and not item.reader.account
    for problem in warn(config, target):
        # A static Pod is the control plane's scheduler, whatever its leader election.
        if not (is_static and problem.reason == SECOND_DEFAULT_SCHEDULER):
            yield problem


def is_run_by_provider(item: Item, options: CheckOptions) -> bool:
    """Whether a configuration is for the scheduler that a provider runs, one in each cluster."""
    place = options.place or (item.place.place if item.place else "")
    return place in _PROVIDERS_OWN


def needs_kubeconfig(item: Item) -> bool:
    """Whether no ServiceAccount or product gives a configuration's reader its credentials."""
    place = item.place
    if place is not None and (place.part is not None or place.place):
        return False  # the product that makes the file of it sets the kubeconfig
    if item.reader is not None:
        return not item.reader.account
    return place is None or (place.text is not None and not place.text.has_credentials)


_REPORTED_ELSEWHERE: Final = (
    names.OVERRIDES_UPGRADEABLE,
    names.SCHEDULER_EXTENDERS_DEGRADED,
    names.SCHEDULER_PROFILES_DEGRADED,
)


def check_control_plane(items: Sequence[Item], options: CheckOptions) -> Checked:
    """Check the objects from which the operator composes the control plane's configuration.

    Profiles and extenders of other schedulers are ignored.
    """
    # Loaded here because composition is slow to import and configurations do not need it.
    from ..effective.control_plane.compose import Inputs, compose
    from ..effective.control_plane.feature_gates import NOT_FOUND
    from ..schedulerconfig.command_line import parse

    checked = Checked()
    chosen, problems = _single_objects(items)
    checked.problems += problems
    profiles, problems = by_name(item for item in items if item.kind == PROFILE)
    checked.problems += problems
    extenders, problems = valid_extenders(items)
    checked.problems += problems
    if not chosen and not profiles and not extenders:
        return checked
    values = {kind: item.value for kind, item in chosen.items()}
    others = (*profiles.values(), *extenders.values())
    inputs = Inputs(
        platform=options.platform,
        operand_version=options.gates.version,
        scheduler=values.get("Scheduler", {}),
        kubescheduler=values.get("KubeScheduler", {}),
        stock_image=options.stock,
        scheduler_profiles=tuple(item.value for item in profiles.values()),
        scheduler_extenders=tuple(item.value for item in extenders.values()),
        schedulers=frozenset(scheduler_of(i) for i in (*profiles.values(), *extenders.values()))
        | {""},
        planned=True,
        agent_images=options.images,
    )
    composition = compose(inputs)
    for result in composition.results:
        checked.problems += problems_of(result, profiles)
    for extender in composition.extenders:
        checked.problems += problems_of(extender, extenders)
    for finding in composition.findings:
        if finding.condition in _REPORTED_ELSEWHERE or finding.reason == NOT_FOUND:
            continue  # reported above, relevant to upgrades only, or an object of the cluster
        problem = problem_of(finding)
        checked.problems.append((_owner(problem.path, chosen, others), problem))
    if composition.config is not None and not composition.blocking:
        explicit = parse_gates(parse(composition.arguments).get("feature-gates", ()))
        target = Target(Gates(options.gates.version, explicit), stock=options.stock)
        item = _owner((), chosen, others)
        process = ConfiguredScheduler(item.file, composition.config, target)
        checked.processes.append((item, process))
    return checked


def _single_objects(
    items: Iterable[Item],
) -> tuple[dict[str, Item], list[tuple[Item, Problem]]]:
    """(kind -> object, of kinds of which a cluster has one; problems of unused ones)."""
    chosen: dict[str, Item] = {}
    problems: list[tuple[Item, Problem]] = []
    for item in items:
        if item.kind in _MANY:
            continue
        if item.name not in ("", names.CLUSTER):
            message = f'{item.kind} "{item.name}" is ignored'
            fix = f'rename it to "{names.CLUSTER}"'
            problem = Problem(NOT_READ, ("metadata", "name"), message, fix, WARNING)
            problems.append((item, problem))
        elif item.kind in chosen:
            message = f"a {item.kind} is already defined and a cluster has one; remove one of them"
            problems.append((item, Problem(NOT_READ, ("metadata", "name"), message)))
        else:
            chosen[item.kind] = item
    return chosen, problems


def valid_extenders(
    items: Iterable[Item],
) -> tuple[dict[str, Item], list[tuple[Item, Problem]]]:
    """(SchedulerExtenders by name, problems of those with a missing or duplicate name).

    Leaves out those that violate their CustomResourceDefinition, which is reported separately.
    """
    definition = f"{names.SCHEDULEREXTENDERS}.yaml"
    extenders = (item for item in items if item.kind == EXTENDER)
    return by_name(
        item
        for item in extenders
        if next(validate_object(item.value, definition, SCHEDULER_EXTENDERS.version), None) is None
    )


def scheduler_of(item: Item) -> str:
    """The scheduler of a profile or an extender; empty: the control plane's."""
    return str(mapping(item.value.get("spec")).get("scheduler") or "")


def _owner(path: Path, chosen: Mapping[str, Item], others: Sequence[Item]) -> Item:
    """The document with the longest part of a path; KubeScheduler if several tie."""
    kinds = sorted(chosen, reverse=True, key=lambda kind: kind == "KubeScheduler")
    items = [chosen[kind] for kind in kinds] or list(others)
    return max(items, key=lambda item: item.document.depth(path))
