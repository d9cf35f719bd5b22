"""Checks of the operator's objects, as the operator does them.

A SchedulerProfile or SchedulerExtender belongs to the scheduler that it names, so all objects from
which the operator composes configurations are composed together. Nothing completes a LoadPolicy, a
DynamicSchedulerPolicy of crane-scheduler, or OperatorSettings.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from ...base import names
from ...base.crd_schema import validate_object
from ...base.decoding import INVALID_VALUE
from ...base.findings import WARNING, Finding, Path, Problem, listing
from ...base.management import OPENSHIFTS, STATES, how_to_request
from ...base.objects import mapping
from ...base.platform import Platform
from ...kube.resource import (
    LOAD_POLICIES,
    SCHEDULER_EXTENDERS,
    SCHEDULER_PROFILES,
    SECONDARY_SCHEDULERS,
    Resource,
)
from ...scheduling.load.policy import LoadPolicyError
from ...scheduling.load.policy_files import CRANE_KIND, OWN_KIND, from_document
from ..language.feature_gates import Gates, parse_gates
from ..language.validation.configuration import Target
from ..language.warnings.configuration import ConfiguredScheduler
from .checks import (
    NAME_PATH,
    NOT_READ,
    Checked,
    CheckOptions,
    Item,
    by_name,
    problem_of,
    problems_of,
)

if TYPE_CHECKING:
    from ..effective.control_plane.scheduler import EffectiveControlPlane
    from ..effective.facts import Facts
    from ..effective.objects import Objects
    from ..effective.pipeline import Effective

PROFILE: Final = SCHEDULER_PROFILES.kind
EXTENDER: Final = SCHEDULER_EXTENDERS.kind
SECONDARY: Final = SECONDARY_SCHEDULERS.kind
DEFINITION: Final = f"{names.SECONDARYSCHEDULERS}.yaml"

_MANY: Final = (PROFILE, EXTENDER, SECONDARY)
_REPORTED_ELSEWHERE: Final = (
    names.OVERRIDES_UPGRADEABLE,
    names.SCHEDULER_EXTENDERS_DEGRADED,
    names.SCHEDULER_PROFILES_DEGRADED,
)


@dataclass(frozen=True, slots=True)
class _Documents:
    """The documents that have objects of the operator."""

    single: Mapping[str, Item]  # by kind, of kinds of which a cluster has one
    profiles: Mapping[str, Item]  # by name, as are the others
    extenders: Mapping[str, Item]
    secondaries: Mapping[str, Item]

    @property
    def attached(self) -> tuple[Item, ...]:
        return (*self.profiles.values(), *self.extenders.values())

    @property
    def of_control_plane(self) -> tuple[Item, ...]:
        """Those that configure the control plane's scheduler."""
        return (*self.single.values(), *(item for item in self.attached if not scheduler_of(item)))

    def owner(self, path: Path) -> Item:
        """Return the document with the longest part of a path; KubeScheduler if several tie."""
        kinds = sorted(self.single, reverse=True, key=lambda kind: kind == "KubeScheduler")
        items = [self.single[kind] for kind in kinds] or list(self.of_control_plane)
        return max(items, key=lambda item: item.document.depth(path))


def check_objects(items: Sequence[Item], options: CheckOptions) -> Checked:
    """Check all objects from which the operator composes configurations.

    A profile whose scheduler is not among them is checked alone: the cluster may have it.
    """
    # Imported lazily: composition is slow to import, and configurations do not need it.
    from ..effective.pipeline import effective
    from ..effective.secondary.scheduler import Attached, of_unknown_scheduler

    documents, problems = _read(items)
    checked = Checked([*problems, *_refused_state(documents, options.platform)])
    facts = facts_of_files(options)
    known = {"", *documents.secondaries}
    composed = effective(_objects(documents, known), facts)
    _add_control_plane(composed.control_plane, documents, options, checked)
    _add_secondaries(composed, documents, checked)
    for scheduler in sorted({scheduler_of(item) for item in documents.attached} - known):
        alone = Attached(
            [item.value for item in documents.profiles.values()],
            [item.value for item in documents.extenders.values()],
        )
        profiles, extenders = of_unknown_scheduler(scheduler, alone, facts, options.target)
        for extender in extenders:
            checked.problems += problems_of(extender, documents.extenders)
        for profile in profiles:
            checked.problems += problems_of(profile, documents.profiles)
    return checked


def facts_of_files(options: CheckOptions) -> Facts:
    """Return the facts that flags state, as there is no cluster."""
    from ..effective.facts import Facts, Permissions

    return Facts(
        platform=options.platform,
        default_version=options.gates.version,
        stock=options.stock,
        pinned=options.pinned,
        planned=True,
        permissions=Permissions(options.images, options.images),
    )


