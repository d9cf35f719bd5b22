"""The examples of docs/rules.md as files."""

from __future__ import annotations

import re

from kube_scheduler_operator.config.lint.rules import Rule

CUT = {
    "TooLarge": "x" * 529_938,
    "TooDeep": f"  unsupportedConfigOverrides: {'{a: ' * 70}1{'}' * 70}"[40:-40],
}
"""What the page leaves out of the long line of an example."""


def examples(rule: Rule) -> dict[str, str]:
    """The files of a rule's example, by name, in full."""
    first, *others = re.split(r"(?:\A|\n\n)# ((?:first|second)\.yaml)\n", rule.example)
    texts = dict(zip(others[::2], others[1::2], strict=True)) or {"first.yaml": first}

    def written_out(cut: re.Match[str]) -> str:
        assert int(cut[1]) == len(CUT[rule.name])
        return CUT[rule.name]

    return {
        name: re.sub(r"… (\d+) more characters …", written_out, text) + "\n"
        for name, text in texts.items()
    }
