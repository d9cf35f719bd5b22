"""Prints the rules of `validate`: as text, as Markdown, and as a list."""

from __future__ import annotations

from collections.abc import Iterable
from textwrap import fill, indent
from typing import Final

from ...base.findings import listing
from ...config.lint.rules import RULES, Rule
from ..console.output import format_table

_WIDTH: Final = 100
_LONGEST_LINE: Final = 120
"""Longer lines of an example, which show that a value is too long, are cut."""


def rule_named(name: str) -> Rule | None:
    """Return the rule with this name, in upper or lower case; None if no rule has it."""
    by_lower = {known.lower(): rule for known, rule in RULES.items()}
    return by_lower.get(name.lower())


def rule_list(rules: Iterable[Rule]) -> str:
    rows = [(rule.name, listing(rule.severities), rule.title) for rule in rules]
    return "\n".join(format_table([("RULE", "SEVERITY", "TITLE"), *rows])) + "\n"


def rule_text(rule: Rule) -> str:
    parts = [
        f"{rule.name} ({listing(rule.severities)}, since {rule.since})",
        fill(f"{rule.title}.", _WIDTH),
        fill(rule.meaning, _WIDTH),
        fill(f"Fix: {rule.fix}", _WIDTH),
        f"{_example_heading(rule)}:",
        indent(example(rule), "    "),
        rule.link,
    ]
    return "\n\n".join(parts) + "\n"


def rule_markdown(rule: Rule) -> str:
    return "\n\n".join(
        (
            f"**{rule.title}.** {rule.meaning}",
            f"**Fix:** {rule.fix}",
            f"{_example_heading(rule)}:",
            f"```yaml\n{example(rule)}\n```",
        )
    )


def _example_heading(rule: Rule) -> str:
    flags = f", checked with {' '.join(rule.flags)}" if rule.flags else ""
    return f"Example{flags}"


def example(rule: Rule) -> str:
    """Return the files of the example, with a comment that names them if there are two."""
    texts = []
    for name, text in rule.examples.items():
        heading = [f"# {name}"] if len(rule.examples) > 1 else []
        lines = [_cut(line) for line in text.rstrip("\n").split("\n")]
        texts.append("\n".join(heading + lines))
    return "\n\n".join(texts)


def _cut(line: str) -> str:
    if len(line) <= _LONGEST_LINE:
        return line
    half = _LONGEST_LINE // 3
    return f"{line[:half]}… {len(line) - 2 * half} more characters …{line[-half:]}"
