"""`kubectl scheduler adopt`: what adoption does with a cluster, and its configuration as objects.

The operator adopts by itself when it is installed; this command changes nothing.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from typing import TYPE_CHECKING

from ...base.findings import listing
from ...base.source.yaml_text import yaml_text
from ...config.migrate.changes import Severity
from ..console.errors import CommandError, UsageError, error_message
from ..console.flags import add_cluster_flags, add_output_flag
from ..console.output import json_text, print_document, print_remark, text_of

if TYPE_CHECKING:
    from ...base.platform import Platform
    from ...kube.api import Api
    from ...operator.controlplane.adoption.preview import AdoptionPreview
    from ..adoption.input import AdoptionInput, NodeFiles


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "adopt",
        description="Shows what adoption does with the schedulers that a cluster has: every "
        "setting of their static Pods, what is kept, what blocks, and how nodes differ. With "
        "--as-profiles, prints the adopted configuration file as objects for kubectl apply. The "
        "operator itself adopts when it is installed; this command changes nothing. The exit code "
        "is 0 if everything is adopted, 1 if something blocks or is not visible, 2 for invalid "
        "usage.",
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--dry-run", action="store_true", help="show what adoption does, setting by setting"
    )
    what.add_argument(
        "--as-profiles",
        action="store_true",
        help="print the adopted profiles and extenders as SchedulerProfiles and SchedulerExtenders",
    )
    parser.add_argument(
        "-f",
        "--file",
        action="append",
        default=[],
        metavar="[NODE=]PATH",
        help="a configuration file or a manifest that was copied from a node, or a directory with "
        "both; repeat it for each. With manifests, no cluster is read. A configuration file "
        "without NODE is that of all nodes",
    )
    add_cluster_flags(parser)
    add_output_flag(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from ...base.platform import KUBEADM, PLATFORMS
    from ..adoption.input import from_files, read_node_files
    from ..cluster.connection import connected

    try:
        if not (args.dry_run or args.as_profiles):
            raise UsageError(
                "the operator adopts schedulers by itself when it is installed; use --dry-run to "
                "see what it does, or --as-profiles for its configuration as objects"
            )
        files = read_node_files(args.file)
        if not files.manifests:
            return connected(partial(_live, files))(args)
        platform = KUBEADM if args.platform == "auto" else PLATFORMS.get(args.platform)
        if platform is None:
            raise UsageError(f'--platform: "{args.platform}" is not {listing(PLATFORMS)}')
        _check_platform(platform)
        return _show(from_files(files, platform), args)
    except CommandError as error:
        for line in error_message(error).splitlines():
            print_remark(f"error: {line}")
        return 2 if isinstance(error, UsageError) else 1


async def _live(files: NodeFiles, api: Api, platform: Platform, args: argparse.Namespace) -> int:
    from ..adoption.input import from_cluster

    _check_platform(platform)
    adoption = await from_cluster(api, platform, files)
    if not adoption.snapshot.operand_pods:
        labels = ",".join(f"{key}={value}" for key, value in platform.static_pod_labels)
        raise CommandError(
            f"no Pod in {platform.operand_namespace} has the labels {labels}; pass manifests of "
            "nodes with -f"
        )
    return _show(adoption, args)


def _check_platform(platform: Platform) -> None:
    if not platform.adopts_pods:
        raise CommandError(
            f"on the platform {platform.name} there are no settings of users in the manifests of "
            "schedulers; nothing is adopted"
        )


def _show(adoption: AdoptionInput, args: argparse.Namespace) -> int:
    from ...operator.controlplane.adoption.preview import preview as preview_adoption
    from ..adoption.output import as_document, as_record, lines, record_text

    for note in adoption.notes:
        print_remark(f"note: {note}")
    preview = preview_adoption(adoption.snapshot, adoption.reports)
    if args.as_profiles:
        return _print_objects(preview, args.output)
    if not preview.adopted.new:
        record = as_record(adoption, preview)
        print_document(record, args.output, record_text(adoption, preview))
        return 0
    document = as_document(adoption, preview)
    print_document(document, args.output, text_of(lines(adoption, preview)))
    return 0 if preview.adoptable else 1


def _print_objects(preview: AdoptionPreview, output: str) -> int:
    """Print objects for `kubectl apply`, and what happens when they are applied."""
    from ...base import names
    from ...operator.controlplane.adoption.as_objects import adopted_objects

    if preview.unseen:
        raise CommandError(
            *(
                f'{path} of node "{node}" is not visible in the API; copy it: -f {node}=FILE'
                for node, path in sorted(preview.unseen.items())
            )
        )
    if preview.findings:
        raise CommandError(*(finding.text for finding in preview.findings))
    adopted = adopted_objects(preview.adopted.config, preview.part(names.CONFIG, names.CONFIG_KEY))
    for change in adopted.changes:
        if change.severity is not Severity.SAME:
            print_remark(f"{change.severity.value}: {change.text}")
    if not adopted.objects:
        raise CommandError("no profile and no extender was adopted, so there is nothing to convert")
    print_remark(
        "note: applied, these objects replace the adopted profiles and extenders of the same names "
        "and URLs, in a new revision that is equal in effect; deleted, the adopted ones return"
    )
    if adopted.remaining:
        fields = ", ".join(adopted.remaining)
        print_remark(f"note: fields that stay adopted as they are: {fields}")
    if output == "json":
        document = {"apiVersion": "v1", "kind": "List", "items": list(adopted.objects)}
        sys.stdout.write(json_text(document))
    else:
        sys.stdout.write(yaml_text(list(adopted.objects)))
    return 0
