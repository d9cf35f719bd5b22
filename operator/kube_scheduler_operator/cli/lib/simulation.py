"""What commands that simulate share: their flags, the world, and the configuration."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import sys
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ...base import names
from ...kube.errors import KubeError
from ...kube.resource import CONFIG_MAPS
from ...schedulerconfig.schema import KIND
from ...schedulerconfig.source import read
from ...schedulerconfig.versions import Version
from .connection import run_connected
from .errors import CommandError, UsageError
from .input_files import display_name, read_bytes

if TYPE_CHECKING:
    from ...base.platform import Platform
    from ...kube.client import ApiClient
    from ...simulate.run import RunOptions
    from ...simulate.world import World

_SECONDS: Final = 120
_GATES: Final = "--feature-gates="


@dataclass(slots=True)
class Simulation:
    """What to simulate.

    Attributes:
        world: the copy of the cluster.
        options: how to run kube-scheduler.
        notes: what the simulation does not consider, one sentence each.
    """

    world: World
    options: RunOptions
    notes: list[str] = field(default_factory=list)


def add_simulation_flags(parser: argparse.ArgumentParser) -> None:
    """The flags that all simulating commands have."""
    parser.add_argument(
        "--from-files",
        action="append",
        default=[],
        metavar="PATH",
        help="read the cluster from files or directories instead: the output of `kubectl get -o "
        "yaml` or `-o json` for nodes, pods and the other kinds that kube-scheduler reads, or a "
        "must-gather; can be repeated",
    )
    parser.add_argument(
        "--config",
        metavar="FILE",
        help="simulate with this KubeSchedulerConfiguration (default: that of the cluster or of "
        "the files, otherwise kube-scheduler's defaults)",
    )
    parser.add_argument(
        "--kube-scheduler",
        metavar="PATH",
        help="the kube-scheduler to run (default: $KUBEBUILDER_ASSETS, PATH, the build cache)",
    )
    parser.add_argument(
        "--feature-gates",
        action="append",
        default=[],
        metavar="NAME=true",
        help="feature gates for kube-scheduler, as in its own flag; can be repeated",
    )
    parser.add_argument(
        "--timeout",
        type=float,
        default=_SECONDS,
        metavar="SECONDS",
        help="limit of the simulation (default: %(default)s)",
    )


def run_simulating(
    args: argparse.Namespace,
    show: Callable[[Simulation], Coroutine[Any, Any, int]],
    connected: Callable[[ApiClient, Platform], Awaitable[Simulation]],
) -> int:
    """Show the simulation of the files, or of the cluster; 2 for invalid usage, 1 for other errors.

    Args:
        args: with the flags of `add_simulation_flags` and `add_cluster_flags`.
        show: prints the answer; returns the exit code.
        connected: the simulation of the cluster.
    """

    async def work(api: ApiClient, platform: Platform) -> int:
        return await show(await connected(api, platform))

    try:
        if args.from_files:
            return asyncio.run(show(from_files(args)))
        return run_connected(args, work)
    except UsageError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    except CommandError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1


def from_files(args: argparse.Namespace) -> Simulation:
    """The simulation of the cluster in files.

    Raises:
        CommandError: a file cannot be read, or there is no kube-scheduler.
    """
    from ...simulate.read_files import WorldFileError, read_files

    try:
        found = read_files([Path(name) for name in args.from_files])
    except WorldFileError as error:
        raise UsageError(str(error)) from None
    if not found.world.objects:
        raise UsageError(f"{', '.join(args.from_files)}: there is no object to simulate with")
    notes = []
    config: Mapping[str, Any] | None = None
    if args.config is None and len(found.configurations) > 1:
        names = ", ".join(name for name, _ in found.configurations)
        raise UsageError(f"several files are a {KIND}: choose one with --config: {names}")
    if found.configurations:
        config = found.configurations[0][1]
    elif args.config is None:
        notes.append(f"no file is a {KIND}, so kube-scheduler runs with its defaults (--config)")
    return _simulation(args, found.world, config, (), notes)


async def from_cluster(
    api: ApiClient, platform: Platform, args: argparse.Namespace, scheduler_name: str | None
) -> Simulation:
    """The simulation of the cluster, with the configuration of the scheduler of this name.

    Raises:
        KubeError: the cluster cannot be read.
        CommandError: there is no kube-scheduler.
    """
    from ...simulate.process import SimulationError, binary_version
    from ...simulate.read_cluster import read_cluster

    notes: list[str] = []
    config: Mapping[str, Any] | None = None
    flags: Sequence[str] = ()
    if args.config is None:
        config, flags = await running_configuration(api, platform, scheduler_name, notes)
    world = await read_cluster(api)
    world.version = str((await api.get_path("/version")).get("gitVersion") or "")
    simulation = _simulation(args, world, config, flags, notes)
    try:
        used, own = binary_version(simulation.options.binary), Version.parse(world.version)
    except (SimulationError, ValueError) as error:
        simulation.notes.append(f"the version of the cluster or of kube-scheduler: {error}")
        return simulation
    if used.short != own.short:
        simulation.notes.append(
            f"the simulation runs kube-scheduler {used.short}, but the cluster has {own.short}: "
            "choose its program with --kube-scheduler"
        )
    return simulation


async def running_configuration(
    api: ApiClient, platform: Platform, scheduler_name: str | None, notes: list[str]
) -> tuple[Mapping[str, Any] | None, Sequence[str]]:
    """(configuration, flags) of the scheduler that serves this name; None: not known."""
    from .compare import parse_revision, profiles_of
    from .objects import get_kubescheduler
    from .revisions import find_running_revision, list_revisions, nodes_by_revision

    config: Mapping[str, Any] | None = None
    flags: Sequence[str] = ()
    try:
        nodes = nodes_by_revision(await get_kubescheduler(api))
        revision = find_running_revision(await list_revisions(api, platform), nodes)
    except (KubeError, CommandError) as error:
        unknown = (
            f"the scheduler's configuration is not known, so it runs with its defaults: {error}"
        )
    else:
        unknown = ""
        made = parse_revision(revision.content)
        config = made.config
        flags = [flag for flag in made.arguments if flag.startswith(_GATES)]
    if scheduler_name is None or scheduler_name not in (profiles_of(config or {}) or {}):
        for secondary in await _secondary_configurations(api):
            if scheduler_name in (profiles_of(secondary) or {}):
                return secondary, ()
    if unknown:
        notes.append(unknown)
    return config, flags


async def _secondary_configurations(api: ApiClient) -> list[dict[str, Any]]:
    """The configurations of secondary schedulers, newest first."""
    try:
        found = (await api.list(CONFIG_MAPS, label_selector=names.SECONDARY_LABEL)).items
    except KubeError:
        return []
    found.sort(key=lambda obj: str(obj["metadata"].get("creationTimestamp")), reverse=True)
    documents = []
    for config_map in found:
        with contextlib.suppress(ValueError):
            documents.append(json.loads((config_map.get("data") or {}).get(names.CONFIG_KEY, "")))
    return [document for document in documents if isinstance(document, dict)]


def _simulation(
    args: argparse.Namespace,
    world: World,
    config: Mapping[str, Any] | None,
    flags: Sequence[str],
    notes: list[str],
) -> Simulation:
    from ...simulate.configuration import default_configuration
    from ...simulate.process import SimulationError, find_binary
    from ...simulate.run import RunOptions

    chosen = _configuration_file(args.config) if args.config is not None else config
    try:
        binary = find_binary(args.kube_scheduler, world.version)
    except SimulationError as error:
        raise UsageError(str(error)) from None
    if args.feature_gates:
        flags = [f"{_GATES}{','.join(args.feature_gates)}"]
    final = dict(chosen or default_configuration())
    extenders = final.pop("extenders", None) or ()
    notes += [f"the extender {each.get('urlPrefix')} is left out" for each in extenders]
    options = RunOptions(binary, final, flags, args.timeout)
    return Simulation(world, options, [*notes, *world.notes])


def _configuration_file(name: str) -> Mapping[str, Any]:
    documents, error = read(read_bytes(name))
    if error is not None:
        at = f"{display_name(name)}:{error.position.line}:{error.position.column}"
        raise UsageError(f"{at}: {error.message}")
    values = [each.value for document in documents for each in document.objects()]
    for value in values:
        if isinstance(value, dict) and value.get("kind") == KIND:
            return value
    raise UsageError(f"{display_name(name)}: this is not a {KIND}")
