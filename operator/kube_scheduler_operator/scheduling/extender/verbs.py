"""The four verbs of an extender: bytes in, bytes out.

Only `bind` calls the API. Every request gets a response: an invalid one an error of the protocol,
and a valid one a result, even if a policy fails. The response is immediate, except where `filter`
waits for the node view to catch up (cache_freshness.py).
"""

from __future__ import annotations

import logging
import time
from bisect import bisect_left
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar, Final

from ...base import klog
from ...base.klog import kv
from ...serving.http_types import JSON, Answer, HttpResponse
from ..policies.arrays import Ints, np
from ..policies.cluster import Cluster
from ..policies.policy import Rejections
from . import wire
from .agent import PolicyAgent, PolicyFailedError
from .cache_freshness import CacheFreshness
from .decisions import Decisions
from .wire import (
    Args,
    ArgsReader,
    Binding,
    Fragments,
    WireError,
    preempted,
    read_preemption,
)

log = logging.getLogger(__name__)

FILTER: Final = "filter"
PRIORITIZE: Final = "prioritize"
PREEMPT: Final = "preempt"
BIND: Final = "bind"

BUCKETS: Final = (
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
)  # fmt: skip
"""Seconds; a call takes about 0.25 ms with node names, and 10 ms with complete nodes."""

Bind = Callable[["Binding"], Awaitable[None]]
"""Binds a Pod through the API. Raises KubeError."""

Rejected = Callable[[str, Args, "Rejections"], None]
"""Called when an agent has rejected all nodes of a request."""


class VerbContext:
    """State shared by all verbs."""

    def __init__(self, cluster: Cluster, fragments: Fragments, decisions: Decisions) -> None:
        self.cluster = cluster  # the node view
        self.reader = ArgsReader()
        self.fragments = fragments  # the parts of prioritize responses
        self.decisions = decisions  # the record for /explain
        # called when no node is left
        self.rejected: Rejected = lambda _agent, _args, _rejections: None
        # takes the complete nodes of a request if there are no watches; None: unused
        self.learn: Callable[[list[dict[str, Any]]], None] | None = None
        self.freshness = CacheFreshness(cluster)  # detects that the node view may be stale
        self._ties = 0

    def assume(self, agent: PolicyAgent, args: Args, best: Ints) -> None:
        """Count a Pod on one of the nodes with the best score, until its binding is observed.

        Among nodes with equal scores kube-scheduler's plugins decide; they spread over these.
        """
        if agent.counts_pods and self.learn is None and len(best):
            self._ties += 1
            self.cluster.assume(args.pod, int(best[self._ties % len(best)]))

    def read(self, body: bytes) -> Args:
        """Parse a request and look its nodes up in the cluster. Raises WireError."""
        args = self.reader.read(body)
        if args.items is not None and self.learn is not None:
            self.learn(args.items)
        # It is being placed, perhaps again, so it must not count where it was assumed.
        self.cluster.expire_assumed()
        self.cluster.forget_assumed(args.pod.key)
        args.locate(self.cluster)
        return args


class CallCounters:
    """The counters of one verb of one agent: plain numbers, because every call updates them."""

    __slots__ = ("agent", "counts", "errors", "nodes", "rejected", "seconds", "unknown", "verb")

    def __init__(self, agent: str, verb: str) -> None:
        self.agent = agent
        self.verb = verb
        self.errors = 0  # calls that failed
        self.nodes = 0  # nodes in requests
        self.unknown = 0  # of these, nodes that are not in the node view
        self.rejected = 0  # of these, rejected nodes
        # calls by bucket; the last bucket has no upper bound
        self.counts = [0] * (len(BUCKETS) + 1)
        self.seconds = 0.0  # total duration

    def ended(self, began: float, args: Args | None = None) -> None:
        """Count a call that began at a time of `perf_counter`, and the nodes of its request."""
        seconds = time.perf_counter() - began
        self.counts[bisect_left(BUCKETS, seconds)] += 1
        self.seconds += seconds
        if args is not None:
            self.nodes += len(args.names)
            if args.positions is not None:
                self.unknown += len(args.names) - len(args.positions)


class Verb:
    """One verb of one agent."""

    name: ClassVar[str]
    error_status: ClassVar[int] = 200  # of the response to a call that failed

    def __init__(self, context: VerbContext, agent: PolicyAgent) -> None:
        self._context = context
        self._agent = agent
        self.calls = CallCounters(agent.name, self.name)

    def __call__(self, body: bytes) -> Answer | Awaitable[Answer]:
        began = time.perf_counter()
        try:
            return self._answer(body, began)
        except (WireError, PolicyFailedError) as error:
            return self._failed(error, began)

    def _answer(self, body: bytes, began: float) -> Answer | Awaitable[Answer]:
        """Answer a request. Raises WireError and PolicyFailedError."""
        raise NotImplementedError

    def _failed(self, error: Exception, began: float) -> Answer:
        calls = self.calls
        calls.errors += 1
        calls.ended(began)
        level = logging.DEBUG if calls.errors > 10 else logging.WARNING
        values = kv(agent=calls.agent, verb=calls.verb, why=str(error)[:500])
        log.log(level, "A call failed", extra=values)
        body = wire.failed(str(error))
        return body if self.error_status == 200 else HttpResponse(self.error_status, body, JSON)

    def _log(self, args: Args, **values: object) -> None:
        """Log a line and, at TRACE, one for each node with the inputs of its result."""
        pod = f"{args.pod.namespace}/{args.pod.name}"
        about = {"verb": self.name, "pod": pod}
        log.debug("Answered", extra=kv(agent=self._agent.name, **about, **values))
        if log.isEnabledFor(klog.TRACE):
            for policy, rows in self._agent.explain(args).items():
                for row in rows:
                    values = {"policy": policy, **about, **row}  # a row may have keys of these
                    log.log(klog.TRACE, "Calculated", extra=kv(**values))


