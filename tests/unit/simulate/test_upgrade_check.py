"""Which kube-scheduler of a Pod stands for a version of a scheduler, and why none does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kube_scheduler_operator.config.effective.secondary.scheduler import CONTROL_PLANE
from kube_scheduler_operator.config.effective.upgrades import RecordedUpgrade
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.simulate.edit_effect import EditEffect, Loss
from kube_scheduler_operator.simulate.questions import NO_BINARY
from kube_scheduler_operator.simulate.run_options import RunOptions
from kube_scheduler_operator.simulate.upgrade_check import PodTrials
from kube_scheduler_operator.simulate.upgrade_programs import Program
from kube_scheduler_operator.simulate.upgrade_report import (
    Placements,
    SchedulerStep,
    UpgradeReport,
)
from kube_scheduler_operator.simulate.world import World

V35, V36 = Version(1, 35, 4), Version(1, 36, 3)


def trials(*, named: bool = False) -> PodTrials:
    before, after = (Program(Path(str(one)), one, named=named) for one in (V35, V36))
    return PodTrials(World(), RunOptions(NO_BINARY, {}), before, after, "next:v1.36.3")


def upgrade(title: str = CONTROL_PLANE, *, stock: bool = True) -> RecordedUpgrade:
    return RecordedUpgrade(title, V35, stock, (), {})


@pytest.mark.parametrize(
    ("named", "of", "stands"),
    [
        (False, upgrade(), True),
        (False, upgrade("another"), True),
        (False, upgrade(stock=False), False),
        (True, upgrade(stock=False), True),
        (True, upgrade("another", stock=False), False),  # its image is not the named one
    ],
)
def test_a_kube_scheduler_stands_for_schedulers_with_its_plugins(
    named: bool, of: RecordedUpgrade, stands: bool
) -> None:
    found = trials(named=named)
    assert (found.program(of, Version(1, 36)) is not None) == stands
    assert (found.program(of, Version(1, 35)) is not None) == stands
    if not stands:
        assert "may have plugins of its own" in found.why_none(of, Version(1, 36))


def test_a_version_between_the_two_is_not_run() -> None:
    found = trials()
    assert found.program(upgrade(), Version(1, 37)) is None
    assert found.why_none(upgrade(), Version(1, 37)) == (
        "no kube-scheduler 1.37 was run; those in use and in next:v1.36.3 are v1.35.4 and v1.36.3"
    )


def test_a_report_in_a_message_is_bounded_and_names_how_to_see_all() -> None:
    losses = [Loss(f"reason {number} " + "x" * 2000, ["shop/a"] * 9) for number in range(50)]
    placements = Placements(V35, V36, EditEffect(lost=losses, tried=450))
    step = SchedulerStep(CONTROL_PLANE, Version(1, 36), placements=(placements,))
    report = UpgradeReport(Version(1, 36), {CONTROL_PLANE: V35}, [step], ["a note"])
    message = report.described()
    assert len(message) < 8192
    summary, *lines, last = message.split("\n")
    assert summary == "Kubernetes 1.35 to 1.36: something changes in 1.36"
    assert lines[0].startswith(
        f"1.36, {CONTROL_PLANE}: pods, compared with v1.35.4: 9 running pods could no longer be "
    )
    assert last == "and 35 more lines: `kubectl scheduler check --upgrade 1.36` prints all"
    few = replace(report, steps=[replace(step, placements=())]).described()
    assert few.endswith("\nnote: a note")
