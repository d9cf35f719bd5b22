"""Creates the Job of a simulation, waits for its Pod, explains failures and deletes it.

What is sent to the Pod, and how, is up to its client: a command (`cli/simulation/in_cluster.py`) or
the operator (`operator/engine/placement_run.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from ..base.foreign_text import foreign
from ..base.limits import EVENT_NOTE
from ..base.objects import is_controlled_by
from ..kube.client import ApiClient
from ..kube.errors import KubeError, NotFound
from ..kube.resource import EVENTS, JOBS, PODS, ObjectRef
from .job import NEXT_OPERAND, OPERAND, PREPARING, SIMULATION, START_SECONDS, JobPlan, job_of
from .kinds import Object
from .process import SimulationError

POLL: Final = 0.15
_NO_POD: Final = 20.0
_HOPELESS: Final = frozenset(
    {"ErrImageNeverPull", "InvalidImageName", "CreateContainerError", "CreateContainerConfigError"}
)
_PULLING: Final = frozenset({"ErrImagePull", "ImagePullBackOff"})


class PodNotRunningError(SimulationError):
    """The Pod of the simulation does not run; the message has the node and the cause."""


class SimulationJob:
    def __init__(self, api: ApiClient, plan: JobPlan, *, poll: float = POLL) -> None:
        self.plan = plan
        self._job = job_of(plan)
        self._api = api
        self._poll = poll
        self._uid = ""
        self.ref: ObjectRef = JOBS.ref(self._job)

    async def create(self) -> None:
        """Create it; delete it in any case, because the response may be lost.

        Raises:
            KubeError: the API server refuses it.
        """
        created = await self._api.create(JOBS, self._job)
        self._uid = str(created["metadata"]["uid"])

    async def delete(self) -> None:
        """Delete it with its Pod; the cluster would do so a minute after its end.

        Raises:
            KubeError: it cannot be deleted.
        """
        with suppress(NotFound):
            await self._api.delete(self.ref)

    async def running(self) -> Object:
        """Return the Pod, once its containers run.

        Raises:
            PodNotRunningError: it does not start.
            KubeError: the API server does not respond.
        """
        clock = asyncio.get_running_loop().time
        begun = clock()
        problem = "the Job has no Pod"
        while clock() - begun < START_SECONDS:
            pod = await self.pod()
            if pod is None:
                if clock() - begun > _NO_POD:
                    raise PodNotRunningError(
                        f"no Pod was created for {self.ref}{await self._events()}"
                    )
            else:
                if (pod.get("status") or {}).get("phase") in ("Failed", "Succeeded"):
                    raise self._not_started(_ended(pod))
                states = _states(pod)
                if "running" in states.get(SIMULATION, {}):
                    return pod
                problem, reason = _waiting(states)
                if reason in _HOPELESS or (reason in _PULLING and "image" in problem):
                    raise self._not_started(problem)
            await asyncio.sleep(self._poll)
        raise self._not_started(f"{problem} for {START_SECONDS} s")

    async def pod(self) -> Object | None:
        """Return the Job's Pod; None before it exists and after it is gone.

        Pods of other Jobs may have its label, and would receive the copy of the cluster.

        Raises:
            KubeError: the API server does not respond.
        """
        selector = f"batch.kubernetes.io/job-name={self.ref.name}"
        pods = await self._api.list(PODS, self.ref.namespace, label_selector=selector)
        own = (pod for pod in pods.items if is_controlled_by(pod, self._uid))
        return next(map(dict, own), None)

    async def end_of_pod(self) -> str:
        """Return why the Pod ended, for an error message; empty: it runs."""
        await asyncio.sleep(2 * self._poll)
        with suppress(KubeError):
            pod = await self.pod()
            if pod is None:
                return "; its Pod was deleted"
            if ended := _ended(pod):
                return f"; its Pod ended: {ended}"
        return ""

    def _not_started(self, problem: str) -> PodNotRunningError:
        return PodNotRunningError(
            f"the Pod of the simulation does not run on node {self.plan.node}: {problem}"
        )

    async def _events(self) -> str:
        """Return what the Job's events report, for an error message."""
        with suppress(KubeError):
            selector = f"involvedObject.kind=Job,involvedObject.name={self.ref.name}"
            events = await self._api.list(
                EVENTS, self.ref.namespace, field_selector=selector, keep=_message
            )
            messages = [event["message"] for event in events.items]
            if messages:
                return f": {messages[-1]}"
        return f": see kubectl -n {self.ref.namespace} get events"


def _message(event: Object) -> Object:
    return {"message": foreign(str(event.get("message")), EVENT_NOTE)}


def _states(pod: Object) -> dict[str, Mapping[str, Any]]:
    status = pod.get("status") or {}
    statuses = (
        *(status.get("initContainerStatuses") or ()),
        *(status.get("containerStatuses") or ()),
    )
    return {str(container["name"]): container.get("state") or {} for container in statuses}


def _waiting(states: Mapping[str, Mapping[str, Any]]) -> tuple[str, str]:
    """Return (problem, reason) of the first container that does not run."""
    for name in (*PREPARING, OPERAND, NEXT_OPERAND, SIMULATION):
        state = states.get(name, {})
        ended = state.get("terminated") or {}
        if name in PREPARING and ended.get("exitCode") == 0:
            continue
        waiting = state.get("waiting") or ended
        if reason := str(waiting.get("reason") or ""):
            message = " ".join(str(waiting.get("message") or "").split())
            return f"container {name}: {reason} {message}".rstrip(), reason
    return "the kubelet has not started it", ""


def _ended(pod: Object) -> str:
    """Return why a Pod ended; empty if it runs."""
    for name, state in _states(pod).items():
        terminated = state.get("terminated") or {}
        failed = name in PREPARING and terminated.get("exitCode")
        if terminated and (name == SIMULATION or failed):
            reason, message = terminated.get("reason"), str(terminated.get("message") or "")
            last = message.strip().splitlines()[-1:] or [f"exit code {terminated.get('exitCode')}"]
            return f"{reason}: {last[0]}"
    status = pod.get("status") or {}
    return " ".join(filter(None, (status.get("reason"), status.get("message"))))
