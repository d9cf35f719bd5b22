"""Chooses where kube-scheduler runs for a simulation: on this machine or in the cluster.

A kube-scheduler on this machine answers at once, but only one of the cluster's version without
plugins of others decides as the cluster's own does. Otherwise a Job with the very image runs it.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ...base.platform import Platform
from ...config.language.feature_gates import Gates
from ...config.language.plugins.effective_plugins import effective_plugins
from ...config.language.versions import Version
from ...kube.client import ApiClient
from ...kube.errors import KubeError
from ...simulate.process import SimulationError, binary_version, candidates, find_binary
from ...simulate.questions import NO_BINARY
from ...simulate.world import World
from ..console.errors import CommandError, UsageError, error_message
from .in_cluster import JobSimulator
from .running_scheduler import Operand


class Place(NamedTuple):
    binary: Path
    job: JobSimulator | None = None  # that runs it in the cluster


def place_of_files(args: argparse.Namespace) -> Place:
    """Choose this machine, for a world in files.

    Raises:
        UsageError: there is no kube-scheduler, or the cluster was asked for.
    """
    if args.in_cluster:
        raise UsageError("--in-cluster cannot be combined with --from-files")
    return _local(args, "")


async def place_of_cluster(
    api: ApiClient,
    platform: Platform,
    args: argparse.Namespace,
    world: World,
    config: Mapping[str, Any] | None,
    operand: Operand | None,
    notes: list[str],
) -> Place:
    """Choose where to simulate a cluster.

    `config` None: kube-scheduler's defaults; `operand` None: the cluster's own is not known.
    `notes` receives what the simulation does not consider.

    Raises:
        UsageError: no kube-scheduler can be run.
        CommandError, KubeError: the Job was asked for and cannot be made.
    """
    if args.local or args.kube_scheduler:
        if args.in_cluster:
            raise UsageError("--in-cluster cannot be combined with --kube-scheduler")
        place = _local(args, world.version)
        notes += _difference(place.binary, world.version)
        return place
    if not args.in_cluster and (binary := _fitting(world.version, config)) is not None:
        return Place(binary)
    job = JobSimulator(api, platform, operand, args.job_namespace, args.job_node)
    try:
        await job.prepare(world)
    except (CommandError, KubeError) as error:
        if args.in_cluster:
            raise
        refused = f"it cannot run in the cluster: {error_message(error)}"
        try:
            place = _local(args, world.version)
        except UsageError as missing:
            raise UsageError(f"{missing}; {refused}") from None
        notes += [*_difference(place.binary, world.version), refused]
        return place
    return Place(NO_BINARY, job)


def _local(args: argparse.Namespace, version: str) -> Place:
    try:
        return Place(find_binary(args.kube_scheduler, version))
    except SimulationError as error:
        raise UsageError(str(error)) from None


def _fitting(version: str, config: Mapping[str, Any] | None) -> Path | None:
    """Return a program of the cluster's version that has all plugins of a configuration."""
    try:
        own = Version.parse(version)
    except ValueError:
        return None
    profiles = (config or {}).get("profiles") or ()
    if any(effective_plugins(profile, Gates(own)).unknown for profile in profiles):
        return None
    for binary in candidates(version):
        try:
            if binary_version(binary).short == own.short:
                return binary
        except SimulationError:
            continue
    return None


def _difference(binary: Path, version: str) -> list[str]:
    try:
        used, own = binary_version(binary), Version.parse(version)
    except (SimulationError, ValueError) as error:
        return [f"the version of the cluster or of kube-scheduler: {error}"]
    if used.short == own.short:
        return []
    return [
        f"the simulation runs kube-scheduler {used.short}, but the cluster has {own.short}: "
        "choose its program with --kube-scheduler, or use --in-cluster"
    ]
