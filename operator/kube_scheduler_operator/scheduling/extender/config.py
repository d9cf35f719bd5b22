"""The configuration of an extender as types, and their defaults."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ...base.decoding import MISSING_FIELD
from ...base.field_types import named
from ...base.findings import Problem

PORT: Final = 5401
"""The port in kube-safe-scheduler's manifests; its agents' default, 80, needs root."""

LOG_LEVELS: Final = ("TRACE", "DEBUG", "INFO", "WARNING", "ERROR", "ALERT")
"""The values of kube-safe-scheduler's LOG_LEVEL, most detailed first."""

IGNORE: Final = "Ignore"
FAIL: Final = "Fail"


class ConfigError(ValueError):
    """The configuration is invalid."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)  # messages, each with its field and a fix


@dataclass(frozen=True, slots=True)
class Tls:
    """TLS of a port: PEM files, which are reloaded when they change."""

    cert_file: str = ""
    key_file: str = ""
    # if set, verbs require a client certificate that it issued
    client_ca_file: str = named("clientCAFile", "")

    @property
    def files(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.cert_file, self.key_file, self.client_ca_file)))

    def inconsistencies(self) -> Iterator[Problem]:
        if self.files and not (self.cert_file and self.key_file):
            yield Problem(MISSING_FIELD, (), "certFile and keyFile must be set together")


@dataclass(frozen=True, slots=True)
class Listen:
    """A listening address; an empty one means all addresses of the machine."""

    address: str = "127.0.0.1"
    port: int = PORT
    tls: Tls | None = None


@dataclass(frozen=True, slots=True)
class MemberSpec:
    policy: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    weight: int = 1  # weight of its score within the agent; 0: its score is ignored
    name: str = ""  # name in responses and logs; empty: the name of the policy


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """One or several policies that are served as one extender."""

    name: str  # `/NAME/filter`, `/NAME/prioritize`
    # its policies; a node must pass all filters, and scores are averaged by weight
    members: tuple[MemberSpec, ...]
    # when a policy raises: IGNORE skips the policy, FAIL fails the call, and the scheduler then
    # follows the extender's `ignorable`
    failure_policy: str = IGNORE


@dataclass(frozen=True, slots=True)
class PodSelector:
    """The Pods to which the agents apply; empty fields match all Pods."""

    scheduler_names: frozenset[str] = frozenset()  # accepted values of spec.schedulerName
    match_labels: Mapping[str, str] = field(default_factory=dict)  # labels that a Pod must have


@dataclass(frozen=True, slots=True)
class Config:
    agents: tuple[AgentSpec, ...]  # the agents, including those that consist of a single policy
    listen: Listen = Listen()
    # address of a second port, without TLS, for health and metrics only
    health: Listen | None = None
    pod_selector: PodSelector = field(default_factory=PodSelector)
    log_level: str = "INFO"
    kubeconfig: str = ""  # empty: the usual lookup of kubectl
    watch: bool = True  # whether to watch the API; without it, node data comes from requests only
    decisions: int = 200  # number of Pods whose decisions /explain can show
    digest: str = ""  # first 16 hex digits of the file's SHA-256
