"""`kubectl scheduler must-gather`: what somebody far away needs to help, in one folder."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ..lib import common

if TYPE_CHECKING:
    from datetime import datetime

    from ...base.platform import Platform
    from ...kube.api import Object
    from ...kube.client import ApiClient
    from ...kube.errors import ApiError
    from ...kube.resource import Resource

LINES: Final = "100000"
"""Of every log, the last ones."""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = subparsers.add_parser(
        "must-gather",
        help="collect everything that a report of a fault needs",
        description="Writes our objects, nodes, pods with their logs, events and ConfigMaps into a "
        "folder. Secrets are listed and never written. What may not be read is left out and named; "
        "the exit code is 1 then.",
    )
    parser.add_argument(
        "--dest", type=Path, metavar="DIR", help="a new folder (default: must-gather.local.TIME)"
    )
    common.add_cluster_flags(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Collect; 1 if something could not be read."""

    async def work(api: ApiClient, platform: Platform) -> int:
        from datetime import UTC, datetime

        now = datetime.now(UTC)
        destination = args.dest or Path(f"must-gather.local.{now:%Y%m%dT%H%M%SZ}")
        gatherer = _Gatherer(api, platform, _new_folder(destination))
        await gatherer.gather(now)
        print(f"{gatherer.written} files are in {destination}")
        for missing in gatherer.missing:
            print(f"not there: {missing}", file=sys.stderr)
        return 1 if gatherer.missing else 0

    return common.run(args, work)


def _new_folder(path: Path) -> Path:
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        taken = any(path.iterdir())
    except OSError as error:
        raise common.CommandError(f"--dest {path}: {error.strerror}") from error
    if taken:
        raise common.CommandError(f"--dest {path} is not empty; name a new folder")
    return path


class _Gatherer:
    """Reads kind after kind and writes what it gets; what it does not get it remembers."""

    def __init__(self, api: ApiClient, platform: Platform, folder: Path) -> None:
        self.api = api
        self.platform = platform
        self.folder = folder
        self.found = False
        self.written = 0
        self.missing: list[str] = []

    async def gather(self, now: datetime) -> None:
        from ...kube import resource as kinds

        platform = self.platform
        ours = sorted({platform.operator_namespace, platform.target_namespace})
        self._write("timestamp", f"{now:%Y-%m-%dT%H:%M:%SZ}\n")
        for kind in (
            kinds.SCHEDULERS,
            kinds.KUBE_SCHEDULERS,
            kinds.SCHEDULER_PROFILES,
            kinds.LOAD_POLICIES,
            kinds.SCHEDULER_EXTENDERS,
            kinds.CLUSTER_OPERATORS,
            kinds.NODES,
        ):
            self._write_all(kind, await self._list(kind))
        for namespace in ours:
            for kind in (
                kinds.CONFIG_MAPS,
                kinds.EVENTS,
                kinds.SERVICE_ACCOUNTS,
                kinds.SECRETS,
                kinds.DEPLOYMENTS,
                kinds.DAEMON_SETS,
                kinds.JOBS,
                kinds.LEASES,
                kinds.DISRUPTION_BUDGETS,
                kinds.ROLES,
                kinds.ROLE_BINDINGS,
            ):
                self._write_all(kind, await self._list(kind, namespace))
            await self._pods(namespace)
        operand = platform.operand_namespace
        if operand not in ours:
            # Others live there as well: what is theirs stays out.
            labels = ",".join(f"{key}={value}" for key, value in platform.static_pod_labels)
            await self._pods(operand, labels)
            self._write_all(kinds.EVENTS, await self._list(kinds.EVENTS, operand))
            name = f"metadata.name={platform.operand_lease_name}"
            found = await self._list(kinds.LEASES, platform.operand_lease_namespace, fields=name)
            self._write_all(kinds.LEASES, found)

    async def _pods(self, namespace: str, labels: str | None = None) -> None:
        from ...kube.resource import PODS
        from ..lib.must_gather_tree import is_one_of_many, logs_of

        pods = await self._list(PODS, namespace, labels=labels)
        self._write_all(PODS, pods)
        for pod in pods:
            if is_one_of_many(pod):
                continue
            for container, previous in logs_of(pod):
                await self._log(namespace, pod["metadata"]["name"], container, previous=previous)

    async def _log(self, namespace: str, pod: str, container: str, *, previous: bool) -> None:
        from ...kube.errors import ApiError, Invalid, NotFound
        from ...kube.resource import PODS, ObjectRef
        from ..lib.must_gather_tree import log_path, redacted_text

        asked = {"container": container, "tailLines": LINES, "timestamps": "true"}
        if previous:
            asked["previous"] = "true"
        try:
            text = await self.api.get_text(ObjectRef(PODS, namespace, pod), "log", **asked)
        except NotFound:
            return  # the pod has gone since it was listed
        except Invalid as error:
            text = f"{error}\n"  # the kubelet has removed the log of a container that ended
        except ApiError as error:
            self._missed(error)
            return
        self._write(log_path(namespace, pod, container, previous=previous), redacted_text(text))

    async def _list(
        self,
        kind: Resource,
        namespace: str | None = None,
        *,
        labels: str | None = None,
        fields: str | None = None,
    ) -> list[Object]:
        from ...kube.errors import ApiError, NotFound
        from ...kube.resource import LOAD_POLICIES, SCHEDULER_EXTENDERS, SCHEDULER_PROFILES

        optional = (LOAD_POLICIES, SCHEDULER_EXTENDERS, SCHEDULER_PROFILES)
        try:
            found = await self.api.list(
                kind, namespace, label_selector=labels, field_selector=fields
            )
        except ApiError as error:
            if not (isinstance(error, NotFound) and kind in optional):
                self._missed(error)
            return []  # without these kinds the operator does its work as well
        self.found = True
        return found.items

    def _missed(self, error: ApiError) -> None:
        from ...kube.errors import Unauthorized, Unavailable

        # Without an API server or an identity there is nothing to gather.
        if isinstance(error, Unauthorized | Unavailable) and not self.found:
            raise error
        self.missing.append(common.sentence(error))

    def _write_all(self, kind: Resource, objects: list[Object]) -> None:
        from ..lib.must_gather_tree import files

        for path, text in files(kind, objects).items():
            self._write(path, text)

    def _write(self, path: str, text: str) -> None:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        self.written += 1
