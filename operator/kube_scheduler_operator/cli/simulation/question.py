"""The question of `kubectl scheduler simulate`, from its flags to the runs that answer it."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from ...base.field_types import document_of
from ...base.foreign_text import foreign
from ...base.limits import FOREIGN_NAME
from ...base.objects import mapping
from ...base.platform import Platform
from ...base.tasks import gathered
from ...config.language.schema import DEFAULT_SCHEDULER
from ...kube.client import DRY_RUN, ApiClient
from ...kube.errors import AlreadyExists, Forbidden, Invalid, KubeError, NotFound
from ...kube.resource import PODS
from ...simulate.admission import admit, admit_group
from ...simulate.decided_by import DecidedBy
from ...simulate.grouped_workloads import NEEDS_GATE
from ...simulate.kinds import (
    BY_KIND,
    COMPOSITE_POD_GROUPS,
    LIMIT_RANGES,
    NODES,
    POD_GROUPS,
    PRIORITY_CLASSES,
    QUOTAS,
    RUNTIME_CLASSES,
    Object,
    pod_name,
)
from ...simulate.placements import eligible_nodes, is_small, placements
from ...simulate.quotas import Quotas
from ...simulate.run_options import RunOptions, serving, simulated_names
from ...simulate.scenario import (
    Prepared,
    Scenario,
    ScenarioError,
    add_daemon_set,
    add_workload,
    ask_waiting,
    prepare,
)
from ...simulate.utilization import utilization_of
from ...simulate.workloads import (
    DAEMON_SET,
    SimulatedWorkload,
    WorkloadError,
    existing,
    read_workloads,
)
from ...simulate.world import World
from ..console.errors import UsageError, named
from ..console.input_files import display_name, read_documents
from ..console.output import counted, print_document, text_of
from .answer import (
    TODAY,
    ConfigurationResult,
    SimulationAnswer,
    SimulationQuestion,
    answer_of,
    figures_of_now,
    left_in_place,
)
from .answer_text import answer_lines
from .picture import svg
from .run import Simulation, configuration_file, from_cluster, run_simulating

_FITS, _DOES_NOT_FIT, _NOT_KNOWN = 0, 1, 2
_QUOTA: Final = "quota: "
"""In the messages of the API server about ResourceQuotas."""
_MOST: Final = 10**6
"""Pods of a workload; clusters have fewer."""
_TOGETHER: Final = 2
_MEDIUM: Final = 2000
"""Configurations that are simulated at the same time, over clusters of this size."""
_ADD: Final = re.compile(r"(\d+)x(.+)")


def simulate(args: argparse.Namespace, failure: int) -> int:
    """Answer the question of the flags; `failure` is the exit code of an error of the cluster."""
    question = _question(args)
    return run_simulating(
        args,
        lambda simulation: _simulate(simulation, question, args),
        lambda api, platform: _from_cluster(api, platform, question, args),
        failure=failure,
    )


def _question(args: argparse.Namespace) -> SimulationQuestion:
    if args.repeat < 1:
        raise UsageError(f"--repeat {args.repeat}: at least one run is needed")
    if args.replicas is not None and args.replicas < 1:
        raise UsageError(f"--replicas {args.replicas}: at least one pod is needed")
    added = tuple(map(_added_nodes, args.add_nodes))
    both = sorted({*args.drain} & {*args.without_node})
    if both:
        raise UsageError(f"{both[0]} cannot be drained by --drain and lost by --without-node")
    question = SimulationQuestion(
        Scenario(tuple(args.without_node), tuple(args.drain), added, args.replay),
        largest=args.max,
    )
    _read_workloads(question, args.files)
    _check_workload_flags(question, args)
    return question


def _added_nodes(text: str) -> tuple[int, str]:
    """Return how many nodes `--add-nodes` adds, and the node that they are like."""
    match = _ADD.fullmatch(text)
    if match is None or int(match[1]) < 1:
        raise UsageError(
            f"--add-nodes {text}: use NUMBERxNODE, the name of an existing node, such as 3xworker-1"
        )
    return int(match[1]), match[2]


def _read_workloads(question: SimulationQuestion, files: Sequence[str]) -> None:
    for name in files:
        try:
            workloads, others = read_workloads(read_documents(name), display_name(name))
        except WorkloadError as error:
            raise UsageError(str(error)) from None
        question.workloads += workloads
        question.others += others
    if files and not question.workloads:
        names = ", ".join(map(display_name, files))
        raise UsageError(f"{names}: no object has a Pod template, so there is nothing to place")


def _check_workload_flags(question: SimulationQuestion, args: argparse.Namespace) -> None:
    for flag, given in (("--replicas", args.replicas is not None), ("--max", args.max)):
        if given and len(question.workloads) != 1:
            raise UsageError(
                f"{flag} needs exactly one workload in -f, and there are {len(question.workloads)}"
            )
        if given and question.workloads[0].kind == DAEMON_SET:
            raise UsageError(f"{flag}: the number of pods of a DaemonSet is that of its nodes")


async def _from_cluster(
    api: ApiClient, platform: Platform, question: SimulationQuestion, args: argparse.Namespace
) -> Simulation:
    names = [workload.template["spec"].get("schedulerName") for workload in question.workloads]
    simulation = await from_cluster(api, platform, args, None, [*filter(None, names)])
    for at, workload in enumerate(question.workloads):
        question.workloads[at] = await _admitted(api, simulation.world, workload, question)
    return simulation


async def _admitted(
    api: ApiClient, world: World, workload: SimulatedWorkload, question: SimulationQuestion
) -> SimulatedWorkload:
    """Return the workload with a pod as the API server would complete it: nothing is created."""
    refused = unknown = ""
    try:
        return replace(workload, template=await _dry_run(api, workload))
    except Forbidden as error:
        if error.rule:
            namespace = workload.namespace
            unknown = f"you may not create pods in namespace {namespace}, not even as dry run"
        else:
            refused = str(error)
    except (Invalid, AlreadyExists) as error:
        refused = str(error)
    except NotFound:
        unknown = f"namespace {workload.namespace} does not exist"
    except KubeError as error:
        unknown = str(error)
    if refused:
        admit(workload.template, world)
        if _QUOTA in refused:
            question.over_quota[workload.title] = refused
        else:
            question.refuse(workload, refused)
    else:
        _admit(world, workload, question)
        question.notes.append(f"{workload.title}: webhooks are not considered: {unknown}")
    return workload


async def _dry_run(api: ApiClient, workload: SimulatedWorkload) -> Object:
    """Return a pod of a workload as the API server completes it.

    Raises:
        KubeError: it refuses the pod, or cannot be asked.
    """
    name = f"{workload.name[:40].rstrip('-.')}-simulated"
    template = workload.template
    async with ApiClient(api.credentials, field_manager="kubectl-scheduler", writes=DRY_RUN) as dry:
        pod = {**template, "metadata": {**template["metadata"], "name": name}}
        return {**template, "spec": (await dry.create(PODS, pod))["spec"]}


def _admit(world: World, workload: SimulatedWorkload, question: SimulationQuestion) -> None:
    """Complete the pod of a workload in the place of the API server, which was not asked."""
    admission = admit(workload.template, world)
    question.refuse(workload, *admission.refused)
    question.notes += [f"{workload.title}: {unknown}" for unknown in admission.unknown]


def _add_objects(world: World, question: SimulationQuestion) -> None:
    """Add the other objects of the files, and complete groups, which may name PriorityClasses."""
    groups = [*filter(_is_group, question.others)]
    for workload in question.workloads:
        if own := [*filter(_is_group, workload.objects)]:
            groups += own
            question.notes.append(f"{workload.title}: {NEEDS_GATE}")
    for obj in question.others:
        if not _is_group(obj) and not world.add(obj):
            question.notes.append(f"{obj['kind']} does not influence placement and is left out")
    for group in groups:
        admission = admit_group(group, world)
        name = foreign(str(mapping(group.get("metadata")).get("name")), FOREIGN_NAME)
        texts = (*admission.refused, *admission.unknown)
        question.notes += [f"{group['kind']} {name}: {text}" for text in texts]
        world.add(group)


def _is_group(obj: Mapping[str, Any]) -> bool:
    kind = BY_KIND.get((str(obj.get("apiVersion")), str(obj.get("kind"))))
    return kind is not None and kind.resource in (POD_GROUPS, COMPOSITE_POD_GROUPS)


def _listed(kinds: Sequence[str]) -> str:
    *first, last = kinds
    return f"{', '.join(first)} or {last}" if first else last


def _without_admission(world: World) -> str:
    """Name what files do not show of the admission of new pods."""
    kinds = [kind.kind for kind in (LIMIT_RANGES, QUOTAS, RUNTIME_CLASSES, PRIORITY_CLASSES)
             if not world.objects[kind]]  # fmt: skip
    missing = f"the files have no {_listed(kinds)}, and " if kinds else ""
    return f"admission of new pods: {missing}webhooks are not considered"


async def _simulate(
    simulation: Simulation, question: SimulationQuestion, args: argparse.Namespace
) -> int:
    answer = await simulated_answer(simulation, question, args)
    if args.svg:
        _write_picture(args.svg, svg(answer.subject, answer.configurations))
    text = answer_lines(answer, args.nodes)
    print_document(document_of(answer), args.output, text_of(text))
    return _NOT_KNOWN if answer.fits is None else _FITS if answer.fits else _DOES_NOT_FIT


async def simulated_answer(
    simulation: Simulation, question: SimulationQuestion, args: argparse.Namespace
) -> SimulationAnswer:
    """Answer a question; `args` has the flags of `simulate`.

    Raises:
        CommandError: there is nothing to place, or kube-scheduler could not be run.
    """
    world = simulation.world
    _add_objects(world, question)
    if args.from_files and question.workloads:
        for workload in question.workloads:
            _admit(world, workload, question)
        question.notes.append(_without_admission(world))
    try:
        prepared = _prepared(simulation, question)
        largest = question.workloads[0] if args.max else None
        _refuse_unknown(simulation, largest)
        await _add_workloads(simulation, prepared, question, args)
        _refuse_nothing(prepared, question, args)
        columns = await _columns(simulation, prepared, largest, args)
    except ScenarioError as error:
        raise UsageError(str(error)) from None
    notes = [*simulation.notes, *_idle_schedulers(simulation, prepared, largest), *question.notes]
    outcomes = [outcome for column in columns for outcome in column.outcomes]
    notes += dict.fromkeys(note for outcome in outcomes for note in outcome.notes)
    now = figures_of_now(utilization_of(world), len(world.pending()))
    return answer_of(question, prepared, columns, now, notes)


def _idle_schedulers(
    simulation: Simulation, prepared: Prepared, largest: SimulatedWorkload | None
) -> list[str]:
    """Return why schedulers of the pods schedule nothing now, or why that is not known."""
    specs = [pod["spec"] for pod in prepared.pods if pod_name(pod) in prepared.subject]
    if largest is not None:
        specs.append(largest.template["spec"])
    served = {str(spec.get("schedulerName") or DEFAULT_SCHEDULER) for spec in specs}
    reasons = (simulation.idle[name] for name in sorted(served & simulation.idle.keys()))
    return list(dict.fromkeys(reasons))


async def _add_workloads(
    simulation: Simulation,
    prepared: Prepared,
    question: SimulationQuestion,
    args: argparse.Namespace,
) -> None:
    """Add the pods of the question's workloads; with --max, as many as fit are added later."""
    quotas = Quotas(simulation.world)
    for workload in question.workloads:
        if workload.kind == DAEMON_SET:
            nodes = await simulation.ask(eligible_nodes, world=prepared.world, workload=workload)
            add_daemon_set(prepared, workload, nodes)
            count = len(nodes)
        else:
            count = workload.replicas if args.replicas is None else args.replicas
            if not args.max:
                add_workload(prepared, workload, count)
        _apply_quotas(quotas, workload, count, question, max(count, _MOST if args.max else 0))
        if running := existing(workload, simulation.world):
            question.notes.append(
                f"{workload.title} has {counted(running, 'pod')}, which stay; the simulated "
                "ones come in addition"
            )


