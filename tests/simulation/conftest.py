"""Makes thousands of histories affordable, and reports them at the end."""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Iterator

import pytest

from kube_scheduler_operator.controlplane import desired
from kube_scheduler_operator.effective.control_plane.compose import Composition, Inputs, compose

from .invariants import Invariants


@pytest.fixture(autouse=True, scope="session")
def remembered_compositions() -> Iterator[None]:
    """Composing is pure and checks a lot: the same inputs are composed once."""
    known: dict[str, Composition] = {}

    @functools.wraps(compose)
    def remember(inputs: Inputs) -> Composition:
        spec = (inputs.kubescheduler.get("spec")) or {}
        key = json.dumps(
            [
                str(inputs.operand_version),
                (inputs.scheduler or {}).get("spec"),
                inputs.scheduler is None,
                spec,
                inputs.stock_arguments,
                inputs.adopted_config,
                inputs.stock_image,
                inputs.scheduler_profiles,
            ],
            sort_keys=True,
        )
        if key not in known:
            known[key] = compose(inputs)
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(desired, "compose", remember)
        yield


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
