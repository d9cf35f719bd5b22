"""Asks the Pod of a simulation.

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
from typing import Final

import aiohttp

from ...base.hosts import url_host
from ...base.json_text import TooLargeError
from ...base.limits import ANSWER
from ...kube.client import ApiClient
from ...kube.errors import KubeError
from ...kube.reading import read_body
from ...simulate.job import PATH, PORT, JobPlan, certificate_hash
from ...simulate.job_run import SimulationJob
from ...simulate.kinds import Object
from ...simulate.process import SimulationError

_POLL: Final = 0.5
_CONNECTING: Final = 10.0
_SILENCE: Final = 60.0
"""Seconds without a byte after which the Pod is lost; it sends one every five seconds."""


def hash_of_key(key: str) -> str:
    """Return what a JobPlan has of a key."""
    return hashlib.sha256(key.encode()).hexdigest()


async def ask_pod(api: ApiClient, plan: JobPlan, key: str, body: bytes) -> bytes:
    """Send a request to the Pod of a Job, which exists for this alone; return its answer.

    Raises:
        SimulationError: the Pod does not start, or does not answer.
        KubeError: the API server refuses the Job, or does not respond.
    """
    job = SimulationJob(api, plan, poll=_POLL)
    try:
        await job.create()
        return await _ask(job, await job.running(), key, body)
    finally:
        with contextlib.suppress(KubeError):
            await job.delete()


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
