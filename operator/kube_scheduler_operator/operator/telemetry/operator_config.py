"""OpenShift's GenericOperatorConfig, of which `servingInfo` is used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from ...base.objects import mapping

KIND = "GenericOperatorConfig"


class OperatorConfigError(ValueError):
    """A text that cannot be used; the message has the problem and the fix."""


def parse_serving_info(text: str) -> Mapping[str, Any]:
    """Read `servingInfo` from a configuration in YAML; empty if the text or the field is empty.

    Raises:
        OperatorConfigError: the text is not a GenericOperatorConfig.
    """
    try:
        document = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise OperatorConfigError(f"it is not YAML: {str(error).splitlines()[0]}") from error
    if document is None:
        return {}
    if not isinstance(document, Mapping) or document.get("kind") != KIND:
        raise OperatorConfigError(f"it must be an object of kind {KIND}")
    serving_info = document.get("servingInfo")
    if serving_info is not None and not isinstance(serving_info, Mapping):
        raise OperatorConfigError("servingInfo must be an object, such as {minTLSVersion: …}")
    return mapping(serving_info)