def _read(items: Sequence[Item]) -> tuple[_Documents, list[tuple[Item, Problem]]]:
    """Return (documents with objects that the API server would store, problems of the others)."""
    single, problems = _single_objects(items)
    profiles, of_profiles = by_name(item for item in items if item.kind == PROFILE)
    extenders, of_extenders = _valid(items, SCHEDULER_EXTENDERS)
    secondaries, of_secondaries = _valid(items, SECONDARY_SCHEDULERS)
    documents = _Documents(single, profiles, extenders, secondaries)
    return documents, [*problems, *of_profiles, *of_extenders, *of_secondaries]


def _refused_state(documents: _Documents, platform: Platform) -> Iterator[tuple[Item, Problem]]:
    """Report a state that the platform's own definition of KubeScheduler refuses."""
    item = documents.single.get("KubeScheduler")
    if item is None or not platform.brings_definitions:
        return
    state = mapping(item.value.get("spec")).get("managementState")
    if state is not None and state not in OPENSHIFTS:
        message = (
            f'OpenShift\'s API server refuses "{state}": its definition of KubeScheduler has '
            f"{listing(OPENSHIFTS)}"
        )
        request = f", and {how_to_request(platform, state)}" if state in STATES else ""
        fix = f"remove the field{request}"
        yield item, Problem(INVALID_VALUE, ("spec", "managementState"), message, fix)


def _single_objects(
    items: Iterable[Item],
) -> tuple[dict[str, Item], list[tuple[Item, Problem]]]:
    """Return (kind -> object, of kinds of which a cluster has one; problems of unused ones)."""
    chosen: dict[str, Item] = {}
    problems: list[tuple[Item, Problem]] = []
    for item in items:
        if item.kind in _MANY:
            continue
        if item.name not in ("", names.CLUSTER):
            message, fix = (
                f'{item.kind} "{item.name}" is ignored',
                f'rename it to "{names.CLUSTER}"',
            )
            problems.append((item, Problem(NOT_READ, NAME_PATH, message, fix, WARNING)))
        elif item.kind in chosen:
            message = f"a {item.kind} is already defined and a cluster has one; remove one of them"
            problems.append((item, Problem(NOT_READ, NAME_PATH, message)))
        else:
            chosen[item.kind] = item
    return chosen, problems


def _valid(
    items: Iterable[Item], resource: Resource
) -> tuple[dict[str, Item], list[tuple[Item, Problem]]]:
    """Return (objects of a kind by name, problems of those with a missing or duplicate name).

    Objects that violate their CustomResourceDefinition are left out; they are reported separately.
    """
    definition = f"{resource.name}.yaml"
    return by_name(
        item
        for item in items
        if item.kind == resource.kind
        and next(validate_object(item.value, definition, resource.version), None) is None
    )


def _objects(documents: _Documents, known: Collection[str]) -> Objects:
    """Return the documents of the `known` schedulers as objects of a cluster."""
    from ..effective.objects import Objects

    def attached(items: Mapping[str, Item]) -> tuple[Mapping[str, Any], ...]:
        return tuple(item.value for item in items.values() if scheduler_of(item) in known)

    values = {kind: item.value for kind, item in documents.single.items()}
    return Objects(
        scheduler=values.get("Scheduler", {}),
        kubescheduler=values.get("KubeScheduler", {}),
        profiles=attached(documents.profiles),
        extenders=attached(documents.extenders),
        secondaries=tuple(item.value for item in documents.secondaries.values()),
    )


def _add_control_plane(
    scheduler: EffectiveControlPlane, documents: _Documents, options: CheckOptions, checked: Checked
) -> None:
    from ..effective.control_plane.feature_gates import NOT_FOUND
    from ..language.command_line import parse

    if not documents.of_control_plane:
        return  # a cluster has default-scheduler nevertheless
    composition = scheduler.composition
    for profile in composition.results:
        checked.problems += problems_of(profile, documents.profiles)
    for extender in composition.extenders:
        checked.problems += problems_of(extender, documents.extenders)
    for finding in scheduler.findings:
        if finding.condition in _REPORTED_ELSEWHERE or finding.reason == NOT_FOUND:
            continue  # reported above, relevant to upgrades only, or an object of the cluster
        problem = problem_of(finding)
        checked.problems.append((documents.owner(problem.path), problem))
    if composition.config is not None and not scheduler.blocking:
        explicit = parse_gates(parse(composition.arguments).get("feature-gates", ()))
        target = Target(Gates(options.gates.version, explicit), stock=options.stock)
        item = documents.owner(())
        process = ConfiguredScheduler(item.file, composition.config, target)
        checked.processes.append((item, process))


