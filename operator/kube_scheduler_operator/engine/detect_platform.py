"""Detects the platform of a cluster, once, when `--platform` does not name it.

Detection needs no rights beyond the operator's own: discovery, which every client has, and lists.
After a request that is forbidden or fails, the next one decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ..base.names import CLUSTER
from ..base.platform import PLATFORMS, Platform, recognize
from ..kube.client import ApiClient
from ..kube.errors import ApiError, NotFound, Unauthorized, Unavailable
from ..kube.resource import INFRASTRUCTURES, NODES

AUTO: Final = "auto"
CHOICES: Final = (AUTO, *PLATFORMS)
"""Values of `--platform`."""

# The operator's own kinds are in the same group; these are OpenShift's only.
_KINDS: Final = {"clusterversions", "infrastructures"}
_CONTROL_PLANE: Final = "node-role.kubernetes.io/control-plane"


@dataclass(frozen=True, slots=True)
class Detected:
    """The detected platform.

    Attributes:
        platform: the platform.
        reason: the evidence for it.
        unanswered: errors of requests; the result is certain without any.
    """

    platform: Platform
    reason: str
    unanswered: tuple[str, ...] = ()


async def detect(api: ApiClient) -> Detected:
    """Detect the platform from the API server.

    Raises:
        UnsupportedCluster: kube-scheduler does not run in a static Pod.
        Unauthorized: the API server rejects the credentials.
        Unavailable: the API server answers no request.
    """
    unanswered: list[str] = []
    infrastructure, kubelets = False, list[str]()
    try:
        infrastructure = await _has_infrastructure(api)
    except Unauthorized:
        raise
    except ApiError as error:
        unanswered.append(str(error))
    if not infrastructure:
        try:
            kubelets = await _kubelets(api)
        except ApiError as error:
            if isinstance(error, Unauthorized) or (unanswered and isinstance(error, Unavailable)):
                raise
            unanswered.append(str(error))
    platform, reason = recognize(infrastructure=infrastructure, kubelets=kubelets)
    return Detected(platform, reason, tuple(unanswered))


async def _has_infrastructure(api: ApiClient) -> bool:
    """Whether the Infrastructure "cluster" of OpenShift exists."""
    try:
        served = await api.get_path(f"/apis/{INFRASTRUCTURES.api_version}")
    except NotFound:
        return False
    if not {kind.get("name") for kind in served.get("resources") or ()} >= _KINDS:
        return False
    found = await api.list(INFRASTRUCTURES, field_selector=f"metadata.name={CLUSTER}")
    return bool(found.items)


async def _kubelets(api: ApiClient) -> list[str]:
    """Kubelet versions of the control-plane nodes."""
    found = await api.list(NODES, label_selector=_CONTROL_PLANE)
    infos = [(node.get("status") or {}).get("nodeInfo") or {} for node in found.items]
    return [str(info.get("kubeletVersion") or "") for info in infos]
