"""docs/rules.md: the rules of `validate`, from their catalogue."""

from __future__ import annotations

from typing import Final

from cluster import paths
from kube_scheduler_operator.base.findings import listing
from kube_scheduler_operator.cli.reports.rule_output import rule_markdown
from kube_scheduler_operator.config.lint.rules import GROUPS

PAGE: Final = paths.REPOSITORY / "docs" / "rules.md"

_HEAD: Final = """\
# Rules of validate

Every finding of `kubectl scheduler validate` names its rule in brackets.
`kubectl scheduler validate --explain RULE` prints what this page has about it. An error keeps the
scheduler from starting, or the operator from using the object; a warning does not.
[reports.md](reports.md) describes how to ignore a warning and how to change its severity.

`hack/rules` makes this page from `operator/kube_scheduler_operator/config/lint/rules/`. A test runs
`validate` over each example.
"""


def page() -> str:
    """The whole page."""
    parts = [_HEAD]
    for topic, rules in GROUPS.items():
        rows = [f"| [{each.name}](#{each.name.lower()}) | {each.title} |" for each in rules]
        parts.append("\n".join(["| " + topic + " | |", "|---|---|", *rows]) + "\n")
    for topic, rules in GROUPS.items():
        parts.append(f"## {topic}\n")
        for each in rules:
            heading = (
                f"### {each.name}\n\n*{listing(each.severities).capitalize()}, since {each.since}*"
            )
            parts.append(f"{heading}\n\n{rule_markdown(each)}\n")
    return "\n".join(parts)
