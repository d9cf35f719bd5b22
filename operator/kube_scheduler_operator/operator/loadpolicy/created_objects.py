"""Objects of a LoadPolicy: policy file, exporter and annotator; and the cleanup Job."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

from ...base import names
from ...base.objects import Object
from ...base.platform import PLATFORMS, Platform
from ...base.settings import Settings
from ...base.templates import canonical_json, render_file
from ...config.language.command_line import LOG_LEVELS
from ...kube.resource import CONFIG_MAPS, DAEMON_SETS, DEPLOYMENTS, JOBS, LOAD_POLICIES, Resource
from ...scheduling.load.policy import DIRECTORY, FILE
from ...scheduling.load.policy_fields import CREDENTIALS
from ..model.apply import new_object
from ..model.snapshot import Snapshot
from ..model.workloads import CONTROL_PLANE_TOLERATIONS, digest
from .request import ANNOTATOR_RESOURCES, LoadPolicyRequest, read

PORT: Final = 8080
"""Port of the annotator's probes and metrics."""

STATE_DIRECTORY: Final = "/var/lib/kube-scheduler-operator"
"""Directory on nodes in which node-metrics saves its history across restarts."""

_UNPRIVILEGED: Final[Mapping[str, Any]] = {
    "runAsNonRoot": True,
    "runAsUser": 65532,
    "runAsGroup": 65532,
    "seccompProfile": {"type": "RuntimeDefault"},
}
_IDENTITY: Final[Sequence[Mapping[str, Any]]] = tuple(
    {"name": name, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.{field}"}}}
    for name, field in (("POD_NAME", "name"), ("POD_NAMESPACE", "namespace"))
)


def policy_config_map(name: str) -> str:
    return f"load-policy-{name}"


def workloads(
    platform: Platform, obj: Object, spec: Mapping[str, Any], settings: Settings
) -> Sequence[tuple[Resource, Mapping[str, Any], str]]:
    """Return (kind, object, hash of its spec) of exporter and annotator; do not modify them."""
    name, uid = obj["metadata"]["name"], str(obj["metadata"].get("uid"))
    image, pull_secrets = settings.operator_image, settings.image_pull_secrets
    return _workloads(platform.name, name, uid, canonical_json(spec), image, pull_secrets)


@lru_cache(maxsize=8)
def _workloads(
    platform: str, name: str, uid: str, text: str, image: str, pull_secrets: tuple[str, ...]
) -> tuple[tuple[Resource, Mapping[str, Any], str], ...]:
    request = read(json.loads(text)).request
    assert request is not None  # noqa: S101 - the caller has validated the spec
    documents = render_file(
        "load-policy.yaml.j2",
        policy=name,
        request=request,
        owner=LOAD_POLICIES.owner(name, uid),
        names=names,
        platform=PLATFORMS[platform],
        image=image,
        pull_secrets=[{"name": secret} for secret in pull_secrets],
        exporter_arguments=_exporter_arguments(request),
        annotator_arguments=_annotator_arguments(request),
        state_directory=STATE_DIRECTORY,
        policy_directory=DIRECTORY,
        policy_config_map=policy_config_map(name),
        credentials=request.credentials,
        credentials_directory=CREDENTIALS,
        port=PORT,
        unprivileged=dict(_UNPRIVILEGED),
        identity=list(_IDENTITY),
    )
    kinds = {kind.kind: kind for kind in (DAEMON_SETS, DEPLOYMENTS)}
    return tuple(
        (kinds[document["kind"]], document, digest(canonical_json(document["spec"])))
        for document in documents
    )


def config_map(
    snapshot: Snapshot, obj: Object, request: LoadPolicyRequest, remove: Sequence[str]
) -> dict[str, Any]:
    """Return the ConfigMap with policy.json, which programs reload when it changes.

    `remove` has the annotation families to remove from nodes.
    """
    name, uid = obj["metadata"]["name"], str(obj["metadata"].get("uid"))
    made = new_object(
        CONFIG_MAPS,
        policy_config_map(name),
        snapshot.platform.target_namespace,
        labels={names.LOAD_LABEL: name},
        ownerReferences=[LOAD_POLICIES.owner(name, uid)],
    )
    return {**made, "data": {FILE: replace(request.policy, remove=tuple(remove)).text()}}


def state_config_map(snapshot: Snapshot, written: Sequence[str]) -> dict[str, Any]:
    """Record which annotations nodes have; without an owner, to outlive the LoadPolicy."""
    namespace, labels = snapshot.platform.target_namespace, {names.LOAD_LABEL: ""}
    made = new_object(CONFIG_MAPS, names.LOAD_STATE, namespace, labels=labels)
    return {**made, "data": {names.LOAD_WRITTEN_KEY: ",".join(written)}}


def cleanup_job(snapshot: Snapshot, families: Sequence[str]) -> dict[str, Any]:
    settings = snapshot.settings
    (job,) = render_file(
        "load-cleanup.yaml.j2",
        names=names,
        platform=snapshot.platform,
        image=settings.operator_image,
        pull_secrets=[{"name": secret} for secret in settings.image_pull_secrets],
        families=list(families),
        resources=dict(ANNOTATOR_RESOURCES),
        tolerations=list(CONTROL_PLANE_TOLERATIONS),
        unprivileged=dict(_UNPRIVILEGED),
        identity=list(_IDENTITY),
    )
    assert job["kind"] == JOBS.kind  # noqa: S101 - by its template
    return job


def _exporter_arguments(request: LoadPolicyRequest) -> list[str]:
    root = ("--root=/host",) if request.exporter.mount_host else ()
    return [
        f"--listen-address=0.0.0.0:{request.policy.source.port}",
        f"--state-file={STATE_DIRECTORY}/$(NODE_NAME)-{names.NODE_METRICS}.json",
        *root,
        *request.exporter.arguments,
    ]


def _annotator_arguments(request: LoadPolicyRequest) -> list[str]:
    level = LOG_LEVELS.get(request.annotator.log_level, LOG_LEVELS["Normal"])
    return [
        f"--config={DIRECTORY}/{FILE}",
        f"--listen-address=0.0.0.0:{PORT}",
        f"-v={level}",
    ]
