"""Whether the operator observes an object while KubeScheduler is not Managed.

It observes SecondarySchedulers with what is attached to them, and LoadPolicies, in every state: see
operator/engine/reconcile.py. The SecondaryScheduler in the place of the control plane's scheduler
is observed too, but nothing that is attached to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ...base import names
from ...base.management import MANAGED, management_state
from ...base.objects import Object, mapping
from ...config.effective.attachment import is_ours, scheduler_of
from ...kube.resource import OPERATOR_SETTINGS, SCHEDULER_EXTENDERS, SCHEDULER_PROFILES

_ATTACHED: Final = (SCHEDULER_PROFILES.kind, SCHEDULER_EXTENDERS.kind)


def why_unobserved(
    kind: str,
    obj: Object,
    kubescheduler: Mapping[str, Any] | None,
    schedulers: Mapping[str, Object],
) -> str:
    """Why the operator does not observe an object; empty if it does when it runs.

    `schedulers` has the SecondarySchedulers, by name.
    """
    management = management_state(kubescheduler)
    if kind not in (*_ATTACHED, OPERATOR_SETTINGS.kind):
        return ""
    if kubescheduler is not None and management.state == MANAGED:
        return ""
    if kind in _ATTACHED:
        scheduler = schedulers.get(scheduler_of(mapping(obj.get("spec"))))
        if scheduler is not None and not is_ours(scheduler):
            return ""
    missing = f'KubeScheduler "{names.CLUSTER}" does not exist'
    return missing if kubescheduler is None else str(management)
