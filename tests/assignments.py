"""Assignments that are drawn, each with a Pod that it selects or nearly does."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Drawn:
    """The status.assignment of a SecondaryScheduler, and what selects the Pod."""

    assignment: dict[str, Any]
    namespace_labels: dict[str, str]
    labels: dict[str, str]
    priority_class: str


def drawn(draw: random.Random) -> Drawn:
    namespace_labels = {key: draw.choice("123") for key in "ab" if draw.random() < 0.6}
    labels = {key: draw.choice("123") for key in "ab" if draw.random() < 0.6}
    priority_class = draw.choice(("low", "usual"))
    assignment: dict[str, Any] = {"schedulerName": "drawn", "pods": _pods(draw)}
    if draw.random() < 0.5:
        assignment["except"] = [_pods(draw) for _ in range(draw.randint(0, 2))]
    return Drawn(assignment, namespace_labels, labels, priority_class)


def _pods(draw: random.Random) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for field in ("namespaceSelector", "podSelector"):
        selector: dict[str, Any] = {}
        if draw.random() < 0.4:
            selector["matchLabels"] = {draw.choice("ab"): draw.choice("123")}
        if draw.random() < 0.5:
            operator = draw.choice(("In", "NotIn", "Exists", "DoesNotExist"))
            requirement: dict[str, Any] = {"key": draw.choice("ab"), "operator": operator}
            if operator in ("In", "NotIn"):
                requirement["values"] = draw.sample("123", draw.randint(1, 2))
            selector["matchExpressions"] = [requirement]
        if selector:
            found[field] = selector
    if draw.random() < 0.3:
        found["priorityClassNames"] = draw.choice((["low"], ["usual"], ["low", "usual"]))
    return found
