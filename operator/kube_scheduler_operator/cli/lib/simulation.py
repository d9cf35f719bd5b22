"""What commands that simulate share: their flags, the world, and the configuration."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ...base import names
from ...kube.errors import KubeError
from ...kube.resource import CONFIG_MAPS
from ...schedulerconfig.schema import KIND
from ...schedulerconfig.source import read
from .connection import run_connected
from .errors import CommandError, UsageError
from .input_files import display_name, read_bytes
from .where_to_run import Place, add_where_flags, place_of_cluster, place_of_files

if TYPE_CHECKING:
    from ...base.platform import Platform
    from ...kube.client import ApiClient
    from ...simulate.questions import Question, Simulator
    from ...simulate.run import RunOptions
    from ...simulate.world import World
    from .compare import ParsedRevision
    from .in_cluster import Operand

T = TypeVar("T")

_SECONDS: Final = 120
_GATES: Final = "--feature-gates="


@dataclass(slots=True)
class Simulation:
    """What to simulate.

    Attributes:
        world: the copy of the cluster.
        options: how to run kube-scheduler.
        where: runs it, on this machine or in the cluster.
        notes: what the simulation does not consider, one sentence each.
    """

    world: World
    options: RunOptions
    where: Simulator
    notes: list[str] = field(default_factory=list)

    async def ask(self, question: Question[T], **arguments: Any) -> T:
        """The answer to a question (`simulate/questions.py`) about the world.

        Raises:
            CommandError, KubeError: kube-scheduler could not be run.
        """
        from ...simulate.process import SimulationError

        try:
            return await self.where.ask(question, self.world, self.options, **arguments)
        except SimulationError as error:
            raise CommandError(str(error)) from None

    async def close(self) -> None:
        """Remove what runs in the cluster."""
        await self.where.close()


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
        help="the kube-scheduler of this machine to run (default: $KUBEBUILDER_ASSETS, PATH, the "
        "build cache)",
    )
    add_where_flags(parser)
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
        simulation = await connected(api, platform)
        try:
            return await show(simulation)
        finally:
            await simulation.close()

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
    chosen = _configuration_file(args.config) if args.config is not None else config
    return _simulation(args, found.world, chosen, (), notes, place_of_files(args))


async def from_cluster(
    api: ApiClient, platform: Platform, args: argparse.Namespace, scheduler_name: str | None
) -> Simulation:
    """The simulation of the cluster, with the configuration of the scheduler of this name.

    Raises:
        KubeError: the cluster cannot be read.
        CommandError: there is no kube-scheduler.
    """
    from ...simulate.read_cluster import read_cluster

    notes: list[str] = []
    config: Mapping[str, Any] | None = None
    flags: Sequence[str] = ()
    operand: Operand | None = None
    if args.config is None:
        running = await running_configuration(api, platform, scheduler_name, notes)
        config, flags, operand = running
    elif not args.kube_scheduler and not args.local:
        _, _, operand = await running_configuration(api, platform, scheduler_name, [])
    world = await read_cluster(api)
    world.version = str((await api.get_path("/version")).get("gitVersion") or "")
    chosen = _configuration_file(args.config) if args.config is not None else config
    place = await place_of_cluster(api, platform, args, world, chosen, operand, notes)
    return _simulation(args, world, chosen, flags, notes, place)


async def running_configuration(
    api: ApiClient, platform: Platform, scheduler_name: str | None, notes: list[str]
) -> tuple[Mapping[str, Any] | None, Sequence[str], Operand | None]:
    """(configuration, flags, image) of the scheduler that serves this name; None: not known."""
    from .compare import parse_revision, profiles_of
    from .objects import get_kubescheduler
    from .revisions import find_running_revision, list_revisions, nodes_by_revision

    config: Mapping[str, Any] | None = None
    flags: Sequence[str] = ()
    operand: Operand | None = None
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
        operand = _operand(made, platform)
    if scheduler_name is None or scheduler_name not in (profiles_of(config or {}) or {}):
        for secondary in await _secondary_contents(api):
            if scheduler_name in (profiles_of(secondary.config) or {}):
                return secondary.config, (), _operand(secondary, platform)
    if unknown:
        notes.append(unknown)
    return config, flags, operand


def _operand(content: ParsedRevision, platform: Platform) -> Operand | None:
    from .in_cluster import Operand

    containers = (content.pod.get("spec") or {}).get("containers") or ()
    own: Mapping[str, Any] = next(
        (each for each in containers if each.get("name") == names.OPERAND), {}
    )
    command = own.get("command") or platform.operand_command
    return Operand(content.image, tuple(command)) if content.image else None


async def _secondary_contents(api: ApiClient) -> list[ParsedRevision]:
    """What secondary schedulers run, newest first."""
    from ...secondary.content import content_of
    from .scheduler_contents import parse_content

    try:
        found = (await api.list(CONFIG_MAPS, label_selector=names.SECONDARY_LABEL)).items
    except KubeError:
        return []
    found.sort(key=lambda obj: str(obj["metadata"].get("creationTimestamp")), reverse=True)
    return [parse_content(content_of(config_map)) for config_map in found]


def _simulation(
    args: argparse.Namespace,
    world: World,
    config: Mapping[str, Any] | None,
    flags: Sequence[str],
    notes: list[str],
    place: Place,
) -> Simulation:
    from ...simulate.configuration import default_configuration
    from ...simulate.run import RunOptions

    if args.feature_gates:
        flags = [f"{_GATES}{','.join(args.feature_gates)}"]
    final = dict(config or default_configuration())
    extenders = final.pop("extenders", None) or ()
    notes += [f"the extender {each.get('urlPrefix')} is left out" for each in extenders]
    options = RunOptions(place.binary, final, flags, args.timeout)
    return Simulation(world, options, place.where, [*notes, *world.notes])


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
