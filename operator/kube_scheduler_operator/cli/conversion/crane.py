"""`convert` of crane-scheduler's configurations and policies to objects of the operator."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from ...config.language.validation.configuration import Target
from ...config.migrate.crane_dynamic import DynamicConfig
from ...config.migrate.crane_scheduler import (
    SECOND_NAME,
    SecondScheduler,
    convert_dynamic,
    convert_dynamic_policy,
    is_dynamic_policy,
    load_policy_object,
)
from ...config.migrate.operator_objects import ConvertedObjects
from ...scheduling.load.policy import LoadPolicyError
from ..console.errors import CommandError
from ..console.flags import file_names
from ..console.input_files import embedded_document, read_documents
from ..console.output import print_remark
from .objects import SECOND, secondary_name


def add_flags(parser: argparse.ArgumentParser) -> None:
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


def convert_policies(documents: Sequence[Any], args: argparse.Namespace) -> list[dict[str, Any]]:
    """Convert each DynamicSchedulerPolicy to a LoadPolicy, and report the changes.

    Raises:
        CommandError: one cannot be converted.
    """
    policies = [document for _, document in _policies(documents)]
    if args.role == SECOND and policies:
        raise CommandError(
            "--to second needs a scheduler's configuration, and a LoadPolicy applies to all "
            "schedulers; omit --to, or add the configuration with the plugin Dynamic"
        )
    objects = []
    for document in policies:
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

    Raises:
        CommandError: its policy is missing or invalid.
        ConversionError: the rest of it cannot be converted.
    """
    where, document = _policy(dynamic, documents, args)
    try:
        loaded, changes = convert_dynamic_policy(document)
    except LoadPolicyError as error:
        raise CommandError(f"{where}: {error}") from error
    second = None
    if args.role == SECOND:
        name = secondary_name(dynamic.names, SECOND_NAME, args)
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
        elif isinstance(document, dict) and document.get("kind") == "ConfigMap":
            data = document.get("data")
            for key, text in (data if isinstance(data, dict) else {}).items():
                inner = embedded_document(text)
                if isinstance(inner, dict) and is_dynamic_policy(inner):
                    yield str(key), inner
