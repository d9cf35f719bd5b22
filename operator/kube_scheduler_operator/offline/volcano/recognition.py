"""Whether a document is a configuration of Volcano's scheduler."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

LABEL: Final = "Volcano configuration"
"""What takes the place of a kind in reports."""
DUPLICATE: Final = "VolcanoDuplicate"
"""The reason of what is repeated."""
_FIELDS: Final = frozenset({"actions", "tiers", "configurations", "metrics"})
_LINES: Final = tuple(
    re.compile(rf"(?:^|[{{,])\s*[\"']?{field}[\"']?[ \t]*:", re.MULTILINE)
    for field in ("actions", "tiers")
)
_OF_KAI: Final = frozenset({"consolidation", "stalegangeviction"})
"""Actions that only KAI Scheduler has: NVIDIA/KAI-Scheduler at 305b17d, pkg/scheduler/framework."""


def is_volcano(value: Mapping[str, Any]) -> bool:
    """Whether a document has the fields of Volcano's SchedulerConfiguration, which has no kind."""
    if "kind" in value or "apiVersion" in value or is_kai(value):
        return False
    own = {"actions", "tiers"} & set(value)
    return len(own) == 2 or (bool(own) and set(value) <= _FIELDS)


def is_kai(value: Mapping[str, Any]) -> bool:
    """Whether it is a configuration of KAI Scheduler, whose format is of the same origin."""
    actions = value.get("actions")
    named = {each.strip() for each in actions.split(",")} if isinstance(actions, str) else set()
    return "kind" not in value and "tiers" in value and bool(named & _OF_KAI)


def looks_like_volcano(content: str) -> bool:
    """Whether a text, which may be broken, has the two fields of every such configuration."""
    return all(each.search(content) for each in _LINES)
