"""Checks a newer version of Kubernetes beside the reconciles, in a Pod with both kube-schedulers.

The report is that of `kubectl scheduler check --upgrade`, from the same functions. Where no
kube-scheduler can be run, it has what the rules show, and why the rest is not known.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

import aiohttp

from ...base.limits import OPERATORS_WORLD
from ...base.platform import Platform
from ...base.settings import Settings
from ...config.effective.upgrades import RecordedUpgrade, recorded
from ...kube.client import ApiClient
from ...kube.errors import KubeError
from ...simulate.job import TWO, JobPlan, choose_node, no_node
from ...simulate.kinds import NODES
from ...simulate.process import SimulationError
from ...simulate.questions import NO_BINARY, read_answer, request
from ...simulate.read_cluster import read_cluster
from ...simulate.run_options import RunOptions
from ...simulate.upgrade_check import NextProgram, check_upgrade
from ...simulate.upgrade_report import CHANGES, NOTHING, UpgradeReport
from ...simulate.upgrade_steps import NoTrials, upgrade_report
from ...simulate.world import World
from ..controlplane import upgrade_check as results
from ..model.plan import UpgradeQuestion
from ..model.snapshot import UpgradeAnswer
from .simulation_pod import ask_pod, hash_of_key
from .simulation_runner import SimulationRunner

_RESULTS: Final = {NOTHING: results.NOTHING_FOUND, CHANGES: results.CHANGES}


class UpgradeRunner(SimulationRunner[UpgradeQuestion, UpgradeAnswer]):
    SUBJECT = "an upgrade"
    LIMIT = ""

    def _failed(self, question: UpgradeQuestion, error: str) -> UpgradeAnswer:
        return UpgradeAnswer(question.identity, results.NOT_KNOWN, error, tried=False)

    def _values(self, answer: UpgradeAnswer) -> Mapping[str, Any]:
        return {"result": answer.result, "tried": answer.tried}


def upgrades_in_cluster(
    api: ApiClient, platform: Platform, settings: Settings, reading: asyncio.Lock
) -> Callable[[UpgradeQuestion], Awaitable[UpgradeAnswer]]:
    """Check in a Job of the cluster; `reading` is held while the cluster is read."""

    async def run(question: UpgradeQuestion, upgrades: Sequence[RecordedUpgrade]) -> UpgradeReport:
        if question.problem:
            raise SimulationError(question.problem)
        key = secrets.token_urlsafe(32)
        async with reading:
            with_agents = bool(question.extenders)
            world = await read_cluster(api, annotations=with_agents, most=OPERATORS_WORLD)
            world.version = str((await api.get_path("/version")).get("gitVersion") or "")
            plan = await asyncio.to_thread(_plan, question, world, key, platform, settings)
            body = await asyncio.to_thread(_request, question, world, upgrades)
        return await asyncio.to_thread(
            read_answer, check_upgrade, await ask_pod(api, plan, key, body)
        )

    async def answer(question: UpgradeQuestion) -> UpgradeAnswer:
        upgrades = [recorded(upgrade, question.target) for upgrade in question.upgrades()]
        try:
            async with asyncio.timeout(_SHARE * question.seconds):
                return _answer(question, await run(question, upgrades), tried=True)
        except TimeoutError:
            why = f"they did not answer within {_SHARE * question.seconds:.0f} s"
        except (SimulationError, KubeError, OSError, aiohttp.ClientError) as reason:
            why = " ".join(str(reason).split()) or type(reason).__name__
        report = await upgrade_report(upgrades, NoTrials(why), question.target)
        return _answer(question, report, tried=False)

    return answer


_SHARE: Final = 0.95
"""Of the time limit; the rules are reported in the rest of it."""


def _answer(question: UpgradeQuestion, report: UpgradeReport, *, tried: bool) -> UpgradeAnswer:
    result = _RESULTS.get(report.code, results.NOT_KNOWN)
    return UpgradeAnswer(question.identity, result, report.described(), tried)


def _request(question: UpgradeQuestion, world: World, upgrades: Sequence[RecordedUpgrade]) -> bytes:
    options = RunOptions(NO_BINARY, {}, seconds=float(question.seconds))
    arguments = {
        "upgrades": list(upgrades),
        "target": question.target,
        "next_program": NextProgram(question.next_image, question.named),
        "extenders": _objects(question.extenders),
        "load_policies": _objects(question.load_policies),
    }
    return request(check_upgrade, world, options, arguments)


def _objects(specs: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"metadata": {"name": name}, "spec": spec} for name, spec in specs.items()]


def _plan(
    question: UpgradeQuestion, world: World, key: str, platform: Platform, settings: Settings
) -> JobPlan:
    """Plan the Job.

    Raises:
        SimulationError: no node has room for it.
    """
    images = (settings.operator_image, question.image, question.next_image)
    node = choose_node(world, images, TWO)
    if node is None:
        raise SimulationError(no_node(TWO))
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
        next_image=question.next_image,
    )
