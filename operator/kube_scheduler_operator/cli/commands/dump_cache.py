"""`kubectl scheduler dump-cache`: a scheduler's cache and queue, compared with the API.

kube-scheduler writes both to its log on SIGUSR2. A signal must be sent from the same node, so a
short-lived pod sends it: it is bound to the node, shares its process namespace, has no capability,
token or volume, and is deleted afterwards.
"""

from __future__ import annotations

import argparse
import asyncio
import secrets
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from ...base import names
from ...base.objects import uid_of
from ...base.platform import Platform
from ...base.progress import step
from ...base.templates import render_object
from ...config.language.schema import DEFAULT_SCHEDULER
from ...kube.api import Object
from ...kube.errors import NotFound
from ...kube.resource import NODES, PODS
from ...operator.model import operand_pods
from ..cluster.cache_dump import (
    CacheDump,
    compared_fields,
    differences,
    document,
    parse,
    render,
    without_pod,
)
from ..cluster.compare import parse_revision
from ..cluster.connection import connected
from ..cluster.operands import find_leader, list_operand_pods, operand_on
from ..cluster.revisions import list_revisions
from ..console.errors import CommandError
from ..console.flags import add_cluster_flags, add_output_flag
from ..console.output import print_document

if TYPE_CHECKING:
    from ...kube.client import ApiClient

INTERVAL: Final = 0.5
"""Seconds between polls."""

POD_TIMEOUT: Final = 60.0
"""Seconds; also the active deadline of the signal pod."""

LOG_TIMEOUT: Final = 15.0
"""Seconds until the dump must be in the log."""

_HASH: Final = "kubernetes.io/config.hash"  # on mirror pods: the UID of the static pod


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "dump-cache",
        description="Makes a scheduler write its cache and queue to its log (SIGUSR2, sent by a "
        "short-lived pod on its node), and prints them as tables with the differences from the "
        "API. The exit code is 0 even if they differ, because they are not read at the same time.",
    )
    parser.add_argument("--node", help="node of the scheduler (default: the leader)")
    parser.add_argument(
        "--image", help="operator image for the signal pod (default: the image of a guard pod)"
    )
    add_cluster_flags(parser)
    add_output_flag(parser)
    parser.set_defaults(run=connected(_compare))


async def _compare(api: ApiClient, platform: Platform, args: argparse.Namespace) -> int:
    if not platform.owns_static_pods:
        kubectl = f"kubectl -n {platform.target_namespace}"
        raise CommandError(
            "the provider runs the control plane's scheduler, and this namespace admits no Pod "
            "that could signal another one; signal a SecondaryScheduler from a container in its "
            "Pod (status.leaseHolder has the Pod that schedules) with the operator's image: "
            f"{kubectl} debug POD --profile=restricted --target=kube-scheduler --image=IMAGE -- "
            "python3 -c 'import os, signal; os.kill(1, signal.SIGUSR2)', and read the dump: "
            f"{kubectl} logs POD -c kube-scheduler"
        )
    pods = await list_operand_pods(api, platform)
    node = args.node or await find_leader(api, platform, pods)
    scheduler = operand_on(pods, node)
    image = args.image or await _image(api, platform, node)
    dump = await _dump(api, scheduler, signal_pod(platform, scheduler, image))
    nodes = await api.list(NODES, keep=compared_fields)
    everything = await api.list(PODS, keep=compared_fields)
    node_names = [obj["metadata"]["name"] for obj in nodes.items]
    profiles = await _profiles(api, platform, scheduler)
    different = differences(dump, node_names, everything.items, profiles)
    print_document(document(node, dump, different), args.output, render(node, dump, different))
    return 0


def signal_pod(platform: Platform, scheduler: Object, image: str) -> Object:
    """Return the pod that signals a scheduler."""
    metadata = scheduler["metadata"]
    uid = (metadata.get("annotations") or {}).get(_HASH)
    if not uid:
        raise CommandError(
            f"pod {metadata['name']} is not a static pod: annotation {_HASH} is missing"
        )
    return render_object(
        "signal-pod.yaml.j2",
        platform=platform,
        names=names,
        node=scheduler["spec"]["nodeName"],
        pod_name=f"kube-scheduler-signal-{secrets.token_hex(4)}",
        pod_uid=uid,
        image=image,
        deadline=int(POD_TIMEOUT),
    )


async def _image(api: ApiClient, platform: Platform, node: str) -> str:
    """Return the operator's image, preferably one that the node already has."""
    guards = await api.list(PODS, platform.target_namespace, label_selector=f"app={names.GUARD}")
    images = {
        pod["spec"].get("nodeName", ""): str(pod["spec"]["containers"][0]["image"])
        for pod in guards.items
    }
    if not images:
        raise CommandError(
            "no guard pod exists from which to take the operator's image; set it with --image"
        )
    return images.get(node) or next(iter(images.values()))


async def _dump(api: ApiClient, scheduler: Object, pod: Object) -> CacheDump:
    """Return the dump that a pod makes the scheduler write, without this pod."""
    ref = PODS.ref(pod)
    uid = uid_of(await api.create(PODS, pod))
    try:
        with step(f"waiting for {ref}, which signals the scheduler"):
            since = await _signalled(api, pod)
    finally:
        with suppress(NotFound):
            await api.delete(ref, grace_period_seconds=0)
    end = asyncio.get_running_loop().time() + LOG_TIMEOUT
    container = {"container": "kube-scheduler", "sinceTime": since}
    while True:
        log = await api.get_text(PODS.ref(scheduler), "log", **container)
        dump = parse(log)
        if dump is not None:
            return without_pod(dump, uid)
        if asyncio.get_running_loop().time() > end:
            raise CommandError(
                f"pod {scheduler['metadata']['name']} received SIGUSR2, but its log since {since} "
                "has no dump: did it restart, or is the log truncated (--v, log rotation)?"
            )
        await asyncio.sleep(INTERVAL)


async def _signalled(api: ApiClient, pod: Object) -> str:
    """Wait for the signal pod; return the time of its start, by the clock of its node."""
    end = asyncio.get_running_loop().time() + POD_TIMEOUT
    while True:
        status: dict[str, Any] = (await api.get(PODS.ref(pod))).get("status") or {}
        statuses = status.get("containerStatuses") or [{}]
        state = statuses[0].get("state") or {}
        ended = state.get("terminated")
        if ended and ended.get("exitCode") == 0:
            return str(ended["startedAt"])
        node = pod["spec"]["nodeName"]
        if ended or status.get("phase") == "Failed":
            why = (ended or {}).get("message") or status.get("message") or "no reason reported"
            raise CommandError(f"cannot signal the scheduler on {node}: {why}")
        if asyncio.get_running_loop().time() > end:
            waiting = state.get("waiting") or {}
            reason = waiting.get("reason", "the kubelet has not started it")
            why = f"{reason} {waiting.get('message', '')}"
            raise CommandError(
                f"the signal pod does not start on {node}: {why.strip()}; set another operator "
                "image with --image"
            )
        await asyncio.sleep(INTERVAL)


async def _profiles(api: ApiClient, platform: Platform, scheduler: Object) -> list[str]:
    """Return the schedulerNames that this scheduler serves."""
    number = operand_pods.read(scheduler).revision
    for revision in await list_revisions(api, platform):
        if revision.number == number:
            profiles = parse_revision(revision.content).config.get("profiles") or [{}]
            return [profile.get("schedulerName") or DEFAULT_SCHEDULER for profile in profiles]
    return [DEFAULT_SCHEDULER]
