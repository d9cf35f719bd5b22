"""The configuration of an extender: types with their defaults, and the reader of its file.

The reader is strict and reports all errors with their field. It loads neither numpy nor a server:
the operator validates the files that it writes.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Final

from ...base.decoding import (
    INVALID_VALUE,
    MISSING_FIELD,
    Anything,
    Converted,
    DecodeError,
    FirstProblem,
    MapOf,
    Number,
    String,
    UnlessEmpty,
    decode,
    sentence,
)
from ...base.field_types import named, type_of
from ...base.findings import Path, Problem, listing
from ...base.source import json_scanner as source_json
from ...base.source import tree as source_tree
from ..policies import policy as policies
from ..policies.policy import ArgumentsError, UnknownPolicyError

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

    def inconsistencies(self) -> Iterator[Problem]:
        if self != Tls() and not (self.cert_file and self.key_file):
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
class BindSettings:
    # the values of spec.schedulerName of the Pods that the agents may bind; empty: none
    scheduler_names: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Config:
    agents: tuple[AgentSpec, ...]  # the agents, including those that consist of a single policy
    listen: Listen = Listen()
    # address of a second port, without TLS, for health and metrics only
    health: Listen | None = None
    pod_selector: PodSelector = field(default_factory=PodSelector)
    bind: BindSettings = field(default_factory=BindSettings)
    log_level: str = "INFO"
    kubeconfig: str = ""  # empty: the usual lookup of kubectl
    watch: bool = True  # whether to watch the API; without it, node data comes from requests only
    decisions: int = 200  # number of Pods whose decisions /explain can show
    digest: str = ""  # first 16 hex digits of the file's SHA-256


_NAME: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?")
_RESERVED: Final = ("scheduler",)


# --- the file -----------------------------------------------------------------------------------

# Classes without comparison and representation are made in a quarter of the time, at every start.


def _level(text: str) -> str:
    level: str = decode(String(LOG_LEVELS), text.upper(), run=FirstProblem())
    return level


_Port = Annotated[int, Number(whole=True, least=0, most=65535, converted=False)]
_Arguments = Annotated[Mapping[str, Any], UnlessEmpty(MapOf(Anything()), {})]
_FailurePolicy = Annotated[str, String((IGNORE, FAIL))]


@dataclass(eq=False, repr=False)
class _PolicyEntry:
    name: str = ""
    policy: str = ""
    arguments: _Arguments = field(default_factory=dict)
    failure_policy: _FailurePolicy = IGNORE

    @property
    def served_as(self) -> str:
        """The name in its URL."""
        return self.name or self.policy

    def inconsistencies(self) -> Iterator[Problem]:
        wrong = tuple(_policy_problems(self.policy, self.arguments))
        yield from wrong or _name_problems(self.served_as)


@dataclass(eq=False, repr=False)
class _MemberEntry:
    name: str = ""
    policy: str = ""
    weight: Annotated[int, Number(whole=True, least=0, most=1000, converted=False)] = 1
    arguments: _Arguments | None = None

    @property
    def names_entry(self) -> bool:
        """Whether it may be an entry of `policies`, with the policy and arguments there."""
        return not self.policy and self.arguments is None

    def inconsistencies(self) -> Iterator[Problem]:
        """Yield what is wrong with its policy; `name` alone also selects the policy."""
        if not (self.names_entry and self.name):
            yield from _policy_problems(self.policy or self.name, self.arguments or {})


@dataclass(eq=False, repr=False)
class _AgentEntry:
    name: str = ""
    policies: tuple[_MemberEntry, ...] = ()
    failure_policy: _FailurePolicy = IGNORE

    def inconsistencies(self) -> Iterator[Problem]:
        if not self.policies:
            yield Problem(MISSING_FIELD, ("policies",), "an agent needs at least one policy")
        yield from _name_problems(self.name)


@dataclass(eq=False, repr=False)
class _HealthEntry:
    port: _Port
    address: str = ""


@dataclass(eq=False, repr=False)
class _ListenEntry:
    address: str = "127.0.0.1"
    port: _Port = PORT
    tls: Annotated[Tls, UnlessEmpty(type_of(Tls), {})] = field(default_factory=Tls)
    health: _HealthEntry | None = None


@dataclass(eq=False, repr=False)
class _File:
    listen: _ListenEntry = field(default_factory=_ListenEntry)
    policies: tuple[_PolicyEntry, ...] = ()
    agents: tuple[_AgentEntry, ...] = ()
    pod_selector: PodSelector = field(default_factory=PodSelector)
    bind: BindSettings = field(default_factory=BindSettings)
    log_level: Annotated[str, Converted(String(), _level)] = "INFO"
    kubeconfig: str = ""
    watch: bool = True
    decisions: Annotated[int, Number(whole=True, least=0, most=100_000, converted=False)] = 200

    def inconsistencies(self) -> Iterator[Problem]:
        """Yield what is wrong with several entries."""
        if not self.policies and not self.agents:
            message = "nothing to serve; add a policy or an agent"
            yield Problem(MISSING_FIELD, ("policies",), message)
        seen: set[str] = set()
        for path, name in self._names():
            if name in seen:
                message = f'"{name}" is already in use; choose another name'
                yield Problem(INVALID_VALUE, (*path, "name"), message)
            seen.add(name)
        served = {entry.served_as for entry in self.policies}
        for index, agent in enumerate(self.agents):
            for number, member in enumerate(agent.policies):
                if member.names_entry and member.name not in served:
                    for problem in _policy_problems(member.name, {}):
                        yield problem.below(("agents", index, "policies", number))

    def _names(self) -> Iterator[tuple[Path, str]]:
        for index, policy in enumerate(self.policies):
            yield ("policies", index), policy.served_as
        for index, agent in enumerate(self.agents):
            yield ("agents", index), agent.name


def _policy_problems(name: str, arguments: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield what is wrong with a policy and its arguments."""
    if not name:
        yield Problem(MISSING_FIELD, ("policy",), "this must be the name of a policy")
        return
    try:
        policies.read_arguments(name, arguments)
    except UnknownPolicyError as error:
        yield Problem(INVALID_VALUE, ("policy",), str(error))
    except ArgumentsError as error:
        yield from error.problems


