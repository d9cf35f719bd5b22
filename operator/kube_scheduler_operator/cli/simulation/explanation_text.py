"""The text of `kubectl scheduler why` and `pending`, from their answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ...base.findings import did_you_mean
from ...base.foreign_text import foreign
from ...base.limits import FOREIGN_NAME
from ...simulate.decisions import NO_SCHEDULER
from ...simulate.diagnosis import Awaited, Decision, Diagnosis, GroupDiagnosis
from ...simulate.fix import Fix
from ...simulate.group_diagnosis import GroupExplanation
from ...simulate.missing_pods import MissingPods
from ...simulate.pending import EXPLAINED, WaitingGroup, WaitingPods
from ...simulate.preemption import end_of
from ...simulate.world import EndedPod
from ..console.output import counted, first_names, limited, limited_table
from . import new_nodes
from .edited_fields import edited_fields
from .group_answer import group_lines

# Kinds of parts of a text.
SENTENCES: Final = "sentences"
EXCLUDED: Final = "excluded"  # groups of nodes, with causes
FIXES: Final = "fixes"
SCORES: Final = "scores"

FIXES_TITLE: Final = "What would help (each was tried):"
_NAMED: Final = 3
_MOST: Final = 10
_FIXES: Final = 6
_REFUSED: Final = "OutOf"
"""How reasons of a kubelet begin that refuses a pod: OutOfcpu, OutOfpods and so on."""


@dataclass(frozen=True, slots=True)
class TextPart:
    kind: str  # one of the constants above
    lines: Iterable[str]


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


def diagnosis_lines(answer: GroupDiagnosis) -> Iterator[str]:
    """Yield the text about a group, with the pod that does not fit."""
    return _lines(_group_parts(answer))


def _group_parts(answer: GroupDiagnosis) -> Iterator[TextPart]:
    yield TextPart(SENTENCES, group_lines(answer.group))
    if answer.blocking is not None:
        first = f"Pod {answer.blocking.pod}, once the Pods that fit are placed:"
        yield TextPart(SENTENCES, ["", first])
        yield from _pending(answer.blocking)
    yield TextPart(SENTENCES, _group_fixes(answer.group))


def pod_lines(explanation: Diagnosis, most: int) -> Iterator[str]:
    """Yield the text about a pod, with at most `most` nodes in a table (0: all)."""
    return _lines(pod_parts(explanation, most))


def _lines(parts: Iterable[TextPart]) -> Iterator[str]:
    return (line for part in parts for line in part.lines)


def pod_parts(explanation: Diagnosis, most: int) -> Iterator[TextPart]:
    """Yield the text about a pod in parts; a page shows those that are not SENTENCES as tables."""
    for pods in explanation.missing:
        yield TextPart(SENTENCES, missing_lines(pods))
    yield TextPart(SENTENCES, _subject(explanation))
    if explanation.ending is not None:
        end = end_of(explanation.ending)
        yield TextPart(SENTENCES, [f"kube-scheduler does not try a pod that terminates: {end}."])
        return
    if explanation.gates:
        yield TextPart(SENTENCES, _gate_lines(explanation))
    if explanation.decision.reason == NO_SCHEDULER:
        yield TextPart(SENTENCES, _without_scheduler(explanation))
        return
    if explanation.problem:
        yield TextPart(SENTENCES, [_not_known(explanation)])
        return
    group = explanation.group
    if group is not None:
        yield TextPart(SENTENCES, group_lines(group))
    if explanation.node:
        yield from _running(explanation, most)
    elif group is not None and group.is_read:
        yield from _member(explanation, group)
    elif explanation.candidates:
        yield TextPart(SENTENCES, _fitting(explanation))
    else:
        yield from _pending(explanation)


def _subject(explanation: Diagnosis) -> Iterator[str]:
    """Say which pod is explained, and whether it has a node."""
    pod, node, workload = explanation.pod, explanation.node, explanation.workload
    if workload is not None and (total := workload.waiting + workload.placed) > 1:
        waits = f"{workload.waiting} of {total} pods have no node"
        state = waits if workload.waiting else f"all {total} pods have a node"
        yield f"{workload.title}: {state}. The oldest of them:"
    if node and explanation.phase == "Pending":
        namespace, _, name = pod.partition("/")
        yield f"Pod {pod} has node {node}, and its containers do not run yet (phase Pending)."
        yield (
            "Its scheduling is done; what its kubelet waits for: "
            f"kubectl describe pod {name} -n {namespace}"
        )
        return
    yield f"Pod {pod} {f'runs on node {node}' if node else 'has no node'}."


def _not_known(explanation: Diagnosis) -> str:
    return f"What its scheduler decides is not known: {explanation.problem}."


def _without_scheduler(explanation: Diagnosis) -> Iterator[str]:
    name, served = explanation.scheduler, ", ".join(explanation.profiles)
    after = "What placed it is not known" if explanation.node else "It waits until one does"
    yield (
        f"No scheduler serves its spec.schedulerName {_quoted(name)}; the configuration serves "
        f"{served}. {after}."
    )
    if explanation.refused:
        yield f"{explanation.refused}."
    elif not explanation.node:
        meant = did_you_mean(name, explanation.profiles).replace("; did", "Did")
        yield (
            f"{meant} Correct it where the Pod is made (spec.template.spec.schedulerName), or run "
            "a scheduler that serves it."
        ).lstrip()


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


def _fitting(explanation: Diagnosis) -> Iterator[str]:
    fits = f"It fits on {len(explanation.candidates)} of {counted(explanation.nodes, 'node')}"
    yield f"{fits}: {_named(explanation.candidates)}."
    decision = explanation.decision
    if decision.node and explanation.idle:
        yield f"kube-scheduler would place it on {decision.node}; {explanation.idle}."
    elif explanation.binding and not explanation.gates:
        yield from (f"{sentence}." for sentence in explanation.binding)
        if explanation.error:
            yield f"Its last attempt ended with an error: {explanation.error}"
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


def _member(explanation: Diagnosis, group: GroupExplanation) -> Iterator[TextPart]:
    """Yield what is known of one pod of a group beside the group."""
    if group.blocking_pod == explanation.pod:
        first = f"Pod {explanation.pod}, once the Pods that fit are placed:"
        yield TextPart(SENTENCES, [first])
        yield from _pending(explanation)
    elif explanation.candidates:
        nodes = counted(explanation.nodes, "node")
        fitting = f"{len(explanation.candidates)} of {nodes}: {_named(explanation.candidates)}"
        alone = f"Alone, {explanation.pod} fits on {fitting}."
        yield TextPart(SENTENCES, [alone])
    else:
        yield TextPart(SENTENCES, [f"Alone, without its group, {explanation.pod}:"])
        yield from _pending(explanation)
    yield TextPart(SENTENCES, _group_fixes(group))


def _group_fixes(group: GroupExplanation) -> Iterator[str]:
    if group.fixes:
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


def _pending(explanation: Diagnosis) -> Iterator[TextPart]:
    if explanation.problem:
        yield TextPart(SENTENCES, [_not_known(explanation)])
        return
    nodes = counted(explanation.nodes, "node")
    yield TextPart(SENTENCES, [f"It fits on none of {nodes}:"])
    yield TextPart(EXCLUDED, _excluded_lines(explanation))
    yield TextPart(SENTENCES, _hopes(explanation))
    if explanation.fixes:
        yield TextPart(FIXES, _fix_lines(explanation))
    elif explanation.nodes:
        none = "No single change and no combination of changes of the pod was found that helps."
        yield TextPart(SENTENCES, [none])
    made = new_nodes.lines(explanation.new_nodes, explanation.coming_nodes)
    yield TextPart(SENTENCES, made)


def _excluded_lines(explanation: Diagnosis) -> Iterator[str]:
    for group in explanation.groups:
        yield f"  {counted(len(group.nodes), 'node')} ({_named(group.nodes)})"
        for cause in group.causes:
            own = f"   [{'; '.join(cause.scheduler)}]" if cause.scheduler else ""
            yield f"    {cause.text}{own}"


def _hopes(explanation: Diagnosis) -> Iterator[str]:
    """Yield what no node can satisfy, and what makes room without a change."""
    for impossible in explanation.impossible[:_MOST]:
        yield f"  {impossible[0].upper()}{impossible[1:]}."
    if len(explanation.impossible) > _MOST:
        yield f"  … and {len(explanation.impossible) - _MOST} more resources."
    yield from explanation.preemption
    for awaited in explanation.awaited:
        yield _awaited_line(awaited, " ".join(explanation.preemption))


def _fix_lines(explanation: Diagnosis) -> Iterator[str]:
    yield FIXES_TITLE
    for fix in explanation.fixes[:_FIXES]:
        yield f"  * {fix_sentence(fix)}"
        yield from edited_fields(fix)


def fix_sentence(fix: Fix) -> str:
    """Return a change, and where the pod fits then."""
    fits = f": it fits on {counted(len(fix.nodes), 'node')} then ({_named(fix.nodes)})"
    alone = not fix.nodes or fix.text.startswith("add a node")
    return fix.text if alone else f"{fix.text}{fits}"


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


def _running(explanation: Diagnosis, most: int) -> Iterator[TextPart]:
    yield TextPart(SENTENCES, _comparison(explanation))
    if explanation.scores:
        yield TextPart(SCORES, ["", scores_title(explanation), *_table(explanation, most)])
    if explanation.groups:
        excluded = sum(len(group.nodes) for group in explanation.groups)
        lines = [
            f"  {counted(len(group.nodes), 'node')} ({_named(group.nodes)}): "
            f"{'; '.join(cause.text for cause in group.causes)}"
            for group in explanation.groups
        ]
        yield TextPart(EXCLUDED, ["", f"Excluded: {counted(excluded, 'node')}", *lines])


def scores_title(explanation: Diagnosis) -> str:
    count = counted(len(explanation.scores), "node")
    return f"Scores of {count}, with the weights of the plugins:"


def _comparison(explanation: Diagnosis) -> Iterator[str]:
    """Compare the node of a running pod with those that a new pod could get."""
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
        yield f"{explanation.node} still has the highest score{tie}."
    elif best:
        yield f"As a new pod it would go to {_named(best)} today."
    elif explanation.candidates == [explanation.node]:
        yield f"{explanation.node} is the only node on which it fits."
    if explanation.lead:
        yield explanation.lead


def _table(explanation: Diagnosis, most: int) -> Iterator[str]:
    table = score_table(explanation, most)
    rows = [["NODE", "TOTAL", *table.plugins, ""]]
    for node in table.nodes:
        score = explanation.scores[node]
        cells = [str(score.plugins.get(name, "-")) for name in table.plugins]
        rows.append([node, str(score.total), *cells, ", ".join(table.marks.get(node, ()))])
    yield from limited_table(rows, len(explanation.scores))


@dataclass(frozen=True, slots=True)
class ScoreTable:
    """Which scores of an explanation a table has."""

    plugins: list[str]  # its columns
    nodes: list[str]  # its rows, the highest total first
    marks: dict[str, list[str]]  # node -> words about it


def score_table(explanation: Diagnosis, most: int) -> ScoreTable:
    """Return the table with at most `most` nodes (0: all), and that of the pod."""
    scores, best = explanation.scores, set(explanation.decision.best)
    order = sorted(scores, key=lambda node: (-scores[node].total, node))
    plugins = dict.fromkeys(name for score in scores.values() for name in score.plugins)
    # A column of zeros is shown if it is the answer.
    answers = " ".join(explanation.notes)
    columns = [
        name
        for name in plugins
        if name in answers or any(score.plugins.get(name) for score in scores.values())
    ]
    shown = list(limited(order, most))
    if explanation.node in scores and explanation.node not in shown:
        shown.append(explanation.node)
    marks = {
        node: [
            word
            for word, applies in (("here", node == explanation.node), ("best", node in best))
            if applies
        ]
        for node in shown
    }
    return ScoreTable(columns, shown, marks)


def waiting_lines(waiting: WaitingPods) -> Iterator[str]:
    yield waiting_title(waiting)
    for group in waiting.groups:
        yield ""
        since = f", oldest since {group.since}" if group.since else ""
        yield f"{counted(len(group.pods), 'pod')}{since}: {group.cause}"
        yield from (f"  {label:<8}{text}" for label, text in waiting_rows(group))
    for pods in waiting.missing:
        yield ""
        yield from missing_lines(pods)


def waiting_title(waiting: WaitingPods) -> str:
    total = sum(len(group.pods) for group in waiting.groups)
    return f"{counted(total, 'pod')} without a node:" if total else "No pod waits for a node."


def waiting_rows(group: WaitingGroup) -> Iterator[tuple[str, str]]:
    """Yield (label, text) of what is known about pods that wait for the same reason."""
    yield "pods", first_names(group.pods)
    yield "owners", first_names(group.owners)
    yield from (("groups", unread) for unread in group.unread)
    if group.diagnosis is not None and group.diagnosis.decision.preempted:
        yield "now", f"{group.pods[0]}: {' '.join(group.diagnosis.preemption)}"
    if group.tried:
        only = "; other workloads may need another change" if len(group.owners) > 1 else ""
        yield "helps", f"{group.pods[0]}: {group.fix or 'no change was found'}{only}"
    if made := new_nodes.short(group.new_nodes, group.coming_nodes):
        yield "nodes", f"{group.pods[0]}: {made}"
    tries = "  # tries what helps" if group.kind in EXPLAINED and not group.tried else ""
    yield "next", f"kubectl scheduler why {group.pods[0]}{tries}"
