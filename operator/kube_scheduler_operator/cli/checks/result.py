"""A check, and what it yields."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

from .facts import ClusterFacts, NotObservedError

PAGE: Final = "troubleshooting.md"
"""The page of docs/ with a section for each check."""


class CheckState(Enum):
    """The result of a check; the value is displayed. Later ones are worse."""

    OK = "ok"
    NOT_CHECKED = "not checked"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class CheckResult:
    check: str  # the name of the check
    state: CheckState
    cause: str  # one sentence: the problem; if ok what was seen; why it was not checked
    hint: str = ""  # what to do; empty if ok
    link: str = ""  # page and anchor, relative to docs/


@dataclass(frozen=True, slots=True)
class CheckProblem:
    cause: str  # one sentence
    hint: str  # what to do
    state: CheckState = CheckState.FAILED  # WARNING, FAILED or NOT_CHECKED
    link: str = ""  # page and anchor; empty: the section of the check


@dataclass(frozen=True, slots=True)
class Check:
    name: str  # in the table, and the anchor of its section in the documentation
    # yields problems; may return what it saw without any, as the text of `ok`
    find: Callable[[ClusterFacts], Iterator[CheckProblem | str]]

    @property
    def link(self) -> str:
        return f"{PAGE}#{self.name}"


def run_check(check: Check, facts: ClusterFacts) -> tuple[CheckResult, ...]:
    """The results of a check, the worst first; one `ok` if there is no problem."""
    results: list[CheckResult] = []
    summary = ""
    try:
        for problem in check.find(facts):
            if isinstance(problem, str):
                summary = problem
                continue
            link = problem.link or check.link
            results.append(
                CheckResult(check.name, problem.state, problem.cause, problem.hint, link)
            )
    except NotObservedError as error:
        state = CheckState.NOT_CHECKED
        hint = (
            "grant the right that the message names, or run the command as an administrator (--as)"
        )
        results.append(CheckResult(check.name, state, str(error), hint, check.link))
    if not results:
        return (CheckResult(check.name, CheckState.OK, summary, link=check.link),)
    order = list(CheckState)
    return tuple(sorted(results, key=lambda result: -order.index(result.state)))


def exit_code(results: Iterable[CheckResult], *, strict: bool) -> int:
    """1 if a check failed, or with `strict` warned; otherwise 0."""
    states = {result.state for result in results}
    bad = {CheckState.FAILED, CheckState.WARNING} if strict else {CheckState.FAILED}
    return 1 if states & bad else 0
