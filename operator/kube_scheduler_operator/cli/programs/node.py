"""Programs that run on nodes: the installer, the guard, and what reads and updates their files."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

from ..console.output import print_remark


def add_parser(subparsers: Any) -> None:
    _add_installer(subparsers)
    _add_restore(subparsers)
    _add_guard(subparsers)
    _add_signal(subparsers)
    _add_config_reader(subparsers)
    _add_cert_syncer(subparsers)


def _add_cert_syncer(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "cert-syncer",
        description="Copies Secrets from the API to this node whenever they change. Every Secret "
        "is replaced atomically. Works without the operator and without a scheduler.",
    )
    add = parser.add_argument
    add("--certs-dir", type=Path, required=True, help="directory of certificates on this node")
    add(
        "--secret",
        dest="secrets",
        metavar="NAMESPACE/NAME[?]",
        action="append",
        required=True,
        help="a Secret to copy; with ? it is optional; can be repeated",
    )
    add(
        "--server",
        dest="servers",
        metavar="URL",
        action="append",
        default=[],
        help="API server to try before the cluster's; can be repeated",
    )
    add("--pod", default=os.environ.get("POD_NAME", ""), help="pod of events ($POD_NAME)")
    add(
        "--namespace",
        default=os.environ.get("POD_NAMESPACE", ""),
        help="namespace of events (default: $POD_NAMESPACE)",
    )
    add("--interval", type=float, default=30.0, help="seconds between checks (default: 30)")
    add("-v", dest="verbosity", type=int, default=2, help="klog verbosity (default: 2)")
    parser.set_defaults(run=run_cert_syncer)


def _add_config_reader(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "read-config",
        description="Reads a scheduler's configuration file once. The termination message has its "
        "content, or why it cannot be adopted; credentials are never part of it.",
    )
    parser.add_argument("--file", type=Path, required=True, help="the file")
    parser.add_argument(
        "--termination-log",
        type=Path,
        default=Path("/dev/termination-log"),
        help="file of the termination message (default: /dev/termination-log)",
    )
    parser.set_defaults(run=run_config_reader)


def _add_guard(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "guard",
        description="Watches the scheduler's kubeconfig, manifest and revision on this node. "
        "Exits with code 3 when one of them changes; the termination message is a JSON report.",
    )
    add = parser.add_argument
    add("--kubeconfig", type=Path, help="file to watch (default: none)")
    add("--known", default="", help="fingerprint to compare with (default: the current one)")
    add("--resource-dir", type=Path, help="directory of revisions to watch (default: none)")
    add("--manifest-path", type=Path, help="static-pod manifest to watch (default: none)")
    add("--static-pod-name", default="kube-scheduler", help="name of the static pod")
    add("--known-edit", type=Path, help="file with the fingerprint of a hand edit that stays")
    add("--look", action="store_true", help="report once and exit with code 0")
    add("--interval", type=float, default=2.0, help="seconds between checks (default: 2)")
    _add_output(parser)
    parser.set_defaults(run=run_guard)


def _add_signal(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "signal",
        description="Sends SIGUSR2 to the scheduler of a static pod on this node, which then "
        "writes its cache and its queue to its log. Requires hostPID, but no capability.",
    )
    parser.add_argument("--pod-uid", required=True, help="UID of the static pod")
    _add_output(parser)
    parser.set_defaults(run=run_signal)


def _add_installer(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "installer",
        description="Stages a revision on this node, replaces the running scheduler with it, "
        "monitors its health, and restores the last good manifest if it does not stay healthy. "
        "Exit code 0 means a definitive result, whose JSON is the termination message.",
    )
    add = parser.add_argument
    add("--revision", type=_positive, required=True, help="revision to install")
    add(
        "--configmaps-dir",
        type=Path,
        required=True,
        help="mounted ConfigMaps of the revision, a subdirectory each",
    )
    add("--pod-dir", type=Path, required=True, help="mount of kube-scheduler-pod-N")
    add("--effective-config", type=Path, help="output of the preflight")
    add("--go-ahead", dest="permission", type=Path, help="file with the permission to roll out")
    add("--staged", type=Path, help="file to create when the revision is staged")
    add("--rollback", action="store_true", help="allow the revision to replace a newer one")
    add(
        "--follow-kubeadm",
        action="store_true",
        help="change nothing if kubeadm's manifest on this node has another version",
    )
    add("--keep", type=_numbers, help="older revisions to keep, e.g. 1,2,5 (default: all)")
    add("--content-hash", default="", help="hash of the revision, for an annotation of the pod")
    add("--kubeconfig", type=Path, help="the scheduler's kubeconfig, for an annotation")
    add("--secrets-dir", type=Path, help="mounted Secrets, a subdirectory each")
    add("--certs-dir", type=Path, help="destination of Secrets that the node lacks")
    _add_common(parser)
    parser.set_defaults(run=run_installer)


def _add_restore(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "restore",
        description="Replaces the running scheduler with the adopted manifest, monitors its "
        "health, and removes the operator's files from this node; restores the last good manifest "
        "if the scheduler does not stay healthy. Exit code 0 means a definitive result, whose "
        "JSON is the termination message.",
    )
    parser.add_argument(
        "--static-pod-namespace", default="kube-system", help="namespace of the static pod"
    )
    _add_common(parser)
    parser.set_defaults(run=run_restore)


def _add_common(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--retry", type=int, default=0, help="attempt; a failed one is not repeated (default: 0)")
    add("--node", required=True, help="name of this node")
    add("--static-pod-name", default="kube-scheduler", help="name of the static pod")
    add("--resource-dir", type=Path, required=True, help="directory of revisions on this node")
    add("--manifest-path", type=Path, required=True, help="the scheduler's static-pod manifest")
    add("--pod-log-dir", type=Path, required=True, help="the kubelet's directory of container logs")
    add("--kubelet-pod-dir", type=Path, required=True, help="the kubelet's directory of pods")
    add("--cgroup-dir", type=Path, required=True, help="mount of the node's cgroups")
    add("--health-timeout", type=float, default=60.0, help="seconds to become Ready (default: 60)")
    add("--settling-time", type=float, default=2.0, help="seconds to stay Ready (default: 2)")
    _add_output(parser)


def _add_output(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--termination-log",
        type=Path,
        default=Path("/dev/termination-log"),
        help="file for the result",
    )
    add("-v", dest="verbosity", type=int, default=2, help="klog verbosity (default: 2)")


# The programs are imported where they run, so that each command loads only its own.


def run_installer(args: argparse.Namespace) -> int:
    from ...node.static_pod import installer, program

    return _run(installer.main, program.InstallerOptions, args)


def run_restore(args: argparse.Namespace) -> int:
    from ...node.static_pod import restore

    return _run(restore.main, restore.RestoreOptions, args)


def run_guard(args: argparse.Namespace) -> int:
    from ...node.static_pod import guard

    return _run(guard.main, guard.GuardOptions, args)


def run_signal(args: argparse.Namespace) -> int:
    from ...node.static_pod import dump_signal

    return _run(dump_signal.main, dump_signal.DumpSignalOptions, args)


def run_cert_syncer(args: argparse.Namespace) -> int:
    from ...node.static_pod import cert_syncer

    try:
        secrets = tuple(cert_syncer.SecretRef.parse(text) for text in args.secrets)
    except ValueError as error:
        print_remark(f"kube-scheduler-operator cert-syncer: --secret {error}")
        return 2
    args.secrets, args.servers = secrets, tuple(args.servers)
    return _run(cert_syncer.main, cert_syncer.CertSyncerOptions, args)


def run_config_reader(args: argparse.Namespace) -> int:
    from ...config.migrate.convert import foreign_content
    from ...node.config_reader.program import ReaderOptions, main

    return main(ReaderOptions(args.file, args.termination_log), foreign_content)


def _run(main: Callable[[Any], int], options: Any, args: argparse.Namespace) -> int:
    from ...node.static_pod import program

    program.configure_logging(args.verbosity)
    return main(options(**{field.name: getattr(args, field.name) for field in fields(options)}))


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("a revision must be 1 or greater")
    return number


def _numbers(text: str) -> frozenset[int]:
    return frozenset(_positive(number) for number in text.split(","))
