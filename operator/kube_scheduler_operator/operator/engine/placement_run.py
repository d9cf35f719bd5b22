"""Simulates the effects of an edit on the Pods of the cluster, beside the reconciles.

A reconcile requests a simulation in its plan, and a later one finds the answer in its snapshot.
Nothing waits for it: it is a task of its own, with a time limit, and its failure is an answer. A
repetition reads the cluster, and ends there if nothing changed that affects the result.

The Job is that of the commands (`simulate/job.py`), in the target namespace, where the operator
creates Pods anyway. The operator connects to the Pod, which opens no connection itself and has no
token. The Pod identifies the operator by the key whose hash is in its arguments, and the operator
identifies the Pod by the certificate whose hash the kubelet reported (`simulate/identity.py`). A
killed operator leaves a Pod that ends without its client, and a Job that the cluster deletes.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

import aiohttp

from ...base import klog
from ...base.defects import contained
from ...base.hosts import url_host
from ...base.json_text import TooLargeError
from ...base.limits import ANSWER
from ...base.platform import Platform
from ...base.settings import Settings
from ...base.tasks import cancel
from ...kube.client import ApiClient
from ...kube.errors import KubeError
from ...kube.reading import read_body
from ...simulate.edit_effect import EditEffect, edit_effect
from ...simulate.job import NO_NODE, PATH, PORT, JobPlan, certificate_hash, choose_node
from ...simulate.job_run import SimulationJob
from ...simulate.kinds import NODES, Object
from ...simulate.process import SimulationError
from ...simulate.questions import NO_BINARY, read_answer, request
from ...simulate.read_cluster import read_cluster
from ...simulate.run import RunOptions
from ...simulate.simulated_extenders import simulated_extenders, version_of
from ...simulate.world import World, situation
from ..model.plan import PlacementQuestion, PlacementRules
from ..model.snapshot import PlacementAnswer

log = logging.getLogger(__name__)

LONGEST_EFFECT: Final = 2000
"""Characters of an effect that are kept for conditions, events and annotations."""
_POLL: Final = 0.5
_CONNECTING: Final = 10.0
_SILENCE: Final = 60.0
"""Seconds without a byte after which the Pod is lost; it sends one every five seconds."""


Simulate = Callable[[PlacementQuestion], Awaitable[PlacementAnswer]]
"""Simulates an edit.

Raises:
    SimulationError, KubeError, OSError, aiohttp.ClientError: there is no result.
