"""Decides the kind of cluster: by `--platform`, else as recorded in the API, else by detection.

Detection needs no rights beyond the operator's own: discovery, which every client has, and lists.
If a request is forbidden or fails, the next one decides. The decision is recorded in a ConfigMap,
so that a platform never changes by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from ...base.names import CLUSTER, PLATFORM_RECORD
from ...base.objects import Object
from ...base.platform import PLATFORMS, Platform
from ...base.recognition import (
    NOTHING_REMEMBERED,
    NodeMarks,
    PlatformDecision,
    Recognition,
    Remembered,
    decide,
    recognize,
)
from ...kube.client import ApiClient
from ...kube.errors import ApiError, Forbidden, NotFound, Unauthorized, Unavailable
from ...kube.resource import CONFIG_MAPS, INFRASTRUCTURES, NODES, ObjectRef

AUTO: Final = "auto"
CHOICES: Final = (AUTO, *PLATFORMS)
"""Values of `--platform`."""

# The operator's own kinds are in the same group; these are OpenShift's only.
_KINDS: Final = {"clusterversions", "infrastructures"}
_CONTROL_PLANE: Final = "node-role.kubernetes.io/control-plane"
_SOME_NODES: Final = "/api/v1/nodes?limit=20"
"""A page of nodes is enough: each has the marks of its distribution."""


async def decide_platform(api: ApiClient, chosen: Platform | None) -> PlatformDecision:
    """Decide the platform; a chosen one that owns static Pods needs no request.

    Raises:
        Unauthorized: the API server rejects the credentials.
        Unavailable: the API server answers no request.
    """
    if chosen is not None and chosen.owns_static_pods:
        return PlatformDecision(Recognition(chosen, reason="--platform names it"))
    detected = await detect(api)
    platforms = (chosen or detected.platform,)
    # Only an unanswered request can hide OpenShift, which has a namespace of its own.
    hidden = chosen is None and detected.unanswered
    remembered = await read_record(api, PLATFORMS.values() if hidden else platforms)
    decision = decide(chosen, detected.used, remembered)
    return replace(decision, unanswered=detected.unanswered)


async def read_record(api: ApiClient, platforms: Iterable[Platform]) -> Remembered:
    """Read the record in the namespaces of these platforms, if it exists and may be read.

    Raises:
        ApiError: another request failed; the platform may differ from the recorded one.
    """
    for namespace in dict.fromkeys(platform.target_namespace for platform in platforms):
        try:
            record = await api.get(ObjectRef(CONFIG_MAPS, namespace, PLATFORM_RECORD))
        except (NotFound, Forbidden):
            continue
        remembered = Remembered.of(record)
        if remembered.platform:
            return remembered
    return NOTHING_REMEMBERED


async def detect(api: ApiClient) -> PlatformDecision:
    """Decide by what the API server shows now; raises what `decide_platform` raises."""
    unanswered: list[str] = []
    infrastructure, nodes, version = False, list[NodeMarks](), ""
    try:
        infrastructure = await _has_infrastructure(api)
    except Unauthorized:
        raise
    except ApiError as error:
        unanswered.append(str(error))
    if not infrastructure:
        try:
            nodes = await _nodes(api)
            if not any(node.control_plane for node in nodes):
                version = await _version(api)
        except ApiError as error:
            if isinstance(error, Unauthorized) or (unanswered and isinstance(error, Unavailable)):
                raise
            unanswered.append(str(error))
    recognition = recognize(infrastructure=infrastructure, nodes=nodes, server_version=version)
    if unanswered:
        recognition = replace(recognition, certain=False)
    return PlatformDecision(recognition, unanswered=tuple(unanswered))


async def _version(api: ApiClient) -> str:
    """Read `gitVersion` of the API server; empty if it does not serve /version."""
    try:
        return str((await api.get_path("/version")).get("gitVersion") or "")
    except NotFound:
        return ""


async def _has_infrastructure(api: ApiClient) -> bool:
    try:
        served = await api.get_path(f"/apis/{INFRASTRUCTURES.api_version}")
    except NotFound:
        return False
    if not {kind.get("name") for kind in served.get("resources") or ()} >= _KINDS:
        return False
    listed = await api.list(INFRASTRUCTURES, field_selector=f"metadata.name={CLUSTER}")
    return bool(listed.items)


async def _nodes(api: ApiClient) -> list[NodeMarks]:
    """Read the control-plane nodes or, without any, some others."""
    nodes: Sequence[Object] = (await api.list(NODES, label_selector=_CONTROL_PLANE)).items
    if not nodes:
        nodes = (await api.get_path(_SOME_NODES)).get("items") or ()
    return [NodeMarks.of(node) for node in nodes]
