"""Reports the histories at the end."""

from __future__ import annotations

from collections import Counter

import pytest

from .invariants import Invariants


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The figures of the histories that passed, from all processes."""
    found: Counter[str] = Counter()
    for report in terminalreporter.stats.get("passed", []):
        figures = dict(report.user_properties)
        found.update({name: n for name, n in figures.items() if isinstance(n, int)})
    if found["histories"]:
        terminalreporter.write_line(
            f"{found['histories']} histories with {found['disturbances']} disturbances; "
            f"{len(Invariants.rules())} rules, checked {found['checks']} times; "
            f"{found['planted bugs caught']} planted bugs caught"
        )
