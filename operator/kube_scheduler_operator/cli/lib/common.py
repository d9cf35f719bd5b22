"""What the commands for people share: which cluster, reading it, printing, and saying what failed.

Only argparse is loaded here; the client comes in when a command runs, so that `--help` is instant.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ...base.platform import Platform
    from ...controlplane.revision.history import Revision
    from ...kube.api import Object
    from ...kube.client import ApiClient
    from ...kube.errors import KubeError
    from ...kube.resource import ObjectRef, Resource

    Work = Callable[[ApiClient, Platform], Awaitable[int]]

DEFAULT_VERSION: Final = "1.35"
"""Of the kube-scheduler that reads a file, unless a command is told another one."""


class CommandError(Exception):
    """A command cannot do what it was asked to; the text says why and what to do instead."""


def add_cluster_flags(parser: argparse.ArgumentParser) -> None:
    """The flags that say which cluster and what kind of one."""
    parser.add_argument("--kubeconfig", help="default: $KUBECONFIG, then ~/.kube/config")
    parser.add_argument("--context", help="context of the kubeconfig")
    add_platform_flag(parser)


def add_platform_flag(parser: argparse.ArgumentParser) -> None:
    """`--platform`; the values are not listed here, because that would load them."""
    parser.add_argument(
        "--platform",
        default="auto",
        help="kind of cluster: kubeadm, openshift or rke2 (default: auto, which asks the cluster)",
    )


def add_output_flag(parser: argparse.ArgumentParser) -> None:
    """`-o`: for people, or for programs."""
    parser.add_argument(
        "-o", "--output", choices=("text", "json", "yaml"), default="text", help="default: text"
    )


def run(args: argparse.Namespace, work: Work, *, failure: int = 1) -> int:
    """Connect with the user's own identity and do `work`; `failure` if that is not possible.

    SIGTERM ends it the way Ctrl-C does: what the command has to put back is put back.
    """
    import asyncio
    import signal
    import threading

    from ...base import names
    from ...base.platform import PLATFORMS, UnsupportedCluster
    from ...engine.detect_platform import CHOICES, detect
    from ...kube.client import ApiClient
    from ...kube.credentials import find
    from ...kube.errors import KubeError

    if args.platform not in CHOICES:
        known = ", ".join(CHOICES)
        print(f"error: --platform {args.platform!r} is unknown; known: {known}", file=sys.stderr)
        return 2

    async def connected() -> int:
        task = asyncio.current_task()
        # Signals belong to the main thread.
        if task is not None and threading.current_thread() is threading.main_thread():
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        credentials = find(args.kubeconfig, args.context)
        async with ApiClient(
            credentials, field_manager="kubectl-scheduler", user_agent=f"{names.PROGRAM} kubectl"
        ) as api:
            platform = PLATFORMS.get(args.platform)
            if platform is None:
                detected = await detect(api)
                platform = detected.platform
                for why in detected.unanswered:
                    note = f"note: --platform {platform.name} is assumed: {why}"
                    print(note, file=sys.stderr)
            return await work(api, platform)

    try:
        return asyncio.run(connected())
    except asyncio.CancelledError:
        return 128 + signal.SIGTERM
    except UnsupportedCluster as error:
        print(f"error: {error}", file=sys.stderr)
        return failure
    except (KubeError, CommandError) as error:
        print(f"error: {sentence(error)}", file=sys.stderr)
        return failure


def sentence(error: KubeError | CommandError) -> str:
    """An error for the person at the terminal; for a missing right, which one, and where."""
    from ...kube.errors import Conflict, Forbidden

    if isinstance(error, Forbidden) and error.rule:
        request = error.request
        what = f"{request.resource.name}" if request.resource else request.path
        what += f"/{request.subresource}" if request.subresource else ""
        where = f" in namespace {request.namespace}" if request.namespace else ""
        return (
            f"you may not {request.verb} {what}{where}; somebody who may must give you {error.rule}"
        )
    if isinstance(error, Conflict):
        return f"{error}; somebody else changed it in this moment: run the command again"
    return str(error)


async def find_one(api: ApiClient, ref: ObjectRef) -> Object | None:
    """One object, None if it does not exist."""
    from ...kube.errors import NotFound

    try:
        return await api.get(ref)
    except NotFound:
        return None


async def scheduler_profiles(api: ApiClient) -> dict[str, Object] | None:
    """SchedulerProfiles by name; None where the API does not serve the kind."""
    from ...kube.resource import SCHEDULER_PROFILES

    return await _by_name(api, SCHEDULER_PROFILES)


async def scheduler_extenders(api: ApiClient) -> dict[str, Object] | None:
    """SchedulerExtenders by name; None where the API does not serve the kind."""
    from ...kube.resource import SCHEDULER_EXTENDERS

    return await _by_name(api, SCHEDULER_EXTENDERS)


async def _by_name(api: ApiClient, resource: Resource) -> dict[str, Object] | None:
    from ...kube.errors import NotFound

    try:
        found = await api.list(resource)
    except NotFound:
        return None
    return {obj["metadata"]["name"]: obj for obj in found.items}


async def operand_pods(api: ApiClient, platform: Platform) -> dict[str, Object]:
    """The schedulers' mirror pods, by node."""
    from ...kube.resource import PODS

    selector = ",".join(f"{key}={value}" for key, value in platform.static_pod_labels)
    pods = await api.list(PODS, platform.operand_namespace, label_selector=selector)
    return {pod["spec"].get("nodeName", ""): pod for pod in pods.items}


