"""Checks of objects that no other object completes.

These are LoadPolicies, crane-scheduler's DynamicSchedulerPolicies, and OperatorSettings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ...base import names
from ...base.crd_schema import validate_object
from ...base.findings import WARNING, Problem
from ...base.objects import mapping
from ...kube.resource import LOAD_POLICIES
from ...scheduling.load.policy import LoadPolicyError
from ...scheduling.load.policy_files import CRANE_KIND, OWN_KIND, from_document
from .checks import NAME_PATH, NOT_READ, Checked, CheckOptions, Item, by_name

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