def _apply_quotas(
    quotas: Quotas, workload: SimulatedWorkload, count: int, question: SimulationQuestion, most: int
) -> None:
    """Report the pods of a workload that ResourceQuotas refuse, of `count` and of `most`."""
    admitted = quotas.admit(workload.template, most)
    refused = question.over_quota.get(workload.title)
    if admitted.count < count or refused:
        left = count - admitted.count if admitted.count < count else count
        some = f"{left} of its {count} pods" if left < count else ""
        question.refuse(workload, *(admitted.reasons or (refused or "",)), what=some)
    elif admitted.count < most:
        reasons = "; ".join(admitted.reasons)
        question.notes.append(
            f"{workload.title}: ResourceQuotas admit {counted(admitted.count, 'pod')}: {reasons}"
        )


async def _columns(
    simulation: Simulation,
    prepared: Prepared,
    largest: SimulatedWorkload | None,
    args: argparse.Namespace,
) -> list[ConfigurationResult]:
    async def column(title: str, options: RunOptions, decided_by: DecidedBy) -> ConfigurationResult:
        outcomes = await simulation.ask(
            placements,
            world=prepared.world,
            options=options,
            pods=prepared.pods,
            subject=prepared.subject,
            repeat=args.repeat,
            in_order=prepared.in_order,
            largest=largest,
        )
        return ConfigurationResult(title, outcomes, decided_by)

    columns = [partial(column, *each) for each in _configurations(simulation, args)]
    return await gathered(columns, _at_once(simulation, prepared.world))


