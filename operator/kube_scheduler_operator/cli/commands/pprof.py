"""`kubectl scheduler pprof`: a profile of a running scheduler, for `go tool pprof`.

Profiling is disabled in kube-scheduler because it exposes internals. The command enables it with a
revision and disables it with another one. In between, only a temporary ServiceAccount of the
command may read profiles; anonymous access, which manuals suggest, is not necessary.
"""

from __future__ import annotations

import argparse
import asyncio
import copy
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from ...base import names
from ...base.management import MANAGED, management_state
from ...base.objects import label, mapping
from ...base.platform import Platform
from ...base.progress import step
from ...base.templates import render_file
from ...config.effective.secondary.compose import PORT
from ...config.language.command_line import probe_target
from ...kube import resource as kinds
from ...kube.api import Object
from ...kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from ...kube.resource import Resource
from ...operator.model import operand_pods
from ..cluster.compare import ParsedRevision, parse_revision
from ..cluster.connection import connected
from ..cluster.operands import find_leader, list_operand_pods, operand_on
from ..cluster.operator_objects import find_object, get_kubescheduler
from ..cluster.revisions import list_revisions, nodes_by_revision
from ..cluster.scheduler_contents import (
    find_scheduler,
    list_scheduler_pods,
    read_contents,
    readable,
    running_content,
)
from ..console.errors import CommandError, error_message
from ..console.flags import add_cluster_flags
from ..console.output import print_remark
from ..rollout.follow_rollout import follow

if TYPE_CHECKING:
    from ...kube.client import ApiClient

INTERVAL: Final = 1.0
"""Seconds between polls of a rollout."""

DENIED: Final = (401, 403)
AUTHORIZATION_DELAY: Final = 15.0
"""Seconds to retry after a denial: the scheduler caches denials for 10 s (apiserver's
DelegatingAuthorizationOptions), and new roles take a moment to become effective."""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "pprof",
        description="Enables profiling (a rollout, which restarts the schedulers), fetches a "
        "profile and disables profiling again. Analyze the file with: go tool pprof FILE.",
    )
    parser.add_argument("profile", choices=("heap", "profile", "goroutine", "trace"))
    parser.add_argument("--node", help="node of the scheduler (default: the leader)")
    parser.add_argument(
        "--seconds", type=_seconds, help="duration of the recording (default: profile 30, trace 5)"
    )
    parser.add_argument(
        "--timeout",
        type=float,
        default=600.0,
        help="timeout of the rollout in seconds (default: 600)",
    )
    parser.add_argument("-o", "--output-file", type=Path, required=True, metavar="FILE")
    add_cluster_flags(parser)
    parser.set_defaults(run=connected(_fetch_profile))


def _seconds(text: str) -> int:
    seconds = int(text)
    if not 1 <= seconds <= 600:
        raise argparse.ArgumentTypeError("must be 1 to 600 seconds")
    return seconds


async def _fetch_profile(api: ApiClient, platform: Platform, args: argparse.Namespace) -> int:
    directory = args.output_file.parent
    if not directory.is_dir():
        raise CommandError(f"-o {args.output_file}: directory {directory} does not exist")
    if platform.owns_static_pods:  # before the schedulers restart
        pods = await list_operand_pods(api, platform)
        operand_on(pods, args.node or await find_leader(api, platform, pods))
    seconds = args.seconds or {"profile": 30, "trace": 5}.get(args.profile, 0)
    lifetime = int(args.timeout) + seconds + 300
    async with _reader(api, platform, lifetime) as token, _profiling(api):
        pod = await _ready(api, platform, args.node, args.timeout)
        node = pod["spec"].get("nodeName", "")
        print_remark(f"fetching {args.profile} of the scheduler on {node}")
        with _new_file(args.output_file) as file:
            # With seconds, Go returns the difference of two heaps or lists of goroutines
            # (k8s.io/apiserver/pkg/server/routes/profiling.go).
            path = f"/debug/pprof/{args.profile}{f'?seconds={seconds}' if seconds else ''}"
            with step(f"fetching {args.profile}{f' of {seconds} s' if seconds else ''}"):
                await _fetch(api, platform, pod, (path, token, seconds, file))
    print_remark(f"wrote {args.output_file}; analyze it with: go tool pprof {args.output_file}")
    return 0


