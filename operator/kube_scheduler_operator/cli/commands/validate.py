"""`validate`: checks configuration files without a cluster."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from typing import Final

from ..lib.errors import UsageError
from ..lib.flags import add_check_flags, check_options
from ..lib.input_files import display_name, read_bytes

FORMATS: Final = ("text", "json", "github", "sarif")
WRONG_USAGE: Final = 2


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = subparsers.add_parser(
        "validate",
        description="Checks KubeSchedulerConfigurations, Schedulers, KubeSchedulers, "
        "SchedulerProfiles, SchedulerExtenders, SecondarySchedulers, LoadPolicies, "
        "OperatorSettings and crane's DynamicSchedulerPolicies as kube-scheduler and the operator "
        "do, without a cluster. The exit code is 0 if the scheduler would start, 1 if it would "
        "not, 2 for invalid usage; warnings affect it only with --strict.",
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
    add_check_flags(parser)
    parser.add_argument(
        "--platform",
        default="kubeadm",
        help="kind of cluster: kubeadm, openshift or rke2 (default: %(default)s)",
    )
    parser.add_argument(
        "--allowed-images",
        default="",
        metavar="IMAGE,...",
        help="the images that the operator allows, as in its own flag; images of others have a "
        "warning",
    )
    parser.add_argument("--strict", action="store_true", help="treat warnings as errors")
    parser.add_argument("-o", "--output", choices=FORMATS, default="text", help="default: text")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Check the files and print the findings."""
    from ...offline.validate import validate
    from ..lib.findings_output import FORMATS

    try:
        chosen = check_options(args, args.platform)
        chosen = replace(chosen, images=chosen.images.extended_by(args.allowed_images))
        result = validate([(display_name(name), read_bytes(name)) for name in args.files], chosen)
    except UsageError as error:
        sys.stderr.write(f"error: {error}\n")
        return WRONG_USAGE
    sys.stdout.write(FORMATS[args.output](result, chosen.gates.version.short))
    failed = result.findings if args.strict else not result.starts
    return 1 if failed else 0
