"""Runs simulations in the cluster, in a Job (`simulate/job.py`) that is deleted at the end.

The world is sent and the answer is read through port-forwarding with the user's own rights, so
the Pod needs none. If this command is killed, the Pod ends as soon as the connection is gone, and
the cluster deletes the Job a minute later.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ...base.platform import Platform
from ...base.settings import Settings
from ...kube.api import Object
from ...kube.errors import KubeError, NotFound
from ...kube.resource import DEPLOYMENTS, EVENTS, JOBS, NETWORK_POLICIES, PODS, ObjectRef
from ...model.pod_status import containers, init_containers
from ...schedulerconfig.versions import Version
from ...simulate.job import (
    OPERAND,
    PATH,
    PORT,
    SIMULATION,
    START_SECONDS,
    JobPlan,
    choose_node,
    job_of,
    missing_isolation,
)
from ...simulate.kinds import NODES
from ...simulate.process import SimulationError
from ...simulate.questions import Question, read_answer, request
from .errors import CommandError, error_message
from .port_forward import Tunnel, load_client

if TYPE_CHECKING:
    from ...kube.client import ApiClient
    from ...simulate.run import RunOptions
    from ...simulate.world import World

T = TypeVar("T")

_POLL: Final = 0.15
_SILENCE: Final = 60.0
"""Seconds without a byte after which the Pod is lost; it sends one every five seconds."""
_NO_POD: Final = 20.0
_CONNECTING: Final = 10.0
_HOPELESS: Final = frozenset(
    {"ErrImageNeverPull", "InvalidImageName", "CreateContainerError", "CreateContainerConfigError"}
)
_PULLING: Final = frozenset({"ErrImagePull", "ImagePullBackOff"})


@dataclass(frozen=True, slots=True)
class Operand:
    """The kube-scheduler to run.

    Attributes:
        image: its image.
        command: the command that runs it.
    """

    image: str
    command: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class JobChoice:
    """What the user chose about the Job; None: a default.

    Attributes:
        namespace: its namespace.
        node: the node of its Pod.
    """

    namespace: str | None = None
    node: str | None = None


class JobSimulator:
    """Asks a Pod in the cluster, which starts with the first question. Close it at the end."""

    def __init__(
        self, api: ApiClient, platform: Platform, operand: Operand | None, choice: JobChoice
    ) -> None:
        self._api = api
        self._platform = platform
        self._operand = operand
        self._choice = choice
        self._namespace = choice.namespace or platform.operator_namespace
        self._key = secrets.token_urlsafe(32)
        self._job: ObjectRef | None = None
        self._tunnel: Tunnel | None = None
        self._plan: JobPlan | None = None
        self._pod_name = ""

    async def prepare(self, world: World) -> None:
        """Check that the Job can be made, before anything is created.

        Raises:
            CommandError, KubeError: it cannot; the message has the fix.
        """
        deployment = await self._deployment()
        spec = deployment["spec"]["template"]["spec"]
        image = _variable(spec, "OPERATOR_IMAGE") or str(spec["containers"][0]["image"])
        operand = self._operand or _operand_of_version(spec, self._platform, world.version)
        policies = await self._api.list(NETWORK_POLICIES, self._namespace)
        if problem := missing_isolation(policies.items):
            raise CommandError(
                f"the simulation would not be isolated in namespace {self._namespace}: {problem}; "
                "apply the NetworkPolicy default-deny-all of deploy/, or simulate on this machine "
                "with --kube-scheduler PATH"
            )
        node = self._choice.node or choose_node(world, (image, operand.image))
        if node is None:
            raise CommandError(
                "no node is Ready and has 110m of CPU and 96Mi of memory for the simulation; "
                "choose one with --job-node"
            )
        self._plan = JobPlan(
            self._namespace,
            node,
            image,
            operand.image,
            operand.command,
            hashlib.sha256(self._key.encode()).hexdigest(),
            0,
            len(world.objects[NODES]),
            [str(each["name"]) for each in spec.get("imagePullSecrets") or ()],
        )

    async def ask(
        self, question: Question[T], world: World, options: RunOptions, **arguments: Any
    ) -> T:
        """The answer to a question about a world.

        Raises:
            SimulationError: kube-scheduler could not be run.
            CommandError, KubeError: the Job could not be run; the message has the fix.
        """
        body = await asyncio.to_thread(request, question, world, options, arguments)
        if self._job is None:
            await self._start(options.seconds)
        status, content = await self._post(body)
        if status != 200:
            raise SimulationError(f"the Pod of the simulation responded with status {status}")
        return read_answer(question, content)

    async def close(self) -> None:
        """Disconnect and delete the Job; the cluster would do so a minute later."""
        if self._tunnel is not None:
            self._tunnel.close()
        if self._job is None:
            return
        job, self._job = self._job, None
        try:
            await self._api.delete(job)
        except NotFound:
            pass
        except KubeError as error:
            sys.stderr.write(f"note: {job} is deleted by the cluster: {error_message(error)}\n")

    # --- the Job ----------------------------------------------------------------------------------

    async def _deployment(self) -> Object:
        platform = self._platform
        ref = ObjectRef(DEPLOYMENTS, platform.operator_namespace, platform.operator.deployment)
        try:
            return await self._api.get(ref)
        except NotFound:
            raise CommandError(
                f"{ref} does not exist, so there is no image for the simulation: is the operator "
                "installed in this cluster? Without it, use --kube-scheduler PATH"
            ) from None

    async def _start(self, seconds: float) -> None:
        if self._plan is None:
            raise RuntimeError("prepare first")
        job = job_of(replace(self._plan, seconds=seconds))
        self._job = JOBS.ref(job)  # deleted even if the response is lost
        await self._api.create(JOBS, job)
        sys.stderr.write(
            f"simulating in the cluster: {self._job} on node {self._plan.node}, "
            f"{self._plan.operand_image}\n"
        )
        self._pod_name, _ = await asyncio.gather(self._running(), asyncio.to_thread(load_client))

    async def _post(self, body: bytes) -> tuple[int, bytes]:
        clock = asyncio.get_running_loop().time
        end = clock() + _CONNECTING
        while True:
            if self._tunnel is None:
                access = await self._api.credentials.access()
                self._tunnel = Tunnel(access, self._namespace, self._pod_name, PORT, tls=False)
            try:
                return await asyncio.to_thread(self._tunnel.post, PATH, self._key, body, _SILENCE)
            except CommandError as error:
                self._tunnel.close()
                self._tunnel = None
                # The container runs, but does not listen yet.
                if "refused" not in str(error) or clock() > end:
                    raise CommandError(f"{error}{await self._end_of_pod()}") from None
            await asyncio.sleep(_POLL)

    async def _running(self) -> str:
        """The name of the Pod, once its containers run.

        Raises:
            CommandError: it does not start.
        """
        clock = asyncio.get_running_loop().time
        begun = clock()
        problem = "the Job has no Pod"
        while clock() - begun < START_SECONDS:
            pod = await self._pod()
            if pod is None:
                if clock() - begun > _NO_POD:
                    raise CommandError(f"no Pod was created for {self._job}{await self._events()}")
            else:
                if (pod.get("status") or {}).get("phase") in ("Failed", "Succeeded"):
                    raise CommandError(self._not_started(_ended(pod)))
                states = _states(pod)
                if "running" in states.get(SIMULATION, {}):
                    return str(pod["metadata"]["name"])
                problem, reason = _waiting(states)
                if reason in _HOPELESS or (reason in _PULLING and "image" in problem):
                    raise CommandError(self._not_started(problem))
            await asyncio.sleep(_POLL)
        raise CommandError(self._not_started(f"{problem} for {START_SECONDS} s"))

    def _not_started(self, problem: str) -> str:
        node = self._plan.node if self._plan else ""
        return (
            f"the Pod of the simulation does not run on node {node}: {problem}; choose another "
            "node with --job-node, or use --kube-scheduler PATH"
        )

    async def _pod(self) -> Object | None:
        if self._job is None:
            return None
        selector = f"batch.kubernetes.io/job-name={self._job.name}"
        pods = await self._api.list(PODS, self._namespace, label_selector=selector)
        return pods.items[0] if pods.items else None

    async def _events(self) -> str:
        """What the Job's events report, for an error message."""
        if self._job is None:
            return ""
        with suppress(KubeError):
            selector = f"involvedObject.kind=Job,involvedObject.name={self._job.name}"
            events = await self._api.list(EVENTS, self._namespace, field_selector=selector)
            messages = [str(each.get("message")) for each in events.items]
            if messages:
                return f": {messages[-1]}"
        return f": see kubectl -n {self._namespace} get events"

    async def _end_of_pod(self) -> str:
        """Why the Pod ended, for an error message."""
        await asyncio.sleep(2 * _POLL)
        with suppress(KubeError):
            pod = await self._pod()
            if pod is None:
                return "; its Pod was deleted"
            if ended := _ended(pod):
                return f"; its Pod ended: {ended}"
        return ""


