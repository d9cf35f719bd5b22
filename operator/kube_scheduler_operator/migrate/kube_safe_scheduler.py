"""From kube-safe-scheduler to a SecondaryScheduler and SchedulerExtenders.

Its manifests run an old kube-scheduler and the agents in one pod; the Policy names them by port
and verb (`predicates/safe-overload`). What each agent did, a policy of the same name does in a
container of the scheduler's pod, and every difference is told.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from ..base.findings import Path, Problem
from ..base.objects import mapping
from ..policies.arguments import described
from ..policies.policy import UnknownPolicyError, policy_class
from ..schedulerconfig.merge import DEFAULT_SCHEDULER
from .changes import Change, Report
from .objects import Converted, own_object, secondary_scheduler

DEFAULT_NAME: Final = "my-scheduler"
DEFAULT_PORT: Final = 80

_LOCAL: Final = ("localhost", "127.0.0.1", "::1")
_VERB: Final = re.compile(r"(predicates|priorities)/([a-z0-9-]+)")
_AGENTS: Final = {
    "safe-overload": "safe", "safe-balance": "safe", "pigeon-holing": "pigeon",
    "rl-priority": "rl",
}  # fmt: skip
"""Policy -> the agent of kube-safe-scheduler that has it, where that is called otherwise."""
_LEVELS: Final = ("TRACE", "DEBUG", "INFO", "WARNING", "ERROR", "ALERT")


@dataclass(slots=True)
class Container:
    """What one container of agents is asked.

    Attributes:
        port: where it listens.
        env: its environment.
        filters: policies that filter, with the places where the configuration says so.
        weights: policy that scores -> its weight.
        paths: the entries of the configuration that are about it.
    """

    port: int
    env: Mapping[str, str]
    filters: dict[str, Path] = field(default_factory=dict)
    weights: dict[str, int] = field(default_factory=dict)
    paths: list[Path] = field(default_factory=list)

    @property
    def policies(self) -> tuple[str, ...]:
        """All of them, in the order in which the configuration has them."""
        return tuple(dict.fromkeys((*self.filters, *self.weights)))


def convert_agents(
    config: Mapping[str, Any],
    changes: Sequence[Change],
    problems: Sequence[Problem],
    documents: Sequence[Any],
    *,
    name: str = "",
    namespace: str = "",
) -> Converted | None:
    """The objects that do the same; None: no workload here runs agents that this configuration has.

    Args:
        config: KubeSchedulerConfiguration v1, as converted.
        changes: what that conversion said.
        problems: why a scheduler would not start with it.
        documents: of the same file; the Deployment among them has the agents' environment.
        name: of the SecondaryScheduler; empty: what pods ask for.
        namespace: where it is to run.
    """
    running = dict(_containers(documents))
    found: dict[int, Container] = {}
    others = []
    for index, extender in enumerate(config.get("extenders") or ()):
        port = _agent_port(extender)
        if port in running:
            known = found.setdefault(port, Container(port, running[port]))
            _take(known, extender, ("extenders", index))
        else:
            others.append(extender)
    if not found:
        return None
    report = Report()
    served = _served(config, name)
    rest = {key: value for key, value in config.items() if key != "extenders"}
    if others:
        rest["extenders"] = others
    scheduler = name or next(iter(served.values()))
    objects = [secondary_scheduler(rest, scheduler, namespace, served, report)]
    used: set[str] = set()
    objects += [_extender(each, scheduler, used, report) for each in found.values()]
    _tell(report)
    every = tuple(dict.fromkeys((*changes, *report.changes())))
    return Converted(tuple(objects), every, tuple(problems))


def _served(config: Mapping[str, Any], name: str) -> dict[str, str]:
    """SchedulerName -> what it is called now: nobody but the control plane has the default one."""
    asked = [
        str(mapping(profile).get("schedulerName") or DEFAULT_SCHEDULER)
        for profile in config.get("profiles") or [{}]
    ]
    other = name or DEFAULT_NAME
    return {each: other if each == DEFAULT_SCHEDULER else each for each in asked}


def _agent_port(extender: Any) -> int:
    """The port of an extender of which every verb is an agent's; -1: it is not one of them."""
    entry = mapping(extender)
    try:
        url = urlsplit(str(entry.get("urlPrefix") or ""))
        port = url.port or DEFAULT_PORT
    except ValueError:
        return -1
    verbs = [str(entry[key]) for key in ("filterVerb", "prioritizeVerb") if entry.get(key)]
    known = [match for verb in verbs if (match := _VERB.fullmatch(verb)) and _exists(match[2])]
    agents = bool(verbs) and len(known) == len(verbs)
    return port if agents and url.hostname in _LOCAL else -1


def _exists(policy: str) -> bool:
    try:
        policy_class(policy)
    except UnknownPolicyError:
        return False
    return True


