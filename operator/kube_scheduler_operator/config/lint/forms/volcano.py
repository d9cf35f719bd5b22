"""Recognizes what belongs to Volcano's scheduler, which `validate` names and does not check."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from ....base.images import repository

LABEL: Final = "Volcano configuration"
"""Shown in reports instead of a kind."""
NAME: Final = "volcano"
PROGRAM: Final = "vc-scheduler"
"""The scheduler's program, and the end of its image's name."""
OWN_CHECK: Final = (
    "`kubectl -n volcano-system logs deployment/volcano-scheduler` shows what Volcano rejects"
)
"""Where users check a configuration: Volcano logs what it rejects when it reads the file."""
NOT_CHECKED: Final = (
    "belongs to Volcano's scheduler, which reads no KubeSchedulerConfiguration, and is not checked "
    f"here: {OWN_CHECK}"
)
_FIELDS: Final = frozenset({"actions", "tiers", "configurations", "metrics"})
_LINES: Final = tuple(
    re.compile(rf"(?:^|[{{,])\s*[\"']?{field}[\"']?[ \t]*:", re.MULTILINE)
    for field in ("actions", "tiers")
)
_OF_KAI: Final = frozenset({"consolidation", "stalegangeviction"})
"""Actions that only KAI Scheduler has: NVIDIA/KAI-Scheduler at 305b17d, pkg/scheduler/framework."""


def is_volcano(value: Mapping[str, Any]) -> bool:
    """Report whether a document has the fields of Volcano's configuration, which has no kind."""
    if "kind" in value or "apiVersion" in value or is_kai(value):
        return False
    own = {"actions", "tiers"} & set(value)
    return len(own) == 2 or (bool(own) and set(value) <= _FIELDS)


def is_kai(value: Mapping[str, Any]) -> bool:
    """Report whether it is a configuration of KAI Scheduler, whose format is of the same origin."""
    actions = value.get("actions")
    named = {action.strip() for action in actions.split(",")} if isinstance(actions, str) else set()
    return "kind" not in value and "tiers" in value and bool(named & _OF_KAI)


def looks_like_volcano(content: str) -> bool:
    """Report whether a text, even a broken one, has the two fields of Volcano's configuration."""
    return all(pattern.search(content) for pattern in _LINES)


def is_volcano_image(image: str) -> bool:
    return repository(image).rpartition("/")[2] == PROGRAM
