"""Simulates the effects of an edit on the Pods of the cluster, beside the reconciles.

A repetition reads the cluster, and ends there if nothing changed that affects the result.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ...base.go_values import seconds
from ...base.hosts import shown_url
from ...base.limits import OPERATORS_WORLD
from ...base.platform import Platform
from ...base.sentences import in_one_line
from ...base.settings import Settings
from ...config.effective.extenders.entry import (
    DEFAULT_TIMEOUT,
    SHORTEST_OF_FILTER,
    agent_name,
)
from ...kube.client import ApiClient
from ...simulate.configuration import without_calls
from ...simulate.edit_effect import EditEffect, edit_effect
from ...simulate.extenders import SimulatedExtender
from ...simulate.job import NO_NODE, JobPlan, choose_node
from ...simulate.kinds import NODES
from ...simulate.process import SimulationError
from ...simulate.questions import NO_BINARY, read_answer, request
from ...simulate.read_cluster import read_cluster
from ...simulate.run_options import RunOptions
from ...simulate.simulated_extenders import filter_of, simulated_extenders, version_of
from ...simulate.world import World, situation
from ..model.plan import PlacementQuestion, PlacementRules
from ..model.snapshot import PlacementAnswer
from .simulation_pod import ask_pod, hash_of_key
from .simulation_runner import LONGEST_EFFECT, SimulationRunner

_DECIDING_VERBS: Final = ("filter", "bind", "preempt")
"""Verbs that decide whether a Pod gets a node; scores are not part of a check."""


@dataclass(frozen=True, slots=True)
class Omissions:
    """What a simulation does not have, a sentence each."""

    deciding: Sequence[str] = ()  # without it, the effect of the edit is not known
    notes: Sequence[str] = ()  # for information


Simulate = Callable[[PlacementQuestion], Awaitable[PlacementAnswer]]
"""Simulates an edit.

Raises:
    SimulationError, KubeError, OSError, aiohttp.ClientError: there is no result.
