"""What an agent of a SchedulerExtender answers about a pod, as typed values.

The answer comes from another program, which may be of another version, broken or forged. Everything
that is shown or printed is made from these values, never from the answer itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from json import JSONDecodeError
from typing import Any, Final, TypeAlias, TypeVar

from ...base.foreign_text import foreign, one_line
from ...base.json_text import exceeds_depth, parse_json
from ...base.limits import FOREIGN_NAME, FOREIGN_REASON, Size

T = TypeVar("T")

Number: TypeAlias = int | float

_POLICIES: Final = 32
"""Policies of an agent, and different keys of the rows of a policy: columns of a table."""
_ROWS: Final = 20_000
"""Nodes in a list; the largest clusters have 15,000."""
_ENTRIES: Final = 256
"""Entries of a value within a row; the distribution of safe-overload has 21 rows."""
_AGENTS: Final = 256
_LEVELS: Final = 16
"""Levels of nested objects and lists; answers of agents have 7."""


class AnswerError(ValueError):
    """A part of an answer is not valid; the message has its path."""


@dataclass(frozen=True, slots=True)
class RejectedNode:
    """A node that a policy rejected.

    Attributes:
        node: its name.
        reason: the policy and its reason.
        unresolvable: whether preemption does not help.
    """

    node: str
    reason: str
    unresolvable: bool


@dataclass(frozen=True, slots=True)
class FilterDecision:
    """The result of a filter call.

    Attributes:
        at: when it was called.
        nodes: the number of nodes in the call.
        rejected: the rejected ones.
    """

    at: str
    nodes: int
    rejected: tuple[RejectedNode, ...]


@dataclass(frozen=True, slots=True)
class ScoredNode:
    """The scores of a node.

    Attributes:
        node: its name.
        score: its score.
        policies: policy -> score; None: not reported.
        unknown: whether the agent does not know the node; None: not reported.
    """

    node: str
    score: Number
    policies: Mapping[str, Number] | None = None
    unknown: bool | None = None


@dataclass(frozen=True, slots=True)
class PrioritizeDecision:
    """The result of a prioritize call.

    Attributes:
        at: when it was called.
        weights: policy -> weight.
        nodes: the scores, best first.
    """

    at: str
    weights: Mapping[str, Number]
    nodes: tuple[ScoredNode, ...]


@dataclass(frozen=True, slots=True)
class AgentDecisions:
    """What one agent decided.

    Attributes:
        agent: its name.
        filter: None: it was not called.
        prioritize: None: it was not called.
    """

    agent: str
    filter: FilterDecision | None = None
    prioritize: PrioritizeDecision | None = None


DetailRow: TypeAlias = Mapping[str, Any]
"""The input of a policy for a node: keys and values are the policy's own."""


@dataclass(frozen=True, slots=True)
class AgentAnswer:
    """What a program with agents remembers of a pod.

    Attributes:
        pod: the pod as namespace/name; empty: not reported.
        uid: its uid; empty: not reported.
        agents: the decisions of each agent.
        now: agent -> policy -> the current inputs; None: they were not asked for.
    """

    pod: str = ""
    uid: str = ""
    agents: tuple[AgentDecisions, ...] = ()
    now: Mapping[str, Mapping[str, tuple[DetailRow, ...]]] | None = None

    def document(self) -> dict[str, Any]:
        """As JSON, in the form in which agents report it."""
        found: dict[str, Any] = {
            **({"pod": self.pod} if self.pod else {}),
            **({"uid": self.uid} if self.uid else {}),
            "agents": [_agent_document(agent) for agent in self.agents],
        }
        if self.now is not None:
            found["now"] = {
                agent: {policy: list(rows) for policy, rows in policies.items()}
                for agent, policies in self.now.items()
            }
        return found


def _agent_document(agent: AgentDecisions) -> dict[str, Any]:
    found: dict[str, Any] = {"agent": agent.agent}
    if agent.filter is not None:
        found["filter"] = {
            "at": agent.filter.at,
            "nodes": agent.filter.nodes,
            "rejected": [
                {"node": row.node, "reason": row.reason, "unresolvable": row.unresolvable}
                for row in agent.filter.rejected
            ],
        }
    if agent.prioritize is not None:
        found["prioritize"] = {
            "at": agent.prioritize.at,
            "weights": dict(agent.prioritize.weights),
            "nodes": [_scored_document(row) for row in agent.prioritize.nodes],
        }
    return found


def _scored_document(row: ScoredNode) -> dict[str, Any]:
    found: dict[str, Any] = {"node": row.node, "score": row.score}
    if row.policies is not None:
        found["policies"] = dict(row.policies)
    if row.unknown is not None:
        found["unknown"] = row.unknown
    return found


# --- decoding -----------------------------------------------------------------------------------


