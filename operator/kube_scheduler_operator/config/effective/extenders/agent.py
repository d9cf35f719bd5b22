"""One agent: its configuration file, its container, and what users may set for it.

File and container are the same for an agent on a control-plane node's network and for a sidecar of
a SecondaryScheduler.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ....base import names
from ....base.environment import is_of_the_process
from ....base.findings import NOT_ALLOWED, WARNING, Path, Problem, did_you_mean, listing
from ....base.images import AllowedImages
from ....base.objects import mapping
from ....base.templates import canonical_json
from .entry import LOOPBACK, agent_of, agent_verbs, policy_name

CONFIG_KEY: Final = "extender.json"
CONFIG_DIRECTORY: Final = "/etc/kube-scheduler-operator/extender"
LOAD_DIRECTORY: Final = "/etc/kube-scheduler-operator/load"
LOAD_KEY: Final = "policy.json"
LOAD_AWARE: Final = "load-aware"
LOAD_POLICY_NOT_FOUND: Final = "LoadPolicyNotFound"
HEALTH_PORTS_AFTER: Final = 10000
"""A sidecar's port for probes and metrics is this much higher than the port that serves calls."""

_REQUESTS: Final[Mapping[str, Any]] = {"requests": {"cpu": "50m", "memory": "96Mi"}}
_RESOURCES: Final[Mapping[str, Any]] = {**_REQUESTS, "limits": {"memory": "2Gi"}}
"""Three times its use for calls with 5,000 complete Nodes (docs/benchmarks.md)."""

_PATIENT: Final[Mapping[str, Any]] = {
    "periodSeconds": 10, "timeoutSeconds": 5, "failureThreshold": 6,
}  # fmt: skip
_NOTICED: Final[Mapping[str, Any]] = {
    "periodSeconds": 5, "timeoutSeconds": 5, "failureThreshold": 3,
    "terminationGracePeriodSeconds": 1,
}  # fmt: skip
"""Only its restart shows that a sidecar hangs, and a process that hangs does not use its grace."""

POLICY_FILE: Final = "policyFile"
"""The only argument of a policy that names a file."""

_COMMON: Final = ("HTTP_PORT", "LOG_LEVEL", "TZ")

CONFINEMENT: Final[Mapping[str, Any]] = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}


@dataclass(frozen=True, slots=True)
class ManagedAgent:
    name: str  # of the SchedulerExtender
    spec: Mapping[str, Any]  # its `spec.agent`
    port: int  # the port at 127.0.0.1 that its scheduler calls
    # the port of a sidecar for the kubelet and Prometheus, which cannot reach 127.0.0.1; 0 on a
    # node's network, where the kubelet can
    health_port: int = 0
    # the schedulerNames whose Pods it binds, if it binds any: those of its own scheduler
    scheduler_names: Sequence[str] = ()

    @property
    def object_name(self) -> str:
        return f"extender-{self.name}"

    @property
    def binds(self) -> bool:
        return "bind" in agent_verbs(self.spec)

    @property
    def load_policy(self) -> str:
        """The LoadPolicy whose ConfigMap it reads; empty if it reads none."""
        return str(self.spec.get("loadPolicy") or "")


def sidecar(name: str, spec: Mapping[str, Any], port: int) -> ManagedAgent:
    # A port outside the range of automatic ports, different for each port.
    health_port = port + HEALTH_PORTS_AFTER
    return ManagedAgent(name, spec, port, health_port if health_port < 65536 else port - 30000)


def agent_file(agent: ManagedAgent) -> str:
    """Write the file for `extender --config`: JSON with sorted keys and a trailing newline."""
    spec = agent.spec
    listen: dict[str, Any] = {"address": LOOPBACK, "port": agent.port}
    if agent.health_port:
        listen["health"] = {"address": "", "port": agent.health_port}
    document: dict[str, Any] = {
        "listen": listen,
        # Inline, because a policy with a name of its own could have the agent's name.
        "agents": [
            {
                "name": agent.name,
                "policies": [
                    _policy(mapping(entry), agent) for entry in spec.get("policies") or ()
                ],
            }
        ],
        "logLevel": str(spec.get("logLevel") or "INFO"),
    }
    labels = mapping(mapping(spec.get("podSelector")).get("matchLabels"))
    schedulers = [str(name) for name in spec.get("schedulerNames") or ()]
    if labels or schedulers:
        document["podSelector"] = {"matchLabels": dict(labels), "schedulerNames": schedulers}
    if agent.binds:
        document["bind"] = {"schedulerNames": sorted(set(agent.scheduler_names))}
    return canonical_json(document)


def _policy(entry: Mapping[str, Any], agent: ManagedAgent) -> dict[str, Any]:
    arguments = dict(mapping(entry.get("arguments")))
    if agent.load_policy and policy_name(entry) == LOAD_AWARE and not arguments:
        arguments = {"policyFile": f"{LOAD_DIRECTORY}/{LOAD_KEY}"}
    policy = {
        "name": str(entry["name"]),
        "policy": policy_name(entry),
        "weight": int(entry.get("weight", 1)),
    }
    return {**policy, "arguments": arguments} if arguments else policy


