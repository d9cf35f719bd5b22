"""Maps the paths of the port to their handlers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import parse_qs

import orjson

from ...serving.health import Checks, health_response
from ...serving.http_types import JSON, Answer, HttpRequest, HttpResponse, text
from .agent import PolicyAgent
from .verbs import (
    Bind,
    BindVerb,
    CallCounters,
    Filter,
    Preempt,
    Prioritize,
    Verb,
    VerbContext,
)


class Routes:
    """Handles requests; `verbs` is replaced when the configuration changes."""

    def __init__(
        self,
        *,
        version: Callable[[], Mapping[str, Any]],
        alive: Checks,
        ready: Checks,
        render: Callable[[], bytes],
        explain: Callable[[str, bool], Any],
    ) -> None:
        """Prepare; `explain` returns the content of /explain for a Pod, None for an unknown one.

        Its arguments are namespace/name, empty for a list of Pods, and whether to include the
        current inputs of the policies.
        """
        self.verbs: Mapping[bytes, Verb] = {}  # path to verb
        # whether anything but health, version and metrics needs a client certificate
        self.certificates = False
        self._version = version
        self._alive = alive
        self._ready = ready
        self._render = render
        self._explain = explain

    def __call__(self, request: HttpRequest) -> Answer | Awaitable[Answer]:
        verb = self.verbs.get(request.path)
        if verb is None:
            return self._other(request)
        if request.method != b"POST":
            return text(405, "extender verbs accept only POST")
        if self.certificates and not request.certificate:
            return text(
                403, "a client certificate of the CA in listen.tls.clientCAFile is required"
            )
        return verb(request.body)

    def health(self, request: HttpRequest) -> Answer:
        """Handle a request to the health port, which is open to all clients."""
        return self._state(request) or text(
            404, "this port serves only /version, /healthz, /livez, /readyz and /metrics"
        )

    def _other(self, request: HttpRequest) -> Answer:
        state = self._state(request)
        if state is not None:
            return state
        if request.path == b"/explain":
            if request.method not in (b"GET", b"HEAD"):
                return text(405, "only GET and HEAD are allowed")
            if self.certificates and not request.certificate:
                return text(403, "a client certificate is required")
            return self._explained(request)
        served = ", ".join(sorted(path.decode() for path in self.verbs)) or "nothing"
        return text(404, f"unknown path; served paths: {served}")

    def _state(self, request: HttpRequest) -> Answer | None:
        path = request.path
        if path not in (b"/version", b"/healthz", b"/livez", b"/readyz", b"/metrics"):
            return None
        if request.method not in (b"GET", b"HEAD"):
            return text(405, "only GET and HEAD are allowed")
        if path == b"/version":
            return orjson.dumps(dict(self._version()))
        if path == b"/metrics":
            return HttpResponse(200, self._render(), b"text/plain; version=0.0.4; charset=utf-8")
        return health_response(self._ready if path == b"/readyz" else self._alive)

    def _explained(self, request: HttpRequest) -> Answer:
        query = parse_qs(request.query.decode("utf-8", "replace"))
        pod = (query.get("pod") or [""])[-1]
        explanation = self._explain(pod, (query.get("details") or ["0"])[-1] in ("1", "true"))
        if explanation is None:
            why = f"no decisions are recorded for pod {pod[:300]}"
            return HttpResponse(
                404, orjson.dumps({"error": why}, option=orjson.OPT_APPEND_NEWLINE), JSON
            )
        return orjson.dumps(explanation, option=orjson.OPT_APPEND_NEWLINE)


def verbs_of(agents: list[PolicyAgent], context: VerbContext, bind: Bind) -> dict[bytes, Verb]:
    """Return all paths of the agents, with their verbs."""
    paths: dict[bytes, Verb] = {}
    for agent in agents:
        filter_verb, prioritize = Filter(context, agent), Prioritize(context, agent)
        others = Preempt(context, agent), BindVerb(context, agent, bind)
        for verb in (filter_verb, prioritize, *others):
            paths[f"/{agent.name}/{verb.name}".encode()] = verb
        # kube-safe-scheduler's agents have other paths than ours; both are served.
        paths[f"/scheduler/predicates/{agent.name}".encode()] = filter_verb
        paths[f"/scheduler/priorities/{agent.name}".encode()] = prioritize
    return paths


def calls_of(verbs: Mapping[bytes, Verb]) -> list[CallCounters]:
    """Return the counters, once for each verb of each agent."""
    return list({id(verb): verb.calls for verb in verbs.values()}.values())
