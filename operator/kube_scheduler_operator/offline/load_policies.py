"""Load policies as `validate` reads them: LoadPolicies, and the files of crane-scheduler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ..base import names
from ..base.findings import Problem
from ..load.policy import LoadPolicyError
from ..load.policy_files import CRANE_GROUP, CRANE_KIND, OWN_KIND, from_document
from ..schedulerconfig.crd_schema import check_object
from .kinds import Checked, Item, Kind, Setting, by_name

if TYPE_CHECKING:
    from collections.abc import Iterator

VERSION: Final = "v1alpha1"
DEFINITION: Final = f"{names.LOADPOLICIES}.yaml"
ANOTHER: Final = "AnotherPolicy"


def check_load_policies(items: Sequence[Item], setting: Setting) -> Checked:
    """What the operator would say of LoadPolicies, and of what is still crane's."""
    del setting  # no kube-scheduler reads them
    checked = Checked()
    own, problems = by_name(item for item in items if item.kind == OWN_KIND)
    checked.problems += problems
    for index, item in enumerate(own.values()):
        if index:
            message = (
                f'there is LoadPolicy "{next(iter(own))}" as well, and the older one of the two '
                "has all nodes; remove one"
            )
            checked.problems.append((item, Problem(ANOTHER, ("metadata", "name"), message)))
        checked.problems += [(item, problem) for problem in _own(item.value)]
    for item in items:
        if item.kind == CRANE_KIND:
            checked.problems += [(item, problem) for problem in _cranes(item.value)]
    return checked


def _own(value: Mapping[str, Any]) -> Iterator[Problem]:
    """What is wrong, in the operator's words; in those of the definition, what it does not see."""
    found: tuple[Problem, ...] = ()
    try:
        from_document(value)
    except LoadPolicyError as error:
        found = error.problems
        yield from found
    said = {problem.path for problem in found}
    for problem in check_object(value, DEFINITION, VERSION):
        if problem.path not in said:
            yield problem


def _cranes(value: Mapping[str, Any]) -> Iterator[Problem]:
    try:
        yield from from_document(value).notes
    except LoadPolicyError as error:
        yield from error.problems


KINDS: Final[Mapping[tuple[str, str], Kind]] = {
    (names.PREFIX, OWN_KIND): Kind(VERSION, check_load_policies),
    (CRANE_GROUP, CRANE_KIND): Kind(VERSION, check_load_policies),
}
