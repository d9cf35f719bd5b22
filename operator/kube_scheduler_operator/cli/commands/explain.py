"""`kubectl scheduler explain`: the decisions of extenders for a pod.

Every agent remembers its decisions for the latest pods. Agents listen on loopback only, so they are
queried through the API server, as with `kubectl port-forward`.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import sys
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from ...base import names
from ...base.platform import Platform
from ...kube.api import Object
from ...kube.errors import NotFound
from ...kube.resource import PODS, SCHEDULER_EXTENDERS, ObjectRef
from ..lib.connection import run_connected
from ..lib.errors import CommandError
from ..lib.flags import add_cluster_flags, add_nodes_flag, add_output_flag, add_pod_flags, pod_key
from ..lib.objects import find_object
from ..lib.output import format_table, print_document
from ..lib.port_forward import Tunnel

if TYPE_CHECKING:
    from ...kube.client import ApiClient

_NODES: Final = 20
_SECONDS: Final = 10.0


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = subparsers.add_parser(
        "explain",
        description="Shows what the agents of SchedulerExtenders decided when the pod was last "
        "scheduled: the rejected nodes with policy and reason, and the scores of the others. "
        "Agents remember only the latest pods (200 by default).",
    )
    add_pod_flags(parser)
    parser.add_argument(
        "--url", help="query only this extender, without a cluster, e.g. http://127.0.0.1:5401"
    )
    parser.add_argument(
        "--details",
        action="store_true",
        help="also show the current input of each policy for each node",
    )
    add_nodes_flag(parser, _NODES)
    add_cluster_flags(parser)
    add_output_flag(parser)
    parser.set_defaults(run=run)


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


def run(args: argparse.Namespace) -> int:
    """Query the agents and print their decisions."""
    namespace, name = pod_key(args)
    key = f"{namespace}/{name}"
    if args.url:
        try:
            answer = _query_url(args.url, key, details=args.details)
        except CommandError as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
        return _print(args, key, {}, [] if answer is None else [(args.url, answer)], [args.url])

    async def work(api: ApiClient, platform: Platform) -> int:
        pod = await find_object(api, ObjectRef(PODS, namespace, name))
        found = await _agents(api, platform)
        answers = await _query_all(api, found, key, details=args.details)
        return _print(args, key, pod, answers, list(map(str, found)))

    return run_connected(args, work)


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
) -> list[tuple[str, Any]]:
    """The answers of agents that remember the pod."""
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
    for problem in problems:
        print(f"note: {problem}", file=sys.stderr)
    return found


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


def _print(
    args: argparse.Namespace,
    key: str,
    pod: Object | None,
    answers: Sequence[tuple[str, Any]],
    queried: Sequence[str],
) -> int:
    if not answers:
        missing = "" if pod is not None else " The pod does not exist."
        print(
            f"error: no agent remembers pod {key}.{missing} Agents remember only the latest pods "
            f"of schedulers that call them. Queried: {'; '.join(queried)}",
            file=sys.stderr,
        )
        return 1
    document = {"pod": key, "answers": [{"from": agent, **answer} for agent, answer in answers]}
    text = "\n".join(lines(key, pod, answers, args.nodes))
    print_document(document, args.output, text)
    return 0


def lines(
    key: str, pod: Object | None, answers: Sequence[tuple[str, Any]], most: int
) -> Iterator[str]:
    """The text output, with at most `most` nodes in a table (0: all).

    `pod` is None if it does not exist, and empty if it was not read.
    """
    yield f"Pod {key}{_whereabouts(pod)}"
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


def _whereabouts(pod: Object | None) -> str:
    if pod is None:
        return " does not exist"
    if not pod:
        return ""
    node = (pod.get("spec") or {}).get("nodeName")
    return f" is on node {node}" if node else " is not bound to a node"


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
