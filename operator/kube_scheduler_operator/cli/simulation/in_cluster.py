"""Runs simulations in the cluster, in a Job (`simulate/job.py`) that is deleted at the end.

The world is sent and the answer is read through port-forwarding with the user's own rights, so
the Pod needs none. If this command is killed, the Pod ends as soon as the connection is gone, and
the cluster deletes the Job a minute later.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, TypeVar

from ...base.platform import Platform
from ...base.progress import step
from ...base.settings import Settings
from ...config.language.versions import Version
from ...kube.api import Object
from ...kube.client import ApiClient
from ...kube.errors import KubeError, NotFound
from ...kube.resource import DEPLOYMENTS, NETWORK_POLICIES
from ...operator.engine.own_deployment import operator_image
from ...simulate.job import NO_NODE, PATH, PORT, JobPlan, choose_node, missing_isolation
from ...simulate.job_run import POLL, PodNotRunningError, SimulationJob
from ...simulate.kinds import NODES
from ...simulate.process import SimulationError
from ...simulate.questions import Question, read_answer, request
from ...simulate.run_options import RunOptions
from ...simulate.world import World
from ..cluster.port_forward import Tunnel, load_client
from ..console.errors import CommandError, error_message
from ..console.output import print_remark
from .running_scheduler import Operand

T = TypeVar("T")

_SILENCE: Final = 60.0
"""Seconds without a byte after which the Pod is lost; it sends one every five seconds."""
_CONNECTING: Final = 10.0


class JobSimulator:
    """Asks a Pod in the cluster, which starts with the first question. Close it at the end.

    `namespace` and `node` are the user's choice for the Job and its Pod; None: a default.
    """

    def __init__(
        self,
        api: ApiClient,
        platform: Platform,
        operand: Operand | None,
        namespace: str | None = None,
        node: str | None = None,
    ) -> None:
        self._api = api
        self._platform = platform
        self._operand = operand
        self._node = node
        self._namespace = namespace or platform.operator_namespace
        self._key = secrets.token_urlsafe(32)
        self._job: SimulationJob | None = None
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
        image = _variable(spec, "OPERATOR_IMAGE") or operator_image(deployment)
        operand = self._operand or _operand_of_version(spec, self._platform, world.version)
        policies = await self._api.list(NETWORK_POLICIES, self._namespace)
        if problem := missing_isolation(policies.items):
            raise CommandError(
                f"the simulation would not be isolated in namespace {self._namespace}: {problem}; "
                "apply the NetworkPolicy default-deny-all of deploy/, or simulate on this machine "
                "with --kube-scheduler PATH"
            )
        node = self._node or choose_node(world, (image, operand.image))
        if node is None:
            raise CommandError(f"{NO_NODE}; choose one with --job-node")
        self._plan = JobPlan(
            self._namespace,
            node,
            image,
            operand.image,
            operand.command,
            hashlib.sha256(self._key.encode()).hexdigest(),
            0,
            len(world.objects[NODES]),
            [str(secret["name"]) for secret in spec.get("imagePullSecrets") or ()],
        )

    async def ask(
        self, question: Question[T], world: World, options: RunOptions, **arguments: Any
    ) -> T:
        """Answer a question about a world.

        Raises:
            SimulationError: kube-scheduler could not be run.
            CommandError, KubeError: the Job could not be run; the message has the fix.
        """
        body = await asyncio.to_thread(request, question, world, options, arguments)
        if self._job is None:
            await self._start(options.seconds)
        with step(f"waiting for the answer of {self._job.ref}" if self._job else ""):
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
            await job.delete()
        except KubeError as error:
            print_remark(f"note: {job.ref} is deleted by the cluster: {error_message(error)}")

    # --- the Job ----------------------------------------------------------------------------------

    async def _deployment(self) -> Object:
        platform = self._platform
        ref = DEPLOYMENTS.named(platform.operator.deployment, platform.operator_namespace)
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
        job = self._job = SimulationJob(self._api, replace(self._plan, seconds=seconds))
        await job.create()
        print_remark(
            f"simulating in the cluster: {job.ref} on node {job.plan.node}, "
            f"{job.plan.operand_image}"
        )
        try:
            with step(f"waiting for the Pod of {job.ref}"):
                pod, _ = await asyncio.gather(job.running(), asyncio.to_thread(load_client))
        except PodNotRunningError as error:
            raise CommandError(
                f"{error}; choose another node with --job-node, or use --kube-scheduler PATH"
            ) from None
        self._pod_name = str(pod["metadata"]["name"])

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
                    end_of_pod = await self._job.end_of_pod() if self._job is not None else ""
                    raise CommandError(f"{error}{end_of_pod}") from None
            await asyncio.sleep(POLL)


def _variable(spec: Mapping[str, Any], name: str) -> str:
    variables = spec["containers"][0].get("env") or ()
    values = (str(entry.get("value") or "") for entry in variables if entry["name"] == name)
    return next(values, "")


def _operand_of_version(spec: Mapping[str, Any], platform: Platform, version: str) -> Operand:
    """Return the image that the operator would use for a version of Kubernetes."""
    image = _variable(spec, "OPERAND_IMAGE")
    if not image:
        repository = _variable(spec, "OPERAND_REPOSITORY") or Settings().operand_repository
        try:
            image = f"{repository}:{Version.parse(version)}"
        except ValueError as error:
            raise CommandError(f"the version of the cluster: {error}") from None
    return Operand(image, platform.operand_command)
