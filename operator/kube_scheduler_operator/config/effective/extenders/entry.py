"""One SchedulerExtender as an entry of kube-scheduler's `extenders`, validated by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import urlsplit

from ....base import names
from ....base.bounded_cache import cached_by_content
from ....base.crd_schema import validate_object
from ....base.findings import WARNING, Path, Problem
from ....base.foreign_text import foreign
from ....base.go_values import seconds
from ....base.objects import mapping
from ....kube.resource import SCHEDULER_EXTENDERS
from ...language.decode import INVALID, decode_problems
from ...language.plugins.target_scheduler import Target
from ...language.schema import CONFIGURATION
from ...language.validation.extenders import INVALID_EXTENDER, validate_extenders
from ...language.warnings.extenders import extender_warnings

DEFINITION: Final = f"{names.SCHEDULEREXTENDERS}.yaml"
LOOPBACK: Final = "127.0.0.1"
VERBS: Final = ("filter", "prioritize", "bind", "preempt")
DEFAULT_TIMEOUT: Final = "500ms"
UNRESOLVABLE: Final = "ServiceName"
SHORT_TIMEOUT: Final = "ShortTimeout"
SHORTEST_OF_FILTER: Final = 0.1
"""The recommended minimum, seconds: twice the wait of an agent's filter for newer node views."""

_SHORTEST, _LONGEST = 0.001, 60.0
_LONGEST_NAME: Final = 40
_DIGITS_OF_A_PORT: Final = 5


@dataclass(frozen=True, slots=True)
class EntryCheck:
    """The result for one version of a SchedulerExtender's spec, in which the paths are."""

    entry: Mapping[str, Any]  # the entry of `extenders`; the entry of an agent has no urlPrefix yet
    problems: tuple[Problem, ...]
    warnings: tuple[Problem, ...] = ()  # empty if there are problems


