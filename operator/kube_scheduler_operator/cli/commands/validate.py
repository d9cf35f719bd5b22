"""`validate`: checks configuration files without a cluster."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ...base.progress import step
from ..console.errors import UsageError, named, prints_errors
from ..console.flags import (
    add_check_flags,
    add_file_arguments,
    add_place_flag,
    add_repeatable,
    check_options,
    file_names,
)
from ..console.input_files import InputFiles, read_paths
from ..console.output import counted, print_remark
from ..console.visible_stream import write_for_people

if TYPE_CHECKING:
    from ...config.lint.checks import CheckOptions
    from ...config.lint.reports.report import ValidationReport
    from ...config.lint.reports.report_settings import ReportSettings, Suppression

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
    _add_report_flags(parser)
    parser.add_argument("-o", "--output", choices=FORMATS, default="text", help="default: text")
    parser.set_defaults(run=run)


def _add_report_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--explain",
        nargs="?",
        const="",
        metavar="RULE",
        help="describe a rule, such as UnknownPlugin, with an example and its fix, and exit; "
        "without RULE, list all rules",
    )
    parser.add_argument("--strict", action="store_true", help="treat warnings as errors")
    add_repeatable(
        parser,
        "--severity",
        "RULE=SEVERITY",
        "error, warning or off for the warnings of a rule, also with --strict",
    )
    add_repeatable(
        parser,
        "--ignore",
        "'RULE[@FILE]: REASON'",
        "ignore the warnings of a rule, for JSON and files that cannot have a comment "
        "# kubectl-scheduler: ignore RULE: REASON; FILE may have wildcards",
    )
    parser.add_argument(
        "--baseline",
        metavar="FILE",
        help="do not report the findings in this file; only new ones affect the exit code",
    )
    parser.add_argument(
        "--write-baseline",
        action="store_true",
        help="write all findings into the file of --baseline, and exit with 0",
    )


@prints_errors()
def run(args: argparse.Namespace) -> int:
    from ...base.findings import ERROR
    from ..reports.findings import report_text

    if args.explain is not None:
        return _explain(args.explain)
    options = check_options(args, args.platform)
    options = replace(options, images=options.images.extended_by(args.allowed_images))
    report = _checked(args, options)
    text = report_text(report, options.gates.version.short, args.output)
    if args.output == "text":
        write_for_people(sys.stdout, text)
    else:
        sys.stdout.write(text)
    return 1 if report.count(ERROR) else 0


def _explain(name: str) -> int:
    """Print one rule, or without a name the list of all."""
    from ...base.findings import did_you_mean
    from ...config.lint.rules import RULES
    from ..reports.findings import rule_list, rule_named, rule_text

    rule = rule_named(name)
    if name and rule is None:
        hint = did_you_mean(name, RULES) or "; --explain without a value lists all rules"
        raise UsageError(f'--explain: "{name}" is not a rule{hint}')
    sys.stdout.write(rule_list(RULES.values()) if rule is None else rule_text(rule))
    return 0


def _checked(args: argparse.Namespace, options: CheckOptions) -> ValidationReport:
    """Check the files that the arguments name."""
    from ...config.lint.validate import validate

    files = read_paths(file_names(args))
    with step(f"checking {counted(len(files.contents), 'file')}"):
        report = validate(files.contents, options, found=files.found)
    if report.is_empty:
        raise UsageError(*_nothing(report, files))
    return _with_flags(args, report, files.contents)


def _nothing(report: ValidationReport, files: InputFiles) -> Sequence[str]:
    from ...config.lint.documents.other_files import CHECKED, counted_kinds

    named = [finding for finding in report.findings if finding.file not in files.found]
    if named and not files.found:
        lines = dict.fromkeys(f"{finding.file}: {finding.message}" for finding in named)
        fixes = dict.fromkeys(finding.fix for finding in named)
        return _indented(*lines, *fixes)
    count = len(files.contents)
    who = f"none of the {count} files has" if count > 1 else f"{files.contents[0][0]} has no"
    what = f"{who}{' a' if count > 1 else ''} scheduler configuration, and no kube-scheduler"
    kinds = counted_kinds([kind for _, kind in report.others])
    others = f": {kinds}" if kinds else ""
    return _indented(f"{what}{others}", *report.remarks, CHECKED)


def _indented(first: str, *others: str) -> Sequence[str]:
    """Indent lines below the first word of the first, so that they read as one error."""
    return first, *(f"       {line}" for line in others)


# --- what findings count ------------------------------------------------------------------------


def _with_flags(
    args: argparse.Namespace,
    report: ValidationReport,
    files: Sequence[tuple[str, str | bytes]],
) -> ValidationReport:
    """Apply the decisions of these flags and of comments in the files to a report.

    Raises:
        UsageError: a flag is invalid, or the baseline cannot be read or written.
    """
    from ...config.lint.reports.report_settings import baseline_of, with_settings

    if args.write_baseline and not args.baseline:
        raise UsageError("--write-baseline needs --baseline FILE, the file to write")
    settings = _settings(args)
    if args.write_baseline:
        report, _ = with_settings(report, files, settings)
        text = baseline_of(report.findings)
        with named(f"--baseline: {args.baseline}"):
            Path(args.baseline).write_text(text, encoding="utf-8")
        return replace(report, findings=(), accepted=report.findings)
    report, fixed = with_settings(report, files, settings)
    if fixed:
        print_remark(
            f"note: {fixed} of the findings in {args.baseline} no longer exist; shorten it with "
            "--write-baseline"
        )
    return report


def _settings(args: argparse.Namespace) -> ReportSettings:
    from ...config.lint.reports.report_settings import ReportSettings, Severities, read_baseline

    with named("--severity"):
        severities = Severities.parse(args.severity, strict=args.strict)
    ignored = tuple(_ignored(text) for text in args.ignore)
    if not args.baseline or args.write_baseline:
        return ReportSettings(severities, ignored)
    try:
        baseline = read_baseline(Path(args.baseline).read_text(encoding="utf-8"))
    except FileNotFoundError:
        message = f"--baseline: {args.baseline} does not exist; create it with --write-baseline"
        raise UsageError(message) from None
    except OSError as error:
        raise UsageError(f"--baseline: {args.baseline}: {error.strerror}") from None
    except ValueError as error:
        message = f"--baseline: {args.baseline}: {error}; create it again with --write-baseline"
        raise UsageError(message) from None
    return ReportSettings(severities, ignored, baseline)


def _ignored(text: str) -> Suppression:
    from ...config.lint.reports.report_settings import (
        Suppression,
        SuppressionError,
        parse_suppression,
    )

    names_at, colon, reason = text.partition(":")
    names, _, pattern = names_at.partition("@")
    try:
        rules, why = parse_suppression(f" {names.strip()}{colon}{reason}")
    except SuppressionError as error:
        raise UsageError(f'--ignore "{text}": {error}; {error.fix}') from None
    return Suppression(pattern.strip() or "*", None, 0, rules, why)