"""


class PlacementRunner(SimulationRunner[PlacementQuestion, PlacementAnswer]):
    SUBJECT = "an edit"
    LIMIT = " (spec.placementCheck.timeoutSeconds)"

    def _failed(self, question: PlacementQuestion, error: str) -> PlacementAnswer:
        return PlacementAnswer(question.identity, error=error)

    def _values(self, answer: PlacementAnswer) -> Mapping[str, Any]:
        values = {"worse": answer.worse, "effect": answer.effect, "error": answer.error}
        return {"unchanged": answer.unchanged, **values}


def answer_with(
    question: PlacementQuestion, effect: EditEffect, situation_now: str, omissions: Omissions
) -> PlacementAnswer:
    notes = (f"note: {note}" for note in omissions.notes)
    sentences = in_one_line((*effect.sentences(), *omissions.deciding, *notes))
    return PlacementAnswer(
        question.identity,
        effect.worse,
        sentences[:LONGEST_EFFECT],
        situation=situation_now,
        unknown=bool(omissions.deciding) or not effect.is_known,
    )


def in_cluster(
    api: ApiClient, platform: Platform, settings: Settings, reading: asyncio.Lock
) -> Simulate:
    """Simulate in a Job of the cluster; `api` may write only while this process leads.

    `reading` is held while the cluster is read: a copy of it has tens of megabytes, so there is
    one.
    """

    async def prepare(
        question: PlacementQuestion,
    ) -> PlacementAnswer | tuple[JobPlan, str, bytes, str, Omissions]:
        """Return (the Job, the key of its request, the request, the situation, omissions)."""
        with_agents = bool(question.before.agents or question.after.agents)
        world = await read_cluster(api, annotations=with_agents, most=OPERATORS_WORLD)
        world.version = str((await api.get_path("/version")).get("gitVersion") or "")
        now = await asyncio.to_thread(situation, world, _others(question, world))
        if now == question.situation:
            return PlacementAnswer(question.identity, situation=now, unchanged=True)
        notes: list[str] = []
        before, after = (
            _options(rules, question, world.version, notes)
            for rules in (question.before, question.after)
        )
        left_out = (_left_out(question.before, before), _left_out(question.after, after))
        deciding = (
            *world.notes,
            *not_called(*left_out),
            *not_timed(question.before, question.after),
            *at_another_load(before.extenders, after.extenders),
        )
        arguments = {
            "config": after.config,
            "flags": list(after.flags),
            "extenders": list(after.extenders),
        }
        key = secrets.token_urlsafe(32)
        # The API server limits neither the number of Pods nor of their containers.
        plan = await asyncio.to_thread(_plan, question, world, key, platform, settings)
        body = await asyncio.to_thread(request, edit_effect, world, before, arguments)
        return plan, key, body, now, Omissions(deciding, notes)

    async def simulate(question: PlacementQuestion) -> PlacementAnswer:
        async with reading:
            prepared = await prepare(question)
        if isinstance(prepared, PlacementAnswer):
            return prepared
        plan, key, body, now, omissions = prepared
        content = await ask_pod(api, plan, key, body)
        effect = await asyncio.to_thread(read_answer, edit_effect, content)
        return answer_with(question, effect, now, omissions)

    return simulate


def _others(question: PlacementQuestion, world: World) -> Mapping[str, object]:
    """Return what affects the result besides the rules and the objects of the world."""
    return {
        "version": world.version,
        "image": question.image,
        "command": question.command,
    }


def _options(
    rules: PlacementRules, question: PlacementQuestion, version: str, notes: list[str]
) -> RunOptions:
    """Choose options for these rules; notes about omitted extenders are added to `notes`."""
    config = without_calls(rules.config)
    extenders = simulated_extenders(
        rules.config.get("extenders") or (),
        [_object(name, {"agent": agent}) for name, agent in rules.agents.items()],
        [_object(name, spec) for name, spec in rules.load_policies.items()],
        version_of(version),
    )
    notes += [note for note in extenders.notes if note not in notes]
    return RunOptions(
        NO_BINARY, config, rules.flags, float(question.seconds), extenders=extenders.simulated
    )


def _object(name: str, spec: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"metadata": {"name": name}, "spec": spec}


LeftOut = Mapping[str, Mapping[str, Any]]
"""URL of an extender -> its entry, with only those verbs that a simulation does not call, and what
its agent decides by.
"""


def _left_out(rules: PlacementRules, options: RunOptions) -> LeftOut:
    called = {extender.entry["urlPrefix"]: extender.verbs for extender in options.extenders}
    left_out = {}
    for entry in rules.config.get("extenders") or ():
        url = str(entry.get("urlPrefix"))
        verbs = {f"{verb}Verb" for verb in called.get(url, ())}
        rest = {key: value for key, value in entry.items() if key not in verbs}
        if any(f"{verb}Verb" in rest for verb in _DECIDING_VERBS):
            left_out[url] = {**rest, "agent": rules.agents.get(agent_name(url))}
    return left_out


def not_called(before: LeftOut, after: LeftOut) -> Iterator[str]:
    """Name the extenders without whose answers the effect of an edit is not known.

    Which nodes a filter leaves for the others is never known; a Pod is bound as before if the entry
    is as before.
    """
    for url in sorted(before.keys() | after.keys()):
        was, now = before.get(url, {}), after.get(url, {})
        if was != now or "filterVerb" in was:
            yield f"the answers of the extender {shown_url(url)} are not known"


def at_another_load(
    before: Sequence[SimulatedExtender], after: Sequence[SimulatedExtender]
) -> Iterator[str]:
    """Name the agents whose filter was edited: they see the load of a moment.

    At a moment of low load a limit rejects no node.
    """
    old = {extender.name: extender for extender in before}
    for extender in after:
        was = old.get(extender.name)
        if was is not None and filter_of(extender) not in (None, filter_of(was)):
            name = extender.name
            yield f"which nodes SchedulerExtender {name} rejects at another load is not known"


def not_timed(before: PlacementRules, after: PlacementRules) -> Iterator[str]:
    """Name the extenders whose calls may end too early after the edit: a simulation waits longer.

    kube-scheduler ignores a late extender, or does not place the Pod.
    """
    was, now = _timeouts(before), _timeouts(after)
    for url, timeout in now.items():
        known = was.get(url)
        if timeout != known and (known is not None or seconds(timeout) < SHORTEST_OF_FILTER):
            yield f"whether the extender {shown_url(url)} answers within {timeout} is not known"


def _timeouts(rules: PlacementRules) -> dict[str, str]:
    """URL of each extender -> its timeout."""
    return {
        str(entry.get("urlPrefix")): str(entry.get("httpTimeout") or DEFAULT_TIMEOUT)
        for entry in rules.config.get("extenders") or ()
        if any(f"{verb}Verb" in entry for verb in _DECIDING_VERBS)
    }


def _plan(
    question: PlacementQuestion, world: World, key: str, platform: Platform, settings: Settings
) -> JobPlan:
    """Plan the Job.

    Raises:
        SimulationError: no node has room for it.
    """
    node = choose_node(world, (settings.operator_image, question.image))
    if node is None:
        raise SimulationError(NO_NODE)
    return JobPlan(
        platform.target_namespace,
        node,
        settings.operator_image,
        question.image,
        question.command,
        hash_of_key(key),
        question.seconds,
        len(world.objects[NODES]),
        settings.image_pull_secrets,
        serves_address=True,
    )
