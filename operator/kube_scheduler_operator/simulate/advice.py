"""What would help a pod that has no node: what it waits for, and changes of it or of the cluster.

All of it was tried: a change helps if kube-scheduler found nodes for the changed pod.
"""

from __future__ import annotations

import copy
import math
import re
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import replace
from typing import Any, Final

from ..base.objects import mapping
from ..base.quantities import PODS as PODS_RESOURCE
from ..base.quantities import amount as parsed
from ..base.quantities import amounts
from ..scheduling.policies.pods import Demand
from .affinity_terms import apart_by
from .constraint import Constraint, Rank, different_texts, no_edits, quantity_text
from .constraints import FAMILIES, host_ports, together, without
from .decisions import PodDecision
from .diagnosis import Awaited, Cause, Diagnosis, Group
from .edits import Edit, edits
from .fix import Fix, naming_node
from .kinds import BY_KIND, HOSTNAME, IMPOSSIBLE, NODES, PODS, Object, pod_name
from .leaving import LeavingPod, deferred_resizes, leaving_pods, reserving_pods, resized
from .less import reduce_request, reduction
from .lifts import Lifts, answers_once_known
from .new_nodes import add_pod, written
from .node_rules import REQUIRED
from .owners import edited_object
from .preemption import priority_of, unblocking
from .probes import ALL, probe
from .request_constraints import Usage, remove_request
from .rollouts import ENDING_FIRST, rollout_of
from .room import movable, priority_above
from .scenario import is_daemon
from .taint_constraints import FARGATE, UNSCHEDULABLE_TAINT
from .utilization import FreeAmounts
from .volume_facts import too_many
from .world import World

_MOST_COMBINATIONS: Final = 6
_MOST_LEFT_OUT: Final = 40
"""Constraints that are tried one after the other for what hides behind them."""
_MOST_AMOUNTS: Final = 3
_MOST_KINDS: Final = 12
_LARGEST: Final = 8
_MOST_LEAVING: Final = 100
"""Pods that terminate or are resized whose end is tried."""
_MOST_NAMED: Final = 3
_MOST_OLD: Final = 6
"""Old pods of a rollout whose end is tried."""
_TRIED: Final = re.compile(r"0/(\d+) nodes ")
"""How kube-scheduler's message about a pod that fits nowhere begins."""

Asking = Callable[[Sequence[tuple[Object, str]]], Awaitable[list[PodDecision]]]
"""Returns the decisions about (pod, schedulerName), in this order."""

Exclusions = Mapping[str, Mapping[Cause | Constraint, set[str]]]
"""The nodes that each constraint, or another cause, excludes, by family."""