@contextmanager
def _new_file(path: Path) -> Iterator[IO[bytes]]:
    """Create a file atomically."""
    import tempfile

    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        try:
            yield file
            file.close()
            Path(file.name).replace(path)
        finally:
            Path(file.name).unlink(missing_ok=True)


# --- profiling --------------------------------------------------------------------------------


@asynccontextmanager
async def _profiling(api: ApiClient) -> AsyncIterator[None]:
    kubescheduler = await get_kubescheduler(api)
    management = management_state(kubescheduler)
    if management.state != MANAGED:
        raise CommandError(
            f"{management}: the operator does not roll out revisions, so profiling cannot be "
            "enabled"
        )
    before = override(kubescheduler)
    changed = switched(kubescheduler, value=True)
    try:
        if changed is not None:
            print_remark("enabling profiling: the schedulers restart one after the other")
            await api.replace(kinds.KUBE_SCHEDULERS, changed)
        yield
    finally:
        if changed is not None:
            await _restore(api, before)


async def _restore(api: ApiClient, before: bool | None) -> None:
    try:
        for attempt in range(5):
            changed = switched(await get_kubescheduler(api), value=before)
            if changed is None:
                break
            try:
                await api.replace(kinds.KUBE_SCHEDULERS, changed)
                break
            except Conflict:
                if attempt == 4:
                    raise
    except KubeError as error:
        print_remark(
            f"profiling is still ENABLED: {error_message(error)}; remove enableProfiling from "
            "spec.unsupportedConfigOverrides: kubectl edit kubescheduler cluster"
        )
        raise
    print_remark("disabling profiling; to follow the rollout: kubectl scheduler rollout watch")


# --- access -----------------------------------------------------------------------------------


@asynccontextmanager
async def _reader(api: ApiClient, platform: Platform, seconds: int) -> AsyncIterator[str]:
    """Yield a token of a temporary ServiceAccount that may only read profiles."""
    created = []
    try:
        for kind, obj in access_objects(platform.target_namespace).items():
            with suppress(AlreadyExists):  # left by an interrupted command
                await api.create(kind, obj)
            created.append(kind.ref(obj))
        answer = await api.create_in(created[0], "token", token_request(seconds))
        yield str(answer["status"]["token"])
    finally:
        for ref in reversed(created):
            try:
                await api.delete(ref)
            except NotFound:
                continue
            except KubeError as error:
                print_remark(f"cannot delete {ref}: {error_message(error)}; delete it")


# --- waiting and fetching ---------------------------------------------------------------------


async def _ready(api: ApiClient, platform: Platform, node: str | None, seconds: float) -> Object:
    """Wait for the end of the rollout; return the scheduler pod to profile.

    Where the provider runs the control plane's scheduler, it is a pod of the SecondaryScheduler
    that the operator makes in its place.
    """
    end = asyncio.get_running_loop().time() + seconds
    managed = await find_scheduler(api, platform)
    while True:
        left = end - asyncio.get_running_loop().time()
        if await follow(api, platform, managed, lambda line: print_remark(f"  {line}"), left):
            raise CommandError("profiling cannot be enabled: the rollout failed, see above")
        kubescheduler = await get_kubescheduler(api)
        target = await (
            _static_pod(api, platform, kubescheduler, node)
            if managed is None
            else _managed_pod(api, platform, str(managed["metadata"]["name"]), node)
        )
        if target is not None:
            return target
        if override(kubescheduler) is not True:
            raise CommandError("enableProfiling was changed in the meantime")
        await asyncio.sleep(INTERVAL)  # the rollout that ended was an earlier one


async def _static_pod(
    api: ApiClient, platform: Platform, kubescheduler: Object, node: str | None
) -> Object | None:
    """Return the scheduler pod of the node, if it runs a revision with profiling enabled."""
    pods = await list_operand_pods(api, platform)
    chosen = node or await find_leader(api, platform, pods)
    nodes = nodes_by_revision(kubescheduler)
    for revision in await list_revisions(api, platform):
        if chosen in nodes.get(revision.number, ()) and _profiles(parse_revision(revision.content)):
            return operand_on(pods, chosen)
    return None


