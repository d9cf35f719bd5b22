"""`plugins`: the plugins of each extension point, with their order, weight and origin."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from ...base.findings import ERROR, listing
from ...base.platform import KUBEADM, PLATFORMS, Platform
from ...config.effective.objects import Objects
from ...config.effective.pipeline import effective
from ...config.language.feature_gates import Gates
from ...config.language.merging.merge import merge_semantically
from ...config.language.merging.presets import (
    DEFAULT_PROFILE,
    PRESETS,
    default_config,
    profile_fragment,
)
from ...config.language.plugins.plugin_origins import (
    BASE,
    PROFILE,
    Layer,
    ProfileTable,
    profile_tables,
)
from ...config.language.schema import KIND
from ...kube.api import Api
from ..answers.effective import read_running
from ..cluster.compare import gates_of
from ..cluster.connection import connected
from ..console.errors import CommandError, UsageError, prints_errors
from ..console.flags import (
    add_check_flags,
    add_cluster_flags,
    add_file_arguments,
    add_scheduler_flag,
    check_options,
    file_names,
)
from ..console.input_files import read_paths
from ..console.output import format_table, print_document, print_lines, text_of

FORMATS: Final = ("table", "wide", "json")


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command; as a kubectl plugin it reads the cluster by default."""
    parser = subparsers.add_parser(
        "plugins",
        description="Shows the plugins of every profile by extension point, in the order in which "
        "they run, with the weights of their scores. FROM is the origin: default (kube-scheduler), "
        "base (the named profile), profile (a configuration file) or override "
        "(unsupportedConfigOverrides). Without -f and --profile, kubectl scheduler plugins shows "
        "the latest revision that runs in the cluster.",
    )
    add_file_arguments(
        parser,
        "a KubeSchedulerConfiguration in any form that validate reads, or a SecondaryScheduler "
        "with its SchedulerProfiles and SchedulerExtenders",
    )
    parser.add_argument(
        "--profile",
        metavar="NAME",
        help=f"{listing(PRESETS)}, without a cluster; for a file or the cluster, the schedulerName "
        "of the profile to show",
    )
    add_check_flags(parser)
    parser.add_argument(
        "-o",
        "--output",
        choices=FORMATS,
        default="table",
        help="wide also shows disabled plugins and the origin of that (default: table)",
    )
    add_scheduler_flag(parser)
    add_cluster_flags(parser)
    parser.set_defaults(run=run, from_cluster=parser.prog.startswith("kubectl"))


@prints_errors()
def run(args: argparse.Namespace) -> int:
    if args.paths or args.files:
        config, layers, gates = _from_file(args)
        return _show(config, layers, gates, args.profile, args)
    named = args.profile in PRESETS
    if args.from_cluster and not named:
        return connected(_from_cluster)(args)
    if args.profile and not named:
        raise UsageError(
            f"profile {args.profile!r} does not exist; use {', '.join(PRESETS)}, or -f FILE"
        )
    platform = PLATFORMS.get(args.platform, KUBEADM)
    fragments = [profile_fragment(args.profile or DEFAULT_PROFILE), default_config(platform)]
    layers = [Layer(BASE, fragment) for fragment in fragments]
    return _show(merge_semantically(fragments), layers, check_options(args).gates, None, args)


