"""Which path answers what."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs

import orjson

from .messages import JSON, TEXT, Answer, Request, Response, text
from .verbs import BIND, FILTER, PREEMPT, PRIORITIZE, BindVerb, Context, Filter, Preempt, Prioritize

if TYPE_CHECKING:
    from .agent import Agent
    from .call_counters import Calls
    from .verbs import Bind

Verb = Filter | Prioritize | Preempt | BindVerb

Checks = Callable[[], Mapping[str, str | None]]
"""What was checked: None if fine, otherwise a sentence that says what is missing."""

# kube-safe-scheduler's agents are asked under other paths than ours; both are served.
_ORIGINAL: Final[Mapping[str, str]] = {
    FILTER: "/scheduler/predicates",
    PRIORITIZE: "/scheduler/priorities",
}


class Routes:
    """Answers requests; `verbs` is replaced when the configuration changes.

    Attributes:
        verbs: path to verb.
        certificates: whether only clients with a certificate may ask more than how it is going.
    """

    def __init__(
        self,
        *,
        version: Callable[[], Mapping[str, Any]],
        alive: Checks,
        ready: Checks,
        render: Callable[[], bytes],
        explain: Callable[[str, bool], Any],
    ) -> None:
        """Prepare.

        Args:
            version: the answer to /version.
            alive: the checks of /healthz.
            ready: the checks of /readyz.
            render: the answer to /metrics.
            explain: the answer to /explain for a pod (namespace/name; empty: for all), and whether
                what policies see now is wanted as well; None: nothing is known.
        """
        self.verbs: Mapping[bytes, Verb] = {}
        self.certificates = False
        self._version = version
        self._alive = alive
        self._ready = ready
        self._render = render
        self._explain = explain

    def __call__(self, request: Request) -> Answer | Awaitable[Answer]:
        """Answer anything."""
        verb = self.verbs.get(request.path)
        if verb is None:
            return self._other(request)
        if request.method != b"POST":
            return text(405, "verbs of an extender are asked with POST")
        if self.certificates and not request.verified:
            return text(403, "a client certificate is needed, of the CA in listen.tls.clientCAFile")
        return verb(request.body)

    def health(self, request: Request) -> Answer:
        """Answer only how the program is: for a port that everybody gets at."""
        return self._state(request) or text(404, "here are /version, /healthz, /readyz, /metrics")

    def _other(self, request: Request) -> Answer:
        state = self._state(request)
        if state is not None:
            return state
        if request.path == b"/explain":
            if request.method not in (b"GET", b"HEAD"):
                return text(405, "ask with GET")
            if self.certificates and not request.verified:
                return text(403, "a client certificate is needed")
            return self._explained(request)
        served = ", ".join(sorted(path.decode() for path in self.verbs)) or "nothing"
        return text(404, f"there is no such path; served: {served}")

    def _state(self, request: Request) -> Answer | None:
        path = request.path
        if path not in (b"/version", b"/healthz", b"/livez", b"/readyz", b"/metrics"):
            return None
        if request.method not in (b"GET", b"HEAD"):
            return text(405, "ask with GET")
        if path == b"/version":
            return orjson.dumps(dict(self._version()))
        if path == b"/metrics":
            return Response(200, self._render(), b"text/plain; version=0.0.4; charset=utf-8")
        return _checked(self._ready if path == b"/readyz" else self._alive)

    def _explained(self, request: Request) -> Answer:
        query = parse_qs(request.query.decode("utf-8", "replace"))
        pod = (query.get("pod") or [""])[-1]
        told = self._explain(pod, (query.get("details") or ["0"])[-1] in ("1", "true"))
        if told is None:
            why = f"nothing is remembered of pod {pod[:300]}"
            return Response(
                404, orjson.dumps({"error": why}, option=orjson.OPT_APPEND_NEWLINE), JSON
            )
        return orjson.dumps(told, option=orjson.OPT_APPEND_NEWLINE)


def verbs_of(agents: list[Agent], context: Context, bind: Bind) -> dict[bytes, Verb]:
    """Every path that the agents are asked under."""
    found: dict[bytes, Verb] = {}
    for agent in agents:
        verbs: dict[str, Verb] = {
            FILTER: Filter(context, agent),
            PRIORITIZE: Prioritize(context, agent),
            PREEMPT: Preempt(context, agent),
            BIND: BindVerb(agent.name, bind),
        }
        for name, verb in verbs.items():
            found[f"/{agent.name}/{name}".encode()] = verb
            if name in _ORIGINAL:
                found[f"{_ORIGINAL[name]}/{agent.name}".encode()] = verb
    return found


def calls_of(verbs: Mapping[bytes, Verb]) -> list[Calls]:
    """What was counted, once for each verb of each agent."""
    return list({id(verb): verb.calls for verb in verbs.values()}.values())


def _checked(checks: Checks) -> Response:
    results = checks()
    lines = [
        f"[+]{name} ok" if problem is None else f"[-]{name} failed: {problem}"
        for name, problem in sorted(results.items())
    ]
    failed = any(problem is not None for problem in results.values())
    lines.append("check failed" if failed else "ok")
    return Response(503 if failed else 200, ("\n".join(lines) + "\n").encode(), TEXT)
