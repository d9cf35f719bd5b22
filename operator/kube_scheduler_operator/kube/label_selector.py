"""Matches, compares and writes LabelSelectors.

The rules are those of Kubernetes (k8s.io/apimachinery, pkg/apis/meta/v1 and pkg/labels): an empty
selector matches everything, and NotIn and DoesNotExist match an object without the label.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ..base.objects import mapping

Selector = Mapping[str, Any]
"""A LabelSelector as the API returns it."""

IN: Final = "In"
NOT_IN: Final = "NotIn"
EXISTS: Final = "Exists"
DOES_NOT_EXIST: Final = "DoesNotExist"


@dataclass(frozen=True, slots=True)
class Requirement:
    key: str
    operator: str  # In, NotIn, Exists or DoesNotExist
    values: tuple[str, ...] = ()  # the values of In and NotIn

    def met_by(self, labels: Mapping[str, str]) -> bool:
        """Return whether an object with these labels meets it; an unknown operator is never met."""
        if self.operator == IN:
            return labels.get(self.key) in self.values
        if self.operator == NOT_IN:
            return labels.get(self.key) not in self.values
        if self.operator == EXISTS:
            return self.key in labels
        return self.operator == DOES_NOT_EXIST and self.key not in labels

    def __str__(self) -> str:
        """Write the requirement as kubectl does."""
        if self.operator == IN and len(self.values) == 1:
            return f"{self.key}={self.values[0]}"
        if self.operator in (IN, NOT_IN):
            verb = "in" if self.operator == IN else "notin"
            return f"{self.key} {verb} ({','.join(self.values)})"
        return self.key if self.operator == EXISTS else f"!{self.key}"


def requirements(selector: Selector | None) -> Iterator[Requirement]:
    """Yield all requirements of a selector; none if it is empty or None."""
    for key, value in mapping(mapping(selector).get("matchLabels")).items():
        yield Requirement(key, IN, (str(value),))
    for expression in mapping(selector).get("matchExpressions") or ():
        values = tuple(map(str, expression.get("values") or ()))
        yield Requirement(str(expression.get("key")), str(expression.get("operator")), values)


def matcher(selector: Selector | None) -> Callable[[Mapping[str, str]], bool]:
    """Return the function that reports whether labels meet all requirements."""
    wanted = tuple(requirements(selector))
    return lambda labels: all(requirement.met_by(labels) for requirement in wanted)


def matches(selector: Selector | None, labels: Mapping[str, str]) -> bool:
    """Return whether an object with `labels` meets all requirements."""
    return matcher(selector)(labels)


def written(selector: Selector | None) -> str:
    """Return the selector as kubectl writes it; empty if it matches everything."""
    return ",".join(str(requirement) for requirement in requirements(selector))


def can_both_match(one: Selector | None, other: Selector | None) -> bool:
    """Return whether labels exist that both selectors match."""
    by_key: dict[str, list[Requirement]] = {}
    for requirement in (*requirements(one), *requirements(other)):
        by_key.setdefault(requirement.key, []).append(requirement)
    return all(_satisfiable(requirement) for requirement in by_key.values())


def _satisfiable(requirements: list[Requirement]) -> bool:
    """Return whether a label of one key can meet all of these requirements."""
    allowed = [
        set(requirement.values) for requirement in requirements if requirement.operator == IN
    ]
    operators = {requirement.operator for requirement in requirements}
    if DOES_NOT_EXIST in operators:
        return not allowed and EXISTS not in operators
    if not allowed:
        return True  # there are more values than NotIn can list
    refused = {
        value
        for requirement in requirements
        if requirement.operator == NOT_IN
        for value in requirement.values
    }
    return bool(set.intersection(*allowed) - refused)
