"""`kubectl scheduler pprof`: a profile of a running scheduler, for `go tool pprof`.

kube-scheduler has its profiles behind a setting that is off, because they are a way in. So a
revision turns it on, and another one off again; in between, only a ServiceAccount made for this
command may read them, not anonymous users, as the manuals have it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from ..lib import common

if TYPE_CHECKING:
    from ...base.platform import Platform
    from ...kube.api import Object
    from ...kube.client import ApiClient
    from ..lib.follow_rollout import State

INTERVAL: Final = 1.0
"""Seconds between looks at a rollout."""

DENIED: Final = (401, 403)
AUTHORIZATION_DELAY: Final = 15.0
"""Seconds to ask again when the scheduler refuses: it remembers refusals for 10 s (apiserver's
DelegatingAuthorizationOptions), and roles take a moment to be known."""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = subparsers.add_parser(
        "pprof",
        help="fetch a profile of a running scheduler",
        description="Turns profiling on (a rollout: schedulers start again), fetches a profile "
        "and turns it off again. Look at it with: go tool pprof FILE.",
    )
    parser.add_argument("profile", choices=("heap", "profile", "goroutine", "trace"))
    parser.add_argument("--node", help="whose scheduler (default: the one that leads)")
    parser.add_argument(
        "--seconds", type=_seconds, help="how long to record (default: profile 30, trace 5)"
    )
    parser.add_argument(
        "--timeout", type=float, default=600.0, help="seconds for the rollout (default: 600)"
    )
    parser.add_argument("-o", "--output-file", type=Path, required=True, metavar="FILE")
    common.add_cluster_flags(parser)
    parser.set_defaults(run=run)


def _seconds(text: str) -> int:
    seconds = int(text)
    if not 1 <= seconds <= 600:
        raise argparse.ArgumentTypeError("1 to 600 seconds")
    return seconds


def run(args: argparse.Namespace) -> int:
    """Fetch one profile."""

    async def work(api: ApiClient, platform: Platform) -> int:
        from ..lib import profiling

        folder = args.output_file.parent
        if not folder.is_dir():
            raise common.CommandError(f"-o {args.output_file}: there is no folder {folder}")
        if args.node:
            common.on_node(await common.operand_pods(api, platform), args.node)
        seconds = args.seconds or {"profile": 30, "trace": 5}.get(args.profile, 0)
        life = int(args.timeout) + seconds + 300
        async with _reader(api, platform, life) as token, _profiling(api):
            node, pod = await _ready(api, platform, args.node, args.timeout)
            _tell(f"fetching {args.profile} of the scheduler on {node}")
            with _new_file(args.output_file) as file:
                path = profiling.url(args.profile, seconds)
                await _fetch(api, platform, pod, (path, token, seconds, file))
        _tell(f"{args.output_file}: go tool pprof {args.output_file}")
        return 0

    return common.run(args, work)


@contextmanager
def _new_file(path: Path) -> Iterator[IO[bytes]]:
    """A file that appears whole or not at all."""
    import tempfile

    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        try:
            yield file
            file.close()
            Path(file.name).replace(path)
        finally:
            Path(file.name).unlink(missing_ok=True)


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


# --- on and off -------------------------------------------------------------------------------


@asynccontextmanager
async def _profiling(api: ApiClient) -> AsyncIterator[None]:
    """Profiling is on inside, and afterwards what it was before, whatever happens."""
    from ...kube.resource import KUBE_SCHEDULERS
    from ..lib.profiling import override, switched

    kubescheduler = await common.kubescheduler(api)
    management = (kubescheduler.get("spec") or {}).get("managementState") or "Managed"
    if management not in ("Managed", "Force"):
        raise common.CommandError(
            f"managementState of the KubeScheduler is {management}: nobody would turn profiling on"
        )
    before = override(kubescheduler)
    changed = switched(kubescheduler, value=True)
    try:
        if changed is not None:
            _tell("turning profiling on: schedulers start again, one after the other")
            await api.replace(KUBE_SCHEDULERS, changed)
        yield
    finally:
        if changed is not None:
            await _restore(api, before)


async def _restore(api: ApiClient, before: bool | None) -> None:
    """Take our override back out of whatever the object has become meanwhile."""
    from ...kube.errors import Conflict, KubeError
    from ...kube.resource import KUBE_SCHEDULERS
    from ..lib.profiling import switched

    try:
        for attempt in range(5):
            changed = switched(await common.kubescheduler(api), value=before)
            if changed is None:
                break
            try:
                await api.replace(KUBE_SCHEDULERS, changed)
                break
            except Conflict:
                if attempt == 4:
                    raise
    except KubeError as error:
        _tell(
            f"profiling is still ON: {common.sentence(error)}; remove enableProfiling from "
            "spec.unsupportedConfigOverrides: kubectl edit kubescheduler cluster"
        )
        raise
    _tell("profiling is being turned off again; follow it: kubectl scheduler rollout watch")


# --- who may read -----------------------------------------------------------------------------


@asynccontextmanager
async def _reader(api: ApiClient, platform: Platform, seconds: int) -> AsyncIterator[str]:
    """A token of a ServiceAccount that may read profiles and nothing else; gone afterwards."""
    from ...kube.errors import AlreadyExists, KubeError, NotFound
    from ...kube.resource import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, SERVICE_ACCOUNTS
    from ..lib import profiling

    namespace = platform.target_namespace
    wanted = (
        (SERVICE_ACCOUNTS, profiling.service_account(namespace)),
        (CLUSTER_ROLES, profiling.cluster_role()),
        (CLUSTER_ROLE_BINDINGS, profiling.cluster_role_binding(namespace)),
    )
    made = []
    try:
        for kind, obj in wanted:
            with suppress(AlreadyExists):  # left over from one that was killed
                await api.create(kind, obj)
            made.append(kind.ref(obj))
        answer = await api.create_in(made[0], "token", profiling.token_request(seconds))
        yield str(answer["status"]["token"])
    finally:
        for ref in reversed(made):
            try:
                await api.delete(ref)
            except NotFound:
                continue
            except KubeError as error:
                _tell(f"{ref} is left over: {common.sentence(error)}; delete it")


# --- waiting and fetching ---------------------------------------------------------------------


async def _ready(
    api: ApiClient, platform: Platform, node: str | None, patience: float
) -> tuple[str, Object]:
    """Wait until the rollout is over; the node and the scheduler pod to ask."""
    import asyncio

    from ..lib.profiling import override, profiled
    from .rollout import watch

    end = asyncio.get_running_loop().time() + patience
    while True:
        left = end - asyncio.get_running_loop().time()
        if await watch(lambda: _look(api), lambda line: _tell(f"  {line}"), left):
            raise common.CommandError(
                "profiling cannot be turned on: the rollout failed, see above"
            )
        kubescheduler = await common.kubescheduler(api)
        on = profiled(kubescheduler, await common.revisions(api, platform))
        pods = await common.operand_pods(api, platform)
        chosen = node or await common.leader(api, platform, pods)
        if chosen in on:
            return chosen, common.on_node(pods, chosen)
        if override(kubescheduler) is not True:
            raise common.CommandError(
                "somebody has set enableProfiling to something else meanwhile"
            )
        await asyncio.sleep(INTERVAL)  # what was over was the rollout before


async def _look(api: ApiClient) -> State:
    from ..lib.follow_rollout import read_state

    return read_state(await common.kubescheduler(api))


async def _fetch(
    api: ApiClient, platform: Platform, pod: Object, asked: tuple[str, str, int, IO[bytes]]
) -> None:
    """Fetch (path, token, seconds, file); again for a while as long as the scheduler refuses."""
    import asyncio

    from ...model import operand_pods
    from ...schedulerconfig.command_line import probe_target
    from ..lib.port_forward import Tunnel

    _, port = probe_target(operand_pods.read(pod).arguments, platform)
    name = pod["metadata"]["name"]
    access = await api.credentials.access()
    end = asyncio.get_running_loop().time() + AUTHORIZATION_DELAY
    while True:
        tunnel = Tunnel(access, platform.operand_namespace, name, port)
        try:
            status = await asyncio.to_thread(tunnel.fetch, *asked)
        finally:
            tunnel.close()  # the thread ends with it if we were interrupted
        if status == 200:
            return
        if status not in DENIED or asyncio.get_running_loop().time() > end:
            break
        await asyncio.sleep(INTERVAL)
    raise common.CommandError(
        f"{name} answered {status}: "
        + {
            401: "it does not accept our token; can it reach the API server to review it?",
            403: "it does not let our ServiceAccount read /debug/pprof/; is its authorization "
            "(--authorization-kubeconfig) at the same API server?",
            404: "it has no profiles; is enableProfiling really on?",
        }.get(status, "see its log")
    )
