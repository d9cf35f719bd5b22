"""What agents of SchedulerExtenders remember of their decisions about a pod.

Every agent remembers its decisions for the latest pods. Agents listen on loopback only, so they are
queried through the API server, as with `kubectl port-forward`.
"""

from __future__ import annotations

import asyncio
import io
import json
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from ...base import names
from ...base.platform import Platform
from ...kube.api import Object
from ...kube.errors import KubeError, NotFound
from ...kube.resource import PODS, SCHEDULER_EXTENDERS
from .errors import CommandError
from .output import format_table
from .port_forward import Tunnel

if TYPE_CHECKING:
    from ...kube.client import ApiClient

_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class AgentEndpoint:
    """The port of a pod at which an agent can be queried."""

    extender: str
    namespace: str
    pod: str
    node: str
    port: int

    def __str__(self) -> str:
        return f"{self.extender} in pod {self.namespace}/{self.pod} on {self.node}"


@dataclass(slots=True)
class RememberedDecisions:
    """The answers of agents about a pod.

    Attributes:
        answers: (agent, answer) of those that remember the pod.
        queried: the agents that were queried.
        problem: why none was queried, or none answered.
        notes: problems of single agents.
    """

    answers: list[tuple[str, Any]] = field(default_factory=list)
    queried: list[str] = field(default_factory=list)
    problem: str = ""
    notes: list[str] = field(default_factory=list)

    def document(self) -> list[dict[str, Any]]:
        """As JSON."""
        return [{"from": agent, **answer} for agent, answer in self.answers]

    def missing(self, key: str) -> str:
        """Why there is no answer about the pod."""
        return self.problem or (
            f"no agent remembers pod {key}. Agents remember only the latest pods of schedulers "
            f"that call them. Queried: {'; '.join(self.queried)}"
        )


async def remembered(
    api: ApiClient, platform: Platform, key: str, *, details: bool
) -> RememberedDecisions:
    """What the agents of the cluster remember about a pod (namespace/name)."""
    found = RememberedDecisions()
    try:
        agents = await _agents(api, platform)
        found.queried = list(map(str, agents))
        found.answers, found.notes = await _query_all(api, agents, key, details=details)
    except (CommandError, KubeError) as error:
        found.problem = str(error)
    return found


def remembered_at(url: str, key: str, *, details: bool) -> RememberedDecisions:
    """What the extender at a URL remembers.

    Raises:
        CommandError: it does not respond.
    """
    answer = _query_url(url, key, details=details)
    return RememberedDecisions([] if answer is None else [(url, answer)], [url])


# --- queries ------------------------------------------------------------------------------------


async def _agents(api: ApiClient, platform: Platform) -> list[AgentEndpoint]:
    """All running agents."""
    try:
        extenders = (await api.list(SCHEDULER_EXTENDERS)).items
    except NotFound as error:
        raise CommandError(
            "the kind SchedulerExtender is not installed: install its CRD, or query an extender "
            "with --url"
        ) from error
    if not any((obj.get("spec") or {}).get("agent") for obj in extenders):
        raise CommandError(
            "no SchedulerExtender has an agent (spec.agent), so there are no decisions to "
            "show; the scheduler's own reasons are in the Pod's events: kubectl describe pod"
        )
    own = await api.list(PODS, platform.target_namespace, label_selector=f"app={names.EXTENDER}")
    secondary = await api.list(PODS, label_selector=f"app={names.SECONDARY}")
    found = list(agents_in(extenders, [*own.items, *secondary.items]))
    if not found:
        raise CommandError(
            "no agent is running; see its condition Available: kubectl get schedulerextenders"
        )
    return found


def agents_in(extenders: Iterable[Object], pods: Iterable[Object]) -> Iterator[AgentEndpoint]:
    """The agents in these pods, by containers `extender-NAME`; the extenders have their ports."""
    ports = {
        obj["metadata"]["name"]: port
        for obj in extenders
        if (port := ((obj.get("status") or {}).get("agent") or {}).get("port"))
    }
    for pod in pods:
        if (pod.get("status") or {}).get("phase") != "Running":
            continue
        metadata, spec = pod["metadata"], pod["spec"]
        for container in spec.get("containers") or ():
            prefix, _, name = container["name"].partition("extender-")
            if not prefix and name in ports:
                yield AgentEndpoint(
                    name,
                    metadata["namespace"],
                    metadata["name"],
                    spec.get("nodeName") or "",
                    int(ports[name]),
                )


