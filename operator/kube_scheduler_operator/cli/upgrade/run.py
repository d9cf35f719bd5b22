"""Runs `check --upgrade`: reads a cluster or files, and prints the report."""

from __future__ import annotations

import argparse
import asyncio
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from ...base.platform import KUBEADM, PLATFORMS, Platform
from ...config.effective.upgrades import Upgrade
from ...config.language.feature_gates import Gates
from ...config.language.plugins.in_tree_plugins import NEWEST, NEWEST_RELEASE
from ...config.language.versions import Version
from ...config.lint.checks import CheckOptions
from ...config.lint.upgrades import FilesUpgrade
from ...kube.client import ApiClient
from ...kube.errors import Forbidden
from ...kube.resource import LOAD_POLICIES, SCHEDULER_EXTENDERS
from ...simulate.configuration import default_configuration, profiles_of
from ...simulate.extenders import measured_at
from ...simulate.kinds import NODES, PODS
from ...simulate.questions import NO_BINARY
from ...simulate.read_cluster import read_cluster
from ...simulate.read_files import WorldFileError, read_files
from ...simulate.run_options import RunOptions
from ...simulate.upgrade_report import NOT_KNOWN
from ...simulate.upgrade_steps import upgrade_report
from ...simulate.world import World
from ..cluster.connection import connected
from ..console.errors import UsageError, error_message, named
from ..console.input_files import read_paths
from ..console.output import counted, first_names, print_document, text_of
from ..simulation.run import OwnObjects, Simulation, own_objects
from .cluster import cluster_upgrades, restrictions
from .lists import without_bulk
from .programs import Programs
from .trials import LocalTrials

_SECONDS: Final = 600.0
"""Limit of one run of a kube-scheduler."""
_KUBELET: Final = re.compile(rb'\bkubeletVersion"?\s*:\s*"?(v?\d[\w.+-]*)')
"""The version of a Node, in YAML or JSON; a world does not have it."""


def check_upgrade(args: argparse.Namespace) -> int:
    """Print what an upgrade changes; return the exit code.

    Raises:
        UsageError: a flag or a file cannot be used.
    """
    with named("--upgrade"):
        target = Version.parse(args.upgrade)
    newest = Version(NEWEST_RELEASE.major, NEWEST_RELEASE.minor + 1)
    if (target.major, target.minor) > (newest.major, newest.minor):
        raise UsageError(f"--upgrade: {target.short} is not known; the newest is {newest.short}")
    programs = Programs(args.kube_scheduler)
    if args.from_files:
        upgrade = _in_files(args)
        return asyncio.run(_show(args, [upgrade], _of_files(args, upgrade, programs), target))
    if args.kubernetes_version:
        raise UsageError("--kubernetes-version is for --from-files: a cluster shows its version")

    async def work(api: ApiClient, platform: Platform, _: argparse.Namespace) -> int:
        upgrades = await cluster_upgrades(api, platform)
        version = max((str(upgrade.version) for upgrade in upgrades), default="")
        trials = await _of_cluster(api, version, programs)
        return await _show(args, upgrades, trials, target)

    return connected(work, failure=NOT_KNOWN)(args)


async def _show(
    args: argparse.Namespace,
    upgrades: Sequence[Upgrade],
    trials: LocalTrials,
    target: Version,
) -> int:
    if all(upgrade.version.minor >= target.minor for upgrade in upgrades):
        running = max((upgrade.version for upgrade in upgrades), default=target)
        raise UsageError(f"--upgrade: {running.short} runs already; name a newer version")
    report = await upgrade_report(upgrades, trials, target)
    report = replace(report, notes=[*restrictions(upgrades), *report.notes])
    print_document(report.document(), args.output, text_of(report.lines()))
    return report.code


def _simulation(world: World, own: OwnObjects, now: float | None) -> Simulation:
    options = RunOptions(NO_BINARY, default_configuration(), seconds=_SECONDS, now=now)
    if not own.extenders:
        world.drop_annotations()
    return Simulation(world, options, notes=list(world.notes), own=own)


async def _of_cluster(api: ApiClient, version: str, programs: Programs) -> LocalTrials:
    own = await own_objects(api)
    try:
        world = await read_cluster(api, annotations=bool(own.extenders))
    except Forbidden as error:
        return LocalTrials(programs, None, error_message(error))
    world.version = version
    return LocalTrials(programs, _simulation(world, own, None))


# --- files ----------------------------------------------------------------------------------------


def _in_files(args: argparse.Namespace) -> FilesUpgrade:
    """Return the schedulers in files, with the version that runs now.

    Raises:
        UsageError: a file cannot be read, or nothing shows that version.
    """
    platform = PLATFORMS.get(args.platform, KUBEADM)
    files = read_paths(args.from_files).contents
    options = CheckOptions(Gates(NEWEST), platform, stock=not platform.cluster_config)
    checked = [(name, without_bulk(content)) for name, content in files]
    upgrade = FilesUpgrade(checked, options)
    if args.kubernetes_version:
        with named("--kubernetes-version"):
            current = Version.parse(args.kubernetes_version)
    else:
        current = upgrade.shown or _kubelets(files)
    return replace(upgrade, options=replace(options, gates=Gates(current)))


def _kubelets(files: Sequence[tuple[str, str | bytes]]) -> Version:
    """Return the oldest version of the nodes in files.

    Raises:
        UsageError: no file has one.
    """
    versions = []
    for _, content in files:
        data = content.encode() if isinstance(content, str) else content
        for match in _KUBELET.finditer(data):
            with suppress(ValueError):
                versions.append(Version.parse(match[1].decode()))
    if not versions:
        raise UsageError(
            "the files show no version of Kubernetes: name the one that runs with "
            "--kubernetes-version"
        )
    return min(versions)


def _world_of(paths: Sequence[str]) -> tuple[World, OwnObjects]:
    try:
        files = read_files([Path(name) for name in paths])
    except WorldFileError as error:
        raise UsageError(str(error)) from None
    own = OwnObjects(
        [obj for obj in files.own if obj.get("kind") == SCHEDULER_EXTENDERS.kind],
        [obj for obj in files.own if obj.get("kind") == LOAD_POLICIES.kind],
        from_files=True,
    )
    return files.world, own


def _of_files(args: argparse.Namespace, upgrade: FilesUpgrade, programs: Programs) -> LocalTrials:
    world, own = _world_of(args.from_files)
    if not world.objects[NODES]:
        return LocalTrials(
            programs, None, "the files have no Node (kubectl get nodes,pods -A -o yaml)"
        )
    simulation = _simulation(world, own, measured_at(world))
    contents = upgrade.contents(upgrade.version)
    if not any(content.title for content in contents):
        simulation.notes.append(
            "no file has the configuration or the flags of a scheduler, so kube-scheduler runs "
            "with its defaults"
        )
    served = {
        profile["schedulerName"] for content in contents for profile in profiles_of(content.config)
    }
    others = {str(pod["spec"]["schedulerName"]) for pod in world.all(PODS)} - served
    if others:
        simulation.notes.append(
            f"Pods of {counted(len(others), 'schedulerName')} are left out, because the files do "
            f"not have its configuration: {first_names(sorted(others))}"
        )
    return LocalTrials(programs, simulation)
