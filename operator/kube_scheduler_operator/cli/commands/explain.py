"""`kubectl scheduler explain`: why did extenders send a pod to its node, or to none?

Every agent remembers what it decided for the last pods. It listens on its node's or its pod's
loopback only, so it is asked through the API server, as `kubectl port-forward` would.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ..lib import common

if TYPE_CHECKING:
    from ...base.platform import Platform
    from ...kube.api import Object
    from ...kube.client import ApiClient

_NODES: Final = 20
_SECONDS: Final = 10.0


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = subparsers.add_parser(
        "explain",
        help="which nodes the extenders rejected for a pod and why, and how they scored the others",
        description="Asks the agents of SchedulerExtenders what they decided when the pod was last "
        "scheduled: which nodes were rejected by which policy and why, and the scores. They "
        "remember the last pods only (200 by default).",
    )
    parser.add_argument("pod", metavar="POD", help="its name, or NAMESPACE/NAME")
    parser.add_argument("-n", "--namespace", default="default", help="of the pod")
    parser.add_argument(
        "--url", help="ask this extender and no other, e.g. http://127.0.0.1:5401; needs no cluster"
    )
    parser.add_argument(
        "--details",
        action="store_true",
        help="also what each policy looks at, node by node, as it is now",
    )
    parser.add_argument(
        "--nodes",
        type=int,
        default=_NODES,
        metavar="N",
        help=f"so many nodes of a table; 0: all (default: {_NODES})",
    )
    common.add_cluster_flags(parser)
    common.add_output_flag(parser)
    parser.set_defaults(run=run)


@dataclass(frozen=True, slots=True)
class Place:
    """Where an agent can be asked: a port of a pod."""

    extender: str
    namespace: str
    pod: str
    node: str
    port: int

    def __str__(self) -> str:
        return f"{self.extender} in pod {self.namespace}/{self.pod} on {self.node}"


def run(args: argparse.Namespace) -> int:
    """Ask and print."""
    import sys

    namespace, _, name = args.pod.rpartition("/")
    key = f"{namespace or args.namespace}/{name}"
    if args.url:
        try:
            told = _ask_url(args.url, key, details=args.details)
        except common.CommandError as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
        return _print(args, key, {}, [] if told is None else [(args.url, told)], [args.url])

    async def work(api: ApiClient, platform: Platform) -> int:
        from ...kube.resource import PODS, ObjectRef

        namespace, _, name = key.partition("/")
        pod = await common.find_one(api, ObjectRef(PODS, namespace, name))
        places = await _places(api, platform)
        answers = await _ask_all(api, places, key, details=args.details)
        return _print(args, key, pod, answers, list(map(str, places)))

    return common.run(args, work)


# --- who is asked -------------------------------------------------------------------------------


async def _places(api: ApiClient, platform: Platform) -> list[Place]:
    """All agents that run."""
    from ...base import names
    from ...kube.errors import NotFound
    from ...kube.resource import PODS, SCHEDULER_EXTENDERS

    try:
        extenders = (await api.list(SCHEDULER_EXTENDERS)).items
    except NotFound as error:
        raise common.CommandError(
            "this cluster does not know SchedulerExtenders: install their CRD, or name an extender "
            "with --url"
        ) from error
    if not any((obj.get("spec") or {}).get("agent") for obj in extenders):
        raise common.CommandError("there is no SchedulerExtender with an agent")
    own = await api.list(PODS, platform.target_namespace, label_selector=f"app={names.EXTENDER}")
    beside = await api.list(PODS, label_selector=f"app={names.SECONDARY}")
    found = list(places(extenders, [*own.items, *beside.items]))
    if not found:
        raise common.CommandError("no pod of an agent runs")
    return found


def places(extenders: Iterable[Object], pods: Iterable[Object]) -> Iterator[Place]:
    """The agents in these pods.

    Args:
        extenders: SchedulerExtenders; their status says which port their agent listens on.
        pods: pods that may have a container `extender-NAME`.
    """
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
                yield Place(
                    name,
                    metadata["namespace"],
                    metadata["name"],
                    spec.get("nodeName") or "",
                    int(ports[name]),
                )


async def _ask_all(
    api: ApiClient, places: Sequence[Place], key: str, *, details: bool
) -> list[tuple[str, Any]]:
    """What those say that know something of the pod."""
    import asyncio
    import sys

    access = await api.credentials.access()

    def ask(place: Place) -> Any:
        from ..lib.port_forward import Tunnel

        tunnel = Tunnel(access, place.namespace, place.pod, place.port, tls=False)
        return _fetch(tunnel.fetch, key, details=details)

    asked = (asyncio.to_thread(ask, place) for place in places)
    answers = await asyncio.gather(*asked, return_exceptions=True)
    found: list[tuple[str, Any]] = []
    problems = []
    for place, answer in zip(places, answers, strict=True):
        if isinstance(answer, common.CommandError):
            problems.append(f"{place}: {answer}")
        elif isinstance(answer, BaseException):
            raise answer
        elif answer is not None:
            found.append((str(place), answer))
    if problems and not found:
        raise common.CommandError("; ".join(problems))
    for problem in problems:
        print(f"note: {problem}", file=sys.stderr)
    return found


def _fetch(fetch: Any, key: str, *, details: bool) -> Any:
    import io
    import json

    target = io.BytesIO()
    status = fetch(_path(key, details=details), "", _SECONDS, target)
    if status == 404:
        return None
    if status != 200:
        raise common.CommandError(f"it answered with status {status}")
    return json.loads(target.getvalue())


def _path(key: str, *, details: bool) -> str:
    from urllib.parse import urlencode

    return "/explain?" + urlencode({"pod": key, **({"details": "1"} if details else {})})


def _ask_url(url: str, key: str, *, details: bool) -> Any:
    import json
    import urllib.error
    import urllib.request

    if not url.startswith(("http://", "https://")):
        raise common.CommandError(f"--url {url!r} is no URL: http://HOST:PORT")
    try:
        path = url.rstrip("/") + _path(key, details=details)
        with urllib.request.urlopen(path, timeout=_SECONDS) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return None
        raise common.CommandError(f"{url} answered with status {error.code}") from error
    except (OSError, ValueError) as error:
        raise common.CommandError(f"{url} does not answer: {error}") from error


# --- what is printed ----------------------------------------------------------------------------


def _print(
    args: argparse.Namespace,
    key: str,
    pod: Object | None,
    answers: Sequence[tuple[str, Any]],
    asked: Sequence[str],
) -> int:
    if not answers:
        missing = "" if pod is not None else " It does not exist (any more)."
        raise_of = "; ".join(asked)
        import sys

        print(
            f"error: no agent remembers pod {key}.{missing} Is it scheduled by a scheduler with "
            f"these extenders, and not too long ago? Asked: {raise_of}",
            file=sys.stderr,
        )
        return 1
    if args.output != "text":
        document = {"pod": key, "answers": [{"from": place, **told} for place, told in answers]}
        common.print_document(document, args.output)
        return 0
    print("\n".join(lines(key, pod, answers, args.nodes)))
    return 0


def lines(
    key: str, pod: Object | None, answers: Sequence[tuple[str, Any]], most: int
) -> Iterator[str]:
    """The text for people.

    Args:
        key: NAMESPACE/NAME of the pod.
        pod: itself; None if it is gone, empty if it was not looked for.
        answers: who said what.
        most: so many nodes of a table; 0: all.
    """
    yield f"Pod {key}{_whereabouts(pod)}"
    for place, told in answers:
        for agent in told.get("agents") or ():
            yield ""
            yield f"Extender {agent['agent']} ({place})"
            yield from _filter(agent.get("filter"), most)
            yield from _prioritize(agent.get("prioritize"), most)
        for agent, policies in (told.get("now") or {}).items():
            for policy, rows in policies.items():
                yield ""
                yield f"What {policy} of {agent} looks at, as it is now"
                yield from _details(rows, most)


def _whereabouts(pod: Object | None) -> str:
    if pod is None:
        return " does not exist any more"
    if not pod:
        return ""
    node = (pod.get("spec") or {}).get("nodeName")
    return f" is on node {node}" if node else " has no node"


def _filter(told: Mapping[str, Any] | None, most: int) -> Iterator[str]:
    if told is None:
        return
    rejected = told["rejected"]
    yield f"  filter at {told['at']}: {len(rejected)} of {told['nodes']} nodes rejected"
    rows = [["NODE", "REJECTED BY, AND WHY"]]
    for row in _cut(rejected, most):
        never = "; preemption would not help" if row["unresolvable"] else ""
        rows.append([row["node"], row["reason"] + never])
    yield from _table(rows, len(rejected))


def _prioritize(told: Mapping[str, Any] | None, most: int) -> Iterator[str]:
    if told is None:
        return
    weights = told["weights"]
    nodes = told["nodes"]
    yield f"  prioritize at {told['at']}: {len(nodes)} nodes, best first"
    heads = [
        f"{policy} (weight {weight})" if len(weights) > 1 else policy
        for policy, weight in weights.items()
    ]
    rows = [["NODE", "SCORE", *heads]]
    for row in _cut(nodes, most):
        parts = row.get("policies") or {}
        shown = [str(parts.get(policy, "-")) for policy in weights]
        if row.get("unknown"):
            shown = ["not known, median"] + [""] * (len(weights) - 1)
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
    """The rows, and how many there are besides; nothing if there are none."""
    if len(rows) > 1:
        yield from (f"    {line}" for line in common.table(rows))
    if count > len(rows) - 1:
        yield f"    … and {count - len(rows) + 1} more (--nodes 0 shows all)"
