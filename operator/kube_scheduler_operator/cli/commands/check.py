"""`kubectl scheduler check`: can the operator be installed here, and is all well?"""

from __future__ import annotations

import argparse
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from ...base.platform import KUBEADM, PLATFORMS, Platform
from ...base.recognition import Recognition
from ...kube.errors import CredentialsError, KubeError, Unauthorized
from ..checks.check import CheckResult, CheckState, ClusterFacts, Observed, exit_code
from ..cluster.answers import ClusterAnswer, ClusterQuestion, answering
from ..cluster.connection import ClusterConnection
from ..console.errors import UsageError, error_message, prints_errors
from ..console.flags import add_cluster_flags, add_output_flag, add_repeatable
from ..console.output import counted, text_of

if TYPE_CHECKING:
    from ...kube.client import ApiClient

_SECONDS: Final = 30.0
"""Three times the longest back-off of kube-scheduler (10 s)."""

_WITHOUT_PODS: Final = 60.0
"""Seconds for the checks of one of several contexts, without --schedule."""

_NOT_RUN: Final = 2
"""The exit code if the checks could not be run."""

_CLOCKS: Final = "clocks"


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "check",
        description="Checks an installed operator, or with --pre whether it can be installed: one "
        "line for each check, and for each problem its cause, what to do and the page about it. "
        "Without --schedule, nothing is changed in the cluster: server-side dry runs show what the "
        "API server would refuse. The exit code is 0 if no check failed, 1 if one failed (with "
        "--strict also after warnings), 2 if the checks could not be run. With --upgrade, it "
        "reports instead what a newer Kubernetes changes: what would not start, what extenders "
        "have to do, and which Pods would be placed differently or no longer. The exit code is "
        "then 0 if nothing was found, 1 if something would change or fail, 2 if that is not known "
        "or the check could not be run.",
    )
    parser.add_argument(
        "--upgrade",
        metavar="VERSION",
        help="report what each minor version up to this one changes, e.g. 1.37",
    )
    add_repeatable(
        parser,
        "--from-files",
        "PATH",
        "with --upgrade: read the cluster from files or directories instead: configurations and "
        "manifests of schedulers, and the output of `kubectl get nodes,pods -A -o yaml`",
    )
    parser.add_argument(
        "--kubernetes-version",
        metavar="VERSION",
        help="with --from-files: the version that runs now (default: that of the scheduler's "
        "image in the files, otherwise that of the nodes)",
    )
    add_repeatable(
        parser,
        "--kube-scheduler",
        "PATH",
        "with --upgrade: a kube-scheduler of one of the versions (default: those in "
        "$KUBEBUILDER_ASSETS, PATH and the build cache)",
    )
    parser.add_argument(
        "--pre", action="store_true", help="check whether the operator can be installed"
    )
    add_repeatable(
        parser,
        "-f --filename",
        "FILE",
        "with --pre: the manifests to install, or - for standard input (default: those of "
        "deploy/ for the platform)",
    )
    parser.add_argument(
        "--schedule",
        action="store_true",
        help="also schedule one Pod through every scheduler and profile, and delete it; this "
        "writes to the cluster",
    )
    parser.add_argument(
        "-n",
        "--namespace",
        help="namespace of the Pods of --schedule (default: that of the operator)",
    )
    parser.add_argument(
        "--timeout",
        type=float,
        default=_SECONDS,
        metavar="SECONDS",
        help="time in which a Pod of --schedule must have a node (default: %(default)s)",
    )
    parser.add_argument("--strict", action="store_true", help="exit with 1 after warnings as well")
    add_cluster_flags(parser, several=True)
    add_output_flag(parser)
    parser.set_defaults(run=run)


@prints_errors(_NOT_RUN)
def run(args: argparse.Namespace) -> int:
    _refuse_combinations(args)
    if not args.upgrade:
        return answering(_QUESTION)(args)
    from ..upgrade.run import check_upgrade

    return check_upgrade(args)


def _refuse_combinations(args: argparse.Namespace) -> None:
    """Raise UsageError for flags that cannot be combined."""
    if args.filename and not args.pre:
        raise UsageError("-f is for --pre: an installed operator is read from the cluster")
    if args.upgrade and (args.pre or args.schedule):
        raise UsageError("--upgrade cannot be combined with --pre or --schedule")
    if args.upgrade and (args.watch or args.all_contexts or "," in (args.context or "")):
        raise UsageError(
            "--upgrade reports about one cluster, once: remove --watch and --all-contexts, and "
            "name one --context"
        )
    if not args.upgrade and (args.from_files or args.kubernetes_version or args.kube_scheduler):
        raise UsageError(
            "--from-files, --kubernetes-version and --kube-scheduler are for --upgrade VERSION"
        )
    if args.schedule and args.pre:
        raise UsageError("--schedule is for an installed operator: remove --pre")
    if args.schedule and args.watch:
        raise UsageError("--watch would create the Pods of --schedule again and again: remove one")
    if "-" in args.filename and (args.all_contexts or args.watch or "," in (args.context or "")):
        raise UsageError("-f -: standard input is read once; name a file")


