"""What the settings of the installed operator permit, as its Deployment shows them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ...base.images import AllowedImages
from ...base.objects import entries, mapping
from ...base.platform import Platform
from ...config.effective.facts import Permissions
from ...kube.api import Api
from ...kube.errors import Forbidden
from ...kube.resource import DEPLOYMENTS
from ...operator.engine.own_deployment import operator_container
from .operator_objects import find_object

_VARIABLE: Final = "ALLOWED_IMAGES"
_FLAG: Final = "--allowed-images="


async def permissions(api: Api, platform: Platform) -> Permissions:
    """Return what is permitted; everything if that is not known."""
    operator = platform.operator
    try:
        deployment = await find_object(
            api, DEPLOYMENTS.named(operator.deployment, platform.operator_namespace)
        )
    except Forbidden:
        return Permissions()
    container = operator_container(mapping(deployment))
    return _of_container(container) if container else Permissions()


def _of_container(container: Mapping[str, Any]) -> Permissions:
    image = str(container.get("image") or "")
    variables = {str(env.get("name")): env for env in map(mapping, entries(container.get("env")))}
    variable = variables.get(_VARIABLE, {})
    if "valueFrom" in variable:
        return Permissions(own_image=image)
    words = [*entries(container.get("command")), *entries(container.get("args"))]
    flags = [str(word).removeprefix(_FLAG) for word in words if str(word).startswith(_FLAG)]
    text = flags[-1] if flags else str(variable.get("value") or "")
    images = AllowedImages().extended_by(text)
    return Permissions(images, images.with_repositories_of(image), own_image=image)
