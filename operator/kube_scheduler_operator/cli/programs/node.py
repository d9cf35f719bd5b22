"""`installer`, `restore`, `guard`, `cert-syncer` and `signal`: programs of pods on nodes."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any


def add_parser(subparsers: Any) -> None:
    """Add the commands and their flags."""
    _add_installer(
        subparsers.add_parser(
            "installer",
            help="put one revision on this node (runs in installer pods)",
            description=(
                "Stages one revision on this node, replaces the running scheduler by it, watches "
                "it, and puts the last good manifest back if it does not stay healthy. Exit code 0 "
                "means a definitive result, whose JSON is the termination message."
            ),
        )
    )
    _add_restore(
        subparsers.add_parser(
            "restore",
            help="bring back what was on this node before the operator (runs in restore pods)",
            description=(
                "Replaces the running scheduler by the manifest that was adopted, watches it, and "
                "removes what the operator kept on this node; or puts the last good manifest back. "
                "Exit code 0 means a definitive result, whose JSON is the termination message."
            ),
        )
    )
    _add_guard(
        subparsers.add_parser(
            "guard",
            help="tell when the scheduler's kubeconfig changes on this node (runs in guard pods)",
            description=(
                "Ends with exit code 3 when the scheduler's kubeconfig on this node has become "
                "another one; its fingerprint is the termination message."
            ),
        )
    )
    _add_signal(
        subparsers.add_parser(
            "signal",
            help="have the scheduler on this node dump its cache (runs in pods of dump-cache)",
            description=(
                "Sends SIGUSR2 to the scheduler of one static pod on this node, which writes its "
                "cache and its queue into its log. Needs the node's processes (hostPID) and no "
                "capability."
            ),
        )
    )
    _add_cert_syncer(
        subparsers.add_parser(
            "cert-syncer",
            help="keep the scheduler's certificates on this node up to date (runs in pods)",
            description=(
                "Copies Secrets from the API to this node whenever they change, whole or not at "
                "all. It needs no operator and no scheduler."
            ),
        )
    )


def _add_cert_syncer(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--certs-dir", type=Path, required=True, help="where certificates are kept on this node")
    add(
        "--secret",
        dest="secrets",
        metavar="NAMESPACE/NAME[?]",
        action="append",
        required=True,
        help="a Secret that belongs there, with ? one that need not exist; can be repeated",
    )
    add(
        "--server",
        dest="servers",
        metavar="URL",
        action="append",
        default=[],
        help="API server to ask before that of the cluster; can be repeated",
    )
    add("--pod", default=os.environ.get("POD_NAME", ""), help="whose events they are ($POD_NAME)")
    add(
        "--namespace",
        default=os.environ.get("POD_NAMESPACE", ""),
        help="where events go ($POD_NAMESPACE)",
    )
    add("--interval", type=float, default=30.0, help="seconds between looks (30)")
    add("-v", dest="verbosity", type=int, default=2, help="klog verbosity (2)")
    parser.set_defaults(run=run_cert_syncer)


def _add_guard(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--kubeconfig", type=Path, help="the scheduler's own, on this node (nothing is watched)")
    add("--known", default="", help="fingerprint that is no news (the one that it finds)")
    add("--interval", type=float, default=5.0, help="seconds between looks (5)")
    _add_output(parser)
    parser.set_defaults(run=run_guard)


def _add_signal(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--pod-uid", required=True, help="of the static pod, as the kubelet has it")
    _add_output(parser)
    parser.set_defaults(run=run_signal)


def _add_installer(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--revision", type=_positive, required=True, help="revision to install")
    add(
        "--configmaps-dir",
        type=Path,
        required=True,
        help="where the revision's other ConfigMaps are mounted, a directory each",
    )
    add("--pod-dir", type=Path, required=True, help="where kube-scheduler-pod-N is mounted")
    add("--effective-config", type=Path, help="what the preflight writes; waited for")
    add("--go-ahead", type=Path, help="file that says when it may swap; waited for")
    add("--staged", type=Path, help="file that it makes when the revision is on the disk")
    add("--rollback", action="store_true", help="let this revision replace a newer one")
    add(
        "--keep",
        type=_numbers,
        help="older revisions whose directories stay on this node, as 1,2,5 (all of them)",
    )
    add("--content-hash", default="", help="hash of the revision, for the pod's annotation")
    add("--kubeconfig", type=Path, help="the scheduler's own, on this node; for an annotation")
    add("--secrets-dir", type=Path, help="where Secrets are mounted, a directory each")
    add("--certs-dir", type=Path, help="where they go on a node that does not have them yet")
    _add_common(parser)
    parser.set_defaults(run=run_installer)


def _add_restore(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--static-pod-namespace", default="kube-system", help="its namespace (kube-system)"
    )
    _add_common(parser)
    parser.set_defaults(run=run_restore)


def _add_common(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--retry", type=int, default=0, help="attempt; one that failed is not repeated (0)")
    add("--node", required=True, help="name of this node")
    add("--static-pod-name", default="kube-scheduler", help="name of the static pod")
    add("--resource-dir", type=Path, required=True, help="where revisions are kept on this node")
    add("--manifest-path", type=Path, required=True, help="the scheduler's static-pod manifest")
    add("--pod-log-dir", type=Path, required=True, help="where the kubelet keeps container logs")
    add("--kubelet-pod-dir", type=Path, required=True, help="where the kubelet keeps its pods")
    add("--cgroup-dir", type=Path, required=True, help="where the node's cgroups are mounted")
    add("--health-timeout", type=float, default=60.0, help="seconds to become ready (60)")
    add("--settling-time", type=float, default=2.0, help="seconds to stay ready (2)")
    _add_output(parser)


def _add_output(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--termination-log", type=Path, default=Path("/dev/termination-log"), help="result file")
    add("-v", dest="verbosity", type=int, default=2, help="klog verbosity (2)")


# The programs are loaded here and not above: other commands do not need them, and they must not pay
# for what others do.


def run_installer(args: argparse.Namespace) -> int:
    """Install; the exit code."""
    from ...programs.node import installer, program

    program.configure_logging(args.verbosity)
    return installer.main(installer.Options(**_options(installer.Options, args)))


def run_restore(args: argparse.Namespace) -> int:
    """Restore; the exit code."""
    from ...programs.node import program, restore

    program.configure_logging(args.verbosity)
    return restore.main(restore.Options(**_options(restore.Options, args)))


def run_guard(args: argparse.Namespace) -> int:
    """Watch the kubeconfig; the exit code."""
    from ...programs.node import guard, program

    program.configure_logging(args.verbosity)
    return guard.main(guard.Options(**_options(guard.Options, args)))


def run_signal(args: argparse.Namespace) -> int:
    """Signal the scheduler; the exit code."""
    from ...programs.node import dump_signal, program

    program.configure_logging(args.verbosity)
    return dump_signal.main(dump_signal.Options(**_options(dump_signal.Options, args)))


def run_cert_syncer(args: argparse.Namespace) -> int:
    """Sync certificates; the exit code."""
    from ...programs.node import cert_syncer, program

    program.configure_logging(args.verbosity)
    try:
        secrets = tuple(cert_syncer.Wanted.parse(text) for text in args.secrets)
    except ValueError as error:
        sys.stderr.write(f"kube-scheduler-operator cert-syncer: --secret {error}\n")
        return 2
    args.secrets, args.servers = secrets, tuple(args.servers)
    return cert_syncer.main(cert_syncer.Options(**_options(cert_syncer.Options, args)))


def _options(kind: Any, args: argparse.Namespace) -> dict[str, Any]:
    return {field.name: getattr(args, field.name) for field in fields(kind)}


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("a revision is 1 or greater")
    return number


def _numbers(text: str) -> frozenset[int]:
    return frozenset(_positive(number) for number in text.split(","))
