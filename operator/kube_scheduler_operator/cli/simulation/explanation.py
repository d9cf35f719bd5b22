"""The answers of `kubectl scheduler why` and `pending`, as text and JSON.

They come from kube-scheduler itself, which runs over a copy of the cluster.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final

from ...base.field_types import document_of
from ...base.findings import listing
from ...base.foreign_text import foreign
from ...base.limits import FOREIGN_NAME
from ...base.objects import mapping
from ...base.platform import Platform
from ...kube.client import ApiClient
from ...kube.errors import KubeError
from ...kube.resource import PODS
from ...simulate.decided_by import framed
from ...simulate.decisions import NO_SCHEDULER
from ...simulate.diagnosis import Awaited, Decision, Diagnosis, GroupDiagnosis
from ...simulate.group_diagnosis import GroupExplanation
from ...simulate.kinds import Object, pod_name
from ...simulate.owners import MissingPods, ended_pods_of, missing_pods, pods_of
from ...simulate.pod_groups import group_name, groups_named
from ...simulate.preemption import end_of
from ...simulate.why import explain
from ...simulate.why_group import explain_group
from ...simulate.world import EndedPod, World
from ..cluster.connection import connected
from ..cluster.operator_objects import find_object
from ..console.errors import CommandError, UsageError, error_message
from ..console.output import (
    counted,
    first_names,
    limited,
    limited_table,
    print_document,
    print_remark,
    text_of,
)
from ..console.pod_reference import PodReference, pod_reference
from . import new_nodes
from .edited_fields import edited_fields
from .extender_decisions import (
    RememberedDecisions,
    documents,
    remembered,
    remembered_at,
    simulated_answers,
)
from .extender_decisions import lines as remembered_lines
from .group_answer import group_lines
from .run import Simulation, from_cluster, run_simulating

_NAMED: Final = 3
_MOST: Final = 10
_FIXES: Final = 6
_REFUSED: Final = "OutOf"
"""How reasons of a kubelet begin that refuses a pod: OutOfcpu, OutOfpods and so on."""


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
    workload = await find_object(api, reference.ref)
    if workload is None:
        raise CommandError(f"{reference.title} does not exist")
    template = mapping(mapping(workload.get("spec")).get("template"))
    name = mapping(template.get("spec")).get("schedulerName")
    return await from_cluster(api, platform, args, name)


async def _of_pod(api: ApiClient, platform: Platform, args: argparse.Namespace) -> int:
    reference = pod_reference(args)
    pod = await find_object(api, reference.ref)
    name = f"{reference.namespace}/{reference.name}"
    agents = await remembered(api, platform, name, details=args.details)
    if pod is None:
        if not agents.answers:
            raise CommandError(f"pod {name} does not exist")
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
    pod, missing = _chosen(simulation.world, reference)
    if pod is None:
        return _without_pod(simulation.world, reference, missing, args)
    explanation = await _explain_pod(simulation, pod)
    explanation.idle = simulation.idle.get(explanation.scheduler, "")
    explanation.missing = missing
    if explanation.served and explanation.ending is None:
        explanation.decided_by = simulation.decided_by.of(explanation.scheduler)
    agents = agents or RememberedDecisions()
    simulated, problems = simulated_answers(explanation.extenders, explanation.pod)
    answers = agents.answers or simulated
    explanation.notes = [*simulation.notes, *explanation.notes, *agents.notes, *problems]
    document = {**document_of(explanation), "answers": documents(answers)}
    body = [*pod_lines(explanation, args.nodes), *remembered_lines(answers, args.nodes)]
    text = framed(explanation.decided_by, body, explanation.notes)
    print_document(document, args.output, text_of(text))
    return 0


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


def _chosen(world: World, reference: PodReference) -> tuple[Object | None, list[MissingPods]]:
    """Return (the pod to explain, the pods of its workload that do not exist)."""
    namespace, name = reference.namespace, reference.name
    if reference.workload is None:
        return world.get(PODS, name, namespace), []
    kind = reference.workload.kind
    owner = f"{kind}/{name}"
    missing = [pods for pods in missing_pods(world, namespace) if pods.owner == owner]
    return next(iter(pods_of(world, kind, namespace, name)), None), missing


def _without_pod(
    world: World, reference: PodReference, missing: Sequence[MissingPods], args: argparse.Namespace
) -> int:
    ended = _ended(world, reference)
    if not missing and not ended:
        problem = "has no pod that waits or runs"
        if reference.workload is None:
            problem = "is not among the pods that are waiting or running"
            problem += _similar_pods(world, reference)
        raise CommandError(f"{reference.title} {problem}")
    absent = NoPod(missing, ended)
    print_document(document_of(absent), args.output, text_of(absent_lines(absent)))
    return 0


@dataclass(frozen=True, slots=True)
class NoPod:
    """The answer about a pod, or a workload, of which none waits or runs."""

    missing: Sequence[MissingPods]
    ended: Mapping[str, EndedPod]  # by namespace/name
    pod: str | None = None


def absent_lines(absent: NoPod) -> Iterator[str]:
    for pods in absent.missing:
        yield from missing_lines(pods)
    for name, pod in list(absent.ended.items())[:_NAMED]:
        yield _ended_line(name, pod)
    if len(absent.ended) > _NAMED:
        yield f"{counted(len(absent.ended) - _NAMED, 'more pod')} of it ended."


def _ended(world: World, reference: PodReference) -> dict[str, EndedPod]:
    """Return the pods of a question that have ended, by namespace/name."""
    namespace, name = reference.namespace, reference.name
    if reference.workload is None:
        pod = world.ended.get((namespace, name))
        return {f"{namespace}/{name}": pod} if pod is not None else {}
    pods = ended_pods_of(world, reference.workload.kind, namespace, name)
    return {f"{namespace}/{name}": pod for name, pod in pods.items()}


def _ended_line(name: str, pod: EndedPod) -> str:
    on = f" on node {pod.node}" if pod.node else ""
    why = ": ".join(filter(None, (pod.reason, pod.message.rstrip("."))))
    text = f"Pod {name} has ended{on}, phase {pod.phase}{': ' if why else ''}{why}."
    if pod.reason.startswith(_REFUSED):
        text += (
            " The kubelet refused it: the node had less room than its scheduler knew, for example "
            "because another scheduler placed a pod there at the same time."
        )
    return text + (f" {pod.owner} creates another one." if pod.owner else "")


def missing_lines(missing: MissingPods) -> Iterator[str]:
    """Describe the pods that the API server does not let a workload create."""
    verb = "does" if missing.count == 1 else "do"
    kind, _, name = missing.owner.partition("/")
    owner = f"{kind} {missing.namespace}/{name}"
    yield f"{counted(missing.count, 'pod')} of {owner} {verb} not exist: {missing.cause}"
    if missing.fix:
        yield f"  helps   {missing.fix}"


def _similar_pods(world: World, reference: PodReference) -> str:
    keys = list(world.objects[PODS])
    others = [namespace for namespace, name in keys if name == reference.name]
    if others:
        return f"; a pod of that name is in namespace {listing(others)}: use -n"
    return "" if keys else "; no pod waits or runs"


# --- text -----------------------------------------------------------------------------------------


def diagnosis_lines(answer: GroupDiagnosis) -> Iterator[str]:
    """Yield the text about a group, with the pod that does not fit."""
    yield from group_lines(answer.group)
    if answer.blocking is not None:
        yield ""
        yield f"Pod {answer.blocking.pod}, once the Pods that fit are placed:"
        yield from _pending(answer.blocking)
    yield from _group_fixes(answer.group)


def pod_lines(explanation: Diagnosis, most: int) -> Iterator[str]:
    """Yield the text about a pod, with at most `most` nodes in a table (0: all)."""
    for pods in explanation.missing:
        yield from missing_lines(pods)
    where = f"runs on node {explanation.node}" if explanation.node else "has no node"
    yield f"Pod {explanation.pod} {where}."
    if explanation.ending is not None:
        yield f"kube-scheduler does not try a pod that terminates: {end_of(explanation.ending)}."
        return
    if explanation.gates:
        yield from _gate_lines(explanation)
    if explanation.decision.reason == NO_SCHEDULER:
        yield from _without_scheduler(explanation)
        return
    if explanation.problem:
        yield f"What its scheduler decides is not known: {explanation.problem}."
        return
    group = explanation.group
    if group is not None:
        yield from group_lines(group)
    if explanation.node:
        yield from _running(explanation, most)
    elif group is not None and group.is_read:
        yield from _member(explanation, group)
    elif explanation.candidates:
        yield from _fitting(explanation)
    else:
        yield from _pending(explanation)


def _without_scheduler(explanation: Diagnosis) -> Iterator[str]:
    name, served = explanation.scheduler, ", ".join(explanation.profiles)
    after = "What placed it is not known" if explanation.node else "It waits until one does"
    yield (
        f"No scheduler serves its spec.schedulerName {_quoted(name)}; the configuration serves "
        f"{served}. {after}."
    )
    if explanation.refused:
        yield f"{explanation.refused}."


def _gate_lines(explanation: Diagnosis) -> Iterator[str]:
    gates = ", ".join(map(_quoted, explanation.gates[:_MOST]))
    if len(explanation.gates) > _MOST:
        gates += f", … and {len(explanation.gates) - _MOST} more"
    who = "; ".join(explanation.gates_removed_by)
    yield f"It is not scheduled before its scheduling gates are removed: {gates}."
    yield f"{who[0].upper()}{who[1:]}. Without them:"


def _quoted(name: str) -> str:
    return f'"{foreign(name, FOREIGN_NAME)}"'


def _named(nodes: Sequence[str]) -> str:
    named = ", ".join(sorted(nodes)[:_NAMED])
    return f"{named}, …" if len(nodes) > _NAMED else named


def _unless(explanation: Diagnosis) -> str:
    """Name what may decide otherwise, as the end of a sentence."""
    left_out = explanation.left_out
    verb = "is" if len(left_out) == 1 else "are"
    return f"; {' and '.join(left_out)} {verb} left out, and may decide otherwise" * bool(left_out)


def _fitting(explanation: Diagnosis) -> Iterator[str]:
    fits = f"It fits on {len(explanation.candidates)} of {counted(explanation.nodes, 'node')}"
    yield f"{fits}: {_named(explanation.candidates)}{_unless(explanation)}."
    decision = explanation.decision
    if decision.node and explanation.idle:
        yield f"kube-scheduler would place it on {decision.node}; {explanation.idle}."
    elif decision.node and explanation.error:
        yield (
            f"kube-scheduler would place it on {decision.node} now. Its last attempt ended with an "
            f"error: {explanation.error}"
        )
    elif decision.node and explanation.gates:
        yield f"kube-scheduler would place it on {decision.node} then."
    elif decision.node:
        yield (
            f"kube-scheduler would place it on {decision.node} now. If it still waits, it is in "
            "the scheduler's queue or backs off after an earlier attempt."
        )
    else:
        yield from _not_tried(decision)


def _member(explanation: Diagnosis, group: GroupExplanation) -> Iterator[str]:
    """Yield what is known of one pod of a group beside the group."""
    if group.blocking_pod == explanation.pod:
        yield f"Pod {explanation.pod}, once the Pods that fit are placed:"
        yield from _pending(explanation)
    elif explanation.candidates:
        nodes = counted(explanation.nodes, "node")
        fitting = f"{len(explanation.candidates)} of {nodes}: {_named(explanation.candidates)}"
        yield f"Alone, {explanation.pod} fits on {fitting}{_unless(explanation)}."
    else:
        yield f"Alone, without its group, {explanation.pod}:"
        yield from _pending(explanation)
    yield from _group_fixes(group)


def _group_fixes(group: GroupExplanation) -> Iterator[str]:
    if not group.fixes:
        return
    yield "What would help the group (each was tried):"
    for fix in group.fixes:
        nodes = f"{counted(len(fix.nodes), 'node')} ({_named(fix.nodes)})"
        yield f"  * {fix.text}: its Pods fit on {nodes} then"
        yield from edited_fields(fix)


def _not_tried(decision: Decision) -> Iterator[str]:
    if decision.reason == "NotTried":
        yield "kube-scheduler does not try it: it waits for a resource claim or for its pod group."
    elif decision.message:
        yield f"kube-scheduler: {decision.message}"


def _pending(explanation: Diagnosis) -> Iterator[str]:
    if explanation.problem:
        yield f"What its scheduler decides is not known: {explanation.problem}."
        return
    yield f"It fits on none of {counted(explanation.nodes, 'node')}:"
    for group in explanation.groups:
        yield f"  {counted(len(group.nodes), 'node')} ({_named(group.nodes)})"
        for cause in group.causes:
            own = f"   [{'; '.join(cause.scheduler)}]" if cause.scheduler else ""
            yield f"    {cause.text}{own}"
    for impossible in explanation.impossible[:_MOST]:
        yield f"  {impossible[0].upper()}{impossible[1:]}."
    if len(explanation.impossible) > _MOST:
        yield f"  … and {len(explanation.impossible) - _MOST} more resources."
    yield from explanation.preemption
    for awaited in explanation.awaited:
        yield _awaited_line(awaited, " ".join(explanation.preemption))
    yield from _fix_lines(explanation)
    yield from new_nodes.lines(explanation.new_nodes, explanation.coming_nodes)


def _fix_lines(explanation: Diagnosis) -> Iterator[str]:
    if explanation.fixes:
        yield "What would help (each was tried):"
        for fix in explanation.fixes[:_FIXES]:
            fits = f": it fits on {counted(len(fix.nodes), 'node')} then ({_named(fix.nodes)})"
            where = "" if fix.text.startswith("add a node") else fits
            yield f"  * {fix.text}{where}"
            yield from edited_fields(fix)
    elif explanation.nodes:
        yield "No single change and no combination of changes of the pod was found that helps."


def _awaited_line(awaited: Awaited, known: str) -> str:
    """Say where the pod fits when others have left their room, which was tried.

    `known` is what is printed about these pods before.
    """
    fits = f"it fits on {counted(len(awaited.nodes), 'node')} ({_named(awaited.nodes)})"
    holding = [f"{pod.pod} on {pod.node}" for pod in awaited.pods if pod.nominated]
    ending = [pod for pod in awaited.pods if pod.terminates]
    resized = [pod for pod in awaited.pods if not (pod.terminates or pod.nominated)]
    ends = []
    if ending:
        one = len(ending) == 1
        more = "; ".join(end_of(pod) for pod in ending[:_NAMED] if pod.pod not in known)
        about = f" ({more})" if more else ""
        names = first_names([pod.pod for pod in ending])
        ends.append(f"pod {names} has ended{about}" if one else f"pods {names} have ended{about}")
    if resized:
        amounts = "; ".join(amount for pod in resized[:_NAMED] for amount in pod.amounts)
        names = first_names([pod.pod for pod in resized])
        ends.append(f"the resize of {names} has ended ({amounts})")
    end = f"once {' and '.join(ends)}, " if ends else ""
    if holding:
        pods = "a nominated pod" if len(holding) == 1 else "nominated pods"
        return (
            f"kube-scheduler keeps room for {pods} of the same or a higher priority: "
            f"{first_names(holding)}. Without, {f'and {end}' * bool(end)}{fits}: this was tried."
        )
    return f"{end[0].upper()}{end[1:]}{fits} without a change: this was tried."


def _running(explanation: Diagnosis, most: int) -> Iterator[str]:
    decision = explanation.decision
    best = decision.best
    excluded = (node for group in explanation.groups for node in group.nodes)
    if explanation.node not in {*explanation.candidates, *excluded}:
        yield f"Node {explanation.node} does not exist."
    if not decision.node:
        yield f"As a new pod it would have no node today: {decision.message}"
    elif explanation.node not in explanation.candidates:
        yield f"As a new pod it would not fit on {explanation.node} today."
    elif explanation.node in best:
        tie = f" ({counted(len(best), 'node')} tie)" if len(best) > 1 else ""
        yield f"{explanation.node} still has the highest score{tie}{_unless(explanation)}."
    elif best:
        yield f"As a new pod it would go to {_named(best)} today{_unless(explanation)}."
    if explanation.lead:
        yield explanation.lead
    if count := len(explanation.scores):
        yield ""
        yield f"Scores of {counted(count, 'node')}, with the weights of the plugins:"
        yield from _table(explanation, most)
    if explanation.groups:
        yield ""
        yield f"Excluded: {counted(sum(len(group.nodes) for group in explanation.groups), 'node')}"
        for group in explanation.groups:
            causes = "; ".join(cause.text for cause in group.causes)
            yield f"  {counted(len(group.nodes), 'node')} ({_named(group.nodes)}): {causes}"


def _table(explanation: Diagnosis, most: int) -> Iterator[str]:
    scores, best = explanation.scores, set(explanation.decision.best)
    order = sorted(scores, key=lambda node: (-scores[node].total, node))
    plugins = list(dict.fromkeys(name for score in scores.values() for name in score.plugins))
    # A column of zeros is shown if it is the answer.
    answers = " ".join(explanation.notes)
    plugins = [
        name
        for name in plugins
        if name in answers or any(score.plugins.get(name) for score in scores.values())
    ]
    shown = limited(order, most)
    if explanation.node in order and explanation.node not in shown:
        shown = [*shown, explanation.node]
    rows = [["NODE", "TOTAL", *plugins, ""]]
    for node in shown:
        score = scores[node]
        marks = [
            word
            for word, applies in (("here", node == explanation.node), ("best", node in best))
            if applies
        ]
        cells = [str(score.plugins.get(name, "-")) for name in plugins]
        rows.append([node, str(score.total), *cells, ", ".join(marks)])
    yield from limited_table(rows, len(order))
