"""Flags of `validate` that decide how findings are reported."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ..console.errors import UsageError, named
from ..console.flags import add_repeatable
from ..console.output import print_remark

if TYPE_CHECKING:
    from ...config.lint.reports.report import ValidationReport
    from ...config.lint.reports.report_settings import ReportSettings
    from ...config.lint.reports.suppressions import Suppression

WRONG_USAGE: Final = 2


class Explain(argparse.Action):
    """`--explain [RULE]`: prints one rule, or the list of all, and ends the program."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,  # noqa: ARG002
        values: str | Sequence[Any] | None,
        option_string: str | None = None,  # noqa: ARG002
    ) -> None:
        from ...base.findings import did_you_mean
        from ...config.lint.rules import RULES
        from .rule_output import rule_list, rule_named, rule_text

        if not values:
            sys.stdout.write(rule_list(RULES.values()))
            parser.exit()
        name = str(values)
        rule = rule_named(name)
        if rule is None:
            hint = did_you_mean(name, RULES) or "; --explain without a value lists all rules"
            parser.exit(WRONG_USAGE, f'error: --explain: "{name}" is not a rule{hint}\n')
        sys.stdout.write(rule_text(rule))
        parser.exit()


def add_report_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--explain",
        nargs="?",
        action=Explain,
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


def with_flags(
    args: argparse.Namespace,
    report: ValidationReport,
    files: Sequence[tuple[str, str | bytes]],
) -> ValidationReport:
    """Apply the decisions of these flags and of comments in the files to a report.

    Raises:
        UsageError: a flag is invalid, or the baseline cannot be read or written.
    """
    from ...config.lint.reports.report_settings import with_settings

    if args.write_baseline and not args.baseline:
        raise UsageError("--write-baseline needs --baseline FILE, the file to write")
    settings = _settings(args)
    if args.write_baseline:
        from ...config.lint.reports.baseline import baseline_of

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
    from ...config.lint.reports.report_settings import ReportSettings, Severities

    with named("--severity"):
        severities = Severities.parse(args.severity, strict=args.strict)
    ignored = tuple(_ignored(text) for text in args.ignore)
    if not args.baseline or args.write_baseline:
        return ReportSettings(severities, ignored)
    from ...config.lint.reports.baseline import read_baseline

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
    from ...config.lint.reports.suppressions import Suppression, SuppressionError, parse_suppression

    named, colon, reason = text.partition(":")
    names, _, pattern = named.partition("@")
    try:
        rules, why = parse_suppression(f" {names.strip()}{colon}{reason}")
    except SuppressionError as error:
        raise UsageError(f'--ignore "{text}": {error}; {error.fix}') from None
    return Suppression(pattern.strip() or "*", None, 0, rules, why)
