"""Checks of LoadPolicies and of crane-scheduler's DynamicSchedulerPolicies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ...base import names
from ...base.crd_schema import validate_object
from ...base.findings import Problem
from ...base.objects import mapping
from ...base.spec_limits import limit_problems
from ...kube.resource import LOAD_POLICIES
from ...scheduling.load.policy import LoadPolicyError
from ...scheduling.load.policy_files import CRANE_KIND, OWN_KIND, from_document
from ..effective.permitted_load_policies import refused_settings
from .checks import Checked, CheckOptions, Item, by_name

if TYPE_CHECKING:
    from collections.abc import Iterator

DEFINITION: Final = f"{names.LOADPOLICIES}.yaml"
ANOTHER: Final = "AnotherPolicy"


def check_load_policies(items: Sequence[Item], options: CheckOptions) -> Checked:
    """Check LoadPolicies and DynamicSchedulerPolicies as the operator does."""
    namespace = options.platform.target_namespace
    checked = Checked()
    own, problems = by_name(item for item in items if item.kind == OWN_KIND)
    checked.problems += problems
    for index, item in enumerate(own.values()):
        if index:
            message = (
                f'LoadPolicy "{next(iter(own))}" is also defined, and only the older of the two is '
                "used; remove one of them"
            )
            checked.problems.append((item, Problem(ANOTHER, ("metadata", "name"), message)))
        checked.problems += [(item, problem) for problem in _own(item, namespace)]
    for item in items:
        if item.kind == CRANE_KIND:
            checked.problems += [(item, problem) for problem in _cranes(item.value)]
    return checked


def _own(item: Item, namespace: str) -> Iterator[Problem]:
    """Yield the operator's problems, then those that only the CustomResourceDefinition detects."""
    problems: tuple[Problem, ...] = ()
    try:
        from_document(item.value)
    except LoadPolicyError as error:
        problems = error.problems
    spec = mapping(item.value.get("spec"))
    problems = problems or (*limit_problems(spec), *refused_settings(spec, None, namespace))
    yield from problems
    reported = {problem.path for problem in problems}
    for problem in validate_object(item.document.root.data, DEFINITION, LOAD_POLICIES.version):
        if problem.path not in reported:
            yield problem


def _cranes(value: Mapping[str, Any]) -> Iterator[Problem]:
    try:
        yield from from_document(value).notes
    except LoadPolicyError as error:
        yield from error.problems