async def _query_all(
    api: ApiClient, agents: Sequence[AgentEndpoint], key: str, *, details: bool
) -> tuple[list[tuple[str, Any]], list[str]]:
    """The answers of agents that remember the pod, and the problems of others.

    Raises:
        CommandError: no agent could be queried.
    """
    access = await api.credentials.access()

    def query(agent: AgentEndpoint) -> Any:
        tunnel = Tunnel(access, agent.namespace, agent.pod, agent.port, tls=False)
        return _fetch(tunnel.fetch, key, details=details)

    queries = (asyncio.to_thread(query, agent) for agent in agents)
    answers = await asyncio.gather(*queries, return_exceptions=True)
    found: list[tuple[str, Any]] = []
    problems = []
    for agent, answer in zip(agents, answers, strict=True):
        if isinstance(answer, CommandError):
            problems.append(f"{agent}: {answer}")
        elif isinstance(answer, BaseException):
            raise answer
        elif answer is not None:
            found.append((str(agent), answer))
    if problems and not found:
        raise CommandError("; ".join(problems))
    return found, problems


def _fetch(fetch: Any, key: str, *, details: bool) -> Any:
    target = io.BytesIO()
    status = fetch(_path(key, details=details), "", _SECONDS, target)
    if status == 404:
        return None
    if status != 200:
        raise CommandError(f"the agent responded with status {status}")
    return json.loads(target.getvalue())


def _path(key: str, *, details: bool) -> str:
    return "/explain?" + urlencode({"pod": key, **({"details": "1"} if details else {})})


def _query_url(url: str, key: str, *, details: bool) -> Any:
    if not url.startswith(("http://", "https://")):
        raise CommandError(f"--url {url!r} is not a URL such as http://HOST:PORT")
    try:
        path = url.rstrip("/") + _path(key, details=details)
        with urllib.request.urlopen(path, timeout=_SECONDS) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return None
        raise CommandError(f"{url} responded with status {error.code}") from error
    except (OSError, ValueError) as error:
        raise CommandError(f"{url} does not respond: {error}") from error


# --- output -------------------------------------------------------------------------------------


def lines(answers: Sequence[tuple[str, Any]], most: int) -> Iterator[str]:
    """The text output, with at most `most` nodes in a table (0: all)."""
    for name, answer in answers:
        for agent in answer.get("agents") or ():
            yield ""
            yield f"Extender {agent['agent']} ({name})"
            yield from _filter(agent.get("filter"), most)
            yield from _prioritize(agent.get("prioritize"), most)
        for agent, policies in (answer.get("now") or {}).items():
            for policy, rows in policies.items():
                yield ""
                yield f"Current input of {policy} in {agent}"
                yield from _details(rows, most)


def _filter(decision: Mapping[str, Any] | None, most: int) -> Iterator[str]:
    if decision is None:
        return
    rejected = decision["rejected"]
    yield f"  filter at {decision['at']}: {len(rejected)} of {decision['nodes']} nodes rejected"
    rows = [["NODE", "POLICY AND REASON"]]
    for row in _cut(rejected, most):
        final = "; preemption does not help" if row["unresolvable"] else ""
        rows.append([row["node"], row["reason"] + final])
    yield from _table(rows, len(rejected))


def _prioritize(decision: Mapping[str, Any] | None, most: int) -> Iterator[str]:
    if decision is None:
        return
    weights = decision["weights"]
    nodes = decision["nodes"]
    yield f"  prioritize at {decision['at']}: {len(nodes)} nodes, best first"
    heads = [
        f"{policy} (weight {weight})" if len(weights) > 1 else policy
        for policy, weight in weights.items()
    ]
    rows = [["NODE", "SCORE", *heads]]
    for row in _cut(nodes, most):
        parts = row.get("policies") or {}
        shown = [str(parts.get(policy, "-")) for policy in weights]
        if row.get("unknown"):
            shown = ["unknown, median"] + [""] * (len(weights) - 1)
        rows.append([row["node"], str(row["score"]), *shown[: max(len(weights), 1)]])
    width = max(map(len, rows))
    yield from _table([row + [""] * (width - len(row)) for row in rows], len(nodes))


def _details(found: Sequence[Mapping[str, Any]], most: int) -> Iterator[str]:
    keys = list(dict.fromkeys(key for row in found for key in row))
    rows = [[key.upper() if key == "node" else key for key in keys]]
    rows += [[_value(row.get(key)) for key in keys] for row in _cut(found, most)]
    yield from _table(rows, len(found))


def _value(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _cut(rows: Sequence[Any], most: int) -> Sequence[Any]:
    return rows[:most] if most > 0 else rows


def _table(rows: Sequence[Sequence[str]], count: int) -> Iterator[str]:
    """The rows, and the number of those left out."""
    if len(rows) > 1:
        yield from (f"    {line}" for line in format_table(rows))
    if count > len(rows) - 1:
        yield f"    … and {count - len(rows) + 1} more (--nodes 0 shows all)"
