"""Flags that several commands have."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...config.language.versions import DEFAULT_VERSION
from .errors import UsageError, named
from .output import print_remark

if TYPE_CHECKING:
    from ...config.language.versions import Version
    from ...config.lint.checks import CheckOptions


def add_cluster_flags(parser: argparse.ArgumentParser, *, several: bool = False) -> None:
    """Add `--kubeconfig`, `--context`, `--as` and its companions, and `--platform`.

    With `several`, also `--all-contexts` and `--watch`: the flags of `answering`.
    """
    parser.add_argument("--kubeconfig", help="default: $KUBECONFIG, then ~/.kube/config")
    more = "; several, separated by commas, are asked at the same time" if several else ""
    parser.add_argument("--context", help=f"the kubeconfig context to use{more}")
    if several:
        parser.add_argument(
            "--all-contexts", action="store_true", help="ask every context of the kubeconfig"
        )
        parser.add_argument(
            "-w",
            "--watch",
            action="store_true",
            help="print the answer again whenever it changes, until Ctrl-C",
        )
    parser.add_argument(
        "--as",
        dest="as_user",
        default="",
        metavar="USER",
        help="make the requests as this user, e.g. system:serviceaccount:NAMESPACE:NAME",
    )
    add_repeatable(parser, "--as-group", "GROUP", "and as a member of this group", dest="as_groups")
    parser.add_argument("--as-uid", default="", metavar="UID", help="and with this uid")
    add_platform_flag(parser)


def add_platform_flag(parser: argparse.ArgumentParser) -> None:
    """Add `--platform`; the help text repeats the values because importing them is slow."""
    parser.add_argument(
        "--platform",
        default="auto",
        help="kind of cluster: kubeadm, openshift, rke2 or managed (default: auto, detected)",
    )


def add_file_arguments(parser: argparse.ArgumentParser, what: str) -> None:
    """Add `FILE …` and `-f FILE`; `file_names` reads them."""
    parser.add_argument(
        "paths",
        nargs="*",
        metavar="FILE",
        help=f"{what}: a YAML or JSON file, a directory (with those below it), a pattern such as "
        "'conf/**/*.yaml', or - for standard input",
    )
    add_files_flag(parser, "the same as FILE")


def add_files_flag(parser: argparse.ArgumentParser, what: str) -> None:
    add_repeatable(parser, "-f --file", "FILE", what, dest="files")


def add_repeatable(
    parser: argparse.ArgumentParser, names: str, metavar: str, what: str, **options: Any
) -> None:
    """Add a flag with a list of values; `names` are separated by spaces."""
    parser.add_argument(
        *names.split(),
        action="append",
        default=[],
        metavar=metavar,
        help=f"{what}; can be repeated",
        **options,
    )


def add_version_flag(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument(
        "--kubernetes-version",
        default=DEFAULT_VERSION,
        metavar="VERSION",
        help=f"version of the kube-scheduler that will read {what} (default: %(default)s)",
    )


def file_names(args: argparse.Namespace) -> list[str]:
    """Return the files, directories and patterns of `add_file_arguments`.

    Raises:
        UsageError: no file is named.
    """
    names = [*args.paths, *args.files]
    if not names:
        raise UsageError("no file; name files or directories, or - for standard input")
    return names


def add_nodes_flag(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--nodes",
        type=int,
        default=12,
        metavar="N",
        help="maximum number of nodes in a table; 0: all (default: %(default)s)",
    )


def add_scheduler_flag(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--scheduler",
        metavar="NAME",
        help="a SecondaryScheduler (default: the control plane's scheduler; where the provider "
        "runs that, the one with the settings of Scheduler and KubeScheduler)",
    )


def add_output_flag(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o", "--output", choices=("text", "json", "yaml"), default="text", help="default: text"
    )


def add_place_flag(parser: argparse.ArgumentParser) -> None:
    """Add `--for` of `validate`; `check_options` reads it."""
    from ...config.lint.places import PLACES

    parser.add_argument(
        "--for",
        dest="place",
        metavar="NAME[:VERSION]",
        help="check against the program that reads the files: its plugins, and the fields that it "
        "rejects. One of "
        f"{', '.join(PLACES)}; optionally one of its versions",
    )


def add_check_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags that describe the kube-scheduler for which files are checked."""
    add_version_flag(parser, "the files")
    add_repeatable(
        parser,
        "--feature-gates",
        "NAME=true",
        "feature gates of that kube-scheduler, as in its own flag",
    )
    parser.add_argument(
        "--custom-image",
        action="store_true",
        help="accept plugins that Kubernetes' own kube-scheduler does not have",
    )


def check_options(args: argparse.Namespace, platform_name: str = "kubeadm") -> CheckOptions:
    """Read the flags of `add_check_flags`, for a platform.

    Raises:
        UsageError: a value is invalid.
    """
    from ...base.findings import listing
    from ...base.platform import PLATFORMS
    from ...config.language.feature_gates import Gates, parse_gates
    from ...config.language.plugins.in_tree_plugins import NEWEST, OLDEST, on_record
    from ...config.language.validation.newer_versions import newer_version_note
    from ...config.language.versions import Version
    from ...config.lint.checks import CheckOptions

    with named("--kubernetes-version"):
        version = Version.parse(args.kubernetes_version)
    with named("--feature-gates"):
        gates = Gates(version, parse_gates(args.feature_gates))
    stock = not args.custom_image and platform_name != "openshift"
    check_feature_gates(args.feature_gates, version, stock=stock)
    if note := newer_version_note(version):
        print_remark(f"note: {note}")
    elif not on_record(version):
        print_remark(
            f"note: Kubernetes {version.short} is not a known version ({OLDEST.short} to "
            f"{NEWEST.short}), so unknown fields and plugins are accepted"
        )
    platform = PLATFORMS.get(platform_name)
    if platform is None:
        raise UsageError(f'--platform: "{platform_name}" is not {listing(PLATFORMS)}')
    options = CheckOptions(gates, platform, stock=not args.custom_image)
    place = getattr(args, "place", None)
    if place is None:
        return options
    from ...config.lint.places import options_for

    with named("--for"):
        return options_for(place, options)


def check_feature_gates(values: Sequence[str], version: Version, *, stock: bool) -> None:
    """Refuse gates with which kube-scheduler of a version does not start.

    Raises:
        UsageError: there is one.
    """
    from ...config.language.feature_gates import FLAG
    from ...config.language.flags import validate_flags

    for problem in validate_flags({FLAG: values}, version, stock=stock):
        raise UsageError(f"--{FLAG}: {problem.sentence}")