def _add_secondaries(composed: Effective, documents: _Documents, checked: Checked) -> None:
    for name, item in documents.secondaries.items():
        scheduler = composed.secondaries.of(name)
        for profile in scheduler.profiles:
            checked.problems += problems_of(profile, documents.profiles)
        for extender in scheduler.extenders:
            checked.problems += problems_of(extender, documents.extenders)
        findings = scheduler.all_findings
        checked.problems += [_located(finding, item, documents) for finding in findings]
        if not scheduler.blocking:
            config, target = scheduler.composition.config, scheduler.target
            checked.processes.append((item, ConfiguredScheduler(item.file, config, target)))


def _located(finding: Finding, item: Item, documents: _Documents) -> tuple[Item, Problem]:
    """Convert a finding of a SecondaryScheduler to a problem of it, or of one of its profiles."""
    kind, _, rest = finding.path.partition("/")
    if kind != PROFILE:
        return item, problem_of(finding)
    name, _, path = rest.partition(" ")
    return documents.profiles[name], problem_of(replace(finding, path=path))


def scheduler_of(item: Item) -> str:
    """Return the scheduler of a profile or an extender; empty: the control plane's."""
    return str(mapping(item.value.get("spec")).get("scheduler") or "")


# --- objects that no other object completes ------------------------------------------------------

ANOTHER: Final = "AnotherPolicy"


def check_load_policies(items: Sequence[Item], options: CheckOptions) -> Checked:
    """Check LoadPolicies and DynamicSchedulerPolicies as the operator does."""
    namespace = options.platform.target_namespace
    own, problems = by_name(item for item in items if item.kind == OWN_KIND)
    checked = Checked(problems)
    for index, item in enumerate(own.values()):
        if index:
            message = (
                f'LoadPolicy "{next(iter(own))}" is also defined, and only the older of the two is '
                "used; remove one of them"
            )
            checked.problems.append((item, Problem(ANOTHER, NAME_PATH, message)))
        checked.problems += [(item, problem) for problem in _own_problems(item, namespace)]
    for item in items:
        if item.kind == CRANE_KIND:
            checked.problems += [(item, problem) for problem in _cranes_problems(item.value)]
    return checked


def check_load_policy_names(items: Sequence[Item]) -> Iterator[tuple[Item, Problem]]:
    """Warn of agents whose LoadPolicy is in no file; a cluster may have it."""
    extenders = [item for item in items if item.kind == EXTENDER]
    if not extenders:
        return
    from ..effective.extenders.agent import missing_load_policy

    known = [item.name for item in items if item.kind == OWN_KIND]
    state = "is not among the files: unless the cluster has it,"
    for item in extenders:
        for problem in missing_load_policy(mapping(item.value.get("spec")), known, state):
            yield item, replace(problem, path=("spec", *problem.path))


def _own_problems(item: Item, namespace: str) -> Iterator[Problem]:
    """Yield the operator's problems, then those that only the CustomResourceDefinition detects."""
    # Imported lazily, as below: few files have such objects.
    from ...base.spec_limits import limit_problems
    from ..effective.permitted_load_policies import refused_settings

    problems: tuple[Problem, ...] = ()
    try:
        from_document(item.value)
    except LoadPolicyError as error:
        problems = error.problems
    spec = mapping(item.value.get("spec"))
    problems = problems or (*limit_problems(spec), *refused_settings(spec, None, namespace))
    yield from problems
    reported = {problem.path for problem in problems}
    definition = f"{names.LOADPOLICIES}.yaml"
    for problem in validate_object(item.document.root.data, definition, LOAD_POLICIES.version):
        if problem.path not in reported:
            yield problem


def _cranes_problems(value: Mapping[str, Any]) -> Iterator[Problem]:
    try:
        yield from from_document(value).notes
    except LoadPolicyError as error:
        yield from error.problems


def check_operator_settings(items: Sequence[Item], options: CheckOptions) -> Checked:
    """Check OperatorSettings as the operator does; what was adopted is unknown."""
    from ..effective.settings.requested_pod import OWN_RESOURCES
    from ..effective.settings.validate import PodDefaults, settings_problems, settings_warnings

    checked = Checked()
    # An adopted request may differ, so a limit below the default request need not be an error.
    defaults = PodDefaults(OWN_RESOURCES if not options.platform.adopts_pods else {})
    for index, item in enumerate(items):
        problems = list(settings_problems(item.document.root.data, defaults))
        if not problems:
            spec = mapping(item.value.get("spec"))
            problems = [
                Problem(warning.reason, warning.path, warning.message, warning.fix, WARNING)
                for warning in settings_warnings(spec, options.platform, defaults)
            ]
        if item.name != names.CLUSTER:
            message = f'the API server rejects {item.kind} "{item.name}"; a cluster has one'
            problems.insert(
                0, Problem(NOT_READ, NAME_PATH, message, f'rename it to "{names.CLUSTER}"')
            )
        elif index:
            message = f"{item.kind} is already defined, and a cluster has one"
            problems.insert(0, Problem(NOT_READ, NAME_PATH, message, "remove one of them"))
        checked.problems += [(item, problem) for problem in problems]
    return checked
