"""What agents of SchedulerExtenders remember of their decisions about a pod.

Every agent remembers its decisions for the latest pods. Agents listen on loopback only, so they are
queried through the API server, as with `kubectl port-forward`. An agent may be of another version,
broken or forged: its answer is bounded in size and time, and decoded before it is used.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar
from urllib.parse import urlencode

import aiohttp

from ...base.json_text import TooLargeError
from ...base.limits import Size
from ...base.platform import Platform
from ...kube.client import ApiClient
from ...kube.credentials import Access
from ...kube.errors import KubeError
from ...kube.reading import read_body
from ..cluster.port_forward import ResponseLimit, Tunnel, load_client
from ..console.errors import CommandError
from ..console.output import limited, limited_table
from .agent_answer import (
    AgentAnswer,
    AgentDecisions,
    AnswerError,
    DetailRow,
    FilterDecision,
    PrioritizeDecision,
    ScoredNode,
    parse_agent_answer,
    read_agent_answer,
)
from .agent_endpoints import AgentEndpoint, find_agents

T = TypeVar("T")

_Answers: TypeAlias = Sequence[tuple[str, AgentAnswer]]
"""Pairs of agent, or where it was queried, and answer."""

_SECONDS: Final = 10.0
"""The time for the answers of all agents together."""
_CLOSING: Final = 0.5
"""The part of it in which a connection is closed that has not ended."""
_THREADS: Final = 32


_DECISIONS: Final = Size(4 * 2**20, 250_000)
"""The decisions of an agent with three policies about 15,000 nodes."""
_DETAILS: Final = Size(16 * 2**20, 1_000_000)
"""With the current inputs of its policies, 250 bytes for each policy and node."""


@dataclass(slots=True)
class RememberedDecisions:
    answers: _Answers = ()  # of those that remember the pod
    queried: Sequence[str] = ()  # the agents that were queried
    problem: str = ""  # why none was queried, or none answered
    notes: list[str] = field(default_factory=list)  # problems of single agents

    def missing(self, key: str) -> str:
        return self.problem or (
            f"no agent remembers pod {key}. Agents remember only the latest pods of schedulers "
            f"that call them. Queried: {'; '.join(self.queried)}"
        )


def documents(answers: _Answers) -> list[dict[str, Any]]:
    """Return answers and where they are from, as JSON."""
    return [{"from": source, **answer.document()} for source, answer in answers]


async def remembered(
    api: ApiClient, platform: Platform, key: str, *, details: bool
) -> RememberedDecisions:
    """Query the agents of the cluster about a pod (namespace/name)."""
    decisions = RememberedDecisions()
    try:
        located = await find_agents(api, platform)
        decisions.queried = list(map(str, located.agents))
        decisions.notes += located.notes
        decisions.answers, problems = await _query_all(api, located.agents, key, details=details)
        decisions.notes += problems
    except (CommandError, KubeError) as error:
        decisions.problem = str(error)
    return decisions


def remembered_at(url: str, key: str, *, details: bool) -> RememberedDecisions:
    """Query the extender at a URL.

    Raises:
        CommandError: it does not respond, or its answer is not valid.
    """
    answer = asyncio.run(_query_url(url, key, details=details))
    return RememberedDecisions([] if answer is None else [(url, answer)], [url])


def simulated_answers(extenders: Mapping[str, Any], key: str) -> tuple[_Answers, list[str]]:
    """Return what extenders decided in a simulation, and the problems of invalid answers."""
    answers = []
    problems = []
    for name, answer in extenders.items():
        try:
            answers.append(("simulated now", read_agent_answer(answer, key)))
        except AnswerError as error:
            problems.append(f"extender {name} in the simulation: its answer is not valid: {error}")
    return answers, problems


# --- queries ------------------------------------------------------------------------------------


async def _query_all(
    api: ApiClient, agents: Sequence[AgentEndpoint], key: str, *, details: bool
) -> tuple[_Answers, list[str]]:
    """Return the answers of agents that remember the pod, and the problems of others.

    Raises:
        CommandError: no agent could be queried.
    """
    access = await api.credentials.access()
    await asyncio.to_thread(load_client)
    end = time.monotonic() + _SECONDS - _CLOSING
    queries = [partial(_query, access, agent, key, end, details=details) for agent in agents]
    answers = []
    problems = []
    outcomes = await asyncio.to_thread(_in_daemon_threads, queries, _SECONDS)
    for agent, answer in zip(agents, outcomes, strict=True):
        if isinstance(answer, Exception):
            problems.append(f"{agent}: {answer or type(answer).__name__}")
        elif answer is None:
            problems.append(f"{agent}: there was no complete response within {_SECONDS:g} s")
        elif answer:
            answers.append((str(agent), answer[0]))
    if problems and not answers:
        raise CommandError("; ".join(problems))
    return answers, problems


def _query(
    access: Access, agent: AgentEndpoint, key: str, end: float, *, details: bool
) -> tuple[AgentAnswer, ...]:
    """Query an agent until `end`; none if it does not remember the pod.

    Raises:
        CommandError: it does not respond, or its answer is not valid.
    """
    left = end - time.monotonic()
    if left <= 0:
        raise CommandError(f"it was not queried within {_SECONDS:g} s, because others are slow")
    limit = _DETAILS if details else _DECISIONS
    tunnel = Tunnel(access, agent.namespace, agent.pod, agent.port, tls=False)
    status, text = tunnel.read(_path(key, details=details), ResponseLimit(limit.bytes, left))
    if status == 404:
        return ()
    if status != 200:
        raise CommandError(f"the agent responded with status {status}")
    return (_decoded(text, key, limit),)


def _decoded(text: bytes, key: str, limit: Size) -> AgentAnswer:
    try:
        return parse_agent_answer(text, key, limit)
    except ValueError as error:  # an AnswerError as well
        raise CommandError(f"its answer is not valid: {error}") from None


def _path(key: str, *, details: bool) -> str:
    return "/explain?" + urlencode({"pod": key, **({"details": "1"} if details else {})})


async def _query_url(url: str, key: str, *, details: bool) -> AgentAnswer | None:
    if not url.startswith(("http://", "https://")):
        raise CommandError(f"--url {url!r} is not a URL such as http://HOST:PORT")
    limit = _DETAILS if details else _DECISIONS
    path = url.rstrip("/") + _path(key, details=details)
    try:
        status, text = await _get(path, limit)
    except TooLargeError:
        raise CommandError(f"the response of {url} has more than {limit.bytes} bytes") from None
    except TimeoutError:
        raise CommandError(f"{url} does not respond completely within {_SECONDS:g} s") from None
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise CommandError(f"{url} does not respond: {error}") from error
    if status == 404:
        return None
    if status != 200:
        raise CommandError(f"{url} responded with status {status}")
    try:
        return _decoded(text, key, limit)
    except CommandError as error:
        raise CommandError(f"{url}: {error}") from None


async def _get(url: str, limit: Size) -> tuple[int, bytes]:
    """Return the status and, if it is 200, the body.

    Raises:
        TooLargeError: the body exceeds the limit.
    """
    async with (
        aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=_SECONDS),
            headers={"Accept-Encoding": "identity"},
            auto_decompress=False,
            trust_env=True,
        ) as session,
        session.get(url) as response,
    ):
        body = await read_body(response, limit) if response.status == 200 else b""
        return response.status, body


# --- threads ------------------------------------------------------------------------------------


def _in_daemon_threads(
    calls: Sequence[Callable[[], T]], seconds: float
) -> list[T | Exception | None]:
    """Return the result or exception of each call; None: it has not ended within `seconds`.

    The threads may be abandoned, so that none delays the others or the end of the program.
    """
    waiting: queue.SimpleQueue[tuple[Future[T | Exception], Callable[[], T]]] = queue.SimpleQueue()
    futures: list[Future[T | Exception]] = [Future() for _ in calls]
    for pair in zip(futures, calls, strict=True):
        waiting.put(pair)

    def work() -> None:
        while True:
            try:
                future, call = waiting.get_nowait()
            except queue.Empty:
                return
            try:
                future.set_result(call())
            except Exception as error:
                future.set_result(error)

    for _ in range(min(len(calls), _THREADS)):
        threading.Thread(target=work, name="query", daemon=True).start()
    wait(futures, seconds)
    return [future.result() if future.done() else None for future in futures]


# --- output -------------------------------------------------------------------------------------


def lines(answers: _Answers, most: int) -> Iterator[str]:
    """Yield the text output, with at most `most` nodes in a table (0: all)."""
    for name, answer in answers:
        for agent in answer.agents:
            yield from _agent(agent, name, most)
        for called, policies in (answer.now or {}).items():
            for policy, rows in policies.items():
                yield ""
                yield f"Current input of {policy} in {called}"
                yield from _details(rows, most)


def _agent(agent: AgentDecisions, name: str, most: int) -> Iterator[str]:
    yield ""
    yield f"Extender {agent.agent} ({name})"
    if agent.filter is not None:
        yield from _filter(agent.filter, most)
    if agent.prioritize is not None:
        yield from _prioritize(agent.prioritize, most)


def _filter(decision: FilterDecision, most: int) -> Iterator[str]:
    rejected = decision.rejected
    yield f"  filter at {decision.at}: {len(rejected)} of {decision.nodes} nodes rejected"
    rows = [["NODE", "POLICY AND REASON"]]
    for row in limited(rejected, most):
        final = "; preemption does not help" if row.unresolvable else ""
        rows.append([row.node, row.reason + final])
    yield from limited_table(rows, len(rejected), _INDENT)


def _prioritize(decision: PrioritizeDecision, most: int) -> Iterator[str]:
    weights, nodes = decision.weights, decision.nodes
    yield f"  prioritize at {decision.at}: {len(nodes)} nodes, best first"
    heads = [
        f"{policy} (weight {weight})" if len(weights) > 1 else policy
        for policy, weight in weights.items()
    ]
    rows = [["NODE", "SCORE", *heads]]
    rows += [_scores(row, list(weights)) for row in limited(nodes, most)]
    width = max(map(len, rows))
    padded = [row + [""] * (width - len(row)) for row in rows]
    yield from limited_table(padded, len(nodes), _INDENT)


def _scores(row: ScoredNode, policies: Sequence[str]) -> list[str]:
    parts = row.policies or {}
    shown = [str(parts.get(policy, "-")) for policy in policies]
    if row.unknown:
        shown = ["unknown, median"] + [""] * (len(policies) - 1)
    return [row.node, str(row.score), *shown[: max(len(policies), 1)]]


def _details(details: Sequence[DetailRow], most: int) -> Iterator[str]:
    keys = list(dict.fromkeys(key for row in details for key in row))
    rows = [[key.upper() if key == "node" else key for key in keys]]
    rows += [[_value(row.get(key)) for key in keys] for row in limited(details, most)]
    yield from limited_table(rows, len(details), _INDENT)


_INDENT: Final = " " * 4
_CELL: Final = 1024
"""Characters of a value in a table."""


def _value(value: Any) -> str:
    if value is None:
        return "-"
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= _CELL else f"{text[:_CELL]}…"
