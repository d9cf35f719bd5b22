"""States of clusters, as recorded answers: those of each page of the console, by its name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from kube_scheduler_operator.cli.answers.history import ContentEntry
from kube_scheduler_operator.cli.answers.status import Assignment, SecondaryState, StatusProblem
from kube_scheduler_operator.cli.console.errors import CommandError
from kube_scheduler_operator.cli.web.pages.extenders import of_status
from kube_scheduler_operator.cli.web.pages.rollout import RolloutAnswer
from kube_scheduler_operator.cli.web.registry import PAGES

from ..unit.cli.web.recorded import ANSWERS, MARKUP, hostile
from ..unit.cli.web.test_pages import stranger
from ..unit.cli.web.worlds import BROKEN, BROKEN_STATUS, HEALTHY, HEALTHY_STATUS, IMAGE

LONG: Final = "a-name-as-long-as-generated-ones-can-be-" * 6
"""240 characters without a place to break; names of objects have up to 253."""


def _changed(answer: Any, text: str) -> Any:
    """The answer with a text at the end of every text that strangers may write."""
    outcome = getattr(answer, "outcome", None)
    changed = stranger(answer, text)
    return changed if outcome is None else replace(changed, outcome=outcome)


def _by_strangers(world: Mapping[str, Any], text: str) -> dict[str, Any]:
    return {
        name: hostile(answer, text) if name in ANSWERS else _changed(answer, text)
        for name, answer in world.items()
    }


def _of(case: str, world: Mapping[str, Any], **cases: str) -> dict[str, Any]:
    """A world with a recorded answer of each other page: `case`, or another one by page."""
    known = {name: cases.get(name.replace("-", "_"), case) for name in ANSWERS}
    return {**world, **{name: ANSWERS[name][own] for name, own in known.items()}}


MANAGED_STATUS: Final = replace(
    HEALTHY_STATUS,
    profile="",
    revision=0,
    managed=True,
    platform="EKS",
    nodes=(),
    secondary_schedulers=[SecondaryState("managed-scheduler", 2, 2, "True", IMAGE, "node-a_1")],
    assignments=[Assignment("managed-scheduler", assigned=True, message="all Pods of default")],
)
MANAGED_BROKEN_STATUS: Final = replace(
    BROKEN_STATUS,
    profile="",
    revision=0,
    later_revisions=(),
    managed=True,
    platform="EKS",
    nodes=(),
    secondary_schedulers=[SecondaryState("managed-scheduler", 0, 2, "False", IMAGE, "")],
    problems=[
        StatusProblem(
            "SecondarySchedulersDegraded",
            "managed-scheduler_CrashLoopBackOff",
            "managed-scheduler: 2 of 2 Pods are in CrashLoopBackOff: unknown flag: --nope",
            "run `kubectl scheduler rollout undo --scheduler managed-scheduler`",
        )
    ],
)
CONFIGURATIONS: Final = [
    ContentEntry("5f0c3a9d21", "2026-01-02T00:00:00Z", "failed", "2 of 2 Pods crash", False, True,
                 "0b7d41c6aa", ["--nope=1 added"], ["SecondaryScheduler managed-scheduler"]),
    ContentEntry("0b7d41c6aa", "2026-01-01T00:00:00Z", "installed", "", True, False, None, None,
                 []),
]  # fmt: skip
MANAGED_ROLLOUT: Final = RolloutAnswer(
    scheduler="managed-scheduler",
    outcome="done",
    message="",
    problem="",
    target="0b7d41c6aa",
    pods="2 of 2 Pods are Ready",
    lanes=(),
    pending={},
    revisions=(),
    configurations=CONFIGURATIONS[1:],
)
MANAGED: Final = {
    **HEALTHY,
    "now": MANAGED_STATUS,
    "rollout": MANAGED_ROLLOUT,
    "extenders": of_status(MANAGED_STATUS),
}
MANAGED_BROKEN: Final = {
    **BROKEN,
    "now": MANAGED_BROKEN_STATUS,
    "rollout": replace(MANAGED_ROLLOUT, outcome="failed", message="2 of 2 Pods crash",
                       target="5f0c3a9d21", pods="0 of 2 Pods are Ready",
                       configurations=CONFIGURATIONS),
    "extenders": of_status(MANAGED_BROKEN_STATUS),
}  # fmt: skip

_BROKEN = _of("broken", BROKEN, what_if="compared")
STATES: Final[Mapping[str, Mapping[str, Any]]] = {
    "healthy": _of("healthy", HEALTHY, why="running", what_if="compared"),
    "broken": _BROKEN,
    "managed": _of("healthy", MANAGED, why="running", what_if="compared"),
    "managed-broken": _of("broken", MANAGED_BROKEN, what_if="asked nothing"),
    "nothing-asked": _of("healthy", HEALTHY, nodes="none", why="asked nothing",
                         what_if="asked nothing"),
    "huge": _of("huge", BROKEN),
    "hostile": _by_strangers(_of("broken", BROKEN, why="gone", what_if="compared"), MARKUP),
    "long-names": _by_strangers(_BROKEN, LONG),
    "not-known": {
        page.name: CommandError(
            f"no permission to list pods: {LONG}" if page.name == "now" else
            "no kube-scheduler was found: name one with --kube-scheduler PATH"
        )
        for page in PAGES
    },
}  # fmt: skip
