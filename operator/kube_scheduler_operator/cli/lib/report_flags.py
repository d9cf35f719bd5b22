"""Flags of `validate` that decide how findings are reported."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any, Final

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
        """Print and exit, as --help does."""
        from ...base.findings import did_you_mean
        from ...offline.rules import RULES
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
    """Register them."""
    parser.add_argument(
        "--explain",
        nargs="?",
        action=Explain,
        metavar="RULE",
        help="describe a rule, such as UnknownPlugin, with an example and its fix, and exit; "
        "without RULE, list all rules",
    )