async def _ask(connection: ClusterConnection) -> ClusterAnswer:
    api, args = connection.api, connection.args
    try:
        version = str((await api.get_path("/version")).get("gitVersion") or "")
    except KubeError as error:
        return _unreachable(args, error)
    results = await _results(api, args, version)
    return _answer(results, exit_code(results, strict=args.strict))


def _seconds(args: argparse.Namespace) -> float:
    """Return the time for one of several contexts."""
    return _WITHOUT_PODS + (2 * args.timeout if args.schedule else 0.0)


def _unreachable(_args: argparse.Namespace, error: KubeError) -> ClusterAnswer:
    return _answer([_cannot_be_reached(error)], _NOT_RUN)


def _cannot_be_reached(error: KubeError) -> CheckResult:
    if isinstance(error, CredentialsError):
        hint = "choose a kubeconfig with --kubeconfig or $KUBECONFIG, and a context with --context"
    elif isinstance(error, Unauthorized):
        hint = "get new credentials: log in again, or renew the certificate of the kubeconfig"
    else:
        hint = (
            "check the server's address in the kubeconfig (kubectl cluster-info), the network and "
            "proxies on the way, and that kube-apiserver runs"
        )
    cause = f"the API server cannot be reached: {error_message(error)}"
    link = "troubleshooting.md#api-server"
    return CheckResult("api-server", CheckState.FAILED, cause, hint, link)


async def _results(
    api: ApiClient, args: argparse.Namespace, version: str
) -> tuple[CheckResult, ...]:
    from ...kube.client import DRY_RUN
    from ...kube.client import ApiClient as Client
    from ..adoption.cluster_facts import common_facts, facts_after, facts_before
    from ..checks.table import AFTER, BEFORE, run_checks

    platform, recognition = await _platform(api, args)
    clock = api.clock
    ahead = time.time() - clock.seconds()
    known = ClusterFacts(clock.now(), platform, ahead, recognition, version)
    facts = await common_facts(api, known)
    async with Client(api.credentials, field_manager="kubectl-scheduler", writes=DRY_RUN) as dry:
        if args.pre:
            return run_checks(BEFORE, await facts_before(api, dry, facts, args.filename))
        results = run_checks(AFTER, await facts_after(api, dry, facts))
    return (*results, *(await _self_test(api, platform, args) if args.schedule else ()))


async def _self_test(
    api: ApiClient, platform: Platform, args: argparse.Namespace
) -> Sequence[CheckResult]:
    from ..simulation.self_test import CHECK, LINK, self_test

    namespace = args.namespace or platform.operator_namespace
    try:
        return await self_test(api, platform, namespace, args.timeout)
    except KubeError as error:
        cause = f"the Pods could not be created in namespace {namespace}: {error_message(error)}"
        hint = "choose a namespace in which you may create and delete Pods: -n NAMESPACE"
        return (CheckResult(CHECK, CheckState.NOT_CHECKED, cause, hint, LINK),)


async def _platform(
    api: ApiClient, args: argparse.Namespace
) -> tuple[Platform, Observed[Recognition | None]]:
    from ...operator.engine.detect_platform import decide_platform, detect

    chosen = PLATFORMS.get(args.platform)
    try:
        if chosen is not None:
            return chosen, Observed((await detect(api)).used)
        decision = await decide_platform(api, None)
    except KubeError as error:
        return chosen or KUBEADM, Observed(error=error_message(error))
    return decision.platform, Observed(decision.used)


def _answer(results: Sequence[CheckResult], code: int) -> ClusterAnswer:
    document = {
        "ok": code == 0,
        "checks": [
            {
                "check": result.check,
                "result": result.state.value,
                "cause": result.cause,
                "hint": result.hint,
                "link": f"docs/{result.link}",
            }
            for result in results
        ],
    }
    return ClusterAnswer(document, text_of(lines(results)), code, [*map(_compared, results)])


def _compared(result: CheckResult) -> tuple[str, CheckState, str]:
    """Return what --watch compares: not days until an expiry or seconds of a clock."""
    if result.state is CheckState.OK:
        return result.check, result.state, ""
    cause = re.sub(r"\d+ s\b", "", result.cause) if result.check == _CLOCKS else result.cause
    return result.check, result.state, cause


def lines(results: Sequence[CheckResult]) -> Iterator[str]:
    """Yield a line for each result, and below each problem what to do."""
    width = max(len(result.check) for result in results)
    for result in results:
        yield f"{result.state.value:<11}  {result.check:<{width}}  {result.cause}"
        if result.state is not CheckState.OK:
            indent = " " * (13 + width + 2)
            yield f"{indent}fix: {result.hint or 'none known'}"
            yield f"{indent}see: docs/{result.link}"
    states = Counter(result.state for result in results)
    counts = [
        f"{states[state]} {state.value}"
        for state in (CheckState.FAILED, CheckState.WARNING, CheckState.NOT_CHECKED)
        if states[state]
    ]
    yield ""
    checks = len({result.check for result in results})
    yield f"{counted(checks, 'check')}: {', '.join(counts) or 'all ok'}"


_QUESTION: Final = ClusterQuestion(
    _ask, "the result", failure=_NOT_RUN, seconds=_seconds, unreachable=_unreachable
)
