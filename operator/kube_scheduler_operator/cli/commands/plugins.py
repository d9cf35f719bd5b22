"""`plugins`: which plugins run where, in which order, with which weight, and who said so."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ..lib import common
from .validate import WRONG_USAGE, UsageError, add_target_flags, setting, shown, text

if TYPE_CHECKING:
    from ...base.platform import Platform
    from ...controlplane.revision.history import Revision
    from ...kube.client import ApiClient
    from ...schedulerconfig.feature_gates import Gates
    from ...schedulerconfig.plugin_origins import Layer, Table

FORMATS: Final = ("table", "wide", "json")


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command; as part of kubectl it asks the cluster, if nothing else is named."""
    parser = subparsers.add_parser(
        "plugins",
        help="which plugins run where, with their weights, and where each comes from",
        description="Shows the plugins of every profile by extension point, in the order in which "
        "they run, with the weight of their scores. FROM says who put them there: default "
        "(kube-scheduler), base (the named profile), profile (a configuration file), override "
        "(unsupportedConfigOverrides). Without -f and --profile, kubectl scheduler plugins shows "
        "what the cluster's newest revision that runs has.",
    )
    parser.add_argument(
        "-f",
        "--file",
        metavar="FILE",
        help="a KubeSchedulerConfiguration, or a SecondaryScheduler with its SchedulerProfiles "
        "and SchedulerExtenders; - "
        "for standard input",
    )
    parser.add_argument(
        "--profile",
        metavar="NAME",
        help="LowNodeUtilization, HighNodeUtilization or NoScoring, without a cluster; with -f, or "
        "of the cluster, only the profile with this schedulerName",
    )
    add_target_flags(parser)
    parser.add_argument(
        "-o",
        "--output",
        choices=FORMATS,
        default="table",
        help="wide: also what is off, and who switched it off (default: table)",
    )
    common.add_cluster_flags(parser)
    parser.set_defaults(run=run, from_cluster=parser.prog.startswith("kubectl"))


def run(args: argparse.Namespace) -> int:
    """Print the table; 2 for wrong usage, 1 for what cannot be shown."""
    from ...schedulerconfig.presets import DEFAULT_PROFILE, PROFILES

    try:
        if args.file is not None:
            config, layers, gates = _from_file(args)
            return _show(config, layers, gates, args.profile, args)
        named = args.profile in PROFILES
        if args.from_cluster and not named:
            return common.run(args, lambda api, platform: _from_cluster(api, platform, args))
        if args.profile and not named:
            raise UsageError(
                f"there is no profile {args.profile!r}; use {', '.join(PROFILES)}, or -f FILE"
            )
        config, layers = _named(args.profile or DEFAULT_PROFILE, args.platform)
        return _show(config, layers, setting(args).gates, None, args)
    except UsageError as error:
        sys.stderr.write(f"error: {error}\n")
        return WRONG_USAGE
    except common.CommandError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1


def _from_file(args: argparse.Namespace) -> tuple[Mapping[str, Any], list[Layer], Gates]:
    from ...base.findings import ERROR
    from ...offline.kinds import EXTENDER
    from ...offline.kinds import PROFILE as PROFILE_KIND
    from ...offline.secondary_schedulers import ALL_KINDS, SECONDARY, composed
    from ...offline.validate import validate
    from ...schedulerconfig.plugin_origins import PROFILE, Layer
    from ...schedulerconfig.schema import KIND
    from ...schedulerconfig.source import read

    name, content = shown(args.file), text(args.file)
    verdict = validate([(name, content)], setting(args), ALL_KINDS)
    kinds = [kind for _, kind in verdict.documents]
    further = kinds.count(SECONDARY) == 1 and set(kinds) <= {SECONDARY, PROFILE_KIND, EXTENDER}
    if not further and set(kinds) - {KIND}:
        raise UsageError(
            f"{name}: only a {KIND}, or one {SECONDARY} with SchedulerProfiles and "
            "SchedulerExtenders, has plugins; `compose` makes a configuration of other kinds"
        )
    for finding in verdict.findings:
        if finding.severity == ERROR:
            line = f"{name}:{finding.position.line}:{finding.position.column}"
            path = f"{finding.path}: " if finding.path else ""
            raise common.CommandError(f"{line}: {path}{finding.message}; see `validate -f {name}`")
    values = [document.value for document in read(content)[0]]
    if further:
        (obj,) = (value for value in values if value["kind"] == SECONDARY)
        others = [value for value in values if value is not obj]
        profiles = [value for value in others if value["kind"] == PROFILE_KIND]
        extenders = [value for value in others if value["kind"] == EXTENDER]
        made = composed(obj, profiles, extenders, setting(args))
        config = made.composition.config
        return config, [Layer(PROFILE, config)], made.target.gates
    # As kube-scheduler, which reads the first document only.
    return values[0], [Layer(PROFILE, values[0])], setting(args).gates


