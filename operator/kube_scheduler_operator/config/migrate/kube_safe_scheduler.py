"""Conversion of kube-safe-scheduler to a SecondaryScheduler and SchedulerExtenders.

Its manifests run an old kube-scheduler and its agents in one pod. The Policy refers to the agents
by port and verb (`predicates/safe-overload`). A policy of the same name, in a container of the
scheduler's pod, replaces each agent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from ...base.findings import Path, listing
from ...base.go_values import nanoseconds
from ...base.objects import entries, mapping
from ...kube.resource import SCHEDULER_EXTENDERS
from ...scheduling.policies.arguments import described
from ...scheduling.policies.policy import UnknownPolicyError, policy_class
from .changes import ConversionLog
from .convert import Conversion
from .operator_objects import (
    ConvertedObjects,
    extender_timeout,
    free_name,
    operator_object,
    secondary_objects,
    served_names,
)

DEFAULT_PORT: Final = 80

_LOCAL: Final = ("localhost", "127.0.0.1", "::1")
_PORT: Final = re.compile(r"[1-9][0-9]{0,4}")
_VERBS: Final = ("filterVerb", "prioritizeVerb", "bindVerb", "preemptVerb")
_VERB: Final = re.compile(r"(predicates|priorities)/([a-z0-9-]+)")
_AGENTS: Final = {
    "safe-overload": "safe", "safe-balance": "safe", "pigeon-holing": "pigeon",
    "rl-priority": "rl",
}  # fmt: skip
"""Policy -> its agent in kube-safe-scheduler, if their names differ."""
_LEARNING: Final = "rl-priority"
_LEVELS: Final = ("TRACE", "DEBUG", "INFO", "WARNING", "ERROR", "ALERT")


@dataclass(slots=True)
class AgentContainer:
    """The use of one container of agents."""

    port: int
    env: Mapping[str, str]
    filters: dict[str, Path] = field(default_factory=dict)  # policy -> path of the filterVerb
    weights: dict[str, int] = field(default_factory=dict)  # scoring policy -> its weight
    extenders: dict[Path, Mapping[str, Any]] = field(default_factory=dict)  # that call it

    @property
    def policies(self) -> tuple[str, ...]:
        """All policies, in the order of the configuration."""
        return tuple(dict.fromkeys((*self.filters, *self.weights)))


def convert_agents(
    conversion: Conversion,
    documents: Sequence[Any],
    *,
    used: set[str],
    name: str = "",
    namespace: str = "",
) -> ConvertedObjects | None:
    """Convert to objects; None if no workload runs agents that the configuration uses.

    The Deployment in `documents` has the agents' environment variables. `name` and `namespace` are
    those of the SecondaryScheduler; the default name is the schedulerName. `used` contains the
    names of other SchedulerExtenders; the new ones are added.
    """
    config = conversion.config
    report = ConversionLog()
    running = _replaceable(config, documents)
    containers: dict[int, AgentContainer] = {}
    replaced: list[int] = []
    for index, extender in enumerate(config.get("extenders") or ()):
        port, policies = _agents_of(extender)
        path: Path = ("extenders", index)
        if port in running:
            known = containers.setdefault(port, AgentContainer(port, running[port]))
            known.extenders[path] = extender
            if policy := policies.get("filterVerb"):
                known.filters[policy] = (*path, "filterVerb")
            if policy := policies.get("prioritizeVerb"):
                known.weights[policy] = int(extender.get("weight") or 1)
            replaced.append(index)
        elif policies:
            why = f"another extender calls port {port} for what no policy of the operator does"
            report.same(path, f"{listing(policies.values())} not replaced by a policy", why)
    if not containers:
        return None
    served = served_names(config, name)
    scheduler = name or next(iter(served.values()))
    agents = [_extender(container, scheduler, used, report) for container in containers.values()]
    objects = secondary_objects(
        config, scheduler, namespace, served, used, report, replaced=replaced
    )
    objects[1:1] = agents
    _report_removal(report)
    all_changes = tuple(dict.fromkeys((*conversion.changes, *report.changes())))
    return ConvertedObjects(tuple(objects), all_changes, conversion.problems)


def agent_containers(config: Mapping[str, Any], documents: Sequence[Any]) -> frozenset[str]:
    """Return the names of the containers that run agents which the configuration uses."""
    called = {_agents_of(extender)[0] for extender in config.get("extenders") or ()}
    ports = called & _replaceable(config, documents).keys()
    return frozenset(name for name, port, _ in _containers(documents) if port in ports)


def _replaceable(
    config: Mapping[str, Any], documents: Sequence[Any]
) -> dict[int, Mapping[str, str]]:
    """Map ports of containers to their environment variables, without those of other agents.

    A container with an agent that has no policy here stays, with all of its agents.
    """
    agents = [_agents_of(extender) for extender in config.get("extenders") or ()]
    others = {port for port, policies in agents if not policies}
    return {port: env for _, port, env in _containers(documents) if port not in others}


def _agents_of(extender: Any) -> tuple[int, Mapping[str, str]]:
    """Return (port, field of a verb -> policy), without policies if a verb belongs to no policy.

    The port is -1 for an extender outside of the Pod, and for one that is never called.
    """
    entry = mapping(extender)
    try:
        url = urlsplit(str(entry.get("urlPrefix") or ""))
        port = url.port or DEFAULT_PORT
    except ValueError:
        return -1, {}
    verbs = {key: str(entry[key]) for key in _VERBS if entry.get(key)}
    matches = {key: match for key, verb in verbs.items() if (match := _VERB.fullmatch(verb))}
    policies = {key: match[2] for key, match in matches.items() if _exists(match[2])}
    if url.hostname not in _LOCAL or not verbs:
        return -1, {}
    return port, policies if len(policies) == len(verbs) else {}


def _exists(policy: str) -> bool:
    try:
        policy_class(policy)
    except UnknownPolicyError:
        return False
    return True


def _containers(documents: Sequence[Any]) -> Iterator[tuple[str, int, dict[str, str]]]:
    """Yield (name, HTTP_PORT, other environment variables) of containers that may be agents.

    The default port is 80, if the container or its image confirms it.
    """
    for document in documents:
        spec = mapping(mapping(document).get("spec"))
        pod = mapping(mapping(spec.get("template")).get("spec")) or spec
        for container in _objects(pod, "containers"):
            env = {
                str(entry.get("name")): str(entry.get("value", ""))
                for entry in _objects(container, "env")
            }
            port = env.pop("HTTP_PORT", "")
            ports = [entry.get("containerPort") for entry in _objects(container, "ports")]
            name = str(container.get("name"))
            if _PORT.fullmatch(port):
                yield name, int(port), env
            elif not port and (DEFAULT_PORT in ports or "sched-ext" in str(container.get("image"))):
                yield name, DEFAULT_PORT, env


def _objects(owner: Mapping[str, Any], key: str) -> Iterator[Mapping[str, Any]]:
    """Return the objects in a list, which no API server has validated."""
    return (item for item in entries(owner.get(key)) if isinstance(item, dict))


# --- the objects ------------------------------------------------------------------------------


def _extender(
    container: AgentContainer, scheduler: str, used: set[str], report: ConversionLog
) -> dict[str, Any]:
    name = _name(container, used)
    path = next(iter(container.extenders))
    policies = [_policy(name, container, path, report) for name in container.policies]
    agent: dict[str, Any] = {"policies": policies, **_environment(container, path, report)}
    verbs = {"filter": bool(container.filters), "prioritize": bool(container.weights)}
    able = any(policy_class(name).filters for name in container.policies)
    if not container.weights or verbs["filter"] != able:
        agent["verbs"] = verbs
    if container.port >= 1024:
        agent["port"] = container.port
    else:
        why = "an agent has no privileges, so the operator chooses a port from 5401"
        report.same((*path, "urlPrefix"), f"port {container.port} replaced", why)
    total = sum(container.weights.values())
    if len(container.weights) > 1:
        why = (
            f"an agent returns the weighted mean of its policies' scores with weight {total}; it "
            "is an integer from 0 to 10, so differences get smaller"
        )
        what = f"{len(container.weights)} policies combined into one extender"
        report.differs((*path, "weight"), what, why)
    spec = {"scheduler": scheduler, "agent": agent, "weight": max(total, 1)}
    if not container.weights:
        del spec["weight"]
    spec |= _behaviour(container, report)
    return operator_object(SCHEDULER_EXTENDERS, name, spec)


def _name(container: AgentContainer, used: set[str]) -> str:
    """Return the agent's old name, numbered if several agents have it."""
    agents = dict.fromkeys(_AGENTS.get(policy, policy) for policy in container.policies)
    name = free_name("-".join(agents)[:36].rstrip("-"), used)
    used.add(name)
    return name


