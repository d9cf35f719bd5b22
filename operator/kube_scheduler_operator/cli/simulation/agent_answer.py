"""What an agent of a SchedulerExtender answers about a pod, as typed values.

The answer comes from another program, which may be of another version, broken or forged. Everything
that is shown or printed is made from these values, never from the answer itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from json import JSONDecodeError
from typing import Annotated, Any, Final, TypeAlias

from ...base.decoding import (
    Converted,
    DecodeError,
    DecodingRun,
    FirstProblem,
    ListOf,
    MapOf,
    Number,
    String,
    Type,
    decode,
)
from ...base.field_types import type_of
from ...base.findings import Path
from ...base.foreign_text import foreign, one_line
from ...base.json_text import exceeds_depth, parse_json
from ...base.limits import FOREIGN_NAME, FOREIGN_REASON, Size

_POLICIES: Final = 32
"""Policies of an agent, and different keys of the rows of a policy: columns of a table."""
_ROWS: Final = 20_000
"""Nodes in a list; the largest clusters have 15,000."""
_ENTRIES: Final = 256
"""Entries of a value within a row; the distribution of safe-overload has 21 rows."""
_AGENTS: Final = 256
_LEVELS: Final = 16
"""Levels of nested objects and lists; answers of agents have 7."""
_ABOVE_ALL: Final = 2**63
"""The smallest number that other programs do not read."""


class AnswerError(ValueError):
    """A part of an answer is not valid; the message has its path."""


# --- types --------------------------------------------------------------------------------------


def _unicode(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which cannot be printed
        raise ValueError("this must be Unicode") from None
    return text


def _readable(number: float) -> float:
    if abs(number) >= _ABOVE_ALL:
        raise ValueError("this number is too large")
    return number


_STRING: Final = Converted(String(), _unicode)
_NAME: Final = Converted(Converted(String(longest=FOREIGN_NAME), _unicode), one_line)
_TEXT: Final = Converted(_STRING, lambda text: foreign(text, FOREIGN_REASON))
_NUMBER: Final = Converted(Number(converted=False), _readable)
_COUNT: Final = Converted(Number(whole=True, least=0, converted=False), _readable)

Name: TypeAlias = Annotated[str, _NAME]
Sentence: TypeAlias = Annotated[str, _TEXT]
"""A text for people, which may end early."""
Score: TypeAlias = Annotated[int | float, _NUMBER]
Scores: TypeAlias = Annotated[Mapping[str, int | float], MapOf(_NUMBER, _NAME, most=_POLICIES)]
Count: TypeAlias = Annotated[int, _COUNT]


class _Detail:
    """A value of a row: its type is the policy's own."""

    def __call__(self, value: Any, path: Path, run: DecodingRun) -> Any:
        if value is None or isinstance(value, bool):
            return value
        kind: Type = _NUMBER
        if isinstance(value, str):
            kind = _TEXT
        elif isinstance(value, list):
            kind = _DETAILS
        elif isinstance(value, dict):
            kind = _DETAIL_FIELDS
        return kind(value, path, run)


def _of_few_keys(rows: tuple[DetailRow, ...]) -> tuple[DetailRow, ...]:
    if len({key for row in rows for key in row}) > _POLICIES:
        raise ValueError(f"this must have at most {_POLICIES} different keys")
    return rows


_DETAILS: Final = ListOf(_Detail(), most=_ENTRIES)
_DETAIL_FIELDS: Final = MapOf(_Detail(), _NAME, most=_ENTRIES)
_ROW: Final = MapOf(_Detail(), _NAME, most=_POLICIES)
_ROWS_OF_POLICY: Final = Converted(ListOf(_ROW, tuple, most=_ROWS), _of_few_keys)
_NOW: Final = MapOf(MapOf(_ROWS_OF_POLICY, _NAME, most=_POLICIES), _NAME, most=_AGENTS)


# --- the answer ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RejectedNode:
    node: Name
    reason: Sentence  # the policy and its reason
    unresolvable: bool  # whether preemption does not help


@dataclass(frozen=True, slots=True)
class FilterDecision:
    at: Name  # when it was called
    nodes: Count  # how many were in the call
    rejected: Annotated[tuple[RejectedNode, ...], ListOf(type_of(RejectedNode), tuple, most=_ROWS)]


@dataclass(frozen=True, slots=True)
class ScoredNode:
    node: Name
    score: Score
    policies: Scores | None = None  # by policy; None: not reported
    unknown: bool | None = None  # whether the agent does not know the node; None: not reported


@dataclass(frozen=True, slots=True)
class PrioritizeDecision:
    at: Name  # when it was called
    weights: Scores  # by policy
    nodes: Annotated[  # best first
        tuple[ScoredNode, ...], ListOf(type_of(ScoredNode), tuple, most=_ROWS)
    ]


@dataclass(frozen=True, slots=True)
class AgentDecisions:
    agent: Name
    filter: FilterDecision | None = None  # None: it was not called
    prioritize: PrioritizeDecision | None = None  # None: it was not called


DetailRow: TypeAlias = Mapping[str, Any]
"""The input of a policy for a node: keys and values are the policy's own."""


@dataclass(frozen=True, slots=True)
class AgentAnswer:
    """What a program with agents remembers of a pod."""

    agents: Annotated[
        tuple[AgentDecisions, ...], ListOf(type_of(AgentDecisions), tuple, most=_AGENTS)
    ]
    pod: Name = ""  # namespace/name; empty: not reported
    uid: Name = ""  # empty: not reported
    # by agent and policy, the current inputs; None: they were not requested
    now: Annotated[Mapping[str, Mapping[str, tuple[DetailRow, ...]]], _NOW] | None = None

    def document(self) -> dict[str, Any]:
        """Return JSON in the form in which agents report it."""
        identity = {"pod": self.pod, "uid": self.uid}
        return {**{key: name for key, name in identity.items() if name}, **_reported(self)}


def _reported(value: Any) -> Any:
    """Return a value as JSON, without the fields of dataclasses that are not reported."""
    if is_dataclass(value):
        names = (field.name for field in fields(value) if field.name not in ("pod", "uid"))
        values = {name: getattr(value, name) for name in names}
        return {name: _reported(item) for name, item in values.items() if item is not None}
    if isinstance(value, Mapping):
        return {key: _reported(item) for key, item in value.items()}
    return [_reported(item) for item in value] if isinstance(value, list | tuple) else value


# --- decoding -----------------------------------------------------------------------------------


def parse_agent_answer(text: bytes, pod: str, limit: Size) -> AgentAnswer:
    """Read the answer about a pod (namespace/name) from JSON within limits.

    Raises:
        ValueError: it is not valid, or it exceeds a limit; the message has the limit.
    """
    try:
        document = parse_json(text, limit)
    except (UnicodeDecodeError, JSONDecodeError) as error:
        raise AnswerError(f"it is not JSON: {error}") from None
    if exceeds_depth(document, _LEVELS):
        raise AnswerError(f"it is nested in more than {_LEVELS} levels")
    return read_agent_answer(document, pod)


def read_agent_answer(value: Any, pod: str) -> AgentAnswer:
    """Decode the answer about a pod (namespace/name); unknown keys are ignored.

    Raises:
        AnswerError: it is not valid.
    """
    try:
        answer: AgentAnswer = decode(_ANSWER, value, run=FirstProblem(ignore_unknown=True))
    except DecodeError as error:
        raise AnswerError(str(error)) from None
    if answer.pod not in ("", pod):
        raise AnswerError(f'pod: this must be "{pod}"')
    return answer


_ANSWER: Final = type_of(AgentAnswer)
