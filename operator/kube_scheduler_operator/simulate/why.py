"""Why a pod has no node, and what would help; or why it is where it is.

Every statement was tried: the nodes that a constraint excludes are those that kube-scheduler
excluded when it saw that constraint alone, and a change helps if kube-scheduler found nodes for the
changed pod.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from ..base.quantities import amount as parsed
from ..base.quantities import amounts
from ..config.language.plugins.effective_plugins import effective_plugins
from ..scheduling.policies.pods import Demand
from .configuration import profiles_of
from .constraint import Constraint, Rank, different_texts, quantity_text
from .constraints import FAMILIES, MOST_TRIED, constraints_of, number_of_pods, tried, without
from .decisions import NO_SCHEDULER, NOT_SIMULATED, PodDecision
from .diagnosis import Awaited, Cause, Explanation, Fix, Group
from .image_names import IMAGE_LOCALITY, images_without_effect, unreported_images
from .kinds import HOSTNAME, IMPOSSIBLE, NODES, PODS, Object
from .leaving import LeavingPod, leaving_pods, reserving_pods, resized
from .less import reduce_request
from .lifts import Lifts, witness_profiles
from .new_node_trials import Rejection, answered, new_nodes
from .new_nodes import add_pod, written
from .nominations import nominated
from .other_schedulers import where_to_look
from .owners import edited_object
from .pod_groups import ungrouped
from .preemption import priority_of, sentences, unblocking, victims_on
from .probes import (
    ALL,
    EXTENDERS,
    families_of,
    probe,
    probe_profiles,
    profile_named,
    profile_of,
    reasons,
    whole_reason,
)
from .profile_rules import profile_rules
from .room import movable, priority_above
from .run import Run, RunOptions, gates_of, serving, simulated_names
from .scenario import is_daemon
from .taint_constraints import UNSCHEDULABLE_TAINT
from .utilization import Utilization, utilization_of
from .world import World

_MOST_COMBINATIONS: Final = 6
_MOST_KINDS: Final = 12
_LARGEST: Final = 8
_REQUESTS: Final = "requests"
_MOST_FACTS: Final = 6
"""Sentences about the nodes of a constraint, each a group of its own."""
_MOST_LEAVING: Final = 100
"""Pods that terminate or are resized whose end is tried."""
_MOST_NAMED: Final = 3
_TRIED: Final = re.compile(r"0/(\d+) nodes ")
"""How kube-scheduler's message about a pod that fits nowhere begins."""


async def explain(world: World, pod: Object, options: RunOptions) -> Explanation:
    """Explain a pod of a world.

    A running pod is taken off its node first, and tried as if it was new.
    """
    spec = pod["spec"]
    metadata, name = pod["metadata"], spec.get("schedulerName") or ""
    service = serving(options, name)
    explanation = Explanation(
        f"{metadata['namespace']}/{metadata['name']}",
        name,
        simulated_names(options),
        service.problem + (where_to_look(pod, world.groups) if service.problem else ""),
        node=spec.get("nodeName") or "",
        gates=[str(gate.get("name")) for gate in spec.get("schedulingGates") or ()],
        nodes=len(world.objects[NODES]),
        nominated=nominated(pod),
    )
    if service.options is not None:
        explanation.left_out = list(service.options.left_out)
        await _Inquiry(world, pod, service.options, explanation).run()
        if not explanation.candidates and not explanation.decision.node and not explanation.node:
            await _new_nodes(world, pod, service.options, explanation)
    else:
        reason = NOT_SIMULATED if service.exists else NO_SCHEDULER
        explanation.decision = PodDecision(explanation.pod, reason=reason)
    return explanation


