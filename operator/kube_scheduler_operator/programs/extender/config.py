"""The configuration of an extender as types, and their defaults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

PORT: Final = 5401
"""The port in kube-safe-scheduler's manifests; its agents' default, 80, needs root."""

LOG_LEVELS: Final = ("TRACE", "DEBUG", "INFO", "WARNING", "ERROR", "ALERT")
"""The values of kube-safe-scheduler's LOG_LEVEL, most detailed first."""

IGNORE: Final = "Ignore"
FAIL: Final = "Fail"


class ConfigError(ValueError):
    """The configuration is invalid.

    Attributes:
        problems: messages, each with its field and a fix.
    """

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)


@dataclass(frozen=True, slots=True)
class Tls:
    """TLS of a port.

    Attributes:
        cert_file, key_file: PEM files, reloaded when they change.
        client_ca_file: PEM file; if set, verbs require a client certificate that it issued.
    """

    cert_file: str
    key_file: str
    client_ca_file: str = ""


@dataclass(frozen=True, slots=True)
class Listen:
    """A listening address; an empty one means all addresses of the machine."""

    address: str = "127.0.0.1"
    port: int = PORT
    tls: Tls | None = None


@dataclass(frozen=True, slots=True)
class MemberSpec:
    """A policy within an agent.

    Attributes:
        policy: name in the catalogue.
        arguments: validated arguments.
        weight: weight of its score within the agent; 0: its score is ignored.
        name: name in responses and logs; empty: the name of the policy.
    """

    policy: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    weight: int = 1
    name: str = ""


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """One or several policies that are served as one extender.

    Attributes:
        name: `/NAME/filter`, `/NAME/prioritize`.
        members: its policies; a node must pass all filters, and scores are averaged by weight.
        failure_policy: when a policy raises: IGNORE skips the policy, FAIL fails the call, and
            the scheduler then follows the extender's `ignorable`.
    """

    name: str
    members: tuple[MemberSpec, ...]
    failure_policy: str = IGNORE


@dataclass(frozen=True, slots=True)
class PodSelector:
    """The Pods to which the agents apply; empty fields match all Pods.

    Attributes:
        scheduler_names: accepted values of spec.schedulerName.
        match_labels: labels that a Pod must have.
    """

    scheduler_names: frozenset[str] = frozenset()
    match_labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Config:
    """A complete configuration.

    Attributes:
        agents: the agents, including those that consist of a single policy.
        listen: address for calls from kube-scheduler.
        health: address of a second port, without TLS, for health and metrics only.
        pod_selector: the Pods to which the agents apply.
        log_level: one of LOG_LEVELS.
        kubeconfig: path; empty: the usual Kubernetes lookup.
        watch: whether to watch the API; without it, node data comes from requests only.
        decisions: number of Pods whose decisions /explain can show.
        digest: first 16 hex digits of the file's SHA-256.
    """

    agents: tuple[AgentSpec, ...]
    listen: Listen = Listen()
    health: Listen | None = None
    pod_selector: PodSelector = field(default_factory=PodSelector)
    log_level: str = "INFO"
    kubeconfig: str = ""
    watch: bool = True
    decisions: int = 200
    digest: str = ""