def _take(container: Container, extender: Any, path: Path) -> None:
    entry = mapping(extender)
    container.paths.append(path)
    for key in ("filterVerb", "prioritizeVerb"):
        match = _VERB.fullmatch(str(entry.get(key) or ""))
        if match is None:
            continue
        if key == "filterVerb":
            container.filters[match[2]] = (*path, key)
        else:
            container.weights[match[2]] = int(entry.get("weight") or 1)


def _containers(documents: Sequence[Any]) -> Iterator[tuple[int, dict[str, str]]]:
    """(port, environment) of all containers that may be agents: HTTP_PORT says where they listen.

    One that does not say it listens at 80; then it must have no other port.
    """
    for document in documents:
        spec = mapping(mapping(document).get("spec"))
        pod = mapping(mapping(spec.get("template")).get("spec")) or spec
        for each in pod.get("containers") or ():
            one = mapping(each)
            env = {
                str(mapping(entry).get("name")): str(mapping(entry).get("value", ""))
                for entry in one.get("env") or ()
            }
            port = env.pop("HTTP_PORT", "")
            ports = [mapping(entry).get("containerPort") for entry in one.get("ports") or ()]
            if port.isdecimal():
                yield int(port), env
            elif not port and (DEFAULT_PORT in ports or "sched-ext" in str(one.get("image"))):
                yield DEFAULT_PORT, env


# --- the objects ------------------------------------------------------------------------------


def _extender(
    container: Container, scheduler: str, used: set[str], report: Report
) -> dict[str, Any]:
    name = _name(container, used)
    path = container.paths[0]
    policies = [_policy(each, container, path, report) for each in container.policies]
    agent: dict[str, Any] = {"policies": policies, **_environment(container, path, report)}
    verbs = {"filter": bool(container.filters), "prioritize": bool(container.weights)}
    able = any(policy_class(each).filters for each in container.policies)
    if not container.weights or verbs["filter"] != able:
        agent["verbs"] = verbs
    if container.port >= 1024:
        agent["port"] = container.port
    else:
        why = "an agent has no privileges, so the operator chooses one from 5401 on"
        report.same((*path, "urlPrefix"), f"not port {container.port}", why)
    total = sum(container.weights.values())
    if len(container.weights) > 1:
        why = (
            f"the policies of one agent make one score, their weighted mean, whose weight is "
            f"{total}; it is a whole number from 0 to 10, so differences get smaller"
        )
        report.differs((*path, "weight"), f"one extender of {len(container.weights)}", why)
    spec = {"scheduler": scheduler, "agent": agent, "weight": max(total, 1)}
    if not container.weights:
        del spec["weight"]
    _behaviour(path, report)
    return own_object("SchedulerExtender", name, spec)


def _name(container: Container, used: set[str]) -> str:
    """As the agent was called; further ones of the same kind are numbered."""
    kinds = dict.fromkeys(_AGENTS.get(each, each) for each in container.policies)
    base = "-".join(kinds)[:36].rstrip("-")
    name, number = base, 1
    while name in used:
        number += 1
        name = f"{base}-{number}"
    used.add(name)
    return name


def _policy(name: str, container: Container, path: Path, report: Report) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": name, "weight": container.weights.get(name, 0)}
    cls = policy_class(name)
    if any(each.name == "annotations" for each in described(cls.Arguments)):
        entry["arguments"] = {"annotations": "safe"}
        why = (
            "those of kube-safe-scheduler's node-annotator; without it make a LoadPolicy and leave "
            "the argument annotations out"
        )
        report.same(path, f"{name} reads the annotations that it read", why)
    if container.filters and cls.filters and name not in container.filters:
        why = "the policies of an agent filter all or none; give it a SchedulerExtender of its own"
        report.differs(path, f"{name} filters as well", why)
    return entry


def _environment(container: Container, path: Path, report: Report) -> dict[str, Any]:
    env = {key: value for key, value in container.env.items() if key != "LOG_LEVEL"}
    found: dict[str, Any] = {}
    level = container.env.get("LOG_LEVEL", "")
    if level in _LEVELS and level != "INFO":
        found["logLevel"] = level
    known = {each for name in container.policies for each in policy_class(name).env}
    for key in env.keys() - known:
        report.same(path, f"the environment variable {key} is left out", "no policy here reads it")
    kept = {key: value for key, value in env.items() if key in known}
    return {**found, "env": kept} if kept else found


def _behaviour(path: Path, report: Report) -> None:
    why = "set ignorable: false for what it was: then no pod is scheduled while the agent is away"
    report.differs((*path, "ignorable"), "pods are scheduled without it while it is away", why)
    why = "it was 5s, for which all pods wait when the agent hangs"
    report.differs((*path, "httpTimeout"), "each call may take 500ms", why)
    why = "the agent watches them itself, so whole Node objects do not travel with every call"
    report.same((*path, "nodeCacheCapable"), "only names of nodes are sent", why)


def _tell(report: Report) -> None:
    why = (
        "the operator's own agents have the same policies; images, Deployment, account and rights "
        "of kube-safe-scheduler can go"
    )
    report.same((), "the scheduler's pods are made by the operator", why)