def _policy(
    name: str, container: AgentContainer, path: Path, report: ConversionLog
) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": name, "weight": container.weights.get(name, 0)}
    cls = policy_class(name)
    if any(argument.name == "annotations" for argument in described(cls.Arguments)):
        entry["arguments"] = {"annotations": "safe"}
        why = (
            "kube-safe-scheduler's node-annotator writes them; without it, create a LoadPolicy and "
            "remove the argument annotations"
        )
        report.same(path, f"{name} set to read the same annotations", why)
    if name == _LEARNING:
        why = (
            "it replaces kubeRL's monitor and etcd, and it starts without their values; run it as "
            "docs/examples/rl-priority.yaml does, or all nodes have the same score"
        )
        report.differs(path, f"{name} set to read what rl-monitor learns", why)
    if container.filters and cls.filters and name not in container.filters:
        why = "all policies of an agent filter or none; give it its own SchedulerExtender"
        report.differs(path, f"{name} set to filter as well", why)
    return entry


def _environment(container: AgentContainer, path: Path, report: ConversionLog) -> dict[str, Any]:
    env = {key: value for key, value in container.env.items() if key != "LOG_LEVEL"}
    settings: dict[str, Any] = {}
    level = container.env.get("LOG_LEVEL", "")
    if level in _LEVELS and level != "INFO":
        settings["logLevel"] = level
    known = {variable for name in container.policies for variable in policy_class(name).env}
    for key in env.keys() - known:
        report.same(path, f"environment variable {key} removed", "no policy uses it")
    variables = {key: value for key, value in env.items() if key in known}
    return {**settings, "env": variables} if variables else settings


