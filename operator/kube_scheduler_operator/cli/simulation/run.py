"""What commands that simulate share: the world, the configuration, and where it runs."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import (
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, TypeVar

from ...base.platform import Platform
from ...base.progress import step
from ...base.source.reader import read
from ...config.effective.attachment import is_ours
from ...config.effective.secondary.scheduler import running_names
from ...config.language.merging.presets import profile_fragment
from ...config.language.schema import DEFAULT_SCHEDULER, KIND
from ...config.language.versions import Version
from ...config.lint.documents.other_files import counted_kinds
from ...config.lint.forms.workload import is_stock
from ...kube.client import ApiClient
from ...kube.errors import KubeError, NotFound
from ...kube.resource import CONFIG_MAPS, LOAD_POLICIES, SCHEDULER_EXTENDERS, SECONDARY_SCHEDULERS
from ...simulate.absence import lacking
from ...simulate.cluster_version import ClusterVersion, cluster_version
from ...simulate.configuration import (
    default_configuration,
    profiles_of,
    with_profile,
    without_calls,
)
from ...simulate.decided_by import DEFAULTS, ClusterDecidedBy, DecidedBy, number
from ...simulate.extenders import measured_at
from ...simulate.kinds import NODES, PODS
from ...simulate.malformed import ERRORS as MALFORMED_ERRORS
from ...simulate.malformed import malformed
from ...simulate.other_schedulers import merged
from ...simulate.process import SimulationError
from ...simulate.questions import NO_BINARY, Question
from ...simulate.read_cluster import read_cluster
from ...simulate.read_files import Input, WorldFileError, configuration_in, read_files
from ...simulate.run_options import OtherScheduler, RunOptions
from ...simulate.simulated_extenders import Extenders, simulated_extenders, version_of
from ...simulate.world import World
from ..cluster.connection import connected
from ..cluster.operator_objects import find_object
from ..console.errors import CommandError, UsageError
from ..console.flags import check_feature_gates
from ..console.input_files import display_name, read_bytes
from .chosen_gates import gate_flags
from .deciding import deciding_configurations
from .in_cluster import JobSimulator
from .place import Place, has_all_plugins, local_place, place_of_cluster
from .refused_schedulers import refused_names
from .running_scheduler import (
    Operand,
    RunningConfiguration,
    RunningSchedulers,
    running_schedulers,
    title_of,
)

T = TypeVar("T")

_MOST_CONFIG_MAPS: Final = 20
"""ConfigMaps that are read to learn whom another scheduler serves."""


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
    # why pods of a schedulerName are not scheduled now, or why that is not known
    idle: Mapping[str, str] = field(default_factory=dict)
    # what the configuration of each scheduler is, by its title; that of the options has none
    origins: dict[str, str] = field(default_factory=dict)
    # the title of the scheduler that the operator makes of Scheduler on a managed control plane
    made_of_scheduler: str = ""
    place: Place | None = None
    cluster: ClusterVersion = field(default_factory=ClusterVersion)

    @property
    def decided_by(self) -> DecidedBy:
        """Return what decides the answers to all questions.

        Raises:
            RuntimeError: the place is not chosen yet.
        """
        return self._decided_by(self.options, self.origins)

    def decided_by_with(self, options: RunOptions, origin: str) -> DecidedBy:
        """Return what decides with options of which one configuration comes from elsewhere.

        Raises:
            RuntimeError: the place is not chosen yet.
        """
        before = {one.title: one for one in self.options.others}
        changed = [one.title for one in options.others if one is not before.get(one.title)]
        return self._decided_by(options, self.origins | dict.fromkeys(changed or [""], origin))

    def _decided_by(self, options: RunOptions, origins: Mapping[str, str]) -> DecidedBy:
        if self.place is None:
            raise RuntimeError("choose the place first")
        place = self.place
        image = place.operand.image if place.job and place.operand else ""
        cluster = ClusterDecidedBy(number(self.cluster.version), self.cluster.origin)
        decided = deciding_configurations(options, origins)
        return DecidedBy(number(place.version), image, place.chosen, cluster, decided)

    def with_configuration(self, config: Mapping[str, Any]) -> RunOptions:
        """Return the options for a configuration with its extenders; note those left out."""
        extenders = self._extenders(config)
        return replace(
            self.options,
            config=without_calls(config),
            extenders=extenders.simulated,
            left_out=extenders.left_out,
        )

    def with_profile(self, name: str) -> RunOptions:
        """Return the options with another profile of Scheduler in the place of today's."""
        fragment, others = profile_fragment(name), list(self.options.others)
        for at, other in enumerate(others):
            if other.names and other.title == self.made_of_scheduler:
                config = with_profile(other.config, fragment, other.names[0])
                others[at] = replace(other, config=config)
                return replace(self.options, others=tuple(others))
        return replace(self.options, config=with_profile(self.options.config, fragment))

    def instead(self, config: Mapping[str, Any]) -> RunOptions:
        """Return the options with a configuration in the place of today's.

        It takes the place of another scheduler if only that one serves its schedulerNames.
        """
        others = list(self.options.others)
        at = _takes_place_of(config, others)
        if at is None:
            return self.with_configuration(config)
        others[at] = self._other(others[at].title, _served(config), config, others[at].flags)
        return replace(self.options, others=tuple(others))

    def other(
        self, running: RunningConfiguration, flags: Sequence[str], *, noted: bool
    ) -> OtherScheduler:
        """Return another scheduler; with `noted`, note what is left out of it."""
        title, served, config = running.title, running.names, running.config
        if config is None:
            return OtherScheduler(title, served, problem=running.unknown)
        return self._other(title, served, config, flags or running.flags, noted=noted)

    def _other(
        self,
        title: str,
        served: tuple[str, ...],
        config: Mapping[str, Any],
        flags: Sequence[str],
        *,
        noted: bool = True,
    ) -> OtherScheduler:
        simulated, _, left_out = self._extenders(config, noted=noted)
        final = without_calls(config)
        return OtherScheduler(title, served, final, flags, simulated, left_out)

    def _extenders(self, config: Mapping[str, Any], *, noted: bool = True) -> Extenders:
        """Return the extenders of a configuration; note those that are left out."""
        entries = config.get("extenders") or ()
        notes = []
        if self.own.error and entries:
            notes.append(f"SchedulerExtenders cannot be read: {self.own.error}")
        extenders = simulated_extenders(
            entries,
            self.own.extenders,
            self.own.load_policies,
            version_of(self.world.version),
            attach=self.own.from_files,
        )
        notes += extenders.notes
        self.notes += [note for note in notes if noted and note not in self.notes]
        return extenders

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
        except MALFORMED_ERRORS:
            if not self.own.from_files or not (problem := await malformed(world, options)):
                raise
            raise UsageError(problem) from None

    async def aclose(self) -> None:
        if self.job is not None:
            await self.job.close()