def container(agent: ManagedAgent, image: str) -> dict[str, Any]:
    """Make the container; `volumes` makes its volumes."""
    spec = agent.spec
    port = agent.health_port or agent.port
    address = {"port": port} if agent.health_port else {"host": LOOPBACK, "port": port}
    environment = [
        {"name": str(name), "value": str(value)}
        for name, value in sorted(mapping(spec.get("env")).items())
    ]
    mounts = [{"name": f"config-{agent.name}", "mountPath": CONFIG_DIRECTORY, "readOnly": True}]
    if agent.load_policy:
        mounts.append({"name": f"load-{agent.name}", "mountPath": LOAD_DIRECTORY, "readOnly": True})
    live = {"httpGet": {"path": "/healthz", **address}}
    ready = {"httpGet": {"path": "/readyz", **address}}
    made: dict[str, Any] = {
        "name": agent.object_name,
        "image": str(spec.get("image") or image),
        "imagePullPolicy": "IfNotPresent",
        "command": [names.PROGRAM, "extender"],
        "args": [f"--config={CONFIG_DIRECTORY}/{CONFIG_KEY}"],
        "ports": [{"name": f"p{port}", "containerPort": port, "protocol": "TCP"}],
        "resources": dict(mapping(spec.get("resources")) or _default_resources(agent)),
        "startupProbe": {**ready, "periodSeconds": 1, "timeoutSeconds": 5, "failureThreshold": 120},
        "livenessProbe": {**live, **(_NOTICED if agent.health_port else _PATIENT)},
        "securityContext": dict(CONFINEMENT),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": mounts,
    }
    if not agent.health_port:
        # A scheduler's Pod stays Ready while its sidecar is not; a Pod of its own shows readiness.
        made["readinessProbe"] = {**ready, "periodSeconds": 5, "timeoutSeconds": 5}
    if environment:
        made["env"] = environment
    return made


def _default_resources(agent: ManagedAgent) -> Mapping[str, Any]:
    """Set no limit for a sidecar with a user's image: an upgrade must not change its content."""
    return _REQUESTS if agent.health_port and agent.spec.get("image") else _RESOURCES


def volumes(agent: ManagedAgent, config_map: str, key: str) -> list[dict[str, Any]]:
    """Make the volumes of an agent's container; the ConfigMap has its file under `key`."""
    made: list[dict[str, Any]] = [
        {
            "name": f"config-{agent.name}",
            "configMap": {"name": config_map, "items": [{"key": key, "path": CONFIG_KEY}]},
        }
    ]
    if agent.load_policy:
        # Optional, because the agent may be created before the LoadPolicy.
        source = {"name": f"load-policy-{agent.load_policy}", "optional": True}
        made.append({"name": f"load-{agent.name}", "configMap": source})
    return made


def refused_settings(spec: Mapping[str, Any], images: AllowedImages) -> Iterator[Problem]:
    """Find the settings of an agent that are not permitted; paths are in the spec.

    An agent runs under an account of the operator, on the network of control-plane nodes, so the
    operator's settings restrict its image. Only the current spec is checked: a version that was
    accepted before a setting changed stays in use.
    """
    agent = agent_of(spec)
    if agent is None:
        return
    image = str(agent.get("image") or "")
    if image:
        yield from images.problems(("agent", "image"), image)
    for index, entry in enumerate(agent.get("policies") or ()):
        file = mapping(mapping(entry).get("arguments")).get(POLICY_FILE)
        if file is not None and not image and not _is_mounted(str(file), agent):
            path: Path = ("agent", "policies", index, "arguments", POLICY_FILE)
            message = f'an agent does not have file "{file}"; remove this and set agent.loadPolicy'
            yield Problem(NOT_ALLOWED, path, message)
    known = _known_variables(agent)
    for name in mapping(agent.get("env")):
        path = ("agent", "env", str(name))
        if image and not is_of_the_process(str(name)):
            continue  # only the image itself knows its variables
        if image:
            message = f'variable "{name}" is not a setting of a policy; remove it'
            yield Problem(NOT_ALLOWED, path, message)
        elif name not in known:
            message = f'no policy of the agent reads variable "{name}"; use {listing(known)}'
            yield Problem(NOT_ALLOWED, path, message)


def missing_load_policy(
    spec: Mapping[str, Any], known: Collection[str], state: str
) -> Iterator[Problem]:
    """Warn if the LoadPolicy of an agent is none of those that are known; `state` is what it is."""
    name = mapping(agent_of(spec)).get("loadPolicy")
    if isinstance(name, str) and name and name not in known:
        message = f'LoadPolicy "{name}" {state} the agent uses the default rules'
        fix = did_you_mean(name, known).removeprefix("; ") or "create it, or remove the field"
        yield Problem(LOAD_POLICY_NOT_FOUND, ("agent", "loadPolicy"), message, fix, WARNING)


def _is_mounted(file: str, agent: Mapping[str, Any]) -> bool:
    return bool(agent.get("loadPolicy")) and file == f"{LOAD_DIRECTORY}/{LOAD_KEY}"


def _known_variables(agent: Mapping[str, Any]) -> tuple[str, ...]:
    # Imported here, because only agents with variables need the policies.
    from ....scheduling.policies.policy import UnknownPolicyError, policy_class

    known = set(_COMMON)
    for entry in agent.get("policies") or ():
        try:
            known.update(policy_class(policy_name(mapping(entry))).env)
        except UnknownPolicyError:
            continue  # reported elsewhere
    return tuple(sorted(known))
