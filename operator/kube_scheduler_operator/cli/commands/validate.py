"""`validate`: checks configuration files without a cluster."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ..console.errors import UsageError, prints_errors
from ..console.flags import (
    add_check_flags,
    add_file_arguments,
    add_place_flag,
    check_options,
    file_names,
)
from ..console.input_files import InputFiles, read_paths
from ..reports.report_flags import add_report_flags, with_flags

if TYPE_CHECKING:
    from ...config.lint.checks import CheckOptions
    from ...config.lint.reports.report import ValidationReport

FORMATS: Final = ("text", "json", "github", "gitlab", "junit", "sarif")


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "validate",
        description="Checks KubeSchedulerConfigurations, Schedulers, KubeSchedulers, "
        "SchedulerProfiles, SchedulerExtenders, SecondarySchedulers, LoadPolicies, "
        "OperatorSettings and crane's DynamicSchedulerPolicies as kube-scheduler and the operator "
        "do, without a cluster. It finds configurations and flags also in ConfigMaps, Deployments, "
        "static Pods, files of kubeadm, kind, k3d, kops, Kubespray, RKE, k3s, Talos, AKS and "
        "Gardener, and in Helm values. The exit code is 0 if the scheduler would start, 1 if it "
        "would not, 2 for invalid usage or if there is nothing to check; warnings affect it only "
        "with --strict or --severity, and findings in a --baseline do not.",
    )
    add_file_arguments(parser, "what to check")
    add_check_flags(parser)
    add_place_flag(parser)
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
    add_report_flags(parser)
    parser.add_argument("-o", "--output", choices=FORMATS, default="text", help="default: text")
    parser.set_defaults(run=run)


@prints_errors()
def run(args: argparse.Namespace) -> int:
    from ...base.findings import ERROR
    from ..reports.findings import report_text

    options = check_options(args, args.platform)
    options = replace(options, images=options.images.extended_by(args.allowed_images))
    report = _checked(args, options)
    sys.stdout.write(report_text(report, options.gates.version.short, args.output))
    return 1 if report.count(ERROR) else 0


def _checked(args: argparse.Namespace, options: CheckOptions) -> ValidationReport:
    """Check the files that the arguments name.

    Raises:
        UsageError: there is nothing to read or to check.
    """
    from ...config.lint.validate import validate

    files = read_paths(file_names(args))
    report = validate(files.contents, options, found=files.found)
    if report.is_empty:
        raise UsageError(*_nothing(report, files))
    return with_flags(args, report, files.contents)


def _nothing(report: ValidationReport, files: InputFiles) -> Sequence[str]:
    from ...config.lint.documents.other_files import CHECKED, counted_kinds

    named = [finding for finding in report.findings if finding.file not in files.found]
    if named and not files.found:
        lines = dict.fromkeys(f"{finding.file}: {finding.message}" for finding in named)
        return _indented(*lines, CHECKED)
    count = len(files.contents)
    who = f"none of the {count} files has" if count > 1 else f"{files.contents[0][0]} has no"
    what = f"{who}{' a' if count > 1 else ''} scheduler configuration, and no kube-scheduler"
    kinds = counted_kinds([kind for _, kind in report.others])
    others = f": {kinds}" if kinds else ""
    return _indented(f"{what}{others}", *report.remarks, CHECKED)


def _indented(first: str, *others: str) -> Sequence[str]:
    """Indent lines below the first word of the first, so that they read as one error."""
    return first, *(f"       {line}" for line in others)
