"""What is made for a LoadPolicy: its file, the exporter, the annotator; and the Job at its end."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from ..base import names
from ..base.objects import Object
from ..base.platform import PLATFORMS
from ..kube.resource import DAEMON_SETS, DEPLOYMENTS, JOBS, Resource
from ..load.policy import DIRECTORY, FILE
from ..load.policy_source import CREDENTIALS
from ..manifests.pods import canonical_json, render_file
from ..model.snapshot import Snapshot
from ..model.workloads import digest
from ..schedulerconfig.command_line import LOG_LEVELS
from .request import ANNOTATOR_RESOURCES, CONTROL_PLANE, Request, read

PORT: Final = 8080
"""Where the annotator answers probes and scrapes."""

STATE_DIRECTORY: Final = "/var/lib/kube-scheduler-operator"
"""On nodes: what node-metrics has measured, so that a restart forgets nothing."""

_NOBODY: Final[Mapping[str, Any]] = {
    "runAsNonRoot": True,
    "runAsUser": 65532,
    "runAsGroup": 65532,
    "seccompProfile": {"type": "RuntimeDefault"},
}
_IDENTITY: Final[Sequence[Mapping[str, Any]]] = tuple(
    {"name": name, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.{field}"}}}
    for name, field in (("POD_NAME", "name"), ("POD_NAMESPACE", "namespace"))
)


@dataclass(frozen=True, slots=True)
class Place:
    """What decides besides the LoadPolicy.

    Attributes:
        platform: the kind of cluster, by name.
        image: of everything: the operator's own.
        pull_secrets: names of the Secrets with which it is pulled.
    """

    platform: str
    image: str
    pull_secrets: tuple[str, ...]


def place_of(snapshot: Snapshot) -> Place:
    """The place that a snapshot shows."""
    settings = snapshot.settings
    return Place(snapshot.platform.name, settings.operator_image, settings.image_pull_secrets)


def policy_config_map(name: str) -> str:
    """The ConfigMap in the target namespace that has the LoadPolicy `name` as a file."""
    return f"load-policy-{name}"


def workloads(
    obj: Object, spec: Mapping[str, Any], place: Place
) -> Sequence[tuple[Resource, Mapping[str, Any], str]]:
    """(kind, object, hash over its spec) of exporter and annotator; nobody may change them.

    Args:
        obj: the LoadPolicy.
        spec: the one that is to be in force.
        place: see Place.
    """
    metadata = obj["metadata"]
    return _workloads(metadata["name"], str(metadata.get("uid")), canonical_json(spec), place)


@lru_cache(maxsize=8)
def _workloads(
    name: str, uid: str, text: str, place: Place
) -> tuple[tuple[Resource, Mapping[str, Any], str], ...]:
    request = read(json.loads(text)).request
    assert request is not None  # noqa: S101 - the caller has looked
    documents = render_file(
        "load-policy.yaml.j2",
        policy=name,
        request=request,
        owner=owner(name, uid),
        names=names,
        platform=PLATFORMS[place.platform],
        image=place.image,
        pull_secrets=_pull_secrets(place),
        exporter_arguments=_exporter_arguments(request),
        annotator_arguments=_annotator_arguments(request),
        state_directory=STATE_DIRECTORY,
        policy_directory=DIRECTORY,
        policy_config_map=policy_config_map(name),
        credentials=_credentials(request),
        credentials_directory=CREDENTIALS,
        port=PORT,
        nobody=dict(_NOBODY),
        identity=list(_IDENTITY),
    )
    kinds = {kind.kind: kind for kind in (DAEMON_SETS, DEPLOYMENTS)}
    return tuple(
        (kinds[document["kind"]], document, digest(canonical_json(document["spec"])))
        for document in documents
    )


def config_map(
    snapshot: Snapshot, obj: Object, request: Request, remove: Sequence[str]
) -> dict[str, Any]:
    """The policy as a file, which programs read again when it changes.

    Args:
        snapshot: what was seen.
        obj: the LoadPolicy.
        request: what is to be in force.
        remove: families of annotations that are to be taken away.
    """
    metadata = obj["metadata"]
    policy = replace(request.policy, remove=tuple(remove))
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": policy_config_map(metadata["name"]),
            "namespace": snapshot.platform.target_namespace,
            "labels": {names.LOAD_LABEL: metadata["name"], **names.OWN_LABELS},
            "ownerReferences": [owner(metadata["name"], str(metadata.get("uid")))],
        },
        "data": {FILE: policy.text()},
    }


def state_config_map(snapshot: Snapshot, written: Sequence[str]) -> dict[str, Any]:
    """What is on nodes. Nobody owns it: it outlives what was written because of it."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": names.LOAD_STATE,
            "namespace": snapshot.platform.target_namespace,
            "labels": {names.LOAD_LABEL: "", **names.OWN_LABELS},
        },
        "data": {names.LOAD_WRITTEN_KEY: ",".join(written)},
    }


def cleanup_job(snapshot: Snapshot, families: Sequence[str]) -> dict[str, Any]:
    """The Job that takes annotations away from all nodes."""
    place = place_of(snapshot)
    (job,) = render_file(
        "load-cleanup.yaml.j2",
        names=names,
        platform=snapshot.platform,
        image=place.image,
        pull_secrets=_pull_secrets(place),
        families=list(families),
        resources=dict(ANNOTATOR_RESOURCES),
        tolerations=list(CONTROL_PLANE),
        nobody=dict(_NOBODY),
        identity=list(_IDENTITY),
    )
    assert job["kind"] == JOBS.kind  # noqa: S101 - its template says so
    return job


def owner(name: str, uid: str) -> dict[str, Any]:
    """The reference by which everything goes with its LoadPolicy."""
    return {
        "apiVersion": f"{names.PREFIX}/v1alpha1",
        "kind": "LoadPolicy",
        "name": name,
        "uid": uid,
        "controller": True,
    }


def _pull_secrets(place: Place) -> list[dict[str, str]]:
    return [{"name": name} for name in place.pull_secrets]


def _exporter_arguments(request: Request) -> list[str]:
    root = ("--root=/host",) if request.exporter.mount_host else ()
    return [
        f"--listen-address=0.0.0.0:{request.policy.source.port}",
        f"--state-file={STATE_DIRECTORY}/$(NODE_NAME)-{names.NODE_METRICS}.json",
        *root,
        *request.exporter.arguments,
    ]


def _annotator_arguments(request: Request) -> list[str]:
    level = LOG_LEVELS.get(request.annotator.log_level, LOG_LEVELS["Normal"])
    return [
        f"--config={DIRECTORY}/{FILE}",
        f"--listen-address=0.0.0.0:{PORT}",
        f"-v={level}",
    ]


def _credentials(request: Request) -> list[dict[str, Any]]:
    """Secret and ConfigMap in one directory, each under the name that the policy has for it."""
    found = (
        ("secret", request.token, "token"),
        ("configMap", request.ca, "ca.crt"),
    )
    return [
        {kind: {"name": one.name, "items": [{"key": one.key, "path": path}]}}
        for kind, one, path in found
        if one is not None
    ]