def _at_once(simulation: Simulation, world: World) -> int:
    """Return how many configurations are simulated at the same time.

    A run waits for a third of its time. Those of small clusters take place at the same time anyway,
    and for more than one over a large cluster there may be too little memory.
    """
    nodes = len(world.objects[NODES])
    together = simulation.job is None and not is_small(world) and nodes <= _MEDIUM
    return _TOGETHER if together else 1


def _prepared(simulation: Simulation, question: SimulationQuestion) -> Prepared:
    options, scenario = simulation.options, question.scenario
    prepared = prepare(simulation.world, scenario, simulated_names(options))
    question.notes += left_in_place(prepared)
    for name, count in sorted(prepared.kept.items()):
        question.notes.append(
            f"--replay leaves {counted(count, 'pod')} in place: {serving(options, name).problem}"
        )
    others = scenario.drain or scenario.without or scenario.replay
    if not question.workloads and not scenario.replay and (scenario.add or not others):
        ask_waiting(prepared)
    return prepared


def _refuse_nothing(
    prepared: Prepared, question: SimulationQuestion, args: argparse.Namespace
) -> None:
    """Report an error if no pod has to be placed, and nothing else is asked."""
    scenario = question.scenario
    if prepared.subject or question.workloads or scenario.drain or scenario.without:
        return
    if args.replay:
        raise UsageError("--replay: no pod runs that could be placed again")
    raise UsageError(
        "there is no pod to place, because none waits: add a workload with -f FILE, or --replay to "
        "place all running pods again"
    )


def _refuse_unknown(simulation: Simulation, largest: SimulatedWorkload | None) -> None:
    """Report an error if the scheduler of the workload of --max cannot be simulated."""
    if largest is not None:
        name = str(largest.template["spec"].get("schedulerName") or DEFAULT_SCHEDULER)
        service = serving(simulation.options, name)
        if service.options is None and service.exists:
            raise UsageError(f"--max: {service.problem}")


def _configurations(
    simulation: Simulation, args: argparse.Namespace
) -> list[tuple[str, RunOptions, DecidedBy]]:
    """Return (title, options, what decides) of each column; the question is about the last ones."""
    today = simulation.options
    others = []
    for name in args.profiles:
        options = simulation.with_profile(name)
        others.append((name, options, simulation.decided_by_with(options, f"--profile {name}")))
    for name in args.configs:
        options = simulation.instead(configuration_file(name))
        decided_by = simulation.decided_by_with(options, f"--config {name}")
        others.append((Path(name).name, options, decided_by))
    return others if len(others) > 1 else [(TODAY, today, simulation.decided_by), *others]


def _write_picture(name: str, picture: str) -> None:
    with named(f"--svg {name}"):
        Path(name).write_text(picture, encoding="utf-8")