class AdviceSearch:
    """Adds to an explanation what would help its pod, in a run over a world without the pod."""

    def __init__(
        self,
        answer: Diagnosis,
        world: World,
        pod: Object,
        constraints: Sequence[Constraint],
        lifts: Lifts,
        ask: Asking,
        usage: Usage,
    ) -> None:
        self._answer = answer
        self._world = world
        self._pod = pod
        self._constraints = constraints
        self._run = lifts.run
        self._lifts = lifts
        self._ask = ask
        self._usage = usage
        self._nodes = [name for _, name in world.objects[NODES]]

    async def find(self, excluded: Exclusions, labels: Mapping[str, str]) -> None:
        """Add what the pod waits for, and the changes with which it fits.

        `labels` are those that its profile demands of nodes.

        Raises:
            SimulationError: kube-scheduler ended, or the time is over.
        """
        await self._await_pods()
        await self._await_rollout()
        await self._end_resizes()
        await self._fixes(excluded)
        if all(each.fix for each in self._constraints):
            await self._new_nodes(labels)

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
        every = [*leaving, *reserving] if leaving and reserving else []
        for chosen in (ending, resizing, both, reserving, every):
            if chosen and (awaited := await self._awaited(chosen)):
                self._answer.awaited.append(awaited)
                break
        for awaited in self._answer.awaited:
            hanging = [pod for pod in awaited.pods if pod.hangs]
            if hanging and not any(pod.nominated for pod in awaited.pods):
                text = ", and ".join(map(unblocking, hanging[:_MOST_NAMED]))
                ended = tuple(Edit(f"Pod {pod.pod}") for pod in hanging)
                fix = Fix(text, awaited.nodes, size=-1, rank=Rank.MEND, patch=ended)
                self._answer.fixes.append(fix)

    async def _await_rollout(self) -> None:
        """See whether the pod fits once an old pod of its Deployment has ended."""
        rollout = rollout_of(self._world, self._pod)
        if rollout is None:
            return
        for old in rollout.old[:_MOST_OLD]:
            async with self._lifts.lifted([old]):
                (answer,) = await self._ask([(self._pod, ALL)])
            if answer.candidates:
                text = (
                    f"let an old pod end before a new one starts, such as {pod_name(old)}: "
                    f"{ENDING_FIRST}"
                )
                owner, field = rollout.owner, rollout.field
                patch = (
                    Edit(owner, f"{field}.maxSurge", to=0),
                    Edit(owner, f"{field}.maxUnavailable", to=1),
                )
                fix = Fix(text, tuple(answer.candidates), rank=Rank.MEND, object=owner, field=field)
                self._answer.fixes.append(replace(fix, patch=patch))
                return

    async def _end_resizes(self) -> None:
        """See whether the pod fits once a resize is given up for which its node has no room."""
        for pod, kept, amounts_ in deferred_resizes(self._world)[:_MOST_OLD]:
            async with self._lifts.lifted([pod], [kept]):
                (answer,) = await self._ask([(self._pod, ALL)])
            if answer.candidates:
                own = pod["metadata"]
                text = (
                    f"let pod {pod_name(pod)} request again what it has, because its resize is "
                    f"Deferred and {amounts_}: kubectl edit pod {own['name']} -n "
                    f"{own['namespace']} --subresource resize"
                )
                self._answer.fixes.append(Fix(text, tuple(answer.candidates), rank=Rank.MEND))

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

    async def _fixes(self, excluded: Exclusions) -> None:
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
        room = self._usage()
        helps = {
            constraint: decision.candidates
            for constraint, decision in zip(tried, answers, strict=True)
            if decision.candidates
        }
        for constraint, nodes in helps.items():
            fix = await self._fix_of([constraint], nodes or (), room)
            size = fix.size or constraint.size or FAMILIES[constraint.family].size
            field = "" if constraint.resource else constraint.field
            explanation.fixes.append(self._edited(replace(fix, size=size), field))
        explanation.fixes += await self._repairs(helps or blocking)
        explanation.impossible = list(self._impossible(room))
        if not explanation.fixes:
            explanation.fixes += [fix async for fix in self._combinations(blocking, room)]
        if not explanation.fixes:
            explanation.fixes += [fix async for fix in self._fewest(room)]

    async def make_room(self) -> None:
        """Add what makes room on the only node where the pod can run, if it would have to ask less.

        Raises:
            SimulationError: kube-scheduler ended, or the time is over.
        """
        fixed = [each for each in self._constraints if not each.fix]
        names = {group.nodes[0] for group in self._answer.groups if not _has(group, fixed)}
        repaired = any(fix.rank < Rank.LESS for fix in self._answer.fixes)
        if not fixed or repaired or len(names) != 1:
            return
        (node,) = names
        if self._is_for_one_pod(node):
            self._keep_daemon_off(node)
            return

        async def fits() -> bool:
            (answer,) = await self._ask([(self._pod, ALL)])
            return node in (answer.candidates or ())

        for other in await movable(self._world, node, self._lifts, fits):
            text = f"delete pod {other} of node {node}, or move it to another node"
            fix = Fix(text, (node,), size=1, rank=Rank.MEND, patch=(Edit(f"Pod {other}"),))
            self._answer.fixes.append(fix)
        value = priority_above(self._world, node)
        if value is None or priority_of(self._pod) >= value:
            return
        changed = copy.deepcopy(self._pod)
        changed["spec"] |= {"priority": value, "preemptionPolicy": "PreemptLowerPriority"}
        raised = probe(changed, self._run.next_number(), self._answer.scheduler)
        (decision,) = (await self._run.schedule([raised])).values()
        if decision.preempted:
            victims = ", ".join(decision.preempted)
            text = f"use a PriorityClass with a value of at least {value}: it preempts {victims}"
            patch = self._edits(changed)
            fix = Fix(text, (node,), size=2, rank=Rank.RULE, patch=patch)
            self._answer.fixes.append(self._edited(fix, "spec.priorityClassName"))

    def _keep_daemon_off(self, node: str) -> None:
        """Add what ends the wait of a pod for a node that has no place for any other."""
        key, value = FARGATE
        text = (
            f"demand {key} NotIn {value} in the node affinity: node {node} is of EKS Fargate, for "
            "one pod alone; its DaemonSet has no pod for it then"
        )
        fix = Fix(text, (), size=1, rank=Rank.MEND)
        self._answer.fixes = [self._edited(fix, f"spec.affinity.nodeAffinity.{REQUIRED}")]

    async def _repairs(self, constraints: Iterable[Constraint]) -> list[Fix]:
        """Return what helps and keeps the constraint, of constraints that keep the pod away."""
        repairs = [
            (repair, FAMILIES[constraint.family].size)
            for constraint in constraints
            for repair in constraint.repairs()
        ]
        changed = []
        for repair, _ in repairs:
            changed.append((copy.deepcopy(self._pod), ALL))
            repair.change(changed[-1][0])
        needed = [obj for repair, _ in repairs for obj in repair.objects]
        for obj in needed:
            self._run.put(BY_KIND[obj["apiVersion"], obj["kind"]].resource, obj)
        answers = []
        if changed:
            answers = await answers_once_known(lambda: self._ask(changed), needed)
        fixes = []
        named: set[str] = set()
        for (repair, size), (pod, _), decision in zip(repairs, changed, answers, strict=True):
            nodes = tuple(filter(repair.only or bool, decision.candidates or ()))
            if nodes and repair.series not in named:
                named |= {repair.series} - {""}
                of_pod = repair.field and not repair.object
                patch = self._edits(pod) if of_pod else tuple(repair.others(nodes))
                text = naming_node(repair.text, nodes)
                # What is left of a constraint is lost with `Constraint.fix`.
                lost = size - 1 if repair.object else size
                fix = Fix(text, nodes, 1, lost, repair.rank, repair.object, patch=patch)
                fixes.append(self._edited(fix, repair.field))
        return fixes

    def _edited(self, fix: Fix, field: str) -> Fix:
        """Name the object and the field that a user edits, from a path in the pod."""
        if not field or fix.object:
            return replace(fix, field=field)
        title, prefix = edited_object(self._world, self._pod)
        return replace(fix, object=title, field=f"{prefix}{field}")

    def _edits(self, changed: Object) -> tuple[Edit, ...]:
        """Return how the object that a user edits makes a changed pod."""
        return edits(*edited_object(self._world, self._pod), self._pod, changed)

    async def _fix_of(
        self, constraints: Sequence[Constraint], nodes: Sequence[str], room: FreeAmounts
    ) -> Fix:
        """Return the end of constraints, without which the pod fits on these nodes.

        Of what they request, the largest amounts remain with which it fits on one of the nodes.
        """
        resources = [constraint.resource for constraint in constraints if constraint.resource]
        amounts_: dict[str, float] = dict.fromkeys(resources, 0.0)
        free = {tuple(room.of(node).get(name, 0.0) for name in resources) for node in nodes}
        for most in sorted(free, reverse=True)[:_MOST_AMOUNTS]:
            if max(most, default=0.0) <= 0:
                break
            less = dict(zip(resources, most, strict=True))
            (answer,) = await self._ask([(self._changed(constraints, less), ALL)])
            if answer.candidates:
                amounts_, nodes = less, answer.candidates
                break
        texts, rank = [], max(constraint.rank for constraint in constraints)
        reduced = self._changed(constraints, amounts_)["spec"]
        for constraint in constraints:
            text = constraint.fix
            if name := constraint.resource:
                text, nothing = self._less(name, reduced)
                rank = Rank.NOTHING if nothing else rank
            texts.append(text)
        size = _LARGEST if rank == Rank.NOTHING else 0
        patch = self._patch(constraints, amounts_, nodes)
        joined = together(constraints, texts)
        named = ", and ".join(naming_node(text, nodes) for text in joined)
        return Fix(named, tuple(nodes), len(constraints), size, rank, patch=patch)

    def _changed(self, constraints: Iterable[Constraint], less: Mapping[str, float]) -> Object:
        """Return the pod without constraints; of what they request, it requests `less`."""
        changed = without(self._pod, (each for each in constraints if not each.resource))
        for name in (each.resource for each in constraints if each.resource):
            amount = parsed(name, quantity_text(name, less[name])) if less[name] > 0 else 0.0
            if amount <= 0 or not reduce_request(changed["spec"], name, amount):
                remove_request(changed, name)
        return changed

    def _less(self, resource: str, reduced: Object) -> tuple[str, bool]:
        """Return the text of a request that is made smaller, and whether nothing remains."""
        if Demand(reduced).requests.get(resource, 0.0) > 0:
            return reduction(self._pod["spec"], reduced, resource), False
        # `remove_request` leaves the overhead out as well.
        overhead = resource in (self._pod["spec"].get("overhead") or {})
        also = ", and use no RuntimeClass with an overhead of it" if overhead else ""
        return f"request no {resource}{also}", True

    def _patch(
        self, constraints: Sequence[Constraint], less: Mapping[str, float], nodes: Sequence[str]
    ) -> tuple[Edit, ...]:
        """Return what ends these constraints; empty if one ends by a change of no known object."""
        of_pod: list[Constraint] = []
        of_others: list[Constraint] = []
        for each in constraints:
            elsewhere = each.rank == Rank.MEND or each.others != no_edits
            (of_others if elsewhere else of_pod).append(each)
        others = [tuple(each.others(nodes)) for each in of_others]
        if not all(others):
            return ()
        changed = self._changed(of_pod, less)
        return (*self._edits(changed), *(edit for parts in others for edit in parts))

    def _impossible(self, room: FreeAmounts) -> Iterator[str]:
        nodes = room.allocatable.values()
        for resource, amount in Demand(self._pod["spec"]).requests.items():
            largest = max((node.get(resource, 0.0) for node in nodes), default=0.0)
            if amount > largest > 0:  # what no node has is a cause of its own
                asks, has = different_texts(resource, amount, largest)
                yield (
                    f"no node has {asks} of {resource}, even if it was empty; the largest has {has}"
                )

    async def _combinations(
        self, blocking: Mapping[Constraint, set[str]], room: FreeAmounts
    ) -> AsyncIterator[Fix]:
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
                yield await self._fix_of(constraints, decision.candidates, room)

    async def _fewest(self, room: FreeAmounts) -> AsyncIterator[Fix]:
        """Yield a set of changes of which none can be left out, where constraints hide others.

        A constraint may exclude nothing before another one ends: a spread counts only the zones
        that the node affinity allows.
        """
        left = sorted((each for each in self._constraints if each.fix), key=lambda each: each.rank)
        if len(left) > _MOST_LEFT_OUT:
            return
        (answer,) = await self._ask([(without(self._pod, left), ALL)])
        if not answer.candidates:
            return
        for constraint in reversed(left[:]):  # those come back first that a person would keep
            fewer = [other for other in left if other is not constraint]
            (without_fewer,) = await self._ask([(without(self._pod, fewer), ALL)])
            if without_fewer.candidates:
                left, answer = fewer, without_fewer
        yield await self._fix_of(left, answer.candidates or (), room)

    async def _new_nodes(self, demanded: Mapping[str, str]) -> None:
        """Add one more node like each kind of node that there is, and see where the pod fits.

        A node that lacks labels that are demanded gets them.
        """
        kinds: dict[str, tuple[Mapping[str, Any], int]] = {}
        for node in self._world.nodes():
            key = _kind_of(node)
            known = kinds.get(key)
            kinds[key] = (node, 1) if known is None else (known[0], known[1] + 1)
        often = sorted(kinds.values(), key=lambda kind: -kind[1])[:_MOST_KINDS]
        added: dict[str, tuple[str, int, str]] = {}
        made: list[Object] = []
        shares = self._shares({node["metadata"]["name"] for node, _ in often})
        for at, (node, count) in enumerate(often):
            name = f"{IMPOSSIBLE}node-{at}"
            fresh: Object = copy.deepcopy(dict(node))
            fresh["metadata"].update(name=name, uid=name)
            labels = fresh["metadata"].setdefault("labels", {})
            labels[HOSTNAME] = name
            missing = {key: demanded[key] for key in demanded if key not in labels}
            labels |= missing
            fresh["spec"].pop("unschedulable", None)
            like = node["metadata"]["name"]
            status = fresh.setdefault("status", {})
            sizes = amounts(status.get("allocatable"))
            left = {key: size - shares[like].get(key, 0.0) for key, size in sizes.items()}
            status["allocatable"] = written(left)
            added[name] = (like, count, _with_labels(missing))
            self._run.put(NODES, fresh)
            made.append(fresh)
        fitting = set(await self._candidates_of(len(self._nodes) + len(added)))
        keys = apart_by(self._pod)
        if not fitting and keys:
            added |= self._elsewhere(made, added, keys)
            fitting = set(await self._candidates_of(len(self._nodes) + len(added)))
        # The new nodes have no CSINode, and so no limit of volumes.
        many = too_many(self._pod, self._world)
        fitting = {name for name in fitting & added.keys() if not many(added[name][0])}
        if not fitting:
            await self._changes_for(added)
        for name in added:
            self._run.remove(NODES, name)
        await self._candidates_of(len(self._nodes))
        for name, (like, count, labelled) in added.items():
            if name in fitting and not self._is_for_one_pod(like):
                others = f" (one of {count} nodes of its kind)" if count > 1 else ""
                text = f"add a node like {like}{others}{labelled}"
                self._answer.fixes.append(Fix(text, (like,), 2, rank=Rank.NODE))

    def _elsewhere(
        self, made: Sequence[Object], added: Mapping[str, tuple[str, int, str]], keys: Sequence[str]
    ) -> dict[str, tuple[str, int, str]]:
        """Add nodes like those that were made, with labels of these keys that no other node has."""
        also: dict[str, tuple[str, int, str]] = {}
        kinds: set[str] = set()
        for fresh in made:
            before = fresh["metadata"]["name"]
            name = f"{before}-apart"
            fresh["metadata"].update(name=name, uid=name)
            fresh["metadata"]["labels"] |= {HOSTNAME: name, **dict.fromkeys(keys, name)}
            if (kind := _kind_of(fresh)) in kinds:
                continue
            kinds.add(kind)
            self._run.put(NODES, fresh)
            like, _, labelled = added[before]
            also[name] = (like, 1, f"{labelled} with another value of {' and '.join(keys)}")
        return also

    async def _changes_for(self, added: Mapping[str, tuple[str, int, str]]) -> None:
        """Add the changes with which the pod fits on new nodes; `added` has what each is like.

        All nodes may be full, and the pod may have a rule that no node meets.
        """
        if any(fix.rank != Rank.NOTHING for fix in self._answer.fixes):
            return
        changes = [each for each in self._constraints if each.fix and not each.resource]
        changes = changes[:_MOST_LEFT_OUT]
        answers = await self._ask([(without(self._pod, [each]), ALL) for each in changes])
        for change, answer in zip(changes, answers, strict=True):
            fitting = set(answer.candidates or ())
            if (name := next(filter(fitting.__contains__, added), None)) is not None:
                like, _, labelled = added[name]
                text = f"add a node like {like}{labelled}, and {change.fix}"
                likes: tuple[str, ...] = (like,)
                if self._is_for_one_pod(like):
                    text, likes = change.fix, ()
                rank = max(change.rank, Rank.NODE)
                self._answer.fixes.append(Fix(text, likes, 3, rank=rank))

    def _is_for_one_pod(self, node: str) -> bool:
        """Return whether a node was made for one pod: no user adds one like it."""
        labels = mapping(mapping((self._world.node(node) or {}).get("metadata")).get("labels"))
        return labels.get(FARGATE[0]) == FARGATE[1]

    def _shares(self, nodes: Collection[str]) -> dict[str, dict[str, float]]:
        """Return what the Pods of DaemonSets and static Pods take of each of these nodes.

        A host port that one of them uses, and the pod needs, leaves no place for it.
        """
        shares: dict[str, dict[str, float]] = {node: {} for node in nodes}
        needed = set(host_ports(self._pod["spec"]))
        for entry in self._world.objects[PODS].values():
            if entry.node in shares and is_daemon(pod := entry.object()):
                add_pod(shares[entry.node], pod)
                if not needed.isdisjoint(host_ports(pod["spec"])):
                    shares[entry.node][PODS_RESOURCE] = math.inf
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


def _with_labels(labels: Mapping[str, str]) -> str:
    """Return the labels that a node gets besides those of the one like it."""
    if not labels:
        return ""
    written_labels = " ".join(f"{key}={value}" for key, value in labels.items())
    word = "label" if len(labels) == 1 else "labels"
    return f" with the {word} {written_labels}: kubectl label node NODE {written_labels}"


def _has(group: Group, constraints: Iterable[Constraint]) -> bool:
    texts = {constraint.text for constraint in constraints}
    return any(cause.text in texts for cause in group.causes)


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
