"""The tables of docs/checking.md: numbers of generated and rejected configurations."""

from __future__ import annotations

from collections import Counter
from functools import cache

from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.plugins.in_tree_plugins import (
    NEWEST,
    OLDEST,
    PRE_RELEASES,
)
from kube_scheduler_operator.config.language.validation.configuration import Target, validate_config
from kube_scheduler_operator.config.language.versions import Version

from .generate import GROUPS, configurations
from .model import Made

RUN = (34, 35, 36, 37, 38)
"""Versions whose kube-scheduler is available for comparison."""
BEGIN, END = "<!-- tables -->\n", "<!-- end of the tables -->\n"


@cache
def results(minor: int) -> tuple[tuple[Made, bool], ...]:
    """Every configuration for 1.`minor`, and whether it is rejected."""
    return tuple(
        (made, bool(validate_config(made.config, Target(Gates(Version(1, minor), made.gates)))))
        for made in configurations(minor)
    )


def tables() -> str:
    """Both tables: by class for the versions in RUN, and by version."""
    tried: dict[int, Counter[str]] = {}
    refused: dict[int, Counter[str]] = {}
    for minor in range(OLDEST.minor, NEWEST.minor + 1):
        tried[minor] = Counter(made.group for made, _ in results(minor))
        refused[minor] = Counter(made.group for made, is_rejected in results(minor) if is_rejected)
    heads = " | ".join(f"1.{minor}: tried | refused" for minor in RUN)
    lines = [f"| Class | {heads} |", "|---|" + "---:|---:|" * len(RUN)]
    for group in GROUPS:
        cells = " | ".join(f"{tried[m][group]} | {refused[m][group]}" for m in RUN)
        lines.append(f"| {group} | {cells} |")
    lines += ["", "| Version | Tried | Refused | Compared with |", "|---|---:|---:|---|"]
    for minor, counts in tried.items():
        with_what = "the program" if minor in RUN else "its sources, by hand"
        if minor in PRE_RELEASES:
            with_what = (
                f"{'the program' if minor in RUN else 'the sources'} of {PRE_RELEASES[minor]}"
            )
        total, bad = counts.total(), refused[minor].total()
        lines.append(f"| 1.{minor} | {total} | {bad} | {with_what} |")
    return "\n".join(lines) + "\n"


def with_tables(page: str) -> str:
    """The page with the tables as they are now."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{tables()}\n{END}{after}"