def _variable(spec: Mapping[str, Any], name: str) -> str:
    """The value of a variable of the operator."""
    variables = spec["containers"][0].get("env") or ()
    return next((str(each.get("value") or "") for each in variables if each["name"] == name), "")


def _operand_of_version(spec: Mapping[str, Any], platform: Platform, version: str) -> Operand:
    """The image that the operator would use for a version of Kubernetes."""
    image = _variable(spec, "OPERAND_IMAGE")
    if not image:
        repository = _variable(spec, "OPERAND_REPOSITORY") or Settings().operand_repository
        try:
            image = f"{repository}:{Version.parse(version)}"
        except ValueError as error:
            raise CommandError(f"the version of the cluster: {error}") from None
    return Operand(image, platform.operand_command)


def _states(pod: Object) -> dict[str, Mapping[str, Any]]:
    found = (*init_containers(pod), *containers(pod))
    return {str(each["name"]): each.get("state") or {} for each in found}


def _waiting(states: Mapping[str, Mapping[str, Any]]) -> tuple[str, str]:
    """(problem, reason) of the first container that does not run."""
    for name in (OPERAND, SIMULATION):
        state = states.get(name, {})
        waiting = state.get("waiting") or state.get("terminated") or {}
        if reason := str(waiting.get("reason") or ""):
            message = " ".join(str(waiting.get("message") or "").split())
            return f"container {name}: {reason} {message}".rstrip(), reason
    return "the kubelet has not started it", ""


def _ended(pod: Object) -> str:
    """Why a Pod ended; empty if it runs."""
    for name, state in _states(pod).items():
        terminated = state.get("terminated") or {}
        if name == SIMULATION and terminated:
            reason, message = terminated.get("reason"), str(terminated.get("message") or "")
            last = message.strip().splitlines()[-1:] or [f"exit code {terminated.get('exitCode')}"]
            return f"{reason}: {last[0]}"
    status = pod.get("status") or {}
    return " ".join(filter(None, (status.get("reason"), status.get("message"))))
