"""The page "why": why a Pod has no node, or is where it is: the scores of nodes by plugin."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from typing import Final

from ....simulate.diagnosis import Diagnosis
from ...console.errors import CommandError
from ...console.pod_reference import PodReference, pod_reference
from ...simulation.explanation import explained, scheduler_name_of
from ...simulation.explanation_text import NoPod
from ...simulation.extender_decisions import lines, simulated_answers
from ..page import ConsoleCluster, Page, Parameter, Question
from ..simulations import simulated
from ..views import NODES_SHOWN

_SEGMENT: Final = r"[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?"


@dataclass(frozen=True, slots=True)
class Why:
    """The answer about a Pod, or about the first one of a workload."""

    asked: str  # as `why` takes it; empty: nothing was asked
    namespace: str
    pod: Diagnosis | None = None
    absent: NoPod | None = None  # there is no such Pod now
    # what the agents of SchedulerExtenders decide about it in the simulation, as lines of text
    extenders: list[str] = field(default_factory=list)

    @property
    def asks_nothing(self) -> bool:
        return not self.asked

    @property
    def command(self) -> list[str]:
        """The command with the same answer."""
        return ["scheduler", "why", self.asked, "-n", self.namespace]


async def _answer(cluster: ConsoleCluster, question: Question) -> Why:
    asked, namespace = question["pod"], question["namespace"]
    if not asked:
        return Why("", namespace)
    reference = pod_reference(argparse.Namespace(pod=asked, namespace=namespace))
    if reference.names_group:
        raise CommandError(f"use `kubectl scheduler why {asked} -n {namespace}` for a PodGroup")
    name = await scheduler_name_of(cluster.api, reference)
    answer = await simulated(
        cluster, lambda simulation: explained(simulation, reference), scheduler_name=name
    )
    found = _title(reference)
    if isinstance(answer, NoPod):
        return Why(found, reference.namespace, absent=answer)
    agents, problems = simulated_answers(answer.extenders, answer.pod)
    answer.notes += problems
    return Why(found, reference.namespace, answer, extenders=[*lines(agents, NODES_SHOWN)])


def _title(reference: PodReference) -> str:
    kind = f"{reference.workload.kind.lower()}/" if reference.workload else ""
    return f"{kind}{reference.name}"


PAGE: Final = Page(
    name="why",
    title="Why",
    summary="Why a Pod has no node and what would help, or why it is where it is.",
    type=Why,
    answer=_answer,
    template="why.html.j2",
    parameters=(
        Parameter(
            "namespace",
            "the namespace of the Pod",
            pattern=r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?",
            default="default",
        ),
        Parameter(
            "pod",
            "POD, NAMESPACE/POD, or KIND/NAME of a workload such as deploy/web",
            pattern=f"({_SEGMENT}/)?{_SEGMENT}",
        ),
    ),
    fresh=30.0,
    limit=180.0,
)