def _from_file(args: argparse.Namespace) -> tuple[Mapping[str, Any], list[Layer], Gates]:
    from ...config.lint.checks import gates_of
    from ...config.lint.operator_objects import EXTENDER, SECONDARY, facts_of_files
    from ...config.lint.operator_objects import PROFILE as PROFILE_KIND
    from ...config.lint.validate import validate

    files = read_paths(file_names(args))
    name = ", ".join(file for file, _ in files.contents)
    options = check_options(args)
    validated = validate(files.contents, options, found=files.found)
    kinds = [item.kind for item in validated.items]
    secondary = kinds.count(SECONDARY) == 1 and set(kinds) <= {SECONDARY, PROFILE_KIND, EXTENDER}
    if not secondary and set(kinds) - {KIND}:
        raise UsageError(
            f"{name}: only a {KIND}, or one {SECONDARY} with SchedulerProfiles and "
            "SchedulerExtenders, has plugins; for other kinds use `compose` first"
        )
    for finding in validated.findings:
        if finding.severity == ERROR:
            line = f"{finding.file}:{finding.position.line}:{finding.position.column}"
            path = f"{finding.path}: " if finding.path else ""
            hint = f"see `validate {finding.file}`"
            raise CommandError(f"{line}: {path}{finding.message}; {hint}")
    values = [item.value for item in validated.items]
    if secondary:
        objects = Objects(
            scheduler={},
            profiles=tuple(value for value in values if value["kind"] == PROFILE_KIND),
            extenders=tuple(value for value in values if value["kind"] == EXTENDER),
            secondaries=tuple(value for value in values if value["kind"] == SECONDARY),
        )
        object_name = objects.secondaries[0]["metadata"]["name"]
        scheduler = effective(objects, facts_of_files(options)).secondaries.of(object_name)
        config = scheduler.composition.config
        return config, [Layer(PROFILE, config)], scheduler.target.gates
    if not values:
        raise UsageError(f"{name}: has no {KIND}, only the flags of a kube-scheduler")
    # kube-scheduler also reads only the first document.
    item = validated.items[0]
    gates = gates_of(options.gates, item.version, item.reader)
    return item.value, [Layer(PROFILE, item.value)], gates


async def _from_cluster(api: Api, platform: Platform, args: argparse.Namespace) -> int:
    running = await read_running(api, platform, args.scheduler)
    parsed = running.parsed
    if args.output != "json":
        print_lines(f"{running.title}, {parsed.image}", "")
    return _show(parsed.config, running.layers, gates_of(parsed), args.profile, args)


def _show(
    config: Mapping[str, Any],
    layers: Sequence[Layer],
    gates: Gates,
    only: str | None,
    args: argparse.Namespace,
) -> int:
    tables = profile_tables(config, layers, gates)
    chosen = [table for table in tables if only in (None, table.scheduler_name)]
    if not chosen:
        names = ", ".join(table.scheduler_name for table in tables)
        raise CommandError(f"profile {only!r} does not exist; use one of {names}")
    if args.output == "json":
        profiles = [_as_data(table) for table in chosen]
        document = {"kubernetesVersion": gates.version.short, "profiles": profiles}
        print_document(document, "json")
    else:
        texts = [render(table, wide=args.output == "wide") for table in chosen]
        print("\n\n".join(texts))
    return 0


def _as_data(table: ProfileTable) -> dict[str, Any]:
    def rows(by_point: Mapping[str, Iterable[Any]]) -> dict[str, Any]:
        return {point: [_row(row) for row in entries] for point, entries in by_point.items()}

    return {
        "schedulerName": table.scheduler_name,
        "points": rows(table.points),
        "off": rows(table.off),
        "unknown": [_row(row) for row in table.unknown],
    }


def _row(row: Any) -> dict[str, Any]:
    weight = {"weight": row.weight} if row.weight else {}
    return {"name": row.name, **weight, "from": row.origin}


def render(table: ProfileTable, *, wide: bool) -> str:
    """Render a table as text, without extension points that have no plugins."""
    rows = [("POINT", "PLUGIN", "WEIGHT", "FROM")]
    for point, running in table.points.items():
        shown_as = point
        for row in running:
            rows.append((shown_as, row.name, str(row.weight or ""), row.origin))
            shown_as = ""
        for row in table.off.get(point, ()) if wide else ():
            rows.append((shown_as, row.name, "off", row.origin))
            shown_as = ""
    rows += [("?", row.name, "", row.origin) for row in table.unknown]
    return text_of([f"profile {table.scheduler_name}", *format_table(rows)])
