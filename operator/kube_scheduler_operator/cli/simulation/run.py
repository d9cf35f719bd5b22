"""What commands that simulate share: the world, the configuration, and where it runs."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from ...base.platform import Platform
from ...base.source.reader import read
from ...config.language.feature_gates import FLAG_PREFIX, Gates
from ...config.language.plugins.effective_plugins import effective_plugins
from ...config.language.schema import KIND
from ...config.language.versions import Version
from ...config.lint.documents.other_files import counted_kinds
from ...kube.client import ApiClient
from ...kube.errors import KubeError, NotFound
from ...kube.resource import LOAD_POLICIES, SCHEDULER_EXTENDERS
from ...simulate.configuration import default_configuration
from ...simulate.extenders import measured_at
from ...simulate.kinds import NODES
from ...simulate.process import SimulationError, binary_version, candidates, find_binary
from ...simulate.questions import NO_BINARY, Question
from ...simulate.read_cluster import read_cluster
from ...simulate.read_files import WorldFileError, read_files
from ...simulate.run import RunOptions
from ...simulate.simulated_extenders import simulated_extenders, version_of
from ...simulate.world import World
from ..cluster.connection import connected
from ..console.errors import CommandError, UsageError, error_message
from ..console.input_files import display_name, read_bytes
from .in_cluster import JobSimulator
from .running_scheduler import Operand, RunningConfiguration, running_scheduler

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class OwnObjects:
    """Objects of our own group that extenders need."""

    extenders: Sequence[Mapping[str, Any]] = ()
    load_policies: Sequence[Mapping[str, Any]] = ()
    from_files: bool = False  # with a configuration that the operator may not have made
    error: str = ""  # why they cannot be read


@dataclass(slots=True)
class Simulation:
    world: World
    options: RunOptions
    job: JobSimulator | None = None  # of the cluster; None: kube-scheduler runs on this machine
    notes: list[str] = field(default_factory=list)  # what is not considered, a sentence each
    own: OwnObjects = OwnObjects()  # for extenders

    def with_configuration(self, config: Mapping[str, Any]) -> RunOptions:
        """Return the options for a configuration with its extenders; note those left out."""
        final = dict(config)
        entries = final.pop("extenders", None) or ()
        if self.own.error and entries:
            self.notes.append(f"SchedulerExtenders cannot be read: {self.own.error}")
        extenders, notes = simulated_extenders(
            entries,
            self.own.extenders,
            self.own.load_policies,
            version_of(self.world.version),
            attach=self.own.from_files,
        )
        self.notes += [note for note in notes if note not in self.notes]
        return replace(self.options, config=final, extenders=tuple(extenders))

    async def ask(
        self,
        question: Question[T],
        *,
        world: World | None = None,
        options: RunOptions | None = None,
        **arguments: Any,
    ) -> T:
        """Answer a question (`simulate/questions.py`) about the world, or a changed one.

        Raises:
            CommandError, KubeError: kube-scheduler could not be run.
        """
        world, options = world or self.world, options or self.options
        try:
            if self.job is None:
                return await question(world=world, options=options, **arguments)
            return await self.job.ask(question, world, options, **arguments)
        except SimulationError as error:
            raise CommandError(str(error)) from None

    async def aclose(self) -> None:
        if self.job is not None:
            await self.job.close()


def run_simulating(
    args: argparse.Namespace,
    show: Callable[[Simulation], Coroutine[Any, Any, int]],
    read: Callable[[ApiClient, Platform], Awaitable[Simulation]],
    *,
    failure: int = 1,
) -> int:
    """Show the simulation of the files, or of the cluster, which `read` reads.

    `show` prints the answer and returns the exit code; `failure` is that of errors of the cluster.

    Raises:
        CommandError: the files cannot be simulated.
    """

    async def work(api: ApiClient, platform: Platform, _args: argparse.Namespace) -> int:
        async with aclosing(await read(api, platform)) as simulation:
            return await show(simulation)

    if args.from_files:
        return asyncio.run(show(from_files(args)))
    return connected(work, failure=failure)(args)


def from_files(args: argparse.Namespace) -> Simulation:
    """Simulate the cluster in files.

    Raises:
        CommandError: a file cannot be read, or there is no kube-scheduler.
    """
    try:
        files = read_files([Path(name) for name in args.from_files])
    except WorldFileError as error:
        raise UsageError(str(error)) from None
    if not files.world.objects[NODES]:
        named = ", ".join(args.from_files)
        other = counted_kinds([kind for kind, count in files.ignored.items() for _ in range(count)])
        has = f", but {other}" if other else ""
        raise UsageError(
            f"{named}: there is no Node{has}; add the output of kubectl get nodes,pods -A -o yaml"
        )
    notes: list[str] = []
    config: Mapping[str, Any] | None = None
    if args.config is None and len(files.configurations) > 1:
        names = ", ".join(name for name, _ in files.configurations)
        raise UsageError(f"several files are a {KIND}: choose one with --config: {names}")
    if files.configurations:
        config = files.configurations[0][1]
    elif args.config is None:
        notes.append(f"no file is a {KIND}, so kube-scheduler runs with its defaults (--config)")
    chosen = configuration_file(args.config) if args.config is not None else config
    own = OwnObjects(
        [obj for obj in files.own if obj.get("kind") == SCHEDULER_EXTENDERS.kind],
        [obj for obj in files.own if obj.get("kind") == LOAD_POLICIES.kind],
        from_files=True,
    )
    if args.in_cluster:
        raise UsageError("--in-cluster cannot be combined with --from-files")
    return _simulation(args, files.world, chosen, (), notes, _local(args, ""), own)


async def from_cluster(
    api: ApiClient, platform: Platform, args: argparse.Namespace, scheduler_name: str | None
) -> Simulation:
    """Simulate the cluster, with the configuration of the scheduler of this name.

    Raises:
        KubeError: the cluster cannot be read.
        CommandError: there is no kube-scheduler.
    """
    running = RunningConfiguration()
    if args.config is None or not (args.kube_scheduler or args.local):
        running = await running_scheduler(api, platform, scheduler_name)
    notes = list(running.doubts)
    if args.config is None and running.unknown:
        notes.append(running.unknown)
    own = await _own_objects(api)
    world = await read_cluster(api, annotations=bool(own.extenders))
    world.version = str((await api.get_path("/version")).get("gitVersion") or "")
    chosen, flags = running.config, running.flags
    if args.config is not None:
        chosen, flags = configuration_file(args.config), ()
    place = await place_of_cluster(api, platform, args, world, chosen, running.operand, notes)
    return _simulation(args, world, chosen, flags, notes, place, own)


async def _own_objects(api: ApiClient) -> OwnObjects:
    try:
        extenders = (await api.list(SCHEDULER_EXTENDERS)).items
        load_policies = (await api.list(LOAD_POLICIES)).items if extenders else []
    except NotFound:
        return OwnObjects()
    except KubeError as error:
        return OwnObjects(error=str(error))
    return OwnObjects(extenders, load_policies)


def _simulation(
    args: argparse.Namespace,
    world: World,
    config: Mapping[str, Any] | None,
    flags: Sequence[str],
    notes: list[str],
    place: Place,
    own: OwnObjects,
) -> Simulation:
    if args.feature_gates:
        flags = [f"{FLAG_PREFIX}{','.join(args.feature_gates)}"]
    now = measured_at(world) if own.from_files else None
    options = RunOptions(place.binary, {}, flags, args.timeout, now=now)
    simulation = Simulation(world, options, place.job, [*notes, *world.notes], own)
    simulation.options = simulation.with_configuration(config or default_configuration())
    if not own.extenders:
        world.drop_annotations()
    return simulation


def configuration_file(name: str) -> Mapping[str, Any]:
    """Read the KubeSchedulerConfiguration in a file.

    Raises:
        UsageError: it cannot be read, or has none.
    """
    documents, error = read(read_bytes(name))
    if error is not None:
        at = f"{display_name(name)}:{error.position.line}:{error.position.column}"
        raise UsageError(f"{at}: {error.message}")
    values = [obj.value for document in documents for obj in document.objects()]
    for value in values:
        if isinstance(value, dict) and value.get("kind") == KIND:
            return value
    raise UsageError(f"{display_name(name)}: this is not a {KIND}")


# --- where kube-scheduler runs ------------------------------------------------------------------


class Place(NamedTuple):
    binary: Path
    job: JobSimulator | None = None  # that runs it in the cluster


async def place_of_cluster(
    api: ApiClient,
    platform: Platform,
    args: argparse.Namespace,
    world: World,
    config: Mapping[str, Any] | None,
    operand: Operand | None,
    notes: list[str],
) -> Place:
    """Choose where to simulate a cluster: on this machine or in the cluster.

    A kube-scheduler on this machine answers at once, but only one of the cluster's version without
    plugins of others decides as the cluster's own does. Otherwise a Job with the very image runs
    it.

    `config` None: kube-scheduler's defaults; `operand` None: the cluster's own is not known.
    `notes` receives what the simulation does not consider.

    Raises:
        UsageError: no kube-scheduler can be run.
        CommandError, KubeError: the Job was asked for and cannot be made.
    """
    if args.local or args.kube_scheduler:
        if args.in_cluster:
            raise UsageError("--in-cluster cannot be combined with --kube-scheduler")
        place = _local(args, world.version)
        notes += _difference(place.binary, world.version)
        return place
    if not args.in_cluster and (binary := _fitting(world.version, config)) is not None:
        return Place(binary)
    job = JobSimulator(api, platform, operand, args.job_namespace, args.job_node)
    try:
        await job.prepare(world)
    except (CommandError, KubeError) as error:
        if args.in_cluster:
            raise
        refused = f"it cannot run in the cluster: {error_message(error)}"
        try:
            place = _local(args, world.version)
        except UsageError as missing:
            raise UsageError(f"{missing}; {refused}") from None
        notes += [*_difference(place.binary, world.version), refused]
        return place
    return Place(NO_BINARY, job)


def _local(args: argparse.Namespace, version: str) -> Place:
    try:
        return Place(find_binary(args.kube_scheduler, version))
    except SimulationError as error:
        raise UsageError(str(error)) from None


def _fitting(version: str, config: Mapping[str, Any] | None) -> Path | None:
    """Return a program of the cluster's version that has all plugins of a configuration."""
    try:
        own = Version.parse(version)
    except ValueError:
        return None
    profiles = (config or {}).get("profiles") or ()
    if any(effective_plugins(profile, Gates(own)).unknown for profile in profiles):
        return None
    for binary in candidates(version):
        try:
            if binary_version(binary).short == own.short:
                return binary
        except SimulationError:
            continue
    return None


def _difference(binary: Path, version: str) -> list[str]:
    try:
        used, own = binary_version(binary), Version.parse(version)
    except (SimulationError, ValueError) as error:
        return [f"the version of the cluster or of kube-scheduler: {error}"]
    if used.short == own.short:
        return []
    return [
        f"the simulation runs kube-scheduler {used.short}, but the cluster has {own.short}: "
        "choose its program with --kube-scheduler, or use --in-cluster"
    ]
