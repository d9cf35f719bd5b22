"""The rules of `validate`: what each reason of a finding means, with an example and the fix.

docs/rules.md is the catalogue, and ships with the program: `--explain` prints its sections.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, cast

from ...base.assets import text
from ...base.findings import Severity

_SECTION: Final = re.compile(
    r"""^### (?P<name>\w+)

\*(?P<severities>[^,\n]+), since (?P<since>[\d.]+)\*

(?P<markdown>\*\*(?P<title>[^*\n]+)\.\*\* (?P<meaning>[^\n]+)

\*\*Fix:\*\* (?P<fix>[^\n]+)

Example(?:, checked with (?P<flags>[^\n]+))?:

```yaml
(?P<example>.*?)
```)$""",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Rule:
    """One reason for findings."""

    name: str  # the CamelCase identifier that findings have as their reason
    title: str  # what is wrong, in a few words
    meaning: str  # what happens with such a configuration, and why
    fix: str
    severities: tuple[Severity, ...]  # of its findings, the usual severity first
    # a file with such a finding, or two, each below a comment with its name; long lines are cut
    example: str
    flags: tuple[str, ...]  # flags of `validate` with which the example has the finding
    since: str  # the release of this program that introduced the rule
    markdown: str  # its section of the page, without the heading

    @property
    def severity(self) -> Severity:
        return self.severities[0]

    @property
    def link(self) -> str:
        """Return its section, in the repository: no host is known to publish it."""
        return f"docs/rules.md#{self.name.lower()}"


def _rule(section: re.Match[str]) -> Rule:
    return Rule(
        section["name"],
        section["title"],
        section["meaning"],
        section["fix"],
        cast("tuple[Severity, ...]", tuple(section["severities"].lower().split(" or "))),
        section["example"],
        tuple((section["flags"] or "").split()),
        section["since"],
        section["markdown"],
    )


RULES: Final[Mapping[str, Rule]] = {
    section["name"]: _rule(section) for section in _SECTION.finditer(text("docs", "rules.md"))
}
"""The rules by name, in the order of the page."""
