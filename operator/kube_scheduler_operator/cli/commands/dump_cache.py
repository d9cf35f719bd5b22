"""`kubectl scheduler dump-cache`: what a scheduler believes about nodes, pods and its queue.

kube-scheduler writes that into its log when it gets SIGUSR2. Only somebody on its node can send a
signal, so a pod that lives for seconds does: it names its node, sees its processes, has no
capability, no token and no volume, and is removed afterwards.
"""

from __future__ import annotations

import argparse
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from ..lib import common

if TYPE_CHECKING:
    from ...base.platform import Platform
    from ...kube.api import Object
    from ...kube.client import ApiClient
    from ..lib.cache_dump import Dump

INTERVAL: Final = 0.5
"""Seconds between looks."""

POD_PATIENCE: Final = 60.0
"""Seconds for the pod that signals; it ends itself after that, too."""

LOG_PATIENCE: Final = 15.0
"""Seconds for the dump to be in the log."""

_HASH: Final = "kubernetes.io/config.hash"  # on mirror pods: the kubelet's UID of the static pod


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = subparsers.add_parser(
        "dump-cache",
        help="what a scheduler believes, compared with what the API says",
        description="Has a scheduler write its cache and queue into its log (SIGUSR2, through a "
        "pod on its node that lives for seconds), and shows them as tables with what differs from "
        "the API. Exit code 0 also if something differs: a moment lies between the two views.",
    )
    parser.add_argument("--node", help="whose scheduler (default: the one that leads)")
    parser.add_argument(
        "--image", help="of the pod that signals (default: the operator's, as its guard pod has it)"
    )
    common.add_cluster_flags(parser)
    common.add_output_flag(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Dump, compare, print."""

    async def work(api: ApiClient, platform: Platform) -> int:
        from ...kube.resource import NODES, PODS
        from ..lib.cache_dump import differences, document, render

        pods = await common.operand_pods(api, platform)
        node = args.node or await common.leader(api, platform, pods)
        scheduler = common.on_node(pods, node)
        image = args.image or await _image(api, platform, node)
        dump = await _dump(api, scheduler, signal_pod(platform, scheduler, image))
        nodes = await api.list(NODES)
        everything = await api.list(PODS)
        names = [each["metadata"]["name"] for each in nodes.items]
        told = differences(dump, names, everything.items, await _profiles(api, platform, scheduler))
        if args.output == "text":
            print(render(node, dump, told))
        else:
            common.print_document(document(node, dump, told), args.output)
        return 0

    return common.run(args, work)


def signal_pod(platform: Platform, scheduler: Object, image: str) -> Object:
    """The pod that signals a scheduler, with no more than that takes.

    Raises:
        CommandError: the kubelet's UID of the static pod is not known.
    """
    import secrets

    from ...base import names

    metadata = scheduler["metadata"]
    uid = (metadata.get("annotations") or {}).get(_HASH)
    if not uid:
        raise common.CommandError(
            f"pod {metadata['name']} has no annotation {_HASH}: it is no static pod"
        )
    node = scheduler["spec"]["nodeName"]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            # Not the label of the operator's own pods: it would take it for one of them.
            "name": f"kube-scheduler-signal-{secrets.token_hex(4)}",
            "namespace": platform.target_namespace,
            "labels": {"app": "kube-scheduler-signal", "app.kubernetes.io/part-of": names.PROGRAM},
        },
        "spec": {
            # It runs while no scheduler does, and on nodes that take no other pods.
            "nodeName": node,
            "tolerations": [{"operator": "Exists"}],
            "restartPolicy": "Never",
            "activeDeadlineSeconds": int(POD_PATIENCE),
            "hostPID": True,
            "serviceAccountName": names.INSTALLER_SERVICE_ACCOUNT,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": 0,
            # The scheduler's user: a process may signal others of its own user without any
            # capability (kill(2)).
            "securityContext": {
                "runAsUser": 0,
                "runAsGroup": 0,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [
                {
                    "name": "signal",
                    "image": image,
                    "imagePullPolicy": "IfNotPresent",
                    "command": [names.PROGRAM, "signal"],
                    "args": [f"--pod-uid={uid}"],
                    "terminationMessagePolicy": "FallbackToLogsOnError",
                    "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
                    "securityContext": {
                        "allowPrivilegeEscalation": False,
                        "readOnlyRootFilesystem": True,
                        "capabilities": {"drop": ["ALL"]},
                        # Where SELinux confines containers, /proc of others takes this type.
                        "seLinuxOptions": {"type": "spc_t"},
                    },
                }
            ],
        },
    }


async def _image(api: ApiClient, platform: Platform, node: str) -> str:
    """The operator's image, as it is on that node already."""
    from ...base import names
    from ...kube.resource import PODS

    guards = await api.list(PODS, platform.target_namespace, label_selector=f"app={names.GUARD}")
    images = {
        pod["spec"].get("nodeName", ""): str(pod["spec"]["containers"][0]["image"])
        for pod in guards.items
    }
    if not images:
        raise common.CommandError(
            "there is no guard pod to take the operator's image from; name it with --image"
        )
    return images.get(node) or next(iter(images.values()))


async def _dump(api: ApiClient, scheduler: Object, pod: Object) -> Dump:
    """Signal, and read the dump out of the scheduler's log."""
    import asyncio

    from ...kube.errors import NotFound
    from ...kube.resource import PODS
    from ..lib.cache_dump import parse

    ref = PODS.ref(pod)
    await api.create(PODS, pod)
    try:
        since = await _signalled(api, pod)
    finally:
        with suppress(NotFound):
            await api.delete(ref, grace_period_seconds=0)
    end = asyncio.get_running_loop().time() + LOG_PATIENCE
    container = {"container": "kube-scheduler", "sinceTime": since}
    while True:
        log = await api.get_text(PODS.ref(scheduler), "log", **container)
        dump = parse(log)
        if dump is not None:
            return dump
        if asyncio.get_running_loop().time() > end:
            raise common.CommandError(
                f"pod {scheduler['metadata']['name']} had SIGUSR2 but no dump is in its log since "
                f"{since}: did it start again, or is its log cut off (--v, log rotation)?"
            )
        await asyncio.sleep(INTERVAL)


async def _signalled(api: ApiClient, pod: Object) -> str:
    """Wait for the pod that signals; when it started, by the clock of its node."""
    import asyncio

    from ...kube.resource import PODS

    end = asyncio.get_running_loop().time() + POD_PATIENCE
    while True:
        found = await api.get(PODS.ref(pod))
        status: dict[str, Any] = found.get("status") or {}
        statuses = status.get("containerStatuses") or [{}]
        state = statuses[0].get("state") or {}
        ended = state.get("terminated")
        if ended and ended.get("exitCode") == 0:
            return str(ended["startedAt"])
        node = pod["spec"]["nodeName"]
        if ended or status.get("phase") == "Failed":
            why = (ended or {}).get("message") or status.get("message") or "it did not say why"
            raise common.CommandError(f"the scheduler on {node} was not signalled: {why}")
        if asyncio.get_running_loop().time() > end:
            waiting = state.get("waiting") or {}
            why = f"{waiting.get('reason', 'no kubelet has taken it')} {waiting.get('message', '')}"
            raise common.CommandError(
                f"the pod that signals does not start on {node}: {why.strip()}; --image takes "
                "another image of the operator"
            )
        await asyncio.sleep(INTERVAL)


async def _profiles(api: ApiClient, platform: Platform, scheduler: Object) -> list[str]:
    """The names under which pods ask for this scheduler."""
    from ...model import operand_pods
    from ...schedulerconfig.merge import DEFAULT_SCHEDULER
    from ..lib.compare import take_apart

    number = operand_pods.read(scheduler).revision
    for revision in await common.revisions(api, platform):
        if revision.number == number:
            profiles = take_apart(revision.content).config.get("profiles") or ()
            return [p.get("schedulerName") or DEFAULT_SCHEDULER for p in profiles] or [
                DEFAULT_SCHEDULER
            ]
    return [DEFAULT_SCHEDULER]
