"""A check, and what it yields."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

from .facts import ClusterFacts
from .observed import NotObservedError

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
    """One line of the table.

    Attributes:
        check: the name of the check.
        state: ok, warning, failed or not checked.
        cause: one sentence: the problem; if ok what was seen; why it was not checked.
        hint: what to do; empty if ok.
        link: page and anchor, relative to docs/.
    """

    check: str
    state: CheckState
    cause: str
    hint: str = ""
    link: str = ""


@dataclass(frozen=True, slots=True)
class CheckProblem:
    """A problem that a check finds.

    Attributes:
        cause: one sentence.
        hint: what to do.
        state: WARNING, FAILED or NOT_CHECKED.
        link: page and anchor; empty: the section of the check.
    """

    cause: str
    hint: str
    state: CheckState = CheckState.FAILED
    link: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """One check.

    Attributes:
        name: in the table, and the anchor of its section in the documentation.
        find: yields problems; may return what it saw without any, as the text of `ok`.
        unread: what to do if a fact is missing.
    """

    name: str
    find: Callable[[ClusterFacts], Iterator[CheckProblem | str]]
    unread: str = (
        "grant the right that the message names, or run the command as an administrator (--as)"
    )

    @property
    def link(self) -> str:
        """Its section in the documentation."""
        return f"{PAGE}#{self.name}"


def run_check(check: Check, facts: ClusterFacts) -> tuple[CheckResult, ...]:
    """The results of a check, the worst first; one `ok` if it finds no problem."""
    results: list[CheckResult] = []
    seen = ""
    try:
        for found in check.find(facts):
            if isinstance(found, str):
                seen = found
                continue
            link = found.link or check.link
            results.append(CheckResult(check.name, found.state, found.cause, found.hint, link))
    except NotObservedError as error:
        unread = CheckState.NOT_CHECKED
        results.append(CheckResult(check.name, unread, str(error), check.unread, check.link))
    if not results:
        return (CheckResult(check.name, CheckState.OK, seen, link=check.link),)
    order = list(CheckState)
    return tuple(sorted(results, key=lambda one: -order.index(one.state)))


def exit_code(results: Iterable[CheckResult], *, strict: bool) -> int:
    """1 if a check failed, or with `strict` warned; otherwise 0."""
    states = {result.state for result in results}
    bad = {CheckState.FAILED, CheckState.WARNING} if strict else {CheckState.FAILED}
    return 1 if states & bad else 0