async def _managed_pod(
    api: ApiClient, platform: Platform, name: str, node: str | None
) -> Object | None:
    """Return the Pod that schedules, or the one on `node`, if its content enables profiling."""
    scheduler = await find_scheduler(api, platform, name) or {}
    content = running_content(await read_contents(api, scheduler))
    if not _profiles(readable(content)):
        return None
    pods = [
        pod
        for pod in await list_scheduler_pods(api, scheduler)
        if label(pod, names.CONFIG_HASH_LABEL) == content.hash
    ]
    if node:
        return operand_on({str(pod["spec"].get("nodeName")): pod for pod in reversed(pods)}, node)
    ref = kinds.LEASES.named(name, str(scheduler["spec"]["namespace"]))
    lease = await find_object(api, ref) or {}
    holder = str((lease.get("spec") or {}).get("holderIdentity") or "")
    return next((pod for pod in pods if holder.startswith(f"{pod['metadata']['name']}_")), None)


async def _fetch(
    api: ApiClient, platform: Platform, pod: Object, request: tuple[str, str, int, IO[bytes]]
) -> None:
    """Fetch (path, token, seconds, file); retry for a while if the scheduler denies access."""
    from ..cluster.port_forward import Tunnel

    port = PORT
    if platform.owns_static_pods:
        _, port = probe_target(operand_pods.read(pod).arguments, platform)
    name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
    access = await api.credentials.access()
    end = asyncio.get_running_loop().time() + AUTHORIZATION_DELAY
    while True:
        tunnel = Tunnel(access, namespace, name, port)
        try:
            status = await asyncio.to_thread(tunnel.fetch, *request)
        finally:
            tunnel.close()  # ends the thread after an interruption
        if status == 200:
            return
        if status not in DENIED or asyncio.get_running_loop().time() > end:
            break
        await asyncio.sleep(INTERVAL)
    raise CommandError(
        f"{name} responded with status {status}: "
        + {
            401: "it rejects the token; can it reach the API server to review it?",
            403: "it denies the ServiceAccount access to /debug/pprof/; does "
            "--authorization-kubeconfig refer to the same API server?",
            404: "it does not serve profiles; is enableProfiling true?",
        }.get(status, "see its log")
    )


# --- the setting and the RBAC objects -----------------------------------------------------------


NAME: Final = "kube-scheduler-pprof"
"""The name of the temporary ServiceAccount, ClusterRole and ClusterRoleBinding."""

_ACCESS: Final = (kinds.SERVICE_ACCOUNTS, kinds.CLUSTER_ROLES, kinds.CLUSTER_ROLE_BINDINGS)

_FIELD: Final = "enableProfiling"
_OVERRIDES: Final = "unsupportedConfigOverrides"


def switched(kubescheduler: Mapping[str, Any], value: bool | None) -> Object | None:
    """Return a KubeScheduler with this override (None: no override); None if nothing changes."""
    changed: Object = copy.deepcopy(dict(kubescheduler))
    spec = changed.setdefault("spec", {})
    overrides = dict(spec.get(_OVERRIDES) or {})
    if overrides.get(_FIELD) == value:
        return None
    if value is None:
        del overrides[_FIELD]
    else:
        overrides[_FIELD] = value
    if overrides:
        spec[_OVERRIDES] = overrides
    else:
        spec.pop(_OVERRIDES, None)
    return changed


def override(kubescheduler: Mapping[str, Any]) -> bool | None:
    value: bool | None = mapping(mapping(kubescheduler.get("spec")).get(_OVERRIDES)).get(_FIELD)
    return value


def _profiles(content: ParsedRevision) -> bool:
    return content.config.get(_FIELD) is True


def access_objects(namespace: str) -> dict[Resource, Object]:
    """Return the temporary ServiceAccount and its rights, by kind."""
    objects = render_file("profile-reader.yaml.j2", names=names, name=NAME, namespace=namespace)
    return dict(zip(_ACCESS, objects, strict=True))


def token_request(seconds: int) -> Object:
    """Request a token that expires even if its ServiceAccount stays; at least ten minutes."""
    return {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": max(600, seconds)},
    }
