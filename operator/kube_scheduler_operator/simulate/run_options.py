"""What a run is started with, and which of its schedulers serves a pod."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..config.language.feature_gates import FLAG, FLAG_PREFIX, Gates, parse_gates
from ..config.language.plugins.effective_plugins import effective_plugins
from .configuration import profiles_of
from .decisions import unknown_scheduler
from .extenders import LeftOutExtender, SimulatedExtender
from .process import Binary, SimulationError, binary_version


@dataclass(frozen=True, slots=True)
class OtherScheduler:
    """A scheduler of the cluster besides the one of the options."""

    title: str  # for messages
    names: tuple[str, ...]  # the schedulerNames that it serves
    config: Mapping[str, Any] = field(default_factory=dict)  # its KubeSchedulerConfiguration
    flags: Sequence[str] = ()
    extenders: tuple[SimulatedExtender, ...] = ()
    left_out: tuple[LeftOutExtender, ...] = ()  # its extenders that do not take part
    problem: str = ""  # why it cannot be simulated; empty: it can


@dataclass(frozen=True, slots=True)
class RunOptions:
    binary: Binary
    config: Mapping[str, Any]  # the KubeSchedulerConfiguration
    flags: Sequence[str] = ()  # further flags, e.g. --feature-gates
    seconds: float = 120.0  # limit of the whole run
    profiles: Sequence[Mapping[str, Any]] = ()  # additional profiles
    scores: bool = False  # read the scores of nodes
    # our own extenders, which take part in process; they see probes only if their schedulerName is
    # in `extended`
    extenders: tuple[SimulatedExtender, ...] = ()
    left_out: tuple[LeftOutExtender, ...] = ()  # extenders that do not take part
    # seconds since 1970 at which the world was read; None: it is current. Measured loads of nodes
    # are valid for some minutes.
    now: float | None = None
    # schedulerNames of pods that are never bound: only the nodes that would accept them are
    # recorded, as `PodDecision.candidates`
    probes: frozenset[str] = frozenset()
    extended: frozenset[str] = frozenset()
    # the schedulerName of the probed pods, for extenders that select pods by it
    probed: str = ""
    # the other schedulers of the cluster; `config` comes first if two have the same schedulerName
    others: tuple[OtherScheduler, ...] = ()
    unread: str = ""  # why there may be schedulers that are not in `others`
    # by schedulerName that no scheduler serves, in words, the object that has it and is not in use
    refused: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ServingScheduler:
    """The scheduler that serves a schedulerName."""

    options: RunOptions | None  # it alone; None: it cannot be simulated, or does not exist
    problem: str = ""  # why it cannot be simulated, or that it does not exist
    exists: bool = True  # whether there is one, or may be one
    title: str = ""  # of one of the others


def serving(options: RunOptions, scheduler_name: str) -> ServingScheduler:
    """Decide which scheduler serves the pods of a schedulerName; every question asks here."""
    if scheduler_name in names_of(options.config):
        return ServingScheduler(replace(options, others=()))
    for other in options.others:
        if scheduler_name in other.names:
            if other.problem:
                problem = f"{other.title} is not simulated: {other.problem}"
                return ServingScheduler(None, problem, title=other.title)
            alone = replace(
                options,
                config=other.config,
                flags=other.flags,
                extenders=other.extenders,
                left_out=other.left_out,
                others=(),
            )
            return ServingScheduler(alone, title=other.title)
    problem = unknown_scheduler(scheduler_name, options.refused.get(scheduler_name, ""))
    if options.unread:
        return ServingScheduler(None, f"{problem}, as far as is known: {options.unread}")
    return ServingScheduler(None, problem, exists=False)


def simulated_names(options: RunOptions) -> list[str]:
    """Return the schedulerNames whose schedulers can be simulated."""
    others = (name for other in options.others if not other.problem for name in other.names)
    return list(dict.fromkeys((*names_of(options.config), *others)))


def names_of(config: Mapping[str, Any]) -> list[str]:
    return [profile["schedulerName"] for profile in profiles_of(config)]


def gates_of(options: RunOptions) -> Gates:
    """Return the feature gates of the program with these flags.

    Raises:
        SimulationError: the program does not report its version, or does not start with the flags.
    """
    values = [flag.partition("=")[2] for flag in options.flags if flag.startswith(FLAG_PREFIX)]
    try:
        gates = parse_gates(values)
    except ValueError as error:
        raise SimulationError(f"--{FLAG}: {error}") from None
    return Gates(binary_version(options.binary), gates)


def has_unknown_plugins(options: RunOptions) -> bool:
    """Return whether there may be plugins that read what those of Kubernetes do not."""
    gates = gates_of(options)
    configs = (options.config, *(other.config for other in options.others))
    profiles = (profile for config in configs for profile in profiles_of(config))
    return any(effective_plugins(profile, gates).unknown for profile in profiles)