"""


class PlacementRunner:
    """Runs one simulation at a time; `changed` is called when there is an answer."""

    def __init__(self, simulate: Simulate, changed: Callable[[], None]) -> None:
        self.answer: PlacementAnswer | None = None  # the last one
        self._simulate = simulate
        self._changed = changed
        self._task: asyncio.Task[None] | None = None
        self._asked: PlacementQuestion | None = None

    def follow(self, question: PlacementQuestion | None) -> None:
        """Run the simulation that a reconcile requests, and no other one."""
        identity = question.identity if question is not None else None
        if self._asked is not None and self._asked.identity == identity:
            return  # it runs, or has its answer
        if self._task is not None:
            self._task.cancel()
        self._asked, self._task = question, None
        if question is not None:
            self._task = asyncio.create_task(self._run(question), name="placements")

    async def close(self) -> None:
        task, self._task, self._asked = self._task, None, None
        await cancel(task)

    async def _run(self, question: PlacementQuestion) -> None:
        log.info(
            "Simulating an edit", extra=klog.kv(configuration=question.identity.configuration[:12])
        )
        answer = PlacementAnswer(question.identity)
        error = ""
        try:
            async with asyncio.timeout(question.seconds):
                answer = await self._simulate(question)
        except TimeoutError:
            error = (
                f"it did not end within {question.seconds} s (spec.placementCheck.timeoutSeconds)"
            )
        except (SimulationError, KubeError, OSError, aiohttp.ClientError) as reason:
            error = " ".join(str(reason).split()) or type(reason).__name__
        except Exception as defect:  # the edit must not wait for an answer that never comes
            error = contained("simulation", "placements", defect)
        self.answer = answer = replace(answer, error=error[:LONGEST_EFFECT])
        values = {"worse": answer.worse, "effect": answer.effect, "error": answer.error}
        log.info("Simulated an edit", extra=klog.kv(unchanged=answer.unchanged, **values))
        self._changed()


def answer_with(
    question: PlacementQuestion, effect: EditEffect, situation_now: str, notes: Sequence[str]
) -> PlacementAnswer:
    """Describe an effect; `notes` has a sentence for each thing that was not considered."""
    sentences = "; ".join((*effect.sentences(), *(f"note: {note}" for note in notes)))
    worse = bool(effect.lost or effect.newly_waiting)
    return PlacementAnswer(
        question.identity, worse, sentences[:LONGEST_EFFECT], situation=situation_now
    )


def in_cluster(api: ApiClient, platform: Platform, settings: Settings) -> Simulate:
    """Simulate in a Job of the cluster; `api` may write only while this process leads."""

    async def simulate(question: PlacementQuestion) -> PlacementAnswer:
        world = await read_cluster(api, annotations=bool(question.extenders))
        world.version = str((await api.get_path("/version")).get("gitVersion") or "")
        now = await asyncio.to_thread(situation, world, _others(question, world))
        if now == question.situation:
            return PlacementAnswer(question.identity, situation=now, unchanged=True)
        notes = list(world.notes)
        before, after = (
            _options(rules, question, world.version, notes)
            for rules in (question.before, question.after)
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
        del world  # tens of megabytes, not needed while the simulation runs
        job = SimulationJob(api, plan, poll=_POLL)
        try:
            await job.create()
            content = await _ask(job, await job.running(), key, body)
        finally:
            with contextlib.suppress(KubeError):
                await job.delete()
        effect = await asyncio.to_thread(read_answer, edit_effect, content)
        return answer_with(question, effect, now, notes)

    return simulate


def _others(question: PlacementQuestion, world: World) -> Mapping[str, object]:
    """Return what affects the result besides the rules and the objects of the world."""
    return {
        "version": world.version,
        "image": question.image,
        "command": question.command,
        "extenders": [obj.get("spec") for obj in question.extenders],
        "loadPolicies": [obj.get("spec") for obj in question.load_policies],
    }


def _options(
    rules: PlacementRules, question: PlacementQuestion, version: str, notes: list[str]
) -> RunOptions:
    """Choose options for these rules; notes about omitted extenders are added to `notes`."""
    config = {key: value for key, value in rules.config.items() if key != "extenders"}
    extenders = simulated_extenders(
        rules.config.get("extenders") or (),
        question.extenders,
        question.load_policies,
        version_of(version),
    )
    notes += [note for note in extenders.notes if note not in notes]
    return RunOptions(
        NO_BINARY, config, rules.flags, float(question.seconds), extenders=extenders.simulated
    )


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
        hashlib.sha256(key.encode()).hexdigest(),
        question.seconds,
        len(world.objects[NODES]),
        settings.image_pull_secrets,
        serves_address=True,
    )


async def _ask(job: SimulationJob, pod: Object, key: str, body: bytes) -> bytes:
    """Ask the Pod, and return its answer.

    Raises:
        SimulationError: it does not answer.
    """
    digest, address = certificate_hash(pod), str((pod.get("status") or {}).get("podIP") or "")
    try:
        pinned = aiohttp.Fingerprint(bytes.fromhex(digest))
    except ValueError:
        raise SimulationError("the Pod of the simulation has no certificate") from None
    host = url_host(address)
    if not host:
        raise SimulationError("the Pod of the simulation has no valid IP address")
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECTING, sock_read=_SILENCE)
    clock = asyncio.get_running_loop().time
    end = clock() + _CONNECTING
    async with aiohttp.ClientSession(timeout=timeout) as session:
        while True:
            try:
                async with session.post(
                    f"https://{host}:{PORT}{PATH}",
                    data=body,
                    headers={"Authorization": f"Bearer {key}"},
                    ssl=pinned,
                    allow_redirects=False,
                ) as response:
                    if response.status != 200:
                        raise SimulationError(
                            f"the Pod of the simulation responded with status {response.status}"
                        )
                    return await read_body(response, ANSWER)
            except aiohttp.ClientConnectorError as error:
                # The container runs, but does not listen yet.
                if not isinstance(error.os_error, ConnectionRefusedError) or clock() > end:
                    raise SimulationError(
                        f"cannot connect to the Pod of the simulation at {address}: {error}"
                        f"{await job.end_of_pod()}; a NetworkPolicy must let the operator in"
                    ) from None
            except (aiohttp.ClientError, TooLargeError) as error:
                raise SimulationError(
                    f"the Pod of the simulation does not answer: {error}{await job.end_of_pod()}"
                ) from None
            await asyncio.sleep(_POLL)
