"""`kubectl scheduler must-gather`: collects diagnostic data in a directory.

The layout is that of `oc adm inspect`. The files do not contain confidential data: a Secret is
reduced to its name, type and keys, and private keys and credentials elsewhere (e.g. an extender's
tlsConfig.keyData) are redacted.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ...base import names
from ...base.json_text import bounded, exceeds_depth, read_json
from ...base.limits import OBJECT_DEPTH
from ...base.platform import Platform
from ...base.source.yaml_text import yaml_text
from ...kube import resource as kinds
from ...kube.api import ListResult, Object
from ...kube.errors import ApiError, Invalid, NotFound, Unauthorized, Unavailable
from ...kube.resource import Resource
from ..cluster.connection import connected
from ..console.errors import CommandError, error_message
from ..console.flags import add_cluster_flags
from ..console.output import print_lines, print_remark

if TYPE_CHECKING:
    from ...kube.client import ApiClient

LINES: Final = "100000"
"""The number of lines from the end of every log."""
_OPTIONAL: Final = {*kinds.CONFIGURED.values()} - {kinds.SCHEDULERS, kinds.KUBE_SCHEDULERS}
"""Kinds that the operator does not require."""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "must-gather",
        description="Writes the operator's objects, nodes, pods with their logs, events and "
        "ConfigMaps to a directory. The content of Secrets is never written. What cannot be read "
        "is reported, and the exit code is 1.",
    )
    parser.add_argument(
        "--dest", type=Path, metavar="DIR", help="new directory (default: must-gather.local.TIME)"
    )
    add_cluster_flags(parser)
    parser.set_defaults(run=connected(_gather))


async def _gather(api: ApiClient, platform: Platform, args: argparse.Namespace) -> int:
    now = datetime.now(UTC)
    destination = args.dest or Path(f"must-gather.local.{now:%Y%m%dT%H%M%SZ}")
    gatherer = _Gatherer(api, platform, _new_directory(destination))
    await gatherer.gather(now)
    print_lines(f"wrote {len(gatherer.paths)} files to {destination}")
    for missing in gatherer.missing:
        print_remark(f"missing: {missing}")
    return 1 if gatherer.missing else 0


def _new_directory(path: Path) -> Path:
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        taken = any(path.iterdir())
    except OSError as error:
        raise CommandError(f"--dest {path}: {error.strerror}") from error
    if taken:
        raise CommandError(f"--dest {path} is not empty; specify a new directory")
    return path


class _Gatherer:
    """Reads all kinds and writes their objects; `missing` has the errors."""

    def __init__(self, api: ApiClient, platform: Platform, directory: Path) -> None:
        self.api = api
        self.platform = platform
        self.directory = directory
        self._answered = False  # whether the API server answered a request
        self.paths: set[str] = set()  # of the files written
        self.missing: list[str] = []

    async def gather(self, now: datetime) -> None:
        platform = self.platform
        ours = sorted({platform.operator_namespace, platform.target_namespace})
        self._write("timestamp", f"{now:%Y-%m-%dT%H:%M:%SZ}\n")
        for kind in (*kinds.CONFIGURED.values(), kinds.CLUSTER_OPERATORS, kinds.NODES):
            await self._list(kind, keep=partial(self._write_now, kind))
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
                kinds.NETWORK_POLICIES,
                kinds.ROLES,
                kinds.ROLE_BINDINGS,
            ):
                self._write_all(kind, await self._list(kind, namespace))
            await self._pods(namespace)
        operand = platform.operand_namespace
        if platform.owns_static_pods and operand not in ours:
            # The namespace has objects of other owners, which are left out.
            labels = ",".join(f"{key}={value}" for key, value in platform.static_pod_labels)
            await self._pods(operand, labels)
            self._write_all(kinds.EVENTS, await self._list(kinds.EVENTS, operand))
            name = f"metadata.name={platform.operand_lease_name}"
            leases = await self._list(kinds.LEASES, platform.operand_lease_namespace, fields=name)
            self._write_all(kinds.LEASES, leases)

    async def _pods(self, namespace: str, labels: str | None = None) -> None:
        keep = without_exporters_spec
        pods = await (
            self._list(kinds.PODS, namespace, keep=keep)
            if labels is None
            else self._labelled(kinds.PODS, namespace, labels, keep)
        )
        self._write_all(kinds.PODS, pods)
        for pod in pods:
            if is_healthy_exporter(pod):
                continue
            for container, previous in logs_of(pod):
                await self._log(namespace, pod["metadata"]["name"], container, previous=previous)

    async def _log(self, namespace: str, pod: str, container: str, *, previous: bool) -> None:
        options = {"container": container, "tailLines": LINES, "timestamps": "true"}
        if previous:
            options["previous"] = "true"
        try:
            text = await self.api.get_text(kinds.PODS.named(pod, namespace), "log", **options)
        except NotFound:
            return  # the pod was deleted meanwhile
        except Invalid as error:
            text = f"{error}\n"  # the kubelet has removed the log of a container that ended
        except ApiError as error:
            self._missed(error)
            return
        name = "previous" if previous else "current"
        directory = f"namespaces/{namespace}/pods/{pod}/{container}/{container}/logs"
        self._write(f"{directory}/{name}.log", redacted_text(text))

    async def _list(
        self,
        kind: Resource,
        namespace: str | None = None,
        *,
        fields: str | None = None,
        keep: Callable[[Object], Object] = lambda obj: obj,
    ) -> list[Object]:
        request = self.api.list(kind, namespace, field_selector=fields, keep=keep)
        return await self._read(kind, request)

    async def _labelled(
        self, kind: Resource, namespace: str, labels: str, keep: Callable[[Object], Object]
    ) -> list[Object]:
        request = self.api.list(kind, namespace, label_selector=labels, keep=keep)
        return await self._read(kind, request)

    async def _read(self, kind: Resource, request: Awaitable[ListResult]) -> list[Object]:
        try:
            listed = await request
        except ApiError as error:
            if not (isinstance(error, NotFound) and kind in _OPTIONAL):
                self._missed(error)
            return []
        self._answered = True
        return listed.items

    def _missed(self, error: ApiError) -> None:
        # Without an API server or an identity, all other requests would fail as well.
        if isinstance(error, Unauthorized | Unavailable) and not self._answered:
            raise error
        self.missing.append(error_message(error))

    def _write_now(self, kind: Resource, obj: Object) -> Object:
        """Write one object as soon as it is read: a large cluster has thousands of nodes."""
        self._write_all(kind, [obj])
        return {}

    def _write_all(self, kind: Resource, objects: list[Object]) -> None:
        for path, text in files(kind, objects).items():
            self._write(path, text)

    def _write(self, path: str, text: str) -> None:
        file = self.directory / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        self.paths.add(path)


# --- the files ----------------------------------------------------------------------------------


REDACTED: Final = "(redacted)"
_CONFIDENTIAL: Final = frozenset(
    {"keydata", "client-key-data", "token", "password", "bearertoken", "authorization"}
)
_PRIVATE_KEY: Final = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL
)
_BEARER: Final = re.compile(r"\b(Bearer )[A-Za-z0-9._~+/=-]{8,}")


def files(resource: Resource, objects: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return the objects of one kind as YAML by path.

    A cluster-scoped object has its own file, namespaced objects one list per namespace, Pods both.
    """
    group = resource.group or "core"
    tree: dict[str, str] = {}
    lists: dict[str, list[Any]] = {}
    for obj in map(bounded, objects):
        metadata = {key: item for key, item in obj["metadata"].items() if key != "managedFields"}
        own = {**obj, "metadata": metadata}
        shown = secret_summary(obj) if resource == kinds.SECRETS else redacted(own)
        name, namespace = metadata["name"], metadata.get("namespace", "")
        if not resource.namespaced:
            tree[f"cluster-scoped-resources/{group}/{resource.plural}/{name}.yaml"] = yaml_text(
                [shown]
            )
            continue
        lists.setdefault(namespace, []).append(shown)
        if resource.plural == "pods":
            tree[f"namespaces/{namespace}/pods/{name}/{name}.yaml"] = yaml_text([shown])
    for namespace, items in lists.items():
        document = {"apiVersion": "v1", "kind": "List", "items": items}
        tree[f"namespaces/{namespace}/{group}/{resource.plural}.yaml"] = yaml_text([document])
    return tree