def _behaviour(container: AgentContainer, report: ConversionLog) -> dict[str, Any]:
    """Return the fields that the extenders of a container set, and report other defaults."""
    extenders = container.extenders
    path = next(iter(extenders))
    spec: dict[str, Any] = {}
    if not all(extender.get("ignorable") for extender in extenders.values()):
        why = (
            "pods are scheduled while the agent is unavailable; set ignorable: false to prevent "
            "that"
        )
        report.differs((*path, "ignorable"), "set to true", why)
    timed = {
        where: extender for where, extender in extenders.items() if extender.get("httpTimeout")
    }
    if timed:
        spec["timeout"] = max(
            (extender_timeout(extender, where, report) for where, extender in timed.items()),
            key=nanoseconds,
        )
    else:
        why = "with the old 5s every pod waits that long when the agent hangs"
        report.differs((*path, "httpTimeout"), "set to 500ms", why)
    resources = [extender.get("managedResources") or [] for extender in extenders.values()]
    if all(managed == resources[0] for managed in resources):
        spec |= {"managedResources": resources[0]} if resources[0] else {}
    else:
        why = "policies of an agent are called together; give each its own SchedulerExtender"
        report.differs((*path, "managedResources"), "removed", why)
    why = "the agent watches Nodes itself, so calls carry node names only"
    report.same((*path, "nodeCacheCapable"), "set to true", why)
    return spec


def _report_removal(report: ConversionLog) -> None:
    why = (
        "its agents have the same policies; remove the Deployment, ServiceAccount and RBAC of "
        "kube-safe-scheduler"
    )
    report.same((), "the scheduler's pods replaced by pods of the operator", why)
