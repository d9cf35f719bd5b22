"""Which kind of cluster this is, asked of its API once, for whoever did not say (`--platform`).

The questions need no more rights than the operator has anyway: discovery, which everybody has, and
lists. A question that is refused or fails leaves the answer to the next one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ..base.names import CLUSTER
from ..base.platform import PLATFORMS, Platform, recognize
from ..kube.errors import ApiError, NotFound, Unauthorized, Unavailable
from ..kube.resource import INFRASTRUCTURES, NODES

if TYPE_CHECKING:
    from ..kube.client import ApiClient

AUTO: Final = "auto"
CHOICES: Final = (AUTO, *PLATFORMS)
"""What `--platform` takes."""

# Our own kinds are of the same group, so it is these that tell.
_KINDS: Final = {"clusterversions", "infrastructures"}
_CONTROL_PLANE: Final = "node-role.kubernetes.io/control-plane"


@dataclass(frozen=True, slots=True)
class Detected:
    """A kind of cluster.

    Attributes:
        platform: which one.
        reason: how one can tell.
        unanswered: the questions that were refused or failed, and why; without any it is certain.
    """

    platform: Platform
    reason: str
    unanswered: tuple[str, ...] = ()


async def detect(api: ApiClient) -> Detected:
    """Ask the API server which kind of cluster it is of.

    Raises:
        UnsupportedCluster: there is no static pod to own.
        Unauthorized: it does not know us.
        Unavailable: it answers nothing, which says nothing about the cluster.
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
    """Whether there is the Infrastructure of an OpenShift."""
    try:
        served = await api.get_path(f"/apis/{INFRASTRUCTURES.api_version}")
    except NotFound:
        return False
    if not {kind.get("name") for kind in served.get("resources") or ()} >= _KINDS:
        return False
    found = await api.list(INFRASTRUCTURES, field_selector=f"metadata.name={CLUSTER}")
    return bool(found.items)


async def _kubelets(api: ApiClient) -> list[str]:
    """The versions of the control-plane nodes' kubelets."""
    found = await api.list(NODES, label_selector=_CONTROL_PLANE)
    infos = [(node.get("status") or {}).get("nodeInfo") or {} for node in found.items]
    return [str(info.get("kubeletVersion") or "") for info in infos]