def _named(profile: str, platform: str) -> tuple[Mapping[str, Any], list[Layer]]:
    from ...base.platform import KUBEADM, PLATFORMS
    from ...schedulerconfig.merge import merge_by_meaning
    from ...schedulerconfig.plugin_origins import BASE, Layer
    from ...schedulerconfig.presets import default_config, profile_fragment

    layers = [profile_fragment(profile), default_config(PLATFORMS.get(platform, KUBEADM))]
    return merge_by_meaning(layers), [Layer(BASE, layer) for layer in layers]


async def _from_cluster(api: ApiClient, platform: Platform, args: argparse.Namespace) -> int:
    from ..lib.compare import gates_of, profiles_of, take_apart
    from .diff import running

    nodes = common.nodes_by_revision(await common.kubescheduler(api))
    revision = running(await common.revisions(api, platform), nodes)
    made = take_apart(revision.content)
    if profiles_of(made.config) is None:
        raise common.CommandError(
            f"the configuration of revision {revision.number} cannot be read; "
            "`kubectl scheduler diff` shows it"
        )
    if args.output != "json":
        print(f"revision {revision.number}, {made.image}\n")
    return _show(made.config, layers_of(revision, platform), gates_of(made), args.profile, args)


def layers_of(revision: Revision, platform: Platform) -> list[Layer]:
    """What a revision's configuration was laid together from, as its inputs say.

    Without them, as in revisions of an operator that did not keep them, all is one layer.
    """
    from ...controlplane.revision.inputs import read_inputs
    from ...schedulerconfig.plugin_origins import BASE, OVERRIDE, PROFILE, Layer
    from ...schedulerconfig.presets import PROFILES, default_config, profile_fragment
    from ..lib.compare import take_apart

    inputs = read_inputs(revision.inputs)
    if inputs is None:
        return [Layer(PROFILE, take_apart(revision.content).config)]
    profile = str(inputs.scheduler.get("profile") or "")
    base = profile_fragment(profile) if profile in ("", *PROFILES) else {}
    found = [Layer(BASE, base), Layer(BASE, default_config(platform))]
    observed = inputs.kubescheduler.get("observedConfig")
    if isinstance(observed, Mapping):
        found.append(Layer(PROFILE, observed))
    overrides = inputs.kubescheduler.get("unsupportedConfigOverrides")
    if isinstance(overrides, Mapping):
        found.append(Layer(OVERRIDE, overrides))
    return found


def _show(
    config: Mapping[str, Any],
    layers: Sequence[Layer],
    gates: Gates,
    only: str | None,
    args: argparse.Namespace,
) -> int:
    from ...schedulerconfig.plugin_origins import tables

    found = tables(config, layers, gates)
    chosen = [table for table in found if only in (None, table.scheduler_name)]
    if not chosen:
        names = ", ".join(table.scheduler_name for table in found)
        raise common.CommandError(f"there is no profile {only!r}; there are: {names}")
    if args.output == "json":
        common.print_document(
            {
                "kubernetesVersion": gates.version.short,
                "profiles": [_as_data(table) for table in chosen],
            },
            "json",
        )
    else:
        texts = [render(table, wide=args.output == "wide") for table in chosen]
        print("\n\n".join(texts))
    return 0


def _as_data(table: Table) -> dict[str, Any]:
    def rows(of: Mapping[str, Iterable[Any]]) -> dict[str, Any]:
        return {point: [_row(row) for row in entries] for point, entries in of.items()}

    return {
        "schedulerName": table.scheduler_name,
        "points": rows(table.points),
        "off": rows(table.off),
        "unknown": [_row(row) for row in table.unknown],
    }


def _row(row: Any) -> dict[str, Any]:
    weight = {"weight": row.weight} if row.weight else {}
    return {"name": row.name, **weight, "from": row.origin}


def render(table: Table, *, wide: bool) -> str:
    """A table as text; points at which nothing happens are left out."""
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
    return "\n".join([f"profile {table.scheduler_name}", *common.table(rows)])