def _served(config: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(str(profile["schedulerName"]) for profile in profiles_of(config))


def _takes_place_of(config: Mapping[str, Any], others: Sequence[OtherScheduler]) -> int | None:
    """Return which scheduler alone serves the schedulerNames of a configuration; None: no other."""
    served = {*_served(config)}
    return next((at for at, other in enumerate(others) if served <= {*other.names}), None)


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
        return run_on_files(args, show)
    return connected(work, failure=failure)(args)


def run_on_files(
    args: argparse.Namespace, show: Callable[[Simulation], Coroutine[Any, Any, int]]
) -> int:
    """Show the simulation of the cluster in files.

    Raises:
        CommandError: the files cannot be simulated.
    """
    with step("reading files"):
        simulation = from_files(args)
    return asyncio.run(show(simulation))


def from_files(args: argparse.Namespace) -> Simulation:
    """Simulate the cluster in files.

    Raises:
        CommandError: a file cannot be read, or there is no kube-scheduler.
    """
    files = files_with_nodes(args.from_files)
    cluster = cluster_version(files.world)
    own_others = list(_others_in_files(files.own))
    served = {key: _served(config) for key, config in files.mounted.items()}
    others = (*own_others, *_found_others(files.world, own_others, served))
    configurations = [*files.configurations, *_run_by_kube_schedulers(files, cluster.version)]
    main: Mapping[str, Any] | None = None
    if args.config is not None:
        main, origin = configuration_file(args.config), f"--config {args.config}"
        configurations.append((origin, main))
    if main is None or _takes_place_of(main, others) is not None:
        main, origin = _configuration_in(files, others)
    own = OwnObjects(
        [obj for obj in files.own if obj.get("kind") == SCHEDULER_EXTENDERS.kind],
        [obj for obj in files.own if obj.get("kind") == LOAD_POLICIES.kind],
        from_files=True,
    )
    if args.in_cluster:
        raise UsageError("--in-cluster cannot be combined with --from-files")
    simulation = _simulation(args, files.world, main, (), list(lacking(files.world)), own)
    simulation.origins[""] = origin
    simulation.made_of_scheduler = next(map(title_of, filter(_is_made_of_scheduler, files.own)), "")
    refused = refused_names(files.own)
    simulation.options = replace(simulation.options, others=others, refused=refused)
    for name, config in configurations:
        if (at := _takes_place_of(config, simulation.options.others)) is not None:
            simulation.origins[others[at].title] = name
            simulation.options = simulation.instead(config)
    simulation.cluster = cluster
    return _placed(simulation, local_place(args, cluster), args)


def files_with_nodes(names: Sequence[str]) -> Input:
    """Read the files of `--from-files`.

    Raises:
        UsageError: a file cannot be read, or no file has a Node.
    """
    try:
        files = read_files([Path(name) for name in names])
    except WorldFileError as error:
        raise UsageError(str(error)) from None
    if not files.world.objects[NODES]:
        named = ", ".join(names)
        other = counted_kinds([kind for kind, count in files.ignored.items() for _ in range(count)])
        has = f", but {other}" if other else ""
        raise UsageError(
            f"{named}: there is no Node{has}; add the output of kubectl get nodes,pods -A -o yaml"
        )
    return files


def _run_by_kube_schedulers(
    files: Input, version: Version | None
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the configurations in ConfigMaps, with their origin, that Kubernetes' own image runs.

    Another image may do anything with them.
    """
    for scheduler in files.world.schedulers:
        for namespace, name in scheduler.config_maps:
            config = files.mounted.get((namespace, name))
            stock = is_stock(scheduler.image) and has_all_plugins(version, config)
            if config is not None and stock:
                yield f"ConfigMap {namespace}/{name}", config


def _configuration_in(
    files: Input, others: Sequence[OtherScheduler]
) -> tuple[Mapping[str, Any] | None, str]:
    """Return the one of the control plane's scheduler, and what it is; None for its defaults.

    Raises:
        UsageError: there are several.
    """
    found = [
        (name, config)
        for name, config in files.configurations
        if _takes_place_of(config, others) is None
    ]
    if len(found) > 1:
        names = ", ".join(name for name, _ in found)
        raise UsageError(f"several files are a {KIND}: choose one with --config: {names}")
    if found:
        return found[0][1], found[0][0]
    return None, f"{DEFAULTS}: no file of --from-files is a {KIND}"


def _others_in_files(own: Sequence[Mapping[str, Any]]) -> Iterator[OtherScheduler]:
    """Yield the SecondarySchedulers that files show; ConfigMaps are not read from files."""
    for obj in own:
        if obj.get("kind") == SECONDARY_SCHEDULERS.kind:
            problem = (
                "its configuration is not in the files; name the file that has it with --config"
            )
            yield OtherScheduler(title_of(obj), running_names(obj), problem=problem)


def _is_made_of_scheduler(obj: Mapping[str, Any]) -> bool:
    return obj.get("kind") == SECONDARY_SCHEDULERS.kind and is_ours(obj)


async def from_cluster(
    api: ApiClient,
    platform: Platform,
    args: argparse.Namespace,
    scheduler_name: str | None,
    new: Collection[str] = (),
) -> Simulation:
    """Simulate the cluster, with the configurations of its schedulers.

    `scheduler_name` is that of the pod that the question is about; None: it is about all pods of
    the cluster, and about new ones with the schedulerNames `new`.

    Raises:
        KubeError: the cluster cannot be read.
        CommandError: there is no kube-scheduler, or it does not start with the chosen flags.
    """
    chosen = gate_flags(args.feature_gates)
    schedulers = await running_schedulers(api, platform)
    own = await own_objects(api)
    world = await read_cluster(api, annotations=bool(own.extenders), new_nodes=True, new_pods=True)
    world.version = str((await api.get_path("/version")).get("gitVersion") or "")
    asked = {*new, *_scheduler_names(world)} if scheduler_name is None else {scheduler_name}
    if args.config is not None:
        config, origin = configuration_file(args.config), f"--config {args.config}"
        schedulers = schedulers.instead(config, scheduler_name, origin)
    main = schedulers.of(scheduler_name)
    if main.config is None:
        main = schedulers.control_plane
    needed = [main, *(one for one in schedulers.all if one is not main and asked & {*one.names})]
    notes = list(_doubts(schedulers, needed))
    simulation = _simulation(args, world, main.config, main.flags, notes, own)
    simulation.idle = schedulers.idle
    simulation.made_of_scheduler = schedulers.made_of_scheduler
    simulation.origins = {one.title: one.origin or DEFAULTS for one in schedulers.all}
    simulation.origins[""] = main.origin or DEFAULTS
    image = main.operand.image if main.operand else ""
    simulation.cluster = cluster = cluster_version(world, image)
    simulation.options = replace(
        simulation.options,
        others=tuple(
            simulation.other(one, chosen, noted=one in needed)
            for one in schedulers.all
            if one is not main
        ),
        unread=schedulers.unread,
        refused=schedulers.refused,
    )
    place = await place_of_cluster(api, platform, args, world, cluster, needed, simulation.notes)
    if not (args.local or args.kube_scheduler):  # which may have any plugins
        operands = {one.title: one.operand for one in schedulers.all}
        others = [
            _with_its_program(other, operands[other.title], place, cluster.version)
            for other in simulation.options.others
        ]
        simulation.options = replace(simulation.options, others=tuple(others))
    served = await _served_by_config_maps(api, simulation)
    found = _found_others(world, simulation.options.others, served, simulation.options.config)
    every = (*simulation.options.others, *found)
    simulation.options = replace(simulation.options, others=every)
    return _placed(simulation, place, args)


async def _served_by_config_maps(
    api: ApiClient, simulation: Simulation
) -> dict[tuple[str, str], list[str]]:
    """Return the schedulerNames in ConfigMaps of schedulers that serve no name as far as known.

    They are read only if a Pod of the cluster has a schedulerName that nothing else serves.
    """
    world, options = simulation.world, simulation.options
    known = {*_served(options.config), *(name for other in options.others for name in other.names)}
    named = {name for one in world.schedulers for name in one.names}
    if not _scheduler_names(world) - known - named:
        return {}
    found: dict[tuple[str, str], list[str]] = {}
    mounted = dict.fromkeys(key for one in world.schedulers for key in one.config_maps)
    for namespace, name in list(mounted)[:_MOST_CONFIG_MAPS]:
        try:
            config_map = await find_object(api, CONFIG_MAPS.named(name, namespace))
        except KubeError:
            continue  # then no scheduler is known to serve these names
        config = configuration_in(config_map or {})
        if config is not None:
            found[namespace, name] = list(_served(config))
    return found


def _found_others(
    world: World,
    known: Iterable[OtherScheduler],
    served: Mapping[tuple[str, str], Iterable[str]],
    config: Mapping[str, Any] | None = None,
) -> Iterator[OtherScheduler]:
    """Yield the schedulers that only their Pods and workloads show; they are not simulated."""
    taken = {name for other in known for name in other.names}
    taken |= {*_served(config)} if config is not None else {DEFAULT_SCHEDULER}
    for scheduler in merged(world.schedulers, served):
        if names := sorted(scheduler.names - taken):
            taken |= scheduler.names
            yield OtherScheduler(scheduler.title, tuple(names), problem=scheduler.problem)


def _scheduler_names(world: World) -> set[str]:
    """Return the schedulerNames of the pods of a world."""
    return {str(pod["spec"]["schedulerName"]) for pod in world.all(PODS)}


def _doubts(schedulers: RunningSchedulers, needed: Sequence[RunningConfiguration]) -> Iterator[str]:
    """Yield what is not known about the schedulers of a question."""
    if schedulers.unread:
        yield schedulers.unread
    for running in needed:
        yield from filter(None, (*running.doubts, running.unknown))


def _with_its_program(
    other: OtherScheduler, operand: Operand | None, place: Place, version: Version | None
) -> OtherScheduler:
    """Return a scheduler, with a problem if the program of the place has not all its plugins."""
    if (
        other.problem
        or has_all_plugins(version, other.config)
        or (operand and operand == place.operand)
    ):
        return other
    image = operand.image if operand else "an image that is not known"
    problem = (
        f"it runs {image} with plugins of its own, and one simulation runs one image; ask about "
        "one of its Pods with kubectl scheduler why"
    )
    return replace(other, problem=problem)


async def own_objects(api: ApiClient) -> OwnObjects:
    """Read the objects that extenders need."""
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
    own: OwnObjects,
) -> Simulation:
    """Return a simulation whose place is not chosen yet."""
    now = measured_at(world) if own.from_files else None
    options = RunOptions(
        NO_BINARY, {}, gate_flags(args.feature_gates) or flags, args.timeout, now=now
    )
    simulation = Simulation(world, options, None, [*notes, *world.notes], own)
    simulation.options = simulation.with_configuration(config or default_configuration())
    if not own.extenders:
        world.drop_annotations()
    return simulation


def _placed(simulation: Simulation, place: Place, args: argparse.Namespace) -> Simulation:
    stock = place.job is None or place.operand is None or is_stock(place.operand.image)
    if place.version is not None:
        check_feature_gates(args.feature_gates, place.version, stock=stock)
    simulation.options = replace(simulation.options, binary=place.binary)
    simulation.job, simulation.place = place.job, place
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
