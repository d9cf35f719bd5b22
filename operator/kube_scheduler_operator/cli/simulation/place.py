"""Where kube-scheduler runs for a question: on this machine, or in a Job of the cluster."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ...base.platform import Platform
from ...config.language.feature_gates import Gates
from ...config.language.plugins.effective_plugins import effective_plugins
from ...config.language.versions import Version
from ...kube.client import ApiClient
from ...kube.errors import KubeError
from ...simulate.cluster_version import ClusterVersion, version_of_scheduler
from ...simulate.find_program import ASSETS, candidates, find_binary, program_of_environment
from ...simulate.process import SimulationError, binary_version
from ...simulate.questions import NO_BINARY
from ...simulate.world import World
from ..console.errors import CommandError, UsageError, error_message
from .in_cluster import JobSimulator
from .running_scheduler import Operand, RunningConfiguration


class Place(NamedTuple):
    binary: Path
    job: JobSimulator | None = None  # that runs it in the cluster
    operand: Operand | None = None  # whose image the Job has; None: not that of a scheduler
    version: Version | None = None  # of the program; None: its image does not show it
    chosen: str = ""  # the flag or variable that chose the program; empty: its version did


async def place_of_cluster(
    api: ApiClient,
    platform: Platform,
    args: argparse.Namespace,
    world: World,
    cluster: ClusterVersion,
    needed: Sequence[RunningConfiguration],
    notes: list[str],
) -> Place:
    """Choose where to simulate a cluster: on this machine or in the cluster.

    A kube-scheduler on this machine answers at once, but only one of the cluster's version without
    plugins of others decides as the cluster's own does. Otherwise a Job with the very image runs
    it.

    `needed` has the schedulers of the question; the first one always runs. `notes` receives what
    the simulation does not consider.

    Raises:
        UsageError: no kube-scheduler can be run.
        CommandError, KubeError: the Job was asked for and cannot be made.
    """
    if args.local or args.kube_scheduler:
        if args.in_cluster:
            raise UsageError("--in-cluster cannot be combined with --kube-scheduler")
        return local_place(args, cluster)
    special = [one for one in needed if not has_all_plugins(cluster.version, one.config)]
    if not args.in_cluster and not special and (fitting := _fitting(cluster.version)) is not None:
        return fitting
    operand = (*special, *needed)[0].operand
    job = JobSimulator(api, platform, operand, args.job_namespace, args.job_node)
    try:
        await job.prepare(world)
    except (CommandError, KubeError) as error:
        if args.in_cluster:
            raise
        refused = f"it cannot run in the cluster: {error_message(error)}"
        try:
            place = local_place(args, cluster)
        except UsageError as missing:
            raise CommandError(f"{missing}; {refused}") from None
        notes.append(refused)
        return place
    shown = version_of_scheduler(operand.image) if operand else cluster.version
    return Place(NO_BINARY, job, operand, shown)


def local_place(args: argparse.Namespace, cluster: ClusterVersion) -> Place:
    try:
        binary = find_binary(args.kube_scheduler, str(cluster.version or ""))
        version = binary_version(binary)
    except SimulationError as error:
        raise UsageError(str(error)) from None
    chosen = "--kube-scheduler" if args.kube_scheduler else ""
    if not chosen and binary == program_of_environment():
        chosen = f"${ASSETS}"
    return Place(binary, version=version, chosen=chosen)


def has_all_plugins(version: Version | None, config: Mapping[str, Any] | None) -> bool:
    """Return whether a kube-scheduler of this version has all plugins of a configuration."""
    if version is None:
        return False
    profiles, gates = (config or {}).get("profiles") or (), Gates(version)
    return not any(effective_plugins(profile, gates).unknown for profile in profiles)


def _fitting(own: Version | None) -> Place | None:
    """Return a program of the cluster's version on this machine."""
    if own is None:
        return None
    for binary in candidates(str(own)):
        try:
            version = binary_version(binary)
        except SimulationError:
            continue
        if version.short == own.short:
            return Place(binary, version=version)
    return None
