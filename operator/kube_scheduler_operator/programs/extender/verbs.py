"""The four verbs of an extender: bytes in, bytes out.

Nothing here asks the API, but `bind`, whose whole point that is. Whatever a request holds, it gets
an answer: a request that makes no sense an error in the words of the protocol, and one that does an
answer, also if a policy fails. That answer is made at once; behind.py says when `filter` waits for
news of the view, and how long at most.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

from ...base import klog
from ...base.klog import kv
from . import wire
from .agent import Agent, PolicyFailedError
from .cache_freshness import Behind
from .call_counters import Calls
from .messages import JSON, Answer, Response
from .wire import Args, Reader, WireError
from .wire_bind_preempt import Binding, preempted, read_preemption

if TYPE_CHECKING:
    from ...policies.cluster import Cluster
    from ...policies.policy import Rejections
    from .decisions import Decisions
    from .prioritize_response import Fragments

log = logging.getLogger(__name__)

FILTER: Final = "filter"
PRIORITIZE: Final = "prioritize"
PREEMPT: Final = "preempt"
BIND: Final = "bind"

Bind = Callable[["Binding"], Awaitable[None]]
"""Binds a pod through the API. Raises KubeError."""

Rejected = Callable[[str, Args, "Rejections"], None]
"""Told that an agent has rejected all nodes that it was asked about."""


class Context:
    """What all verbs share.

    Attributes:
        cluster: the view of nodes and pods.
        reader: of requests.
        fragments: for answers.
        decisions: the memory for /explain.
        learn: takes whole nodes of a request, for who does not watch the API; None: not needed.
        rejected: told when no node is left.
        behind: knows when the view may be.
    """

    def __init__(
        self,
        cluster: Cluster,
        fragments: Fragments,
        decisions: Decisions,
        rejected: Rejected = lambda _agent, _args, _rejections: None,
    ) -> None:
        self.cluster = cluster
        self.reader = Reader()
        self.fragments = fragments
        self.decisions = decisions
        self.rejected = rejected
        self.learn: Callable[[list[dict[str, Any]]], None] | None = None
        self.behind = Behind(cluster)

    def read(self, body: bytes) -> Args:
        """The request in a body, with its nodes found in the cluster.

        Raises:
            WireError: what is wrong with it.
        """
        args = self.reader.read(body)
        if args.items is not None and self.learn is not None:
            self.learn(args.items)
        args.locate(self.cluster)
        return args


class Filter:
    """POST …/filter."""

    def __init__(self, context: Context, agent: Agent) -> None:
        self._context = context
        self._agent = agent
        self.calls = Calls(agent.name, FILTER)

    def __call__(self, body: bytes) -> Answer | Awaitable[Answer]:
        """ExtenderArgs in, ExtenderFilterResult out."""
        began, context = time.perf_counter(), self._context
        try:
            args = context.read(body)
            found = self._agent.filter(args)
        except (WireError, PolicyFailedError) as error:
            return _refused(self.calls, began, error, wire.failed(str(error)))
        if found is not None and context.learn is None:  # what comes with requests is never behind
            if context.behind.suspects(self._agent.name, args.pod):
                return self._wait(args, found, context.cluster.version, began)
            context.behind.rejected(self._agent.name, args.pod)
        return self._answer(args, found, began)

    async def _wait(self, args: Args, found: Rejections, version: int, began: float) -> Answer:
        """Answer when there is better news than at that version of the view, or none."""
        agent, behind, rejected = self._agent, self._context.behind, len(found.reasons)
        now: Rejections | None = found

        def better() -> bool:
            nonlocal now
            args.locate(self._context.cluster)
            now = agent.filter(args)
            return now is None or len(now.reasons) < rejected

        try:
            await behind.wait(version, better)
        except (WireError, PolicyFailedError) as error:
            return _refused(self.calls, began, error, wire.failed(str(error)))
        if now is not None:
            behind.rejected(agent.name, args.pod)
        return self._answer(args, now, began)

    def _answer(self, args: Args, found: Rejections | None, began: float) -> Answer:
        context, calls = self._context, self.calls
        if found is None:
            answer = wire.accepted(args)
        else:
            answer = wire.filtered(args, found.reasons, found.unresolvable)
            calls.rejected += len(found.reasons)
            if len(found.reasons) == len(args.names):
                context.rejected(self._agent.name, args, found)
        context.decisions.filtered(self._agent.name, args, found)
        _ended(calls, began, args)
        if log.isEnabledFor(logging.DEBUG):
            rejected = len(found.reasons) if found else 0
            _tell(self._agent, FILTER, args, nodes=len(args.names), rejected=rejected)
        return answer


class Prioritize:
    """POST …/prioritize."""

    def __init__(self, context: Context, agent: Agent) -> None:
        self._context = context
        self._agent = agent
        self.calls = Calls(agent.name, PRIORITIZE)

    def __call__(self, body: bytes) -> Answer:
        """ExtenderArgs in, HostPriorityList out."""
        began, context, calls = time.perf_counter(), self._context, self.calls
        try:
            args = context.read(body)
            scores = self._agent.score(args)
        except (WireError, PolicyFailedError) as error:
            # A list has no room for an error, and kube-scheduler logs the status and goes on.
            return _refused(calls, began, error, Response(400, wire.failed(str(error)), JSON))
        if args.positions is None:
            answer = context.fragments.answer(args.indices, scores.known)
        else:
            answer = wire.scored(args.names, scores.all(args))
        context.decisions.scored(self._agent.name, args, scores)
        _ended(calls, began, args)
        if log.isEnabledFor(logging.DEBUG):
            _tell(self._agent, PRIORITIZE, args, nodes=len(args.names))
            if log.isEnabledFor(klog.TRACE):
                pairs = zip(args.names, scores.all(args), strict=True)
                told = " ".join(f"{name}={score}" for name, score in pairs)
                log.log(klog.TRACE, "Scored", extra=kv(agent=self._agent.name, nodes=told))
        return answer


class Preempt:
    """POST …/preempt: of the candidates, those whose node the filters accept."""

    def __init__(self, context: Context, agent: Agent) -> None:
        self._context = context
        self._agent = agent
        self.calls = Calls(agent.name, PREEMPT)

    def __call__(self, body: bytes) -> Answer:
        """ExtenderPreemptionArgs in, ExtenderPreemptionResult out."""
        began, calls = time.perf_counter(), self.calls
        try:
            args, victims = read_preemption(body)
            args.locate(self._context.cluster)
            found = self._agent.filter(args)
        except (WireError, PolicyFailedError) as error:
            return _refused(calls, began, error, Response(400, wire.failed(str(error)), JSON))
        reasons = found.reasons if found else {}
        calls.rejected += len(reasons)
        left = [at for at in range(len(args.names)) if at not in reasons]
        _ended(calls, began, args)
        return preempted([args.names[at] for at in left], [victims[at] for at in left])


class BindVerb:
    """POST …/bind: bind a pod through the API."""

    def __init__(self, agent: str, bind: Bind) -> None:
        self._bind = bind
        self.calls = Calls(agent, BIND)

    def __call__(self, body: bytes) -> Answer | Awaitable[Answer]:
        """ExtenderBindingArgs in, ExtenderBindingResult out."""
        began = time.perf_counter()
        try:
            binding = Binding(body)
        except WireError as error:
            return _refused(self.calls, began, error, wire.failed(str(error)))
        return self._wait(binding, began)

    async def _wait(self, binding: Binding, began: float) -> Answer:
        try:
            await self._bind(binding)
        except Exception as error:  # the API's answers, and whatever keeps it from answering
            return _refused(self.calls, began, error, wire.failed(str(error)))
        self.calls.ended(time.perf_counter() - began)
        return wire.failed("")


def _ended(calls: Calls, began: float, args: Args) -> None:
    calls.nodes += len(args.names)
    if args.positions is not None:
        calls.unknown += len(args.names) - len(args.positions)
    calls.ended(time.perf_counter() - began)


def _refused(calls: Calls, began: float, error: Exception, answer: Answer) -> Answer:
    calls.errors += 1
    calls.ended(time.perf_counter() - began)
    values = kv(agent=calls.agent, verb=calls.verb, why=str(error)[:500])
    log.log(logging.DEBUG if calls.errors > 10 else logging.WARNING, "Refused a call", extra=values)
    return answer


def _tell(agent: Agent, verb: str, args: Args, **values: object) -> None:
    """One line for the call and, at TRACE, one for each node: what its judgement is made of."""
    pod = f"{args.pod.namespace}/{args.pod.name}"
    log.debug("Answered", extra=kv(agent=agent.name, verb=verb, pod=pod, **values))
    if log.isEnabledFor(klog.TRACE):
        for policy, rows in agent.explain(args).items():
            for row in rows:
                told = {"policy": policy, "verb": verb, "pod": pod, **row}
                log.log(klog.TRACE, "Calculated", extra=kv(**told))
