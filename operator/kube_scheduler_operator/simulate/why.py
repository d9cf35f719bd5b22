"""Why a pod has no node, and what would help; or why it is where it is.

Every statement was tried: the nodes that a constraint excludes are those that kube-scheduler
excluded when it saw that constraint alone, and a change helps if kube-scheduler found nodes for the
changed pod.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any, Final

from ..base.foreign_text import foreign
from ..base.limits import FOREIGN_NAME
from ..base.objects import mapping
from ..config.language.feature_gates import Gates
from ..config.language.plugins.effective_plugins import effective_plugins
from ..config.language.versions import Version
from .advice import AdviceSearch
from .affinity_constraints import affinities_without_effect
from .claim_bindings import awaited
from .configuration import profiles_of
from .constraint import Constraint, Rank
from .constraints import MOST_TRIED, constraints_of, number_of_pods, tried, without
from .decisions import NO_SCHEDULER, NOT_SIMULATED, PodDecision, failed_attempt
from .default_spreads import default_spread
from .device_selectors import failure_notes
from .diagnosis import Cause, Decision, Diagnosis, Group
from .extenders import seeing
from .image_names import IMAGE_LOCALITY, images_without_effect, unreported_images
from .kinds import NODES, Object
from .lead import lead_of
from .leaving import described
from .lifts import Lifts
from .new_node_trials import Rejection, answered, new_nodes
from .nominations import nominated
from .other_schedulers import where_to_look
from .pod_groups import ungrouped
from .preemption import sentences, victims_on
from .probes import (
    ALL,
    EXTENDERS,
    MOST_REASONS,
    probe,
    probing,
    profile_named,
    profile_of,
    reasons,
    whole_reason,
)
from .profile_rules import demanded_labels, profile_rules
from .run import Run
from .run_options import RunOptions, gates_of, serving, simulated_names
from .scheduling_gates import removers
from .shared_runs import Runs
from .spread_constraints import spreads_without_effect
from .utilization import FreeAmounts
from .volume_facts import fields_without_effect, too_many
from .world import World

_REQUESTS: Final = "requests"
_VOLUMES: Final = "volumes"
_SPREAD: Final = "spread"
_NO_HINT: Final = Version(1, 37)
_NO_DRIVER: Final = "CSI driver is not installed on the node"
_OF_OTHERS: Final = "node(s) didn't satisfy existing pods anti-affinity rules"
_MOST_NAMED: Final = 5
_MOST_FACTS: Final = 6
"""Sentences about the nodes of a constraint, each a group of its own."""


async def explain(world: World, pod: Object, options: RunOptions) -> Diagnosis:
    """Explain a pod of a world.

    A running pod is taken off its node first, and tried as if it was new.
    """
    return await explain_in(Run, world, pod, options)


async def explain_in(runs: Runs, world: World, pod: Object, options: RunOptions) -> Diagnosis:
    """Do the same in these runs."""
    spec = pod["spec"]
    metadata, name = pod["metadata"], spec.get("schedulerName") or ""
    service = serving(options, name)
    explanation = Diagnosis(
        f"{metadata['namespace']}/{metadata['name']}",
        name,
        simulated_names(options),
        service.problem + (where_to_look(pod, world.groups) if service.problem else ""),
        node=(node := spec.get("nodeName") or ""),
        phase=str(mapping(pod.get("status")).get("phase") or "") if node else "",
        gates=(gates := [str(gate.get("name")) for gate in spec.get("schedulingGates") or ()]),
        gates_removed_by=removers(pod, gates),
        nodes=len(world.objects[NODES]),
        nominated=nominated(pod),
    )
    if "deletionTimestamp" in metadata and not explanation.node:
        explanation.ending = described(pod, world)
    elif service.options is not None:
        explanation.left_out = seeing(service.options.left_out, pod)
        known = await _gates(world, service.options)
        await _Inquiry(runs, world, pod, service.options, known, explanation).run()
        if explanation.candidates and not explanation.node:
            explanation.error = failed_attempt(pod)
            explanation.binding = awaited(pod, world, lambda: known)
        explanation.notes += failure_notes(world, explanation.message, explanation.error)
        if not explanation.candidates and not explanation.decision.node and not explanation.node:
            await _new_nodes(world, pod, service.options, explanation)
    else:
        reason = NOT_SIMULATED if service.exists else NO_SCHEDULER
        explanation.refused = "" if service.exists else options.refused.get(name, "")
        explanation.decision = Decision(reason=reason)
    return explanation


async def _new_nodes(
    world: World, pod: Object, options: RunOptions, explanation: Diagnosis
) -> None:
    """Add what could make a node on which the pod fits, and the nodes that are being made."""

    async def trial(changed: World) -> Mapping[str, Sequence[Rejection]]:
        answer = Diagnosis(explanation.pod, explanation.scheduler, explanation.profiles)
        return await _Inquiry(Run, changed, pod, options, gates_of(options), answer).rejections()

    made = await new_nodes(world, pod, options, trial)
    explanation.new_nodes, explanation.coming_nodes = made
    if explanation.new_nodes:  # which know more than that a node like one that exists would fit
        known = answered(world)
        explanation.fixes = [
            fix for fix in explanation.fixes if fix.rank != Rank.NODE or not known >= {*fix.nodes}
        ]


async def _gates(world: World, options: RunOptions) -> Gates:
    """Return the feature gates; the program takes 0.1 s to say its version, the Nodes as long."""
    known, _ = await asyncio.gather(
        asyncio.to_thread(gates_of, options), asyncio.to_thread(world.labels_of_nodes)
    )
    return known


class _Inquiry:
    """The runs for one explanation."""

    def __init__(
        self,
        runs: Runs,
        world: World,
        pod: Object,
        options: RunOptions,
        gates: Gates,
        answer: Diagnosis,
    ) -> None:
        self._runs = runs
        self._answer = answer
        self._world = world.copy()
        self._world.remove_pod(pod, comes_back=True)
        self._pod = ungrouped(pod)  # `explain_group` decides about groups
        if self._pod["spec"].pop("nodeName", None):
            self._pod["status"].pop("nominatedNodeName", None)
        self._pod["spec"].pop("schedulingGates", None)
        self._gates = gates
        self._version = gates.version
        profile = profile_named(options, answer.scheduler)
        self._rules, self._labels = profile_rules(profile), demanded_labels(profile)
        self._profile = profile
        scoring = effective_plugins(profile, gates).points["score"]
        self._scores = {plugin.name: plugin.weight or 1 for plugin in scoring}
        if answer.node:  # every node gets a score
            profiles = [
                {**own, "percentageOfNodesToScore": 100} for own in profiles_of(options.config)
            ]
            options = replace(options, config={**options.config, "profiles": profiles}, scores=True)
        self._options, self._families = probing(self._world, options, answer.scheduler)
        self._nodes = [name for _, name in world.objects[NODES]]
        self._usage = cache(partial(FreeAmounts, self._world))
        self._constraints: Sequence[Constraint] = ()

    async def run(self) -> None:
        explanation = self._answer
        async with self._runs(self._world, self._options, [self._pod]) as run:
            self._run = run
            excluded, own = await self._exclusions()
            if not explanation.candidates or explanation.node:
                self._group(excluded, own)
            lifts = Lifts(run, self._options.probes)
            constraints = self._constraints
            advice = AdviceSearch(
                explanation, self._world, self._pod, constraints, lifts, self._ask, self._usage
            )
            if not explanation.candidates:
                await advice.find(excluded, self._labels)
            # The pod itself is scheduled last: it may take room and volumes, and preempt others.
            (decision,) = (await run.schedule([self._pod])).values()
            explanation.decided(decision)
            if not explanation.candidates:
                node = decision.nominated or explanation.nominated
                victims = victims_on(self._world, node, self._pod)
                preemption = sentences(self._world, self._pod, decision, victims, self._version)
                explanation.preemption = list(preemption)
            if explanation.node:
                explanation.lead = lead_of(decision, explanation.node)
            explanation.extenders = run.extenders.explain(explanation.pod)
            run.forget([self._pod])  # it would take the room that is made
            # After a preemption, the room of the victims is free.
            if not (explanation.candidates or decision.node or decision.preempted):
                await advice.make_room()
            explanation.notes += self._late_retries(decision)
            explanation.fixes.sort(
                key=lambda fix: (fix.rank, fix.changes, fix.size, -len(fix.nodes))
            )
            explanation.notes += run.notes
        if explanation.candidates:
            explanation.notes += spreads_without_effect(self._pod, self._world, self._gates)
            explanation.notes += fields_without_effect(self._pod, self._world)
            explanation.notes += affinities_without_effect(self._pod, self._world)
        if len(explanation.candidates) > 1 and IMAGE_LOCALITY in self._scores:
            others = [self._scores[name] for name in self._scores if name != IMAGE_LOCALITY]
            alone = not others and not self._options.extenders
            foremost = self._scores[IMAGE_LOCALITY] > max(others, default=0)
            nodes = list(self._world.all(NODES))
            explanation.notes += images_without_effect(
                self._pod["spec"], nodes, alone=alone, foremost=foremost
            )
            explanation.notes += unreported_images(self._pod["spec"], nodes)

    def _late_retries(self, decision: PodDecision) -> Iterator[str]:
        """Yield what prevents an attempt right after the cluster was changed.

        From 1.37 on, InterPodAffinity's queueing hint for a new node considers the pod's own terms
        alone (`isSchedulableAfterNodeChange`), and that of NodeVolumeLimits for a CSINode considers
        the limits of its drivers (`isSchedulableAfterCSINodeUpdated`).
        """
        texts = {text for _, text in reasons(decision.message)}
        if self._version >= _NO_HINT and texts and all(map(_has_no_driver, texts)):
            yield (
                "a CSI driver that reports no limit of volumes does not make kube-scheduler try a "
                "Pod again when it starts on a node: it does within five minutes, or once the Pod "
                "is created again"
            )
        adds_node = any(fix.rank == Rank.NODE for fix in self._answer.fixes)
        if self._version >= _NO_HINT and texts == {_OF_OTHERS} and adds_node:
            yield (
                "a new node alone does not make kube-scheduler try a Pod again that only the "
                "anti-affinity of other Pods keeps away: it does within five minutes, or once the "
                "Pod is created again"
            )

    async def rejections(self) -> dict[str, list[Rejection]]:
        """Return why each node excludes the pod; nodes that accept it are left out."""
        async with self._runs(self._world, self._options, [self._pod]) as run:
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
            pods.append(probe(pod, self._run.next_number(), scheduler))
        decisions = await self._run.schedule(pods, settle=False)
        self._run.forget(pods)
        return list(decisions.values())

    async def _find_constraints(self) -> None:
        """Find what the pod demands while kube-scheduler decodes the world: both take long."""
        await self._run.reads()
        constraints = constraints_of(self._pod, self._world, self._gates, self._usage)
        self._constraints, others = tried(
            constraint for constraint in constraints if constraint.family in self._families
        )
        if others:
            self._answer.notes.append(
                f"{others} more constraints of the Pod are not tried one by one, because there are "
                f"more than {MOST_TRIED} of a kind"
            )

    async def _exclusions(self) -> tuple[dict[str, dict[Cause | Constraint, set[str]]], Any]:
        """Return the nodes excluded, by family and by constraint or generic cause."""
        await self._find_constraints()
        by_family: dict[str, list[Constraint]] = {}
        for constraint in self._constraints:
            by_family.setdefault(constraint.family, []).append(constraint)
        decisions, _ = await asyncio.gather(
            self._ask(self._questions(by_family)), asyncio.to_thread(self._count)
        )
        answers = iter(decisions)
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
            alone = len(by_family.get(family, ())) < 2
            generic = Cause(_generic(family, texts, {} if alone else self._pod["spec"]))
            rule = Cause(self._rules.get(family) or _generic(family, texts, {}))
            if family not in by_family:
                generic = rule
            self._add_generic(causes, generic, rule, self._rejected(decision), always)
        for causes in excluded.values():
            for what in causes:
                if isinstance(what, Constraint) and what.named_by:
                    causes[what] -= set[str]().union(*excluded.get(what.named_by, {}).values())
        return excluded, own

    def _count(self) -> None:
        """Count what constraints say about nodes, once, while kube-scheduler reads the world."""
        for constraint in self._constraints:
            if constraint.on is not None and self._nodes:
                constraint.on(self._nodes[0])

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
        on_node = {
            _REQUESTS: number_of_pods(self._world),
            _VOLUMES: too_many(self._pod, self._world),
        }
        rule = self._rules.get(_SPREAD)
        if rule and not self._pod["spec"].get("topologySpreadConstraints"):
            on_node[_SPREAD] = default_spread(
                self._pod, self._world, self._profile, rule, self._gates
            )
        for family in self._families:
            for reason, nodes in excluded.get(family, {}).items():
                words = own.get(family, ())
                on = on_node.get(family)
                text = reason.text
                if isinstance(reason, Constraint):
                    seen = reason.seen(words) if reason.seen else ""
                    text, on = seen or text, None if seen else reason.on
                for node, fact in _facts(text, on, sorted(nodes)).items():
                    of_node = (
                        reason.reasons(words, node) if isinstance(reason, Constraint) else words
                    )
                    causes_of[node].append(Cause(fact, of_node[:MOST_REASONS]))
        groups: dict[tuple[Cause, ...], list[str]] = {}
        for node, causes in causes_of.items():
            if causes:
                groups.setdefault(tuple(causes), []).append(node)
        self._answer.groups = sorted(
            (Group(tuple(nodes), causes) for causes, nodes in groups.items()),
            key=lambda group: (-len(group.nodes), len(group.causes)),
        )


def _facts(text: str, on: Callable[[str], str] | None, nodes: Sequence[str]) -> Mapping[str, str]:
    """Return the cause of each node: what is known about it, else `text`.

    If that differs between too many of them, all have `text`, with one as an example: 5,000 nodes
    would otherwise be 5,000 groups.
    """
    facts: dict[str, str] = {}
    different: dict[str, str] = {}  # fact -> the first node with it
    for node in nodes:
        fact = facts[node] = (on(node) if on else "") or text
        different.setdefault(fact, node)
        if len(different) > _MOST_FACTS:
            example, node = next(row for row in different.items() if row[0] != text)
            return dict.fromkeys(nodes, f"{text}; for example, {example} ({node})")
    return facts


def _has_no_driver(text: str) -> bool:
    return text.endswith(_NO_DRIVER)


def _generic(family: str, reasons: Sequence[str], spec: Mapping[str, Any]) -> str:
    """Return why a family excludes nodes that no constraint of it excludes alone.

    `spec` is that of a pod with several constraints of the family, otherwise empty.
    """
    if family == "devices" and (names := _names(spec, "resourceClaims")):
        return f"the node has devices for each of the resource claims {names}, not for all of them"
    if family == _VOLUMES and (names := _names(spec, "volumes")):
        return f"the node can use each of the volumes {names}, not all of them together"
    more = f"; … and {len(reasons) - MOST_REASONS} more" if len(reasons) > MOST_REASONS else ""
    return "; ".join(reasons[:MOST_REASONS]) + more or f"rejected by {family}"


def _names(spec: Mapping[str, Any], field: str) -> str:
    names = [foreign(str(entry.get("name")), FOREIGN_NAME) for entry in spec.get(field) or ()]
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"{', '.join(names[:_MOST_NAMED])}{more}"
