"""Reads the configuration of an extender strictly, and reports all errors with their field.

Loads neither numpy nor a server: the operator validates the files that it writes.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from ...base.decoding import sentence
from ...base.findings import did_you_mean, listing
from ...policies import policy as policies
from ...policies.policy import ArgumentsError, UnknownPolicyError
from ...schedulerconfig import source_json, source_tree
from .config import (
    FAIL,
    IGNORE,
    LOG_LEVELS,
    PORT,
    AgentSpec,
    Config,
    ConfigError,
    Listen,
    MemberSpec,
    PodSelector,
    Tls,
)

T = TypeVar("T")

_NAME: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?")
_RESERVED: Final = ("scheduler",)


def of_policies(names: Sequence[str]) -> Config:
    """A configuration that serves each of these policies with its defaults.

    Raises:
        ConfigError: a policy does not exist.
    """
    return from_document({"policies": [{"policy": name} for name in names]})


def read(text: str) -> Config:
    """The configuration in a YAML or JSON file.

    Raises:
        ConfigError: the file is invalid.
    """
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return replace(from_document(_parse(text)), digest=digest)


def override(config: Config, environ: Mapping[str, str], port: int | None = None) -> Config:
    """The configuration with the overrides of flags and the environment.

    Args:
        config: the configuration of the file.
        environ: HTTP_PORT and LOG_LEVEL apply, as in kube-safe-scheduler's agents; an unknown
            level means INFO, as there.
        port: the flag, which takes precedence over HTTP_PORT.

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
    """The configuration in a parsed document.

    Raises:
        ConfigError: the document is invalid.
    """
    reader = _Reader()
    config = reader.config(document)
    if reader.problems or config is None:
        raise ConfigError(reader.problems)
    return config


def _parse(text: str) -> Any:
    """The document, as kube-scheduler reads YAML and JSON."""
    problems: list[str]
    try:
        if text.lstrip().startswith("{"):
            root, flaws = source_json.parse(text)
            value = root.data
        else:
            from ...schedulerconfig import source  # a third of a second; the operator writes JSON

            documents, error = source.read(text)
            if error is not None:
                raise error
            value = documents[0].root.data if documents else None
            flaws = [flaw for document in documents for flaw in document.flaws]
            if len(documents) > 1:
                raise ConfigError(["the file has several documents; write one"])
        problems = [_at(flaw.position, flaw.message) for flaw in flaws]
    except source_tree.ParseError as error:
        problems = [f"the file is neither YAML nor JSON: {_at(error.position, error.message)}"]
    if problems:
        raise ConfigError(problems)
    return value


def _at(position: source_tree.Position, message: str) -> str:
    return f"line {position.line}, column {position.column}: {message}"