class Filter(Verb):
    """POST …/filter: answers ExtenderArgs with an ExtenderFilterResult."""

    name = FILTER

    def _answer(self, body: bytes, began: float) -> Answer | Awaitable[Answer]:
        context, agent = self._context, self._agent
        args = context.read(body)
        rejections = agent.filter(args)
        if rejections is not None and context.learn is None:  # node data of requests is never stale
            if context.freshness.may_be_stale(agent.name, args.pod):
                return self._wait(args, rejections, context.cluster.version, began)
            context.freshness.rejected(agent.name, args.pod)
        return self._filtered(args, rejections, began)

    async def _wait(self, args: Args, rejections: Rejections, version: int, began: float) -> Answer:
        """Respond when a view newer than this version accepts more nodes, or on timeout."""
        agent, freshness, rejected = self._agent, self._context.freshness, len(rejections.reasons)
        now: Rejections | None = rejections

        def better() -> bool:
            nonlocal now
            args.locate(self._context.cluster)
            now = agent.filter(args)
            return now is None or len(now.reasons) < rejected

        try:
            await freshness.wait(version, better)
        except (WireError, PolicyFailedError) as error:
            return self._failed(error, began)
        if now is not None:
            freshness.rejected(agent.name, args.pod)
        return self._filtered(args, now, began)

    def _filtered(self, args: Args, rejections: Rejections | None, began: float) -> Answer:
        context, calls = self._context, self.calls
        if rejections is None:
            answer = wire.accepted(args)
        else:
            answer = wire.filtered(args, rejections.reasons, rejections.unresolvable)
            calls.rejected += len(rejections.reasons)
            if len(rejections.reasons) == len(args.names):
                context.rejected(self._agent.name, args, rejections)
        context.decisions.filtered(self._agent.name, args, rejections)
        self._assume_last(args, rejections)
        calls.ended(began, args)
        if log.isEnabledFor(logging.DEBUG):
            rejected = len(rejections.reasons) if rejections else 0
            self._log(args, nodes=len(args.names), rejected=rejected)
        return answer

    def _assume_last(self, args: Args, rejections: Rejections | None) -> None:
        """Assume the Pod on the only node that is left, which kube-scheduler does not score."""
        rejected = rejections.reasons if rejections is not None else {}
        if len(args.names) - len(rejected) == 1:
            at = next(at for at in range(len(args.names)) if at not in rejected)
            if args.positions is None:
                last = args.indices[at : at + 1]
            else:
                last = args.indices[args.positions == at]
            self._context.assume(self._agent, args, last)


class Prioritize(Verb):
    """POST …/prioritize: answers ExtenderArgs with a HostPriorityList."""

    name = PRIORITIZE
    # HostPriorityList has no error field; kube-scheduler logs the status and continues.
    error_status = 400

    def _answer(self, body: bytes, began: float) -> Answer:
        context = self._context
        args = context.read(body)
        scores = self._agent.score(args)
        if args.positions is None:
            answer = context.fragments.answer(args.indices, scores.known)
        else:
            answer = wire.scored(args.names, scores.all(args))
        context.decisions.scored(self._agent.name, args, scores)
        if scores.parts:
            best = args.indices[scores.known == np.maximum.reduce(scores.known)]
            context.assume(self._agent, args, best)
        self.calls.ended(began, args)
        if log.isEnabledFor(logging.DEBUG):
            self._log(args, nodes=len(args.names))
            if log.isEnabledFor(klog.TRACE):
                pairs = zip(args.names, scores.all(args), strict=True)
                scored = " ".join(f"{name}={score}" for name, score in pairs)
                log.log(klog.TRACE, "Scored", extra=kv(agent=self._agent.name, nodes=scored))
        return answer


class Preempt(Verb):
    """POST …/preempt: keeps the candidates whose node the filters accept.

    It answers ExtenderPreemptionArgs with an ExtenderPreemptionResult.
    """

    name = PREEMPT
    error_status = 400

    def _answer(self, body: bytes, began: float) -> Answer:
        args, victims = read_preemption(body)
        args.locate(self._context.cluster)
        rejections = self._agent.filter(args)
        reasons = rejections.reasons if rejections else {}
        self.calls.rejected += len(reasons)
        left = [at for at in range(len(args.names)) if at not in reasons]
        self.calls.ended(began, args)
        return preempted([args.names[at] for at in left], [victims[at] for at in left])


class BindVerb(Verb):
    """POST …/bind: binds a Pod through the API.

    It answers ExtenderBindingArgs with an ExtenderBindingResult.
    """

    name = BIND

    def __init__(self, context: VerbContext, agent: PolicyAgent, bind: Bind) -> None:
        super().__init__(context, agent)
        self._bind = bind

    def _answer(self, body: bytes, began: float) -> Awaitable[Answer]:
        return self._wait(Binding(body), began)

    async def _wait(self, binding: Binding, began: float) -> Answer:
        try:
            await self._bind(binding)
        except Exception as error:  # errors of the API and of the connection to it
            return self._failed(error, began)
        self.calls.ended(began)
        return wire.failed("")
