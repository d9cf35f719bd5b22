"""`convert` of a scheduler configuration that names crane's plugin Dynamic: the objects instead."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from .common import CommandError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ...migrate.crane_dynamic import Dynamic
    from ...migrate.objects import Converted
    from ...schedulerconfig.check import Target

CONTROL_PLANE: Final = "control-plane"
SECOND: Final = "second"

_NAME: Final = re.compile(r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?")


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Register the options."""
    group = parser.add_argument_group(
        "crane-scheduler",
        "A configuration that enables the plugin Dynamic becomes a LoadPolicy, a SchedulerExtender "
        "and what is left of the configuration, for kubectl apply.",
    )
    group.add_argument(
        "--load-policy",
        metavar="FILE",
        help="the DynamicSchedulerPolicy (default: in the same file, or beside it under the name "
        "that policyConfigPath has)",
    )
    group.add_argument(
        "--as",
        dest="role",
        choices=(CONTROL_PLANE, SECOND),
        default=CONTROL_PLANE,
        help="configure the control plane's scheduler (default), or make a SecondaryScheduler",
    )
    group.add_argument(
        "--name", help="of the SecondaryScheduler (default: the schedulerName, or crane-scheduler)"
    )
    group.add_argument(
        "--namespace",
        default="kube-scheduler-operator",
        help="where the SecondaryScheduler runs (default: %(default)s)",
    )
    group.add_argument(
        "--prometheus",
        default="",
        metavar="URL",
        help="of the Prometheus that has crane's recording rules (default: node-metrics measures)",
    )


def convert_policies(documents: Sequence[Any], args: argparse.Namespace) -> list[dict[str, Any]]:
    """The LoadPolicy of each DynamicSchedulerPolicy; the changes are told.

    Raises:
        CommandError: one cannot be converted.
    """
    from ...load.policy import LoadPolicyError
    from ...migrate.crane_scheduler import convert_policy, load_policy_object

    results = []
    for _where, document in _policies(documents):
        try:
            loaded, changes = convert_policy(document)
        except LoadPolicyError as error:
            raise CommandError(str(error)) from error
        results.append(load_policy_object(loaded.policy, prometheus=args.prometheus))
        for change in changes:
            print(f"{change.severity.value}: {change.text}", file=sys.stderr)
    return results


def convert_scheduler(
    dynamic: Dynamic, documents: Sequence[Any], target: Target, args: argparse.Namespace
) -> Converted:
    """What comes of a configuration that enables Dynamic.

    Raises:
        CommandError: its policy is not there, or wrong.
        ConversionError: the rest of it cannot be converted.
    """
    from ...load.policy import LoadPolicyError
    from ...migrate.crane_scheduler import convert_dynamic, convert_policy

    where, document = _policy(dynamic, documents, args)
    try:
        loaded, changes = convert_policy(document)
    except LoadPolicyError as error:
        raise CommandError(f"{where}: {error}") from error
    return convert_dynamic(
        dynamic,
        loaded,
        changes,
        target,
        second=_second(dynamic, args),
        namespace=args.namespace,
        prometheus=args.prometheus,
    )


def is_load_policy(document: Any) -> bool:
    """True for what is read here."""
    from ...migrate.crane_scheduler import is_dynamic_policy

    return is_dynamic_policy(document)


def _second(dynamic: Dynamic, args: argparse.Namespace) -> str | None:
    from ...migrate.crane_scheduler import SECOND_NAME
    from ...schedulerconfig.warnings import DEFAULT_SCHEDULER

    if args.role == CONTROL_PLANE:
        return None
    own = dynamic.uses[0].name
    name = str(args.name or (SECOND_NAME if own == DEFAULT_SCHEDULER else own))
    if not _NAME.fullmatch(name) or name == DEFAULT_SCHEDULER:
        raise CommandError(
            f'"{name}" cannot be the name of a SecondaryScheduler; give one by --name: at most 40 '
            "lower case letters, digits and dashes, beginning with a letter"
        )
    return name


def _policy(
    dynamic: Dynamic, documents: Sequence[Any], args: argparse.Namespace
) -> tuple[str, Any]:
    """(where it is, the DynamicSchedulerPolicy): as told, from the same file, or from beside it."""
    from ..commands.convert import read_documents

    if args.load_policy:
        found = list(_policies(read_documents(args.load_policy)))
        if len(found) != 1:
            raise CommandError(
                f"--load-policy {args.load_policy} has {len(found)} DynamicSchedulerPolicies in "
                "it; give a file with one"
            )
        return args.load_policy, found[0][1]
    found = list(_policies(documents))
    named = [each for each in found if each[0] == PurePosixPath(dynamic.policy_path).name]
    if len(named or found) == 1:
        return args.file, (named or found)[0][1]
    if not found and args.file != "-":
        beside = Path(args.file).parent / PurePosixPath(dynamic.policy_path).name
        if beside.is_file():
            inside = list(_policies(read_documents(str(beside))))
            if len(inside) == 1:
                return str(beside), inside[0][1]
    how_many = "more than one policy is" if found else "its policy is not"
    raise CommandError(
        f"the plugin Dynamic reads {dynamic.policy_path} on the node, and {how_many} in the file; "
        "give it with --load-policy"
    )


def _policies(documents: Sequence[Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(key of a ConfigMap or nothing, document) of all DynamicSchedulerPolicies."""
    from ..commands.convert import inner_document

    for document in documents:
        if is_load_policy(document):
            yield "", document
        elif isinstance(document, dict) and document.get("kind") == "ConfigMap":
            data = document.get("data")
            for key, text in (data if isinstance(data, dict) else {}).items():
                inner = inner_document(text)
                if isinstance(inner, dict) and is_load_policy(inner):
                    yield str(key), inner
