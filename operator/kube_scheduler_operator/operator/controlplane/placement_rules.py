"""What decides placements, all of it, and how to exchange it between revisions.

The configuration, the flags and the variables that matter are in a revision's content; what agents
and the LoadPolicy decide by is not, because they read an edit without a revision. Everything else
of a revision (certificates of the cluster, the image, resources, log levels, timings) is rolled out
while an edit of the rules waits.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from ...base import names
from ...base.objects import entries, mapping
from ...base.templates import canonical_json
from ...config.effective.control_plane.recorded_inputs import read_inputs
from ...config.effective.extenders.entry import agent_name, agent_of
from ...config.language.feature_gates import FLAG_PREFIX, has_gate, known_gates, parse_gates
from ...config.language.versions import Version
from ...simulate.configuration import PLACEMENT_FIELDS
from ..model.plan import PlacementRules
from .revision.content import RevisionContent

_FLAGS: Final = (FLAG_PREFIX, "--emulated-version=", "--min-compatibility-version=")
"""Flags on which the plugins of a profile, and what they do, depend."""
_ANSWERING: Final = ("_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUEST_METHOD", "GODEBUG")
"""How the names of variables end that choose who answers for an extender outside the node, or who
is trusted. With REQUEST_METHOD, as in a CGI program, Go uses no proxy.
"""
_UNRELATED: Final = ("logLevel",)
"""Fields of `spec.agent` that decide no placements."""

Container = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AgentSpecs:
    """The specs by which agents on control-plane nodes decide, by name."""

    extenders: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    load_policies: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # the one in use
    # of a SecondaryScheduler: its image and command if users set them, and its sidecars
    program: Mapping[str, Any] = field(default_factory=dict)
    sidecars: Mapping[str, Any] = field(default_factory=dict)
    readers: tuple[str, ...] = ()  # other schedulers whose agents read an edited LoadPolicy


class SchedulerContent(Protocol):
    """The content of a revision, or of a SecondaryScheduler."""

    @property
    def config(self) -> Mapping[str, Any]: ...

    @property
    def operand(self) -> Mapping[str, Any]: ...


def rules_of(content: SchedulerContent, specs: AgentSpecs) -> PlacementRules | None:
    """Return all that decides placements; None if the content cannot be read."""
    config, operand = content.config, content.operand
    if not config or not operand:
        return None
    kept = {key: config[key] for key in PLACEMENT_FIELDS if key in config}
    agents = {
        name: fields
        for name in called_names(kept)
        if (fields := deciding_fields(specs.extenders.get(name, {})))
    }
    return PlacementRules(
        kept,
        _flags(operand),
        {item["name"]: item.get("value", "") for item in _answering(operand, config)},
        agents,
        specs.load_policies if specs.readers or _calls_agents(kept, agents) else {},
        specs.program,
        specs.sidecars,
        specs.readers,
    )


def called_names(config: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the SchedulerExtenders whose agents a configuration may call.

    An agent can be reached by several hosts, but its path has the name.
    """
    return tuple(url.rstrip("/").rpartition("/")[2] for url in _urls(config))


def _calls_agents(config: Mapping[str, Any], agents: Mapping[str, Any]) -> bool:
    """Whether it calls one, also of an object that was deleted."""
    return bool(agents) or any(map(agent_name, _urls(config)))


def _urls(config: Mapping[str, Any]) -> list[str]:
    extenders = map(mapping, entries(config.get("extenders")))
    return [str(extender.get("urlPrefix") or "") for extender in extenders]


