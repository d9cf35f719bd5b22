"""The page "what if": where Pods would be today and with another profile, side by side."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Final

from ....config.language.merging.presets import PRESETS
from ....simulate.scenario import Scenario
from ...simulation.answer import SimulationAnswer, SimulationQuestion
from ...simulation.question import simulated_answer
from ..page import ConsoleCluster, Page, Parameter, Question
from ..simulations import simulated

ALL, WAITING = "all", "waiting"
_FIRST, _REPEAT = 1, 3
"""Runs of each configuration for the first answer and for the whole one: kube-scheduler breaks ties
in another way each time."""


@dataclass(frozen=True, slots=True)
class WhatIf:
    """Placements with the configuration of today and with another profile."""

    profile: str  # empty: nothing was asked
    pods: str  # which are placed: "all" that run and wait, or those that wait
    answer: SimulationAnswer | None = None

    @property
    def asks_nothing(self) -> bool:
        return not self.profile

    @property
    def command(self) -> list[str]:
        """The command with the same answer."""
        replay = ["--replay"] if self.pods == ALL else []
        return ["scheduler", "simulate", *replay, "--profile", self.profile,
                "--repeat", str(self.answer.repeat if self.answer else _REPEAT)]  # fmt: skip

    @property
    def command_for_files(self) -> list[str]:
        """The command for an edit that is not one of the profiles."""
        replay = ["--replay"] if self.pods == ALL else []
        return ["scheduler", "simulate", *replay, "--config", "FILE"]


async def _first(cluster: ConsoleCluster, question: Question) -> WhatIf:
    return await _answer(cluster, question, _FIRST)


async def _answer(cluster: ConsoleCluster, question: Question, runs: int = _REPEAT) -> WhatIf:
    profile, pods = question["profile"], question["pods"]
    if not profile:
        return WhatIf("", pods)
    asked = SimulationQuestion(Scenario(replay=pods == ALL))
    args = argparse.Namespace(
        profiles=[profile],
        configs=[],
        repeat=runs,
        max=False,
        replicas=None,
        replay=pods == ALL,
        from_files=[],
    )
    answer = await simulated(cluster, lambda simulation: simulated_answer(simulation, asked, args))
    return WhatIf(profile, pods, answer)


PAGE: Final = Page(
    name="what-if",
    title="What if",
    summary="Where Pods would be with another profile, beside where they would be today.",
    type=WhatIf,
    answer=_answer,
    first=_first,
    template="what-if.html.j2",
    parameters=(
        Parameter("profile", "the profile to compare with today's", choices=PRESETS),
        Parameter("pods", "which Pods are placed", choices=(ALL, WAITING), default=ALL),
    ),
    fresh=120.0,
    limit=600.0,
)
