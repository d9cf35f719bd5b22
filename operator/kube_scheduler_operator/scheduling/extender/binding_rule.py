"""Which Pods an agent binds: those of its own scheduler, as the API server has them.

Every process that reaches the port can send a binding, and its account may bind any Pod, so nothing
in the request counts except which Pod it is about.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from ...base.findings import listing
from ...base.foreign_text import foreign
from ...base.limits import FOREIGN_NAME
from ...base.objects import mapping
from ...kube.client import ApiClient
from ...kube.resource import PODS
from .wire import Binding

_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
"""Names that need no escapes in a path or a field selector."""

FIELD: Final = "bind.schedulerNames"
"""Of the configuration file."""


class BindingRefusedError(Exception):
    """An agent does not bind this Pod; the message names the reason."""


async def bindable_uid(
    client: ApiClient, binding: Binding, scheduler_names: Collection[str]
) -> str:
    """Return the uid of the Pod to bind, if its schedulerName is one of `scheduler_names`.

    The schedulerName of a Pod is immutable, and the API server refuses to bind another uid.

    Raises:
        BindingRefusedError: it may not be bound.
        KubeError: the API server does not answer.
    """
    if not scheduler_names:
        raise BindingRefusedError(
            f"{FIELD} of the agent's configuration is empty, so it binds no Pod; list the "
            "schedulerNames of its scheduler"
        )
    if not (_NAME.fullmatch(binding.name) and _NAME.fullmatch(binding.namespace)):
        raise BindingRefusedError("PodName and PodNamespace must be names of Kubernetes objects")
    # A list of one name reads this Pod only, and needs no right beyond that of watches.
    selector = f"metadata.name={binding.name}"
    listed = await client.list(PODS, binding.namespace, field_selector=selector)
    where = f"Pod {binding.namespace}/{binding.name}"
    if not listed.items:
        raise BindingRefusedError(f"the API server has no {where}, or one too large to be read")
    (pod,) = listed.items
    uid = str(pod["metadata"]["uid"])
    if binding.uid not in ("", uid):
        raise BindingRefusedError(f"{where} was replaced: the request is about another uid")
    name = str(mapping(pod.get("spec")).get("schedulerName") or "")
    if name not in scheduler_names:
        raise BindingRefusedError(
            f'{where} has spec.schedulerName "{foreign(name, FOREIGN_NAME)}", and this agent binds '
            f"Pods of {listing(sorted(scheduler_names))} only"
        )
    return uid
