"""The record of the last decisions, which `/explain` shows.

Recording is cheap: a decision refers to the bytes and arrays of the request, and is formatted only
when it is requested.
"""

from __future__ import annotations

import datetime
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from ..policies.pods import Pod
from ..policies.policy import Rejections
from .agent import Scores
from .node_names import NodeNames
from .wire import Args

BYTES: Final = 16 * 1024 * 1024
"""Total size of the record; with very many nodes it has fewer Pods than configured."""

_LARGEST: Final = 4
"""A decision larger than this fraction of the record is not recorded."""

_REASON: Final = 200
"""Approximate bytes of a reason."""


@dataclass(slots=True)
class AgentDecision:
    """The last results of one agent for one Pod."""

    agent: str
    filtered_at: float = 0.0  # times, in seconds since 1970; 0: never
    filtered: bytes = b""  # the names (JSON) in the filter call
    rejections: Rejections | None = None  # the rejected nodes; None: none
    scored_at: float = 0.0
    scored: bytes = b""  # the names (JSON) in the prioritize call
    positions: Any = None  # position in `scored` of each score; None: in the same order
    scores: Scores | None = None  # the result of prioritize
    size: int = 0  # approximate bytes


@dataclass(slots=True)
class _Pod:
    key: str
    uid: str
    source: bytes
    decisions: dict[str, AgentDecision] = field(default_factory=dict)
    size: int = 0
    rejected: bool = False  # an agent rejected all of its nodes


class Decisions:
    """The decisions for the last Pods, and for the last Pods whose nodes were all rejected.

    Rejected Pods are kept separately: otherwise hundreds of scheduled Pods per second would
    displace the few that need an explanation. `pods` limits each of the two kinds, `limit` the
    total bytes.
    """

    def __init__(self, pods: int, clock: Callable[[], float], limit: int = BYTES) -> None:
        self._pods = pods
        self._limit = limit
        self._clock = clock
        self._pods_by_outcome: tuple[OrderedDict[str, _Pod], OrderedDict[str, _Pod]] = (
            OrderedDict(),
            OrderedDict(),
        )
        self._size = 0
        # Filter and prioritize of a pod follow each other, and share what was parsed.
        self._last: tuple[Pod, _Pod] | None = None

    def resize(self, pods: int) -> None:
        self._pods = pods
        self._shrink()

    def filtered(self, agent: str, args: Args, rejections: Rejections | None) -> None:
        """Record the result of a filter call."""
        if not self._recorded(args):
            return
        pod, decision = self._of(agent, args)
        names = args.nodes.json
        decision.filtered_at = self._clock()
        decision.filtered, decision.rejections = names, rejections
        decision.scored_at, decision.scored, decision.scores = 0.0, b"", None
        size = len(names)
        if rejections is not None:
            size += _REASON * len(rejections.reasons)
        rejected = rejections is not None and len(rejections.reasons) == len(args.names)
        if rejected != pod.rejected:
            del self._pods_by_outcome[pod.rejected][pod.key]
            pod.rejected = rejected
            self._pods_by_outcome[rejected][pod.key] = pod
        self._grown(pod, decision, size)

    def scored(self, agent: str, args: Args, scores: Scores) -> None:
        """Record the result of a prioritize call."""
        if not self._recorded(args):
            return
        pod, decision = self._of(agent, args)
        decision.scored_at = self._clock()
        decision.positions, decision.scores = args.positions, scores
        size = decision.size + scores.known.nbytes * (1 + len(scores.parts))
        if decision.rejections is None and decision.filtered == args.nodes.json:
            decision.scored = decision.filtered
        else:
            decision.scored = args.nodes.json
            size += len(decision.scored)
        self._grown(pod, decision, size)

    def pods(self) -> list[str]:
        """Return namespace/name of the recorded Pods, the latest first."""
        return [key for pods in self._pods_by_outcome[::-1] for key in reversed(pods)]

    def explain(self, pod: str) -> dict[str, Any] | None:
        """Return the decisions for a Pod (namespace/name), for JSON; None: none are recorded."""
        entry = self._pods_by_outcome[1].get(pod) or self._pods_by_outcome[0].get(pod)
        if entry is None:
            return None
        agents = [_explain(decision) for decision in entry.decisions.values()]
        return {"pod": pod, "uid": entry.uid, "agents": agents}

    def last(self, pod: str) -> Args | None:
        """Return a Pod (namespace/name) with the nodes of its last call; None: unknown."""
        entry = self._pods_by_outcome[1].get(pod) or self._pods_by_outcome[0].get(pod)
        if entry is None:
            return None
        obj = orjson.loads(entry.source)["Pod"]
        decision = next(iter(entry.decisions.values()))
        return Args(obj, NodeNames(orjson.loads(decision.filtered or decision.scored)))

    def __len__(self) -> int:
        return sum(map(len, self._pods_by_outcome))

    def _recorded(self, args: Args) -> bool:
        size = len(args.source) + len(args.nodes.json)
        return self._pods > 0 and size <= self._limit // _LARGEST

    def _of(self, agent: str, args: Args) -> tuple[_Pod, AgentDecision]:
        last = self._last
        pod = last[1] if last is not None and last[0] is args.pod else self._enter(args)
        decision = pod.decisions.get(agent)
        if decision is None:
            decision = pod.decisions[agent] = AgentDecision(agent)
        return pod, decision

    def _enter(self, args: Args) -> _Pod:
        """Return the entry of a Pod, which becomes the latest."""
        source = args.pod
        key = f"{source.namespace}/{source.name}"
        pod = self._pods_by_outcome[0].pop(key, None) or self._pods_by_outcome[1].pop(key, None)
        if pod is not None and pod.uid != source.uid:
            self._size -= pod.size
            pod = None
        if pod is None:
            pod = _Pod(key, source.uid, args.source, size=len(args.source))
            self._size += pod.size
        self._pods_by_outcome[pod.rejected][key] = pod
        self._last = source, pod
        return pod

    def _grown(self, pod: _Pod, decision: AgentDecision, size: int) -> None:
        """Update the size of a decision."""
        more = size - decision.size
        decision.size = size
        pod.size += more
        self._size += more
        if self._size > self._limit or len(self._pods_by_outcome[pod.rejected]) > self._pods:
            self._shrink()

    def _shrink(self) -> None:
        for pods in self._pods_by_outcome:
            while len(pods) > self._pods:
                self._forget(pods)
        while self._size > self._limit and len(self) > 1:
            self._forget(max(self._pods_by_outcome, key=len))

    def _forget(self, pods: OrderedDict[str, _Pod]) -> None:
        """Remove the oldest of these Pods."""
        _, pod = pods.popitem(last=False)
        self._size -= pod.size
        if self._last is not None and self._last[1] is pod:
            self._last = None