def _name_problems(name: str) -> Iterator[Problem]:
    """Yield whether an agent cannot have this name."""
    if not _NAME.fullmatch(name) or name in _RESERVED:
        message = f'"{name}" cannot be used in a URL path'
        fix = f'use letters, digits, "-", "_" and "." and a word other than {listing(_RESERVED)}'
        yield Problem(INVALID_VALUE, ("name",), message, fix)


_FILE: Final = type_of(_File)


# --- the configuration --------------------------------------------------------------------------


def of_policies(names: Sequence[str]) -> Config:
    """Return a configuration that serves each of these policies with its defaults.

    Raises ConfigError.
    """
    return from_document({"policies": [{"policy": name} for name in names]})


def read(text: str) -> Config:
    """Return the configuration in a YAML or JSON file. Raises ConfigError."""
    root = _parse(text)
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    try:
        return replace(_config(root.data if root else None), digest=digest)
    except DecodeError as error:
        raise ConfigError(_located(error.problems, root)) from None


def override(config: Config, environ: Mapping[str, str], port: int | None = None) -> Config:
    """Return the configuration with the overrides of the flag `port` and the environment.

    HTTP_PORT, unless the flag is set, and LOG_LEVEL apply as in kube-safe-scheduler's agents; an
    unknown level means INFO, as there.

    Raises:
        ConfigError: HTTP_PORT is not a port.
    """
    value: int | str | None = port if port is not None else environ.get("HTTP_PORT") or None
    if value is not None:
        number = int(value) if re.fullmatch("[0-9]{1,5}", str(value)) else -1
        if not 0 <= number <= 65535:
            raise ConfigError([f'HTTP_PORT: "{value}" is not a port from 0 to 65535'])
        config = replace(config, listen=replace(config.listen, port=number))
    level = environ.get("LOG_LEVEL", "").strip().upper()
    if level:
        config = replace(config, log_level=level if level in LOG_LEVELS else "INFO")
    return config


def from_document(document: Any) -> Config:
    """Return the configuration in a parsed document. Raises ConfigError."""
    try:
        return _config(document)
    except DecodeError as error:
        raise ConfigError([sentence(problem) for problem in error.problems]) from None


def _config(document: Any) -> Config:
    file: _File = decode(_FILE, document)
    members = {entry.served_as: _served(entry) for entry in file.policies}
    served = [
        AgentSpec(entry.served_as, (members[entry.served_as],), entry.failure_policy)
        for entry in file.policies
    ]
    agents = [
        AgentSpec(
            agent.name,
            tuple(_member(entry, members) for entry in agent.policies),
            agent.failure_policy,
        )
        for agent in file.agents
    ]
    listen, health = file.listen, file.listen.health
    return Config(
        agents=(*served, *agents),
        listen=Listen(listen.address, listen.port, listen.tls if listen.tls != Tls() else None),
        health=Listen(health.address, health.port) if health else None,
        pod_selector=file.pod_selector,
        bind=file.bind,
        log_level=file.log_level,
        kubeconfig=file.kubeconfig,
        watch=file.watch,
        decisions=file.decisions,
    )


def _served(entry: _PolicyEntry) -> MemberSpec:
    name = entry.name if entry.name != entry.policy else ""
    return MemberSpec(entry.policy, entry.arguments, name=name)


def _member(entry: _MemberEntry, served: Mapping[str, MemberSpec]) -> MemberSpec:
    if entry.names_entry and entry.name in served:
        return replace(served[entry.name], weight=entry.weight)
    policy = entry.policy or entry.name
    name = entry.name if entry.name != policy else ""
    return MemberSpec(policy, entry.arguments or {}, entry.weight, name)


# --- text ---------------------------------------------------------------------------------------


def _parse(text: str) -> source_tree.SourceNode | None:
    """Return the document, as kube-scheduler reads YAML and JSON; None for an empty file."""
    problems: list[str]
    root: source_tree.SourceNode | None
    try:
        if text.lstrip().startswith("{"):
            value = source_json.parse(text)
            root, flaws = value.root, value.flaws
        else:
            # Imported lazily, for a third of a second: the operator writes JSON.
            from ...base.source import reader as source

            documents, error = source.read(text)
            if error is not None:
                raise error
            root = documents[0].root if documents else None
            flaws = [flaw for document in documents for flaw in document.flaws]
            if len(documents) > 1:
                raise ConfigError(["the file has several documents; write one"])
        problems = [_at(flaw.position, flaw.message) for flaw in flaws]
    except source_tree.ParseError as error:
        problems = [f"the file is neither YAML nor JSON: {_at(error.position, error.message)}"]
    if problems:
        raise ConfigError(problems)
    return root


def _located(problems: Iterable[Problem], root: source_tree.SourceNode | None) -> list[str]:
    """Prefix problems with their positions in the file."""
    if root is None:
        return [sentence(problem) for problem in problems]
    return [_at(root.walk(problem.path)[0], sentence(problem)) for problem in problems]


def _at(position: source_tree.Position, message: str) -> str:
    return f"line {position.line}, column {position.column}: {message}"
