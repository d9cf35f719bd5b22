"""The four verbs of an extender: bytes in, bytes out.

Only `bind` calls the API. Every request gets a response: an invalid one an error of the protocol,
and a valid one a result, even if a policy fails. The response is immediate, except where `filter`
waits for the node view to catch up (cache_freshness.py).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

from ...base import klog
from ...base.klog import kv
from ...serving.http_types import JSON, Answer, HttpResponse
from ..policies.cluster import Cluster
from ..policies.policy import Rejections
from . import wire
from .agent import PolicyAgent, PolicyFailedError
from .cache_freshness import CacheFreshness
from .call_counters import CallCounters
from .decisions import Decisions
from .prioritize_response import Fragments
from .wire import Args, ArgsReader, Binding, WireError, preempted, read_preemption

log = logging.getLogger(__name__)

FILTER: Final = "filter"
PRIORITIZE: Final = "prioritize"
PREEMPT: Final = "preempt"
BIND: Final = "bind"

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

    def read(self, body: bytes) -> Args:
        """Parse a request and look its nodes up in the cluster.

        Raises:
            WireError: the request is invalid.
        """
        args = self.reader.read(body)
        if args.items is not None and self.learn is not None:
            self.learn(args.items)
        args.locate(self.cluster)
        return args


class Filter:
    """POST …/filter."""

    def __init__(self, context: VerbContext, agent: PolicyAgent) -> None:
        self._context = context
        self._agent = agent
        self.calls = CallCounters(agent.name, FILTER)

    def __call__(self, body: bytes) -> Answer | Awaitable[Answer]:
        """Answer ExtenderArgs with an ExtenderFilterResult."""
        began, context = time.perf_counter(), self._context
        try:
            args = context.read(body)
            rejections = self._agent.filter(args)
        except (WireError, PolicyFailedError) as error:
            return _refused(self.calls, began, error, wire.failed(str(error)))
        if rejections is not None and context.learn is None:  # node data of requests is never stale
            if context.freshness.may_be_stale(self._agent.name, args.pod):
                return self._wait(args, rejections, context.cluster.version, began)
            context.freshness.rejected(self._agent.name, args.pod)
        return self._answer(args, rejections, began)

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
            return _refused(self.calls, began, error, wire.failed(str(error)))
        if now is not None:
            freshness.rejected(agent.name, args.pod)
        return self._answer(args, now, began)

    def _answer(self, args: Args, rejections: Rejections | None, began: float) -> Answer:
        context, calls = self._context, self.calls
        if rejections is None:
            answer = wire.accepted(args)
        else:
            answer = wire.filtered(args, rejections.reasons, rejections.unresolvable)
            calls.rejected += len(rejections.reasons)
            if len(rejections.reasons) == len(args.names):
                context.rejected(self._agent.name, args, rejections)
        context.decisions.filtered(self._agent.name, args, rejections)
        _ended(calls, began, args)
        if log.isEnabledFor(logging.DEBUG):
            rejected = len(rejections.reasons) if rejections else 0
            _log_call(self._agent, FILTER, args, nodes=len(args.names), rejected=rejected)
        return answer


class Prioritize:
    """POST …/prioritize."""

    def __init__(self, context: VerbContext, agent: PolicyAgent) -> None:
        self._context = context
        self._agent = agent
        self.calls = CallCounters(agent.name, PRIORITIZE)

    def __call__(self, body: bytes) -> Answer:
        """Answer ExtenderArgs with a HostPriorityList."""
        began, context, calls = time.perf_counter(), self._context, self.calls
        try:
            args = context.read(body)
            scores = self._agent.score(args)
        except (WireError, PolicyFailedError) as error:
            # HostPriorityList has no error field; kube-scheduler logs the status and continues.
            return _refused(calls, began, error, HttpResponse(400, wire.failed(str(error)), JSON))
        if args.positions is None:
            answer = context.fragments.answer(args.indices, scores.known)
        else:
            answer = wire.scored(args.names, scores.all(args))
        context.decisions.scored(self._agent.name, args, scores)
        _ended(calls, began, args)
        if log.isEnabledFor(logging.DEBUG):
            _log_call(self._agent, PRIORITIZE, args, nodes=len(args.names))
            if log.isEnabledFor(klog.TRACE):
                pairs = zip(args.names, scores.all(args), strict=True)
                scored = " ".join(f"{name}={score}" for name, score in pairs)
                log.log(klog.TRACE, "Scored", extra=kv(agent=self._agent.name, nodes=scored))
        return answer


class Preempt:
    """POST …/preempt: keeps the candidates whose node the filters accept."""

    def __init__(self, context: VerbContext, agent: PolicyAgent) -> None:
        self._context = context
        self._agent = agent
        self.calls = CallCounters(agent.name, PREEMPT)

    def __call__(self, body: bytes) -> Answer:
        """Answer ExtenderPreemptionArgs with an ExtenderPreemptionResult."""
        began, calls = time.perf_counter(), self.calls
        try:
            args, victims = read_preemption(body)
            args.locate(self._context.cluster)
            rejections = self._agent.filter(args)
        except (WireError, PolicyFailedError) as error:
            return _refused(calls, began, error, HttpResponse(400, wire.failed(str(error)), JSON))
        reasons = rejections.reasons if rejections else {}
        calls.rejected += len(reasons)
        left = [at for at in range(len(args.names)) if at not in reasons]
        _ended(calls, began, args)
        return preempted([args.names[at] for at in left], [victims[at] for at in left])


class BindVerb:
    """POST …/bind: binds a Pod through the API."""

    def __init__(self, agent: str, bind: Bind) -> None:
        self._bind = bind
        self.calls = CallCounters(agent, BIND)

    def __call__(self, body: bytes) -> Answer | Awaitable[Answer]:
        """Answer ExtenderBindingArgs with an ExtenderBindingResult."""
        began = time.perf_counter()
        try:
            binding = Binding(body)
        except WireError as error:
            return _refused(self.calls, began, error, wire.failed(str(error)))
        return self._wait(binding, began)

    async def _wait(self, binding: Binding, began: float) -> Answer:
        try:
            await self._bind(binding)
        except Exception as error:  # errors of the API and of the connection to it
            return _refused(self.calls, began, error, wire.failed(str(error)))
        self.calls.ended(time.perf_counter() - began)
        return wire.failed("")


def _ended(calls: CallCounters, began: float, args: Args) -> None:
    calls.nodes += len(args.names)
    if args.positions is not None:
        calls.unknown += len(args.names) - len(args.positions)
    calls.ended(time.perf_counter() - began)


def _refused(calls: CallCounters, began: float, error: Exception, answer: Answer) -> Answer:
    calls.errors += 1
    calls.ended(time.perf_counter() - began)
    values = kv(agent=calls.agent, verb=calls.verb, why=str(error)[:500])
    log.log(logging.DEBUG if calls.errors > 10 else logging.WARNING, "A call failed", extra=values)
    return answer


def _log_call(agent: PolicyAgent, verb: str, args: Args, **values: object) -> None:
    """Log a line for the call and, at TRACE, one for each node with the inputs of its result."""
    pod = f"{args.pod.namespace}/{args.pod.name}"
    log.debug("Answered", extra=kv(agent=agent.name, verb=verb, pod=pod, **values))
    if log.isEnabledFor(klog.TRACE):
        for policy, rows in agent.explain(args).items():
            for row in rows:
                fields = {"policy": policy, "verb": verb, "pod": pod, **row}
                log.log(klog.TRACE, "Calculated", extra=kv(**fields))
