"""`convert` to objects of the operator's API: for the control plane or for a second scheduler."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from typing import Any, Final

from ...config.language.schema import DEFAULT_SCHEDULER
from ...config.migrate.changes import ConversionLog
from ...config.migrate.convert import Conversion
from ...config.migrate.kube_safe_scheduler import convert_agents
from ...config.migrate.operator_objects import ConvertedObjects
from ...config.migrate.scheduler_objects import (
    DEFAULT_NAME,
    control_plane_objects,
    secondary_objects,
    served_names,
)
from ..console.errors import CommandError, UsageError

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


def check_flags(args: argparse.Namespace) -> None:
    """Check that the options agree, and set `role` for --profiles.

    Raises:
        UsageError: they contradict each other.
    """
    if args.profiles and args.role == SECOND:
        raise UsageError(
            "--profiles makes SchedulerProfiles of the control plane's scheduler, and --to second "
            "a SecondaryScheduler; use one of them"
        )
    if args.profiles:
        args.role = CONTROL_PLANE
    if args.name and args.role == CONTROL_PLANE:
        raise UsageError("--name is the name of a SecondaryScheduler; use it with --to second")


def secondary_name(served: Sequence[str], default: str, args: argparse.Namespace) -> str:
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
) -> ConvertedObjects | None:
    """Convert a configuration to objects; None if it stays a configuration.

    `documents` are all documents of the file, and `used` has the names of other SchedulerExtenders
    and receives the new ones.

    Raises:
        CommandError: the name of the SecondaryScheduler is invalid.
    """
    config, report = conversion.config, ConversionLog()
    # Only manifests of kube-safe-scheduler have agents.
    if args.role != CONTROL_PLANE and config.get("extenders"):
        agents = convert_agents(
            config,
            conversion.changes,
            conversion.problems,
            documents,
            used=used,
            name=args.name or "",
            namespace=args.namespace,
        )
        if agents is not None:
            return agents
    if args.role is None:
        return None
    if args.role == SECOND:
        served = served_names(config, args.name or "")
        name = secondary_name(list(served), DEFAULT_NAME, args)
        objects = secondary_objects(config, name, args.namespace, served, used, report)
    else:
        objects = control_plane_objects(config, used, report)
    changes = tuple(dict.fromkeys((*conversion.changes, *report.changes())))
    return ConvertedObjects(tuple(objects), changes, conversion.problems)
