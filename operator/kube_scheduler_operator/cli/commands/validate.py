"""`validate`: would kube-scheduler start with this file, and what would hurt? Without a cluster."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ..lib.common import DEFAULT_VERSION

if TYPE_CHECKING:
    from ...offline.kinds import Setting

FORMATS: Final = ("text", "json", "github", "sarif")
WRONG_USAGE: Final = 2


class UsageError(Exception):
    """The command line, or a file that it names, is not what the command can work with."""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = subparsers.add_parser(
        "validate",
        help="say what is wrong in a configuration file, and what would hurt",
        description="Checks KubeSchedulerConfigurations, Schedulers, KubeSchedulers, "
        "SchedulerProfiles, SchedulerExtenders, SecondarySchedulers, LoadPolicies and crane's "
        "DynamicSchedulerPolicies as kube-scheduler and the operator do, without a cluster. Exit "
        "code 0: the scheduler would start; 1: it would not; 2: wrong usage. Warnings change it "
        "only with --strict.",
    )
    parser.add_argument(
        "-f",
        "--file",
        dest="files",
        action="append",
        required=True,
        metavar="FILE",
        help="YAML or JSON, - for standard input; can be repeated",
    )
    add_target_flags(parser)
    parser.add_argument("--strict", action="store_true", help="warnings are errors")
    parser.add_argument("-o", "--output", choices=FORMATS, default="text", help="default: text")
    parser.set_defaults(run=run)


def add_target_flags(parser: argparse.ArgumentParser) -> None:
    """The flags that say which kube-scheduler will read the files."""
    parser.add_argument(
        "--kubernetes-version",
        default=DEFAULT_VERSION,
        metavar="VERSION",
        help="of the kube-scheduler that will read it (default: %(default)s)",
    )
    parser.add_argument(
        "--feature-gates",
        action="append",
        default=[],
        metavar="NAME=true",
        help="as kube-scheduler's own flag; can be repeated",
    )
    parser.add_argument(
        "--custom-image",
        action="store_true",
        help="the kube-scheduler may have more plugins than Kubernetes' own",
    )


def run(args: argparse.Namespace) -> int:
    """Check and print."""
    # Not config.compose: what merges takes longer to load than everything else takes to run.
    from ...offline.secondary_schedulers import ALL_KINDS
    from ...offline.validate import validate
    from ..lib.findings_output import FORMATS

    try:
        chosen = setting(args)
        verdict = validate([(shown(name), text(name)) for name in args.files], chosen, ALL_KINDS)
    except UsageError as error:
        sys.stderr.write(f"error: {error}\n")
        return WRONG_USAGE
    sys.stdout.write(FORMATS[args.output](verdict, chosen.gates.version.short))
    failed = verdict.findings if args.strict else not verdict.starts
    return 1 if failed else 0


def setting(args: argparse.Namespace) -> Setting:
    """What decides besides the files.

    Raises:
        UsageError: a flag has no such value.
    """
    from ...offline.kinds import Setting
    from ...schedulerconfig.catalogue import NEWEST, OLDEST, on_record
    from ...schedulerconfig.feature_gates import Gates, parse_gates
    from ...schedulerconfig.versions import Version

    try:
        version = Version.parse(args.kubernetes_version)
    except ValueError as error:
        raise UsageError(f"--kubernetes-version: {error}") from None
    try:
        gates = Gates(version, parse_gates(args.feature_gates))
    except ValueError as error:
        raise UsageError(f"--feature-gates: {error}") from None
    if not on_record(version):
        sys.stderr.write(
            f"note: Kubernetes {version.short} is not on record ({OLDEST.short} to "
            f"{NEWEST.short} are), so fields and plugins that are not known pass\n"
        )
    return Setting(gates, stock=not args.custom_image)


def shown(name: str) -> str:
    """How a file is called in findings."""
    return "<stdin>" if name == "-" else name


def text(name: str) -> str:
    """The text of a file, or of standard input.

    Raises:
        UsageError: it cannot be read.
    """
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        return data.decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"{name}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{shown(name)} is not UTF-8: {error.reason}") from None