def parse_agent_answer(text: bytes, pod: str, limit: Size) -> AgentAnswer:
    """The answer about a pod (namespace/name), from JSON within limits.

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
    """The answer about a pod (namespace/name); keys that are not known are left out.

    Raises:
        AnswerError: it is not valid.
    """
    fields = _Fields(value, "")
    answer = AgentAnswer(
        fields.optional("pod", _name) or "",
        fields.optional("uid", _name) or "",
        fields.required("agents", _each(_agent, _AGENTS)),
        fields.optional("now", _values(_values(_detail_rows, _POLICIES), _AGENTS)),
    )
    if answer.pod not in ("", pod):
        raise AnswerError(f'pod: expected "{pod}"')
    return answer


def _agent(value: Any, path: str) -> AgentDecisions:
    fields = _Fields(value, path)
    return AgentDecisions(
        fields.required("agent", _name),
        fields.optional("filter", _filter),
        fields.optional("prioritize", _prioritize),
    )


def _filter(value: Any, path: str) -> FilterDecision:
    fields = _Fields(value, path)
    return FilterDecision(
        fields.required("at", _name),
        fields.required("nodes", _count),
        fields.required("rejected", _each(_rejected)),
    )


def _rejected(value: Any, path: str) -> RejectedNode:
    fields = _Fields(value, path)
    return RejectedNode(
        fields.required("node", _name),
        fields.required("reason", _text),
        fields.required("unresolvable", _bool),
    )


def _prioritize(value: Any, path: str) -> PrioritizeDecision:
    fields = _Fields(value, path)
    return PrioritizeDecision(
        fields.required("at", _name),
        fields.required("weights", _values(_number, _POLICIES)),
        fields.required("nodes", _each(_scored)),
    )


def _scored(value: Any, path: str) -> ScoredNode:
    fields = _Fields(value, path)
    return ScoredNode(
        fields.required("node", _name),
        fields.required("score", _number),
        fields.optional("policies", _values(_number, _POLICIES)),
        fields.optional("unknown", _bool),
    )


def _detail_rows(value: Any, path: str) -> tuple[DetailRow, ...]:
    rows = _each(_values(_detail, _POLICIES))(value, path)
    if len({key for row in rows for key in row}) > _POLICIES:
        raise _expected(f"at most {_POLICIES} different keys", path)
    return rows


def _detail(value: Any, path: str) -> Any:
    """A value of a row: its type is the policy's own."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _text(value, path)
    if isinstance(value, list):
        return list(_each(_detail, _ENTRIES)(value, path))
    if isinstance(value, dict):
        return _values(_detail, _ENTRIES)(value, path)
    return _number(value, path)


# --- values -------------------------------------------------------------------------------------

_Decode: TypeAlias = Callable[[Any, str], T]
"""Decodes a value at a path, or raises AnswerError."""


class _Fields:
    """The keys of an object."""

    def __init__(self, value: Any, path: str) -> None:
        if not isinstance(value, dict):
            raise _expected("an object", path)
        self._value, self._path = value, path

    def required(self, key: str, decode: _Decode[T]) -> T:
        if key not in self._value:
            raise AnswerError(f"{_at(self._path, key)}: it is missing")
        return decode(self._value[key], _at(self._path, key))

    def optional(self, key: str, decode: _Decode[T]) -> T | None:
        if self._value.get(key) is None:
            return None
        return decode(self._value[key], _at(self._path, key))


def _at(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _expected(what: str, path: str) -> AnswerError:
    return AnswerError(f"{path}: expected {what}" if path else f"expected {what}")


def _each(decode: _Decode[T], most: int = _ROWS) -> _Decode[tuple[T, ...]]:
    """A list of at most that many entries."""

    def read(value: Any, path: str) -> tuple[T, ...]:
        if not isinstance(value, list):
            raise _expected("a list", path)
        if len(value) > most:
            raise _expected(f"at most {most} entries", path)
        return tuple(decode(each, f"{path}[{index}]") for index, each in enumerate(value))

    return read


def _values(decode: _Decode[T], most: int) -> _Decode[dict[str, T]]:
    """An object whose keys are names."""

    def read(value: Any, path: str) -> dict[str, T]:
        if not isinstance(value, dict):
            raise _expected("an object", path)
        if len(value) > most:
            raise _expected(f"at most {most} keys", path)
        names = [_name(key, f"a key of {path}") for key in value]
        entries = zip(names, value.values(), strict=True)
        return {name: decode(each, _at(path, name)) for name, each in entries}

    return read


def _string(value: Any, path: str) -> str:
    if not isinstance(value, str):
        raise _expected("a string", path)
    try:
        value.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which cannot be printed
        raise _expected("Unicode", path) from None
    return value


def _name(value: Any, path: str) -> str:
    if len(text := _string(value, path)) > FOREIGN_NAME:
        raise _expected(f"at most {FOREIGN_NAME} characters", path)
    return one_line(text)


def _text(value: Any, path: str) -> str:
    """A text for people, which may end early."""
    return foreign(_string(value, path), FOREIGN_REASON)


def _bool(value: Any, path: str) -> bool:
    if not isinstance(value, bool):
        raise _expected("true or false", path)
    return value


def _number(value: Any, path: str) -> Number:
    if not _is_number(value):
        raise _expected("a number", path)
    return value  # type: ignore[no-any-return]  # just checked


def _count(value: Any, path: str) -> int:
    if not isinstance(value, int) or not _is_number(value) or value < 0:
        raise _expected("a number of nodes", path)
    return value


_LARGEST: Final = 2**63


def _is_number(value: Any) -> bool:
    """Whether this is a number that other programs read as well."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) and abs(value) < _LARGEST
