"""Prints the rules of `validate`: as text and as a list."""

from __future__ import annotations

from collections.abc import Iterable
from textwrap import fill, indent
from typing import Final

from ...base.findings import listing
from ...config.lint.rules import RULES, Rule
from ..console.output import format_table

_WIDTH: Final = 100


def rule_named(name: str) -> Rule | None:
    """Return the rule with this name, in upper or lower case; None if no rule has it."""
    by_lower = {known.lower(): rule for known, rule in RULES.items()}
    return by_lower.get(name.lower())


def rule_list(rules: Iterable[Rule]) -> str:
    rows = [(rule.name, listing(rule.severities), rule.title) for rule in rules]
    return "\n".join(format_table([("RULE", "SEVERITY", "TITLE"), *rows])) + "\n"


def rule_text(rule: Rule) -> str:
    flags = f", checked with {' '.join(rule.flags)}" if rule.flags else ""
    parts = [
        f"{rule.name} ({listing(rule.severities)}, since {rule.since})",
        fill(f"{rule.title}.", _WIDTH),
        fill(rule.meaning, _WIDTH),
        fill(f"Fix: {rule.fix}", _WIDTH),
        f"Example{flags}:",
        indent(rule.example, "    "),
        rule.link,
    ]
    return "\n\n".join(parts) + "\n"
