"""What decides now: the configuration that runs, with the origin of every setting."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ...base.objects import mapping
from ...base.platform import Platform
from ...config.effective.attachment import is_ours
from ...config.effective.control_plane.recorded_inputs import RecordedInputs, read_inputs
from ...config.effective.secondary.compose import LEASE_FIELDS
from ...config.language.merging.presets import PRESETS, default_config, profile_fragment
from ...config.language.plugins.plugin_origins import (
    BASE,
    DEFAULT,
    OVERRIDE,
    PROFILE,
    Layer,
    ProfileTable,
    profile_tables,
)
from ...kube.api import Api
from ...operator.controlplane.revision.history import Revision
from ..cluster.compare import ParsedRevision, gates_of, parse_revision, profiles_of, without
from ..cluster.operator_objects import get_kubescheduler
from ..cluster.revisions import find_running_revision, list_revisions, nodes_by_revision
from ..cluster.scheduler_contents import find_scheduler, read_contents, readable, running_content
from ..console.errors import CommandError


@dataclass(frozen=True, slots=True)
class Running:
    """The configuration that runs, and the layers from which it was merged."""

    title: str
    parsed: ParsedRevision
    layers: Sequence[Layer]


@dataclass(frozen=True, slots=True)
class EffectiveSetting:
    """A value in the configuration, other than a list of plugins."""

    path: str
    value: str  # as JSON
    origin: str  # as of a plugin's entry


@dataclass(frozen=True, slots=True)
class EffectiveConfiguration:
    """What decides now."""

    title: str
    image: str
    kubernetes_version: str
    arguments: Sequence[str]  # of kube-scheduler
    settings: Sequence[EffectiveSetting]
    profiles: Sequence[ProfileTable]


async def read_running(api: Api, platform: Platform, scheduler_name: str | None) -> Running:
    """Read what the control plane's scheduler runs, or a SecondaryScheduler.

    Raises:
        CommandError: it runs nothing yet, or what it runs cannot be parsed.
    """
    scheduler = await find_scheduler(api, platform, scheduler_name)
    if scheduler is not None:
        content = running_content(await read_contents(api, scheduler))
        parsed = readable(content)
        inputs = content.inputs if is_ours(scheduler) else None
        layers = list(layers_of_secondary(parsed.config, inputs, platform))
        return Running(f"configuration {content.hash}", parsed, layers)
    nodes = nodes_by_revision(await get_kubescheduler(api))
    revision = find_running_revision(await list_revisions(api, platform), nodes)
    parsed, title = parse_revision(revision.content), f"revision {revision.number}"
    if profiles_of(parsed.config) is None:
        raise CommandError(
            f"the configuration of {title} is invalid; use `kubectl scheduler diff` to see it"
        )
    return Running(title, parsed, layers_of(revision, platform))


def layers_of(revision: Revision, platform: Platform) -> list[Layer]:
    """Return the layers from which a revision's configuration was merged, from its recorded inputs.

    Revisions of older operators have no recorded inputs; their configuration is one layer.
    """
    inputs = read_inputs(revision.inputs)
    if inputs is None:
        return [Layer(PROFILE, parse_revision(revision.content).config)]
    profile = str(inputs.scheduler.get("profile") or "")
    base = profile_fragment(profile) if profile in ("", *PRESETS) else {}
    layers = [Layer(BASE, base), Layer(BASE, default_config(platform))]
    observed = inputs.kubescheduler.get("observedConfig")
    if isinstance(observed, Mapping):
        layers.append(Layer(PROFILE, observed))
    overrides = inputs.kubescheduler.get("unsupportedConfigOverrides")
    if isinstance(overrides, Mapping):
        layers.append(Layer(OVERRIDE, overrides))
    return layers


def layers_of_secondary(
    config: Mapping[str, Any], inputs: RecordedInputs | None, platform: Platform
) -> Iterator[Layer]:
    """Yield the layers of a SecondaryScheduler; `inputs` are those of the operator's own one.

    Plugins have the origin "profile": its spec is what they were composed from.
    """
    yield Layer(PROFILE, config)
    if inputs is not None:
        overrides = mapping(inputs.kubescheduler.get("unsupportedConfigOverrides"))
        yield Layer(BASE, without(default_config(platform), "profiles"))
        yield Layer(OVERRIDE, without(overrides, "profiles"))
    election = mapping(config.get("leaderElection"))
    lease = {key: election[key] for key in LEASE_FIELDS if key in election}
    yield Layer(BASE, {"leaderElection": lease})


def effective_of(running: Running) -> EffectiveConfiguration:
    """Return the configuration with the origin of each setting."""
    parsed, layers = running.parsed, running.layers
    gates = gates_of(parsed)
    return EffectiveConfiguration(
        running.title,
        parsed.image,
        gates.version.short,
        parsed.arguments,
        list(_settings(parsed.config, layers)),
        profile_tables(parsed.config, layers, gates),
    )


_NO_SETTINGS: Final = ("apiVersion", "kind", "plugins")
_NAMES: Final = ("schedulerName", "name", "urlPrefix")
"""The fields that identify an entry of a list."""


def _settings(config: Mapping[str, Any], layers: Sequence[Layer]) -> Iterator[EffectiveSetting]:
    leaves = [(layer.origin, dict(_leaves(layer.config))) for layer in layers]
    for path, value in _leaves(config):
        setting = [origin for origin, found in leaves if found.get(path) == value]
        # No layer has SchedulerExtenders, and kube-scheduler has no extender of its own.
        otherwise = PROFILE if path.startswith("extenders") else DEFAULT
        yield EffectiveSetting(path, value, setting[-1] if setting else otherwise)


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield (path, value as JSON) of each leaf; entries of lists are identified by their name."""
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            if key not in _NO_SETTINGS:
                yield from _leaves(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list) and value and all(_name(item) for item in value):
        for item in value:
            name = _name(item)
            rest = {key: field for key, field in item.items() if field != name}
            yield from _leaves(rest, f"{path}[{name}]")
    elif value not in ({}, []):
        yield path, json.dumps(value, ensure_ascii=False)


def _name(item: Any) -> str:
    if not isinstance(item, Mapping):
        return ""
    return next((str(item[key]) for key in _NAMES if item.get(key)), "")
