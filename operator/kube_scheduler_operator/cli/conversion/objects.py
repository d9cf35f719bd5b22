"""`convert` to objects of the operator's API: for the control plane or for a second scheduler.

The configurations and policies of crane-scheduler always become objects.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Final

from ...base.objects import mapping
from ...config.language.schema import DEFAULT_SCHEDULER
from ...config.language.validation.configuration import Target
from ...config.migrate.changes import ConversionLog
from ...config.migrate.convert import Conversion
from ...config.migrate.crane_scheduler import (
    SECOND_NAME,
    DynamicConfig,
    SecondScheduler,
    convert_dynamic,
    convert_dynamic_policy,
    is_dynamic_policy,
    load_policy_object,
)
from ...config.migrate.kube_safe_scheduler import convert_agents
from ...config.migrate.operator_objects import (
    DEFAULT_NAME,
    ConvertedObjects,
    control_plane_objects,
    secondary_objects,
    served_names,
)
from ...scheduling.load.policy import LoadPolicyError
from ..console.errors import CommandError, UsageError
from ..console.flags import file_names
from ..console.input_files import embedded_document, read_documents
from ..console.output import print_remark

CONTROL_PLANE: Final = "control-plane"
SECOND: Final = "second"

_NAME: Final = re.compile(r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?")


def add_flags(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "objects",
        "A configuration is converted to objects for kubectl apply with --to, if it enables "
        "crane's plugin Dynamic, or if the file also has the agents of kube-safe-scheduler.",
    )
    group.add_argument(
        "--to",
        dest="role",
        choices=(CONTROL_PLANE, SECOND),
        help="control-plane: SchedulerProfiles and SchedulerExtenders of the control plane's "
        "scheduler; second: a SecondaryScheduler and its SchedulerExtenders (default: a "
        "configuration file; for crane control-plane, for kube-safe-scheduler second)",
    )
    group.add_argument("--profiles", action="store_true", help="the same as --to control-plane")
    group.add_argument(
        "--name",
        help="name of the SecondaryScheduler (default: the schedulerName, or "
        f"{DEFAULT_NAME} instead of {DEFAULT_SCHEDULER})",
    )
    group.add_argument(
        "--namespace",
        default="kube-scheduler-operator",
        help="namespace of the SecondaryScheduler (default: %(default)s)",
    )
    group = parser.add_argument_group(
        "crane-scheduler",
        "A configuration that enables the plugin Dynamic is converted to a LoadPolicy, a "
        "SchedulerExtender and the rest of the configuration, for kubectl apply.",
    )
    group.add_argument(
        "--load-policy",
        metavar="FILE",
        help="the DynamicSchedulerPolicy (default: in the same file, or in the same directory "
        "under the name in policyConfigPath)",
    )
    group.add_argument(
        "--prometheus",
        default="",
        metavar="URL",
        help="the Prometheus with crane's recording rules (default: use node-metrics instead)",
    )


def check_flags(args: argparse.Namespace) -> None:
    """Refuse options that contradict each other, and set `role` for --profiles."""
    if args.profiles and args.role == SECOND:
        raise UsageError(
            "--profiles makes SchedulerProfiles of the control plane's scheduler, and --to second "
            "a SecondaryScheduler; use one of them"
        )
    if args.profiles:
        args.role = CONTROL_PLANE
    if args.name and args.role == CONTROL_PLANE:
        raise UsageError("--name is the name of a SecondaryScheduler; use it with --to second")


def _secondary_name(served: Sequence[str], default: str, args: argparse.Namespace) -> str:
    """Name the SecondaryScheduler: from the flag, or after the first schedulerName.

    `served` are the schedulerNames of its profiles; `default` replaces default-scheduler.

    Raises:
        CommandError: the name is invalid.
    """
    first = served[0]
    name = str(args.name or (default if first == DEFAULT_SCHEDULER else first))
    if not _NAME.fullmatch(name) or name == DEFAULT_SCHEDULER:
        raise CommandError(
            f'"{name}" is not a valid name of a SecondaryScheduler; set one with --name: at most '
            "40 lower-case letters, digits and dashes, starting with a letter"
        )
    return name


def convert_objects(
    conversion: Conversion, documents: Sequence[Any], used: set[str], args: argparse.Namespace
) -> ConvertedObjects:
    """Convert a configuration to objects, if it does not stay a configuration.

    `documents` are all documents of the file, and `used` has the names of other SchedulerExtenders
    and receives the new ones.
    """
    config, report = conversion.config, ConversionLog()
    # Only manifests of kube-safe-scheduler have agents.
    if args.role != CONTROL_PLANE and config.get("extenders"):
        agents = convert_agents(
            conversion,
            documents,
            used=used,
            name=args.name or "",
            namespace=args.namespace,
        )
        if agents is not None:
            return agents
    if args.role is None:
        return ConvertedObjects((config,), conversion.changes, conversion.problems)
    if args.role == SECOND:
        served = served_names(config, args.name or "")
        name = _secondary_name(list(served), DEFAULT_NAME, args)
        objects = secondary_objects(config, name, args.namespace, served, used, report)
    else:
        objects = control_plane_objects(config, used, report)
    changes = tuple(dict.fromkeys((*conversion.changes, *report.changes())))
    return ConvertedObjects(tuple(objects), changes, conversion.problems)


# --- crane-scheduler ----------------------------------------------------------------------------


def convert_policies(documents: Sequence[Any], args: argparse.Namespace) -> list[dict[str, Any]]:
    """Convert each DynamicSchedulerPolicy to a LoadPolicy, and report the changes."""
    objects = []
    for _, document in _policies(documents):
        if args.role == SECOND:
            raise CommandError(
                "--to second needs a scheduler's configuration, and a LoadPolicy applies to all "
                "schedulers; omit --to, or add the configuration with the plugin Dynamic"
            )
        try:
            loaded, changes = convert_dynamic_policy(document)
        except LoadPolicyError as error:
            raise CommandError(str(error)) from error
        objects.append(load_policy_object(loaded.policy, prometheus=args.prometheus))
        for change in changes:
            print_remark(f"{change.severity.value}: {change.text}")
    return objects


def convert_scheduler(
    dynamic: DynamicConfig,
    documents: Sequence[Any],
    target: Target,
    used: set[str],
    args: argparse.Namespace,
) -> ConvertedObjects:
    """Convert a configuration that enables Dynamic.

    `used` has the names of other SchedulerExtenders, and receives the new ones.
    """
    where, document = _policy(dynamic, documents, args)
    try:
        loaded, changes = convert_dynamic_policy(document)
    except LoadPolicyError as error:
        raise CommandError(f"{where}: {error}") from error
    second = None
    if args.role == SECOND:
        name = _secondary_name(dynamic.names, SECOND_NAME, args)
        second = SecondScheduler(name, args.namespace)
    return convert_dynamic(
        dynamic,
        loaded,
        changes,
        target,
        used=used,
        second=second,
        prometheus=args.prometheus,
    )


def _policy(
    dynamic: DynamicConfig, documents: Sequence[Any], args: argparse.Namespace
) -> tuple[str, Any]:
    """Return (file, DynamicSchedulerPolicy): of the flag, the same file or its directory."""
    if args.load_policy:
        policies = list(_policies(read_documents(args.load_policy)))
        if len(policies) != 1:
            count = len(policies)
            raise CommandError(
                f"--load-policy {args.load_policy} contains {count} DynamicSchedulerPolicies; "
                "specify a file with one"
            )
        return args.load_policy, policies[0][1]
    policies = list(_policies(documents))
    file = file_names(args)[0]
    policy_name = PurePosixPath(dynamic.policy_path).name
    candidates = [policy for policy in policies if policy[0] == policy_name] or policies
    if len(candidates) == 1:
        return file, candidates[0][1]
    if not policies and file != "-":
        neighbour = Path(file).parent / policy_name
        if neighbour.is_file():
            inside = list(_policies(read_documents(str(neighbour))))
            if len(inside) == 1:
                return str(neighbour), inside[0][1]
    problem = "the file contains several policies" if policies else "the file does not contain it"
    raise CommandError(
        f"the plugin Dynamic reads {dynamic.policy_path} on the node, but {problem}; specify it "
        "with --load-policy"
    )


def _policies(documents: Sequence[Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield (key in a ConfigMap, or empty; document) of all DynamicSchedulerPolicies."""
    for document in documents:
        if is_dynamic_policy(document):
            yield "", document
        elif mapping(document).get("kind") == "ConfigMap":
            for key, text in mapping(document.get("data")).items():
                inner = embedded_document(text)
                if is_dynamic_policy(inner):
                    yield str(key), inner
