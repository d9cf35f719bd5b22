"""The catalogue of rules: what each reason of `validate` means, with an example and the fix."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from . import documents, extender_calls, fields, objects, plugin_lists, schedulers, workloads
from .rule import HOME, Rule

__all__ = ["GROUPS", "HOME", "RULES", "Rule"]

GROUPS: Final[Mapping[str, tuple[Rule, ...]]] = {
    "Files and documents": documents.RULES,
    "Fields and values": fields.RULES,
    "Lists of plugins": plugin_lists.RULES,
    "Extenders": extender_calls.RULES,
    "Schedulers and their flags": schedulers.RULES,
    "Workloads and places": workloads.RULES,
    "Objects of the operator": objects.RULES,
}
"""The rules by topic, in the order of the documentation."""

RULES: Final[Mapping[str, Rule]] = {rule.name: rule for rules in GROUPS.values() for rule in rules}
"""The rules by name."""