def on_node(pods: Mapping[str, Object], node: str) -> Object:
    """The scheduler of a node.

    Raises:
        CommandError: there is none; where there are some.
    """
    if node not in pods:
        raise CommandError(
            f"there is no scheduler on node {node!r}; --node takes {', '.join(sorted(pods))}"
        )
    return pods[node]


async def leader(api: ApiClient, platform: Platform, pods: Mapping[str, Object]) -> str:
    """The node whose scheduler holds the Lease.

    Raises:
        CommandError: none of them does.
    """
    from ...kube.resource import LEASES, ObjectRef

    ref = ObjectRef(LEASES, platform.operand_lease_namespace, platform.operand_lease_name)
    lease = await find_one(api, ref) or {}
    holder = str((lease.get("spec") or {}).get("holderIdentity") or "")
    for node in pods:
        if holder.startswith(f"{node}_"):
            return node
    raise CommandError("no scheduler holds the Lease; name one with --node")


async def kubescheduler(api: ApiClient) -> Object:
    """KubeScheduler "cluster".

    Raises:
        CommandError: there is none.
    """
    from ...base import names
    from ...kube.resource import KUBE_SCHEDULERS, ObjectRef

    found = await find_one(api, ObjectRef(KUBE_SCHEDULERS, None, names.CLUSTER))
    if found is None:
        raise CommandError(
            f'KubeScheduler "{names.CLUSTER}" does not exist: is the operator installed in this '
            "cluster?"
        )
    return found


async def config_maps(api: ApiClient, platform: Platform) -> dict[str, Object]:
    """The operator's own ConfigMaps in the target namespace, by name."""
    from ...base import names
    from ...kube.resource import CONFIG_MAPS

    selector = f"{names.MANAGED_BY_LABEL}={names.PROGRAM}"
    found = await api.list(CONFIG_MAPS, platform.target_namespace, label_selector=selector)
    return {obj["metadata"]["name"]: obj for obj in found.items}


async def revisions(api: ApiClient, platform: Platform) -> tuple[Revision, ...]:
    """All revisions that the API still has and that were made ready, oldest first."""
    from ...controlplane.revision.history import read

    history = read(await config_maps(api, platform), platform.parts)
    return tuple(revision for revision in history if revision.ready)


def find_revision(revisions: Sequence[Revision], number: int) -> Revision:
    """The revision with that number.

    Raises:
        CommandError: it is not there; which ones are.
    """
    for revision in revisions:
        if revision.number == number:
            return revision
    kept = ", ".join(str(revision.number) for revision in revisions) or "none"
    raise CommandError(
        f"there is no revision {number} (any more); kept are: {kept} "
        "(spec.succeededRevisionLimit and failedRevisionLimit of the KubeScheduler decide)"
    )


def nodes_by_revision(kubescheduler: Mapping[str, Any]) -> dict[int, list[str]]:
    """Which nodes run which revision, as `status.nodeStatuses` has it; 0: none of ours yet."""
    found: dict[int, list[str]] = {}
    for entry in (kubescheduler.get("status") or {}).get("nodeStatuses") or ():
        found.setdefault(int(entry.get("currentRevision") or 0), []).append(entry["nodeName"])
    return {number: sorted(nodes) for number, nodes in found.items()}


def print_document(document: Any, output: str) -> None:
    """Print JSON or YAML."""
    if output == "json":
        import json

        print(json.dumps(document, indent=2, ensure_ascii=False))
    else:
        import yaml

        yaml.safe_dump(document, sys.stdout, sort_keys=False, allow_unicode=True)


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as lines with aligned columns, the first row being the heading."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
