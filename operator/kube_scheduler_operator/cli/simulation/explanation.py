"""The answers of `kubectl scheduler why` and `pending`, from the question to what is printed.

They come from kube-scheduler itself, which runs over a copy of the cluster.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import aclosing

from ...base.field_types import document_of
from ...base.findings import listing
from ...base.objects import mapping
from ...base.platform import Platform
from ...kube.client import ApiClient
from ...kube.errors import KubeError
from ...kube.resource import PODS
from ...simulate.decided_by import framed
from ...simulate.decisions import last_message
from ...simulate.diagnosis import Diagnosis, WorkloadPods
from ...simulate.kinds import Object, pod_name
from ...simulate.missing_pods import MissingPods, missing_pods
from ...simulate.owners import ended_pods_of, pods_of
from ...simulate.pod_groups import group_name, groups_named
from ...simulate.why import explain
from ...simulate.why_group import explain_group
from ...simulate.world import EndedPod, World
from ..cluster.connection import connected
from ..cluster.operator_objects import find_object
from ..console.errors import CommandError, UsageError, error_message
from ..console.output import (
    print_document,
    print_remark,
    text_of,
)
from ..console.pod_reference import PodReference, pod_reference
from .explanation_text import (
    NoPod,
    absent_lines,
    diagnosis_lines,
    pod_lines,
)
from .extender_decisions import (
    RememberedDecisions,
    documents,
    remembered,
    remembered_at,
    simulated_answers,
)
from .extender_decisions import lines as remembered_lines
from .run import Simulation, from_cluster, run_simulating


def show_explanation(args: argparse.Namespace) -> int:
    reference = pod_reference(args)
    if reference.names_group:
        return run_simulating(
            args,
            lambda simulation: _show_group(simulation, reference, args),
            lambda api, platform: from_cluster(api, platform, args, None),
        )
    if args.url:
        key = f"{reference.namespace}/{reference.name}"
        return _extenders_alone(args, key, remembered_at(args.url, key, details=args.details))
    if args.from_files or reference.workload is not None:
        return run_simulating(
            args,
            lambda simulation: _explain(simulation, reference, args),
            lambda api, platform: _of_workload(api, platform, reference, args),
        )
    return connected(_of_pod)(args)


async def _of_workload(
    api: ApiClient, platform: Platform, reference: PodReference, args: argparse.Namespace
) -> Simulation:
    name = await scheduler_name_of(api, reference)
    return await from_cluster(api, platform, args, name)


async def scheduler_name_of(api: ApiClient, reference: PodReference) -> str | None:
    """Return the schedulerName of a pod, or of the pods of a workload; None: the default.

    Raises:
        CommandError: it does not exist.
    """
    found = await find_object(api, reference.ref)
    if found is None:
        raise CommandError(f"{reference.title} does not exist")
    spec = mapping(found.get("spec"))
    if reference.workload is not None:
        spec = mapping(mapping(spec.get("template")).get("spec"))
    name = spec.get("schedulerName")
    return None if name is None else str(name)


async def _of_pod(api: ApiClient, platform: Platform, args: argparse.Namespace) -> int:
    reference = pod_reference(args)
    pod = await find_object(api, reference.ref)
    name = f"{reference.namespace}/{reference.name}"
    agents = await remembered(api, platform, name, details=args.details)
    if pod is None:
        if not agents.answers:
            raise CommandError(
                f"pod {name} does not exist; kubectl get pods -n {reference.namespace} lists those "
                "that do, and a workload is named with its kind, such as deploy/web"
            )
        print_remark(f"note: pod {name} does not exist any more")
        return _extenders_alone(args, name, agents)
    scheduler_name = (pod.get("spec") or {}).get("schedulerName")
    try:
        async with aclosing(await from_cluster(api, platform, args, scheduler_name)) as simulation:
            return await _explain(simulation, reference, args, agents)
    except (CommandError, KubeError) as error:
        if not agents.answers:
            if isinstance(error, (KubeError, UsageError)):  # agents are the only other source
                print_remark(f"note: {agents.missing(name)}")
            if last := last_message(pod):  # which a user sees without rights to the cluster
                print_remark(f"note: the Pod's condition PodScheduled has the last answer: {last}")
            raise
        reason = error_message(error)
        print_remark(f"note: kube-scheduler's own reasons are missing: {reason}")
        return _extenders_alone(args, name, agents)


def _extenders_alone(args: argparse.Namespace, key: str, agents: RememberedDecisions) -> int:
    for note in agents.notes:
        print_remark(f"note: {note}")
    if not agents.answers:
        print_remark(f"error: {agents.missing(key)}")
        return 1
    document = {"pod": key, "answers": documents(agents.answers)}
    text = text_of([f"Pod {key}", *remembered_lines(agents.answers, args.nodes)])
    print_document(document, args.output, text)
    return 0


async def _explain(
    simulation: Simulation,
    reference: PodReference,
    args: argparse.Namespace,
    agents: RememberedDecisions | None = None,
) -> int:
    explanation = await explained(simulation, reference)
    if isinstance(explanation, NoPod):
        print_document(document_of(explanation), args.output, text_of(absent_lines(explanation)))
        return 0
    agents = agents or RememberedDecisions()
    simulated, problems = simulated_answers(explanation.extenders, explanation.pod)
    answers = agents.answers or simulated
    explanation.notes += [*agents.notes, *problems]
    document = {**document_of(explanation), "answers": documents(answers)}
    body = [*pod_lines(explanation, args.nodes), *remembered_lines(answers, args.nodes)]
    text = framed(explanation.decided_by, body, explanation.notes)
    print_document(document, args.output, text_of(text))
    return 0


async def explained(simulation: Simulation, reference: PodReference) -> Diagnosis | NoPod:
    """Explain a pod, or the first one of a workload.

    Raises:
        CommandError: it does not exist, or kube-scheduler could not be run.
    """
    pods, missing = _chosen(simulation.world, reference)
    if not pods:
        return _without_pod(simulation.world, reference, missing)
    explanation = await _explain_pod(simulation, pods[0])
    if reference.workload is not None:
        placed = sum(bool(pod["spec"].get("nodeName")) for pod in pods)
        explanation.workload = WorkloadPods(reference.title, len(pods) - placed, placed)
    explanation.idle = simulation.idle.get(explanation.scheduler, "")
    explanation.missing = missing
    if explanation.served and explanation.ending is None:
        explanation.decided_by = simulation.decided_by.of(
            explanation.scheduler, explanation.left_out
        )
    explanation.notes = [*simulation.notes, *explanation.notes]
    return explanation


async def _explain_pod(simulation: Simulation, pod: Object) -> Diagnosis:
    """Explain a pod; one that does not fit beside the others of its group, beside them."""
    name = group_name(pod)
    if name is None or pod["spec"].get("nodeName"):
        return await simulation.ask(explain, pod=pod)
    of_group = await simulation.ask(explain_group, group=name, focus=pod["metadata"]["name"])
    explanation = of_group.blocking
    if explanation is None or explanation.pod != pod_name(pod):
        explanation = await simulation.ask(explain, pod=pod)
    explanation.in_group(of_group.group)
    return explanation


async def _show_group(
    simulation: Simulation, reference: PodReference, args: argparse.Namespace
) -> int:
    names = groups_named(simulation.world, reference.namespace, reference.name)
    if not names:
        raise CommandError(f"{reference.title} does not exist, and no pod names it")
    answer = await simulation.ask(explain_group, group=names[0])
    if not answer.group.problem:
        answer.decided_by = simulation.decided_by.of(answer.group.scheduler)
    others = (f"{other.title} has the name too" for other in names[1:])
    answer.notes = [*simulation.notes, *answer.notes, *others]
    text = framed(answer.decided_by, diagnosis_lines(answer), answer.notes)
    print_document(document_of(answer), args.output, text_of(text))
    return 0


def _chosen(world: World, reference: PodReference) -> tuple[list[Object], list[MissingPods]]:
    """Return (the pods in question, the first to be explained; those that do not exist)."""
    namespace, name = reference.namespace, reference.name
    if reference.workload is None:
        pod = world.get(PODS, name, namespace)
        return [] if pod is None else [pod], []
    kind = reference.workload.kind
    owner = f"{kind}/{name}"
    missing = [pods for pods in missing_pods(world, namespace) if pods.owner == owner]
    return pods_of(world, kind, namespace, name), missing


def _without_pod(world: World, reference: PodReference, missing: Sequence[MissingPods]) -> NoPod:
    ended = _ended(world, reference)
    if not missing and not ended:
        if reference.workload is not None:
            command = f"describe {reference.workload.kind.lower()} {reference.name}"
            problem = (
                "has no pod that waits or runs; its events say why its controller creates none: "
                f"kubectl {command} -n {reference.namespace}"
            )
        else:
            problem = "is not among the pods that are waiting or running"
            problem += _similar_pods(world, reference)
        raise CommandError(f"{reference.title} {problem}")
    return NoPod(missing, ended)


def _ended(world: World, reference: PodReference) -> dict[str, EndedPod]:
    """Return the pods of a question that have ended, by namespace/name."""
    namespace, name = reference.namespace, reference.name
    if reference.workload is None:
        pod = world.ended.get((namespace, name))
        return {f"{namespace}/{name}": pod} if pod is not None else {}
    pods = ended_pods_of(world, reference.workload.kind, namespace, name)
    return {f"{namespace}/{name}": pod for name, pod in pods.items()}


def _similar_pods(world: World, reference: PodReference) -> str:
    keys = list(world.objects[PODS])
    others = [namespace for namespace, name in keys if name == reference.name]
    if others:
        return f"; a pod of that name is in namespace {listing(others)}: use -n"
    return "" if keys else "; no pod waits or runs"