def deciding_fields(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the part of a SchedulerExtender's agent that decides; empty without an agent."""
    agent = agent_of(spec) or {}
    return {key: value for key, value in agent.items() if key not in _UNRELATED}


def rules_hash(rules: PlacementRules) -> str:
    """The identity of rules: SHA-256, 64 hex digits.

    An agent's port, which the operator chooses, does not count.
    """
    config = dict(rules.config)
    if rules.agents:
        config["extenders"] = [
            {**extender, "urlPrefix": name}
            if (name := agent_name(url)) in rules.agents
            else extender
            for extender, url in zip(config["extenders"], _urls(config), strict=True)
        ]
    others = {
        "environment": rules.environment,
        "agents": rules.agents,
        "loadPolicies": rules.load_policies,
        "program": rules.program,
        "sidecars": rules.sidecars,
    }
    document = {"config": config, "flags": list(rules.flags)}
    text = canonical_json(document | {key: value for key, value in others.items() if value})
    return hashlib.sha256(text.encode()).hexdigest()


def agent_edits(before: PlacementRules, after: PlacementRules) -> Iterator[str]:
    """Name the agents that are called before and after an edit, and decide by other fields."""
    for name in dict.fromkeys(called_names(after.config)):
        is_called = name in called_names(before.config)
        if is_called and before.agents.get(name) != after.agents.get(name):
            yield f"SchedulerExtender {name}"
    both = all(_calls_agents(rules.config, rules.agents) for rules in (before, after))
    if both and before.load_policies != after.load_policies:
        yield from (f"LoadPolicy {name}" for name in after.load_policies or before.load_policies)


def changes_others_only(before: PlacementRules, after: PlacementRules) -> bool:
    """Whether an edit is about a LoadPolicy that agents of this scheduler do not read."""
    same = replace(before, load_policies=after.load_policies) == after
    return same and before != after and not _calls_agents(after.config, after.agents)


# --- the rules of another revision ---------------------------------------------------------------


def with_rules_of(content: RevisionContent, running: RevisionContent) -> RevisionContent:
    """`content` with the rules, and the recorded settings, of the revision that is in use.

    Another version has the feature gates that it brings, unless the edit is about them.
    """
    merged = merged_config(content.config, running.config)
    own = {**content.parts[names.CONFIG], names.CONFIG_KEY: canonical_json(merged)}
    parts = {**content.parts, names.CONFIG: own}
    pod = _with_deciding_parts(content, running)
    if pod != content.pod:
        parts[names.POD] = {**content.parts[names.POD], names.POD_KEY: canonical_json(pod)}
    return replace(content, parts=parts, inputs=running.inputs)


def merged_config(config: Mapping[str, Any], old: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration with the fields of the `old` one that decide placements."""
    merged = {key: value for key, value in config.items() if key not in PLACEMENT_FIELDS}
    return merged | {key: old[key] for key in PLACEMENT_FIELDS if key in old}


def merged_arguments(operand: Container, other: Container, image: str) -> list[str]:
    """The arguments with the flags of `other` that decide, as far as `image` has them.

    `image` is empty if both containers have the same one.
    """
    flags = _flags(other) if not image else _flags_of_image(_flags(other), image)
    if _flags(operand) == flags:
        return list(operand.get("args") or ())
    return _with_flags(operand, other, flags)


def _with_deciding_parts(content: RevisionContent, running: RevisionContent) -> Mapping[str, Any]:
    """The Pod with the flags and variables of `running` that decide placements."""
    pod, operand, other = content.pod, content.operand, running.operand
    if not pod:
        return pod
    changed = dict(operand)
    flags = _flags_for(content, running)
    if _flags(operand) != flags:
        changed["args"] = _with_flags(operand, other, flags)
    answering = _answering(other, running.config)
    if _answering(operand, running.config) != answering:
        changed["env"] = _with_variables(operand, other)
    containers = [
        changed if container == operand else container for container in pod["spec"]["containers"]
    ]
    return {**pod, "spec": {**pod["spec"], "containers": containers}}


def _flags_for(content: RevisionContent, running: RevisionContent) -> tuple[str, ...]:
    """The flags of `running` that decide placements, as far as the image of `content` has them."""
    flags = _flags(running.operand)
    if content.image == running.image:
        return flags
    settings = _gate_settings(running)
    if settings is not None and settings == _gate_settings(content):
        return _flags(content.operand)
    return _flags_of_image(flags, content.image)


def _flags_of_image(flags: Sequence[str], image: str) -> tuple[str, ...]:
    """The flags that kube-scheduler in this image has; all if its version is unknown."""
    try:
        version = Version.of_image(image)
    except ValueError:
        return tuple(flags)
    return tuple(filter(None, (_known(flag, version) for flag in flags)))


def _known(flag: str, version: Version) -> str:
    """The flag with only the feature gates that can be set in a version; empty without any."""
    if not flag.startswith(FLAG_PREFIX):
        return flag
    gates = flag.removeprefix(FLAG_PREFIX).split(",")
    kept = [gate for gate in gates if _can_be_set(gate, version)]
    return f"{FLAG_PREFIX}{','.join(kept)}" if kept else ""


def _can_be_set(gate: str, version: Version) -> bool:
    locked = known_gates(version.minor) or {}
    return all(
        has_gate(version, name) is not False and locked.get(name) in (None, value)
        for name, value in parse_gates((gate,)).items()
    )


def _gate_settings(content: RevisionContent) -> tuple[Any, ...] | None:
    """What users set for feature gates and emulation; None if it is not recorded."""
    inputs = read_inputs(content.inputs)
    if inputs is None:
        return None
    own = inputs.kubescheduler
    arguments = mapping(own.get(names.OVERRIDES)).get("arguments")
    return own.get("featureGates"), arguments, inputs.scheduler.get("profileCustomizations")


def _flags(operand: Container) -> tuple[str, ...]:
    return tuple(flag for flag in operand.get("args") or () if flag.startswith(_FLAGS))


def _with_flags(operand: Container, other: Container, flags: Sequence[str]) -> list[str]:
    """The arguments with `flags`, at their position in `other`."""
    arguments = [flag for flag in operand.get("args") or () if not flag.startswith(_FLAGS)]
    if flags:
        at = list(other["args"]).index(_flags(other)[0])
        arguments[at:at] = flags
    return arguments


def _answering(operand: Container, config: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The variables that choose who answers for extenders, if the configuration has any elsewhere.

    Agents are on the node, and Go uses no proxy for them.
    """
    if all(map(agent_name, _urls(config))):
        return []
    return [item for item in _variables(operand) if _chooses_answers(item)]


def _with_variables(operand: Container, other: Container) -> list[Mapping[str, Any]]:
    """The variables of `operand`, with those of `other` that decide, in their order there."""
    own = {item["name"]: item for item in _variables(operand) if not _chooses_answers(item)}
    merged = [
        item if _chooses_answers(item) else own.pop(item["name"])
        for item in _variables(other)
        if _chooses_answers(item) or item["name"] in own
    ]
    return [*merged, *own.values()]


def _variables(operand: Container) -> list[Mapping[str, Any]]:
    return [mapping(item) for item in entries(operand.get("env"))]


def _chooses_answers(variable: Mapping[str, Any]) -> bool:
    return str(variable.get("name")).upper().endswith(_ANSWERING)
