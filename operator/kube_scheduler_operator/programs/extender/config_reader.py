"""Reads the configuration of an extender strictly: all that is wrong with it, field by field."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, TypeVar

from ...base.findings import did_you_mean, listing
from ...policies import policy as policies
from ...policies.policy import ArgumentsError, UnknownPolicyError
from .config import (
    FAIL,
    IGNORE,
    LOG_LEVELS,
    PORT,
    AgentSpec,
    Config,
    ConfigError,
    Listen,
    Member,
    PodSelector,
    Tls,
)

T = TypeVar("T")

_NAME: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?")
_RESERVED: Final = ("scheduler",)


def read_document(document: Any) -> Config:
    """The configuration in a parsed file.

    Raises:
        ConfigError: what is wrong with it.
    """
    reader = _Reader()
    config = reader.config(document)
    if reader.problems or config is None:
        raise ConfigError(reader.problems)
    return config


class _Reader:
    """Reads a document and collects what is wrong with it."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.served: dict[str, Member] = {}

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
            self.wrong("logLevel", f'"{level}" is not known{hint}')
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
            self.wrong("policies", "there is nothing to serve; name a policy or an agent")
        return tuple(found.values())

    def add(self, found: dict[str, AgentSpec], agent: AgentSpec, path: str) -> None:
        if not _NAME.fullmatch(agent.name) or agent.name in _RESERVED:
            self.wrong(
                f"{path}.name",
                f'"{agent.name}" cannot be part of an URL here; use letters, digits, "-", "_" and '
                f'"." and another word than {listing(_RESERVED)}',
            )
        elif agent.name in found:
            self.wrong(f"{path}.name", f'"{agent.name}" is served already; use another name')
        else:
            found[agent.name] = agent

    def policy(self, entry: Any, path: str) -> AgentSpec | None:
        known = ("name", "policy", "arguments", "failurePolicy")
        given = self.mapping(entry, path, known)
        if given is None:
            return None
        member = self.member({k: given[k] for k in ("policy", "arguments") if k in given}, path)
        if member is None:
            return None
        name = self.value(given, "name", str, "", path) or member.policy
        if name != member.policy:
            member = replace(member, name=name)
        return AgentSpec(name, (member,), self.failure_policy(given, path))

    def agent(self, entry: Any, path: str) -> AgentSpec | None:
        given = self.mapping(entry, path, ("name", "policies", "failurePolicy"))
        if given is None:
            return None
        entries = self.entries(given.get("policies"), f"{path}.policies")
        members = [self.member(one, at) for at, one in entries]
        name = self.value(given, "name", str, "", path)
        if not members:
            self.wrong(f"{path}.policies", "an agent needs one policy at least; name one")
        spec = tuple(member for member in members if member is not None)
        return AgentSpec(name, spec, self.failure_policy(given, path))

    def member(self, entry: Any, path: str) -> Member | None:
        given = self.mapping(entry, path, ("name", "policy", "weight", "arguments"))
        if given is None:
            return None
        weight = self.number(given, "weight", 1, 0, 1000, path)
        called = self.value(given, "name", str, "", path)
        if called in self.served and "policy" not in given and "arguments" not in given:
            return replace(self.served[called], weight=weight)
        # A name is enough where there is no other name to give.
        name = self.value(given, "policy", str, "", path) or called
        if not name:
            self.wrong(f"{path}.policy", "this must be the name of a policy")
            return None
        arguments = given.get("arguments") or {}
        if not isinstance(arguments, Mapping):
            self.wrong(f"{path}.arguments", "this must be an object of the policy's arguments")
            return None
        try:
            policies.read_arguments(name, arguments)
        except UnknownPolicyError as error:
            self.wrong(f"{path}.policy", str(error))
            return None
        except ArgumentsError as error:
            self.problems.extend(f"{path}.{problem}" for problem in error.problems)
            return None
        return Member(name, dict(arguments), weight, called if called != name else "")

    def failure_policy(self, given: Mapping[str, Any], path: str) -> str:
        value = self.value(given, "failurePolicy", str, IGNORE, path)
        if value not in (IGNORE, FAIL):
            self.wrong(f"{path}.failurePolicy", f'"{value}" is not known; use {IGNORE} or {FAIL}')
        return value

    def listen(self, given: Any) -> tuple[Listen, Listen | None]:
        if given is None:
            return Listen(), None
        found = self.mapping(given, "listen", ("address", "port", "tls", "health"))
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
            self.wrong(f"{at}.port", "this must be a port from 0 to 65535")
        port = self.number(found, "port", 0, 0, 65535, at)
        return listen, Listen(self.value(found, "address", str, "", at), port)

    def tls(self, given: Any) -> Tls | None:
        if not given:
            return None
        at = "listen.tls"
        found = self.mapping(given, at, ("certFile", "keyFile", "clientCAFile"))
        if found is None:
            return None
        files = [
            self.value(found, key, str, "", at) for key in ("certFile", "keyFile", "clientCAFile")
        ]
        if not any(files):
            return None
        if not (files[0] and files[1]):
            self.wrong(at, "certFile and keyFile belong together; name both")
        return Tls(*files)

    def selector(self, given: Any) -> PodSelector:
        if given is None:
            return PodSelector()
        at = "podSelector"
        found = self.mapping(given, at, ("schedulerNames", "matchLabels")) or {}
        names = found.get("schedulerNames") or []
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            self.wrong(f"{at}.schedulerNames", "this must be a list of names of schedulers")
            names = []
        labels = found.get("matchLabels") or {}
        if not isinstance(labels, Mapping) or not all(
            isinstance(part, str) for pair in labels.items() for part in pair
        ):
            self.wrong(f"{at}.matchLabels", "this must be an object of labels and their values")
            labels = {}
        return PodSelector(frozenset(names), dict(labels))

    # --- values ---------------------------------------------------------------------------------

    def wrong(self, path: str, message: str) -> None:
        self.problems.append(f"{path}: {message}" if path else message)

    def mapping(self, value: Any, path: str, known: Collection[str]) -> Mapping[str, Any] | None:
        if not isinstance(value, Mapping):
            self.wrong(path, f"this must be an object with {listing(known)}")
            return None
        for key in value:
            if key not in known:
                hint = did_you_mean(str(key), known) or f"; use {listing(known)}"
                self.wrong(f"{path}.{key}" if path else str(key), f"there is no such field{hint}")
        return value

    def entries(self, value: Any, path: str) -> Iterator[tuple[str, Any]]:
        if value is None:
            return
        if not isinstance(value, list):
            self.wrong(path, "this must be a list")
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
            wanted = {str: "a text", bool: "true or false"}[kind]  # type: ignore[index]
            self.wrong(f"{path}.{key}" if path else key, f"this must be {wanted}")
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
            self.wrong(at, f"this must be a whole number from {least} to {most}")
            return default
        return value