class _Reader:
    """Reads a document and collects all problems."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.served: dict[str, MemberSpec] = {}

    def config(self, document: Any) -> Config | None:
        known = (
            "listen", "policies", "agents", "podSelector", "logLevel", "kubeconfig", "watch",
            "decisions",
        )  # fmt: skip
        top = self.mapping(document, "", known)
        if top is None:
            return None
        agents = self.agents(top)
        listen, health = self.listen(top.get("listen"))
        level = self.value(top, "logLevel", str, "INFO").upper()
        if level not in LOG_LEVELS:
            hint = did_you_mean(level, LOG_LEVELS) or f"; use {listing(LOG_LEVELS)}"
            self.error("logLevel", f'"{level}" is not known{hint}')
        return Config(
            agents=agents,
            listen=listen,
            health=health,
            pod_selector=self.selector(top.get("podSelector")),
            log_level=level,
            kubeconfig=self.value(top, "kubeconfig", str, ""),
            watch=self.value(top, "watch", bool, True),
            decisions=self.number(top, "decisions", 200, 0, 100_000),
        )

    def agents(self, top: Mapping[str, Any]) -> tuple[AgentSpec, ...]:
        found: dict[str, AgentSpec] = {}
        for path, entry in self.entries(top.get("policies"), "policies"):
            agent = self.policy(entry, path)
            if agent is not None:
                self.add(found, agent, path)
        self.served = {agent.name: agent.members[0] for agent in found.values()}
        for path, entry in self.entries(top.get("agents"), "agents"):
            agent = self.agent(entry, path)
            if agent is not None:
                self.add(found, agent, path)
        if not found and not self.problems:
            self.error("policies", "nothing to serve; add a policy or an agent")
        return tuple(found.values())

    def add(self, found: dict[str, AgentSpec], agent: AgentSpec, path: str) -> None:
        if not _NAME.fullmatch(agent.name) or agent.name in _RESERVED:
            self.error(
                f"{path}.name",
                f'"{agent.name}" cannot be used in a URL path; use letters, digits, "-", "_" and '
                f'"." and a word other than {listing(_RESERVED)}',
            )
        elif agent.name in found:
            self.error(f"{path}.name", f'"{agent.name}" is already in use; choose another name')
        else:
            found[agent.name] = agent

    def policy(self, entry: Any, path: str) -> AgentSpec | None:
        known = ("name", "policy", "arguments", "failurePolicy")
        fields = self.mapping(entry, path, known)
        if fields is None:
            return None
        member = self.member({k: fields[k] for k in ("policy", "arguments") if k in fields}, path)
        if member is None:
            return None
        name = self.value(fields, "name", str, "", path) or member.policy
        if name != member.policy:
            member = replace(member, name=name)
        return AgentSpec(name, (member,), self.failure_policy(fields, path))

    def agent(self, entry: Any, path: str) -> AgentSpec | None:
        fields = self.mapping(entry, path, ("name", "policies", "failurePolicy"))
        if fields is None:
            return None
        entries = self.entries(fields.get("policies"), f"{path}.policies")
        members = [self.member(one, at) for at, one in entries]
        name = self.value(fields, "name", str, "", path)
        if not members:
            self.error(f"{path}.policies", "an agent needs at least one policy")
        spec = tuple(member for member in members if member is not None)
        return AgentSpec(name, spec, self.failure_policy(fields, path))

    def member(self, entry: Any, path: str) -> MemberSpec | None:
        fields = self.mapping(entry, path, ("name", "policy", "weight", "arguments"))
        if fields is None:
            return None
        weight = self.number(fields, "weight", 1, 0, 1000, path)
        called = self.value(fields, "name", str, "", path)
        if called in self.served and "policy" not in fields and "arguments" not in fields:
            return replace(self.served[called], weight=weight)
        # `name` alone also selects the policy.
        name = self.value(fields, "policy", str, "", path) or called
        if not name:
            self.error(f"{path}.policy", "this must be the name of a policy")
            return None
        arguments = fields.get("arguments") or {}
        if not isinstance(arguments, Mapping):
            self.error(f"{path}.arguments", "this must be an object of the policy's arguments")
            return None
        try:
            policies.read_arguments(name, arguments)
        except UnknownPolicyError as error:
            self.error(f"{path}.policy", str(error))
            return None
        except ArgumentsError as error:
            self.problems.extend(f"{path}.{sentence(problem)}" for problem in error.problems)
            return None
        return MemberSpec(name, dict(arguments), weight, called if called != name else "")

    def failure_policy(self, fields: Mapping[str, Any], path: str) -> str:
        value = self.value(fields, "failurePolicy", str, IGNORE, path)
        if value not in (IGNORE, FAIL):
            self.error(f"{path}.failurePolicy", f'"{value}" is not known; use {IGNORE} or {FAIL}')
        return value

    def listen(self, value: Any) -> tuple[Listen, Listen | None]:
        if value is None:
            return Listen(), None
        found = self.mapping(value, "listen", ("address", "port", "tls", "health"))
        if found is None:
            return Listen(), None
        listen = Listen(
            self.value(found, "address", str, "127.0.0.1", "listen"),
            self.number(found, "port", PORT, 0, 65535, "listen"),
            self.tls(found.get("tls")),
        )
        health = found.get("health")
        if health is None:
            return listen, None
        at = "listen.health"
        found = self.mapping(health, at, ("address", "port")) or {}
        if not isinstance(found.get("port"), int):
            self.error(f"{at}.port", "this must be a port from 0 to 65535")
        port = self.number(found, "port", 0, 0, 65535, at)
        return listen, Listen(self.value(found, "address", str, "", at), port)

    def tls(self, value: Any) -> Tls | None:
        if not value:
            return None
        at = "listen.tls"
        found = self.mapping(value, at, ("certFile", "keyFile", "clientCAFile"))
        if found is None:
            return None
        files = [
            self.value(found, key, str, "", at) for key in ("certFile", "keyFile", "clientCAFile")
        ]
        if not any(files):
            return None
        if not (files[0] and files[1]):
            self.error(at, "certFile and keyFile must be set together")
        return Tls(*files)

    def selector(self, value: Any) -> PodSelector:
        if value is None:
            return PodSelector()
        at = "podSelector"
        found = self.mapping(value, at, ("schedulerNames", "matchLabels")) or {}
        names = found.get("schedulerNames") or []
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            self.error(f"{at}.schedulerNames", "this must be a list of scheduler names")
            names = []
        labels = found.get("matchLabels") or {}
        if not isinstance(labels, Mapping) or not all(
            isinstance(part, str) for pair in labels.items() for part in pair
        ):
            self.error(f"{at}.matchLabels", "this must be an object of label names and values")
            labels = {}
        return PodSelector(frozenset(names), dict(labels))

    # --- values ---------------------------------------------------------------------------------

    def error(self, path: str, message: str) -> None:
        self.problems.append(f"{path}: {message}" if path else message)

    def mapping(self, value: Any, path: str, known: Collection[str]) -> Mapping[str, Any] | None:
        if not isinstance(value, Mapping):
            self.error(path, f"this must be an object with {listing(known)}")
            return None
        for key in value:
            if key not in known:
                hint = did_you_mean(str(key), known) or f"; use {listing(known)}"
                self.error(f"{path}.{key}" if path else str(key), f"unknown field{hint}")
        return value

    def entries(self, value: Any, path: str) -> Iterator[tuple[str, Any]]:
        if value is None:
            return
        if not isinstance(value, list):
            self.error(path, "this must be a list")
            return
        for position, entry in enumerate(value):
            yield f"{path}[{position}]", entry

    def value(
        self, found: Mapping[str, Any], key: str, kind: Callable[..., T], default: T, path: str = ""
    ) -> T:
        value = found.get(key)
        if value is None:
            return default
        if not isinstance(value, kind):  # type: ignore[arg-type] # a class, for mypy's sake callable
            expected = {str: "a string", bool: "true or false"}[kind]  # type: ignore[index]
            self.error(f"{path}.{key}" if path else key, f"this must be {expected}")
            return default
        return value  # type: ignore[no-any-return]

    def number(
        self,
        found: Mapping[str, Any],
        key: str,
        default: int,
        least: int,
        most: int,
        path: str = "",
    ) -> int:
        value = found.get(key)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            at = f"{path}.{key}" if path else key
            self.error(at, f"this must be an integer from {least} to {most}")
            return default
        return value