def agent_of(spec: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the agent of a spec; None for an extender that the operator does not run."""
    agent = spec.get("agent")
    return agent if isinstance(agent, Mapping) and not spec.get("url") else None


def agent_verbs(agent: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the verbs of an agent: those of its spec, otherwise those of its policies."""
    abilities = [ability(mapping(entry)) for entry in agent.get("policies") or ()]
    default = {
        "filter": any(policy.filters for policy in abilities),
        "prioritize": any(policy.scores for policy in abilities),
    }
    configured = mapping(agent.get("verbs"))
    return tuple(verb for verb in VERBS if configured.get(verb, default.get(verb, False)))


def agent_url(name: str, port: int) -> str:
    """Return the URL at which the scheduler calls an agent, without the verb."""
    return f"http://{LOOPBACK}:{port}/{name}"


def agent_name(url: str) -> str:
    """Return the SchedulerExtender whose agent has this URL; empty if it is not an agent's."""
    url = url.rstrip("/")  # as kube-scheduler does
    port, _, name = url.removeprefix(f"http://{LOOPBACK}:").partition("/")
    is_port = port.isdecimal() and len(port) <= _DIGITS_OF_A_PORT
    return name if is_port and url == agent_url(name, int(port)) else ""


@cached_by_content(256)
def check_entry(
    name: str, spec: Mapping[str, Any], target: Target, profiles: int = 1
) -> EntryCheck:
    """Build and validate the entry of a spec for a kube-scheduler with that number of profiles."""
    problems = [
        replace(problem, path=problem.path[1:])
        for problem in validate_object({"spec": spec}, DEFINITION, SCHEDULER_EXTENDERS.version)
    ]
    if problems:
        return EntryCheck({}, tuple(problems))
    problems = [*_name(name), *_rules(spec)]
    agent = agent_of(spec)
    if agent is not None:
        problems += check_policies(agent)
    entry = _entry(spec)
    whole = {"urlPrefix": agent_url(name, 1024), **entry}
    config = {"extenders": [whole]}
    in_entry = list(decode_problems(config, CONFIGURATION, (), target.minor, strict=False))
    in_entry = in_entry or list(validate_extenders([whole]))
    problems += (_at_field(problem, spec) for problem in in_entry)
    warnings: tuple[Problem, ...] = ()
    if not problems:
        general = extender_warnings(whole, ("extenders", 0), profiles)
        relevant = [_at_field(w, spec) for w in general if not _is_narrowed(w, agent)]
        warnings = (
            *relevant,
            *_service_name(spec),
            *_short_timeout(spec, agent),
            *_overridden_arguments(agent or {}),
        )
    return EntryCheck(entry, tuple(problems), warnings)


def _entry(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a spec to an entry of kube-scheduler's configuration, without default values."""
    agent = agent_of(spec)
    verbs: Mapping[str, Any] = mapping(spec.get("verbs"))
    if agent is not None:
        verbs = {verb: verb for verb in agent_verbs(agent)}
    entry: dict[str, Any] = {f"{verb}Verb": verbs[verb] for verb in VERBS if verbs.get(verb)}
    if entry.get("prioritizeVerb"):
        entry["weight"] = spec.get("weight") or 1
    url = str(spec.get("url") or "")
    if agent is None:
        entry["urlPrefix"] = url.rstrip("/")
        if url.startswith("https://"):
            entry["enableHTTPS"] = True
            if tls := {k: v for k, v in mapping(spec.get("tls")).items() if v}:
                entry["tlsConfig"] = tls
    entry["httpTimeout"] = spec.get("timeout") or DEFAULT_TIMEOUT
    if agent is not None or spec.get("nodeCacheCapable", True):
        entry["nodeCacheCapable"] = True
    if spec.get("ignorable", True):
        entry["ignorable"] = True
    if managed := spec.get("managedResources"):
        entry["managedResources"] = [
            {key: value for key, value in resource.items() if key == "name" or value}
            for resource in managed
        ]
    return entry


_FIELDS: Final[Mapping[str, Path]] = {
    "urlPrefix": ("url",),
    "httpTimeout": ("timeout",),
    "enableHTTPS": ("url",),
    "tlsConfig": ("tls",),
}


def field_of(path: Path, spec: Mapping[str, Any]) -> Path:
    """Map a path in the entry to a path in its spec."""
    if not path:
        return ()
    top, *rest = path
    if isinstance(top, str) and top.endswith("Verb"):
        verb = top.removesuffix("Verb")
        return ("agent", "verbs", verb) if agent_of(spec) is not None else ("verbs", verb)
    return (*_FIELDS.get(str(top), (top,)), *rest)


def _at_field(problem: Problem, spec: Mapping[str, Any]) -> Problem:
    """Map a problem in `extenders[0]` back to the spec field that caused it."""
    message, fix = (
        text.replace("tlsConfig", "tls").replace("httpTimeout", "timeout")
        for text in (problem.message, problem.fix)
    )
    path = field_of(problem.path[2:], spec)
    return replace(problem, path=path, message=message, fix=fix)


def _name(name: str) -> Iterator[Problem]:
    if len(name) > _LONGEST_NAME or name != name.lower() or "." in name:
        yield Problem(
            INVALID,
            (),
            f'"{name}" becomes part of URLs and Pod names; use a name of at most {_LONGEST_NAME} '
            "lowercase letters, digits and dashes",
        )


def _rules(spec: Mapping[str, Any]) -> Iterator[Problem]:
    """Apply the CEL rules of the CustomResourceDefinition to files that no API server validated."""
    url, agent = spec.get("url"), spec.get("agent")
    if bool(url) == (agent is not None):
        yield Problem(
            INVALID_EXTENDER,
            ("url",),
            f"{'both url and agent are' if url else 'neither url nor agent is'} set; set either "
            "url, for an extender that runs elsewhere, or agent, for an extender that the operator "
            "runs",
        )
    if url:
        narrowed = [key for key in ("podSelector", "schedulerNames") if mapping(agent).get(key)]
        if narrowed:
            yield Problem(
                INVALID_EXTENDER,
                ("agent", narrowed[0]),
                "kube-scheduler calls an extender for all Pods, and only an agent of the operator "
                "can select Pods; select them in the server behind the URL, or limit the calls "
                "with managedResources",
            )
        if not any(mapping(spec.get("verbs")).values()):
            yield Problem(
                INVALID_EXTENDER,
                ("verbs",),
                "an extender without verbs is never called; set filter, prioritize, bind or "
                "preempt to the last segment of its URL",
            )
    if agent is not None:
        yield from _agent_rules(spec, agent)
    if spec.get("tls") and not str(url or "").startswith("https://"):
        message = "tls is for a url that begins with https://; remove it"
        yield Problem(INVALID_EXTENDER, ("tls",), message)
    tls = mapping(spec.get("tls"))
    if bool(tls.get("certFile")) != bool(tls.get("keyFile")):
        message = "certFile and keyFile need each other; set both or neither"
        yield Problem(INVALID_EXTENDER, ("tls",), message)
    yield from _timeout(spec)


def _agent_rules(spec: Mapping[str, Any], agent: Mapping[str, Any]) -> Iterator[Problem]:
    if spec.get("verbs"):
        message = "verbs apply to a url; for an agent, set agent.verbs to true or false"
        yield Problem(INVALID_EXTENDER, ("verbs",), message)
    if not agent_verbs(agent):
        message = "an agent without verbs is never called; leave at least one enabled"
        yield Problem(INVALID_EXTENDER, ("agent", "verbs"), message)
    port = int(agent.get("port") or 0)
    if 0 < port < 1024:
        message = (
            f"port {port} needs privileges that the agent does not have; use 0 or 1024 to 65535"
        )
        yield Problem(INVALID, ("agent", "port"), message)
    if port in TAKEN_PORTS:
        message = f"port {port} is used by Kubernetes on control-plane nodes; use 0 or another port"
        yield Problem(INVALID, ("agent", "port"), message)


TAKEN_PORTS: Final = frozenset({2379, 2380, 2381, 6443, 10248, 10249, 10250, 10256, 10257, 10259})
"""The ports of etcd, API server, kubelet, kube-proxy, controller manager and scheduler."""


def _timeout(spec: Mapping[str, Any]) -> Iterator[Problem]:
    text = spec.get("timeout")
    if text in (None, ""):
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
    """Warn that kube-scheduler ignores a late ignorable extender, so its filter has no effect."""
    text = spec.get("timeout")
    if not text or agent is None or "filter" not in agent_verbs(agent):
        return
    if seconds(text) < SHORTEST_OF_FILTER:
        yield Problem(
            SHORT_TIMEOUT,
            ("timeout",),
            f"an agent's filter may wait 50 ms for an update of a changed node, and kube-scheduler "
            f"ignores the filter after {text}",
            "use 100ms or more",
            WARNING,
        )


def _is_narrowed(problem: Problem, agent: Mapping[str, Any] | None) -> bool:
    """Return whether a warning does not apply because the agent itself selects Pods."""
    narrow = agent is not None and (agent.get("schedulerNames") or agent.get("podSelector"))
    return problem.reason == "ExtenderOfAllProfiles" and bool(narrow)


def _service_name(spec: Mapping[str, Any]) -> Iterator[Problem]:
    """Warn that the control plane's schedulers use their node's network and DNS."""
    host = urlsplit(str(spec.get("url") or "")).hostname or ""
    inside = host.endswith((".svc", ".svc.cluster.local"))
    if spec.get("scheduler") or not inside:
        return
    yield Problem(
        UNRESOLVABLE,
        ("url",),
        f"\"{host}\" is a name in the cluster's DNS, but the control plane's schedulers use their "
        "node's network and DNS",
        "use the Service's clusterIP, or let the operator run the agent",
        WARNING,
    )


# --- policies of agents --------------------------------------------------------------------------
# An agent with a custom image may have other policies, even under the same names, so they are not
# validated.

UNKNOWN_POLICY: Final = "UnknownPolicy"
INVALID_ARGUMENTS: Final = "InvalidArguments"
OVERRIDDEN_ARGUMENT: Final = "OverriddenArgument"
_SHOWN_VALUE: Final = 64


@dataclass(frozen=True, slots=True)
class Ability:
    """The verbs that a policy implements."""

    filters: bool
    scores: bool


def policy_name(entry: Mapping[str, Any]) -> str:
    return str(entry.get("policy") or entry.get("name") or "")


def ability(entry: Mapping[str, Any]) -> Ability:
    """Return the verbs of an entry of `agent.policies`; an unknown policy may have both."""
    from ....scheduling.policies.policy import UnknownPolicyError, policy_class

    has_weight = int(entry.get("weight", 1)) > 0
    try:
        policy = policy_class(policy_name(entry))
    except UnknownPolicyError:
        return Ability(filters=True, scores=has_weight)
    return Ability(policy.filters, policy.scores and has_weight)


def _overridden_arguments(agent: Mapping[str, Any]) -> Iterator[Problem]:
    """Warn of arguments of policies that a variable of the agent overrides."""
    from ....scheduling.policies.policy import environment_arguments

    variables = mapping(agent.get("env"))
    if agent.get("image") or not variables:
        return
    for index, entry in enumerate(map(mapping, agent.get("policies") or ())):
        arguments = mapping(entry.get("arguments"))
        for variable, argument in environment_arguments(policy_name(entry)).items():
            if variable in variables and argument in arguments:
                yield Problem(
                    OVERRIDDEN_ARGUMENT,
                    ("agent", "policies", index, "arguments", argument),
                    f"env.{variable} of the agent overrides {argument}: the policy uses "
                    f'"{foreign(str(variables[variable]), _SHOWN_VALUE)}"',
                    f"remove {argument}, or env.{variable}",
                    WARNING,
                )


def check_policies(agent: Mapping[str, Any]) -> Iterator[Problem]:
    """Find the errors in an agent's policies; paths are in the spec."""
    # Imported here, because only this function needs the policies.
    from ....scheduling.policies.policy import ArgumentsError, UnknownPolicyError, read_arguments

    if agent.get("image"):
        return
    for index, entry in enumerate(map(mapping, agent.get("policies") or ())):
        path: Path = ("agent", "policies", index)
        try:
            read_arguments(policy_name(entry), mapping(entry.get("arguments")))
        except UnknownPolicyError as error:
            field = "policy" if entry.get("policy") else "name"
            yield Problem(UNKNOWN_POLICY, (*path, field), str(error))
        except ArgumentsError as error:
            for problem in error.problems:
                yield Problem(INVALID_ARGUMENTS, (*path, *problem.path), problem.message)
