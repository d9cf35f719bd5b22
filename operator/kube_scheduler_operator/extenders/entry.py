"""One SchedulerExtender as an entry of kube-scheduler's `extenders`, and what is wrong with it.

The result depends on nothing but the arguments and is kept by their content.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final
from urllib.parse import urlsplit

from ..base import names
from ..base.findings import WARNING, Path, Problem
from ..base.objects import mapping
from ..schedulerconfig.check_extenders import INVALID_EXTENDER, check_extenders
from ..schedulerconfig.crd_schema import check_object
from ..schedulerconfig.decode import INVALID, decode
from ..schedulerconfig.extender_warnings import extender_hazards
from ..schedulerconfig.go_values import seconds
from ..schedulerconfig.schema import CONFIGURATION
from ..schedulerconfig.target import Target
from .agent_policies import ability, check_policies

DEFINITION: Final = f"{names.SCHEDULEREXTENDERS}.yaml"
VERSION: Final = "v1alpha1"
LOOPBACK: Final = "127.0.0.1"
VERBS: Final = ("filter", "prioritize", "bind", "preempt")
DEFAULT_TIMEOUT: Final = "500ms"
UNRESOLVABLE: Final = "ServiceName"
SHORT_TIMEOUT: Final = "ShortTimeout"
SHORTEST_OF_FILTER: Final = 0.1
"""Seconds that an agent's filter should have: twice what it waits for news (server/behind.py)."""

_SHORTEST, _LONGEST = 0.001, 60.0
_LONGEST_NAME: Final = 40


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a version of a SchedulerExtender's spec comes to.

    Attributes:
        entry: of `extenders` of KubeSchedulerConfiguration; that of an agent lacks its urlPrefix.
        problems: why it cannot be had; paths are in the spec.
        warnings: what may surprise; paths are in the spec. None with problems.
    """

    entry: Mapping[str, Any]
    problems: tuple[Problem, ...]
    warnings: tuple[Problem, ...] = ()


def agent_of(spec: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The agent that a spec asks for; None: somebody else serves it."""
    agent = spec.get("agent")
    return agent if isinstance(agent, Mapping) and not spec.get("url") else None


def agent_verbs(agent: Mapping[str, Any]) -> tuple[str, ...]:
    """What an agent is asked: as said, else as its policies can."""
    can = [ability(mapping(each)) for each in agent.get("policies") or ()]
    default = {
        "filter": any(each.filters for each in can),
        "prioritize": any(each.scores for each in can),
    }
    said = mapping(agent.get("verbs"))
    return tuple(verb for verb in VERBS if said.get(verb, default.get(verb, False)))


def agent_url(name: str, port: int) -> str:
    """Where the scheduler calls an agent, without the verb."""
    return f"http://{LOOPBACK}:{port}/{name}"


def judge(name: str, spec: Mapping[str, Any], target: Target, profiles: int = 1) -> Judgement:
    """What a spec comes to by itself.

    Args:
        name: of the object.
        spec: the version to be judged.
        target: the kube-scheduler that will read it.
        profiles: how many profiles that has.
    """
    text = json.dumps([name, spec], sort_keys=True, default=str)
    return _judge(_Case(text, target.identity, min(profiles, 2), name, spec, target, profiles))


@dataclass(frozen=True, slots=True)
class _Case:
    """The arguments of `judge`, the same if their content is."""

    text: str
    reader: tuple[object, ...]
    shared: int
    name: str = field(compare=False)
    spec: Mapping[str, Any] = field(compare=False)
    target: Target = field(compare=False)
    profiles: int = field(compare=False)


