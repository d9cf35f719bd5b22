"""What was decided for the last pods, kept so that it costs next to nothing until somebody asks.

A decision holds on to what the request was answered from: the bytes with the names, the arrays with
the scores. It is put into words when `/explain` is asked.
"""

from __future__ import annotations

import datetime
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import orjson

from ...policies.policy import Rejections
from .node_names import Names
from .wire import Args

if TYPE_CHECKING:
    from ...policies.pods import Pod
    from .agent import Scores

BYTES: Final = 16 * 1024 * 1024
"""Of all decisions together; with very many nodes they are fewer than asked for."""

_OBJECT: Final = 8 * 1024
"""Bytes that a pod itself takes once it is parsed, roughly; likewise a reason."""
_REASON: Final = 200


@dataclass(slots=True)
class Decision:
    """The last answers of one agent for one pod.

    Attributes:
        agent: its name.
        filtered_at, scored_at: when, in seconds since 1970; 0: not at all.
        filtered: the names (JSON) that filter was asked about.
        rejections: which of them were rejected; None: none.
        scored: the names (JSON) that prioritize was asked about.
        positions: where in `scored` each score belongs; None: in this order.
        scores: what was said.
        size: bytes that all this takes, roughly.
    """

    agent: str
    filtered_at: float = 0.0
    filtered: bytes = b""
    rejections: Rejections | None = None
    scored_at: float = 0.0
    scored: bytes = b""
    positions: Any = None
    scores: Scores | None = None
    size: int = 0


@dataclass(slots=True)
class _Pod:
    key: str
    uid: str
    source: bytes | Mapping[str, Any]
    decisions: dict[str, Decision] = field(default_factory=dict)
    size: int = 0
    hopeless: bool = False  # an agent rejected all of its nodes


class Decisions:
    """The decisions for the last pods, and for the last ones that no node was left for.

    Those have a memory of their own: while hundreds of pods a second find their node, people ask
    about the one that does not.

    Args:
        pods: so many of each sort.
        limit: bytes altogether, roughly.
        clock: seconds since 1970.
    """

    def __init__(self, pods: int, clock: Callable[[], float], limit: int = BYTES) -> None:
        self._pods = pods
        self._limit = limit
        self._clock = clock
        self._kept: tuple[OrderedDict[str, _Pod], OrderedDict[str, _Pod]] = (
            OrderedDict(),
            OrderedDict(),
        )
        self._size = 0
        # Filter and prioritize of a pod follow each other, and share what was parsed.
        self._last: tuple[Pod, _Pod] | None = None

    def resize(self, pods: int) -> None:
        """Keep so many from now on."""
        self._pods = pods
        self._shrink()

    def filtered(self, agent: str, args: Args, rejections: Rejections | None) -> None:
        """An agent has filtered."""
        if not self._pods:
            return
        pod, decision = self._of(agent, args)
        names = args.nodes.json
        decision.filtered_at = self._clock()
        decision.filtered, decision.rejections = names, rejections
        decision.scored_at, decision.scored, decision.scores = 0.0, b"", None
        size = len(names)
        if rejections is not None:
            size += _REASON * len(rejections.reasons)
        hopeless = rejections is not None and len(rejections.reasons) == len(args.names)
        if hopeless != pod.hopeless:
            del self._kept[pod.hopeless][pod.key]
            pod.hopeless = hopeless
            self._kept[hopeless][pod.key] = pod
        self._grown(pod, decision, size)

    def scored(self, agent: str, args: Args, scores: Scores) -> None:
        """An agent has scored."""
        if not self._pods:
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
        """namespace/name of those that are remembered, the last one first."""
        return [key for kept in self._kept[::-1] for key in reversed(kept)]

    def explain(self, pod: str) -> dict[str, Any] | None:
        """What was decided for a pod (namespace/name), for JSON; None: nothing is remembered."""
        found = self._kept[1].get(pod) or self._kept[0].get(pod)
        if found is None:
            return None
        agents = [_explain(decision) for decision in found.decisions.values()]
        return {"pod": pod, "uid": found.uid, "agents": agents}

    def last(self, pod: str) -> Args | None:
        """A pod (namespace/name) with the nodes that it was last asked about; None: unknown."""
        found = self._kept[1].get(pod) or self._kept[0].get(pod)
        if found is None:
            return None
        source = found.source
        obj = orjson.loads(source)["Pod"] if isinstance(source, bytes) else source
        decision = next(iter(found.decisions.values()))
        return Args(obj, Names(orjson.loads(decision.filtered or decision.scored)))

    def __len__(self) -> int:
        return sum(map(len, self._kept))

    def _of(self, agent: str, args: Args) -> tuple[_Pod, Decision]:
        last = self._last
        pod = last[1] if last is not None and last[0] is args.pod else self._enter(args)
        decision = pod.decisions.get(agent)
        if decision is None:
            decision = pod.decisions[agent] = Decision(agent)
        return pod, decision

    def _enter(self, args: Args) -> _Pod:
        """The entry of a pod, which is now the newest."""
        given = args.pod
        key = f"{given.namespace}/{given.name}"
        pod = self._kept[0].pop(key, None) or self._kept[1].pop(key, None)
        if pod is not None and pod.uid != given.uid:
            self._size -= pod.size
            pod = None
        if pod is None:
            source = args.source or args.object
            pod = _Pod(key, given.uid, source, size=len(args.source) or _OBJECT)
            self._size += pod.size
        self._kept[pod.hopeless][key] = pod
        self._last = given, pod
        return pod

    def _grown(self, pod: _Pod, decision: Decision, size: int) -> None:
        """A decision takes so many bytes now."""
        more = size - decision.size
        decision.size = size
        pod.size += more
        self._size += more
        if self._size > self._limit or len(self._kept[pod.hopeless]) > self._pods:
            self._shrink()

    def _shrink(self) -> None:
        for kept in self._kept:
            while len(kept) > self._pods:
                self._forget(kept)
        while self._size > self._limit and len(self) > 1:
            self._forget(max(self._kept, key=len))

    def _forget(self, kept: OrderedDict[str, _Pod]) -> None:
        """Forget the oldest of these."""
        _, pod = kept.popitem(last=False)
        self._size -= pod.size
        if self._last is not None and self._last[1] is pod:
            self._last = None


def _explain(decision: Decision) -> dict[str, Any]:
    told: dict[str, Any] = {"agent": decision.agent}
    if decision.filtered_at:
        names = orjson.loads(decision.filtered)
        rejections = decision.rejections or Rejections()
        told["filter"] = {
            "at": _time(decision.filtered_at),
            "nodes": len(names),
            "rejected": [
                {
                    "node": names[at],
                    "reason": rejections.told(at),
                    "unresolvable": at in rejections.unresolvable,
                }
                for at in sorted(rejections.reasons, key=names.__getitem__)
            ],
        }
    if decision.scores is not None:
        told["prioritize"] = {
            "at": _time(decision.scored_at),
            "weights": {name: weight for name, weight, _ in decision.scores.parts},
            "nodes": sorted(_rows(decision), key=lambda row: (-row["score"], row["node"])),
        }
    return told


def _rows(decision: Decision) -> Iterator[dict[str, Any]]:
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