async def _new_nodes(
    world: World, pod: Object, options: RunOptions, explanation: Explanation
) -> None:
    """Add what could make a node on which the pod fits, and the nodes that are being made."""

    async def trial(changed: World) -> Mapping[str, Sequence[Rejection]]:
        answer = Explanation(explanation.pod, explanation.scheduler, explanation.profiles)
        return await _Inquiry(changed, pod, options, answer).rejections()

    made = await new_nodes(world, pod, options, trial)
    explanation.new_nodes, explanation.coming_nodes = made
    if explanation.new_nodes:  # which know more than that a node like one that exists would fit
        known = answered(world)
        explanation.fixes = [
            fix for fix in explanation.fixes if fix.rank != Rank.NODE or not known >= {*fix.nodes}
        ]


class _Inquiry:
    """The runs for one explanation."""

    def __init__(self, world: World, pod: Object, options: RunOptions, answer: Explanation) -> None:
        self._answer = answer
        self._world = world.copy()
        self._world.remove(PODS, pod["metadata"]["name"], pod["metadata"]["namespace"])
        self._pod = ungrouped(pod)  # `explain_group` decides about groups
        if self._pod["spec"].pop("nodeName", None):
            self._pod["status"].pop("nominatedNodeName", None)
        self._pod["spec"].pop("schedulingGates", None)
        gates = gates_of(options)
        profile = profile_named(options, answer.scheduler)
        self._families = families_of(profile, gates)
        self._rules = profile_rules(profile)
        scoring = effective_plugins(profile, gates).points["score"]
        self._scores = {plugin.name for plugin in scoring}
        if options.extenders:
            self._families[EXTENDERS] = []
        witness = witness_profiles(profile, gates)
        self._witnessed = bool(witness)
        probes = probe_profiles(profile, self._families, gates) + witness
        if answer.node:  # every node gets a score
            profiles = [
                {**own, "percentageOfNodesToScore": 100} for own in profiles_of(options.config)
            ]
            options = replace(options, config={**options.config, "profiles": profiles})
        self._options = replace(
            options,
            profiles=probes,
            probes=frozenset(own["schedulerName"] for own in probes),
            extended=frozenset({ALL, profile_of(EXTENDERS)}),
            probed=answer.scheduler,
            scores=bool(answer.node) or options.scores,
        )
        self._nodes = [name for _, name in world.objects[NODES]]
        constraints = constraints_of(self._pod, world, gates)
        self._constraints, others = tried(
            constraint for constraint in constraints if constraint.family in self._families
        )
        if others:
            answer.notes.append(
                f"{others} more constraints of the Pod are not tried one by one, because there are "
                f"more than {MOST_TRIED} of a kind"
            )
        for repair in (repair for each in self._constraints for repair in each.repairs):
            for needed in repair.objects:
                self._world.add(needed)
        self._count = 0

    async def run(self) -> None:
        explanation = self._answer
        async with Run(self._world, self._options) as run:
            self._run = run
            self._lifts = Lifts(run, witnessed=self._witnessed)
            excluded, own = await self._exclusions()
            if not explanation.candidates or explanation.node:
                self._group(excluded, own)
            if not explanation.candidates:
                await self._await_pods()
                await self._fixes(excluded)
                if all(each.fix for each in self._constraints):
                    await self._new_nodes()
            # The pod itself is scheduled last: it may take room and volumes, and preempt others.
            (explanation.decision,) = (await run.schedule([self._pod])).values()
            if not explanation.candidates:
                node = explanation.decision.nominated or explanation.nominated
                victims = victims_on(self._world, node, self._pod)
                explanation.preemption = list(
                    sentences(self._world, self._pod, explanation.decision, victims)
                )
            explanation.extenders = run.extenders.explain(explanation.pod)
            run.forget([self._pod])  # it would take the room that is made
            if not explanation.candidates:
                await self._make_room()
            explanation.fixes.sort(
                key=lambda fix: (fix.rank, fix.changes, fix.size, -len(fix.nodes))
            )
            explanation.notes += run.notes
        if len(explanation.candidates) > 1 and IMAGE_LOCALITY in self._scores:
            alone = self._scores == {IMAGE_LOCALITY} and not self._options.extenders
            nodes = list(self._world.all(NODES))
            explanation.notes += images_without_effect(self._pod["spec"], nodes, alone=alone)
            explanation.notes += unreported_images(self._pod["spec"], nodes)

    async def rejections(self) -> dict[str, list[Rejection]]:
        """Return why each node excludes the pod; nodes that accept it are left out."""
        async with Run(self._world, self._options) as run:
            self._run = run
            excluded, _ = await self._exclusions()
        found: dict[str, list[Rejection]] = {
            node: [] for node in self._rejected_by(self._answer.candidates)
        }
        for family, causes in excluded.items():
            for reason, nodes in causes.items():
                resource = reason.resource if isinstance(reason, Constraint) else ""
                for node in nodes & found.keys():
                    on = reason.on if isinstance(reason, Constraint) else None
                    text = _facts(reason.text, on, [node])[node]
                    found[node].append(Rejection(family, text, resource))
        return found

    # --- questions ----------------------------------------------------------------------------

    async def _ask(self, questions: Sequence[tuple[Object, str]]) -> list[PodDecision]:
        """Return the decisions about (pod, schedulerName), in this order."""
        pods = []
        for pod, scheduler in questions:
            self._count += 1
            pods.append(probe(pod, self._count, scheduler))
        decisions = await self._run.schedule(pods, settle=False)
        self._run.forget(pods)
        return list(decisions.values())

    async def _exclusions(self) -> tuple[dict[str, dict[Cause | Constraint, set[str]]], Any]:
        """Return the nodes excluded, by family and by constraint or generic cause."""
        by_family: dict[str, list[Constraint]] = {}
        for constraint in self._constraints:
            by_family.setdefault(constraint.family, []).append(constraint)
        answers = iter(await self._ask(self._questions(by_family)))
        whole = next(answers)
        self._answer.candidates = list(whole.candidates or ())
        self._answer.message = "" if whole.candidates else whole.message
        families = {family: next(answers) for family in self._families}
        excluded: dict[str, dict[Cause | Constraint, set[str]]] = {}
        own: dict[str, tuple[str, ...]] = {}
        rest: dict[str, set[str]] = {}
        for family, constraints in by_family.items():
            for constraint in constraints:
                nodes = self._rejected(next(answers))
                excluded.setdefault(family, {})[constraint] = nodes
            rest[family] = self._rejected(next(answers))
        for family, decision in families.items():
            texts = self._texts(decision)
            own[family] = tuple(texts)
            causes = excluded.setdefault(family, {})
            if family == EXTENDERS:
                causes |= self._by_extender(decision)
            always = rest.get(family, set())
            generic = Cause("; ".join(texts) or f"rejected by {family}")
            rule = Cause(self._rules.get(family) or generic.text)
            if family not in by_family:
                generic = rule
            self._add_generic(causes, generic, rule, self._rejected(decision), always)
        for causes in excluded.values():
            for what in causes:
                if isinstance(what, Constraint) and what.named_by:
                    causes[what] -= set[str]().union(*excluded.get(what.named_by, {}).values())
        return excluded, own

    def _questions(self, by_family: Mapping[str, list[Constraint]]) -> list[tuple[Object, str]]:
        """Return the pod with all families, with each one, and there with one or no constraint."""
        questions: list[tuple[Object, str]] = [(self._pod, ALL)]
        questions += [(self._pod, profile_of(family)) for family in self._families]
        for family, constraints in by_family.items():
            for constraint in constraints:
                others = [other for other in constraints if other is not constraint]
                questions.append((without(self._pod, others), profile_of(family)))
            questions.append((without(self._pod, constraints), profile_of(family)))
        return questions

    def _texts(self, decision: PodDecision) -> list[str]:
        texts = [text for _, text in reasons(decision.message) if text != "spy"]
        if not texts and self._rejected(decision):
            return [whole_reason(decision.message)]
        return texts

    @staticmethod
    def _add_generic(
        causes: dict[Cause | Constraint, set[str]],
        generic: Cause,
        rule: Cause,
        nodes: set[str],
        always: set[str],
    ) -> None:
        """Add the nodes that no single constraint of the pod excludes.

        `nodes` are those that the family excludes, `always` those without any constraint, because
        of `rule`.
        """
        if always:  # not because of a constraint of this pod
            for known_cause in list(causes):
                causes[known_cause] = causes[known_cause] - always
            causes[rule] = always & nodes
        known = set().union(*causes.values())
        if nodes - known:
            # Only the constraints together exclude these.
            causes[generic] = causes.get(generic, set()) | (nodes - known)

    def _by_extender(self, decision: PodDecision) -> dict[Cause | Constraint, set[str]]:
        """Return the nodes that our own extenders rejected, by extender and reason."""
        nodes_by_cause: dict[Cause | Constraint, set[str]] = {}
        for name, answer in self._run.extenders.explain(decision.pod).items():
            for agent in answer["agents"]:
                for row in (agent.get("filter") or {}).get("rejected") or ():
                    cause = Cause(f"extender {name}: {row['reason']}")
                    nodes_by_cause.setdefault(cause, set()).add(row["node"])
        return nodes_by_cause

    def _rejected(self, decision: PodDecision) -> set[str]:
        return self._rejected_by(decision.candidates or ())

    def _rejected_by(self, accepted: Sequence[str]) -> set[str]:
        return set(self._nodes) - set(accepted)

    def _group(
        self,
        excluded: Mapping[str, Mapping[Cause | Constraint, set[str]]],
        own: Mapping[str, tuple[str, ...]],
    ) -> None:
        causes_of: dict[str, list[Cause]] = {node: [] for node in self._nodes}
        full = number_of_pods(self._world)
        for family in self._families:
            for reason, nodes in excluded.get(family, {}).items():
                words = own.get(family, ())
                on = full if family == _REQUESTS else None
                if isinstance(reason, Constraint):
                    words, on = reason.reasons(words), reason.on
                for node, text in _facts(reason.text, on, sorted(nodes)).items():
                    causes_of[node].append(Cause(text, words))
        groups: dict[tuple[Cause, ...], list[str]] = {}
        for node, causes in causes_of.items():
            if causes:
                groups.setdefault(tuple(causes), []).append(node)
        self._answer.groups = sorted(
            (Group(tuple(nodes), causes) for causes, nodes in groups.items()),
            key=lambda group: (-len(group.nodes), len(group.causes)),
        )

    # --- what it waits for --------------------------------------------------------------------

    async def _await_pods(self) -> None:
        """Find pods that terminate, are resized or are nominated, with whose room the pod fits."""
        leaving = leaving_pods(self._world)
        if len(leaving) > _MOST_LEAVING:
            self._answer.notes.append(
                f"{len(leaving)} Pods terminate or are resized; of them, {_MOST_LEAVING} were tried"
            )
        leaving = leaving[:_MOST_LEAVING]
        ending = [item for item in leaving if item[1].terminates]
        resizing = [item for item in leaving if not item[1].terminates]
        reserving = reserving_pods(self._world, priority_of(self._pod))[:_MOST_LEAVING]
        both = leaving if ending and resizing else []
        for chosen in (ending, resizing, both, reserving):
            if chosen and (awaited := await self._awaited(chosen)):
                self._answer.awaited.append(awaited)
                break
        for awaited in self._answer.awaited:
            if hanging := [pod for pod in awaited.pods if pod.hangs]:
                text = ", and ".join(map(unblocking, hanging[:_MOST_NAMED]))
                self._answer.fixes.append(Fix(text, awaited.nodes, size=-1, rank=Rank.MEND))

    async def _awaited(self, leaving: Sequence[tuple[Object, LeavingPod]]) -> Awaited | None:
        """Return the fewest of these pods without which the pod fits; None: it does not."""
        fits = await self._without(leaving)
        by_node: dict[str, list[tuple[Object, LeavingPod]]] = {}
        for item in leaving:
            by_node.setdefault(item[1].node, []).append(item)
        for node in sorted(set(fits) & set(by_node), key=lambda node: len(by_node[node])):
            if node in (nodes := await self._without(by_node[node])):
                return Awaited(tuple(known for _, known in by_node[node]), tuple(nodes))
        return Awaited(tuple(known for _, known in leaving), tuple(fits)) if fits else None

    async def _without(self, leaving: Sequence[tuple[Object, LeavingPod]]) -> Sequence[str]:
        """Return the nodes that accept the pod once other pods have left their room."""
        kept = [
            resized(pod) for pod, known in leaving if not known.terminates and not known.nominated
        ]
        async with self._lifts.lifted([pod for pod, _ in leaving], kept):
            (answer,) = await self._ask([(self._pod, ALL)])
        return answer.candidates or ()

    # --- what would help ----------------------------------------------------------------------

    async def _fixes(self, excluded: Mapping[str, Mapping[Cause | Constraint, set[str]]]) -> None:
        explanation = self._answer
        blocking = {
            what: nodes
            for causes in excluded.values()
            for what, nodes in causes.items()
            if isinstance(what, Constraint) and nodes
        }
        fixed = set().union(*(nodes for what, nodes in blocking.items() if not what.fix))
        blocking = {what: nodes - fixed for what, nodes in blocking.items() if what.fix}
        tried = list(blocking)
        answers = await self._ask([(without(self._pod, [change]), ALL) for change in tried])
        usage = utilization_of(self._world)
        helps = {
            constraint: decision.candidates
            for constraint, decision in zip(tried, answers, strict=True)
            if decision.candidates
        }
        for constraint, nodes in helps.items():
            size = FAMILIES[constraint.family].size
            if constraint.resource:
                fix = await self._smaller_request(constraint, nodes or [], usage)
                explanation.fixes.append(replace(fix, size=fix.size or size))
            else:
                fix = Fix(constraint.fix, tuple(nodes or ()), size=size, rank=constraint.rank)
                explanation.fixes.append(self._edited(fix, constraint.field))
        explanation.fixes += await self._repairs(helps)
        explanation.impossible = list(self._impossible(usage))
        if not explanation.fixes:
            explanation.fixes += [fix async for fix in self._combinations(blocking)]

    async def _make_room(self) -> None:
        """Find what makes room on the only node on which the pod can run, if nothing else helps."""
        fixed = [each for each in self._constraints if not each.fix]
        names = {group.nodes[0] for group in self._answer.groups if not _has(group, fixed)}
        if not fixed or self._answer.fixes or len(names) != 1:
            return
        (node,) = names

        async def fits() -> bool:
            (answer,) = await self._ask([(self._pod, ALL)])
            return node in (answer.candidates or ())

        for other in await movable(self._world, node, self._lifts, fits):
            text = f"delete pod {other} of node {node}, or move it to another node"
            self._answer.fixes.append(Fix(text, (node,), size=1, rank=Rank.MEND))
        value = priority_above(self._world, node)
        if value is None or priority_of(self._pod) >= value:
            return
        self._count += 1
        raised = probe(self._pod, self._count, self._answer.scheduler)
        raised["spec"] |= {"priority": value, "preemptionPolicy": "PreemptLowerPriority"}
        (decision,) = (await self._run.schedule([raised])).values()
        if decision.preempted:
            victims = ", ".join(decision.preempted)
            text = f"use a PriorityClass with a value of at least {value}: it preempts {victims}"
            fix = Fix(text, (node,), size=2, rank=Rank.RULE)
            self._answer.fixes.append(self._edited(fix, "spec.priorityClassName"))

    async def _repairs(self, constraints: Iterable[Constraint]) -> list[Fix]:
        """Return what helps and keeps the constraint, of constraints that keep the pod away."""
        repairs = [
            (repair, FAMILIES[constraint.family].size)
            for constraint in constraints
            for repair in constraint.repairs
        ]
        changed = []
        for repair, _ in repairs:
            changed.append((copy.deepcopy(self._pod), ALL))
            repair.change(changed[-1][0])
        answers = await self._ask(changed) if changed else []
        return [
            self._edited(
                Fix(repair.text, tuple(nodes), 1, size, repair.rank, repair.object), repair.field
            )
            for (repair, size), decision in zip(repairs, answers, strict=True)
            if (nodes := decision.candidates)
        ]

    def _edited(self, fix: Fix, field: str) -> Fix:
        """Name the object and the field that a user edits, from a path in the pod."""
        if not field or fix.object:
            return replace(fix, field=field)
        title, prefix = edited_object(self._world, self._pod)
        return replace(fix, object=title, field=f"{prefix}{field}")

    async def _smaller_request(
        self, constraint: Constraint, nodes: Sequence[str], usage: Utilization
    ) -> Fix:
        """Return the largest request with which the pod fits on one of these nodes."""
        resource = constraint.resource
        asked = Demand(self._pod["spec"]).requests[resource]
        free = {usage.free(node).get(resource, 0.0) for node in nodes}
        for most in sorted((amount for amount in free if amount > 0), reverse=True)[:3]:
            changed = copy.deepcopy(self._pod)
            readable = parsed(resource, quantity_text(resource, most))
            if not reduce_request(changed["spec"], resource, readable):
                continue
            (answer,) = await self._ask([(changed, ALL)])
            if answer.candidates:
                reduced = Demand(changed["spec"]).requests[resource]
                less, before = different_texts(resource, reduced, asked)
                return Fix(
                    f"request {less} of {resource} instead of {before}",
                    tuple(answer.candidates),
                    rank=Rank.LESS,
                )
        # `without` leaves the overhead out as well.
        overhead = resource in (self._pod["spec"].get("overhead") or {})
        also = ", and use no RuntimeClass with an overhead of it" if overhead else ""
        return Fix(f"request no {resource}{also}", tuple(nodes), size=_LARGEST, rank=Rank.NOTHING)

    def _impossible(self, usage: Utilization) -> Iterator[str]:
        nodes = usage.allocatable.values()
        for resource, amount in Demand(self._pod["spec"]).requests.items():
            largest = max((node.get(resource, 0.0) for node in nodes), default=0.0)
            if amount > largest:
                asks, has = different_texts(resource, amount, largest)
                yield (
                    f"no node has {asks} of {resource}, even if it was empty; the largest has {has}"
                )

    async def _combinations(self, blocking: Mapping[Constraint, set[str]]) -> Any:
        """Yield the smallest sets of changes: for each node, all constraints that exclude it."""
        sets: dict[frozenset[int], None] = {}
        order = list(blocking)
        for node in self._nodes:
            excluding = (at for at, constraint in enumerate(order) if node in blocking[constraint])
            sets[frozenset(excluding)] = None
        smallest = sorted((numbers for numbers in sets if len(numbers) > 1), key=len)
        minimal: list[frozenset[int]] = []
        for numbers in smallest:
            if not any(other < numbers for other in minimal):
                minimal.append(numbers)
        tried = minimal[:_MOST_COMBINATIONS]
        chosen = [[order[at] for at in sorted(numbers)] for numbers in tried]
        answers = await self._ask([(without(self._pod, changes), ALL) for changes in chosen])
        for constraints, decision in zip(chosen, answers, strict=True):
            if decision.candidates:
                text = ", and ".join(constraint.fix for constraint in constraints)
                rank = max(constraint.rank for constraint in constraints)
                yield Fix(text, tuple(decision.candidates), len(constraints), rank=rank)

    async def _new_nodes(self) -> None:
        """Add one more node like each kind of node that there is, and see where the pod fits."""
        kinds: dict[str, tuple[Object, int]] = {}
        for node in self._world.all(NODES):
            key = _kind_of(node)
            known = kinds.get(key)
            kinds[key] = (node, 1) if known is None else (known[0], known[1] + 1)
        often = sorted(kinds.values(), key=lambda kind: -kind[1])[:_MOST_KINDS]
        added = {}
        shares = self._shares({node["metadata"]["name"] for node, _ in often})
        for at, (node, count) in enumerate(often):
            name = f"{IMPOSSIBLE}node-{at}"
            fresh = copy.deepcopy(node)
            fresh["metadata"].update(name=name, uid=name)
            labels = fresh["metadata"].setdefault("labels", {})
            labels[HOSTNAME] = name
            fresh["spec"].pop("unschedulable", None)
            like = node["metadata"]["name"]
            status = fresh.setdefault("status", {})
            sizes = amounts(status.get("allocatable"))
            left = {key: size - shares[like].get(key, 0.0) for key, size in sizes.items()}
            status["allocatable"] = written(left)
            added[name] = (like, count)
            self._run.put(NODES, fresh)
        fitting = set(await self._candidates_of(len(self._nodes) + len(added)))
        for name in added:
            self._run.remove(NODES, name)
        await self._candidates_of(len(self._nodes))
        for name, (like, count) in added.items():
            if name in fitting:
                others = f" and {count - 1} other{'s' * (count > 2)}" if count > 1 else ""
                text = f"add a node like {like}{others}"
                self._answer.fixes.append(Fix(text, (like,), 2, rank=Rank.NODE))

    def _shares(self, nodes: Collection[str]) -> dict[str, dict[str, float]]:
        """Return what the Pods of DaemonSets and static Pods take of each of these nodes."""
        shares: dict[str, dict[str, float]] = {node: {} for node in nodes}
        for entry in self._world.objects[PODS].values():
            if entry.node in shares and is_daemon(pod := entry.object()):
                add_pod(shares[entry.node], pod)
        return shares

    async def _candidates_of(self, nodes: int) -> Sequence[str]:
        """Return the nodes that accept the pod, once kube-scheduler has noticed all `nodes` nodes.

        It watches nodes and pods independently of each other, and its message has the number.
        """
        while True:
            (answer,) = await self._ask([(self._pod, ALL)])
            tried = _TRIED.match(answer.message)
            if tried is None or int(tried[1]) == nodes:
                return answer.candidates or ()


def _has(group: Group, constraints: Iterable[Constraint]) -> bool:
    texts = {constraint.text for constraint in constraints}
    return any(cause.text in texts for cause in group.causes)


def _facts(text: str, on: Callable[[str], str] | None, nodes: Sequence[str]) -> Mapping[str, str]:
    """Return the cause of each node: what is known about it, else `text`.

    If that differs between too many of them, all have `text`, with one as an example: 5,000 nodes
    would otherwise be 5,000 groups.
    """
    facts = {node: (on(node) if on else "") or text for node in nodes}
    if len(set(facts.values())) <= _MOST_FACTS:
        return facts
    node, example = next(row for row in facts.items() if row[1] != text)
    return dict.fromkeys(nodes, f"{text}; for example, {example} ({node})")


def _kind_of(node: Mapping[str, Any]) -> str:
    labels = {
        key: value
        for key, value in (node["metadata"].get("labels") or {}).items()
        if value != node["metadata"]["name"] and key != HOSTNAME
    }
    taints = [
        taint
        for taint in node["spec"].get("taints") or ()
        if taint.get("key") != UNSCHEDULABLE_TAINT
    ]
    return repr(
        (sorted(labels.items()), taints, sorted((node["status"].get("allocatable") or {}).items()))
    )