def _explain(decision: AgentDecision) -> dict[str, Any]:
    explanation: dict[str, Any] = {"agent": decision.agent}
    if decision.filtered_at:
        names = orjson.loads(decision.filtered)
        rejections = decision.rejections or Rejections()
        explanation["filter"] = {
            "at": _time(decision.filtered_at),
            "nodes": len(names),
            "rejected": [
                {
                    "node": names[at],
                    "reason": rejections.describe(at),
                    "unresolvable": at in rejections.unresolvable,
                }
                for at in sorted(rejections.reasons, key=names.__getitem__)
            ],
        }
    if decision.scores is not None:
        explanation["prioritize"] = {
            "at": _time(decision.scored_at),
            "weights": {name: weight for name, weight, _ in decision.scores.parts},
            "nodes": sorted(_rows(decision), key=lambda row: (-row["score"], row["node"])),
        }
    return explanation


def _rows(decision: AgentDecision) -> Iterator[dict[str, Any]]:
    scores = decision.scores
    if scores is None:
        return
    names = orjson.loads(decision.scored)
    of = range(len(names)) if decision.positions is None else decision.positions.tolist()
    row_of = {position: row for row, position in enumerate(of)}
    for position, name in enumerate(names):
        row = row_of.get(position)
        if row is None:
            yield {"node": name, "score": scores.unknown, "unknown": True}
            continue
        policies = {policy: int(values[row]) for policy, _, values in scores.parts}
        yield {"node": name, "score": int(scores.known[row]), "policies": policies}


def _time(seconds: float) -> str:
    at = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