@lru_cache(maxsize=256)
def _judge(case: _Case) -> Judgement:
    spec = case.spec
    problems = [_in_spec(each) for each in check_object({"spec": spec}, DEFINITION, VERSION)]
    if problems:
        return Judgement({}, tuple(problems))
    problems = [*_name(case.name), *_rules(spec)]
    agent = agent_of(spec)
    if agent is not None:
        problems += check_policies(agent)
    entry = _entry(spec)
    whole = {"urlPrefix": agent_url(case.name, 1024), **entry}
    config = {"extenders": [whole]}
    found = list(decode(config, CONFIGURATION, (), case.target.minor, strict=False))
    found = found or list(check_extenders([whole]))
    problems += (_at_field(each, spec) for each in found)
    warnings: tuple[Problem, ...] = ()
    if not problems:
        told = extender_hazards(whole, ("extenders", 0), case.profiles)
        surprises = [_at_field(each, spec) for each in told if not _is_narrowed(each, agent)]
        warnings = (*surprises, *_service_name(spec), *_short_timeout(spec, agent))
    return Judgement(entry, tuple(problems), warnings)


def _entry(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The extender as kube-scheduler's configuration has it, without what is its default."""
    agent = agent_of(spec)
    verbs: Mapping[str, Any] = mapping(spec.get("verbs"))
    if agent is not None:
        verbs = {verb: verb for verb in agent_verbs(agent)}
    entry: dict[str, Any] = {f"{verb}Verb": verbs[verb] for verb in VERBS if verbs.get(verb)}
    if entry.get("prioritizeVerb"):
        entry["weight"] = spec.get("weight", 1)
    url = str(spec.get("url") or "")
    if agent is None:
        entry["urlPrefix"] = url.rstrip("/")
        if url.startswith("https://"):
            entry["enableHTTPS"] = True
            if tls := mapping(spec.get("tls")):
                entry["tlsConfig"] = dict(tls)
    entry["httpTimeout"] = spec.get("timeout") or DEFAULT_TIMEOUT
    if agent is not None or spec.get("nodeCacheCapable", True):
        entry["nodeCacheCapable"] = True
    if spec.get("ignorable", True):
        entry["ignorable"] = True
    if managed := spec.get("managedResources"):
        entry["managedResources"] = [
            {key: value for key, value in one.items() if key == "name" or value} for one in managed
        ]
    return entry


_FIELDS: Final[Mapping[str, Path]] = {
    "urlPrefix": ("url",),
    "httpTimeout": ("timeout",),
    "enableHTTPS": ("url",),
    "tlsConfig": ("tls",),
}


def field_of(path: Path, spec: Mapping[str, Any]) -> Path:
    """Where in a spec a place in its entry comes from."""
    if not path:
        return ()
    top, *rest = path
    if isinstance(top, str) and top.endswith("Verb"):
        verb = top.removesuffix("Verb")
        return ("agent", "verbs", verb) if agent_of(spec) is not None else ("verbs", verb)
    return (*_FIELDS.get(str(top), (top,)), *rest)


def _at_field(problem: Problem, spec: Mapping[str, Any]) -> Problem:
    """A problem of `extenders[0]` at the field that a user can edit, in that field's words."""
    message, fix = (
        text.replace("tlsConfig", "tls").replace("httpTimeout", "timeout")
        for text in (problem.message, problem.fix)
    )
    where = field_of(problem.path[2:], spec)
    return replace(problem, path=where, message=message, fix=fix)


def _in_spec(problem: Problem) -> Problem:
    return replace(problem, path=problem.path[1:])


def _name(name: str) -> Iterator[Problem]:
    fine = len(name) <= _LONGEST_NAME and name == name.lower() and "." not in name
    if not fine:
        yield Problem(
            INVALID,
            (),
            f'"{name}" becomes a part of URLs and of names of pods; name the object with at most '
            f"{_LONGEST_NAME} lower case letters, digits and dashes",
        )


def _rules(spec: Mapping[str, Any]) -> Iterator[Problem]:
    """The rules that the CustomResourceDefinition has in CEL; files are not read by that."""
    url, agent = spec.get("url"), spec.get("agent")
    if bool(url) == (agent is not None):
        yield Problem(
            INVALID_EXTENDER,
            ("url",),
            "set url, for an extender that somebody else serves, or agent, for one that the "
            "operator runs, and not both",
        )
    if url:
        narrowed = [key for key in ("podSelector", "schedulerNames") if mapping(agent).get(key)]
        if narrowed:
            yield Problem(
                INVALID_EXTENDER,
                ("agent", narrowed[0]),
                "kube-scheduler asks an extender about all pods, and only an agent of the operator "
                "can tell them apart; let what is behind the URL look at the pod itself, or limit "
                "it with managedResources",
            )
        if not any(mapping(spec.get("verbs")).values()):
            yield Problem(
                INVALID_EXTENDER,
                ("verbs",),
                "an extender without verbs is never called; set filter, prioritize, bind or "
                "preempt to the last part of its URL",
            )
    if agent is not None:
        yield from _agent_rules(spec, agent)
    if spec.get("tls") and not str(url or "").startswith("https://"):
        message = "tls is for a url that begins with https://; remove it"
        yield Problem(INVALID_EXTENDER, ("tls",), message)
    tls = mapping(spec.get("tls"))
    if ("certFile" in tls) != ("keyFile" in tls):
        message = "certFile and keyFile belong together; set both or none"
        yield Problem(INVALID_EXTENDER, ("tls",), message)
    yield from _timeout(spec)


def _agent_rules(spec: Mapping[str, Any], agent: Mapping[str, Any]) -> Iterator[Problem]:
    if spec.get("verbs"):
        message = "verbs are for a url; those of an agent are agent.verbs, true or false each"
        yield Problem(INVALID_EXTENDER, ("verbs",), message)
    if not agent_verbs(agent):
        message = "an agent without verbs is never called; leave one of them on"
        yield Problem(INVALID_EXTENDER, ("agent", "verbs"), message)
    port = int(agent.get("port") or 0)
    if 0 < port < 1024:
        message = (
            f"port {port} needs privileges that the agent does not have; use 0 or 1024 to 65535"
        )
        yield Problem(INVALID, ("agent", "port"), message)
    if port in TAKEN_PORTS:
        message = (
            f"port {port} is one of Kubernetes itself on control-plane nodes; use 0 or another"
        )
        yield Problem(INVALID, ("agent", "port"), message)


TAKEN_PORTS: Final = frozenset({2379, 2380, 2381, 6443, 10248, 10249, 10250, 10256, 10257, 10259})
"""Of etcd, API server, kubelet, kube-proxy, controller manager and scheduler."""


def _timeout(spec: Mapping[str, Any]) -> Iterator[Problem]:
    text = spec.get("timeout")
    if text is None:
        return
    try:
        value = seconds(text)
    except ValueError as error:
        yield Problem(INVALID, ("timeout",), f"{error}; write one such as {DEFAULT_TIMEOUT}")
        return
    if not _SHORTEST <= value <= _LONGEST:
        message = f"{text} is out of range; use 1ms to 1m"
        yield Problem(INVALID, ("timeout",), message)


def _short_timeout(spec: Mapping[str, Any], agent: Mapping[str, Any] | None) -> Iterator[Problem]:
    """What is late is left out, if the extender is ignorable: a filter that does not filter."""
    text = spec.get("timeout")
    if text is None or agent is None or "filter" not in agent_verbs(agent):
        return
    if seconds(text) < SHORTEST_OF_FILTER:
        yield Problem(
            SHORT_TIMEOUT,
            ("timeout",),
            f"an agent's filter may wait 50 ms for news of a changed node, and after {text} "
            "kube-scheduler counts it as one that does not answer",
            "use 100ms or more",
            WARNING,
        )


def _is_narrowed(problem: Problem, agent: Mapping[str, Any] | None) -> bool:
    """Whether a warning is void because the agent itself looks at the pods."""
    narrow = agent is not None and (agent.get("schedulerNames") or agent.get("podSelector"))
    return problem.reason == "ExtenderOfAllProfiles" and bool(narrow)


def _service_name(spec: Mapping[str, Any]) -> Iterator[Problem]:
    """The control plane's schedulers are on their node's network and use its DNS."""
    host = urlsplit(str(spec.get("url") or "")).hostname or ""
    inside = host.endswith((".svc", ".svc.cluster.local"))
    if spec.get("scheduler") or not inside:
        return
    yield Problem(
        UNRESOLVABLE,
        ("url",),
        f"\"{host}\" is a name of the cluster's own DNS, and the control plane's schedulers are on "
        "their node's network, where nobody asks that",
        "use the Service's clusterIP, or let the operator run the agent",
        WARNING,
    )