def logs_of(pod: Mapping[str, Any]) -> list[tuple[str, bool]]:
    """Return the available logs of a pod: (container, previous)."""
    status = pod.get("status") or {}
    logs = []
    for key in ("initContainerStatuses", "containerStatuses"):
        for container in status.get(key) or ():
            state = container.get("state") or {}
            if "running" in state or "terminated" in state:
                logs.append((container["name"], False))
            if (container.get("lastState") or {}).get("terminated"):
                logs.append((container["name"], True))
    return logs


def is_healthy_exporter(pod: Mapping[str, Any]) -> bool:
    """Return whether it is a Ready node-metrics pod; every node has one, so its log is left out."""
    labels = pod["metadata"].get("labels") or {}
    conditions = (pod.get("status") or {}).get("conditions") or ()
    ready = any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions)
    return labels.get("app") == names.NODE_METRICS and ready


def without_exporters_spec(pod: Object) -> Object:
    """Reduce a Ready node-metrics pod, of which every node has one, to name, node and state."""
    if not is_healthy_exporter(pod):
        return pod
    metadata, spec, status = pod["metadata"], pod.get("spec") or {}, pod["status"]
    names_of_it = {key: metadata.get(key) for key in ("namespace", "name", "labels")}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": names_of_it,
        "spec": {"nodeName": spec.get("nodeName")},
        "status": {"phase": status.get("phase"), "conditions": status["conditions"]},
    }


def secret_summary(secret: Mapping[str, Any]) -> dict[str, Any]:
    metadata = secret["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            key: metadata[key]
            for key in ("name", "namespace", "creationTimestamp")
            if key in metadata
        },
        "type": secret.get("type", ""),
        "keys": sorted({*(secret.get("data") or {}), *(secret.get("stringData") or {})}),
    }


def redacted(value: Any) -> Any:
    """Copy a value without credentials, including those in JSON strings of ConfigMaps."""
    if isinstance(value, Mapping):
        return {
            key: REDACTED
            if item and isinstance(item, str) and str(key).lower() in _CONFIDENTIAL
            else redacted(item)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [redacted(item) for item in value]
    if isinstance(value, str):
        return redacted_text(_redacted_json(value))
    return value


def redacted_text(text: str) -> str:
    """Remove private keys and bearer tokens from a text, e.g. a log."""
    return _BEARER.sub(rf"\1{REDACTED}", _PRIVATE_KEY.sub(REDACTED, text))


def _redacted_json(text: str) -> str:
    if not text.startswith("{"):
        return text
    try:
        document = read_json(text)
    except ValueError:
        return text
    if exceeds_depth(document, OBJECT_DEPTH):
        return REDACTED  # too deep to be searched
    clean = redacted(document)
    if clean == document:
        return text  # unchanged, because hashes depend on it
    return json.dumps(clean, ensure_ascii=False)
