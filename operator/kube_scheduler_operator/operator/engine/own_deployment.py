"""The operator's own Deployment: the object of its events, and the image of Pods that it creates.

A Deployment has one place for its image, which every tool edits: kustomize's `images` changes no
variable.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...base import names
from ...base.objects import entries, mapping, uid_of
from ...base.platform import Platform
from ...kube.api import Api
from ...kube.errors import Forbidden, NotFound
from ...kube.resource import DEPLOYMENTS


@dataclass(frozen=True, slots=True)
class OwnDeployment:
    uid: str = ""  # empty out of cluster
    image: str = ""  # of the operator's container; empty out of cluster


async def read_own_deployment(api: Api, platform: Platform) -> OwnDeployment:
    """Read it; without it, or the right to, the operator runs out of cluster.

    Raises:
        KubeError: The API server does not respond.
    """
    try:
        deployment = await api.get(
            DEPLOYMENTS.named(platform.operator.deployment, platform.operator_namespace)
        )
    except (Forbidden, NotFound):
        return OwnDeployment()
    return OwnDeployment(uid_of(deployment), operator_image(deployment))


def operator_image(deployment: Mapping[str, Any]) -> str:
    """Return the image of the container that runs the operator, or of the first one."""
    first = next(iter(_containers(deployment)), {})
    return str((operator_container(deployment) or first).get("image") or "")


def operator_container(deployment: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the container that runs the operator; empty if none does."""
    own = [names.PROGRAM, "operator"]
    containers = _containers(deployment)
    return next((c for c in containers if entries(c.get("command"))[:2] == own), {})


def _containers(deployment: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    pod = mapping(mapping(mapping(deployment.get("spec")).get("template")).get("spec"))
    return [mapping(container) for container in entries(pod.get("containers"))]
