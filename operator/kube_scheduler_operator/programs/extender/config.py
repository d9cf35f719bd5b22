"""What an extender is to serve: the file that `--config` names, read strictly.

Loads neither numpy nor a server, so that the file can be checked by whoever writes it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ...policies.arguments import ProblemsError

PORT: Final = 5401
"""As in the manifests of kube-safe-scheduler; the default of its agents, 80, needs root."""

LOG_LEVELS: Final = ("TRACE", "DEBUG", "INFO", "WARNING", "ERROR", "ALERT")
"""Those of kube-safe-scheduler's LOG_LEVEL, most detailed first."""

IGNORE: Final = "Ignore"
FAIL: Final = "Fail"


class ConfigError(ProblemsError):
    """The configuration cannot be used."""


@dataclass(frozen=True, slots=True)
class Tls:
    """TLS of a port.

    Attributes:
        cert_file, key_file: PEM; read again when they change.
        client_ca_file: PEM; if given, only clients with a certificate of it may ask.
    """

    cert_file: str
    key_file: str
    client_ca_file: str = ""


@dataclass(frozen=True, slots=True)
class Listen:
    """Where to listen; an empty address is every address of the machine."""

    address: str = "127.0.0.1"
    port: int = PORT
    tls: Tls | None = None


@dataclass(frozen=True, slots=True)
class Member:
    """A policy within an agent.

    Attributes:
        policy: its name in the catalogue.
        arguments: as given; checked.
        weight: of its score among those of the agent's policies; 0: its score does not count.
        name: what it is called in answers and logs; empty: as the policy.
    """

    policy: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    weight: int = 1
    name: str = ""


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """What is served under one name: one policy or several as one extender.

    Attributes:
        name: `/NAME/filter`, `/NAME/prioritize`.
        members: filter: all of them must accept a node; prioritize: the weighted mean.
        failure_policy: what a bug in a policy means: IGNORE, it has no opinion, or FAIL, the call
            fails and the scheduler does what the extender's `ignorable` says.
    """

    name: str
    members: tuple[Member, ...]
    failure_policy: str = IGNORE


@dataclass(frozen=True, slots=True)
class PodSelector:
    """Which pods the agents look at; others may go anywhere. Empty parts select all.

    Attributes:
        scheduler_names: values of spec.schedulerName.
        match_labels: labels that a pod must have.
    """

    scheduler_names: frozenset[str] = frozenset()
    match_labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Config:
    """All of the file.

    Attributes:
        agents: what is served, policies on their own included.
        listen: where kube-scheduler asks.
        health: a second port without TLS that only tells how the program is; None: none.
        pod_selector: which pods are looked at.
        log_level: one of LOG_LEVELS.
        kubeconfig: how to reach the API; empty: as every Kubernetes program does.
        watch: False: never ask the API; what is known of nodes is what requests say of them.
        decisions: so many pods are remembered for /explain.
        digest: the first 16 hex digits of the file's SHA-256.
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


def of_policies(names: Sequence[str]) -> Config:
    """The configuration that serves each of these policies with its defaults.

    Raises:
        ConfigError: one does not exist.
    """
    return from_document({"policies": [{"policy": name} for name in names]})


def read(text: str) -> Config:
    """The configuration in a file, YAML or JSON.

    Raises:
        ConfigError: what is wrong with it.
    """
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return replace(from_document(_parse(text)), digest=digest)


def override(config: Config, environ: Mapping[str, str], port: int | None = None) -> Config:
    """The configuration with what flags and the environment say instead.

    Args:
        config: of the file.
        environ: HTTP_PORT and LOG_LEVEL count, as they do for kube-safe-scheduler's agents; a level
            that does not exist is INFO, as there.
        port: of the flag; comes before HTTP_PORT.

    Raises:
        ConfigError: HTTP_PORT is no port.
    """
    given: int | str | None = port if port is not None else environ.get("HTTP_PORT") or None
    if given is not None:
        number = int(given) if str(given).isascii() and str(given).isdigit() else -1
        if not 0 <= number <= 65535:
            raise ConfigError([f'HTTP_PORT: "{given}" is not a port from 0 to 65535'])
        config = replace(config, listen=replace(config.listen, port=number))
    level = environ.get("LOG_LEVEL", "").strip().upper()
    if level:
        config = replace(config, log_level=level if level in LOG_LEVELS else "INFO")
    return config


def from_document(document: Any) -> Config:
    """The configuration in a parsed file.

    Raises:
        ConfigError: what is wrong with it.
    """
    from .config_reader import read_document

    return read_document(document)


def _parse(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        pass
    import yaml  # a third of a second: what the operator writes is JSON

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        why = " ".join(str(error).split())
        raise ConfigError([f"this is neither YAML nor JSON: {why}"]) from error
